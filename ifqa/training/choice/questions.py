"""Training questions of multiple choice: those that can be used, and those that follow from others.

The latter are for training on consistency (Asai and Hajishirzi, ACL 2020):

    symmetry      "suppose more X happens, how will it affect Y" -> more, so "suppose less X happens ..." -> less. The opposite
                  of the change or of the effect turns the answer round; the opposite of both keeps it.
    transitivity  X -> Y is more and Y -> Z is more (less), so X -> Z is more (less).

Which words are opposites, and which choices, is told by `ifqa.reading.multiple_choice.wiqa_question`.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from ifqa.errors import IfqaError
from ifqa.protocols import TrainingData
from ifqa.reading.multiple_choice.options import plain
from ifqa.reading.multiple_choice.wiqa_question import direction, opposite, parts, worded
from ifqa.records import Question
from ifqa.training.training_data import require


def usable(data: TrainingData) -> TrainingData:
    """The questions that offer choices and have an answer, with their passages.

    Raises:
        IfqaError: there are none, or a question's answer is not offered.
    """
    multiple = "questions of multiple choice, such as those of sample-wiqa"
    require(data, lambda question: question.choices and question.answers, "choices and an answer", multiple)
    places = [n for n, question in enumerate(data.questions) if question.choices and question.answers]
    chosen = data.only(places)
    for question in chosen.questions:
        right(question)
    return chosen


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


def directed(question: Question) -> tuple[int, int]:
    """The places of the choices that say more and less; -1 where there is none."""
    signs = [direction(choice) for choice in question.choices]
    return tuple(signs.index(sign) if sign in signs else -1 for sign in (1, -1))  # type: ignore[return-value]


def mirrored(question: Question) -> list[Question]:
    """The questions with the opposite change, effect, or both; only those in which the lexicon finds a word to turn.

    An answer that says neither more nor less, such as "no effect", stays.

    Raises:
        IfqaError: the question is not worded "suppose ... happens, how will it affect ...".
    """
    (change, effect), place, (more, less) = parts(question.text), right(question), directed(question)
    turned = {more: less, less: more}.get(place, place)
    if turned < 0:
        return []
    other_change, other_effect = opposite(change), opposite(effect)
    made = []
    for name, one, two, answer in (
        ("change", other_change, effect, turned),
        ("effect", change, other_effect, turned),
        ("both", other_change, other_effect, place),
    ):
        if one and two:
            text, answers = worded(one, two), (question.choices[answer],)
            made.append(replace(question, id=f"{question.id}~{name}", text=text, answers=answers))
    return made


def followed(questions: Sequence[Question]) -> dict[int, list[tuple[int, Question]]]:
    """Number of a question -> each question that goes on from its effect, by number, and the question that follows from both.

    The first answer says more; the second says more or less, and so does the third. All are about one paragraph and offer the
    same choices.

    Raises:
        IfqaError: a question is not worded "suppose ... happens, how will it affect ...".
    """
    split = [parts(question.text) for question in questions]
    starting = defaultdict(list)
    for number, (question, (change, _)) in enumerate(zip(questions, split, strict=True)):
        if right(question) in directed(question):
            starting[_place(question), change].append(number)
    found: dict[int, list[tuple[int, Question]]] = {}
    for number, (question, (change, effect)) in enumerate(zip(questions, split, strict=True)):
        more, less = directed(question)
        if min(more, less) < 0 or right(question) != more:
            continue
        for second in starting.get((_place(question), effect), ()):
            if (end := split[second][1]) != change:
                answer = questions[second].choices[right(questions[second])]
                name = f"{question.id}~{questions[second].id}"
                third = replace(question, id=name, text=worded(change, end), answers=(answer,))
                found.setdefault(number, []).append((second, third))
    return found


def _place(question: Question) -> tuple[object, ...]:
    return question.group, question.context, question.choices
