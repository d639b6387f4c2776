"""The base of language models that run in this process: the store of their completions, and the
count of what they computed.
"""

from collections.abc import Mapping
from pathlib import Path

from ifqa.llms.cache import CompletionCache, RequestBatch, check_store, sum_tokens
from ifqa.llms.request_form import THINKING_TOKENS, Thinking
from ifqa.protocols import LanguageModel
from ifqa.records import Completion, Request, TokenUsage
from ifqa.settings import Natural, PluginSettings, Positive


class LocalSettings(PluginSettings):
    """The settings that the language models in this process share."""

    max_tokens: Positive | None = None
    """Maximum number of tokens of an answer, in place of the prompt's own limit."""
    thinking: Thinking | None = None
    """Whether a model that can think does so before it answers, and how much. If it is not set,
    the model does not think.
    """
    thinking_tokens: Natural | None = None
    """Tokens for thoughts, in addition to those for the answer. The default is 1,024, 4,096 or
    16,384, for `thinking` low, medium or high.
    """
    store: str = "completions"
    """The folder for stored completions, below the working directory."""


class LocalModel(LanguageModel):
    """A language model in this process.

    Its completions are stored under its name and cost no money.
    """

    takes = ("root",)

    def _open_cache(self, folder: Path) -> None:
        self._cache = CompletionCache(folder)
        self._calls = 0
        self._cached = 0
        self._tokens = (0, 0)

    def _set_limits(self, settings: LocalSettings) -> None:
        """Keep the settings of thoughts and of a completion's length.

        `name` then says that the model thinks.
        """
        self.max_tokens = settings.max_tokens or 0
        # So that a model with both ways, such as Qwen3, answers at once
        self.thinking: Thinking = settings.thinking or "off"
        self.thinking_tokens = THINKING_TOKENS[self.thinking]
        if settings.thinking_tokens is not None:
            self.thinking_tokens = settings.thinking_tokens
        if self.thinking != "off":
            self.name += f" thinking {self.thinking}"
            self.cut = "in thoughts"

    def _template_arguments(self) -> dict[str, object]:
        """The arguments of a chat template that switch thoughts, under the names of Qwen3 and of
        gpt-oss.
        """
        if self.thinking == "off":
            return {"enable_thinking": False}
        return {"enable_thinking": True, "reasoning_effort": self.thinking}

    @property
    def spent(self) -> TokenUsage:
        return TokenUsage(self._calls, self._cached, *self._tokens, 0.0)

    def _keep(self, batch: RequestBatch, completions: Mapping[Request, Completion]) -> None:
        """Store computed completions, count them, and settle their requests.

        A failed completion is not stored.
        """
        computed = {
            request: completion
            for request, completion in completions.items()
            if not completion.error
        }
        self._cache.put(self.name, computed)
        self._calls += len(computed)
        self._tokens = sum_tokens(computed.values(), self._tokens)
        for request, completion in completions.items():
            batch.settle(request, completion)

    @classmethod
    def refuse_settings(cls, settings: LocalSettings) -> None:
        check_store(settings.store)
