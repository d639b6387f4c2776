"""Who may ask: Host and Origin are checked, and a token is compared in constant time.

A server on loopback needs no token, because only this machine reaches it. A web page in this machine's browser does too, so
the names by which the server is called (Host) and the pages that call it (Origin) are checked there as everywhere.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from ifqa.errors import IfqaError

COOKIE = "ifqa-session"
TOKEN = "IFQA_TOKEN"  # noqa: S105 - the variable's name
SESSION = "/v1/session"
PROBES = ("/healthz", "/readyz")  # a cluster calls them by any name
_OPEN = ("/", "/favicon.ico", SESSION, *PROBES)  # they need no token: nothing of the system is in them
_SHORTEST_TOKEN = 16  # characters
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^][\s:/?#@,\\]+))(?::\d*)?")
_ANY = ("0.0.0.0", "::", "")  # noqa: S104 - addresses that need a token and names

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own, which no other machine reaches."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Guard:
    """Whom a server lets in.

    Attributes:
        hosts: names and addresses by which it may be called, besides those of loopback.
        token: what a request must show; empty on loopback alone.
        session: the cookie of a page that has shown the token; another one after each start.
    """

    hosts: Collection[str] = ()
    token: str = field(default="", repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def calls_us(self, headers: Mapping[str, str], path: str) -> bool:
        """Whether the header Host names this server."""
        host = host_name(headers.get("host", ""))
        return path in PROBES or (bool(host) and (is_loopback(host) or host in self.hosts))

    def is_foreign(self, headers: Mapping[str, str]) -> bool:
        """Whether a page of another origin sends the request."""
        origin = headers.get("origin")
        return origin is not None and _network_location(origin) != headers.get("host", "").lower()

    def admits(self, headers: Mapping[str, str], path: str) -> bool:
        """Whether the request shows the token, or the cookie that a page got for it, or needs neither."""
        if not self.token or path in _OPEN or path.startswith("/static/"):
            return True
        from starlette.requests import cookie_parser  # the flags are read without the extra

        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.is_token(credentials.strip())
        return _are_equal(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""), self.session)

    def is_token(self, text: str) -> bool:
        """Whether this is the token."""
        return bool(self.token) and _are_equal(text, self.token)


def _network_location(origin: str) -> str | None:
    """Host and port of an origin, in lower case; None if it is no address of a page."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") and parts.netloc else None


def host_name(location: str) -> str:
    """The name or address in "name", "name:port" or "[address]:port", in lower case; empty if it is none of these."""
    match = _HOST.fullmatch(location)
    return (match[1] or match[2]).lower().rstrip(".") if match else ""


def _are_equal(text: str, secret: str) -> bool:
    """Whether two texts are equal, in a time that does not depend on where they differ, nor on their lengths."""
    digests = (hashlib.sha256(each.encode("utf-8", "surrogatepass")).digest() for each in (text, secret))
    return hmac.compare_digest(*digests)


def check_token(token: str, source: str) -> str:
    """The token without the blanks around it."""
    token = token.strip()
    if len(token) < _SHORTEST_TOKEN or not (token.isascii() and token.isprintable() and " " not in token):
        raise IfqaError(
            f"{source}: wanted a token of at least {_SHORTEST_TOKEN} ASCII characters without blanks; make one with: "
            "python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token


def make_guard(host: str, token_file: Path | None = None, allow_hosts: Sequence[str] = ()) -> Guard:
    """Whom a server that listens on `host` lets in, as the flags of `ifqa serve` say."""
    token = token_file.read_text(encoding="utf-8", errors="replace") if token_file else os.environ.get(TOKEN, "")
    if token_file or token:
        token = check_token(token, str(token_file or TOKEN))
    elif not is_loopback(host):
        raise IfqaError(
            f"{host} can be reached from other machines, so requests must show a token: put one into a file and "
            f"name it with --token-file, or set {TOKEN}; or listen on 127.0.0.1"
        )
    if host in _ANY and not allow_hosts:
        raise IfqaError(f"--host {host} wants --allow-host NAME, the name by which others call this machine")
    hosts = {name.lower().rstrip(".") for name in (*allow_hosts, host)} - set(_ANY)
    for name in hosts:
        if host_name(f"[{name}]" if ":" in name else name) != name:
            raise IfqaError(f"--allow-host {name!r:.80}: wanted a name or an address alone, as in ifqa.example.org")
    return Guard(frozenset(hosts), token)
