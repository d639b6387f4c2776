"""Reader 'graph': the passage and the sentences that a change and an effect are about, and the sign
between them.
"""

import pytest
from tiny_choice import worded

from ifqa.companions.wiqa.graph_reader import Graph
from ifqa.records import Passage, Question

ROASTING = Passage(
    "roasting",
    "Coffee",
    "Hot air flows through the beans in the drum. The beans lose water and turn yellow. "
    "A fan cools them.",
)
BICYCLES = Passage(
    "bicycles",
    "Bicycles",
    "The mechanic washes the bicycle. The brake pads are checked and replaced.",
)
CHOICES = ("more", "less", "no effect")


@pytest.fixture(scope="module")
def reader():
    return Graph(Graph.Settings())


@pytest.mark.parametrize(
    ("change", "effect", "answer"),
    [
        ("more hot air flows through the beans", "more water is lost from the beans", "more"),
        ("less hot air flows through the beans", "more water is lost from the beans", "less"),
        # "lose" stands in the passage
        ("less hot air flows through the beans", "the beans lose water", "less"),
        ("the senate elects a new president", "the beans lose water", "no effect"),
    ],
)
def test_the_answer_is_the_product_of_the_directions_if_the_change_is_about_the_passage(
    reader, change, effect, answer
):
    [prediction] = reader.answer(
        [Question("1", worded(change, effect), choices=CHOICES)], [[BICYCLES, ROASTING]]
    )
    assert (prediction.answer, prediction.passage_ids) == (answer, ("roasting",))


def test_the_explanation_goes_from_the_step_of_the_change_to_that_of_the_effect(reader):
    question = Question(
        "1", worded("hotter air in the drum", "the fan cools more"), choices=CHOICES
    )
    how = reader.answer([question], [[ROASTING]])[0].how
    assert how.pieces(ROASTING.text) == [
        ROASTING.text.removesuffix("A fan cools them."),
        "A fan cools them.",
        "",
    ]
    assert how.sentence == (0, len(ROASTING.text))


def test_a_question_without_choices_is_given_them_and_may_be_worded_shortly(reader):
    question = Question("1", "Suppose less hot air flows, how would that affect the loss of water?")
    assert reader.answer([question], [[ROASTING]])[0].answer == "less"


def test_what_cannot_be_answered_fails_alone(reader):
    stem = worded("more rain", "more mud")
    questions = [
        Question("a", stem, choices=("red", "more")),
        Question("b", stem),
        Question("c", "Who washes it?"),
        Question("d", stem),
    ]
    predictions = reader.answer(questions, [[ROASTING], [], [ROASTING], [ROASTING]])
    assert [prediction.error for prediction in predictions] == [
        "the choices do not offer more, less and no effect",
        "there is no passage to read",
        "reader 'graph' wants: suppose CHANGE happens, how will it affect EFFECT.",
        "",
    ]
