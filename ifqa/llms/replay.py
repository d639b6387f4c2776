"""Replays recorded completions, for tests and notebooks, at no cost."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ifqa.errors import FormatError, IfqaError, MissingInput, unknown_name
from ifqa.llms.cache import (
    VERSION,
    request_from_json,
    stored_completion,
    truncate_completion,
)
from ifqa.llms.token_counts import estimate_tokens
from ifqa.protocols import LanguageModel, PathSetting, ProgressCallback, Requirement, no_progress
from ifqa.records import Completion, Estimate, Request, TokenUsage
from ifqa.settings import Natural, PluginSettings, StrictModel, check_record, parse_section
from ifqa.storage.files import read_jsonl, sha256
from ifqa.storage.resources import list_resources

WINDOW = 1_000_000_000  # everything fits, unless `window` is set
# Fields of a completion that recordings lack
_NOT_RECORDED = ("cached", "cached_prompt_tokens", "permanent")


class RecordingLine(StrictModel):
    version: int = VERSION
    request: dict[str, Any]
    completion: dict[str, Any]


class Replay(LanguageModel):
    """A model that answers with recorded completions.

    A recording is a file of JSON lines; each line is a record of the cache: `{"version": 1,
    "request": {"model": ..., "messages": [[role, content], ...] or "text": ..., "max_tokens": ...,
    "temperature": ..., "stop": [...], "sample": ...}, "completion": {"text": ..., "prompt_tokens":
    ..., "completion_tokens": ..., "finish": ...}}`. Missing values of a request have `Request`'s
    defaults, those of a completion are 0 or "". The lookup ignores the model.
    """

    version = 1
    concurrent = True
    takes_schema = True

    class Settings(PluginSettings):
        path: PathSetting
        """The file of recorded completions, or the name of a recording that ships with ifqa."""
        window: Natural = 0
        """Tokens of prompt and answer together, as in the recording; 0 for no limit. The tokens of
        a prompt are estimated.
        """

    def __init__(self, settings: Settings) -> None:
        self.path = find_recording(settings.path)
        self.window = settings.window or WINDOW
        self._completions, models = _read_recording(self.path)
        self.name = " and ".join(models) or "replay"
        self.chat = any(request.messages for request in self._completions)
        self.takes_tools = any(request.tools for request in self._completions)
        self._cached = 0
        self.label = f"completions recorded in {self.path.name}, {self.name}"

    @property
    def spent(self) -> TokenUsage:
        """The number of recorded completions used, at no cost."""
        return TokenUsage(cached=self._cached, cost=0.0)

    def count(self, text: str) -> int:
        return estimate_tokens(text)

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        return Estimate(0, 0, 0, 0.0)

    def complete(
        self, requests: Sequence[Request], advance: ProgressCallback = no_progress
    ) -> list[Completion]:
        """The recorded completions, in the requests' order.

        A request that was not recorded gets an error.
        """
        missing = Completion(error=f"not recorded in {self.path.name}")
        completions = [self._completions.get(request, missing) for request in requests]
        self._cached += sum(not completion.error for completion in completions)
        advance(len(requests))
        return completions

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> list[Requirement]:
        path = settings.path
        try:
            find_recording(path)
        except IfqaError as error:
            return [Requirement(f"the recording {path}", str(error))]
        return [Requirement(f"the recording {path}")]

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        return sha256(find_recording(settings.path))


def find_recording(path: str) -> Path:
    """The file of a recording: the file at `path`, or the `recordings/NAME.jsonl` that ships with
    ifqa.
    """
    shipped = list_resources("recordings", ".jsonl")
    if Path(path).is_file():
        return Path(path)
    if path in shipped:
        return shipped[path]
    if Path(path).suffix == ".jsonl":
        raise MissingInput(f"recording not found: {path} does not exist")
    raise unknown_name("recording", path, shipped)


def _read_recording(path: Path) -> tuple[dict[Request, Completion], list[str]]:
    """Recorded completions by request, and the names of their models."""
    completions: dict[Request, Completion] = {}
    models: dict[str, None] = {}
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        line = parse_section(RecordingLine, record, where)
        if line.version != VERSION:
            raise FormatError(
                f"{where}: the recording has version {line.version}; this "
                f"ifqa reads version {VERSION}"
            )
        if model := str(line.request.pop("model", "")):
            models[model] = None
        check_record(Request, line.request, "key", f"{where}: request")
        check_record(Completion, line.completion, "key", f"{where}: completion", _NOT_RECORDED)
        try:
            request = request_from_json(line.request)
            completion = truncate_completion(stored_completion(line.completion))
        except (TypeError, ValueError) as error:
            raise FormatError(f"{where}: {error}") from error
        if completions.setdefault(request, completion) != completion:
            raise FormatError(
                f"{where}: the same request has a different completion in an earlier line; "
                "remove one"
            )
    return completions, list(models)
