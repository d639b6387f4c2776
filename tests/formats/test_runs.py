"""TREC runs, written and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.formats import runs
from ifqa.records import Hit

IDS = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=12)
SCORES = st.floats(allow_nan=False, allow_infinity=False)


@given(st.dictionaries(IDS, st.dictionaries(IDS, SCORES, min_size=1, max_size=5), max_size=4))
def test_a_written_run_is_read_back(tmp_path_factory, run):
    rankings = {
        name: sorted((Hit(*hit) for hit in hits.items()), key=lambda hit: -hit.score)
        for name, hits in run.items()
    }
    path = tmp_path_factory.mktemp("run") / "run.trec"
    runs.write_run(path, rankings, "tag")
    assert runs.read_run(path) == dict(runs.iter_rankings(path)) == rankings


def test_trec_eval_reads_our_runs(tmp_path):
    import ir_measures

    runs.write_run(
        tmp_path / "run.trec", {"q": [Hit("a", 3.0), Hit("b", 2.0), Hit("c", 1.0)]}, "tag"
    )
    run = list(ir_measures.read_trec_run(str(tmp_path / "run.trec")))
    qrels = [ir_measures.Qrel("q", "b", 1)]
    assert ir_measures.calc_aggregate([ir_measures.RR], qrels, run)[ir_measures.RR] == 0.5


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("q Q0 p 1 2.5", "run.trec:2: wanted 6 fields"),
        ("q Q0 p 2 high tag", "run.trec:2: score 'high' is not a number"),
        ("q Q0 first 2 1.0 tag", "run.trec:2: passage first appears twice"),
    ],
)
def test_an_invalid_line_of_a_run_is_named(tmp_path, line, complaint):
    path = tmp_path / "run.trec"
    path.write_text(f"q Q0 first 1 3.0 tag\n{line}\n")
    for read in (runs.read_run, lambda path: list(runs.iter_rankings(path))):
        with pytest.raises(IfqaError, match=complaint):
            read(path)


def test_a_rising_score_and_a_duplicate_passage_are_refused(tmp_path):
    rising = [Hit("a", 1.0), Hit("b", 2.5)]
    duplicate = [Hit("a", 3.0), Hit("b", 2.0), Hit("a", 1.0)]
    with pytest.raises(
        IfqaError, match=r"ranking of q: the score rises from 1\.0 to 2\.5 at rank 2"
    ):
        runs.write_run(tmp_path / "run.trec", {"q": rising}, "tag")
    with pytest.raises(IfqaError, match="ranking of q: passage a appears 2 times"):
        runs.write_run(tmp_path / "run.trec", {"q": duplicate}, "tag")
    assert not (tmp_path / "run.trec").exists()
