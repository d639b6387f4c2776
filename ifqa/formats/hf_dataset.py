"""Writes questions as a folder that the library `datasets` loads: JSON lines and a dataset card."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import FormatError
from ifqa.records import Question
from ifqa.storage.files import atomic_write, write_bytes, write_jsonl
from ifqa.version import __version__

CARD, DATA = "README.md", "data"  # the files of such a folder

_CARD = """\
---
pretty_name: {title}
task_categories:
- question-answering
dataset_info:
  features:
  - name: id
    dtype: string
  - name: question
    dtype: string
  - name: answers
    sequence: string
  - name: passages
    sequence: string
  - name: choices
    sequence: string
  - name: context
    dtype: string
  - name: group
    dtype: string
  - name: labels
    sequence:
      sequence: string
  splits:
  - name: {split}
    num_bytes: {size}
    num_examples: {count}
configs:
- config_name: default
  data_files:
  - split: {split}
    path: {path}
---

# {title}

{count:,} questions, written by ifqa {version} from {source}. Load them with

```python
from datasets import load_dataset

questions = load_dataset("FOLDER", split={quoted})
```

| column | content |
|---|---|
| `id` | the question's id in ifqa |
| `question` | the question |
| `answers` | every right form of its answer; empty if there is none |
| `passages` | the annotated passages: the texts that hold the facts |
| `choices` | the options of a multiple-choice question |
| `context` | a text that comes with the question |
| `group`, `labels` | its part of the benchmark; further facts, as pairs of a name and a value |

The licence is that of the source: add it above (`license:`) before you publish the folder.
"""


def write_dataset(folder: Path, questions: Sequence[Question], source: str) -> int:
    """Write a new folder with the questions of `source`, such as "ifqa:full-dev", as one split.

    The folder is written aside and renamed. Its manifest is the card, written last. Returns the
    number of questions. Raises FormatError if there are none.
    """
    if not questions:
        raise FormatError(f"{folder} would be empty: wanted questions, found none in {source}")
    split = re.sub(r"\W+", "_", source.rpartition(":")[2]).strip("_") or "questions"
    aside = folder.with_name(f".{folder.name}.tmp")
    if aside.exists():
        shutil.rmtree(aside)
    path = f"{DATA}/{split}.jsonl"
    count = write_jsonl(
        aside / path,
        (
            {
                "id": question.id,
                "question": question.text,
                "answers": question.answers,
                "passages": question.gold_passages,
                "choices": question.choices,
                "context": question.context,
                "group": question.group,
                "labels": question.labels,
            }
            for question in questions
        ),
    )
    card = _CARD.format(
        title=json.dumps(source),
        source=f"`{source}`",
        split=split,
        quoted=f'"{split}"',
        path=path,
        count=count,
        size=(aside / path).stat().st_size,
        version=__version__,
    )
    with atomic_write(aside / CARD) as handle:
        write_bytes(handle, card.encode())
    if folder.exists():
        shutil.rmtree(folder)
    aside.rename(folder)
    return count


def is_dataset(folder: Path) -> bool:
    """Whether a folder holds nothing but what `write_dataset` writes."""
    names = {path.name for path in folder.iterdir()}
    return names == {CARD, DATA} and all(
        path.suffix == ".jsonl" for path in (folder / DATA).iterdir()
    )
