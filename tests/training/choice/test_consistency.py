"""Training on consistency: the questions that follow from others, and the losses, computed by hand."""

from dataclasses import replace

import pytest
import torch
from tiny_choice import CHOICES, contexts, questions

from ifqa.errors import IfqaError
from ifqa.protocols import TrainingData
from ifqa.reading.multiple_choice.wiqa_question import worded
from ifqa.records import Question
from ifqa.training.choice.network import ChoiceTrainer, Rows, losses
from ifqa.training.choice.questions import followed, mirrored


class Plain(ChoiceTrainer):
    def encode(self, question, passages):
        return question

    def collate(self, encoded):
        return {}


TRAINER = Plain(epochs=3, batch=4, learning_rate=0.1)


def asked(change: str, effect: str, answer: str, **changes: object) -> Question:
    return replace(Question("w/0", worded(change, effect), (answer,), choices=CHOICES, group="rain"), **changes)


def told(several: list[Question]) -> list[tuple[str, str]]:
    return [(one.text, one.answers[0]) for one in several]


def test_the_opposite_of_one_side_turns_the_answer_and_of_both_keeps_it() -> None:
    assert told(mirrored(asked("more rain falls", "LESS dust", "less"))) == [
        (worded("less rain falls", "LESS dust"), "more"),
        (worded("more rain falls", "MORE dust"), "more"),
        (worded("less rain falls", "MORE dust"), "less"),
    ]


def test_no_effect_stays_and_a_side_without_a_word_is_not_turned() -> None:
    assert told(mirrored(asked("a dog barks", "more mud", "no effect"))) == [
        (worded("a dog barks", "less mud"), "no effect")
    ]
    assert mirrored(asked("a dog barks", "mud", "more")) == []
    assert mirrored(asked("more rain", "mud", "up", choices=("up", "no effect"))) != []
    assert mirrored(asked("more rain", "mud", "more", choices=("more", "no effect"))) == []  # nothing says less


def test_chains_begin_with_more_and_end_in_the_second_answer() -> None:
    several = [
        asked("rain", "mud", "more"), asked("mud", "dust", "less"), asked("mud", "worms", "more"), asked("mud", "dogs", "no effect"),
        asked("sun", "mud", "less"), asked("mud", "rain", "more"), asked("mud", "frogs", "more", group="elsewhere"),
    ]  # fmt: skip
    found = followed(several)
    assert found.keys() == {0}  # mud -> rain -> mud is none
    assert [(second, told([third])[0]) for second, third in found[0]] == [
        (1, (worded("rain", "dust"), "less")), (2, (worded("rain", "worms"), "more"))
    ]  # fmt: skip


def test_other_words_are_refused() -> None:
    with pytest.raises(IfqaError, match="is not: suppose CHANGE happens"):
        mirrored(replace(asked("a", "b", "more"), text="What if?"))


def rows(**changes: object) -> Rows:
    several = [
        asked("rain", "more mud", "more"),
        asked("more mud", "dust", "less"),
        asked("a dog", "more mud", "no effect"),
    ]
    return Rows(replace(TRAINER, **changes), TrainingData(several, [[]] * 3, "rain"))


def test_consistency_is_off_by_default() -> None:
    assert all(len(rows()[n].asked) == 1 for n in range(9))


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"symmetry": 0.5}, {"rain": [1, 0], "more mud": [1, 0], "a dog": [1, 0]}),
        ({"transitivity": 0.1}, {"rain": [1, 0, 0], "more mud": [1], "a dog": [1]}),
        ({"augment": True}, {"rain": [1, 1, 0, 1], "more mud": [1, 1], "a dog": [1, 1]}),
    ],
)
def test_what_a_question_is_trained_with(changes: dict[str, float], counts: dict[str, list[int]]) -> None:
    made = rows(**changes)
    found = [made[n] for n in range(9)]
    assert found == [rows(**changes)[n] for n in range(9)]  # by the seed alone
    for group in found:
        [change] = [one for one in counts if group.asked[0].read.text.startswith(f"suppose {one} happens")]
        assert [one.counted for one in group.asked] == counts[change]
    assert sorted(one.asked[0].read.text for one in found[:3]) == sorted(one.text for one in made.questions)


def test_a_steps_losses_are_those_computed_by_hand() -> None:
    made = rows(augment=True)
    start = next(n for n in range(3) if len(made[n].asked) == 4)  # the first of a chain
    step = made.collated([made[start], made[(start + 1) % 3]])
    assert step["mirrors"].tolist() == [[0, 1], [4, 5]]
    assert step["chains"].tolist() == [[0, 2, 3]]
    z = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    label, counted = step["choice"].tolist(), [0, 1, 3, 4, 5]
    entropy = -sum(torch.log_softmax(z[n], 0)[label[n]] for n in counted) / 5
    assert torch.allclose(losses(z, step, TRAINER), entropy)
    symmetry = sum(abs(z[a, label[a]] - z[b, label[b]]) for a, b in ((0, 1), (4, 5))) / 2
    assert torch.allclose(losses(z, step, replace(TRAINER, symmetry=0.5)), entropy + 0.5 * symmetry)
    chain = abs(z[0, 0] + z[2, 0] - z[3, 0]) + abs(z[0, 0] + z[2, 1] - z[3, 1])
    assert torch.allclose(losses(z, step, replace(TRAINER, transitivity=0.1)), entropy + 0.1 * chain)


def test_every_pass_reads_each_question_once_in_another_order() -> None:
    several = questions()
    made = Rows(TRAINER, TrainingData(several, contexts(several), "rain"))
    passes = [[made[turn * 12 + n].asked[0].read.id for n in range(12)] for turn in range(3)]
    assert len(made) == 36
    assert all(sorted(one) == sorted(passes[0]) for one in passes)
    assert len({*map(tuple, passes)}) == 3
