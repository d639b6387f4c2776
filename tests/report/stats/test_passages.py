"""Statistics of a corpus of known passages, against plain counting."""

import json
import random
from dataclasses import replace
from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.config.corpus import CorpusConfig
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import CorpusBuild
from ifqa.records import Question
from ifqa.report.stats import show_tables
from ifqa.report.stats.passages import compute_coverage, measure, stats_json, tables
from ifqa.scoring.gold_overlap import COVERED_SHARE, GoldGrams, covers
from ifqa.storage import artifacts
from ifqa.storage.files import write_jsonl


@pytest.fixture
def corpus(tmp_path):
    """Nine articles of 30 to 270 random words out of 5,000, in passages of 100 words."""
    draws = random.Random(0)
    drawn = {n: " ".join(f"w{draws.randrange(5_000)}" for _ in range(30 * n)) for n in range(1, 10)}
    write_jsonl(
        tmp_path / "articles.jsonl", [{"id": f"{n}", "title": f"T{n}", "text": text} for n, text in drawn.items()]
    )
    built = CorpusConfig("little", ({"format": "articles", "path": "articles.jsonl", "wrap": False},), {})
    stages.build_passages(built)
    return built


def texts(corpus):
    lines = (corpus.folder / "passages" / "passages-00000.jsonl").read_text().splitlines()
    return {record["id"]: record["contents"] for record in map(json.loads, lines)}


@pytest.fixture
def questions(corpus):
    """Questions whose gold passages are in the corpus as a whole, by half, by little, and not at all."""
    whole, other = texts(corpus)["9-0"], texts(corpus)["9-1"]
    half, little, nothing = (
        " ".join([*other.split()[:kept], *(f"{letter}{n}" for n in range(100 - kept))])
        for kept, letter in ((50, "x"), (20, "y"), (0, "z"))
    )
    golds = {"train": [(whole, nothing), (half,)], "dev": [(little,), ()]}
    return {
        split: [Question(f"{split}/{n}", "If?", ("a",), gold) for n, gold in enumerate(golds[split])] for split in golds
    }


def test_the_counts_are_those_of_the_passages(corpus):
    stats, lengths = measure(corpus, {}, workers=1), [len(text.split()) for text in texts(corpus).values()]
    assert list(stats.counts.values()) == [1, len(lengths), 0, sum(lengths)]
    summary = {"mean": mean(lengths), "median": median(lengths), "least": min(lengths), "most": max(lengths)}
    histogram = {size: lengths.count(size) for size in sorted(set(lengths))}
    assert stats_json(stats)["words_a_passage"] == summary | {"histogram": histogram}


def test_the_coverage_is_what_covers_says_pair_by_pair(corpus, questions):
    stats = measure(corpus, questions, workers=1)
    for split, coverage in stats.coverage.items():
        golds = {gold for question in questions[split] for gold in question.gold_passages}
        covered = [any(covers(text, gold) for text in texts(corpus).values()) for gold in golds]
        assert (coverage.golds, coverage.percent["covered"]) == (
            len(golds),
            pytest.approx(100 * sum(covered) / len(golds)),
        )
    train, dev = stats.coverage["train"], stats.coverage["dev"]
    assert train.percent["mean_best"] == pytest.approx(100 * (1 + 46 / 96) / 3)
    assert dev.percent["mean_best"] == pytest.approx(100 * 16 / 96)
    assert (train.questions, train.percent["questions_any"], train.percent["questions_all"]) == (2, 100.0, 50.0)
    assert dev.questions == 1
    assert stats.coverage_with_gold == stats.coverage


def test_gold_passages_in_the_corpus_count_apart(capsys):
    from ifqa.benchmarks.ifqa import Sample

    built = CorpusConfig("golden", ({"format": "gold", "benchmark": "sample", "splits": ["dev"]},), {})
    stages.build_passages(built)
    stats = measure(built, {"dev": Sample().questions("dev")}, workers=1)
    assert stats.gold == stats.counts["passages"]
    assert stats.coverage["dev"].percent["covered"] == 0
    assert stats.coverage_with_gold["dev"].percent["covered"] == 100
    show_tables(tables("golden", stats))
    assert "with gold" in capsys.readouterr().out


def test_shards_are_put_together(corpus, questions, monkeypatch):
    folder = corpus.folder / "passages"
    whole = measure(corpus, questions, workers=1)
    lines = (folder / "passages-00000.jsonl").read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        (folder / f"passages-{number:05d}.jsonl").write_bytes(line)
    (folder / "manifest.json").unlink()  # which lists a single shard
    monkeypatch.setattr(CorpusBuild, "passages", {"record": {"passages": len(lines)}})
    assert measure(corpus, questions, workers=1) == replace(whole, shards=len(lines))


def test_passages_that_are_not_what_the_manifest_says_are_refused(corpus, monkeypatch):
    monkeypatch.setattr(artifacts, "_SMALL", 0)  # as of a corpus that is too large to be hashed
    path = corpus.folder / "passages" / "passages-00000.jsonl"
    first, second, rest = path.read_bytes().split(b"\n", 2)
    for line, printed in (
        (b"[" + second[1:], "passages-00000.jsonl:2: not JSON"),
        (b" " * len(second), "the manifest says"),
    ):
        path.write_bytes(first + b"\n" + line + b"\n" + rest)  # the size stays, so the folder looks whole
        with pytest.raises(IfqaError, match=printed):
            measure(corpus, {}, workers=1)
    with pytest.raises(IfqaError, match="ifqa passages absent"):
        measure(CorpusConfig("absent", (), {}), {})


def test_the_tables_fit_80_columns_and_show_the_numbers(corpus, questions, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stats = measure(corpus, questions | {"bare": [Question("q/0", "If?", ("a",))]}, workers=1)
    show_tables(tables("little", stats))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines]
    assert ["passages", f"{stats.counts['passages']}"] in rows
    assert ["words", f"{stats.counts['words']:,}"] in rows
    assert ["train", "3", "66.7", "49.3", "2", "100.0", "50.0"] in rows
    assert ["bare", "0", "-", "-", "0", "-", "-"] in rows
    assert not any("with gold" in line for line in lines)
    assert json.loads(json.dumps(stats_json(stats)))["coverage"]["bare"]["percent"]["covered"] is None


# Few words, so that texts share runs of them; marks, entities and blanks that are no words.
WORDS = st.sampled_from("a b c d A, (b) c. &amp; A&amp;M – ...".split())
TEXTS = st.one_of(st.lists(WORDS, max_size=4), st.lists(WORDS, min_size=5, max_size=30)).map(" ".join)


@given(golds=st.lists(TEXTS, max_size=6), passage=TEXTS)
def test_gold_grams_agree_with_covers(golds, passage):
    shares = GoldGrams(golds).shares(passage)
    assert [shares.get(n, 0.0) >= COVERED_SHARE for n in range(len(golds))] == [covers(passage, g) for g in golds]


def test_questions_are_counted_by_any_and_by_all_golds_covered():
    golds = [("A", "B"), ("B", "C"), ("C",), ()]
    questions = [Question(f"t/dev/{number}", "If?", ("yes",), gold) for number, gold in enumerate(golds)]
    coverage = compute_coverage(questions, {"A": 1.0, "B": 0.4, "C": 0.39})
    assert (coverage.golds, coverage.questions) == (3, 3)
    shares = {"covered": 200 / 3, "mean_best": 179 / 3, "questions_any": 200 / 3, "questions_all": 100 / 3}
    assert coverage.percent == pytest.approx(shares, abs=0.001)
    assert set(compute_coverage([], {}).percent.values()) == {None}
