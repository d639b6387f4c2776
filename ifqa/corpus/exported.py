"""The source 'exported': passages from an archive that `ifqa index --export` wrote."""

from collections.abc import Iterator

from ifqa.corpus.work_units import FileRecords, KnownFiles, Source, WorkUnit
from ifqa.errors import MissingInput
from ifqa.settings import PluginSettings


class ExportedPassages(Source):
    """The passages of another machine's corpus, without what they were built from."""

    class Settings(PluginSettings):
        built_from: str
        """SHA-256 of what the passages were built from, there."""

    settings: Settings
    format = "exported"

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def work_units(self, earlier: FileRecords | None = None) -> Iterator[WorkUnit]:
        raise MissingInput(
            "these passages came in an archive, and are damaged, removed or of another version of "
            "ifqa; remove the corpus's file and folder, and unpack the archive again: "
            "ifqa index CORPUS --from FILE"
        )

    def identity(self, known: KnownFiles) -> dict[str, object]:
        return self.identity_settings() | {"built_from": self.settings.built_from}
