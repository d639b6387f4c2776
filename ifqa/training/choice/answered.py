"""Training questions of multiple choice: those with choices and an answer among them, and the answers as classes."""

from collections.abc import Sequence

from ifqa.errors import IfqaError
from ifqa.reading.choice.offered import plain
from ifqa.records import Question
from ifqa.training.material import Material


def usable(material: Material) -> Material:
    """The questions that offer choices and have an answer, with their passages.

    Raises:
        IfqaError: there are none, or a question's answer is not offered.
    """
    places = [n for n, question in enumerate(material.questions) if question.choices and question.answers]
    if not places:
        raise IfqaError(
            f"none of {len(material.questions)} training questions has choices and an answer; wanted questions of "
            "multiple choice, such as those of sample-wiqa"
        )
    questions = [material.questions[n] for n in places]
    for question in questions:
        right(question)
    return Material(questions, [material.rankings[n] for n in places], material.family, material.sources)


def right(question: Question) -> int:
    """The place of a question's answer among its choices.

    Raises:
        IfqaError: the answer is not offered.
    """
    answers = {plain(answer) for answer in question.answers}
    place = next((n for n, choice in enumerate(question.choices) if plain(choice) in answers), None)
    if place is None:
        raise IfqaError(
            f"training question {question.id}: the answer {question.answers[0]!r} is not offered; wanted one of "
            + ", ".join(question.choices)
        )
    return place


def classes_of(questions: Sequence[Question]) -> list[str]:
    """The choices that all training questions share, as a classifier's classes, in the order of the first question.

    Raises:
        IfqaError: a question offers others, two at least are needed, or all questions have the same answer.
    """
    classes = list(dict.fromkeys(map(plain, questions[0].choices)))
    for question in questions:
        if {*map(plain, question.choices)} != {*classes}:
            raise IfqaError(
                f"training question {question.id} offers {', '.join(question.choices)}, and the first {', '.join(classes)}; "
                "this reader learns one set of answers; train the reader 'choice' on such questions"
            )
    if len({question.choices[right(question)] for question in questions}) < 2:
        raise IfqaError(
            f"all {len(questions)} training questions have the same answer; wanted questions with several answers"
        )
    return classes
