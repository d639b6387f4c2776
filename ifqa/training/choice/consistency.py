"""Questions that follow from others, for training on consistency (Asai and Hajishirzi, ACL 2020).

    symmetry      "suppose more X happens, how will it affect Y" -> more, so "suppose less X happens ..." -> less. The opposite of the
                  change or of the effect turns the answer round; the opposite of both keeps it.
    transitivity  X -> Y is more and Y -> Z is more (less), so X -> Z is more (less).

Which words are opposites, and which choices, is told by `ifqa.reading.choice.lexicon`.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from ifqa.reading.choice.lexicon import direction, opposite
from ifqa.reading.choice.stems import parts, worded
from ifqa.records import Question
from ifqa.training.choice.answered import right


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
