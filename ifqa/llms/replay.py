"""Replays recorded completions, for tests and notebooks; asks nothing and spends nothing."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError, unknown
from ifqa.llms.cache import ANSWER, VERSION, CompletionCache, bounded, record_of
from ifqa.llms.token_counts import at_most
from ifqa.protocols import Advance, LanguageModel, Place, Requirement, silent
from ifqa.records import Completion, Estimate, Request, Spent
from ifqa.settings import Natural, checked
from ifqa.storage.files import create, field, read_jsonl, sha256, write
from ifqa.storage.resources import list_resources

WINDOW = 1_000_000_000  # everything fits, unless `window` is set
_REQUEST = {"messages": list, "text": str, "max_tokens": int, "temperature": int | float, "stop": list, "sample": int}


class Replay(LanguageModel):
    """A model that answers with recorded completions.

    A recording is a file of JSON lines; each line is a record of the cache: `{"version": 1, "request": {"model": ...,
    "messages": [[role, content], ...] or "text": ..., "max_tokens": ..., "temperature": ..., "stop": [...], "sample":
    ...}, "completion": {"text": ..., "prompt_tokens": ..., "completion_tokens": ..., "finish": ...}}`. Values left out of a
    request have `Request`'s defaults; values left out of a completion are 0 or "". The lookup ignores the model.

    Args:
        path: the file, or the name of a recording that ships with ifqa.
        window: tokens of prompt and answer together, as at the time of recording; 0 for no bound. Tokens are estimated, as
            for a model whose vocabulary is unknown.

    Attributes:
        name: the model that was recorded.
        chat: whether the recorded requests are messages.

    Raises:
        IfqaError: there is no such recording, or a line is wrong; the message names the line.
    """

    version = 1
    concurrent = True

    @checked("setting of llm 'replay'")
    def __init__(self, *, path: Place, window: Natural = 0) -> None:
        self.path = recording(path)
        self.window = window or WINDOW
        self._completions, models = _read(self.path)
        self.name = " and ".join(models) or "replay"
        self.chat = any(request.messages for request in self._completions)
        self._cached = 0
        self.label = f"completions recorded in {self.path.name}, {self.name}"

    @property
    def spent(self) -> Spent:
        """Recorded completions only, for no money."""
        return Spent(cached=self._cached, cost=0.0)

    def count(self, text: str) -> int:
        """An upper estimate of a text's tokens."""
        return at_most(text)

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """What the requests would cost: nothing."""
        return Estimate(0, 0, 0, 0.0)

    def complete(self, requests: Sequence[Request], advance: Advance = silent) -> list[Completion]:
        """The recorded completions, in the requests' order; a request that was not recorded gets an error."""
        missing = Completion(error=f"not recorded in {self.path.name}")
        completions = [self._completions.get(request, missing) for request in requests]
        self._cached += sum(not completion.error for completion in completions)
        advance(len(requests))
        return completions

    @classmethod
    def requirements(cls, *, path: str, root: Path = Path(), **_: object) -> list[Requirement]:
        """The recording."""
        try:
            recording(str(root / path) if (root / path).exists() else path)
        except IfqaError as error:
            return [Requirement(f"the recording {path}", str(error))]
        return [Requirement(f"the recording {path}")]

    @classmethod
    def fingerprint(cls, path: str, **_: Any) -> str:
        """SHA-256 of the recording."""
        return sha256(recording(path))


def recording(path: str) -> Path:
    """The file of a recording: the file at `path`, or the `recordings/NAME.jsonl` that ships with ifqa.

    Raises:
        IfqaError: there is neither.
    """
    shipped = list_resources("recordings", ".jsonl")
    if Path(path).is_file():
        return Path(path)
    if path in shipped:
        return shipped[path]
    if Path(path).suffix == ".jsonl":
        raise IfqaError(f"recording not found: {path} does not exist")
    raise unknown("recording", path, shipped)


def record(path: Path, cache: CompletionCache, model: str, requests: Iterable[Request]) -> int:
    """Write a model's completions from a cache as a recording; returns how many.

    Args:
        path: of the recording; replaced once the new one is complete.
        cache: holds the model's completions.
        model: the model's `name`.
        requests: whose completions to write, in this order; each is written once.

    Raises:
        IfqaError: the cache lacks the completion of a request; nothing is written.
    """
    unique = dict.fromkeys(requests)
    stored = cache.get(model, unique)
    if missing := len(unique) - len(stored):
        raise IfqaError(
            f"{missing} of {len(unique)} requests have no completion of {model} in {cache.folder}; ask them first"
        )
    with create(path) as handle:
        for request in unique:
            write(handle, record_of(model, request, stored[request]).encode() + b"\n")
    return len(unique)


def _read(path: Path) -> tuple[dict[Request, Completion], list[str]]:
    """Recorded completions by request, and the names of their models."""
    completions: dict[Request, Completion] = {}
    models: dict[str, None] = {}
    for number, line in read_jsonl(path):
        where = f"{path}:{number}"
        if line.get("version", VERSION) != VERSION:
            raise IfqaError(f"{where}: a recording of version {line['version']!r}; this ifqa reads {VERSION}")
        prompt, answer = field(line, "request", dict, where), field(line, "completion", dict, where)
        if model := prompt.pop("model", ""):
            models[str(model)] = None
        request = _request(_checked(prompt, _REQUEST, f"{where}: request"), where)
        completion = bounded(Completion(**_checked(answer, ANSWER, f"{where}: completion"), cached=True))
        if completions.setdefault(request, completion) != completion:
            raise IfqaError(f"{where}: the same request has another completion further up; leave one of the lines out")
    return completions, list(models)


def _checked(values: dict[str, Any], kinds: dict[str, Any], where: str) -> dict[str, Any]:
    for name, value in values.items():
        if name not in kinds:
            raise unknown(f"key ({where})", name, kinds)
        if not isinstance(value, kinds[name]) or isinstance(value, bool):
            raise IfqaError(f"{where}: {name!r} has the wrong type: {value!r:.80}")
    return values


def _request(values: dict[str, Any], where: str) -> Request:
    messages, stop = values.pop("messages", []), values.pop("stop", [])
    for message in messages:
        if not isinstance(message, list) or list(map(type, message)) != [str, str]:
            raise IfqaError(f"{where}: a message must be [role, content], found {message!r:.80}")
    if not all(isinstance(string, str) for string in stop):
        raise IfqaError(f"{where}: 'stop' must be a list of strings, found {stop!r:.80}")
    try:
        return Request(messages=tuple((role, text) for role, text in messages), stop=tuple(stop), **values)
    except ValueError as error:
        raise IfqaError(f"{where}: {error}") from error
