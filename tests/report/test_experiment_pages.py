"""The page of each experiment: its content, its exported files, and texts from outside, which stay text."""

import gzip
import re
import shutil
from pathlib import Path

import pytest
from answered import run_answers, write_answers

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.corpus.store import PassageStore
from ifqa.errors import IfqaError
from ifqa.formats.runs import read_qrels, read_run
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.report.experiment_pages import export, exported, pages
from ifqa.report.publish import publish
from ifqa.report.results import Result, gather
from ifqa.report.results_log import read_records

FOLDER = Path("docs/results")
MEAN = {"value": 50.0, "low": 40.0, "high": 60.0}
MADE = {"at": "2026-11-21T08:00:00+00:00", "hardware": "2 cores", "python": "3.11.7", "commit": "abc", "passages": 1234,
        "seconds": {"retrieve": 3.0}, "run": "0" * 64, "libraries": {"numpy": "2.0"}, "inputs": {"dev.json": "f" * 64}}  # fmt: skip
TABLES = {"benchmark": "sample", "split": "dev", "corpus": "sample", "retriever": {"name": "bm25"}}
HOSTILE = "<script>x</script> [x](javascript:a) | ![x](http://a) \x1b[31m"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def scores(**more):
    whole = {"questions": 83, "n_failed": 2, "of": 83, "retry": 0, "not_asked": 0, "subsets": {}}
    return whole | {"measures": {"gold_any@1": MEAN, "gold_any@5": MEAN}} | more


def result(name="mine", scored=None, made=MADE, **tables):
    experiment = parse_experiment(name, TABLES | tables, name)
    return Result(experiment, scored, made) if scored else Result(experiment, needs=("the Wikipedia dump",))


def report(check=False):
    return list(publish(None, [], check, FOLDER))


def test_a_measured_experiment_has_scores_circumstances_and_files():
    numeric = {"questions": 20, "measures": {"gold_any@1": MEAN}}
    page = pages([result(scored=scores(subsets={"numeric": numeric}), about="Of mine.")])["mine.md"]
    assert page.startswith("# mine\n\nOf mine.\n\nVerdict: 2 failed.\n")
    assert "| measure | all (83) | numeric (20) |" in page
    assert "| gold_any@1 | 50.0 [40.0, 60.0] | 50.0 [40.0, 60.0] |" in page
    assert "| gold_any@5 | 50.0 [40.0, 60.0] |  |" in page
    assert "83 questions, 2 failed." in page
    assert "\nVerdict: measured; no expected value.\n" in pages([result(scored=scores(n_failed=0))])["mine.md"]
    for cell in (
        "2026-11-21",
        "2 cores",
        "3.11.7",
        "abc",
        "retrieve 3 s",
        "1,234",
        "numpy | 2.0",
        f"dev.json | `{'f' * 64}`",
    ):
        assert f"| {cell} |" in page
    assert "[runs/mine.trec.gz](runs/mine.trec.gz)" in page
    assert "ir_measures qrels/sample-dev-sample.qrels runs/mine.trec Success@1 Success@5 nDCG@10 RR@10\n" in page


def test_an_experiment_that_was_not_run_shows_its_needs_and_no_number():
    page = pages([result()])["mine.md"]
    assert "Verdict: not run: needs the Wikipedia dump." in page
    assert "It needs the Wikipedia dump.\n\n```sh\nifqa check mine\nifqa run mine\n```\n" in page
    assert [title for title in ("## Scores", "## How it was made", "## Files") if title in page] == []


def test_the_index_links_every_experiment_and_leaves_out_variants():
    several = pages([result("a", scores()), result("b"), result("a+k=5", scores())])
    assert set(several) == {"index.md", "a.md", "b.md"}
    assert "\n| [a](a.md) | " in several["index.md"]
    assert "\n| [b](b.md) | " in several["index.md"]
    assert "a+k=5" not in several["index.md"]


def test_a_page_shows_the_files_of_its_experiment_and_its_corpus():
    page = pages([Result(load_experiment("sample"))])["sample.md"]
    for name in ("experiments/sample.toml", "indexes/sample.toml"):
        start = page.index(f"`{name}`:\n\n```toml\n")
        assert 'about = "' in page[start : page.index("\n```\n", start)]


def test_an_experiment_called_index_is_refused():
    with pytest.raises(IfqaError, match=r"'index': its page would take the place of index\.md"):
        pages([result("index")])


def test_a_subset_called_all_does_not_hide_the_whole():
    small = {"questions": 3, "measures": {"gold_any@1": MEAN | {"value": 11.0}}}
    page = pages([result(scored=scores(subsets={"all": small}))])["mine.md"]
    assert "| measure | all (83) | all (3) |" in page
    assert "| gold_any@1 | 50.0 [40.0, 60.0] | 11.0 [40.0, 60.0] |" in page


def test_text_from_outside_stays_text():
    hostile = scores(subsets={HOSTILE: {"questions": 3, "measures": {"gold_any@1": MEAN}}})
    made = MADE | {"hardware": HOSTILE, "libraries": {HOSTILE: HOSTILE}, "label": HOSTILE, "inputs": {HOSTILE: HOSTILE}}
    expected = {"gold_any@1": {"value": 3, "source": HOSTILE, "retired": HOSTILE}}
    several = pages([result(scored=hostile, made=made, about=HOSTILE, expected=expected, table=HOSTILE)])
    for page in several.values():
        assert [bad for bad in ("<script", "](javascript", "](http", "\x1b") if bad in page] == []
        for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table


@pytest.mark.parametrize(
    ("about", "shown"),
    [
        ("# Scores", "\\# Scores"),
        ("```", "\\```"),
        ("- one", "\\- one"),
        ("12. May", "12\\. May"),
        ("> said", "\\> said"),
        ("!!! note", "\\!!! note"),
        ("1984 (Orwell)", "1984 (Orwell)"),
        ("Plain.", "Plain."),
    ],
)
def test_what_an_experiment_is_about_is_a_paragraph(about, shown):
    assert pages([result(about=about)])["mine.md"].splitlines()[2] == shown


def test_a_file_that_holds_a_fence_ends_none():
    Path("experiments").mkdir()
    text = 'benchmark = "sample"\nsplit = "dev"\nabout = """\n````\n# Forged\n"""\n[retriever]\nname = "gold"'
    Path("experiments/mine.toml").write_text(text)
    page = pages([Result(load_experiment("mine"))])["mine.md"]
    assert page.endswith(f"\n`````toml\n{text}\n`````\n")


@pytest.mark.parametrize("name", ["a=b", "a~1"])
def test_any_name_of_an_experiment_has_its_page(name):
    write_answers(name, range(20))
    assert f"`experiments/{name}.toml`:" in pages([Result(load_experiment(name))])[f"{name}.md"]


@pytest.fixture
def searched():
    """An experiment whose retriever is a file: every third gold passage of the sample for every question."""
    Path("indexes").mkdir()
    source = '[passages]\n[[passages.sources]]\nformat = "gold"\nbenchmark = "sample"\nsplits = ["dev"]\n'
    Path("indexes/gold.toml").write_text(source)
    write_answers("mine", range(20))
    experiment = load_experiment("mine")
    Path("experiments/searched.toml").write_text(
        'benchmark = "sample"\nsplit = "dev"\ncorpus = "gold"\n[retriever]\nname = "run"\npath = "other.trec"\n'
    )
    stages.build_passages(load_corpus("gold"))
    ids = [passage.id for passage in PassageStore(Path("indexes/gold/passages"))]
    lines = []
    for number, question in enumerate(Run(experiment).questions):
        found = dict.fromkeys(ids[(number + step) % len(ids)] for step in range(0, 12, 3))
        lines += [f"{question.id} Q0 {name} 1 {-rank} t\n" for rank, name in enumerate(found)]
    Path("other.trec").write_text("".join(lines))
    Path("experiments/mine.toml").unlink()
    stages.run(load_experiment("searched"))
    return load_experiment("searched")


def unpacked(path):
    plain = Path(path.name.removesuffix(".gz"))
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    return plain


def test_ir_measures_finds_our_gold_recall_in_the_exported_files(searched):
    import ir_measures
    from ir_measures import Success

    (found,) = [one for one in gather({}) if one.here]
    run, qrels = (FOLDER / path for path in exported(found))
    assert list(export([found], FOLDER)) == [run, qrels]
    measured = found.scores["measures"]
    theirs = (
        list(ir_measures.read_trec_qrels(str(unpacked(qrels)))),
        list(ir_measures.read_trec_run(str(unpacked(run)))),
    )
    for k in (1, 5):
        share = ir_measures.calc_aggregate([Success @ k], *theirs)[Success @ k]
        assert round(100 * share, 2) == measured[f"gold_any@{k}"]["value"]
    assert 0 < measured["gold_any@5"]["value"] < 100
    assert "Success@1 Success@5" in pages([found])["searched.md"]


def test_the_bytes_of_exports_depend_on_their_content_alone(searched):
    report()
    paths = [FOLDER / "runs/searched.trec.gz", FOLDER / "qrels/sample-dev-gold.qrels.gz"]
    before = [path.read_bytes() for path in paths]
    assert unpacked(paths[0]).read_bytes() == (searched.folder / "retrieve/run.trec").read_bytes()
    assert len(read_run(unpacked(paths[0]))) == len(read_qrels(unpacked(paths[1]))) == 83
    shutil.rmtree(FOLDER)
    shutil.copytree(Path(), "../elsewhere")
    report()
    assert [path.read_bytes() for path in paths] == before


def test_a_check_refuses_an_export_that_is_gone_damaged_or_of_other_content(searched):
    report()
    run, qrels = FOLDER / "runs/searched.trec.gz", FOLDER / "qrels/sample-dev-gold.qrels.gz"
    run.write_bytes(gzip.compress(gzip.decompress(run.read_bytes()), compresslevel=1))
    assert report(check=True) == [], "other packing of the same content"
    whole, judged = run.read_bytes(), gzip.decompress(qrels.read_bytes())
    broken = {
        "searched.trec.gz is damaged": (run, whole[:-9]),
        "searched.trec.gz is not the run that was scored": (run, gzip.compress(gzip.decompress(whole)[:-1])),
        "sample-dev-gold.qrels.gz has other judgements": (qrels, gzip.compress(judged[:-1])),
    }
    for complaint, (path, content) in broken.items():
        before = path.read_bytes()
        path.write_bytes(content)
        with pytest.raises(IfqaError, match=f"{complaint}.*; write it again: ifqa report --pages"):
            report(check=True)
        path.write_bytes(before)
    run.unlink()
    with pytest.raises(IfqaError, match=r"searched\.trec\.gz is not there"):
        report(check=True)


def test_an_export_of_a_recorded_experiment_is_checked_without_its_folder(searched):
    report()
    run, qrels = FOLDER / "runs/searched.trec.gz", FOLDER / "qrels/sample-dev-gold.qrels.gz"
    shutil.rmtree("experiments/searched")
    assert report(check=True) == []
    for path, complaint in (
        (qrels, r"\.gz holds no judgements"),
        (run, r"\.gz is not the run .*: ifqa run searched, "),
    ):
        whole = path.read_bytes()
        path.write_bytes(gzip.compress(b"one two\n"))
        with pytest.raises(IfqaError, match=complaint):
            report(check=True)
        path.write_bytes(whole)


def test_an_unpacked_file_beside_the_export_is_left_alone(searched):
    (FOLDER / "qrels").mkdir(parents=True)
    unpacked = FOLDER / "qrels/sample-dev-gold.qrels"
    unpacked.write_text("mine")
    report()
    assert unpacked.read_text() == "mine"


def test_a_run_of_other_passages_than_the_corpus_is_not_exported():
    assert exported(result(scored=scores()))
    assert exported(result(scored=scores(), made=MADE | {"own_passages": True})) is None
    assert exported(result(scored=scores(questions=8))) is None
    assert exported(result()) is None


def test_a_check_passes_written_pages_and_refuses_a_changed_page():
    run_answers("mine", range(20))
    with pytest.raises(IfqaError, match="is stale; write it again: ifqa report --pages docs/results"):
        report(check=True)
    assert not FOLDER.exists()
    assert {FOLDER / "mine.md", FOLDER / "index.md"} <= set(report())
    assert report(check=True) == []
    page = FOLDER / "mine.md"
    page.write_text(page.read_text() + "more\n")
    with pytest.raises(IfqaError, match=r"mine\.md is stale"):
        report(check=True)
    report()
    assert report(check=True) == []


def test_a_recorded_experiment_has_the_same_page_without_its_folder():
    run_answers("mine", range(20))
    report()
    before = (FOLDER / "mine.md").read_text()
    shutil.rmtree("experiments/mine")
    assert report(check=True) == []
    assert pages(gather(read_records()))["mine.md"] == before


@pytest.mark.parametrize("name", ["mine.md", "index.md"])
def test_somebody_elses_page_is_not_overwritten(name):
    run_answers("mine", range(20))
    FOLDER.mkdir(parents=True)
    (FOLDER / name).write_text("# mine\n\nOf mine alone.\n")
    with pytest.raises(IfqaError, match=rf"{name} was not written by ifqa report"):
        report()
    assert (FOLDER / name).read_text() == "# mine\n\nOf mine alone.\n"
    assert not Path("experiments/RESULTS.md").exists()
