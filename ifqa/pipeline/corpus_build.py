"""`CorpusBuild`: a corpus, and everything that a command reads or computes for it, each once."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ifqa.config.corpus import ConfiguredIndex, CorpusConfig
from ifqa.corpus.languages import ENGLISH
from ifqa.corpus.shard_writer import read_file_records
from ifqa.corpus.sources import open_source
from ifqa.corpus.work_units import FileRecord, Source
from ifqa.errors import ConfigError
from ifqa.pipeline.stage import Resolved, Stage
from ifqa.records import Question

PASSAGES = "passages"  # the folder of its passages; every index has a folder beside it


class CorpusBuild(Resolved):
    """A corpus with its sources, passages and indexes; it must not outlive its command."""

    def __init__(
        self,
        corpus: CorpusConfig,
        questions: Callable[[str, str], list[Question]] | None = None,
        folder: Path | None = None,
    ) -> None:
        """`questions` returns a benchmark's split, for gold passages.

        By default it is read from the benchmark.

        `folder` has links of its parts, for a system that is served while they are built again.
        """
        super().__init__(folder or corpus.folder)
        self._kept: dict[int, Source] = {}  # sources by their number, which are not opened again
        self.corpus = corpus
        self._questions = questions or (
            lambda name, split: corpus.plugins.benchmark(name).questions(split)
        )

    @cached_property
    def sources(self) -> list[Source]:
        """Its sources, checked: IfqaError if a setting is wrong, or a source's file or split is
        missing.
        """
        return [
            self._kept.get(number) or open_source(source, self._questions_of)
            for number, source in enumerate(self.corpus.sources)
        ]

    def _questions_of(self, benchmark: str, splits: Sequence[str]) -> list[list[Question]]:
        if not splits:
            known = ", ".join(self.corpus.plugins.benchmark(benchmark).splits) or "any of its files"
            raise ConfigError(
                "'gold' source: setting 'splits': wanted at least one "
                f"split of {benchmark} ({known})"
            )
        return [self._questions(benchmark, split) for split in splits]

    @cached_property
    def built_files(self) -> dict[str, FileRecord]:
        """The documents that its finished passages were built from."""
        passages = self.artifact(PASSAGES)
        return read_file_records(passages.folder) if passages.manifest else {}

    @cached_property
    def known(self) -> dict[str, Sequence[int | str]]:
        """The facts of the files that its finished passages were built from."""
        manifest = self.artifact(PASSAGES).manifest
        recorded = manifest["record"].get("sources", {}) if manifest else {}
        return {**recorded, **{key: file.facts for key, file in self.built_files.items()}}

    @property
    def language(self) -> str:
        """The language of its passages: the corpus file's, or the one detected as they were built,
        or English.
        """
        manifest = self.artifact(PASSAGES).manifest
        return self.corpus.language or str(
            manifest["record"].get("language", ENGLISH) if manifest else ENGLISH
        )

    def index(self, name: str) -> ConfiguredIndex:
        """An [index.NAME] of the corpus, in its language; ConfigError if it has no such index."""
        if name not in self.corpus.indexes:
            has = ", ".join(self.corpus.indexes) or "none"
            raise ConfigError(f"corpus {self.corpus.name} has no [index.{name}]; it has: {has}")
        index = self.corpus.indexes[name]
        return index if self.language == ENGLISH else index.in_language(self.language)

    def identity(self, stage: Stage[Any]) -> str:
        for earlier in stage.needs(self):
            self.finished(earlier)  # missing passages are reported before a missing index
        return super().identity(stage)

    def refresh(self, keeps_documents: bool = False) -> None:
        """Forget what was read or computed; with `keeps_documents` not a user's documents.

        At the end of a stage they need not be looked at again: each was compared with its hash as
        it was read. A log may have grown since, and the next command reads that.
        """
        kept = vars(self).get("sources", ()) if keeps_documents else ()
        self._kept = {number: each for number, each in enumerate(kept) if each.is_user_folder}
        super().refresh()
        for part in ("sources", "built_files", "known"):
            vars(self).pop(part, None)
