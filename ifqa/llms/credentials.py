"""A server's address and key.

A settings file may name a server but not its key. Keys are removed from texts.
"""

import base64
import ipaddress
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from ifqa.errors import ConfigError, MissingInput
from ifqa.formatting import CONTROLS

OPENAI = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"
ADDRESS = "OPENAI_BASE_URL"  # as in OpenAI's clients
# Keys of further hosts, separated by spaces: "HOST=VARIABLE", or "HOST" for a host that needs none
KEYS = "IFQA_KEYS"
NO_KEY = "none"  # sent to a server that needs no key
MAX_MESSAGE = 300  # characters kept of a server's message
_LOCALHOST = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::")  # noqa: S104 - names of this machine; nothing listens
_NO_KEYS = ("", NO_KEY, "empty")  # vLLM's documentation says "EMPTY"
_MAX_SEARCHED = 10_000  # characters of a server's message that are searched for keys

_SECRETS = re.compile(
    r"(?<![A-Za-z0-9])sk-[\w*.…-]{8,}|(?<![\w*-])[\w*-]*?\*{3}[\w*-]*|(?<=Bearer )\S+", re.I
)
# In an address: "sk-", or a mix of characters such as random keys have
_KEY_IN_ADDRESS = re.compile(
    r"(?<![\w-])sk-[\w-]{8,}|(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}"
    r"|(?=[A-Z]*[a-z])(?=[a-z]*[A-Z])[A-Za-z]{32,}"
)
_SECRET_NAME = re.compile(
    r"(^|[_-])(api[_-]?)?(key|token|secret|password|passwd|authorization|credentials?|bearer)$",
    re.I,
)
_LONG_PART = re.compile(r"(?=[\w-]*\d)[\w-]{32,}")  # in a path; host names may be as long


def redact(text: str, key: str) -> str:
    """A text as one shortened line, without the key and without anything that looks like a key,
    masked or not.
    """
    text = remove_key(text, key)[:_MAX_SEARCHED]  # first, as a truncated key would not match
    text = " ".join(CONTROLS.sub(" ", _SECRETS.sub("[key]", text)).split())
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


def key_forms(key: str) -> tuple[str, ...]:
    """The key in plain text and in base64; nothing for an empty key."""
    return (key, base64.b64encode(key.encode()).decode().rstrip("=")) if key else ()


def remove_key(text: str, key: str) -> str:
    """A text without the key, in plain text or in base64; unchanged for an empty key."""
    for form in key_forms(key):
        text = text.replace(form, "[key]")
    return text


def check_address(
    address: str, what: str = "openai: base_url", example: str = OPENAI, variable: str = KEY
) -> None:
    """Refuse an invalid address, and one with a key in it.

    The message calls it `what` and does not repeat the key.

    `variable` is the environment variable for the key.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{what} is not an address; wanted one like {example}") from error
    plain = address
    while (unquoted := unquote(plain)) != plain:  # it may be quoted more than once
        plain = unquoted
    path = plain[plain.find(parts.netloc) + len(parts.netloc) :]
    secret = "@" in parts.netloc or _KEY_IN_ADDRESS.search(plain) or _LONG_PART.search(path)
    if secret or parts.query or parts.fragment or ";" in plain:
        raise ConfigError(
            f"{what} contains a password, what looks like a key, or text after '?', '#' or "
            f"';'; wanted the address alone; put the key into {variable}"
        )
    if len(re.split(r"[\s,]+", address.strip())) > 1:
        raise ConfigError(
            f"{what} names several addresses; wanted one. Put a proxy before the servers, "
            "such as nginx with an 'upstream' "
            "or vLLM's router, and name its address: docs/language-models.md, Several servers"
        )
    wrong = address and (parts.scheme not in ("http", "https") or not parts.hostname or port == 0)
    if wrong or re.search(r"[\s\\%]", parts.netloc) or re.search(r"[\x00-\x20\x7f]", address):
        raise ConfigError(
            f"{what} must begin with http:// or https:// and a host, found {redact(address, '')!r}"
        )


def refuse_secrets(what: str, section: Mapping[str, object]) -> None:
    """Refuse a section with a key in it, by its name or its look, at any depth.

    The message does not repeat the key.
    """
    for name, value in section.items():
        if _holds_secret(name, value):
            raise ConfigError(
                f"{what}: {name!r} looks like a key, or holds one; wanted none in a file; "
                f"put it into {KEY}"
            )


def _holds_secret(name: str, value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_secret(str(key), inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(_holds_secret(name, inner) for inner in value)
    if not isinstance(value, str):
        return False
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)  # accessToken
    return bool(_SECRET_NAME.search(words) or _KEY_IN_ADDRESS.search(value))


def resolve_address(base_url: str) -> str:
    """The server's address: `base_url`, else the environment's OPENAI_BASE_URL, else OpenAI's."""
    check_address(base_url)
    check_address(os.environ.get(ADDRESS, ""), f"openai: environment variable {ADDRESS}")
    return base_url or os.environ.get(ADDRESS, "") or OPENAI


def server_origin(url: str) -> str:
    """Scheme, host and port of an address, for records and messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def server_name(url: str) -> str:
    """The name of a server, by which its readings and completions are told from those of other
    servers.

    It is the host, for https on its usual port; otherwise host, port, and a path other than "/v1",
    behind which a gateway may serve another model. All names of this machine are "localhost".
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if host in _LOCALHOST:
        host = "localhost"
    elif parts.scheme == "https" and port == 443:
        return host
    path = parts.path.rstrip("/")
    return f"{f'[{host}]' if ':' in host else host}:{port}{'' if path == '/v1' else path}"


def is_openai(url: str) -> bool:
    return urlsplit(url).hostname == urlsplit(OPENAI).hostname


def is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def is_trusted(url: str) -> bool:
    """Whether OPENAI_API_KEY is for this server: OpenAI's, this machine, or the server of
    OPENAI_BASE_URL.
    """
    address = os.environ.get(ADDRESS, "")
    return is_openai(url) or is_local(url) or bool(address and _host(address) == _host(url))


def key_for(url: str) -> str:
    """The key to send to a server; NO_KEY if the server needs none.

    OPENAI_API_KEY goes to OpenAI, to this machine and to the host of OPENAI_BASE_URL. For another
    host, IFQA_KEYS names the variable that holds its key. No settings file can name it: a shared
    file could then send any environment variable to any host.
    """
    host = urlsplit(url).netloc.lower()
    variable = KEY
    if not is_trusted(url):
        pairs = (entry.partition("=") for entry in os.environ.get(KEYS, "").split())
        known = {name.lower(): named for name, _, named in pairs}
        if host not in known:
            raise MissingInput(
                f"openai: no key is set for {host}; {KEY} is not sent there. If you trust it, "
                "name the variable that holds its "
                f'key: export {KEYS}="{host}=NAME", or "{host}" if it needs none'
            )
        variable = known[host]
        if not variable:
            return NO_KEY
        # It could be the key itself, which is shown nowhere
        if variable not in os.environ and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):
            raise ConfigError(
                f"{KEYS} names no variable for {host}; wanted {host}=NAME, where the environment "
                "variable NAME holds the key"
            )
    key = os.environ.get(variable, "").strip()
    if not key and not is_local(url):
        raise MissingInput(
            f"{variable} is not set; {host} needs a key (a server on this machine does not)"
        )
    if not all("!" <= character <= "~" for character in key):
        raise ConfigError(f"{variable} has a space or a character that no key has; copy it again")
    if key.lower() in _NO_KEYS:
        return NO_KEY
    if urlsplit(url).scheme == "http" and not is_local(url):
        raise ConfigError(
            f"openai: {variable} is not sent to {host} over unencrypted http://; "
            "use https:// or a tunnel "
            f"to this machine, or set {variable}={NO_KEY} if the server needs no key"
        )
    return key


def _host(url: str) -> tuple[str | None, int]:
    parts = urlsplit(url)
    return parts.hostname, parts.port or (80 if parts.scheme == "http" else 443)
