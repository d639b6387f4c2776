"""The stage that indexes the passages of a corpus, for a retriever with an index."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ifqa.config.corpus import ConfiguredIndex
from ifqa.formatting import pluralize
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.session import Session
from ifqa.pipeline.stage import Stage
from ifqa.plugins import code_fingerprint, identity_settings
from ifqa.settings import change_settings, setting_fields
from ifqa.storage.artifacts import Draft
from ifqa.workers.pool import Workers


class Index(Stage[CorpusBuild]):
    """Builds an [index.NAME]; `name` is the index's."""

    def needs(self, build: CorpusBuild) -> Sequence[Stage[CorpusBuild]]:
        return (PASSAGES,)

    def command(self, build: CorpusBuild) -> str:
        return f"ifqa index {build.corpus.name}"

    def resumes(self, build: CorpusBuild) -> Literal["", "any"]:
        return "any" if build.index(self.name).plugin.resumes else ""

    def inputs(self, build: CorpusBuild) -> dict[str, object]:
        """The settings of `build`, the retriever's code, and the identity of the passages."""
        index = build.index(self.name)
        hashed = index.plugin.build_fingerprint(index.local_settings)
        files = {"files": hashed} if hashed else {}
        return {
            "stage": "index",
            "settings": identity_settings(index.plugin, index.section()),
            "code": code_fingerprint(index.plugin),
            **files,
            "passages": build.identity(PASSAGES),
        }

    def make(
        self,
        build: CorpusBuild,
        draft: Draft,
        session: Session | None = None,
        workers: Workers | None = None,
    ) -> list[str]:
        """`workers` replace the index's settings `engine` and `workers`.

        An index without these is built by this process.
        """
        index = build.index(self.name)
        settings = _with_workers(index, workers) if workers else index.local_settings
        passages = build.artifact(PASSAGES.name).folder
        index.plugin.build(passages, draft.folder, settings)
        count = build.finished(PASSAGES)["record"]["passages"]
        draft.record["passages"] = count
        folder = build.artifact(self.name).folder
        return [f"{folder}: {pluralize(count, 'passage')} indexed"]

    def inputs_again(self, build: CorpusBuild, draft: Path) -> dict[str, object]:
        build.refresh(keeps_documents=True)
        return build.inputs(self)


def _with_workers(index: ConfiguredIndex, workers: Workers) -> object:
    """The settings of an index's build, on other workers if it can use several."""
    settings = index.local_settings
    if not {"engine", "workers"} <= setting_fields(index.plugin.BuildSettings).keys():
        return settings
    return change_settings(settings, engine=workers.engine, workers=workers.number)
