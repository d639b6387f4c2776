"""The server's limits: fixed limits of a request, limits that `ifqa serve` sets, and a cap on a
language model's cost.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ifqa.config.experiment import Experiment
from ifqa.config.overrides import override

logger = logging.getLogger(__name__)

MAX_BODY = 1 << 20  # bytes of a request's body
MAX_SESSION_BODY = 8 << 10  # bytes of a sign-in body, which needs no token
# Bytes of a too large body that are read and dropped, so that its client reads the error
MAX_DISCARDED = 32 << 20
MAX_QUESTION = 2_000  # characters
MAX_CONTEXT = 20_000  # characters of a question's context
MAX_CHOICES = 32  # of a question
MAX_QUESTIONS = 64  # of a request
MAX_K = 100  # passages per question
MAX_ID = 200  # characters of a question's id
MAX_PASSAGE_ID = 5_000  # characters of a passage's id: the path of a file, and a place
MAX_PICTURES = 3  # pages of an answer's sentence
MAX_DRAWING = 8  # pictures of pages that are drawn or wait for it, at a time
MAX_KEYS = 20  # of a JSON object
MAX_HEADERS = 32 << 10  # bytes of a request's line and headers
MAX_CONNECTIONS = 512  # at a time
REQUEST_TIMEOUT = 10.0  # seconds to receive a request's headers, and again its body
KEEP_ALIVE = 30  # seconds between two requests of a connection
WRITE_TIMEOUT = 30.0  # seconds that a client may leave a response unread
BATCH = 32  # questions per batch, or the reader's `chunk` if smaller
MAX_COST = 1.0  # default cap on a language model's cost
THREADS = 8  # questions read in parallel by a `concurrent` reader


@dataclass(frozen=True)
class Limits:
    """The limits that `ifqa serve` can set: waiting questions, and seconds from a question's
    arrival to its answer.
    """

    waiting: int = 256
    seconds: float = 60.0


def cap_cost(experiment: Experiment, flags: Sequence[str] = ()) -> Experiment:
    """The experiment with a default cap on its language model's cost, unless it has a cap or
    `flags` set one, even to 0.
    """
    caps = ("max_cost", "max_total_tokens")
    llm = experiment.llm.section() if experiment.llm else {}
    if (
        not experiment.asks_llm
        or not all(cap in llm for cap in caps)
        or any(llm[cap] or f"llm.{cap}" in flags for cap in caps)
    ):
        return experiment
    logger.info(
        f"this server may spend ${MAX_COST:g} on the language model; --max-cost sets another "
        "cap, 0 for none"
    )
    return override(experiment, {"llm.max_cost": MAX_COST})
