"""Reader 'choice': an encoder reads paragraph, question and one option at a time, and scores the option (BERT's scheme)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.models.devices import BATCH_TOKENS, resolve_device, resolve_precision, split_batches, to_device
from ifqa.models.hub import (
    config_number,
    model_folder,
    open_tokenizer,
    refuse_missing,
    report_load_errors,
    silence_transformers,
    weights_fingerprint,
)
from ifqa.protocols import PathSetting
from ifqa.reading.multiple_choice.options import ChoiceManifest, OptionReader, choose_option, load_choice_manifest
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import Natural, Precision, YesNo, check_arguments

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_MEND = "name a folder that `ifqa train choice` made, or train one"
_MOST = 512  # positions of an encoder whose settings name none


@dataclass(frozen=True)
class InputFormat:
    """What is read beside question and option: the passages (`paragraph`), and the question's label "explanation" after them.

    `max_tokens` of a sequence are read, special tokens included. The paragraph is cut first, then the question.
    """

    paragraph: bool = True
    explanation: bool = False
    max_tokens: int = _MOST


class Choice(OptionReader):
    """Scores `[CLS] paragraph [SEP] question [SEP] option [SEP]` for each option; the softmax over the options decides.

    The paragraph is the text of the passages: with the retriever 'context', the text that comes with the question.

    Args:
        checkpoint: a folder that `ifqa train choice` made, or any model of transformers with a head for multiple choice.
        paragraph: whether the passages are read; "auto" as in training.
        explanation: whether the question's label "explanation" is read too, which gives the answer away; "auto" as in training.
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.
        precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware multiplies in it.
        batch_tokens: tokens read at a time, padding included; 0 for the device's default.
    """

    name = "choice"
    version = 1
    runtime_only = ("device", "batch_tokens")

    @check_arguments("setting of reader 'choice'")
    def __init__(
        self,
        checkpoint: PathSetting,
        paragraph: YesNo = "auto",
        explanation: YesNo = "auto",
        device: str = "auto",
        precision: Precision = "float32",
        batch_tokens: Natural = 0,
    ) -> None:
        manifest = _manifest(checkpoint)
        self._device = resolve_device(device)
        self._encoder = open_choice_encoder(checkpoint)
        scheme = input_format(manifest.settings if manifest else {}, self._encoder.longest)
        named = {"paragraph": paragraph, "explanation": explanation}
        self._scheme = replace(scheme, **{key: value == "yes" for key, value in named.items() if value != "auto"})
        if manifest:
            self.family, self.trained_on = manifest.family, frozenset(manifest.sources.values())
        # shown with the scores if it is unknown what the weights were trained on
        self.label = "" if manifest else f"{checkpoint} was not trained by ifqa and may have seen these questions"
        self._budget = batch_tokens or BATCH_TOKENS[self._device]
        self._encoder.model.to(self._device, resolve_precision(precision, self._device))

    def _choose(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[Prediction]:
        import torch

        encoder, rows = self._encoder, list(zip(questions, passages, strict=True))
        features = encoder.padded(
            [pair for row in rows for pair in encode_options(encoder.tokenizer, *row, self._scheme)]
        )
        logits = torch.empty(len(features["input_ids"]))
        with torch.inference_mode():
            for places, batch in split_batches(features, len(logits), self._budget):
                logits[places] = encoder.logits(to_device(batch, self._device)).float().cpu()
        scores = iter(logits.tolist())
        return [
            choose_option(question, [next(scores) for _ in question.choices], texts if self._scheme.paragraph else ())
            for question, texts in rows
        ]

    @classmethod
    def training_family(cls, checkpoint: str, **_: object) -> str:
        """The split family of the training questions, read without the weights."""
        manifest = _manifest(checkpoint)
        return manifest.family if manifest else ""

    @classmethod
    def fingerprint(cls, checkpoint: str, **_: object) -> str:
        """SHA-256 over the model's files, its manifest's too."""
        _manifest(checkpoint)  # refuses weights of another reader by their name
        return weights_fingerprint(model_folder(checkpoint, _MEND))


def _manifest(checkpoint: str) -> ChoiceManifest | None:
    """The manifest of `ifqa train choice`; None for a model from elsewhere."""
    is_ours = any((Path(checkpoint) / name).exists() for name in ("manifest.json", "inputs.json"))
    return load_choice_manifest(checkpoint, "choice") if is_ours else None


def input_format(settings: Mapping[str, Any], longest: int) -> InputFormat:
    """The scheme of a training's settings; without settings, that of a checkpoint that ifqa did not train."""
    if not settings:
        return InputFormat(max_tokens=longest)
    most = min(settings["max_tokens"], longest)
    return InputFormat(settings["paragraph"] == "yes", settings["explanation"] == "yes", most)


@dataclass
class ChoiceEncoder:
    """A network with transformers' head for multiple choice, in float32 on the CPU, and its tokenizer."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"

    @property
    def longest(self) -> int:
        """Most tokens of a sequence. RoBERTa's positions begin after the padding's number, which takes them from its table."""
        config = self.model.config
        positions = config_number(config, "max_position_embeddings") or _MOST
        if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer"):
            positions -= (config.pad_token_id or 0) + 1
        return min(positions, _MOST)

    def padded(self, pairs: Sequence[tuple[list[int], list[int]]]) -> dict[str, "Tensor"]:
        """Sequences, as `encode_options` gives them, as the network takes them, each tensor [sequences, tokens]."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        ids, types = zip(*pairs, strict=True)
        rows = {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}
        if (config_number(self.model.config, "type_vocab_size") or 0) > 1:  # RoBERTa has a single type of tokens
            rows["token_type_ids"] = types
        padding = {"input_ids": self.tokenizer.pad_token_id or 0}
        return {
            name: pad_sequence(list(map(torch.tensor, row)), batch_first=True, padding_value=padding.get(name, 0))
            for name, row in rows.items()
        }

    def logits(self, features: Mapping[str, "Tensor"]) -> "Tensor":
        """A logit for each sequence, [sequences]; to the head each is a question with one option."""
        logits: Tensor = self.model(**{name: tensor[:, None] for name, tensor in features.items()}).logits
        return logits.squeeze(-1)


def open_choice_encoder(name: str, *, untrained: bool = False) -> ChoiceEncoder:
    """Load an encoder, a folder or a model of the hub, without running any code from it.

    If `untrained`, the head, and a pooler before it, may be missing: they are then drawn at random, from torch's seed.
    """
    from transformers import AutoModelForMultipleChoice

    silence_transformers()
    folder = model_folder(name, _MEND)
    with report_load_errors(name, "an encoder with a head for multiple choice", _MEND):
        model, report = AutoModelForMultipleChoice.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
    if untrained:
        report = {kind: [key for key in keys if not _is_head(key)] for kind, keys in report.items()}
    refuse_missing(name, report)
    tokenizer = open_tokenizer(Path(folder))
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise IfqaError(f"{name} has no tokens [CLS] and [SEP]; take an encoder such as BERT, RoBERTa or MiniLM")
    return ChoiceEncoder(model.float().eval(), tokenizer)


def _is_head(key: object) -> bool:
    return any(part in str(key) for part in ("classifier", "pooler", "sequence_summary", "logits_proj"))


def encode_options(
    tokenizer: "PreTrainedTokenizerBase", question: Question, passages: Sequence[Passage], scheme: InputFormat
) -> list[tuple[list[int], list[int]]]:
    """Token ids and token types of a question's options, one pair an option.

    Types are 0 up to the first [SEP] and 1 after it, as BERT's tokenizer gives them for a pair. A paragraph or explanation that
    is empty or not read is left out, with its [SEP]. Text that looks like a special token is read as text.
    """
    texts = [passage.text for passage in passages if scheme.paragraph]
    texts += [question.label("explanation")] * scheme.explanation
    paragraph = " ".join(text.strip() for text in texts if text.strip())
    before, stem, *options = tokenizer(
        [paragraph, question.text, *question.choices], add_special_tokens=False, split_special_tokens=True,
        return_attention_mask=False, return_token_type_ids=False, verbose=False,
    )["input_ids"]  # fmt: skip
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    pairs = []
    for option in options:
        room = scheme.max_tokens - 4 - len(option)  # for paragraph and question
        read = before[: max(0, room - len(stem))]
        segments = [read, stem[: max(0, room)], option] if read else [stem[: max(0, room + 1)], option]
        ids = [cls, *(token for segment in segments for token in (*segment, sep))][: scheme.max_tokens]
        pairs.append((ids, [int(n > len(segments[0]) + 1) for n in range(len(ids))]))
    return pairs
