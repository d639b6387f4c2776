"""TriviaQA: questions of quiz pages with documents found for them (Joshi et al., ACL 2017).

Files (nlp.cs.washington.edu/triviaqa; the loader datasets/trivia_qa/trivia_qa.py of huggingface/datasets):
`unfiltered-web-train.json`, `unfiltered-web-dev.json` and `unfiltered-web-test-without-answers.json` (else
`web-train.json` and so on of the archive "rc"),

    {"Data": [{"Question": "...", "QuestionId": "tc_1", "QuestionSource": "...",
      "Answer": {"Value": "...", "Aliases": ["..."], "NormalizedAliases": ["..."], "NormalizedValue": "...", "Type": "..."},
      "EntityPages": [{"DocSource": "TagMe", "Filename": "A_page.txt", "Title": "A page"}],
      "SearchResults": [{"Description": "...", "Filename": "1/1_2.txt", "Rank": 0, "Title": "...", "Url": "..."}]}], ...}

and the documents, `evidence/wikipedia/FILENAME` and `evidence/web/FILENAME` of the archive "rc".

The gold answers are the value and its aliases. The context is the first document that is there, Wikipedia's pages
first, else the descriptions of the search results; what the authors took cannot be told. The file's name tells the
split: `dev` is the validation part (66 causal questions in the paper); the test part has no answers and only counts.
The paper's 109,767 questions are the unfiltered files'.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
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
    mapping,
    objects,
    split_of,
    strings,
)
from ifqa.storage.files import LONGEST_LINE, field

_FILES = r"web-(train|dev|test-without-answers)\.json"
_PLACES = {"EntityPages": "wikipedia", "SearchResults": "web"}


def _choose(found: Sequence[Part]) -> list[Part]:
    return matching(found, "unfiltered-" + _FILES, _FILES)


def _units(reading: Reading, chosen: Sequence[Part], causal: Causal) -> Units:
    for part in chosen:
        evidence = _evidence(part.path.parent)
        with reading.json(part) as stream:
            for _ in in_member(stream, part, "Data"):
                yield from json_elements(stream, part, partial(_found, evidence, split_of(part.base)))


def _evidence(folder: Path) -> Path | None:
    """The folder of documents: beside the questions, or up to two folders higher, as the archives lay it."""
    return next((up / "evidence" for up in (folder, *list(folder.parents)[:2]) if (up / "evidence").is_dir()), None)


def _found(evidence: Path | None, split: str, record: dict[str, Any], where: str) -> Iterable[Found]:
    def rest() -> Rest:
        answers: list[str] = []
        if "Answer" in record:
            answer = mapping(record["Answer"], f"{where}: 'Answer'")
            answers = list(dict.fromkeys([field(answer, "Value", str, where), *strings(answer, "Aliases", where)]))
        return Rest(identifier(record, "QuestionId", where), _context(evidence, record, where), answers, split)

    return (Found(field(record, "Question", str, where), rest),)


def _context(evidence: Path | None, record: dict[str, Any], where: str) -> str:
    descriptions = []
    for key, place in _PLACES.items():
        for page in objects(record, key, where) if key in record else []:
            if evidence and (text := _document(evidence / place, any_text(page, "Filename", where))):
                return text
            descriptions.append(any_text(page, "Description", where))
    return "\n".join(filter(None, descriptions))


def _document(folder: Path, name: str) -> str:
    """A document's text; empty if it is not there, or if its name leads out of the folder."""
    path = Path(os.path.normpath(folder / name)) if name and "\0" not in name else folder
    if path == folder or not path.is_relative_to(os.path.normpath(folder)) or not path.is_file():
        return ""
    with open(path, "rb") as handle:
        return handle.read(LONGEST_LINE).decode("utf-8", "replace").strip()


def _aside(folder: Path) -> Iterator[str]:
    """Name and size of every document, in the place of 650,000 checksums."""
    for place, folders, files in os.walk(folder):
        folders.sort()
        below = Path(place).relative_to(folder).parts
        if "evidence" in below:
            for file in sorted(files):
                yield f"{'/'.join(below)}/{file} {(Path(place) / file).stat().st_size}"


LAYOUT = Layout(
    "TriviaQA",
    "unfiltered-web-train.json, unfiltered-web-dev.json, unfiltered-web-test-without-answers.json, and evidence/",
    _choose,
    _units,
    _aside,
)
