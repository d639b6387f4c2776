"""Data for reading question by question: marked answers, passages and scores."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scored_experiments import benchmark, ctxs, scored, write

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.records import Calculation, Explanation, Quote, Term
from ifqa.report.question_browser import browser_data, highlight
from ifqa.storage.files import read_jsonl, write_jsonl

# Letters that fold, accents composed and combining, in both orders; characters that join or
# separate tokens.
CHARACTERS = st.sampled_from(
    [
        *"aAbB1.,'-$ \n",
        *"éΣσςİßÅ가",
        "e\u0301",
        "\u0301",
        "\u0323",
        "\u0344",
        "\u200b",
        "\x1f",
        "\xa0",
    ]
)
TEXTS = st.lists(CHARACTERS, max_size=14).map("".join)

HOUSE = "The mill at Brae was built by Ann Lee in 1850 and burnt down twice before the war ."
BARN = "A barn of oak stands beside the old road , and nobody knows who put it up there ."


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_pieces_join_to_the_text(text, answers):
    pieces = highlight(text, answers)
    assert (pieces if isinstance(pieces, str) else "".join(pieces)) == text


@pytest.mark.parametrize(
    ("text", "answers", "highlights"),
    [
        ("In 1998, she left. 1998 was cold; 19985 is not.", ["1998"], ["1998", "1998"]),
        ("the U.S. Navy", ["U.S."], ["U.S."]),
        ("New  York City", ["New", "New York"], ["New  York"]),
        ("aa a a", ["a a"], ["a a"]),
        ("nothing here", ["", "!"], []),
        ("", ["a"], []),
    ],
)
def test_answers_are_highlighted_as_whole_words(text, answers, highlights):
    pieces = highlight(text, answers)
    assert pieces[1::2] == highlights if highlights else pieces == text


@pytest.fixture
def three():
    """Two questions.

    A system that retrieves and reads, a system with the gold passages, and a system that reads
    nothing.
    """
    first, second = (
        "If Ann Lee had left, who would have built the mill?",
        "Suppose it burnt, when would that be?",
    )
    benchmark(
        {"question": first, "answers": ["Ann Lee", "Lee"], "context": [HOUSE]},
        {"question": second, "answers": ["1850"], "context": [HOUSE, BARN]},
    )
    retrieved = ctxs(
        "found.json",
        (first, [("7-1", "Roads", BARN), ("7-2", "Brae", HOUSE), ("7-3", "", "Nothing of use.")]),
        (second, [("7-3", "", "Nothing of use."), ("7-4", "", "More."), ("7-2", "Brae", HOUSE)]),
    )
    return [
        scored("finds", retrieved, {0: "Bob", 1: "in 1850"}, reader="passages = 2"),
        scored("gold", 'name = "gold"\nk = 5'),
        scored("closed", "", {0: "Ann Lee"}),
    ]


def splits_of(experiments):
    """The splits of the browser's data."""
    return browser_data(experiments)["splits"]


def test_a_split_has_its_experiments(three):
    (split,) = splits_of(three)
    assert split["name"] == "ifqa full-dev"
    told = [
        (reading["name"], reading["read"], reading["answers"], reading["deep"])
        for reading in split["experiments"]
    ]
    assert told == [("finds", 2, True, 5), ("gold", 5, False, 5), ("closed", 0, True, 0)]


def test_a_question_has_its_parts(three):
    (split,) = splits_of(three)
    first, second = split["questions"]
    assert first["id"] == "ifqa/full-dev/0"
    assert first["q"] == ["", "If Ann Lee had left", ", who would have built the mill?"]
    assert first["a"] == ["Ann Lee", "Lee"]
    assert first["n"] == [1]
    assert second["n"] == [0]
    assert first["g"] == [
        ["The mill at Brae was built by ", "Ann Lee", HOUSE.partition("Ann Lee")[2]]
    ]


def test_each_question_has_every_experiments_passages(three):
    first = splits_of(three)[0]["questions"][0]
    roads, brae, gold = first["p"]
    assert roads == {"i": "7-1", "t": "Roads", "x": BARN}
    assert brae["i"] == "7-2"
    assert brae["t"] == "Brae"
    assert brae["g"] == 1
    assert brae["x"] == first["g"][0]
    assert gold["i"].startswith("gold/")


def test_each_question_has_every_experiments_answer(three):
    first, second = splits_of(three)[0]["questions"]
    finds, told, closed = first["e"]
    assert finds == {"x": 0, "m": [0.0, 0.0], "a": "Bob", "p": [0, 1], "g": 2}
    assert told == {"x": 1, "p": [2], "g": 1}
    assert closed == {"x": 2, "m": [1.0, 1.0], "a": "Ann Lee"}
    assert second["e"][0] == {
        "x": 0,
        "m": [0.0, pytest.approx(2 / 3)],
        "a": "in 1850",
        "p": [0, 1],
        "c": 5,
    }
    assert second["e"][2] == {"x": 2, "m": [0.0, 0.0], "r": "not in the file"}


def test_an_entry_explains_its_answer(three):
    path = three[0].folder / "read" / "predictions.jsonl"
    read = splits_of(three)[0]["questions"][1]["p"][0]
    term = Term("a", "1", "passage", 4, 5)
    spans = [
        Explanation("7-2", (4, 9), (5, 7)),
        Explanation(read["i"], (4, 9), (4, 5), Calculation("1", "", (term,))),
    ]
    lines = [record for _, record in read_jsonl(path)]
    write_jsonl(
        path,
        [
            line | {"how": asdict(how), "factual": "Ann"}
            for line, how in zip(lines, spans, strict=True)
        ],
    )
    first, second = (question["e"][0] for question in splits_of(three)[0]["questions"])
    assert first["w"] == ["m", "il", "l "]
    assert first.get("h") is None
    assert first["f"] == "Ann"
    text = "".join(read["x"])
    assert second["w"] == ["", text[4], text[5:9]]
    assert second["h"] == '1 = 1 (passage: "a")'


@pytest.fixture
def entries(three):
    """The entries of two answers of a language model: a missing quote, and an abstention."""
    path = three[0].folder / "read" / "predictions.jsonl"
    quote = Quote("It was built by [b]Bo.", "missing")
    how = Explanation("7-2", (4, 9), (5, 7), origin="found afterwards")
    told: list[dict[str, object]] = [
        {"quote": asdict(quote), "how": asdict(how), "change": "Bo builds it"},
        {"answer": "", "candidate": "1851", "abstention": "the model does not know"},
    ]
    lines = [record for _, record in read_jsonl(path)]
    write_jsonl(path, [line | more for line, more in zip(lines, told, strict=True)])
    return [question["e"][0] for question in splits_of(three)[0]["questions"]]


def test_an_entry_says_what_became_of_a_quote(entries):
    told = {key: entries[0][key] for key in "qvu"}
    assert told == {"q": "It was built by [b]Bo.", "v": "not in these passages", "u": 1}


def test_an_entry_says_what_the_supposition_changes(entries):
    assert entries[0]["d"] == "Bo builds it"


def test_an_entry_says_that_a_sentence_was_found_afterwards(entries):
    assert entries[0]["o"] == "found afterwards for the model's answer"


def test_an_entry_says_why_a_model_abstained(entries):
    assert entries[1]["n"] == "the model does not know"


def test_only_what_is_scored_is_shown_split_by_split(three):
    few = override(three[2], {"limit": 1})
    stages.run(Run(few))
    (split,) = splits_of([few, *three])
    assert [[entry["x"] for entry in question["e"]] for question in split["questions"]] == [
        [0, 1, 2, 3],
        [1, 2, 3],
    ]
    again = scored("again", 'name = "gold"\nk = 3', {0: "Lee"})
    before, after = (splits_of(some)[0]["questions"] for some in (three, [*three, again]))
    assert [entry["p"] for entry in before] == [entry["p"] for entry in after], (
        "a passage that several read is there once"
    )
    assert after[0]["e"][3]["p"] == [2]
    write(
        "experiments/later.toml",
        'benchmark = "ifqa"\nsplit = "full-dev"\n[retriever]\nname = "gold"\n',
    )
    write(
        "experiments/other.toml",
        'benchmark = "sample"\nsplit = "dev"\nlimit = 3\n[retriever]\nname = "gold"\n',
    )
    other = load_experiment("other")
    stages.run(Run(other))
    splits = splits_of([load_experiment("later"), other, *three])
    assert [split["name"] for split in splits] == ["sample dev", "ifqa full-dev"]
    assert len(splits[0]["questions"]) == 3
    assert browser_data([load_experiment("later")]) == {"splits": []}
