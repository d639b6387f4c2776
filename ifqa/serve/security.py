"""Access control by Host, Origin and token.

Loopback needs no token, but web pages in this machine's browser reach it, too.
"""

import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from ifqa.errors import ConfigError

COOKIE = "ifqa-session"
SESSION_SECONDS = 12 * 3600  # after which a page asks for the token again
WRONG_TOKENS = 10  # different wrong tokens that an address may send in WINDOW seconds
WINDOW = 60.0
TOKEN = "IFQA_TOKEN"  # noqa: S105 - the variable's name
SESSION = "/v1/session"
PROBES = ("/healthz", "/readyz")  # a cluster may call them by any host name
# These need no token: they reveal nothing about the system
_OPEN = ("/", "/favicon.ico", SESSION, *PROBES)
_SHORTEST_TOKEN = 16  # characters
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^][\s:/?#@,\\]+))(?::\d*)?")
_ANY = ("0.0.0.0", "::", "")  # noqa: S104 - addresses that need a token and host names

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; "
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


class WrongTokens:
    """The wrong tokens of the last minute by address, so that nobody can try tokens until one is
    right.

    A client with an outdated token sends the same one again and again, which counts once: behind a
    proxy all clients have one address, and such a client must not lock the others out.
    """

    def __init__(self) -> None:
        # Address -> hash of a wrong token -> when it came
        self._tries: dict[str, dict[bytes, float]] = {}

    def add(self, address: str, token: str) -> None:
        """Note a wrong token."""
        self._forget()
        self._tries.setdefault(_network(address), {})[_digest(token)] = time.monotonic()

    def seconds_to_wait(self, address: str) -> int:
        """Seconds until tokens from this address are looked at again; 0 if they are."""
        self._forget()
        times = self._tries.get(_network(address), {}).values()
        if len(times) < WRONG_TOKENS:
            return 0
        return int(min(times) + WINDOW - time.monotonic()) + 1

    def _forget(self) -> None:
        oldest = time.monotonic() - WINDOW
        for address, tries in list(self._tries.items()):
            recent = {token: at for token, at in tries.items() if at > oldest}
            if recent:
                self._tries[address] = recent
            else:
                del self._tries[address]


@dataclass(frozen=True)
class Guard:
    """The access rules of a server."""

    hosts: Collection[str] = ()  # allowed host names and addresses besides loopback
    # The token that a request needs; empty only on loopback
    token: str = field(default="", repr=False)
    wrong_tokens: WrongTokens = field(default_factory=WrongTokens, repr=False)
    # Signs the cookies
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def calls_us(self, headers: Mapping[str, str], path: str) -> bool:
        """Whether the Host header names this server; always true for a probe."""
        host = host_name(headers.get("host", ""))
        return path in PROBES or (bool(host) and (is_loopback(host) or host in self.hosts))

    def is_foreign(self, headers: Mapping[str, str]) -> bool:
        """Whether a page of another origin sent the request."""
        origin = headers.get("origin")
        return origin is not None and _network_location(origin) != headers.get("host", "").lower()

    def seconds_to_wait(self, headers: Mapping[str, str], path: str, address: str) -> int:
        """Seconds that an address with too many wrong tokens has to wait before it may send
        another; else 0.
        """
        brings_token = path == SESSION or ("authorization" in headers and path not in PROBES)
        return self.wrong_tokens.seconds_to_wait(address) if self.token and brings_token else 0

    def admits(self, headers: Mapping[str, str], path: str, address: str) -> bool:
        """Whether the request has the token or the session cookie, or needs neither.

        Notes a wrong token.
        """
        if not self.token or path in _OPEN or path.startswith("/static/"):
            return True
        # The command line imports this module without the extra
        from starlette.requests import cookie_parser

        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.is_token(credentials.strip(), address)
        return self._is_session(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""))

    def is_token(self, text: str, address: str) -> bool:
        """Whether a text is the token; a wrong one is noted for its address."""
        right = bool(self.token) and _equal_in_constant_time(text, self.token)
        if not right:
            self.wrong_tokens.add(address, text)
        return right

    def new_session(self) -> str:
        """The cookie of a page that has shown the token: when it ends, in seconds since 1970, and a
        signature.
        """
        return self._sign(int(time.time()) + SESSION_SECONDS)

    def _is_session(self, cookie: str) -> bool:
        end = cookie.partition(".")[0]
        if not (end.isascii() and end.isdecimal() and len(end) < 20):
            return False
        return _equal_in_constant_time(cookie, self._sign(int(end))) and time.time() < int(end)

    def _sign(self, end: int) -> str:
        return f"{end}.{hmac.new(self._key, str(end).encode(), hashlib.sha256).hexdigest()}"


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


def _network(address: str) -> str:
    """What counts as one address: of IPv6 the first 64 bits, which a provider gives to one
    customer.
    """
    try:
        version = ip_address(address).version
    except ValueError:
        return address
    return str(ip_network(f"{address}/64", strict=False)) if version == 6 else address


def _equal_in_constant_time(text: str, secret: str) -> bool:
    return hmac.compare_digest(_digest(text), _digest(secret))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def check_token(token: str, source: str) -> str:
    """Strip a token; ConfigError if it is weak."""
    token = token.strip()
    if len(token) < _SHORTEST_TOKEN or not (
        token.isascii() and token.isprintable() and " " not in token
    ):
        wanted = f"a token of at least {_SHORTEST_TOKEN} ASCII characters without spaces"
        command = "python -c 'import secrets; print(secrets.token_urlsafe())'"
        raise ConfigError(f"{source}: wanted {wanted}; generate it with: {command}")
    return token


def make_guard(host: str, token_file: Path | None = None, allow_hosts: Sequence[str] = ()) -> Guard:
    """The access rules of a server that listens on `host`, from the flags of `ifqa serve`."""
    token = (
        token_file.read_text(encoding="utf-8", errors="replace")
        if token_file
        else os.environ.get(TOKEN, "")
    )
    if token_file or token:
        token = check_token(token, str(token_file or TOKEN))
    elif not is_loopback(host):
        mend = (
            "put a token in a file and name it with --token-file, set "
            f"{TOKEN}, or listen on 127.0.0.1"
        )
        raise ConfigError(
            f"{host} can be reached from other machines, so requests need a token: {mend}"
        )
    if host in _ANY and not allow_hosts:
        raise ConfigError(
            f"--host {host} needs --allow-host NAME, the name by which clients reach this machine"
        )
    hosts = {name.lower().rstrip(".") for name in (*allow_hosts, host)} - set(_ANY)
    for name in hosts:
        if host_name(f"[{name}]" if ":" in name else name) != name:
            raise ConfigError(
                f"host name {name!r:.80}: wanted only a name or an address, such as "
                "ifqa.example.org"
            )
    return Guard(frozenset(hosts), token)
