"""The benchmark of other programs: turns, ratios, and runs of which the rankings are compared."""

from functools import partial

import peers as benchmark
import pytest
from peers import Cost, Way

from ifqa.formats.runs import write_run
from ifqa.records import Hit, Question

pytestmark = pytest.mark.slow


def test_every_other_round_the_order_is_reversed():
    ran = list[str]()
    ways = {name: Way(partial(ran.append, name)) for name in ("ours", "theirs")}
    benchmark.take_turns(ways, 3, lambda: 0.0)
    assert ran == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_what_prepares_a_round_is_not_timed():
    seconds = [0.0]

    def spend(count):
        seconds[0] += count

    way = Way(lambda: spend(1), prepare=lambda: spend(10))
    costs = benchmark.take_turns({"ours": way}, 2, lambda: seconds[0])
    assert [cost.cpu for cost in costs["ours"]] == [1, 1]


def test_a_peer_that_takes_longer_is_so_many_times_slower():
    ours = [Cost(1, 2), Cost(1, 2), Cost(1, 2)]
    theirs = [Cost(3, 4), Cost(4, 6), Cost(5, 10)]
    row = benchmark.table_row("search", "a peer", ours, theirs, "no difference")
    assert row == (
        "| search | a peer | 2.0 | 6.0 | 3.00 (2.00 to 5.00) | 4.00 (3.00 to 5.00) "
        "| no difference |"
    )


def test_questions_with_the_same_first_passages_are_counted(tmp_path):
    questions = [Question("a", "If so?", (), ("some gold text here now",)), Question("b", "If?")]
    ours = tmp_path / "experiments/peers/retrieve/run.trec"
    ours.parent.mkdir(parents=True)
    hits = [Hit("p", 2.0), Hit("q", 1.0)]
    write_run(ours, {"file/0-1f2e": hits, "file/1-3d4c": hits}, "ours")
    theirs = tmp_path / "theirs.trec"
    write_run(theirs, {"0": hits, "1": [Hit("p", 2.0), Hit("r", 0.5)]}, "theirs")
    passages = {"p": "something else", "q": "some gold text here now", "r": "nothing"}
    assert benchmark.compare_runs(tmp_path, theirs, passages, questions) == (
        "same of 2: first 1 2, first 5 1, first 20 1, first 100 1, scores 1; "
        "gold recall @1 / @5 / @20 0.0 / 50.0 / 50.0 and 0.0 / 50.0 / 50.0"
    )


def test_a_peer_that_is_missing_is_left_out_with_a_way_to_install_it(capsys):
    assert benchmark.installed("no-such-package", "pip install no-such-package") == ""
    assert capsys.readouterr().err == (
        "no-such-package is not installed and is left out; pip install no-such-package\n"
    )
