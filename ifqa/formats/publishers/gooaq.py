"""GooAQ: questions of Google's auto-complete with the answers of its answer boxes (Khashabi et al., EMNLP Findings 2021).

Files (github.com/allenai/gooaq, README.md; the loader datasets/gooaq/gooaq.py of huggingface/datasets): `gooaq.jsonl`,

    {"id": 1032187, "question": "...", "short_answer": null, "answer": "...", "answer_type": "feat_snip"}

and `split.json`: {"train": [[id, similarity], ...], "dev": [id, ...], "test": [id, ...]}.

The gold answer is `answer`, else `short_answer`; a collection stays the text of a list, as in the authors' release.
There is no context. The 2,500 questions of `dev` are the original validation part (the paper tests on 33 causal ones;
whether of dev or of test, which is as large, cannot be told). Those in `test` or in no list are in the random split
alone, as is everything without `split.json`.
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
    Parse,
    Rest,
    Units,
    any_text,
    identifier,
    json_lines,
)
from ifqa.storage.files import field

_LARGEST = 1 << 27  # of an id; the release's go up to about 8 million
_SPLITS = {"train": 1, "dev": 2}


def _choose(found: Sequence[Part]) -> list[Part]:
    questions = matching(found, r"gooaq\.jsonl?")
    return questions + matching(found, r"split\.json") if questions else []


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    questions, *splits = chosen
    of_ids = _splits(reading, splits[0]) if splits else bytearray()

    def parse(part: Part) -> Parse:
        return partial(_found, of_ids)

    yield from json_lines(reading, [questions], parse)


def _splits(reading: Reading, part: Part) -> bytearray:
    """The split of every id, a byte each: three million ids in a set would take 20 times the memory."""
    found = bytearray()
    with reading.json(part) as stream:
        for name in stream.members():
            if name not in _SPLITS:
                continue
            for _ in stream.elements():
                value = stream.value()
                number = value[0] if isinstance(value, list) and value else value
                if isinstance(number, float) and number.is_integer():
                    number = int(number)
                if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _LARGEST:
                    raise IfqaError(f"{part}:{stream.line}: wanted the id of a question, found {value!r:.40}")
                if number >= len(found):
                    found.extend(bytes(max(number + 1 - len(found), len(found))))
                found[number] = _SPLITS[name]
    return found


def _found(of_ids: bytearray, record: dict[str, Any], where: str) -> Iterable[Found]:
    question = field(record, "question", str, where)
    number = identifier(record, "id", where)

    def rest() -> Rest:
        code = of_ids[int(number)] if number.isdecimal() and len(number) < 12 and int(number) < len(of_ids) else 0
        answer = any_text(record, "answer", where) or any_text(record, "short_answer", where)
        return Rest(number, "", [answer], ("", "train", "valid")[code])

    return (Found(question, rest),)


LAYOUT = Layout("GooAQ", "gooaq.jsonl, and split.json for the original split", _choose, _units)
