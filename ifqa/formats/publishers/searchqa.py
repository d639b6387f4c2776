"""SearchQA: questions of the quiz Jeopardy! with snippets that Google found (Dunn et al. 2017).

Files (github.com/nyu-dl/dl4ir-searchQA, README.md; the loader datasets/search_qa/search_qa.py of huggingface/datasets):
`train.zip`, `val.zip` and `test.zip` of the folder data_json, or the folders unpacked, a JSON file for each question,

    {"id": "000000", "category": "...", "question": "...", "answer": "...", "value": "$400", "round": "...",
     "show_number": "4680", "air_date": "...",
     "search_results": [{"url": "...", "title": "...", "snippet": "...", "related_links": null}, ...]}

The publisher's `train.txt` and so on hold fewer questions (140,461, those with over 40 snippets) and are not read: the
paper's 216,136 are the JSON files' 151,295 + 21,613 + 43,228. The context is the snippets, a line each. `val` is the
validation part; the paper tests on 117 causal questions, which is between what val (10%) and test (20%) would have of
its 780, so the authors' choice cannot be told. Questions of `test` are in the random split alone.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath

from ifqa.errors import IfqaError
from ifqa.formats.publishers.parts import Part, Reading
from ifqa.formats.publishers.reading import Causal, Found, Layout, Rest, Units, any_text, mapping, objects
from ifqa.storage.files import field


def _split(part: Part) -> str:
    """The last folder named train, val or test; empty if there is none."""
    return next((piece for piece in reversed(PurePosixPath(part.name).parts[:-1]) if piece in _SPLITS), "")


_SPLITS = {"train": "train", "val": "valid", "test": ""}


def _choose(found: Sequence[Part]) -> list[Part]:
    chosen = [part for part in found if _split(part) and re.fullmatch(r"\w+\.json", part.base)]
    for one, other in pairwise(chosen):
        if one.name == other.name:
            raise IfqaError(f"{one} and {other}: one question twice; keep the archive or the folder")
    return chosen


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    for part in chosen:
        yield partial(_found, reading, part)


def _found(reading: Reading, part: Part) -> Iterable[Found]:
    with reading.json(part) as stream:
        where = f"{part}:{stream.line}"
        record = mapping(stream.value(), where)
    question = field(record, "question", str, where)

    def rest() -> Rest:
        snippets = [any_text(one, "snippet", where) for one in objects(record, "search_results", where)]
        split = _split(part)
        name = f"{split}-{part.base.removesuffix('.json')}"
        return Rest(name, "\n".join(filter(None, snippets)), [field(record, "answer", str, where)], _SPLITS[split])

    return (Found(question, rest),)


LAYOUT = Layout("SearchQA", "train.zip, val.zip and test.zip (of data_json)", _choose, _units)
