"""A corpus packed on one machine is ready on another, and damaged or foreign archives are refused."""

import io
import json
import shutil
import tarfile
from pathlib import Path

import outside_plugins as toy
import pytest
from refusals import refused

from ifqa.config.corpus import load_corpus
from ifqa.corpus.passage_store import PassageStore
from ifqa.pipeline import stages
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.export import export_corpus, import_corpus
from ifqa.pipeline.index import Index
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.run import Run

pytestmark = pytest.mark.usefixtures("five")

ARCHIVE = Path("few.tar")


def build_few():
    few = load_corpus("few")
    stages.build_passages(few)
    stages.build_index(few, "words")
    return few


@pytest.fixture
def archive():
    """An archive of a corpus whose sources and folder are not here any more."""
    export_corpus(build_few(), ["words"], ARCHIVE)
    shutil.rmtree("indexes")
    Path("few.jsonl").unlink()
    return ARCHIVE


def repack(archive, change):
    """Rewrite an archive; `change` maps a member's name and content to those to write."""
    with tarfile.open(archive) as tar:
        opened = [(member.name, tar.extractfile(member)) for member in tar]
        members = [(name, handle.read()) for name, handle in opened if handle]
    with tarfile.open(archive, "w") as tar:
        for name, content in members:
            new_name, new_content = change(name, content)
            member = tarfile.TarInfo(new_name)
            member.size = len(new_content)
            tar.addfile(member, io.BytesIO(new_content))


def test_an_unpacked_corpus_is_current(archive):
    import_corpus(archive, "mine")
    build = CorpusBuild(load_corpus("mine"))
    assert [build.is_current(stage) for stage in (PASSAGES, Index("words"))] == [True, True]


def test_an_unpacked_corpus_has_the_passages(archive):
    folder = import_corpus(archive, "mine")
    texts = [passage.text for passage in PassageStore(folder / "passages")]
    assert texts == [f"team{n} is led by captain{n}" for n in range(5)]


def test_an_unpacked_corpus_is_searched_like_the_original():
    settings = {"retriever": toy.WORDS, "reader": toy.LAST}
    stages.run(Run(toy.experiment(corpus="few", **settings)))
    ranking = Path("experiments/mine/retrieve/run.trec").read_bytes()
    export_corpus(load_corpus("few"), ["words"], ARCHIVE)
    import_corpus(ARCHIVE, "copy")
    stages.run(Run(toy.experiment("other", corpus="copy", **settings)))
    assert Path("experiments/other/retrieve/run.trec").read_bytes() == ranking


def test_the_archive_says_nothing_of_where_the_sources_were(archive):
    assert b"few.jsonl" not in archive.read_bytes()


def test_the_same_corpus_gives_the_same_archive():
    few = build_few()
    archives = [export_corpus(few, ["words"], Path(f"{n}.tar")).read_bytes() for n in range(2)]
    assert archives[0] == archives[1]


def test_an_index_that_is_not_built_is_named():
    few = load_corpus("few")
    stages.build_passages(few)
    with refused("words is not there yet; make it with: ifqa index few"):
        export_corpus(few, ["words"], ARCHIVE)
    assert not ARCHIVE.exists()


def test_a_file_that_exists_is_not_overwritten():
    few = build_few()
    ARCHIVE.write_text("mine")
    with refused("--export: few.tar exists"):
        export_corpus(few, ["words"], ARCHIVE)
    assert ARCHIVE.read_text() == "mine"


def test_own_documents_are_not_packed():
    Path("docs").mkdir()
    Path("docs/a.txt").write_text("A text.")
    toy.corpus(sources=(("documents", "docs"),))
    with refused("hand over the folder itself"):
        export_corpus(load_corpus("few"), ["words"], ARCHIVE)


def test_a_corpus_that_exists_is_not_overwritten(archive):
    import_corpus(archive, "mine")
    with refused("--from: indexes/mine.toml exists"):
        import_corpus(archive, "mine")


def test_a_changed_file_is_refused(archive):
    def change(name, content):
        return name, content.replace(b"led", b"fed") if name.endswith("00000.jsonl") else content

    repack(archive, change)
    with refused("few.tar is damaged: passages"):
        import_corpus(archive, "mine")
    assert not Path("indexes/mine").exists()
    assert not Path("indexes/mine.toml").exists()


def test_a_file_that_no_manifest_lists_is_refused(archive):
    def rename(name, content):
        return ("words/more", content) if name == "words/manifest.json" else (name, content)

    repack(archive, rename)
    with refused("few.tar is damaged: words"):
        import_corpus(archive, "mine")


@pytest.mark.parametrize("name", ["../outside", "/outside", "words/../../outside"])
def test_a_path_outside_of_the_corpus_is_refused(archive, name):
    repack(archive, lambda old, content: (name if old == "corpus.toml" else old, content))
    with refused("outside of the archive"):
        import_corpus(archive, "mine")


def test_a_cut_archive_is_refused(archive):
    archive.write_bytes(archive.read_bytes()[:3000])
    with refused("few.tar"):
        import_corpus(archive, "mine")
    assert not Path("indexes/mine").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[passages.sources]]\nformat = "documents"\npath = "/etc"\n', "wanted 'exported' alone"),
        ("not TOML", "not TOML"),
        ('[[passages.sources]]\nformat = "exported"\nbuilt_from = "x"\n', "has passages, words"),
    ],
    ids=["another source", "not TOML", "an index too many"],
)
def test_a_corpus_file_of_something_else_is_refused(archive, text, complaint):
    repack(archive, lambda name, old: (name, text.encode() if name == "corpus.toml" else old))
    with refused(complaint):
        import_corpus(archive, "mine")
    assert [path.name for path in Path("indexes").iterdir()] == [".lock"]


@pytest.mark.parametrize("name", [".", "passages", "words/" + 300 * "x"])
def test_a_name_that_no_file_can_have_is_refused(archive, name):
    repack(archive, lambda old, content: (name if old == "words/manifest.json" else old, content))
    with refused("few.tar"):
        import_corpus(archive, "mine")


def test_passages_of_another_version_are_refused(archive):
    def change(name, content):
        if name != "passages/manifest.json":
            return name, content
        return name, content.replace(b'"version": 3', b'"version": 4')

    repack(archive, change)
    with refused("passages of another version of ifqa"):
        import_corpus(archive, "mine")


def test_another_file_is_refused():
    Path("other.tar").write_text("not an archive")
    with refused("other.tar is not an archive"):
        import_corpus(Path("other.tar"), "mine")


def test_passages_that_were_removed_are_not_built_from_nothing(archive):
    folder = import_corpus(archive, "mine")
    shutil.rmtree(folder / "passages")
    with refused("these passages came in an archive"):
        stages.build_passages(load_corpus("mine"))


def test_an_index_of_another_version_is_built_from_the_unpacked_passages(archive):
    import_corpus(archive, "mine")
    manifest = Path("indexes/mine/words/manifest.json")
    content = json.loads(manifest.read_text())
    content["inputs"]["code"] = "another"
    manifest.write_text(json.dumps(content))
    mine = load_corpus("mine")
    assert not CorpusBuild(mine).is_current(Index("words"))
    stages.build_index(mine, "words")
    assert CorpusBuild(mine).is_current(Index("words"))
