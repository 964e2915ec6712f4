"""Asking without holding the table: a server with one session, its page, and a client."""

from onlineic.service.wire import from_wire, to_wire

__all__ = ["from_wire", "to_wire"]
