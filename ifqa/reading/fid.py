"""Reader 'fid': Fusion-in-Decoder encodes each passage alone, attends to all of them, and generates the answer."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from ifqa.protocols import Advance, Place, silent
from ifqa.reading.t5.base_reader import MAX_ANSWER, PassageReader, predictions_of
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import Natural, Positive, Precision, YesNo, checked


class Fid(PassageReader):
    """Fusion-in-Decoder (Izacard & Grave 2021) with any checkpoint of T5's family; greedy decoding as the original.

    Batching changes no answer, except by bfloat16's rounding. A question without passages is answered from its own text
    alone.

    Args:
        checkpoint: a folder that `ifqa train fid` made, one of facebookresearch/FiD's (`nq_reader_base`), or a T5 of the
            hub; empty for google/flan-t5-base, which is not trained on IfQA.
        tokenizer: a folder or a model of the hub; empty for the checkpoint's own, or T5's if it has none.
        max_tokens: most tokens of question and passage together; 0 for the checkpoint's own (250, as published, by default).
        titles: whether passages' titles are read: "yes", "no", or "auto" for the checkpoint's own (yes).
        encoder_eos: whether inputs end in `</s>`: "yes", "no", or "auto" for the checkpoint's own: facebookresearch/FiD's
            were trained without, by a tokenizer that added none.
        max_answer_tokens: most tokens of an answer, including the token that starts decoding (FiD test_reader.py:42-46).
        beams: 1 for greedy decoding; more beams take longer and that many times the memory.
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.
        precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware multiplies in it.
        batch_tokens: tokens encoded at a time, padding included; 0 for the device's default. Halved, with a message, if
            memory runs out.

    Attributes:
        family: split family the checkpoint was trained on, such as "ifqa/full"; empty if `ifqa train fid` did not make it.
        trained_on: SHA-256 of the files of its training questions.
        label: shown with the scores if the checkpoint was not trained on a benchmark.

    Raises:
        IfqaError: the checkpoint is missing or not a T5, or a setting has an invalid value.
    """

    name = "fid"
    version = 1

    @checked("setting of reader 'fid'")
    def __init__(
        self,
        checkpoint: Place = "",
        tokenizer: Place = "",
        max_tokens: Natural = 0,
        titles: YesNo = "auto",
        encoder_eos: YesNo = "auto",
        max_answer_tokens: Annotated[int, Field(ge=2)] = MAX_ANSWER,
        beams: Positive = 1,
        device: str = "auto",
        precision: Precision = "auto",
        batch_tokens: Natural = 0,
    ) -> None:
        self._open(
            checkpoint, tokenizer, max_tokens=max_tokens, titles=titles, encoder_eos=encoder_eos,
            max_answer_tokens=max_answer_tokens, beams=beams, device=device, precision=precision,
            batch_tokens=batch_tokens,
        )  # fmt: skip

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """One prediction a question, in their order; `passages` are each question's, best first.

        Passages are ordered by the decoder's attention to them (see `FusionInDecoder.passage_scores`).

        Raises:
            IfqaError: a single question does not fit into the memory.
        """
        answers = self._t5.answer(self._texts(questions, passages))
        advance(len(questions))
        return predictions_of(questions, passages, answers)
