"""Asking without holding the table: a server with one session, its page, and a client."""

from onlineic.service.client import Remote, RemoteError, RemoteSummary, connect
from onlineic.service.users import User, Users
from onlineic.service.wire import from_wire, to_wire

__all__ = ["Remote", "RemoteError", "RemoteSummary", "User", "Users", "connect", "from_wire", "to_wire"]
