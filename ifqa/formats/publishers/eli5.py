"""ELI5: questions and answers of the forum "Explain like I'm five" (Fan et al., ACL 2019).

Its publisher gives a script that collects the texts. The authors took Hugging Face's (datasets/eli5/eli5.py of
huggingface/datasets); saved with `to_json` as `train_eli5.jsonl`, a line is

    {"q_id": "5lchat", "title": "...", "selftext": "", "answers": {"a_id": ["..."], "text": ["..."], "score": [7]}, ...}

and in KILT (github.com/facebookresearch/KILT; `eli5-train-kilt.jsonl`)

    {"id": "5lchat", "input": "...", "output": [{"answer": "...", "meta": {"score": 7}}, {"provenance": [...]}]}

The question is the title with the text below it: the paper's causal questions have 32.5 words on average, which titles
alone do not reach. That cannot be verified: the authors' release holds ELI5's ids alone. Every answer is a gold answer.
There is no context. The paper's 272,634 questions are the training part alone, and its 13,104 to test on are 10% of the
131,033 causal ones: so only the training part is read, and the random split stands for the original one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

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
    mapping,
    objects,
    strings,
)
from ifqa.storage.files import field


def _choose(found: Sequence[Part]) -> list[Part]:
    return matching(found, r"train_eli5\.jsonl?", r"eli5-train-kilt\.jsonl")


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    def parse(part: Part) -> Parse:
        return _kilt if "kilt" in part.base else _reddit

    return json_lines(reading, chosen, parse)


def _reddit(record: dict[str, Any], where: str) -> Iterable[Found]:
    pieces = field(record, "title", str, where), any_text(record, "selftext", where)

    def rest() -> Rest:
        answers = strings(mapping(record.get("answers"), f"{where}: 'answers'"), "text", where)
        return Rest(identifier(record, "q_id", where), "", answers, "both")

    return (Found(" ".join(piece.strip() for piece in pieces if piece.strip()), rest),)


def _kilt(record: dict[str, Any], where: str) -> Iterable[Found]:
    def rest() -> Rest:
        answers = [any_text(one, "answer", where) for one in objects(record, "output", where)]
        return Rest(identifier(record, "id", where), "", answers, "both")

    return (Found(field(record, "input", str, where), rest),)


LAYOUT = Layout("ELI5", "train_eli5.jsonl, or eli5-train-kilt.jsonl", _choose, _units)
