"""Building passages: every build gives the same bytes, also after stops, with any number of workers."""

import bz2
import json
import shutil
from pathlib import Path

import pytest
from dumps import HEAD, TAIL, multistream, page

from ifqa.config.corpus import load_corpus
from ifqa.corpus import sources
from ifqa.corpus.sources import estimate, open_sources
from ifqa.corpus.store import PassageStore
from ifqa.corpus.wikipedia import source
from ifqa.corpus.work_units import make_shard
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.storage.artifacts import read_manifest

PAGES = [page(n, f"Page {n}", " ".join(f"w{n}x{i}" for i in range(n * 37 % 400))) for n in range(1, 120)]


@pytest.fixture(autouse=True)
def small_blocks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(source, "PACKED", 4000)
    monkeypatch.setattr(source, "TEXT", 20_000)
    Path("indexes").mkdir()


def corpus(name="c", path="d.xml.bz2", **settings):
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    Path(f"indexes/{name}.toml").write_text(
        "\n".join(["[[passages.sources]]", 'format = "dump"', f"path = {json.dumps(path)}", *lines])
    )
    return load_corpus(name, workers=1)  # in this process: to start others takes longer than the work


def content(folder):
    manifest = json.dumps(json.loads((folder / "manifest.json").read_text())["inputs"])
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"} | {
        "inputs": manifest
    }


def build(**settings):
    folder = stages.build_passages(corpus(**settings))
    return content(folder)


def test_the_bytes_do_not_depend_on_the_number_of_workers():
    multistream(Path("d.xml.bz2"), PAGES, 5)
    local = build()  # with one worker
    assert len([name for name in local if name.startswith("passages-")]) > 3
    shutil.rmtree("indexes/c")
    assert content(stages.build_passages(load_corpus("c", workers=3))) == local


def test_one_stream_and_many_hold_the_same_passages():
    multistream(Path("d.xml.bz2"), PAGES, 5)
    Path("e.xml").write_text(HEAD + "".join(PAGES) + TAIL)
    passages = [list(PassageStore(stages.build_passages(corpus(path[0], path)))) for path in ("d.xml.bz2", "e.xml")]
    assert passages[0] == passages[1]


def test_a_stopped_build_resumes_with_the_unfinished_blocks(monkeypatch, capsys):
    multistream(Path("d.xml.bz2"), PAGES, 5)
    undisturbed = build(name="u")
    finished = []

    def make_three(block):
        if len(finished) == 3:
            raise KeyboardInterrupt
        finished.append(block.number)
        return make_shard(block)

    monkeypatch.setattr(stages, "make_shard", make_three)
    with pytest.raises(KeyboardInterrupt):
        corpus()
        stages.build_passages(load_corpus("c", workers=1))
    monkeypatch.setattr(stages, "make_shard", make_shard)
    assert build() == undisturbed
    assert "3 blocks had been finished by an earlier build" in capsys.readouterr().err


def test_a_build_from_a_cut_dump_resumes_when_the_dump_is_whole(capsys):
    multistream(Path("d.xml.bz2"), PAGES, 5)
    undisturbed, data = build(name="u"), Path("d.xml.bz2").read_bytes()
    Path("d.xml.bz2").write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(IfqaError, match="fetch the file again"):
        build()
    assert not Path("indexes/c/passages").exists()
    Path("d.xml.bz2").write_bytes(data)
    capsys.readouterr()
    assert build() == undisturbed
    assert " blocks had been finished by an earlier build" in capsys.readouterr().err


def test_shards_of_another_number_of_words_are_not_reused(monkeypatch, capsys):
    Path("e.xml").write_text(HEAD + "".join(PAGES) + TAIL)
    undisturbed = build(name="u", path="e.xml", words=50)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stages, "write_id_index", interrupt)
        build(path="e.xml", words=10)
    capsys.readouterr()
    assert build(path="e.xml", words=50) == undisturbed
    assert "finished by an earlier build" not in capsys.readouterr().err


def test_a_shard_that_changed_after_the_build_stopped_is_made_again(monkeypatch, capsys):
    multistream(Path("d.xml.bz2"), PAGES, 5)
    undisturbed = build(name="u")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stages, "write_id_index", interrupt)
        build()
    shard = Path("indexes/c/.passages.partial/passages-00001.jsonl")
    changed = shard.read_bytes().replace(b"x1 ", b"x9 ")
    assert changed != shard.read_bytes()
    shard.write_bytes(changed)
    blocks_made = len(undisturbed["blocks.jsonl"].splitlines())
    capsys.readouterr()
    assert build() == undisturbed
    assert f"{blocks_made - 1} blocks had been finished by an earlier build" in capsys.readouterr().err


def interrupt(folder):
    raise KeyboardInterrupt


def test_shards_of_removed_blocks_are_deleted(monkeypatch):
    Path("e.xml").write_text(HEAD + "".join(PAGES) + TAIL)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stages, "write_id_index", interrupt)
        build(path="e.xml")
    Path("e.xml").write_text(HEAD + "".join(PAGES[:20]) + TAIL)
    assert build(path="e.xml") == build(name="u", path="e.xml")


def test_only_the_block_of_a_changed_article_is_made_again(monkeypatch, capsys):
    def write(first):
        rows = [{"id": str(n), "title": "T", "text": f"{first if n == 0 else 'w'} " * 500} for n in range(100)]
        Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    Path("indexes/a.toml").write_text('[[passages.sources]]\nformat = "articles"\npath = "a.jsonl"\n')
    write("old")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stages, "write_id_index", interrupt)
        stages.build_passages(load_corpus("a", workers=1))
    write("new")
    capsys.readouterr()
    folder = stages.build_passages(load_corpus("a", workers=1))
    assert "5 blocks had been finished" in capsys.readouterr().err
    assert PassageStore(folder).get(["0-0"])[0].text.startswith("new new")


def test_bad_pages_are_listed_and_counted(capsys):
    nameless = "<page><ns>0</ns><id>8</id></page>"
    Path("e.xml").write_text(HEAD + PAGES[0] + nameless + TAIL)
    folder = stages.build_passages(corpus(path="e.xml"))
    listed = [json.loads(line) for line in (folder / "bad_pages.jsonl").read_text().splitlines()]
    assert [(bad["id"], bad["title"]) for bad in listed] == [("8", "page 2")]
    assert "1 bad page: indexes/c/passages/bad_pages.jsonl" in capsys.readouterr().err
    record = read_manifest(folder)["record"]
    assert (record["pages"], record["bad"], record["left_out"]) == (1, 1, {"bad": 1})


def test_parts_of_a_dump_are_read_in_the_order_of_their_numbers():
    for part, name in enumerate(["x1.xml-p1p9", "x2.xml-p10p19", "x10.xml-p20p119"]):
        Path("parts").mkdir(exist_ok=True)
        Path(f"parts/{name}.bz2").write_bytes(bz2.compress((HEAD + PAGES[part] + TAIL).encode()))
    Path("parts/x-index.txt.bz2").write_bytes(b"not a dump")
    for name in ("parts", "parts/x*.xml-p*.bz2"):
        titles = [passage.title for passage in PassageStore(stages.build_passages(corpus("p", name)))]
        assert list(dict.fromkeys(titles)) == ["Page 1", "Page 2", "Page 3"]


def test_a_build_that_cannot_fit_is_refused_before_it_begins(monkeypatch):
    multistream(Path("d.xml.bz2"), PAGES, 5)
    monkeypatch.setattr(sources.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**12, 1000))
    with pytest.raises(IfqaError, match=r"has room for 1.0 kB, the passages will take about .* [kM]B; .*larger disk"):
        build()


def test_a_forecast_is_near_the_built_numbers():
    multistream(Path("d.xml.bz2"), PAGES, 5)
    loaded = corpus()
    expected = estimate(open_sources(loaded.sources))
    record = read_manifest(stages.build_passages(loaded))["record"]
    assert expected.passages == pytest.approx(record["passages"], rel=0.3)
    assert 0 < expected.seen < 1


@pytest.mark.parametrize("each", [119, 60, 40])
def test_a_dump_of_few_streams_is_forecast_too(each):
    multistream(Path("d.xml.bz2"), PAGES, each)
    loaded = corpus()
    record = read_manifest(stages.build_passages(loaded))["record"]
    assert estimate(open_sources(loaded.sources)).passages == pytest.approx(record["passages"], rel=0.5)


def test_a_build_with_a_missing_shard_is_not_finished(monkeypatch):
    multistream(Path("d.xml.bz2"), PAGES, 5)
    undisturbed = build(name="u")

    def thief(block):
        for path in Path("indexes/c/.passages.partial").glob("passages-*.jsonl"):
            path.unlink()
        return make_shard(block)

    corpus()
    with monkeypatch.context() as patch, pytest.raises(IfqaError, match="is missing or changed"):
        patch.setattr(stages, "make_shard", thief)
        stages.build_passages(load_corpus("c", workers=1))
    assert not Path("indexes/c/passages").exists()
    assert build() == undisturbed


@pytest.mark.parametrize("line", [b"{}", b'{"block": 0}', b'{"block": [0]}', b"\xff", b"[]"])
def test_a_damaged_log_costs_only_its_blocks(line):
    multistream(Path("d.xml.bz2"), PAGES, 5)
    undisturbed = build(name="u")
    partial = Path("indexes/c/.passages.partial")
    partial.mkdir(parents=True)
    (partial / "blocks.jsonl").write_bytes(line + b"\n" + undisturbed["blocks.jsonl"])
    (partial / "notes.txt").write_text("not ours")
    assert build() == undisturbed


def test_a_folder_in_an_unfinished_build_is_refused_before_any_work(monkeypatch):
    multistream(Path("d.xml.bz2"), PAGES, 5)
    Path("indexes/c/.passages.partial/mine").mkdir(parents=True)
    monkeypatch.setattr(stages, "make_shard", None)
    with pytest.raises(IfqaError, match=r"\.passages\.partial/mine is a folder; .*move it away"):
        build()
    assert Path("indexes/c/.passages.partial/mine").is_dir()


def test_a_link_in_the_place_of_the_passages_is_refused():
    multistream(Path("d.xml.bz2"), PAGES, 5)
    Path("elsewhere").mkdir()
    Path("indexes/c").mkdir()
    Path("indexes/c/passages").symlink_to(Path("elsewhere").resolve())
    with pytest.raises(IfqaError, match="is a link"):
        build()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"format": "dump", "path": "no*.xml"}, "no\\*.xml holds no dump"),
        (
            {"format": "dump", "path": "d.xml", "profile": "best"},
            "setting of a 'dump' source 'profile': unknown value 'best'",
        ),
        ({"format": "passages", "path": "no.tsv"}, "no.tsv is not in"),
        ({"format": "dump", "path": "d.xml", "pipe": 1}, "'pipe'"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused_first(table, message):
    Path("d.xml").write_text(HEAD + TAIL)
    with pytest.raises(IfqaError, match=message):
        open_sources([table])
