"""SQuAD 2.0: questions on paragraphs of Wikipedia; a third of them have no answer there (Rajpurkar et al., ACL 2018).

Files (rajpurkar.github.io/SQuAD-explorer): `train-v2.0.json` and `dev-v2.0.json`,

    {"version": "v2.0", "data": [{"title": "...", "paragraphs": [{"context": "...", "qas": [{"id": "56be...", "question": "...",
     "is_impossible": false, "answers": [{"text": "...", "answer_start": 269}]}]}]}]}

The gold answers are those of all annotators, with repetitions, as in the authors' release; questions that cannot be
answered have none. The context is the paragraph. `dev` is the validation part (252 causal questions with an answer in
the paper); the test part is not published. The paper's 142,192 questions are train's 130,319 and dev's 11,873.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from ifqa.formats.publishers.parts import Part, Reading, matching
from ifqa.formats.publishers.reading import (
    Causal,
    Found,
    Layout,
    Rest,
    Units,
    any_text,
    identifier,
    in_member,
    json_elements,
    objects,
    split_of,
)
from ifqa.storage.files import field


def _choose(found: Sequence[Part]) -> list[Part]:
    return matching(found, r"(train|dev)-v2\.0\.json")


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    for part in chosen:
        with reading.json(part) as stream:
            for _ in in_member(stream, part, "data"):
                yield from json_elements(stream, part, partial(_found, split_of(part.base)))


def _found(split: str, article: dict[str, Any], where: str) -> Iterable[Found]:
    for paragraph in objects(article, "paragraphs", where):
        context = field(paragraph, "context", str, where)
        for one in objects(paragraph, "qas", where):
            yield Found(field(one, "question", str, where), partial(_rest, one, context, split, where))


def _rest(one: dict[str, Any], context: str, split: str, where: str) -> Rest:
    answers = [any_text(answer, "text", where) for answer in objects(one, "answers", where)]
    return Rest(identifier(one, "id", where), context, answers, split)


LAYOUT = Layout("SQuAD 2.0", "train-v2.0.json and dev-v2.0.json", _choose, _units)
