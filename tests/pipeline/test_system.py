"""An opened system answers with evidence, retrieves with texts, and opens each part once."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import outside_plugins as toy
import pytest
from command_line import locking_process
from refusals import refused

from ifqa.config.experiment import parse_experiment
from ifqa.corpus.passage_store import PassageStore
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import open_system
from ifqa.records import Question

pytestmark = pytest.mark.usefixtures("five")


def ask(experiment, text):
    with open_system(Run(experiment)) as system:
        return system.ask(text)


def test_asking_builds_the_corpus_and_leaves_no_experiment():
    answer = ask(toy.searching(reader=toy.LAST), "  If team3 had won, who would lead?\n")
    assert answer.question.text == "If team3 had won, who would lead?"
    assert answer.text == "team0 is led by captain0"
    assert [(passage.id, passage.title) for passage in answer.evidence] == [
        ("p0", "Team 0"),
        ("p3", "Team 3"),
    ]
    assert len(PassageStore(Path("indexes/few/passages"))) == 5
    assert Path("indexes/few/words/manifest.json").exists()
    assert not Path("experiments").exists()
    # Not the reader's two
    assert toy.rows("searched.jsonl") == [[3, "If team3 had won, who would lead?"]]
    closed_book = ask(toy.experiment(reader={"name": toy.LAST["name"]}), "If so, who?")
    assert (closed_book.text, closed_book.evidence) == ("If so, who?", ())


def test_a_built_corpus_can_be_read_while_it_is_locked():
    ask(toy.searching(reader=toy.LAST), "If team3 had won, who would lead?")
    with locking_process("indexes/few") as other:
        assert other.stdout.readline() == "in\n"
        answer = ask(toy.searching(reader=toy.LAST), "If team3 had won, who would lead?")
    assert answer.text == "team0 is led by captain0"


BOTH = """
class Both(Words):
    'Finds some and makes some.'
    def search(self, questions, k):
        hits = [Hit('p4', 3.0), Hit('new', 2.0), Hit('p1', 1.0)]
        return [SearchResult(hits, [Passage('new', 'New', one.text)]) for one in questions]
"""


def test_evidence_may_be_stored_or_made_by_the_retriever():
    toy.outside(toy.PLUGINS, BOTH)
    toy.corpus('retriever = "outside_of_stages:Both"')
    both = toy.WORDS | {"name": "outside_of_stages:Both"}
    answer = ask(
        toy.experiment(corpus="few", retriever=both, reader=toy.LAST | {"passages": 3}), "Who?"
    )
    evidence = [(passage.id, passage.text[:5]) for passage in answer.evidence]
    assert evidence == [("p1", "team1"), ("new", "Who?"), ("p4", "team4")]


OPENED = """
def note(what):
    with open("opened.txt", "a") as file:
        print(what, file=file)
class Opened(Words):
    'Says that it was opened.'
    def __init__(self, index):
        super().__init__(index)
        note("retriever")
class Slow(Last):
    'Notes whether two threads were in it at once.'
    inside = 0
    def __init__(self):
        note("reader")
    def answer(self, questions, passages):
        import time
        Slow.inside += 1
        time.sleep(0.01)
        if Slow.inside > 1: raise RuntimeError("two at once")
        Slow.inside -= 1
        return super().answer(questions, passages)
"""


def test_parts_are_opened_once_and_used_by_a_thread_at_a_time():
    toy.outside(toy.PLUGINS, OPENED)
    toy.corpus('retriever = "outside_of_stages:Opened"')
    opened = toy.WORDS | {"name": "outside_of_stages:Opened"}
    mine = toy.experiment(corpus="few", retriever=opened, reader={"name": "outside_of_stages:Slow"})
    with open_system(Run(mine)) as system, ThreadPoolExecutor(4) as threads:
        answers = list(
            threads.map(lambda n: system.ask(f"If team{n} had won, who?").text, range(5))
        )
    assert Path("opened.txt").read_text().splitlines() == ["retriever", "reader"]
    assert answers == [system.ask(f"If team{n} had won, who?").text for n in range(5)]


def test_rankings_come_with_their_passages_at_the_requested_depth():
    with open_system(Run(toy.searching(reader=toy.LAST))) as system:
        first, second = system.retrieve(
            ["If team3 had won, who would lead?", Question("mine", "Of team1?")], k=2
        )
    assert [(passage.id, score) for passage, score in first] == [("p3", 1.0), ("p0", 0.0)]
    assert (len(second), second.question.id, second.passages[0].text) == (
        2,
        "mine",
        "team0 is led by captain0",
    )


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (
            lambda system: system.ask(" \n\t"),
            "the question is empty; wanted something like: ifqa ask",
        ),
        (lambda system: system.retrieve([3]), "wanted a text or a Question, found"),
        (lambda system: system.retrieve("If so, who?"), "wanted a list of questions, found"),
        (lambda system: system.ask("If so?", -0.1), "threshold: wanted a confid"),
        (lambda system: system.ask("If so?", 1.1), "threshold: wanted a confid"),
        (lambda system: system.ask("If so?", True), "threshold: wanted a confid"),
    ],
)
def test_what_cannot_be_asked_is_refused(call, complaint):
    with (
        open_system(Run(toy.searching(reader=UNSURE))) as system,
        pytest.raises(IfqaError, match=complaint),
    ):
        call(system)


def test_a_system_works_below_its_root_from_any_working_directory(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    tables = {
        "benchmark": "ifqa",
        "split": "full-dev",
        "corpus": "few",
        "retriever": {"name": "gold", "k": 2},
    }
    stages.run(Run(parse_experiment("mine", tables | {"reader": toy.FILE}, "mine.toml", tmp_path)))
    assert toy.scores(tmp_path / "experiments/mine/score")["measures"]["EM"]["value"] == 60.0
    assert (tmp_path / "indexes/few/passages/manifest.json").exists()
    assert list(elsewhere.iterdir()) == []


UNSURE = {"name": "outside_of_stages:Unsure"}


@pytest.mark.parametrize(
    ("threshold", "kept"), [(None, [0, 1, 2]), (0, [0, 1, 2, 3, 4]), (0.75, [0]), (1, [])]
)
def test_an_opened_system_abstains_below_the_readers_or_its_own_threshold(threshold, kept):
    texts = [f"If team{n} had won, who would lead?" for n in range(5)]
    with open_system(Run(toy.experiment(reader=UNSURE))) as system:
        answers = system.answer(texts, threshold)
        assert system.ask(texts[4], threshold) == replace(
            answers[4], question=Question("ask/0", texts[4])
        )
    assert [n for n, answer in enumerate(answers) if answer.text == "captain0"] == kept
    assert [answer.candidate for answer in answers] == [
        "" if n in kept else "captain0" for n in range(5)
    ]
    assert [answer.confidence for answer in answers] == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1])


UNWEIGHED = {"name": "outside_of_stages:Unweighed"}


def test_a_threshold_is_refused_before_a_reader_without_confidences_is_asked():
    with (
        open_system(Run(toy.experiment(reader=UNWEIGHED))) as system,
        refused("threshold = 0.4 needs a confidence: .*Unweighed' gives none"),
    ):
        system.ask("If team3 had won, who would lead?", 0.4)
    assert not Path("unweighed.txt").exists()


def test_a_threshold_of_0_shows_the_answer_of_a_reader_without_confidences():
    with open_system(Run(toy.experiment(reader=UNWEIGHED))) as system:
        assert system.ask("If team3 had won, who would lead?", 0).text == "captain0"


@pytest.mark.parametrize(
    ("threshold", "kept"), [(None, [0, 1, 2]), (0, [0, 1, 2, 3, 4]), (0.6, [])]
)
def test_by_default_a_reader_may_abstain_where_a_passage_hardly_has_the_answer(threshold, kept):
    doubtful = {"name": "outside_of_stages:Doubtful"}
    with open_system(Run(toy.experiment(reader=doubtful))) as system:
        answers = system.answer(
            [f"If team{n} had won, who would lead?" for n in range(5)], threshold
        )
    assert [n for n, answer in enumerate(answers) if answer.text] == kept
    assert [answer.answerable for answer in answers] == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1])


def test_a_scored_run_answers_all_questions_unless_its_reader_abstains():
    stages.run(Run(toy.experiment("all", reader=UNSURE)))
    stages.run(Run(toy.experiment("some", reader=UNSURE | {"least": 0.6})))
    every = toy.scores("experiments/all/score")
    some = toy.scores("experiments/some/score")
    assert ("n_abstained" in every, some["n_abstained"], some["n_failed"]) == (False, 3, 0)
    # The first answer is the only right one
    assert every["measures"]["EM"] == some["measures"]["EM"]
    assert every["measures"]["Brier"] == some["measures"]["Brier"]
    first, *_, last = toy.rows("experiments/some/score/per_question.jsonl")
    assert (first["answer"], first["EM"], first["confidence"]) == ("captain0", 1.0, 0.9)
    assert (last["answer"], last["candidate"], last["abstained"], last["EM"]) == (
        "",
        "captain0",
        1.0,
        0.0,
    )
    assert "candidate" not in first
    predictions = toy.rows("experiments/some/read/predictions.jsonl")
    assert [prediction.get("candidate") for prediction in predictions] == [None] * 2 + [
        "captain0"
    ] * 3


GERMAN, JAPANESE = (
    "Wenn die Brücke nicht gehalten hätte, wer wäre ertrunken?",
    "もし橋が落ちていたら、誰が溺れていたでしょうか?",
)
NOTE = "The reader was trained on English; this question is in "


@pytest.mark.parametrize(
    ("text", "threshold", "answer", "candidate", "note"),
    [
        ("If so, who?", None, "captain0", "", ""),
        (GERMAN, 0.6, "", "captain0", f"{NOTE}German."),
        (GERMAN, 0.5, "captain0", "", f"{NOTE}German."),
        (JAPANESE, 0, "captain0", "", f"{NOTE}Japanese."),
        (
            JAPANESE,
            None,
            "",
            "",
            f"{NOTE}Japanese. It is mostly wrong there, so only passages are shown",
        ),
    ],
)
def test_an_answer_notes_a_language_that_the_reader_was_not_trained_on(
    text, threshold, answer, candidate, note
):
    with open_system(Run(toy.searching(reader={"name": "outside_of_stages:English"}))) as system:
        asked = system.ask(text, threshold)
    assert (asked.text, asked.candidate, asked.error) == (answer, candidate, "")
    assert (asked.note[: len(note)], bool(asked.note)) == (note, bool(note))
    assert str(asked) != "(no answer: the reader found nothing)"


GERMAN_PASSAGE = "Der Müller Tom Ferris schließt die Schleuse, wenn die Bremse nicht mehr hält."


def noted(text, language, passage):
    """The note of a question whose passages are all `passage`, in a corpus of a language."""
    experiment = toy.searching(reader={"name": "outside_of_stages:English"})
    corpus = Path("indexes/few.toml")
    corpus.write_text(f'language = "{language}"\n' + corpus.read_text())
    rows = [json.loads(line) for line in Path("few.jsonl").read_text().splitlines()]
    lines = [json.dumps(row | {"contents": passage}) for row in rows]
    Path("few.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return ask(experiment, text).note


def test_a_passage_in_another_language_is_noted():
    note = noted("If so, who?", "en", GERMAN_PASSAGE)
    assert note.startswith(
        "The reader was trained on English; this passage is in German. It is mostly wrong"
    )


def test_an_english_passage_is_read_whatever_the_language_of_its_folder():
    assert noted("If so, who?", "de", "The sluice is closed by Tom Ferris in the evening.") == ""


def test_a_passage_of_uncertain_language_is_read():
    assert noted("If so, who?", "de", "Jürgen Müller, Utrecht.") == ""


@pytest.mark.parametrize("text", ["Sluice", "?!", "12 34", "💥"])
def test_a_text_that_is_no_question_gets_advice(text):
    answer = ask(toy.searching(reader={"name": "outside_of_stages:English"}), text)
    assert (answer.text, answer.candidate) == ("", "")
    assert "ask a whole question, such as: If " in answer.note
    assert "It is mostly wrong" not in answer.note


def test_a_threshold_shows_the_answer_to_a_text_that_is_no_question():
    with open_system(Run(toy.searching(reader={"name": "outside_of_stages:English"}))) as system:
        answer = system.ask("Sluice", 0)
    assert (answer.text, answer.note[:8]) == ("captain0", "There is")
