"""What a server takes at most: fixed sizes of a request, and what `ifqa serve` may set."""

from dataclasses import dataclass

BODY = 1 << 20  # bytes of a request's body
SESSION = 8 << 10  # bytes of a body that shows the token: anybody may send one
DISCARDED = 32 << 20  # bytes of a larger body that are read and dropped, so that its sender reads the refusal
QUESTION = 2_000  # characters
CONTEXT = 20_000  # characters of a question's context
CHOICES = 32  # of a question
QUESTIONS = 64  # of a request
K = 100  # passages to retrieve
ID = 200  # characters of a question's or a passage's id
KEYS = 20  # of a JSON object
HEADERS = 32 << 10  # bytes of a request's line and headers
CONNECTIONS = 512  # at a time
SLOW = 10.0  # seconds from a connection or a request's first byte to the end of its headers, and from there to its body's end
KEEP_ALIVE = 30  # seconds from an answer to the next request's first byte
UNREAD = 30.0  # seconds that a client may leave an answer unread
BATCH = 32  # questions read at once, or fewer if the reader's `chunk` is smaller
THREADS = 8  # questions read side by side by a reader that is `concurrent`


@dataclass(frozen=True)
class Limits:
    """What `ifqa serve` may set: how many questions may wait, and the seconds from a question's arrival to its answer."""

    waiting: int = 256
    seconds: float = 60.0
