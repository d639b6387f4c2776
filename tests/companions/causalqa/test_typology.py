import re

import pytest

from ifqa.companions.causalqa.rules import normalize_question
from ifqa.companions.causalqa.typology import (
    ASPECTS,
    PRAGMATIC_FORMS,
    SEMANTIC_FORMS,
    Annotation,
    LabellerScore,
    classify_question,
    read_annotations,
    score_labels,
)
from ifqa.errors import IfqaError

FORMS = [
    (forms, place) for forms in (SEMANTIC_FORMS, PRAGMATIC_FORMS) for place in range(len(forms))
]


@pytest.mark.parametrize(("forms", "place"), FORMS)
def test_a_form_is_the_first_match_of_its_example(forms, place):
    text = normalize_question(forms[place].example)
    assert next(n for n, form in enumerate(forms) if re.search(form.pattern, text)) == place
    assert classify_question(forms[place].example)[forms is PRAGMATIC_FORMS] == forms[place].label


@pytest.mark.parametrize(
    ("question", "classes"),
    [
        ("when there is thunder what causes the sound?", ("cause", "knowledge")),
        ("why was the lhc made?", ("purpose", "knowledge")),
        ("Why is the sparrow successful where it has been introduced?", ("cause", "knowledge")),
        ("where do you think glaciers can be found today", ("none", None)),
        ("Why did the king get rid of the monasteries?", ("cause", "knowledge")),
        ("how to get rid of ants", (None, "solution")),
    ],
)
def test_a_phrase_alone_does_not_decide(question, classes):
    assert classify_question(question) == classes


def test_exactly_the_classes_have_forms():
    for aspect, forms in (("semantic", SEMANTIC_FORMS), ("pragmatic", PRAGMATIC_FORMS)):
        assert {form.label for form in forms} - {None} == {*ASPECTS[aspect]}


def test_the_labeller_abstains_without_a_match():
    assert classify_question("salt and water") == classify_question("") == (None, None)


def test_the_labeller_is_fast_on_a_long_question():
    # minutes, if a pattern were exponential
    long = "what is what does why is causes effects of " * 400
    assert classify_question(long)[0]


def test_annotations_are_read(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(
        "dataset\tid\tsemantic\tpragmatic\nnq\t1\tcause\tknowledge\npaq\t1\tresult\topinion\n"
    )
    read = {
        ("nq", "1"): Annotation("cause", "knowledge"),
        ("paq", "1"): Annotation("result", "opinion"),
    }
    assert read_annotations(path) == read
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 7, "semantic": "goal", "pragmatic": "solution"}')
    assert read_annotations(path) == {("", "7"): Annotation("goal", "solution")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,text\n1,a\n", "with the column 'semantic'"),
        ("id,semantic,pragmatic\n", "wanted annotations, found none"),
        (
            "id,semantic,pragmatic\n1,why,knowledge\n",
            ":2: 'semantic' must be one of cause, goal, .*; found 'why'",
        ),
        (
            "id,semantic\n1,cause\n",
            "'pragmatic' must be one of solution, knowledge, opinion; found None",
        ),
        ("id,semantic,pragmatic\n1,cause,opinion\n1,cause,opinion\n", ":3: '1' is annotated twice"),
        ("x,semantic,pragmatic\n1,cause,opinion\n", "wanted an 'id'"),
    ],
)
def test_an_invalid_annotation_is_refused(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(IfqaError, match=message):
        read_annotations(path)


def test_a_labeller_is_scored_on_annotated_questions_only():
    labels = {
        ("", "1"): "cause",
        ("", "2"): None,
        ("", "3"): "goal",
        ("", "4"): "goal",
        ("", "9"): "cause",
    }
    annotations = {("", "1"): "cause", ("", "2"): "cause", ("", "3"): "cause", ("", "4"): "goal"}
    assert score_labels(labels, annotations, ["cause", "goal"]) == {
        "all": LabellerScore(given=3, right=2, annotated=4, of=4),
        "cause": LabellerScore(given=1, right=1, annotated=3, of=4),
        "goal": LabellerScore(given=2, right=1, annotated=1, of=4),
    }
