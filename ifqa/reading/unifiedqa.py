"""Reader 'unifiedqa': a T5 reads the question and all its passages as one text, in UnifiedQA's format."""

import glob
import hashlib
import re
import string
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.protocols import Advance, Place, silent
from ifqa.reading.t5.base_reader import OpenedT5, T5Reader, open_t5
from ifqa.reading.t5.checkpoint import DEFAULT, checkpoint_folder, identity, sources_of
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import Natural, Positive, Precision, YesNo, checked

# CausalQA is webis-de/coling22-benchmark-for-causal-question-answering at fc72cfd8743d, its folder finetuning/
MAX_ANSWER = 500  # tokens of an answer, including the token that starts decoding (CausalQA evaluate_unifiedqa.py:47)
GROUP = "{group}"
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class UnifiedQA(T5Reader):
    """UnifiedQA-v2 (Khashabi et al. 2022), or any checkpoint of T5's family; greedy decoding, as CausalQA's baseline.

    The passages are joined in their order and cut off at `max_tokens`. A question without passages is answered from its
    own text alone. Batching changes no answer, except by bfloat16's rounding.

    What the model writes is split at tabs, and the first part is the answer, because CausalQA trains on all answers of a
    question, joined by tabs. T5's own tokenizers read a tab as a blank and so write none: the whole text is then the answer,
    as CausalQA scores it (evaluate_unifiedqa.py:61-71 splits the gold answers alone). ByT5's tokenizer keeps tabs.

    Args:
        checkpoint: a folder that `ifqa train unifiedqa` made, CausalQA's published folders, or a T5 of the hub; empty for
            allenai/unifiedqa-v2-t5-base-1363200. With `{group}` in its name, each group of questions (CausalQA's datasets) is
            answered by its own folder, as `models/unifiedqa-{group}`; one of them is in memory at a time.
        tokenizer: a folder or a model of the hub; empty for the checkpoint's own, or T5's if it has none.
        max_tokens: most tokens of question and passages together; 0 for the checkpoint's own (2048 by default).
        titles: whether passages' titles are read: "yes", "no", or "auto" for the checkpoint's own (yes).
        max_answer_tokens: most tokens of an answer, including the token that starts decoding.
        beams: 1 for greedy decoding; more beams take longer and that many times the memory.
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.
        precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware multiplies in it.
        batch_tokens: tokens encoded at a time, padding included; 0 for the device's default. Halved, with a message, if
            memory runs out.
        root: the folder that a relative checkpoint with `{group}` counts from.

    Attributes:
        family: split family the checkpoints were trained on; empty if `ifqa train unifiedqa` did not make them.
        trained_on: SHA-256 of the files of their training questions.
        label: shown with the scores if it is unknown what a checkpoint was trained on.

    Raises:
        IfqaError: a checkpoint is missing or not a T5, the groups' checkpoints were trained on several families, or a setting
            has an invalid value.
    """

    name = "unifiedqa"
    version = 1
    chunk = 64  # as many as are decoded together

    @checked("setting of reader 'unifiedqa'")
    def __init__(
        self,
        checkpoint: Place = "",
        tokenizer: Place = "",
        max_tokens: Natural = 0,
        titles: YesNo = "auto",
        max_answer_tokens: Annotated[int, Field(ge=2)] = MAX_ANSWER,
        beams: Positive = 1,
        device: str = "auto",
        precision: Precision = "auto",
        batch_tokens: Natural = 0,
        root: Path = Path(),
    ) -> None:
        self.family = self.trained(checkpoint, root)
        self._checkpoint, self._named = checkpoint, group_folders(checkpoint, root)
        folders = [checkpoint_folder(name, "unifiedqa") for name in self._named.values()]
        sources = [sources_of(folder, "unifiedqa") for folder in folders]
        self.trained_on = frozenset[str]().union(*sources)
        unknown = f"{checkpoint or DEFAULT['unifiedqa']} was not trained by ifqa and may have seen these questions"
        self.label = "" if all(sources) else unknown
        self._opener = partial(
            open_t5, "unifiedqa", tokenizer=tokenizer, max_tokens=max_tokens, titles=titles, beams=beams,
            max_answer_tokens=max_answer_tokens, device=device, precision=precision, batch_tokens=batch_tokens,
        )  # fmt: skip
        self._group = next(iter(self._named))
        self._t5: OpenedT5 | None = self._opener(self._named[self._group])

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """One prediction a question, in their order; `passages` are each question's, in the order in which they are read.

        Raises:
            IfqaError: a single question does not fit into the memory, or there is no checkpoint for a question's group.
        """
        groups: dict[str, list[int]] = defaultdict(list)
        for number, question in enumerate(questions):
            groups[self._group_of(question)].append(number)
        predictions: dict[int, Prediction] = {}
        for group in sorted(groups, key=lambda name: name != self._group):  # the one in memory first
            t5, numbers = self._opened(group), groups[group]
            texts = [[input_text(questions[n], passages[n], t5.conventions.titles)] for n in numbers]
            for number, (reading, text) in zip(numbers, t5.answer(texts), strict=True):
                read = tuple(passage.id for passage in passages[number])
                predictions[number] = Prediction(
                    questions[number].id, first_answer(text), completion=text, passage_ids=read, score=reading.score
                )
            advance(len(numbers))
        return [predictions[number] for number in range(len(questions))]

    def _group_of(self, question: Question) -> str:
        """The key in `_named` of a question's checkpoint."""
        group = question.group if GROUP in self._checkpoint else ""
        if group not in self._named:
            raise IfqaError(
                f"question {question.id} is of group {group!r}, and {self._checkpoint} is there for "
                f"{', '.join(self._named)} alone; train one with: ifqa train unifiedqa --dataset {group or 'NAME'}"
            )
        return group

    def _opened(self, group: str) -> OpenedT5:
        if self._t5 is None or group != self._group:
            import torch

            self._t5 = None  # its memory is needed
            torch.cuda.empty_cache()
            self._group, self._t5 = group, self._opener(self._named[group])
        return self._t5

    @classmethod
    def checkpoints(cls, checkpoint: str, root: Path = Path()) -> Mapping[str, str]:
        """Group -> its checkpoint; see `group_folders`."""
        return group_folders(checkpoint, root)

    @classmethod
    def fingerprint(cls, checkpoint: str = "", tokenizer: str = "", root: Path = Path(), **_: object) -> str:
        """SHA-256 over the files of all checkpoints, and the tokenizer's files if they are in another folder."""
        named = group_folders(checkpoint, root)
        files = [
            f"{group} {identity(checkpoint_folder(name, 'unifiedqa'), tokenizer)}\n" for group, name in named.items()
        ]
        return hashlib.sha256("".join(files).encode()).hexdigest()


def group_folders(checkpoint: str, root: Path = Path()) -> Mapping[str, str]:
    """Group -> the checkpoint that answers its questions; for a checkpoint without `{group}`, "" -> the checkpoint.

    Raises:
        IfqaError: no folder fits a checkpoint with `{group}`, or it has `{group}` twice.
    """
    if GROUP not in checkpoint:
        return {"": checkpoint}
    before, *after = str(root / checkpoint).split(GROUP)
    if len(after) > 1:
        raise IfqaError(f"checkpoint {checkpoint}: wanted {GROUP} once, found it {len(after)} times")
    places = sorted(glob.glob(f"{glob.escape(before)}*{glob.escape(after[0])}"))  # noqa: PTH207 - of an escaped, whole path
    folders = {path[len(before) : len(path) - len(after[0])]: path for path in places if Path(path).is_dir()}
    if not folders:
        raise IfqaError(
            f"checkpoint {checkpoint}: no folder has such a name; train one with: ifqa train unifiedqa --dataset NAME"
        )
    return folders


def input_text(question: Question, passages: Sequence[Passage], titles: bool = True) -> str:
    r"""A question and its passages as one text in UnifiedQA's format, normalised: `question \n (a) .. (b) .. \n (Title) text`.

    The separator is a blank, a backslash, an n and a blank (allenai/unifiedqa README.md, "Feeding data into UnifiedQA"). Parts
    that a question lacks are left out with their separator. Several passages follow each other with a blank between them,
    each after its title, as the documents of one question (encode_datasets.py, `read_and_parse_multiqa`). Line ends, tabs and
    repeated blanks become one blank, as there.
    """
    options = " ".join(f"({chr(ord('A') + n)}) {_line(choice)}" for n, choice in enumerate(question.choices))
    context = " ".join(filter(None, (_with_title(passage, titles) for passage in passages)))
    return normalised(r" \n ".join(filter(None, [_line(question.text), options, context])))


def normalised(text: str) -> str:
    """Lower-case, without the first and the last of the text's single quotes, if it has two.

    allenai/unifiedqa tasks_v2.py:14-18 does so. `tf.strings.lower` takes a text for ASCII, so other letters keep their case.
    """
    return re.sub("'(.*)'", r"\1", text.translate(_LOWER))


def first_answer(text: str) -> str:
    """The answer in what the model wrote: all up to the first tab."""
    return text.split("\t")[0].strip()


def _with_title(passage: Passage, titles: bool) -> str:
    title = _line(passage.title) if titles else ""
    return f"({title}) {_line(passage.text)}".strip() if title else _line(passage.text)


def _line(text: str) -> str:
    return " ".join(text.split())
