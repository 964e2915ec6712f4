"""Sign-in by a proxy: who asks stands in a header that the proxy sets, and nobody else can.

The header is believed on a Unix socket, which only those reach whom the rights of its file let in, or beside
a secret that the proxy knows. A request without it is that of nobody, and may still show a token.
"""

import hmac
from collections.abc import Mapping
from fractions import Fraction

import attrs
from starlette.requests import Request

from onlineic.errors import InvalidParameterError, OnlineICError, checked_ratio, shown
from onlineic.service.refusals import RefusedError
from onlineic.service.users import User, Users

SECRET = "x-onlineic-secret"  # header
LEAST_SECRET = 32  # letters


@attrs.frozen
class Trusted:
    """What a proxy may say.

    Attributes:
        header: That names the user.
        secret: That stands beside it; None: the socket is believed.
        groups_header: That names groups, between commas.
        groups: The part of the budget of each, for users whom the users file does not know yet. None: such
            users are nobody.
    """

    header: str
    secret: str | None = attrs.field(default=None, repr=False)
    groups_header: str = ""
    groups: Mapping[str, Fraction] | None = None

    @classmethod
    def checked(
        cls,
        header: str,
        *,
        on_socket: bool,
        secret: str | None = None,
        groups_header: str | None = None,
        groups: tuple[str, ...] = (),
    ) -> "Trusted":
        """Return it, as a command has it.

        Args:
            groups: As "NAME=PART".

        Raises:
            InvalidParameterError: If anybody could send the header, or a part is none.
        """
        if secret is None and not on_socket:
            raise InvalidParameterError(
                "--trust-header must stand with --listen unix:PATH or --trust-secret FILE, got neither: "
                "whoever reaches the port could sign in as anybody."
            )
        if secret is not None and len(secret) < LEAST_SECRET:
            raise InvalidParameterError(
                f"--trust-secret must name a file with a secret of at least {LEAST_SECRET} letters, got "
                "fewer; write openssl rand -hex 32 > FILE."
            )
        if bool(groups) != (groups_header is not None):
            raise InvalidParameterError(
                "--trust-groups must stand with --group NAME=PART, got one without it."
            )
        parts: dict[str, Fraction] = {}
        for one in groups:
            name, _, part = one.rpartition("=")
            try:
                parts[name.strip()] = checked_ratio(name, float(part), at_least=0.0, at_most=1.0)
            except ValueError:
                raise InvalidParameterError(
                    f"--group must be NAME=PART, got {shown(one)}; write staff=0.1."
                ) from None
        return cls(header.lower(), secret, (groups_header or "").lower(), parts or None)

    def user(self, request: Request, users: Users) -> User | None:
        """Return who asks, or None: the proxy names nobody.

        Raises:
            RefusedError: If the proxy is not the one, or names somebody who may not ask.
        """
        names = request.headers.getlist(self.header)
        if not names:
            return None
        if self.secret is not None and not self._knows(request):
            raise RefusedError(401, "unauthorized", "a token must be given that is valid.")
        if len(names) > 1 or not names[0].strip():
            raise RefusedError(403, "forbidden", "the proxy must name one user.")
        name = _text(names[0].strip())
        found, part = users.by_name(name), self._part(request)
        if self.groups is not None and part is None:
            raise RefusedError(403, "forbidden", "who asks must be in a group that may.")
        if found is None and part is not None:
            try:
                users.add(name, part)  # its token is told nobody
            except OnlineICError:
                raise RefusedError(
                    403, "forbidden", "the proxy must name a user by a printable name."
                ) from None
            found = users.by_name(name)
        if found is None or found.revoked is not None:
            raise RefusedError(403, "forbidden", "who asks must be a user of this server.")
        return found

    def _knows(self, request: Request) -> bool:
        told = request.headers.getlist(SECRET)
        return len(told) == 1 and hmac.compare_digest(told[0].encode(), (self.secret or "").encode())

    def _part(self, request: Request) -> Fraction | None:
        """Return the largest part of the groups that the proxy names, or None."""
        named = {
            one.strip() for text in request.headers.getlist(self.groups_header) for one in text.split(",")
        }
        return max((part for group, part in (self.groups or {}).items() if group in named), default=None)


def _text(raw: str) -> str:
    """Return the name that a header holds in UTF-8."""
    try:
        return raw.encode("latin-1").decode()
    except UnicodeError:
        raise RefusedError(403, "forbidden", "the proxy must name a user in UTF-8.") from None
