"""The passage sources of a corpus file, checked and opened; and estimates of the time and disk that
a build takes.
"""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ifqa.corpus.wikipedia.dump_download import published_passages
from ifqa.corpus.work_units import (
    FileRecords,
    KnownFiles,
    QuestionLoader,
    Source,
    WorkUnit,
    passage_units,
)
from ifqa.errors import ConfigError, IfqaError, MissingInput, PluginError
from ifqa.plugins import ConfiguredPlugin, Plugins, identity_settings
from ifqa.protocols import PassageSource
from ifqa.records import Passage, Question
from ifqa.settings import as_section, parse_settings

_WORKER_MEMORY = 150e6  # bytes of a process with one unit, measured
_PASSAGE_MEMORY = 36  # bytes per passage while the ids are sorted
_INDEX_BYTES = 16  # bytes per passage in the index of ids
_ID_SECONDS = 5e-6  # seconds per passage to sort the ids
# Of a passage from a dump, and passages a second of a core (bench/wikipedia.py speed)
_PASSAGE_BYTES, _PASSAGE_RATE = 727, 10_900
_LARGEST_EXPANSION = 12  # bytes of passages per byte of input; the best compressed articles give 6


@dataclass(frozen=True, kw_only=True)
class ConfiguredSource(ConfiguredPlugin[PassageSource]):
    """A checked [[passages.sources]]; `name` is its format."""

    def section(self) -> dict[str, object]:
        return {"format": self.name, **as_section(self.settings)}

    @property
    def path(self) -> str:
        """Its `path`; empty without one."""
        return str(self.section().get("path", ""))

    @property
    def changed_section(self) -> dict[str, object]:
        """The settings that differ from their defaults, without the place of the input."""
        changed = self.settings.model_dump(exclude_defaults=True, by_alias=True)
        changed.pop("path", None)
        return {"format": self.name, **identity_settings(self.plugin, changed)}

    def splits(self) -> list[tuple[str, str]]:
        """Benchmark and split of the questions that it reads."""
        return self.plugin.splits_of(self.settings)


def parse_source(section: Mapping[str, object], where: str, plugins: Plugins) -> ConfiguredSource:
    """Check a [[passages.sources]]; ConfigError, which starts with `where`, if it is wrong."""
    name = section.get("format")
    if not isinstance(name, str):
        raise ConfigError(
            f"{where}: [[passages.sources]]: wanted a format, such as 'dump'; found {name!r:.80}"
        )
    plugin = plugins.load("source", name)
    given = {key: value for key, value in section.items() if key != "format"}
    what = f"setting of a {name!r} source"
    settings = parse_settings(plugin.Settings, given, what, where, ["format"])
    return ConfiguredSource(
        kind="source", name=name, plugin=plugin, settings=settings, root=plugins.root
    )


def _no_questions(benchmark: str, splits: Sequence[str]) -> Sequence[Sequence[Question]]:
    raise MissingInput(f"gold passages of {benchmark}: no questions are loaded here")


def open_source(
    configured: ConfiguredSource, questions_of: QuestionLoader = _no_questions
) -> Source:
    """Open and check a source; IfqaError if its input is missing or settings contradict."""
    opened = configured.open(questions=questions_of)
    source = opened if isinstance(opened, Source) else ListedPassages(configured, opened)
    source.check()
    return source


class ListedPassages(Source):
    """A source from outside, which yields passages that are split already.

    Its identity has all its settings, its code, and what its `fingerprint` returns.
    """

    def __init__(self, configured: ConfiguredSource, source: PassageSource) -> None:
        self._configured = configured
        self._source = source

    def work_units(self, earlier: FileRecords | None = None) -> Iterator[WorkUnit]:
        pairs = ((self._checked(passage), 0) for passage in self._source.passages())
        return passage_units(pairs, str(self._configured))

    def _checked(self, passage: Passage) -> Passage:
        is_passage = isinstance(passage, Passage)
        if not is_passage or passage.id.split() != [passage.id] or not passage.text.strip():
            raise PluginError(
                f"{self._configured} gave {passage!r:.80}; wanted an ifqa.Passage with a text, and "
                "an id without white space"
            )
        return passage

    def identity(self, known: KnownFiles) -> dict[str, object]:
        return self._configured.identity()


def user_folders(sources: Sequence[ConfiguredSource]) -> tuple[str, ...]:
    """The paths of the sources that are a user's own documents."""
    return tuple(str(Path(source.path)) for source in sources if source.plugin.is_user_folder)


def total_size(sources: Sequence[Source]) -> int:
    """Bytes of the input of all sources."""
    return sum(source.size() for source in sources)


@dataclass(frozen=True)
class BuildEstimate:
    """The estimated cost of building passages."""

    passages: float
    disk: float  # bytes
    # CPU seconds of the main process, which decompresses every file that is not a multistream dump
    reading: float
    working: float  # CPU seconds that the workers share
    seen: float  # share of the input that was sampled

    def seconds(self, workers: int) -> float:
        """Lower bound of the build's seconds, with one core per worker."""
        return (
            max(self.reading, (self.reading + self.working) / workers) + self.passages * _ID_SECONDS
        )

    def memory(self, workers: int) -> float:
        """Approximate bytes of the workers and of the main process, which prepares units for
        them.
        """
        return (workers + 1) * _WORKER_MEMORY + self.passages * _PASSAGE_MEMORY


def estimate_build(sources: Sequence[Source]) -> BuildEstimate:
    """Estimate the cost of a build from a sample of each source."""
    passages = disk = reading = working = seen = 0.0
    for source in sources:
        count = size = read = 0
        seconds = 0.0
        began = time.process_time()
        for unit in source.sample():
            started = time.process_time()
            shard = unit.make_shard()
            seconds += time.process_time() - started
            count = count + shard.passages
            size = size + len(shard.lines)
            read = read + unit.read
        scale = source.size() / read if read else 1.0
        passages = passages + count * scale
        disk = disk + size * scale
        seen = seen + read
        reading += (time.process_time() - began - seconds) * scale
        working += seconds * scale
    total = total_size(sources)
    return BuildEstimate(
        passages, disk + passages * _INDEX_BYTES, reading, working, seen / total if total else 1.0
    )


def published_build(sources: Sequence[ConfiguredSource]) -> BuildEstimate | None:
    """The cost of a build whose sources are published and not fetched yet.

    None if the size of one is unknown. The rates were measured (docs/scale.md).
    """
    counts = [published_passages(source.path) for source in sources]
    if not counts or None in counts:
        return None
    passages = float(sum(filter(None, counts)))
    return BuildEstimate(passages, passages * _PASSAGE_BYTES, 0.0, passages / _PASSAGE_RATE, 0.0)


def require_room(sources: Sequence[Source], folder: Path) -> None:
    """Raise an error if the estimated passages exceed the free space.

    An interrupted build's shards in `folder` count as free.
    """
    free = shutil.disk_usage(folder).free + sum(
        path.stat().st_size for path in folder.glob("passages-*.jsonl")
    )
    if free > total_size(sources) * _LARGEST_EXPANSION + (1 << 28):
        return
    from rich.filesize import decimal

    disk = estimate_build(sources).disk
    if disk > free:
        problem = (
            f"{folder} has room for {decimal(free)}, but the passages will take about "
            f"{decimal(int(disk))}"
        )
        raise IfqaError(
            f"{problem}; make room, or work on a larger disk (all files go "
            "below the working directory)"
        )
