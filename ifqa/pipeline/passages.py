"""The stage that turns the sources of a corpus into shards of passages, and an index of their
ids.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from ifqa.corpus import work_units
from ifqa.corpus.documents.source import read_lines
from ifqa.corpus.languages import FILE_SAMPLE, LANGUAGE_SAMPLE, majority_language
from ifqa.corpus.passage_store import PassageStore, parse_passage, write_id_index
from ifqa.corpus.shard_writer import BAD, CorpusWriter, read_bad_pages, read_file_records
from ifqa.corpus.sources import require_room, total_size, user_folders
from ifqa.corpus.work_units import (
    BuildReport,
    FileRecord,
    FileRecords,
    KnownFiles,
    Source,
    WorkUnit,
    make_shard,
)
from ifqa.errors import DamagedArtifact, MissingInput
from ifqa.formatting import pluralize
from ifqa.pipeline import corpus_build
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.session import Session
from ifqa.pipeline.stage import Stage
from ifqa.progress import bar
from ifqa.storage.artifacts import Draft
from ifqa.workers.pool import Workers, map_tasks


class Passages(Stage[CorpusBuild]):
    """Builds the shards `passages-00000.jsonl` and so on, and an index of their ids.

    Each shard is made from a block of the input, so its bytes do not depend on the number of
    workers. A killed build resumes after its last finished shard.
    """

    def needs(self, build: CorpusBuild) -> Sequence[Stage[CorpusBuild]]:
        return ()

    def resumes(self, build: CorpusBuild) -> Literal["any"]:
        return "any"

    def command(self, build: CorpusBuild) -> str:
        return f"ifqa passages {build.corpus.name}"

    def inputs(self, build: CorpusBuild) -> dict[str, object]:
        """The sources' settings and the SHA-256 of their files."""
        return _inputs(build.sources, build.known)

    def make(
        self,
        build: CorpusBuild,
        draft: Draft,
        session: Session | None = None,
        workers: Workers | None = None,
    ) -> list[str]:
        sources = build.sources
        require_room(sources, draft.folder)
        shards = _write_shards(build, draft.folder)
        shards.drop_repeated_pages()
        sums = shards.finish()
        report = BuildReport(
            build.corpus.name,
            sums["left_out"],
            read_bad_pages(draft.folder),
            build.artifact(self.name).folder / BAD,
            before=build.built_files,
            after=read_file_records(draft.folder),
        )
        if not sums["passages"]:
            reasons = "; ".join(dict.fromkeys(source.explain_empty(report) for source in sources))
            raise MissingInput(
                f"corpus {build.corpus.name}: its sources hold no passage; {reasons}"
            )
        if write_id_index(draft.folder) != sums["passages"]:
            raise DamagedArtifact(
                f"the shards in {draft.folder} changed while they were indexed; build them again"
            )
        facts = {
            path: file_facts for source in sources for path, file_facts in source.facts().items()
        }
        draft.record |= {**sums, "sources": facts}
        if language := _detected_language(build, draft.folder, sums["passages"]):
            draft.record["language"] = language
        draft.inputs = _inputs(sources, _known_after(build, report.after) | facts)
        return _summary(sums, shards.reused, report, sources)

    def inputs_again(self, build: CorpusBuild, draft: Path) -> dict[str, object]:
        """Documents, which were compared with their hashes as they were read, stay as listed."""
        known = _known_after(build, read_file_records(draft))
        build.refresh(keeps_documents=True)
        return _inputs(build.sources, known)


PASSAGES = Passages(corpus_build.PASSAGES)


def open_store(build: CorpusBuild) -> PassageStore:
    """A corpus's passages; IfqaError if they are not built, damaged, or older than its file."""
    build.finished(PASSAGES)
    return PassageStore(build.folder / PASSAGES.name)


def _inputs(sources: Iterable[Source], known: KnownFiles) -> dict[str, object]:
    """`known` is that of `Source.identity`."""
    identities = [source.identity(known) for source in sources]
    return {"stage": "passages", "version": work_units.VERSION, "sources": identities}


def _known_after(build: CorpusBuild, after: FileRecords) -> dict[str, Sequence[int | str]]:
    """The facts of the files before and after a build."""
    return build.known | {key: file.facts for key, file in after.items()}


def _write_shards(build: CorpusBuild, folder: Path) -> CorpusWriter:
    """Write the shards that an interrupted build has not finished."""
    corpus = build.corpus
    shards = CorpusWriter(folder)
    # A damaged shard's passages cannot be taken over
    earlier = {} if build.artifact(PASSAGES.name).damage else build.built_files
    size = total_size(build.sources)
    with bar(f"passages of {corpus.name}", size, unit="bytes") as advance:
        todo = shards.unfinished(_units(build.sources, earlier), advance)
        for unit, shard in map_tasks(
            make_shard, todo, workers=corpus.workers, engine=corpus.engine
        ):
            shards.add(unit.number, shard)
            advance(unit.read)
    return shards


def _units(sources: Sequence[Source], earlier: FileRecords) -> Iterator[tuple[int, WorkUnit]]:
    """The units of all sources, each with the number of its source."""
    for number, source in enumerate(sources):
        for unit in source.work_units(earlier):
            yield number, unit


def _detected_language(build: CorpusBuild, folder: Path, count: int) -> str | None:
    """The language of most of a user's own documents, from a sample of them.

    None for English, for other sources, and if the corpus's file names a language. `count` passages
    are in `folder`.
    """
    if build.corpus.language or not user_folders(build.corpus.sources):
        return None
    files = [record for record in read_file_records(folder).values() if record.passages]
    if sum(record.passages for record in files) < count:  # others come from no file of the user's
        step = -(-count // LANGUAGE_SAMPLE)
        passages = islice(PassageStore(folder), 0, None, step)
        return majority_language([passage.text] for passage in passages)
    step = -(-len(files) // LANGUAGE_SAMPLE)
    return majority_language(map(_sample_passages, files[::step]))


def _sample_passages(record: FileRecord) -> list[str]:
    """The texts of a few passages of a document, evenly spread."""
    lines = read_lines(record).splitlines(keepends=True)
    step = -(-len(lines) // FILE_SAMPLE)
    return [parse_passage(line, str(record.shard)).text for line in lines[::step]]


def _summary(
    sums: Mapping[str, Any], reused: int, report: BuildReport, sources: Sequence[Source]
) -> list[str]:
    """What a build did, in lines; `reused` are the blocks of an interrupted one."""
    # Passages that came split already are of no page
    pages = f" of {pluralize(sums['pages'], sources[0].unit)}" if sums["pages"] else ""
    shards = pluralize(sums["shards"], "shard")
    folder = report.listed.parent
    lines = [f"{folder}: {pluralize(sums['passages'], 'passage')}{pages} in {shards}"]
    if reused:
        lines.append(f"{pluralize(reused, 'block')} had been finished by an earlier build")
    return lines + list(
        dict.fromkeys(line for source in sources for line in source.summary(report))
    )
