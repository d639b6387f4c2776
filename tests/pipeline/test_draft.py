"""Questions drafted by a scripted language model: which are kept, and why the others are dropped."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import refused

from ifqa.errors import ConfigError, SchemaRefused
from ifqa.formats.questions import read_questions
from ifqa.pipeline.draft import TRIES, Drafter, drafting_run, draw_passages, write_drafts
from ifqa.protocols import LanguageModel
from ifqa.reading.llm import Llm
from ifqa.records import Completion, Hit, Passage, Ranking

SENTENCE = "The sluice of number {n} is closed by Tom{n}, whose deputy is Nora{n} from Leith."
PASSAGES = [Passage(f"mill{n}.md#1:line=1", "", SENTENCE.format(n=n)) for n in range(40)]


class Writer(LanguageModel):
    """Drafts questions about the passages above, and answers them.

    `changes` are fields of the drafts, `again` its answers to each kind of question, and `knows` an
    answer that it gives whatever it is shown.
    """

    name = "scripted"
    takes_schema = True

    def __init__(self, changes=None, again=None, knows="", refuses_schema=False, failing=""):
        self.changes = changes or {}
        self.again = again or {}
        self.knows = knows
        self.refuses_schema = refuses_schema
        self.failing = failing
        self.seen = []

    def complete(self, requests, advance=lambda done: None):
        if self.refuses_schema and self.takes_schema:
            self.takes_schema = False
            raise SchemaRefused("no schema here")
        self.seen += requests
        return [self.reply(request) for request in requests]

    def reply(self, request):
        fields = self.fields(request)
        if fields is None:
            return Completion(error=self.failing)
        if request.schema:
            return Completion(json.dumps(fields), 1, 1, "stop")
        lines = "\n".join(f"{key.capitalize()}: {text}" for key, text in fields.items())
        return Completion(lines, 1, 1, "stop")

    def fields(self, request):
        system = request.messages[0][1]
        user = request.messages[-1][1]
        if "Question: " in user:
            return self.answer(user)
        if self.failing:
            return None
        n = user.partition("number ")[2].partition(" ")[0]
        quote = SENTENCE.format(n=n)
        if "what is not so" in system:
            fields = {
                "quote": quote,
                "question": f"If Tom{n} had been away, who would have closed the sluice of {n}?",
                "change": "The deputy.",
                "factual answer": f"Tom{n}",
                "answer": f"Nora{n}",
            }
            return fields | self.changes.get("counterfactual", {})
        if "does not know" in system:
            fields = {"quote": quote, "question": f"How old is Nora{n} now?", "answer": "not said"}
            return fields | self.changes.get("unanswerable", {})
        fields = {
            "quote": quote,
            "question": f"Who closes the sluice of number {n}?",
            "answer": f"Tom{n}",
        }
        return fields | self.changes.get("plain", {})

    def answer(self, user):
        passages, _, question = user.rpartition("Question: ")
        n = "".join(letter for letter in question if letter.isdigit())[:2]
        n = n if f"number {n} " in passages else n[:1]
        kind = "plain"
        answer = f"Tom{n}"
        if question.startswith("If"):
            kind = "counterfactual"
            answer = f"Nora{n}"
        if "How old" in question:
            kind = "unanswerable"
            answer = "not said"
        if answer not in passages:
            answer = "not said"
        if f"number {n} " in passages or kind != "plain":
            answer = self.again.get(kind, answer)
        answer = self.knows or answer
        return {"quote": "", "passage": 1, "change": "", "answer": answer}


def system_of(model, depth=3):
    """An opened system whose retriever finds the first passages."""
    reader = Llm(Llm.Settings(prompt="grounded", span_reader=False), llm=model)
    hits = tuple(Hit(passage.id, 1.0) for passage in PASSAGES[:depth])
    return SimpleNamespace(
        model=model,
        reader=reader,
        experiment=SimpleNamespace(root=Path()),
        run=SimpleNamespace(require_reader=lambda: SimpleNamespace(passages=depth)),
        read=lambda questions, passages, scores, advance: reader.answer(
            questions, passages, advance
        ),
        retrieve=lambda questions: [
            Ranking(question, hits, tuple(PASSAGES[:depth])) for question in questions
        ],
    )


def drafted(count=6, passages=PASSAGES, **settings):
    return Drafter(system_of(Writer(**settings)), passages, count).draft()


def test_about_a_third_of_each_kind_is_kept():
    kinds = [draft.kind for draft in drafted(7).kept]
    assert kinds == ["plain", "counterfactual", "unanswerable"] * 2 + ["plain"]


def test_no_more_is_asked_than_is_needed():
    assert drafted(6).asked.total() == 6


def test_the_kinds_ask_about_passages_of_their_own():
    assert len({draft.passage.id for draft in drafted(12).kept}) == 12


def test_each_kind_asks_about_all_of_a_few_passages():
    result = drafted(9, PASSAGES[:3])
    assert result.count("plain") == result.count("counterfactual") == 3


def test_a_kind_with_flaws_is_tried_three_times_as_often():
    result = drafted(6, changes={"plain": {"answer": "nobody"}})
    assert result.asked["plain"] == TRIES * 2
    assert result.dropped == {"its answer is not in its sentence": TRIES * 2}


@pytest.mark.parametrize(
    ("settings", "kind", "flaw"),
    [
        (
            {"again": {"plain": "nobody"}},
            "plain",
            "asked again, the model answers otherwise",
        ),
        (
            {"again": {"plain": "not said"}},
            "plain",
            "asked again, the model answers otherwise",
        ),
        (
            {"again": {"counterfactual": "Tom1"}},
            "counterfactual",
            "asked again, the model answers otherwise",
        ),
        ({"again": {"unanswerable": "43"}}, "unanswerable", "the documents answer it"),
    ],
)
def test_a_draft_that_fails_its_round_trip_is_dropped(settings, kind, flaw):
    result = drafted(3, **settings)
    assert result.count(kind) == 0
    assert result.dropped == {flaw: TRIES}


def test_a_plain_question_that_needs_no_passage_is_dropped():
    answer = {"plain": {"quote": "whose deputy is Nora7 from Leith", "answer": "Nora7"}}
    result = drafted(1, PASSAGES[7:8], changes=answer, knows="Nora7")
    assert result.dropped == {"another passage, without the answer, gives it": 1}


def test_a_passage_that_has_the_answer_too_may_give_it():
    answer = {"plain": {"quote": "from Leith", "answer": "Leith"}}
    result = drafted(1, changes=answer, knows="Leith")
    assert len(result.kept) == 1


def test_a_question_is_kept_once():
    same = {"plain": {"question": "Who closes the sluice of number 0?"}}
    result = drafted(6, changes=same, again={"plain": "Tom0"})
    assert "it was asked before" in result.dropped


def test_both_forms_of_an_answer_are_kept():
    [draft] = drafted(1, PASSAGES[9:10], again={"plain": "Mr Tom9"}).kept
    assert draft.answers == ("Tom9", "Mr Tom9")


def test_an_unanswerable_question_is_asked_of_the_best_passages_of_all():
    model = Writer()
    Drafter(system_of(model), PASSAGES[20:], 3).draft()
    [request] = [each for each in model.seen if "Question: How old" in each.messages[-1][1]]
    assert "number 22 " in request.messages[-1][1]
    assert "number 1 " in request.messages[-1][1]
    assert "number 2 " not in request.messages[-1][1]


def test_a_model_without_schemas_drafts_in_lines():
    assert len(drafted(3, refuses_schema=True).kept) == 3


def test_a_failure_that_may_pass_ends_the_drafting():
    with refused("3 requests of the drafts failed .no connection.; nothing was written"):
        drafted(3, failing="no connection")


def test_a_passage_too_long_for_the_window_is_not_asked():
    model = Writer()
    model.window = 10
    result = Drafter(system_of(model), PASSAGES, 1).draft()
    assert result.dropped == {"the model wrote none": TRIES}
    assert model.seen == []


def test_the_estimate_counts_at_least_the_requests_of_all_tries():
    for settings in ({}, {"again": {"plain": "nobody", "counterfactual": "no"}}):
        model = Writer(**settings)
        drafter = Drafter(system_of(model), PASSAGES, 9)
        most = len(set(drafter.requests()))
        drafter.draft()
        assert len(set(model.seen)) <= most


def test_a_second_run_asks_the_same():
    asked = []
    for _ in range(2):
        model = Writer(again={"plain": "nobody"})
        Drafter(system_of(model), PASSAGES, 9).draft()
        asked.append(model.seen)
    assert asked[0] == asked[1]


def test_the_summary_counts_what_was_dropped():
    lines = [*drafted(3, again={"plain": "nobody"}).summary()]
    assert lines[0] == (
        "2 questions of 3 wanted (0 plain, 1 counterfactual, 1 unanswerable), from 5 drafts"
    )
    assert lines[1] == "3 dropped: asked again, the model answers otherwise"
    assert lines[2].startswith("fewer than wanted: ")


PROSE = "The mill number {n} grinds rye for the bakery in Marlow all through the year. " * 3


def passages_of(file, count):
    return [
        Passage(f"{file}#{n}:line={n + 1}", "", PROSE.format(n=f"{file}{n}")) for n in range(count)
    ]


def test_a_long_file_does_not_take_all():
    corpus = [*passages_of("long", 3000), *passages_of("a", 4), *passages_of("b", 4)]
    files = [passage.id.partition("#")[0] for passage in draw_passages(corpus, 12, 0)]
    assert sorted(files) == ["a"] * 4 + ["b"] * 4 + ["long"] * 4


def test_the_seed_draws_the_passages():
    corpus = passages_of("long", 100)
    assert draw_passages(corpus, 5, 0) == draw_passages(corpus, 5, 0)
    assert draw_passages(corpus, 5, 0) != draw_passages(corpus, 5, 1)


@pytest.mark.parametrize(
    "text",
    [
        "Safety.",
        "Chapter 1 ........ 3 Chapter 2 ........ 7 " * 10,
        "12 13 14 15 16 17 18 19 20. " * 10,
        "rye wheat oats barley maize " * 10,
        "a-" * 2000,
        "",
    ],
)
def test_a_passage_that_is_no_prose_is_not_drawn(text):
    assert draw_passages([Passage("a#0:line=1", "", text)], 3, 0) == []


def test_a_text_that_comes_again_is_drawn_once():
    copies = [Passage(f"{file}#0:line=1", "", PROSE) for file in "abc"]
    assert len(draw_passages(copies, 3, 0)) == 1


TABLE = Path("trial/questions.csv")
README = Path("trial/README.md")


def table_of(result):
    write_drafts(TABLE, README, result, "m", "mill")
    return TABLE.read_text(encoding="utf-8")


@pytest.mark.usefixtures("here")
def test_drafts_are_read_as_questions():
    table_of(drafted(3))
    plain, counterfactual, unanswerable = read_questions(TABLE)
    assert plain.answers == ("Tom0",)
    assert counterfactual.gold_passages == (SENTENCE.format(n=1),)
    assert unanswerable.answers == ()


@pytest.mark.usefixtures("here")
def test_each_row_says_who_drafted_it_from_where():
    assert table_of(drafted(3)).count("drafted by m from mill") == 3


@pytest.mark.usefixtures("here")
def test_the_readme_says_to_read_them_first():
    table_of(drafted(3))
    readme = README.read_text(encoding="utf-8")
    assert "drafted by the language model m" in readme
    assert "Read them before you use them" in readme


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("answer", ["Tom|Nora", '["Tom'])
def test_an_answer_like_the_tables_syntax_is_read_back(answer):
    passage = Passage("a#1:line=1", "", f"The number 9 of the mill belongs to {answer} alone now.")
    field = {"plain": {"quote": passage.text, "answer": answer}}
    result = drafted(1, [passage], changes=field, again={"plain": answer})
    table_of(result)
    [question] = read_questions(TABLE)
    assert question.answers == (answer,)


@pytest.mark.usefixtures("here")
def test_a_hostile_sentence_steers_no_terminal_or_spreadsheet():
    text = "=HYPERLINK(1) \x1b[2J number 0 of the mill belongs to Tom0 alone now."
    field = {"plain": {"quote": text}}
    result = drafted(1, [Passage("a#1:line=1", "", text)], changes=field)
    table = table_of(result)
    assert "\x1b" not in table
    assert ",'=HYPERLINK(1)" in table


@pytest.mark.usefixtures("here")
def test_a_table_that_is_there_by_now_is_not_overwritten():
    TABLE.parent.mkdir()
    TABLE.write_text("mine")
    with refused("exists by now"):
        table_of(drafted(3))
    assert TABLE.read_text() == "mine"


@pytest.mark.usefixtures("here")
def test_an_attempt_that_was_interrupted_between_the_files_goes_on():
    table_of(drafted(3))
    TABLE.unlink()
    assert len(table_of(drafted(3)).splitlines()) == 4


@pytest.mark.usefixtures("here")
def test_a_readme_of_other_drafts_is_not_overwritten():
    table_of(drafted(3))
    TABLE.unlink()
    with refused("README.md exists by now"):
        table_of(drafted(4))


SECTIONS = {
    "benchmark": "file",
    "split": "trial/questions.csv",
    "corpus": "trial",
    "retriever": {"name": "bm25", "k": 5},
    "reader": {"name": "extractive", "passages": 2},
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "--draft wants a language model"),
        ({"llm.model": "m", "reader.prompt": "short"}, "--set reader.prompt: wanted a setting of"),
        ({"llm.model": "m", "llm.base": "x"}, "unknown|base_url"),
        ({"llm.name": "nothing"}, "nothing"),
    ],
)
def test_a_wrong_language_model_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        drafting_run("trial", SECTIONS, changes)


def test_a_drafting_prompt_answers_no_question():
    with refused("prompt 'draft-plain' has a model write questions"):
        Llm(Llm.Settings(prompt="draft-plain"), llm=Writer())
