"""Questions in the formats of other tools, written and read.

- *topics* (Pyserini, Anserini): `id TAB text`, one line for each question, white space in a text squeezed to blanks.
- *squad*: SQuAD 1.1's JSON. A question's context is its first gold passage that holds an answer, without a title.
- *lm-eval*: JSON lines for a task of lm-evaluation-harness (`dataset_path: json`), with everything a question has:

      {"id": "ifqa/full-dev/17", "question": "If …?", "answers": ["2", "two"], "context": "…", "passages": ["…"]}

  `passages` are the gold passages, and `context` is all of them as one text. So `doc_to_text: "{{context}} {{question}}"`
  and `doc_to_target: answers` make a task: any answer of that list counts as right (lm_eval/api/task.py, doc_to_target
  and process_results).
- *ifqa*: the layout of the IfQA release, which `ifqa.benchmarks.ifqa` reads.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.formats.runs import id_word
from ifqa.records import Question
from ifqa.storage.files import (
    create,
    field,
    json_line,
    read_jsonl,
    read_lines,
    text_field,
    texts_field,
    unicode_text,
    write,
)

_PACKED = (".gz", ".xz", ".bz2")
_LONGEST = 1 << 30  # characters of one JSON value; HotpotQA's training questions are one line of 540 MB
_TOKEN = re.compile(r"\w+|[^\w\s]")
_ORIGIN = ("source", "licence")  # kept as labels, for the manifest of what is trained on them
_ANSWER_KEYS = ("answers", "answer", "target")  # as SQuAD and DPR, nq_open, and tasks of lm-eval name them


def write_topics(path: Path, questions: Sequence[Question]) -> int:
    """Write Pyserini's topics; returns how many.

    Raises:
        IfqaError: an id holds white space, or an id or a text half a surrogate pair.
    """
    with create(path) as handle:
        for question in questions:
            text = unicode_text(" ".join(question.text.split()), "question", question.id)
            write(handle, f"{id_word(question.id)}\t{text}\n".encode())
    return len(questions)


def write_squad(path: Path, questions: Iterable[Question]) -> int:
    """Write SQuAD 1.1's JSON; returns how many questions it has.

    A question is left out if none of its gold passages holds an answer. SQuAD 2.0's `is_impossible` would not fit, because
    such a question has an answer, which must be inferred. An answer is written as it is spelt in the context, with its
    first offset there, in characters; answers that the context does not hold are dropped.

    Raises:
        IfqaError: no question is left.
    """
    data = [
        {"title": "", "paragraphs": [{"context": context, "qas": [
            {"id": question.id, "question": question.text, "answers": answers}]}]}
        for question in questions
        for context, answers in _first_context(question)
    ]  # fmt: skip
    if not data:
        raise IfqaError(
            f"{path} would hold no question: wanted one with an answer that stands in a gold passage; found none"
        )
    with create(path) as handle:
        write(handle, json_line({"version": "1.1", "data": data}))
    return len(data)


def write_lm_eval(path: Path, questions: Sequence[Question]) -> int:
    """Write JSON lines as above, with `choices` if a question has some; returns how many."""
    with create(path) as handle:
        for question in questions:
            record = {"id": question.id, "question": question.text, "answers": list(question.answers)}
            gold = {"context": "\n\n".join(question.gold_passages), "passages": list(question.gold_passages)}
            write(handle, json_line(record | gold | ({"choices": list(question.choices)} if question.choices else {})))
    return len(questions)


def write_ifqa(path: Path, questions: Sequence[Question]) -> int:
    """Write the layout of the IfQA release; returns how many. It requires answers: questions without any are left out.

    `idx` is the id without the benchmark and split that all ids share; it is written as a number if it is a number.

    Raises:
        IfqaError: an id holds white space, or no question is left.
    """
    shared = {question.id.rpartition("/")[0] for question in questions}
    bare = len(shared) == 1 and all(question.id.rpartition("/")[2] for question in questions)
    records = []
    for question in questions:
        name = id_word(question.id.rpartition("/")[2] if bare else question.id)
        index = int(name) if re.fullmatch(r"0|[1-9][0-9]{0,14}", name) else name
        if question.answers:
            gold = list(question.gold_passages)
            records.append(
                {"idx": index, "question": question.text, "answers": list(question.answers), "context": gold}
            )
    if not records:
        raise IfqaError(f"{path} would hold no question: wanted one with an answer, found none")
    with create(path) as handle:
        write(handle, json.dumps(records, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
    return len(records)


#: Format -> the function that writes questions in it.
WRITERS: dict[str, Callable[[Path, Sequence[Question]], int]] = {
    "topics": write_topics,
    "squad": write_squad,
    "lm-eval": write_lm_eval,
    "ifqa": write_ifqa,
}


def read_questions(path: Path) -> list[Question]:
    """The questions of a file, plain or compressed: topics (.tsv), SQuAD (.json) or records (.json, .jsonl).

    Records are a JSON list or JSON lines of objects. Each has a `question`, and may have: `id` or `idx`, else its number
    from 1; `answers`, `answer` or `target`: a text, a list, or the objects of SQuAD or TriviaQA; `passages` or `context`: a
    text or a list; `choices`; `source` and `licence`, which become labels. This covers lm-eval, the IfQA release, DPR and
    FiD. SQuAD's impossible questions have no answers.

    Raises:
        IfqaError: the file is missing, has another format or no questions, or two questions have the same id.
    """
    suffix = next((Path(path.name.removesuffix(end)).suffix for end in _PACKED if path.name.endswith(end)), path.suffix)
    if suffix == ".tsv":
        questions = list(_topics(path))
    elif suffix == ".jsonl":
        records = ((f"{path}:{number}", record) for number, record in read_jsonl(path))
        questions = [_record(record, number, where) for number, (where, record) in enumerate(records, start=1)]
    elif suffix == ".json":
        questions = list(_json(path))
    else:
        raise IfqaError(f"{path}: wanted questions in a .tsv (topics), .json (SQuAD, IfQA) or .jsonl (lm-eval)")
    return distinct(path, questions)


def distinct(path: Path, questions: list[Question]) -> list[Question]:
    """The questions of a file, once it is known that there are some and that each has an id of its own.

    Raises:
        IfqaError: there is none, or two have the same id.
    """
    if not questions:
        raise IfqaError(f"{path}: wanted questions, found none")
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise IfqaError(f"{path}: two questions have the id {question.id!r}; wanted an id of its own for each")
        seen.add(question.id)
    return questions


def _topics(path: Path) -> Iterator[Question]:
    for number, line in read_lines(path):
        question_id, _, text = line.strip().partition("\t")
        if line.strip() and (question_id.split() != [question_id] or not text.strip()):
            raise IfqaError(
                f"{path}:{number}: wanted 'id TAB question', the id without white space; found {line[:80]!r}"
            )
        if line.strip():
            yield Question(question_id, text)


def _json(path: Path) -> Iterator[Question]:
    value = read_value(path)
    if isinstance(value, list):
        for number, record in enumerate(value, start=1):
            yield _record(record, number, f"{path}: question {number}")
    elif isinstance(value, dict) and isinstance(value.get("data"), list):
        yield from squad(value["data"], str(path))
    else:
        raise IfqaError(f"{path}: wanted a list of questions, or SQuAD's object with a list 'data'; found neither")


def read_value(path: Path) -> object:
    """The value of a JSON file, compressed or not, of bounded length.

    Raises:
        IfqaError: the file is missing, too long or not JSON.
    """
    try:
        return json.loads("\n".join(_lines(path)))
    except json.JSONDecodeError as error:
        raise IfqaError(f"{path}:{error.lineno}: not JSON ({error.msg} at column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise IfqaError(f"{path}: not JSON that can be read ({error})") from error


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file that is a single JSON value, possibly on one line; their total length is bounded."""
    size = 0
    for number, line in read_lines(path, longest=_LONGEST):
        size += len(line)
        if size > _LONGEST:
            raise IfqaError(
                f"{path}:{number}: more than {_LONGEST:,} characters so far; wanted a smaller file, or .jsonl"
            )
        yield line


def squad(data: list[object], path: str) -> Iterator[Question]:
    """The questions of SQuAD's list of articles; `path` names the file in messages.

    Raises:
        IfqaError: an article has another layout.
    """
    for number, article in enumerate(data, start=1):
        where = f"{path}: article {number}"
        for paragraph in field(_object(article, where), "paragraphs", list, where):
            context = text_field(_object(paragraph, where), "context", where)
            for qa in field(paragraph, "qas", list, where):
                answers = _marked(_object(qa, where).get("answers", []), "answers", where)
                if qa.get("is_impossible") is True:
                    answers = ()
                yield Question(_id(qa, 0, where), text_field(qa, "question", where), answers, (context,))


def _record(value: object, number: int, where: str) -> Question:
    record = _object(value, where)
    key = next((key for key in _ANSWER_KEYS if key in record), "")
    answers = record.get(key)
    if isinstance(answers, dict):  # as `datasets` has SQuAD and TriviaQA
        answers = answers.get("text", answers.get("aliases"))
    gold = "passages" if "passages" in record else "context"
    return Question(
        _id(record, number, where),
        text_field(record, "question", where),
        _marked(answers, key, where),
        _texts(record.get(gold), gold, where),
        _texts(record.get("choices"), "choices", where),
        labels=tuple((name, text_field(record, name, where)) for name in _ORIGIN if record.get(name)),
    )


def _object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise IfqaError(f"{where}: wanted an object, found {type(value).__name__}")
    return value


def _id(record: dict[str, object], number: int, where: str) -> str:
    value = record.get("id", record.get("idx", number or None))
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise IfqaError(f"{where}: 'id' must be text or a whole number, found {value!r}")
    return unicode_text(str(value), "id", where)


def _marked(value: object, key: str, where: str) -> tuple[str, ...]:
    """Answers as texts, or as SQuAD has them, objects with a `text` and its place; each text once."""
    if isinstance(value, list) and any(isinstance(answer, dict) for answer in value):
        value = [field(_object(answer, where), "text", str, where) for answer in value]
        return tuple(dict.fromkeys(_texts(value, key, where)))  # one of each annotator, often the same
    return _texts(value, key, where)


def _texts(value: object, key: str, where: str) -> tuple[str, ...]:
    """A text or a list of texts as a tuple; empty for None and for a blank text."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    return texts_field({key: [value] if isinstance(value, str) else value}, key, where)


def _first_context(question: Question) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """The first gold passage that holds an answer, with the answers in it; nothing if none does."""
    for context in question.gold_passages:
        spans = dict.fromkeys(span for answer in question.answers if (span := find_answer(context, answer)))
        if spans:
            yield context, [{"text": context[start:end], "answer_start": start} for start, end in spans]
            return


def find_answer(text: str, answer: str) -> tuple[int, int] | None:
    """The first place of an answer in a text, as whole words: start and end in characters; None if it is not there.

    White space may differ. Upper and lower case may differ if no place has the same case.
    """
    tokens = _TOKEN.findall(answer)
    if not tokens:
        return None
    pattern = re.escape(tokens[0])
    for before, token in pairwise(tokens):
        both_words = re.match(r"\w", before) and re.match(r"\w", token)
        pattern += (r"\s+" if both_words else r"\s*") + re.escape(token)
    edges = [r"\b" if re.match(r"\w", token) else "" for token in (tokens[0], tokens[-1])]
    pattern = edges[0] + pattern + edges[1]
    match = re.search(pattern, text) or re.search(pattern, text, re.IGNORECASE)
    return match.span() if match else None
