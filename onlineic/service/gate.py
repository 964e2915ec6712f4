"""Who is let in, under which name, and how much of a minute's worth they have left.

A program shows its token; a browser gives it once and then shows a cookie, which is another secret, ends with
the process, and is taken from pages of this server alone.
"""

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import final
from urllib.parse import urlsplit

import attrs
from starlette.requests import Request

from onlineic.errors import OnlineICError
from onlineic.noise.sources import SystemNoise
from onlineic.service import logs
from onlineic.service.rates import Rates
from onlineic.service.refusals import RefusedError, UnreadyError
from onlineic.service.trust import Trusted
from onlineic.service.users import User, Users, digest_of

VISIT = 12 * 3600.0  # seconds that a login lasts
MOST_VISITS = 20  # of one user: the oldest ends
READS, LEAST_READS = 10, 1200  # that a user may do a minute for each question that they may ask, and at least
COOKIE = "onlineic"
_log = logging.getLogger("onlineic.service")


@final
@attrs.frozen
class Limits:
    """What a server lets in.

    Attributes:
        hosts: Names that a request may call it by, without ports.
        secure: Whether browsers reach it by TLS: cookies are then sent by no other way.
        curators: Names of users whose page tells of all users.
        trusted: What a proxy may say of who asks; None: nothing.
        clock: Seconds, by which rates and visits are counted.
    """

    hosts: frozenset[str] = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})
    secure: bool = False
    curators: frozenset[str] = frozenset()
    trusted: Trusted | None = None
    clock: Callable[[], float] = time.monotonic


@final
class Gate:
    """Lets users in, and counts what they do.

    Args:
        users: Of the event loop's thread.
    """

    def __init__(self, users: Users, limits: Limits) -> None:
        self.users, self.limits = users, limits
        self._visits: OrderedDict[str, tuple[str, str, float]] = OrderedDict()  # by cookie: name, token, end
        self.asking, self.reading = Rates("questions", limits.clock), Rates("reads", limits.clock)

    def user(self, request: Request) -> User:
        """Return who asks, by the token of a program or the cookie of a visit.

        Raises:
            RefusedError: If it is nobody who may ask, or a page of another server.
            UnreadyError: If nobody knows who may.
        """
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            user = self.users.by_token(token.strip()) if kind.lower() == "bearer" else None
            if user is None and self.limits.trusted is not None:
                user = self.limits.trusted.user(request, self.users)
                if user is not None and request.method != "GET":
                    check_origin(request)  # a browser is signed in at the proxy, whichever page it shows
            if user is None and (cookie := request.cookies.get(COOKIE)) is not None:
                _, token, end = self._visits.get(digest_of(cookie), ("", "", 0.0))
                if end > self.limits.clock():
                    if request.method != "GET":
                        check_origin(request)
                    user = self.users.by_digest(token)
        except OnlineICError as error:  # of the file: where it lies is nobody's business
            raise self._unread(error) from None
        if user is None:
            said = {"WWW-Authenticate": "Bearer"}
            raise RefusedError(401, "unauthorized", "a token must be given that is valid.", **said)
        logs.known(user.name)
        return user

    def _unread(self, error: OnlineICError) -> UnreadyError:
        _log.error("users not read: %s", error.code)
        return UnreadyError("who may ask must be known, got no users; ask later.")

    def visitor(self, request: Request) -> User | None:
        """Return who asks, or None."""
        try:
            return self.user(request)
        except (RefusedError, UnreadyError):
            return None

    def curator(self, user: User) -> bool:
        """Return whether the page of a user tells of all users."""
        return user.name in self.limits.curators

    # -- visits ---------------------------------------------------------------------------------------------

    def enter(self, token: str) -> str | None:
        """Begin a visit, and return the secret of its cookie; None: the token is not valid.

        Raises:
            RefusedError: If this user logs in too often.
        """
        digest = digest_of(token.strip())
        try:
            user = self.users.by_digest(digest)
        except OnlineICError as error:
            raise self._unread(error) from None
        if user is None:
            return None
        self.read(user)
        secret = SystemNoise().words(4).tobytes().hex()
        self._visits[digest_of(secret)] = (user.name, digest, self.limits.clock() + VISIT)
        own = [cookie for cookie, (name, *_) in self._visits.items() if name == user.name]
        for cookie in own[:-MOST_VISITS]:
            del self._visits[cookie]
        return secret

    def leave(self, request: Request) -> None:
        """End a visit."""
        self._visits.pop(digest_of(request.cookies.get(COOKIE, "")), None)

    def visits(self) -> Counter[str]:
        """Return how many visits each user has."""
        return Counter(name for name, *_ in self._visits.values())

    # -- how much -------------------------------------------------------------------------------------------

    def read(self, user: User, count: int = 1) -> None:
        """Count reading: about so many milliseconds of the processor.

        Raises:
            RefusedError: If nothing is left of a minute's worth.
        """
        self.reading.admit(user.name, max(LEAST_READS, READS * user.per_minute), count)

    def owe_reads(self, user: User, count: int) -> None:
        """Count reading that a request which was let in has become."""
        self.reading.owe(user.name, max(LEAST_READS, READS * user.per_minute), count)

    def ask(self, user: User, count: int = 1) -> None:
        """Count questions; of 0, refuse where none is left.

        Raises:
            RefusedError: If none is left of a minute's worth.
        """
        self.asking.admit(user.name, user.per_minute, count)

    def owe(self, user: User, count: int) -> None:
        """Count questions that a request which was let in has become."""
        self.asking.owe(user.name, user.per_minute, count)


def check_origin(request: Request) -> None:
    """Raise `RefusedError` unless a browser sent it from a page of this server."""
    if not same_origin(request):
        raise RefusedError(403, "forbidden", "the request must come from this page.")


def same_origin(request: Request) -> bool:
    """Return whether a browser sent a request from a page of this server."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site != "same-origin":
        return False
    if origin is None:
        return site is not None
    try:
        sent = urlsplit(origin).netloc.lower()
    except ValueError:  # an address that is none
        return False
    return sent == request.headers.get("host", "").lower()
