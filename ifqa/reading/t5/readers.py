"""Readers 'fid', 'rag' and 'unifiedqa': Fusion-in-Decoder, RAG and UnifiedQA with any checkpoint of
T5's family.

Batching changes no answer, except by bfloat16's rounding. A question without passages is answered
from its text alone.
"""

import glob
import hashlib
import re
import string
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from ifqa.errors import ConfigError, IfqaError, MissingInput, PluginError
from ifqa.models.causal_lm import base_model, download_hint, is_adapter
from ifqa.models.devices import resolve_device, resolve_precision
from ifqa.protocols import (
    PathSetting,
    ProgressCallback,
    RankedPassages,
    Reader,
    Requirement,
    no_progress,
)
from ifqa.reading.t5 import checkpoint as checkpoints
from ifqa.reading.t5.checkpoint import DEFAULT_CHECKPOINTS, checkpoint_folder, load_t5_manifest
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import Natural, NotNegative, PluginSettings, Positive, Precision, YesNo

if TYPE_CHECKING:
    from ifqa.reading.t5.fusion_in_decoder import GeneratedAnswer

GROUP = "{group}"
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_Answer = Annotated[int, Field(ge=2)]
_Decoder = Callable[
    ..., list["GeneratedAnswer"]
]  # takes the arguments of `ifqa.reading.t5.fusion_in_decoder.generate_answers`


# In a file, the settings of a class follow those of its last base: these are small classes, so that
# FiD's and RAG's own settings come between the common ones.
class CheckpointSettings(PluginSettings):
    """What a reader opens."""

    checkpoint: PathSetting = ""
    """A folder or a model of the hub; empty for the reader's default."""
    tokenizer: PathSetting = ""
    """A folder or a model of the hub; empty for the checkpoint's own, or T5's if it has none."""


class MixtureSettings(CheckpointSettings):
    """How RAG weighs passages."""

    temperature: NotNegative = 0.0
    """Divides the scores; 0 for 1."""


class InputSettings(PluginSettings):
    """How texts become inputs."""

    max_tokens: Natural = 0
    """Most tokens of question and passage together; 0 for the checkpoint's own limit (by default
    250, as published).
    """
    titles: YesNo = "auto"
    """Whether passages' titles are read: "yes", "no", or "auto" for the checkpoint's own convention
    (by default yes).
    """


class EndSettings(InputSettings):
    """How inputs end."""

    encoder_eos: YesNo = "auto"
    """Whether inputs end in `</s>`: "yes", "no", or "auto" for the checkpoint's own convention (by
    default yes; facebookresearch/FiD's were trained without `</s>`).
    """


class AnswerSettings(PluginSettings):
    """How answers are generated."""

    max_answer_tokens: _Answer = 50
    """Most tokens of an answer, including the token that starts decoding (FiD
    test_reader.py:42-46).
    """
    beams: Positive = 1
    """1 for greedy decoding; more beams need that many times the memory, and more time."""
    device: str = "auto"
    """The device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU."""
    precision: Precision = "auto"
    """The precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware supports bfloat16
    multiplication.
    """
    batch_tokens: Natural = 0
    """Tokens encoded at a time, padding included; 0 for the device's default. Halved if memory runs
    out.
    """


class T5Settings(AnswerSettings, InputSettings, CheckpointSettings):
    """What all readers with a T5 share."""


class T5Generator:
    """A checkpoint on its device; a reader's settings replace the checkpoint's conventions."""

    def __init__(
        self, reader: str, settings: T5Settings, checkpoint: str, encoder_eos: YesNo = "auto"
    ) -> None:
        """Open `checkpoint`, which may be another than that of the settings.

        `encoder_eos` is as in `EndSettings`.
        """
        from ifqa.reading.t5.fusion_in_decoder import batch_limits

        device = resolve_device(settings.device)
        stored = checkpoints.open_checkpoint(checkpoint, settings.tokenizer, reader)
        changes: dict[str, Any] = {"max_tokens": settings.max_tokens} if settings.max_tokens else {}
        named = {"titles": settings.titles, "encoder_eos": encoder_eos}
        changes |= {name: setting == "yes" for name, setting in named.items() if setting != "auto"}
        self.conventions = replace(stored.conventions, **changes)
        self.manifest = stored.manifest
        precision = resolve_precision(settings.precision, device)
        self.model = stored.model.to(device=device, dtype=precision)
        self.limits = batch_limits(self.model, settings.beams, settings.batch_tokens)
        self._tokenizer = stored.tokenizer
        self.max_answer_tokens = settings.max_answer_tokens
        self.beams = settings.beams

    def answer(
        self, texts: Sequence[Sequence[str]], decode: _Decoder | None = None
    ) -> list[tuple["GeneratedAnswer", str]]:
        """The decoder's output for each question, and its text.

        `texts` has one or more inputs for each question.
        """
        from ifqa.reading.t5.fusion_in_decoder import generate_answers

        if not texts:  # batch_decode gives one text for an empty batch
            return []
        features = checkpoints.encode_texts(
            self._tokenizer, list(chain.from_iterable(texts)), self.conventions
        )
        generated = (decode or generate_answers)(
            self.model,
            features,
            list(map(len, texts)),
            max_answer_tokens=self.max_answer_tokens,
            beams=self.beams,
            limits=self.limits,
        )
        answers = self._tokenizer.batch_decode(
            [answer.tokens for answer in generated], skip_special_tokens=True
        )
        return list(zip(generated, answers, strict=True))


class T5Reader(Reader):
    """Reads with a checkpoint of T5's family, or with one for each group of questions (see
    `group_folders`).
    """

    name: ClassVar[str]  # in settings and messages
    trainer: ClassVar[str]  # the reader whose checkpoints it reads, which `ifqa train` makes
    runtime_only = ("device", "batch_tokens")
    gives_confidence = False

    @classmethod
    def requirements(cls, settings: T5Settings, root: Path) -> list[Requirement]:
        name = settings.checkpoint or DEFAULT_CHECKPOINTS[cls.trainer]
        try:
            missing = [
                folder
                for folder in group_folders(name, root).values()
                if download_hint(folder, root)
            ]
            remedy = checkpoints.suggest_checkpoint(cls.trainer) if missing else ""
            if missing and is_adapter(root / missing[0]):
                remedy = (
                    f"its base model {base_model(root / missing[0])}: "
                    f"{download_hint(missing[0], root)}"
                )
            return [Requirement(f"the checkpoint {name}", remedy)]
        except IfqaError as error:
            return [
                Requirement(
                    f"the checkpoint {name}", str(error).removeprefix(f"checkpoint {name}: ")
                )
            ]

    @classmethod
    def training_family(cls, settings: T5Settings, root: Path) -> str:
        """The split family of a checkpoint's training questions, from its manifest.

        Empty if unknown.
        """
        checkpoint = settings.checkpoint
        folders = [
            checkpoint_folder(name, cls.trainer)
            for name in group_folders(checkpoint, root).values()
        ]
        families = sorted(
            {load_t5_manifest(folder, cls.trainer).family for folder in folders} - {""}
        )
        if len(families) > 1:
            problem = (
                f"its models were trained on {' and '.join(families)}, which may share questions"
            )
            raise ConfigError(
                f"{checkpoint}: {problem}; keep the models of one split family under one name"
            )
        return "".join(families)

    @classmethod
    def fingerprint(cls, settings: T5Settings, root: Path) -> str:
        return cls._fingerprint(settings.checkpoint, settings.tokenizer)

    @classmethod
    def _fingerprint(cls, checkpoint: str, tokenizer: str) -> str:
        folder = checkpoint_folder(checkpoint, cls.trainer)
        return checkpoints.fingerprint_checkpoint(folder, cls.trainer, tokenizer)


class Fid(T5Reader):
    """Fusion-in-Decoder (Izacard & Grave 2021): encodes each passage alone, and attends to all of
    them in decoding.
    """

    name = "fid"
    trainer = "fid"
    version = 1
    model_settings: ClassVar = {"checkpoint": "ifqa-fid"}  # also of "rag"

    class Settings(T5Settings, EndSettings):
        checkpoint: PathSetting = ""
        """A folder that `ifqa train fid` made, one of facebookresearch/FiD's (`nq_reader_base`), or
        a T5 of the hub; empty for the adapter in this package, on flan-t5-small.
        """

    def __init__(self, settings: Settings) -> None:
        checkpoint = settings.checkpoint
        self._t5 = T5Generator(self.trainer, settings, checkpoint, settings.encoder_eos)
        self.conventions = self._t5.conventions
        self.family, self.trained_on = (
            self._t5.manifest.family,
            frozenset(self._t5.manifest.sources.values()),
        )
        self.label = (
            ""
            if self.family
            else f"{checkpoint or DEFAULT_CHECKPOINTS[self.trainer]} is not trained on IfQA"
        )

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
        scores: Sequence[Sequence[float]] | None = None,
    ) -> list[Prediction]:
        """Predictions whose passages are ordered by `passage_scores`: the decoder's attention, or
        RAG's posteriors.
        """
        rows = zip(questions, passages, strict=True)
        texts = [
            passage_inputs(question.text, ranking, self.conventions.titles)
            for question, ranking in rows
        ]
        answers = self._t5.answer(texts, self._decoder(questions, passages, scores))
        advance(len(questions))
        predictions = []
        for question, ranking, (generated, text) in zip(questions, passages, answers, strict=True):
            # without passages there is still one score, for the question read alone
            scored = sorted(
                zip(generated.passage_scores, ranking, strict=False), key=lambda pair: -pair[0]
            )
            shares = tuple(score for score, _ in scored)
            ids = tuple(passage.id for _, passage in scored)
            prediction = Prediction(
                question.id, text.strip(), completion=text, passage_ids=ids, score=generated.score
            )
            predictions.append(replace(prediction, passage_scores=shares))
        return predictions

    def _decoder(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        scores: Sequence[Sequence[float]] | None,
    ) -> _Decoder | None:
        return None


def passage_inputs(question: str, passages: Sequence[Passage], titles: bool) -> list[str]:
    """The inputs `question: {q} title: {t} context: {x}` (FiD src/data.py:16-18, 40, 44-46, 114).

    Without passages, the question.

    FiD's code for questions without passages, which reads the question alone, is never reached
    (src/data.py:46-51).
    """
    start = f"question: {question}"
    if not passages:
        return [start]
    return [
        f"{start} title: {passage.title if titles else ''} context: {passage.text}"
        for passage in passages
    ]


class Rag(Fid):
    """RAG (Lewis et al. 2020) with any retriever: answers from each passage alone, and averages the
    probabilities p(y|x,z).

    A passage's weight p(z|x) is the softmax, over the passages read, of the retrieval scores
    divided by the temperature. A prediction's `score` is log p(y|x). Its `passage_scores`, whose
    sum is 1, are p(z|x,y). This is RAG-Sequence: the whole answer comes from one passage.
    """

    name = "rag"
    version = 1
    takes_scores = True

    class Settings(Fid.Settings, MixtureSettings):
        checkpoint: PathSetting = ""
        """A folder that `ifqa train fid` made, or a T5 of the hub; empty for the adapter of
        `fid`.
        """
        beams: Positive = 1
        """Hypotheses kept per passage; 1 for greedy decoding, as in the paper for question
        answering (its appendix A).
        """

    def __init__(self, settings: Settings) -> None:
        self.temperature = settings.temperature or 1.0
        super().__init__(settings)

    def _decoder(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        scores: Sequence[Sequence[float]] | None,
    ) -> _Decoder:
        """A decoder for the mixture; without scores, all passages are equally probable."""
        from ifqa.reading.t5.rag_model import generate_rag_answers

        rows = scores or [[0.0] * len(ranking) for ranking in passages]
        flat: list[float] = []
        for question, ranking, row in zip(questions, passages, rows, strict=True):
            if len(ranking) != len(row):
                counts = f"{len(ranking)} passages, {len(row)} scores"
                raise PluginError(f"question {question.id}: {counts}; give one per passage")
            flat += row or [0.0]  # without passages, the question is read alone
        return partial(generate_rag_answers, scores=flat, temperature=self.temperature)


class UnifiedQA(T5Reader):
    """UnifiedQA-v2 (Khashabi et al. 2022): reads the question and all its passages as one text, as
    CausalQA's baseline does.

    The passages are joined in their order and cut off at `max_tokens`. The answer is the output up
    to the first tab, because CausalQA trains on all answers of a question, joined by tabs. T5's
    tokenizers read a tab as a space, so with them the answer is the whole output, as CausalQA
    scores it (evaluate_unifiedqa.py:61-71).
    """

    name = "unifiedqa"
    trainer = "unifiedqa"
    takes = ("root",)  # to which a checkpoint with `{group}` is relative
    version = 1
    model_settings: ClassVar = {"checkpoint": DEFAULT_CHECKPOINTS["unifiedqa"]}
    chunk = 64  # decoded together

    class Settings(T5Settings):
        checkpoint: PathSetting = ""
        """A folder that `ifqa train unifiedqa` made, one of CausalQA's published folders, or a T5
        of the hub; empty for allenai/unifiedqa-v2-t5-base-1363200. With `{group}` in its name, each
        group of questions (CausalQA's datasets) has its own folder, such as
        `models/unifiedqa-{group}`; one of these models is in memory at a time.
        """
        max_tokens: Natural = 0
        """Most tokens of question and passages together; 0 for the checkpoint's own limit (by
        default 2048).
        """
        max_answer_tokens: _Answer = 500
        """Most tokens of an answer, including the token that starts decoding; CausalQA's is 500
        (evaluate_unifiedqa.py:47).
        """

    def __init__(self, settings: Settings, *, root: Path = Path()) -> None:
        self.family = self.training_family(settings, root)
        self._checkpoint = settings.checkpoint
        self._folders = group_folders(settings.checkpoint, root)
        folders = [checkpoint_folder(name, self.trainer) for name in self._folders.values()]
        sources = [load_t5_manifest(folder, self.trainer).sources.values() for folder in folders]
        self.trained_on = frozenset(chain.from_iterable(sources))
        self._open = partial(T5Generator, self.trainer, settings)
        self._group = next(iter(self._folders))
        self._t5: T5Generator | None = self._open(self._folders[self._group])

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        groups: dict[str, list[int]] = defaultdict(list)
        for number, question in enumerate(questions):
            group = question.group if GROUP in self._checkpoint else ""
            if group not in self._folders:
                there = f"{self._checkpoint} exists only for {', '.join(self._folders)}"
                mend = f"train one with: ifqa train unifiedqa --dataset {group or 'NAME'}"
                raise MissingInput(
                    f"question {question.id} is of group {group!r}, but {there}; {mend}"
                )
            groups[group].append(number)
        predictions: dict[int, Prediction] = {}
        # The group in memory first
        for group in sorted(groups, key=lambda group: group != self._group):
            numbers = groups[group]
            t5 = self._generator(group)
            texts = [
                [input_text(questions[n], passages[n], t5.conventions.titles)] for n in numbers
            ]
            for number, (generated, text) in zip(numbers, t5.answer(texts), strict=True):
                id_ = questions[number].id
                ids = tuple(passage.id for passage in passages[number])
                answer = first_answer(text)
                score = generated.score
                predictions[number] = Prediction(
                    id_, answer, completion=text, passage_ids=ids, score=score
                )
            advance(len(numbers))
        return [predictions[number] for number in range(len(questions))]

    def _generator(self, group: str) -> T5Generator:
        if self._t5 is None or group != self._group:
            import torch

            self._t5 = None  # frees its memory
            torch.cuda.empty_cache()
            self._group, self._t5 = group, self._open(self._folders[group])
        return self._t5

    @classmethod
    def fingerprint(cls, settings: T5Settings, root: Path) -> str:
        digest = hashlib.sha256()
        for group, name in group_folders(settings.checkpoint, root).items():
            hashed = cls._fingerprint(name, settings.tokenizer)
            digest.update(f"{group} {hashed}\n".encode())
        return digest.hexdigest()


def group_folders(checkpoint: str, root: Path = Path()) -> Mapping[str, str]:
    """Group -> the checkpoint that answers its questions.

    For a checkpoint without `{group}`, "" -> the checkpoint.
    """
    if GROUP not in checkpoint:
        return {"": checkpoint}
    before, *after = str(root / checkpoint).split(GROUP)
    if len(after) > 1:
        raise ConfigError(
            f"checkpoint {checkpoint}: wanted {GROUP} once, found it {len(after)} times"
        )
    paths = sorted(glob.glob(f"{glob.escape(before)}*{glob.escape(after[0])}"))  # noqa: PTH207 - of an escaped, whole path
    folders = {
        path[len(before) : len(path) - len(after[0])]: path for path in paths if Path(path).is_dir()
    }
    if not folders:
        mend = "train one with: ifqa train unifiedqa --dataset NAME"
        raise MissingInput(f"checkpoint {checkpoint}: no folder has such a name; {mend}")
    return folders


def input_text(question: Question, passages: Sequence[Passage], titles: bool = True) -> str:
    r"""A question and its passages as one text in UnifiedQA's format, normalised: `question \n (a)
    .. (b) .. \n (Title) text`.

    The separator is a space, a backslash, an n and a space (allenai/unifiedqa README.md, "Feeding
    data into UnifiedQA"). Missing parts are left out with their separator. Passages, each after its
    title, are joined by spaces. Each run of white space becomes one space. Both are as in
    `read_and_parse_multiqa` (encode_datasets.py).
    """

    def line(text: str) -> str:
        return " ".join(text.split())

    options = " ".join(
        f"({chr(ord('A') + n)}) {line(choice)}" for n, choice in enumerate(question.choices)
    )
    texts = [
        f"({title}) {line(passage.text)}"
        if titles and (title := line(passage.title))
        else line(passage.text)
        for passage in passages
    ]
    parts = [line(question.text), options, " ".join(text.strip() for text in texts if text)]
    return normalize_unifiedqa(r" \n ".join(filter(None, parts)))


def normalize_unifiedqa(text: str) -> str:
    """Lower-case only ASCII letters, as `tf.strings.lower` does.

    Remove the first and last single quote if there are two or more.

    allenai/unifiedqa tasks_v2.py:14-18 does the same.
    """
    return re.sub("'(.*)'", r"\1", text.translate(_LOWER))


def first_answer(text: str) -> str:
    """The output up to the first tab."""
    return text.split("\t")[0].strip()
