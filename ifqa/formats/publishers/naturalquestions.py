"""Natural Questions: queries of Google with a Wikipedia page and annotated spans (Kwiatkowski et al., TACL 2019).

Files (github.com/google-research-datasets/natural-questions, README.md and text_utils.py): the original
`nq-train-00.jsonl` to 49 and `nq-dev-00.jsonl` to 04, or the simplified `simplified-nq-train.jsonl` with
`nq-dev-all.jsonl`, each also with the publisher's prefix `v1.0-simplified_`. A simplified line (an original one has
`document_tokens`, a list of {"token", "html_token"}, for the text):

    {"example_id": 3902, "question_text": "...", "document_text": "<P> A string is a list ... </P>", "document_url": "...",
     "annotations": [{"long_answer": {"start_token": 0, "end_token": 12}, "yes_no_answer": "NONE",
                      "short_answers": [{"start_token": 5, "end_token": 8}]}], "long_answer_candidates": [...]}

The gold answers are the short answers of all annotators, each span on its own, with repetitions, as in the authors'
release; a question without one is without an answer. The context is the whole page without its tags (the authors cut it
at 10,000 tokens). `dev` is the validation part (71 causal questions in the paper). The test part is not published; the
paper's 315,203 questions are train and dev.
"""

import re
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
    identifier,
    json_lines,
    mapping,
    objects,
    split_of,
)
from ifqa.storage.files import field

_TAG = re.compile(r"</?[A-Za-z][^ ]*>")
_PREFIX = r"(v1\.0-simplified_)?"


def _choose(found: Sequence[Part]) -> list[Part]:
    train = matching(found, _PREFIX + r"simplified-nq-train\.jsonl", r"nq-train-\d\d\.jsonl")
    return train + matching(found, _PREFIX + r"(simplified-nq-dev|nq-dev-all)\.jsonl", r"nq-dev-\d\d\.jsonl")


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    def parse(part: Part) -> Parse:
        return partial(_found, split_of(part.base.replace("simplified", "")))

    return json_lines(reading, chosen, parse)


def _found(split: str, record: dict[str, Any], where: str) -> Iterable[Found]:
    question = field(record, "question_text", str, where)

    def rest() -> Rest:
        tokens = _tokens(record, where)
        spans = [
            span
            for annotation in objects(record, "annotations", where)
            for span in objects(annotation, "short_answers", where)
        ]
        answers = [_text(tokens[slice(*_ends(span, len(tokens), where))]) for span in spans]
        return Rest(identifier(record, "example_id", where), _text(tokens), answers, split)

    return (Found(question, rest),)


def _tokens(record: dict[str, Any], where: str) -> list[str]:
    """The page's tokens, with an empty string for each tag, so that spans count right."""
    if "document_text" in record:  # split at single blanks, says the publisher: other blanks are within tokens
        tokens = field(record, "document_text", str, where).split(" ")
        return ["" if _TAG.fullmatch(token) else token for token in tokens]
    if "document_tokens" not in record:
        raise IfqaError(f"{where}: key 'document_text' or 'document_tokens' is missing")
    found = []
    for one in objects(record, "document_tokens", where):
        found.append("" if one.get("html_token") else field(one, "token", str, where))
    return found


def _ends(span: object, count: int, where: str) -> tuple[int, int]:
    ends = mapping(span, where)
    first, last = (field(ends, key, int, where) for key in ("start_token", "end_token"))
    if not 0 <= first <= last <= count:
        raise IfqaError(f"{where}: a short answer goes from token {first} to {last}; the page has {count} tokens")
    return first, last


def _text(tokens: Sequence[str]) -> str:
    return " ".join(token for token in tokens if token)


LAYOUT = Layout(
    "Natural Questions",
    "simplified-nq-train.jsonl.gz and nq-dev-all.jsonl.gz, or nq-train-00.jsonl.gz ... and nq-dev-00.jsonl.gz ...",
    _choose,
    _units,
)
