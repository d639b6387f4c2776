"""The rows of a tuning: the tokens of prompts as the reader sends them, and those of the answers to learn."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ifqa.identities import gold_id
from ifqa.llms.hf import HF
from ifqa.prompting.context_window import fit_prompt
from ifqa.prompting.demonstrations import Demo
from ifqa.prompting.prompts import Prompt
from ifqa.records import Passage, Question
from ifqa.training.llm.pairs import Pair, pairs
from ifqa.training.material import Material, training_passages
from ifqa.training.span.examples import batches


class Row(TypedDict, total=False):
    """The tokens of a prompt, and of one or two answers with their end: the right one, and the rejected one."""

    prompt: list[int]
    answers: list[list[int]]
    reference: list[float]


class Asks:
    """Makes the tokens of prompts as the reader's language model gets them, and those of the answers to learn.

    Args:
        reader: the language model.
        prompt: without reasoning.
        most: tokens of a prompt and its answer.
    """

    def __init__(self, reader: HF, prompt: Prompt, most: int) -> None:
        self._reader, self._prompt = reader, prompt
        self._window = min(most, reader.window)
        self._end: int = reader.tokenizer.eos_token_id
        self.pad: int = reader.tokenizer.pad_token_id or 0

    def row(self, question: Question, passages: Sequence[Passage], *answers: str) -> Row | None:
        """A question's row; None if its prompt does not fit even without passages."""
        reader, prompt = self._reader, self._prompt
        fitted = fit_prompt(prompt, question.text, passages, reader, choices=question.choices, window=self._window)
        if fitted.problem:
            return None
        [request] = fitted.requests()
        said = [prompt.show(Demo(question.text, answer)) for answer in answers]
        if not reader.chat:
            said = [text.removeprefix(prompt.opening) for text in said]
        tokens = [[*reader.tokenise(text, add_special_tokens=False), self._end] for text in said]
        return {"prompt": reader.ids(request), "answers": [one[: prompt.max_tokens] for one in tokens]}


def with_answers(material: Material, asks: Asks, settings: Mapping[str, Any]) -> list[Row]:
    """A row for each question and pass, in training order, with the passages that are drawn for it."""
    rows: list[Row] = []
    several = [
        (question, ranking)
        for question, ranking in zip(material.questions, material.rankings, strict=True)
        if question.answers and question.answers[0].strip()
    ]
    for epoch in range(settings["epochs"]):
        draw = random.Random(f"{settings['seed']} {epoch}")
        made = []
        for question, ranking in several:
            gold = [Passage(gold_id(text), "", text) for text in question.gold_passages]
            apart = draw.random() < settings["alone"]
            shown = gold if apart and gold else training_passages(question, ranking, settings["passages"], "included")
            made.append(asks.row(question, shown, question.answers[0]))
        rows += _ordered(made, settings, epoch)
    return rows


def with_preferences(material: Material, asks: Asks, settings: Mapping[str, Any]) -> list[Row]:
    """A row for each pair and pass, in training order."""
    made = [_preferred(asks, one) for one in pairs(material.questions, settings["seed"])]
    return [row for epoch in range(settings["epochs"]) for row in _ordered(made, settings, epoch)]


def _preferred(asks: Asks, pair: Pair) -> Row | None:
    shown = [Passage(gold_id(text), "", text) for text in pair.passages]
    return asks.row(pair.question, shown, pair.chosen, pair.rejected)


def _ordered(rows: Sequence[Row | None], settings: Mapping[str, Any], epoch: int) -> list[Row]:
    """The rows of a pass, shuffled, with rows of similar length beside each other."""
    there = [row for row in rows if row]
    groups = batches(there, settings["batch"], f"{settings['seed']} {epoch}", lambda row: len(row["prompt"]))
    return [row for group in groups for row in group]
