"""Access control by Host, Origin and token. Loopback needs no token, but web pages in this machine's browser reach it, too."""

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

from ifqa.errors import ConfigError

COOKIE = "ifqa-session"
TOKEN = "IFQA_TOKEN"  # noqa: S105 - the variable's name
SESSION = "/v1/session"
PROBES = ("/healthz", "/readyz")  # a cluster may call them by any host name
_OPEN = ("/", "/favicon.ico", SESSION, *PROBES)  # these need no token: they reveal nothing about the system
_SHORTEST_TOKEN = 16  # characters
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^][\s:/?#@,\\]+))(?::\d*)?")
_ANY = ("0.0.0.0", "::", "")  # noqa: S104 - addresses that need a token and host names

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
    """Whether a host's name or address is this machine's loopback."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Guard:
    """The access rules of a server."""

    hosts: Collection[str] = ()  # allowed host names and addresses besides loopback
    token: str = field(default="", repr=False)  # the token that a request needs; empty only on loopback
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # a signed-in page's cookie

    def calls_us(self, headers: Mapping[str, str], path: str) -> bool:
        """Whether the Host header names this server; always true for a probe."""
        host = host_name(headers.get("host", ""))
        return path in PROBES or (bool(host) and (is_loopback(host) or host in self.hosts))

    def is_foreign(self, headers: Mapping[str, str]) -> bool:
        """Whether a page of another origin sent the request."""
        origin = headers.get("origin")
        return origin is not None and _network_location(origin) != headers.get("host", "").lower()

    def admits(self, headers: Mapping[str, str], path: str) -> bool:
        """Whether the request has the token or the session cookie, or needs neither."""
        if not self.token or path in _OPEN or path.startswith("/static/"):
            return True
        from starlette.requests import cookie_parser  # the command line imports this module without the extra

        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.is_token(credentials.strip())
        return _equal_in_constant_time(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""), self.session)

    def is_token(self, text: str) -> bool:
        return bool(self.token) and _equal_in_constant_time(text, self.token)


def _network_location(origin: str) -> str | None:
    """Host and port of an http or https origin, in lower case; None for any other origin."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") and parts.netloc else None


def host_name(location: str) -> str:
    """The name or address in "name", "name:port" or "[address]:port", in lower case; else empty."""
    match = _HOST.fullmatch(location)
    return (match[1] or match[2]).lower().rstrip(".") if match else ""


def _equal_in_constant_time(text: str, secret: str) -> bool:
    digests = [hashlib.sha256(string.encode("utf-8", "surrogatepass")).digest() for string in (text, secret)]
    return hmac.compare_digest(*digests)


def check_token(token: str, source: str) -> str:
    """Strip a token; ConfigError if it is weak."""
    token = token.strip()
    if len(token) < _SHORTEST_TOKEN or not (token.isascii() and token.isprintable() and " " not in token):
        wanted = f"a token of at least {_SHORTEST_TOKEN} ASCII characters without spaces"
        command = "python -c 'import secrets; print(secrets.token_urlsafe())'"
        raise ConfigError(f"{source}: wanted {wanted}; generate it with: {command}")
    return token


def make_guard(host: str, token_file: Path | None = None, allow_hosts: Sequence[str] = ()) -> Guard:
    """The access rules of a server that listens on `host`, from the flags of `ifqa serve`."""
    token = token_file.read_text(encoding="utf-8", errors="replace") if token_file else os.environ.get(TOKEN, "")
    if token_file or token:
        token = check_token(token, str(token_file or TOKEN))
    elif not is_loopback(host):
        mend = f"put a token in a file and name it with --token-file, set {TOKEN}, or listen on 127.0.0.1"
        raise ConfigError(f"{host} can be reached from other machines, so requests need a token: {mend}")
    if host in _ANY and not allow_hosts:
        raise ConfigError(f"--host {host} needs --allow-host NAME, the name by which clients reach this machine")
    hosts = {name.lower().rstrip(".") for name in (*allow_hosts, host)} - set(_ANY)
    for name in hosts:
        if host_name(f"[{name}]" if ":" in name else name) != name:
            raise ConfigError(f"host name {name!r:.80}: wanted only a name or an address, such as ifqa.example.org")
    return Guard(frozenset(hosts), token)
