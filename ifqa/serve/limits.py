"""What a server takes at most: fixed sizes of a request, what `ifqa serve` may set, and what a language model may cost."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from ifqa.config.experiment import Experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError

logger = logging.getLogger(__name__)

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
DOLLARS = 1.0  # the cap on a language model's cost where nobody sets one
THREADS = 8  # questions read side by side by a reader that is `concurrent`


@dataclass(frozen=True)
class Limits:
    """What `ifqa serve` may set: how many questions may wait, and the seconds from a question's arrival to its answer."""

    waiting: int = 256
    seconds: float = 60.0


def cap_cost(experiment: Experiment, flags: Sequence[str] = ()) -> Experiment:
    """The experiment with a cap on what its language model may cost, if it asks one and nobody has set a cap.

    Args:
        experiment: what is served.
        flags: the settings that flags name; a cap of 0 among them is meant.
    """
    caps = ("max_cost", "max_total_tokens")
    llm: Mapping[str, object] = experiment.llm or {}
    asks = experiment.asks_llm("reader") or experiment.asks_llm("retriever")
    if not asks or not all(cap in llm for cap in caps) or any(llm[cap] or f"llm.{cap}" in flags for cap in caps):
        return experiment
    logger.info(f"the language model may cost ${DOLLARS:g} until this server ends; --max-cost sets another cap, 0 none")
    return override(experiment, {"llm.max_cost": DOLLARS})


def require_extra() -> None:
    """Check that the extra is installed."""
    for package in ("fastapi", "uvicorn", "mcp"):
        if find_spec(package) is None:
            raise IfqaError(f"the server needs {package}; install it with: pip install 'ifqa[serve]'")
