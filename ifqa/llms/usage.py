"""What a plugin has asked a language model, counted for a stage's manifest."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import cast

from ifqa.llms.cache import tokens_of
from ifqa.protocols import Advance, LanguageModel, silent
from ifqa.records import Completion, Request, Usage

KEYS = ("retry", "not_asked", "too_long", "unparsed", "left_out", "cut", "server", "spent", "took")


class UsageMeter:
    """Asks a model for one plugin; what others have asked the same model before does not count.

    Args:
        llm: the model.
        keys: of the table, in their order, which manifests keep.

    Attributes:
        counts: what the plugin counts itself: "retry" and the like, see `Usage`.
    """

    def __init__(self, llm: LanguageModel, keys: Sequence[str] = KEYS) -> None:
        self.counts: Counter[str] = Counter()
        self._llm, self._keys = llm, keys
        self._before, self._took = llm.spent, (0, 0)

    def complete(self, requests: Sequence[Request], advance: Advance = silent) -> list[Completion]:
        """One completion a request, in their order; their tokens are counted."""
        completions = self._llm.complete(requests, advance=advance)
        self._took = tokens_of(completions, self._took)
        return completions

    def usage(self) -> Usage:
        """The table so far; without "server" if none is asked."""
        table: dict[str, object] = {key: self.counts[key] for key in self._keys}
        table |= {"server": self._llm.server, "spent": asdict(self._llm.spent.since(self._before)), "took": self._took}
        if not self._llm.server:
            del table["server"]
        return cast(Usage, table)
