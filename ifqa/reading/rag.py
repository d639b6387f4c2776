"""Reader 'rag': a T5 answers from each passage apart, and the answers are weighted by the passages' retrieval scores."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.protocols import Advance, Place, silent
from ifqa.reading.t5.base_reader import MAX_ANSWER, Mode, PassageReader, predictions_of
from ifqa.reading.t5.checkpoint import checkpoint_folder
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import Natural, NotNegative, Positive, Precision, YesNo, checked
from ifqa.storage.files import read_json


class Rag(PassageReader):
    """RAG (Lewis et al. 2020) with any checkpoint of T5's family, and any retriever in place of the paper's.

    p(y|x) is the mean of the answer's probabilities from each passage. A passage's weight p(z|x) is the softmax of the read
    passages' retrieval scores, divided by the temperature. Batching changes no answer, except by bfloat16's rounding. A question
    without passages is answered from its own text alone.

    A prediction's `score` is log p(y|x). Its `passage_scores` say where the answer comes from, and their sum is 1: in mode
    "sequence" p(z|x,y), in mode "token" the share of its tokens that were drawn from the passage.

    Args:
        checkpoint: a folder that `ifqa train rag` or `ifqa train fid` made, or a T5 of the hub; empty for google/flan-t5-base,
            which is not trained on IfQA.
        tokenizer: a folder or a model of the hub; empty for the checkpoint's own, or T5's if it has none.
        mode: "sequence": the whole answer comes from one passage; "token": each of its tokens may come from another; "auto" for
            the checkpoint's own (sequence).
        decoding: of mode "sequence": "thorough" scores each passage's hypotheses from every passage; "fast" takes a hypothesis
            for impossible from a passage whose beam lacks it (section 2.5).
        temperature: what scores are divided by; 0 for the checkpoint's own, or 1 if it was not trained by `ifqa train rag`.
        max_tokens: most tokens of question and passage together; 0 for the checkpoint's own (250 by default).
        titles: whether passages' titles are read: "yes", "no", or "auto" for the checkpoint's own (yes).
        encoder_eos: whether inputs end in `</s>`: "yes", "no", or "auto" for the checkpoint's own.
        max_answer_tokens: most tokens of an answer, including the token that starts decoding.
        beams: hypotheses of each passage, or in mode "token" of the question; 1 for greedy decoding, as the paper for question
            answering (its appendix A).
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.
        precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware multiplies in it.
        batch_tokens: tokens encoded at a time, padding included; 0 for the device's default. Halved, with a message, if
            memory runs out.

    Attributes:
        family: split family the checkpoint was trained on, such as "ifqa/full"; empty if `ifqa train` did not make it.
        trained_on: SHA-256 of the files of its training questions.
        label: shown with the scores if the checkpoint was not trained on a benchmark.

    Raises:
        IfqaError: the checkpoint is missing or not a T5, or a setting has an invalid value.
    """

    name = "rag"
    version = 1
    takes_scores = True

    @checked("setting of reader 'rag'")
    def __init__(
        self,
        checkpoint: Place = "",
        tokenizer: Place = "",
        mode: Literal["auto", "sequence", "token"] = "auto",
        decoding: Literal["thorough", "fast"] = "thorough",
        temperature: NotNegative = 0.0,
        max_tokens: Natural = 0,
        titles: YesNo = "auto",
        encoder_eos: YesNo = "auto",
        max_answer_tokens: Annotated[int, Field(ge=2)] = MAX_ANSWER,
        beams: Positive = 1,
        device: str = "auto",
        precision: Precision = "auto",
        batch_tokens: Natural = 0,
    ) -> None:
        from ifqa.reading.t5.rag_model import Mixture

        own_mode, own_temperature = learnt(checkpoint_folder(checkpoint, "rag"))
        self.mixture = Mixture(own_mode if mode == "auto" else mode, decoding, temperature or own_temperature)
        if decoding == "fast" and self.mixture.mode == "token":
            raise IfqaError(
                "setting of reader 'rag': decoding = 'fast' is of mode 'sequence', and the mode is 'token'; "
                "leave decoding out, or set mode = 'sequence'"
            )
        self._open(
            checkpoint, tokenizer, max_tokens=max_tokens, titles=titles, encoder_eos=encoder_eos,
            max_answer_tokens=max_answer_tokens, beams=beams, device=device, precision=precision,
            batch_tokens=batch_tokens,
        )  # fmt: skip

    def answer(
        self,
        questions: Sequence[Question],
        passages: Sequence[Sequence[Passage]],
        advance: Advance = silent,
        scores: Sequence[Sequence[float]] | None = None,
    ) -> list[Prediction]:
        """One prediction a question, in their order; `passages` are each question's, and `scores` their retriever's.

        Without scores the passages have equal probabilities.

        Raises:
            IfqaError: a passage has no score, or a single question does not fit into the memory.
        """
        from ifqa.reading.t5.rag_model import read

        texts = self._texts(questions, passages)
        scores = scores or [[0.0] * len(ranking) for ranking in passages]
        for question, ranking, row in zip(questions, passages, scores, strict=True):
            if len(ranking) != len(row):
                raise IfqaError(
                    f"question {question.id} has {len(ranking)} passages and {len(row)} scores; give one for each"
                )
        rows = (scores_of(row, len(inputs)) for row, inputs in zip(scores, texts, strict=True))
        decode = partial(read, scores=list(chain.from_iterable(rows)), mixture=self.mixture)
        answers = self._t5.answer(texts, decode)
        advance(len(questions))
        return predictions_of(questions, passages, answers)


def scores_of(scores: Sequence[float], inputs: int) -> list[float]:
    """The scores of a question's inputs, of which there may be one more than its retrieved passages.

    Another passage, a gold one that training includes, gets the last score. Without passages the question's own text is the one
    input, whose probability is 1 with any score.
    """
    known = list(scores[:inputs])
    return known + [known[-1] if known else 0.0] * (inputs - len(known))


def learnt(folder: Path) -> tuple[Mode, float]:
    """Mode and temperature in a checkpoint's manifest; "sequence" and 1 if `ifqa train rag` did not make it.

    Raises:
        IfqaError: the manifest has others.
    """
    manifest = folder / "manifest.json"
    read = read_json(manifest) if manifest.exists() else {}
    section = read.get("rag", {}) if isinstance(read, dict) else {}
    settings = section if isinstance(section, dict) else {"mode": None}
    mode, temperature = settings.get("mode", "sequence"), settings.get("temperature", 1.0)
    if mode not in get_args(Mode) or not (type(temperature) is float and 0 < temperature < math.inf):
        raise IfqaError(
            f"{manifest}: 'rag' must be a table of mode (sequence or token) and temperature (a number above 0), "
            f"found {str(section)[:100]}; train it again with: ifqa train rag"
        )
    return cast(Mode, mode), temperature
