"""Annotation tasks: written, filled in as people do, and read back as questions and votes."""

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from ifqa.formats import annotations
from ifqa.formats.annotations import VERIFICATION_FIELDS, WRITING_FIELDS, read_annotated, read_tasks, write_tasks

PASSAGES = [
    {"passage_id": f"{n}-0", "title": f"T{n}", "passage": f"=The mill, number {n}, burned.", "keyword": "because"}
    for n in range(4)
]
FILLED = {"question": "If the mill had not burned, what would stand?", "answer": "the mill", "answer_type": "entity"}
FREE = FILLED | {"free_form": "yes", "other_passages": ["One passage.", "Another."], "other_answers": ["it", "a mill"]}


def export(path, filled):
    """Label Studio's export of tasks: for each task, what each worker filled in."""
    tasks = json.loads(path.read_text())
    for number, (task, workers) in enumerate(zip(tasks, filled, strict=True)):
        task["id"] = number
        task["annotations"] = [
            {"completed_by": worker, "was_cancelled": fields is None, "result": list(results(fields or {}))}
            for worker, fields in workers
        ]
    path.write_text(json.dumps(tasks))


def results(filled):
    for name, texts in filled.items():
        kind, key = ("choices", "choices") if name in ("answer_type", "free_form", "verdict") else ("textarea", "text")
        texts = texts if isinstance(texts, list) else [texts]
        yield {"from_name": name, "to_name": "passage", "type": kind, "value": {key: texts}}


@pytest.fixture
def written(tmp_path):
    """Four passages: with a question, with a free-form question, skipped, and untouched."""
    path = tmp_path / "tasks.json"
    write_tasks(path, PASSAGES, WRITING_FIELDS)
    export(path, [[(7, FILLED)], [({"email": "b@x"}, FREE)], [(7, None)], []])
    return path


def test_written_questions_are_read_with_answers_passages_and_labels(written):
    annotated = read_annotated(written)
    plain, free = annotated.questions
    assert (plain.id, plain.text, plain.answers) == ("0-0", FILLED["question"], ("the mill",))
    assert plain.gold_passages == (PASSAGES[0]["passage"],)
    assert free.gold_passages == ("One passage.", "Another.")
    assert free.answers == ("the mill", "it", "a mill")
    assert [label for _, label in free.labels] == ["entity", "free-form"]
    assert annotated.summary == "2 questions; 2 passages without one"


def votes(written, verdicts, another_answer=""):
    """The file of votes on the two written questions, filled in: verdicts of two workers on each."""
    path = written.with_name("votes.json")
    write_tasks(path, annotations.verification_tasks(written), VERIFICATION_FIELDS, force=True)

    def ballot(verdict):
        return {"verdict": verdict, "another_answer": another_answer} if verdict else None

    export(path, [[("x", ballot(first)), ("y", ballot(second))] for first, second in verdicts])
    return path


@pytest.mark.parametrize(
    ("pairs", "kept"),
    [
        ([("right", "right"), ("right", "wrong answer")], 2),
        ([("right", "right"), ("wrong answer", "not answerable")], 1),
        ([("right", None), (None, None)], 1),
        ([("right", "right"), ("not answerable", None)], 1),  # only the writer is for it
    ],
)
def test_a_question_is_kept_by_the_majority_of_its_workers(written, pairs, kept):
    annotated = read_annotated(votes(written, pairs))
    assert len(annotated.questions) == kept
    assert f"; {2 - kept} dropped" in annotated.summary
    assert annotated.questions[0] == read_annotated(written).questions[0]


def test_another_answer_counts_if_its_worker_is_for_the_question(written):
    path = votes(written, [("right", "wrong answer"), ("right", "right")], "a house")
    assert read_annotated(path).questions[0].answers == ("the mill", "a house")


def test_the_summary_of_votes_has_their_agreement(written):
    agreed = read_annotated(votes(written, [("right", "right"), ("wrong answer",) * 2])).summary
    assert agreed.endswith("1 dropped (1 wrong answer); Krippendorff's alpha of the verdicts: 1.000")
    summary = read_annotated(votes(written, [("right", "right"), ("right", "right")])).summary
    assert summary.startswith("2 questions kept by 4 votes of 2 workers; 0 dropped; ")
    assert summary.endswith("not defined")


@pytest.mark.parametrize(
    ("worker", "complaint"), [("x", "votes twice on question 0-0"), (7, "'7' votes on their own question")]
)
def test_workers_that_vote_twice_or_on_their_own_question_are_refused(written, worker, complaint):
    path = votes(written, [("right", "right"), ("right", "right")])
    tasks = json.loads(path.read_text())
    tasks[0]["annotations"][1]["completed_by"] = worker
    path.write_text(json.dumps(tasks))
    with refused(f"task 1: .*{complaint}"):
        read_annotated(path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"answer": ""}, r"task 1: 'answer' is empty"),
        ({"answer_type": "animal"}, r"'answer_type' must be one of entity, number, date, others; found 'animal'"),
        ({"free_form": "yes"}, r"needs 'other_passages'; found none"),
    ],
)
def test_a_missing_or_invalid_field_is_named_with_its_location(tmp_path, wrong, message):
    path = tmp_path / "tasks.json"
    write_tasks(path, PASSAGES[:1], WRITING_FIELDS)
    export(path, [[(1, FILLED | wrong)]])
    with refused(message):
        read_annotated(path)
    write_tasks(path, PASSAGES[:1], WRITING_FIELDS, force=True)
    export(path, [[(1, FILLED), (2, FILLED | {"answer": "nothing"})]])
    assert [question.id for question in read_annotated(path).questions] == ["0-0", "0-0-2"]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"data": 1}, "task 1: 'data' must be dict, found int"),
        ({"data": {}, "annotations": 3}, "'annotations' must be list, found int"),
        ({"data": {"a": {}}}, "'a' must be a text or a list of texts"),
        ({"data": {}, "annotations": [{"result": [{}]}]}, "key 'from_name' is missing"),
    ],
)
def test_another_layout_is_refused_with_its_location(tmp_path, task, message):
    (tmp_path / "tasks.json").write_text(json.dumps([task]))
    with refused(message):
        read_tasks(tmp_path / "tasks.json")


def test_only_annotation_files_hold_tasks(tmp_path):
    tasks = [("a.json", '[{"data": {}}]')]
    others = [
        ("d.csv", "passage,x\n"),
        ("b.json", '{"data": []}'),
        ("c.json", '[{"question": "?"}]'),
        ("e.jsonl", '{"data": {}}'),
    ]
    for name, text in tasks + others:
        (tmp_path / name).write_text(text)
        assert annotations.holds_tasks(tmp_path / name) == ((name, text) in tasks)


def test_tasks_overwrite_no_file_and_are_only_json(tmp_path):
    (tmp_path / "tasks.xml").write_text("mine")
    for name in ("tasks.json", "tasks.csv"):
        with refused(r"tasks.xml exists already|wanted a .json file, for Label Studio"):
            write_tasks(tmp_path / name, PASSAGES, WRITING_FIELDS)
    assert (tmp_path / "tasks.xml").read_text() == "mine"
    assert len(write_tasks(tmp_path / "tasks.json", PASSAGES, WRITING_FIELDS, force=True)) == 2


def test_the_labelling_interface_has_every_field_and_choice(tmp_path):
    field = annotations.AnnotationField("a", 'a < b & "c"', ("x & y",))
    write_tasks(tmp_path / "tasks.json", PASSAGES, [*WRITING_FIELDS, field])
    tree = ElementTree.parse(tmp_path / "tasks.xml")
    names = [element.get("name") for element in tree.iter() if element.get("toName") == "passage"]
    assert names == [*(field.name for field in WRITING_FIELDS), "a"]
    values = {element.get("value") for element in tree.iter("Text")}
    assert values <= {f"${name}" for name in PASSAGES[0]}
    assert "x & y" in [choice.get("value") for choice in tree.iter("Choice")]


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]))


@settings(max_examples=15)  # each writes files and flushes them
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_any_text_of_a_task_is_read_back(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("t") / "tasks.json"
    write_tasks(path, [{"passage_id": "p", "passage": text} for text in texts], VERIFICATION_FIELDS)
    passages = ["".join(row["passage"]) for _, row in read_tasks(path)]
    assert passages == [text.strip() for text in texts]
