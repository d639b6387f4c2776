"""HotpotQA: questions that take two paragraphs of Wikipedia to answer (Yang et al., EMNLP 2018).

Files (github.com/hotpotqa/hotpot, README.md, "JSON Format"): `hotpot_train_v1.1.json`, `hotpot_dev_distractor_v1.json`
(or `hotpot_dev_fullwiki_v1.json`, the same questions with retrieved paragraphs) and `hotpot_test_fullwiki_v1.json`,
each a list of

    {"_id": "5a8b...", "question": "...", "answer": "...", "type": "bridge", "level": "hard",
     "supporting_facts": [["Title", 0], ...], "context": [["Title", ["A sentence.", " Another."]], ...]}

The context is all its paragraphs, a line each, as "Title: sentences". `dev` is the validation part (35 causal questions
in the paper, and as many by the rules); the test part has no answers and only counts. The paper's 112,662 questions are
train's 90,447 and three times 7,405: it seems to count dev in both settings, which this does not.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from ifqa.errors import IfqaError
from ifqa.formats.publishers.parts import Part, Reading, matching
from ifqa.formats.publishers.reading import (
    Causal,
    Found,
    Layout,
    Rest,
    Units,
    any_text,
    identifier,
    json_elements,
    split_of,
)
from ifqa.storage.files import field


def _choose(found: Sequence[Part]) -> list[Part]:
    dev = matching(found, r"hotpot_dev_distractor_v1\.json", r"hotpot_dev_fullwiki_v1\.json")
    test = matching(found, r"hotpot_test_fullwiki_v1\.json")
    return [*matching(found, r"hotpot_train_v1\.1\.json"), *dev, *test]


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    for part in chosen:
        with reading.json(part) as stream:
            yield from json_elements(stream, part, partial(_found, split_of(part.base)))


def _found(split: str, record: dict[str, Any], where: str) -> Iterable[Found]:
    def rest() -> Rest:
        paragraphs = [_paragraph(one, where) for one in field(record, "context", list, where)]
        answers = [any_text(record, "answer", where)]
        return Rest(identifier(record, "_id", where), "\n".join(paragraphs), answers, split)

    return (Found(field(record, "question", str, where), rest),)


def _paragraph(found: object, where: str) -> str:
    title, sentences = found if isinstance(found, list) and len(found) == 2 else (None, None)
    if not isinstance(title, str) or not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
        raise IfqaError(f"{where}: 'context' must hold pairs of a title and a list of sentences, found {found!r:.60}")
    return f"{title}: {''.join(sentences).strip()}"


LAYOUT = Layout(
    "HotpotQA", "hotpot_train_v1.1.json, hotpot_dev_distractor_v1.json, hotpot_test_fullwiki_v1.json", _choose, _units
)
