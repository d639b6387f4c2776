"""Answers of other systems: JSON lines, results of FlashRAG, and logs of lm-eval and inspect.

| written by | an answer in it |
|---|---|
| ifqa, as JSON lines | `{"question_id": "ifqa/full-dev/17", "answer": "…", "confidence": 0.8}` |
| FlashRAG: `intermediate_data.json` | `{"id": "1", "question": "…", "output": {"pred": "…"}}` |
| lm-eval: `samples_….jsonl` | `{"doc": {"question": "…"}, "filtered_resps": ["…"]}` |
| inspect: `….eval`, `….json` | `{"id": 1, "input": "…", "output": {"completion": "…"}}` |
"""

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import Field

from ifqa.errors import FormatError, MissingInput
from ifqa.formats.ctxs import is_json_list, iter_entries
from ifqa.formats.tables import objects_field, row_id
from ifqa.settings import StoredModel, Text, parse_stored
from ifqa.storage.files import (
    LARGEST_JSON,
    decode_object,
    read_jsonl,
    read_lines,
    read_packed_json,
    require_file,
    typed_field,
    unicode_text,
)

_FLASHRAG = "FlashRAG"
_LM_EVAL = "lm-eval"
_INSPECT = "inspect"


class AnswerLine(StoredModel):
    """A line of ifqa's own file of answers; `question_id` is in the form "ifqa/full-dev/17"."""

    question_id: Text
    answer: str
    confidence: Annotated[int | float, Field(ge=0, le=1)] | None = None


@dataclass(frozen=True, slots=True)
class OtherAnswer:
    """An answer of another system.

    Attributes:
        where: its place in the file, for errors.
        question_id: the question's id in that system's data; empty if it has none.
        question: the question's text; empty if unknown.
        answer: the answer; empty if there is none.
        error: why there is no answer.
        confidence: the probability that the answer is right.
    """

    where: str
    question_id: str
    question: str
    answer: str
    error: str = ""
    confidence: float | None = None


def read_answers(path: Path) -> tuple[str, list[OtherAnswer]]:
    """The tool that wrote a file of answers, "" for ifqa's own JSON lines, and the answers.

    Files may be compressed (`.xz`, `.gz`, `.bz2`). Raises IfqaError for what is none of these.
    """
    tool, answers = _read_answers(path)
    if not answers:
        raise FormatError(f"{path}: wanted answers, found none")
    return tool, answers


def _read_answers(path: Path) -> tuple[str, list[OtherAnswer]]:
    require_file(path, "file of answers")
    if path.is_file() and zipfile.is_zipfile(path):
        return _INSPECT, list(_read_inspect(path, _iter_archive(path)))
    if is_json_list(path):
        entries = ((f"{path}: entry {n}", entry) for n, entry in enumerate(iter_entries(path), 1))
        return _FLASHRAG, [_parse_flashrag(entry, where) for where, entry in entries]
    first = _first_object(path)
    if first is None or "samples" in first:
        return _INSPECT, list(_read_inspect(path, _iter_log(path)))
    lines = ((f"{path}:{number}", record) for number, record in read_jsonl(path))
    if "resps" in first:
        return _LM_EVAL, list(_read_lm_eval(path, lines))
    if "output" in first:
        return _FLASHRAG, [_parse_flashrag(record, where) for where, record in lines]
    return "", [_parse_line(record, where) for where, record in lines]


def _first_object(path: Path) -> dict[str, object] | None:
    """The object in the first line of a file of JSON lines; None if it spans several lines."""
    line = next((text for _, text in read_lines(path) if text.strip()), "{}")
    with suppress(FormatError):
        return decode_object(line, str(path))
    return None


def _parse_line(record: object, where: str) -> OtherAnswer:
    line = parse_stored(AnswerLine, record, where)
    return OtherAnswer(where, line.question_id, "", line.answer, confidence=line.confidence)


def _parse_flashrag(item: Mapping[str, object], where: str) -> OtherAnswer:
    """An item of FlashRAG's `Dataset.save`: `pred` is the answer, after FlashRAG's own parsing."""
    output = typed_field(item, "output", dict, where)
    if "pred" not in output:
        found = ", ".join(map(repr, output)) or "nothing"
        raise FormatError(
            f"{where}: no 'pred' in 'output', found {found}; wanted the intermediate_data.json "
            "that FlashRAG writes after its evaluation (save_intermediate_data: True)"
        )
    answer = typed_field(output, "pred", str, where)
    return OtherAnswer(where, row_id(item, where), _text(item, "question", where), answer.strip())


def _read_lm_eval(path: Path, lines: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[OtherAnswer]:
    """The samples of `lm-eval run --log_samples`, of a task that generates text.

    lm-eval writes a line for each filter of a task; a file of several is refused.
    """
    filters: set[str] = set()
    for where, sample in lines:
        doc = typed_field(sample, "doc", dict, where)
        texts = typed_field(sample, "filtered_resps", list, where)
        if not texts or not all(isinstance(text, str) for text in texts):
            raise FormatError(
                f"{where}: 'filtered_resps' is not generated text; wanted samples of a task of "
                "the output type generate_until"
            )
        if len(set(texts)) > 1:
            raise FormatError(f"{where}: {len(texts)} different answers; wanted one (repeats: 1)")
        filters.add(str(sample.get("filter", "")))
        if len(filters) > 1:
            names = ", ".join(sorted(filters))
            raise FormatError(
                f"{path} has answers of several filters ({names}); keep the lines of one"
            )
        answer = unicode_text(texts[0].strip(), "filtered_resps", where)
        yield OtherAnswer(where, row_id(doc, where), _text(doc, "question", where), answer)


def _read_inspect(
    path: Path, samples: Iterable[tuple[str, Mapping[str, object]]]
) -> Iterator[OtherAnswer]:
    """The samples of an inspect log; each must have been asked once."""
    epochs: set[object] = set()
    for where, sample in samples:
        epochs.add(sample.get("epoch", 1))
        if len(epochs) > 1:
            raise FormatError(
                f"{path} has several answers to a question (epochs {sorted(map(str, epochs))}); "
                "wanted one: inspect eval --epochs 1"
            )
        yield _parse_inspect(sample, where)


def _parse_inspect(sample: Mapping[str, object], where: str) -> OtherAnswer:
    metadata = sample.get("metadata")
    question = _text(metadata, "question", where) if isinstance(metadata, dict) else ""
    error = sample.get("error")
    message = str(error.get("message", error)) if isinstance(error, dict) else str(error or "")
    answer = _scored_answer(sample) or _completion(sample, where)
    return OtherAnswer(
        where,
        row_id(sample, where),
        question or _input_text(sample.get("input")),
        "" if message else unicode_text(answer.strip(), "completion", where),
        error=" ".join(message.split()),
    )


def _scored_answer(sample: Mapping[str, object]) -> str:
    """The answer that the scorers took from the completion; "" if they took none, or several."""
    scores = sample.get("scores")
    found = {
        score["answer"]
        for score in (scores.values() if isinstance(scores, dict) else ())
        if isinstance(score, dict) and isinstance(score.get("answer"), str)
    }
    return found.pop() if len(found) == 1 else ""


def _completion(sample: Mapping[str, object], where: str) -> str:
    output = sample.get("output")
    completion = output.get("completion", "") if isinstance(output, dict) else ""
    if not isinstance(completion, str):
        raise FormatError(f"{where}: wanted a text as output.completion, found {completion!r:.40}")
    return completion


def _input_text(prompt: object) -> str:
    """The text of a sample's input, which may be a list of messages: that of the last."""
    if isinstance(prompt, list) and prompt and isinstance(prompt[-1], dict):
        prompt = prompt[-1].get("content")
    return prompt if isinstance(prompt, str) else ""


def _iter_log(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The samples of an inspect log in JSON."""
    log = read_packed_json(path)
    if not isinstance(log, dict) or not log.get("samples"):
        raise FormatError(
            f"{path}: not a file of answers; wanted JSON lines, or results of FlashRAG, lm-eval or "
            "inspect, with their samples"
        )
    for number, sample in enumerate(objects_field(log, "samples", str(path)), start=1):
        yield f"{path}: sample {number}", sample


def _iter_archive(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The samples of an inspect log in its own format, a ZIP archive with a file for each."""
    with suppress(ModuleNotFoundError):
        # Adds Zstandard, by which inspect compresses, to Python before 3.14
        import zipfile_zstd  # noqa: F401
    with zipfile.ZipFile(path) as archive:
        # The last of several entries of one name is the current one
        names = [
            name
            for name in dict.fromkeys(archive.namelist())
            if name.startswith("samples/") and name.endswith(".json")
        ]
        if not names:
            raise FormatError(f"{path}: an archive without samples; wanted a log of inspect")
        for name in names:
            where = f"{path}: {name}"
            yield where, decode_object(_read_member(archive, name, where), where, json.loads)


def _read_member(archive: zipfile.ZipFile, name: str, where: str) -> bytes:
    try:
        with archive.open(name) as member:
            return _read_whole(member, where)
    except NotImplementedError as error:  # a compression that Python lacks
        raise MissingInput(
            f"{where}: {error}; install what reads it: pip install 'ifqa[inspect]', or convert the "
            "log: inspect log convert LOG.eval --to json --output-dir FOLDER"
        ) from error
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise FormatError(f"{where}: damaged ({error}); copy the log again") from error


def _read_whole(member: IO[bytes], where: str) -> bytes:
    content = member.read(LARGEST_JSON + 1)
    if len(content) > LARGEST_JSON:
        raise FormatError(f"{where}: more than {LARGEST_JSON:,} bytes of JSON")
    return content


def _text(record: Mapping[str, object], key: str, where: str) -> str:
    """A text of a record; "" if it has none."""
    text = record.get(key)
    return unicode_text(text, key, where) if isinstance(text, str) else ""
