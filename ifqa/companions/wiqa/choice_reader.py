"""Reader 'choice': an encoder reads paragraph, question and one option at a time, and scores the
option (BERT's scheme).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ifqa.companions.wiqa.options import (
    ChoiceManifest,
    OptionReader,
    choose_option,
    load_choice_manifest,
)
from ifqa.errors import ConfigError
from ifqa.models import loading, places
from ifqa.models.devices import (
    BATCH_TOKENS,
    resolve_device,
    resolve_precision,
    split_batches,
    to_device,
)
from ifqa.protocols import RankedPassages
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import Natural, PathSetting, PluginSettings, Precision, YesNo

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_MEND = "name a folder that `ifqa train choice` made, or train one"
_MOST = 512  # positions of an encoder whose config does not say how many it has
_HEAD = re.compile("classifier|pooler|sequence_summary|logits_proj")


@dataclass(frozen=True)
class InputFormat:
    """What is read with question and option.

    If the input is too long, the paragraph is cut first, then the question.
    """

    paragraph: bool = True  # the passages
    max_tokens: int = _MOST  # most tokens of a sequence, special tokens included


class Choice(OptionReader):
    """Scores `[CLS] paragraph [SEP] question [SEP] option [SEP]` for each option.

    The softmax over the options decides.

    The paragraph is the passages' text: with the retriever 'context', the text that comes with the
    question.
    """

    name = "choice"
    model_settings: ClassVar = {"checkpoint": ""}
    version = 1
    runtime_only = ("device", "batch_tokens")

    class Settings(PluginSettings):
        checkpoint: PathSetting
        """A folder that `ifqa train choice` made, or any transformers model with a multiple-choice
        head.
        """
        paragraph: YesNo = "auto"
        """Whether the passages are read; "auto" as in training."""
        device: str = "auto"
        """The device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU."""
        precision: Precision = "float32"
        """The precision: "float32", "bfloat16", or "auto": bfloat16 where the hardware supports
        it.
        """
        batch_tokens: Natural = 0
        """Tokens read at a time, padding included; 0 for what suits the device. It limits memory
        and never changes an answer.
        """

    def __init__(self, settings: Settings) -> None:
        manifest = _manifest(settings.checkpoint)
        self._device = resolve_device(settings.device)
        self._encoder = open_choice_encoder(settings.checkpoint)
        self._format = input_format(manifest.settings if manifest else {}, self._encoder.longest)
        if settings.paragraph != "auto":
            self._format = replace(self._format, paragraph=settings.paragraph == "yes")
        if manifest:
            self.family = manifest.family
            self.trained_on = frozenset(manifest.sources.values())
        self._budget = settings.batch_tokens or BATCH_TOKENS[self._device]
        precision = resolve_precision(settings.precision, self._device)
        self._encoder.model.to(self._device, precision)

    def _choose(self, questions: Sequence[Question], passages: RankedPassages) -> list[Prediction]:
        import torch

        encoder = self._encoder
        rows = list(zip(questions, passages, strict=True))
        pairs = [
            pair for row in rows for pair in encode_options(encoder.tokenizer, *row, self._format)
        ]
        features = encoder.pad(pairs)
        logits = torch.empty(len(pairs))
        with torch.inference_mode():
            for rows_of_batch, batch in split_batches(features, len(logits), self._budget):
                logits[rows_of_batch] = encoder.logits(to_device(batch, self._device)).float().cpu()
        scores = iter(logits.tolist())
        return [
            choose_option(
                question,
                [next(scores) for _ in question.choices],
                ranking if self._format.paragraph else (),
            )
            for question, ranking in rows
        ]

    @classmethod
    def training_family(cls, settings: Settings, root: Path) -> str:
        manifest = _manifest(settings.checkpoint)
        return manifest.family if manifest else ""

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        _manifest(settings.checkpoint)  # refuses weights of another reader
        return loading.weights_fingerprint(places.model_folder(settings.checkpoint, _MEND))


def _manifest(checkpoint: str) -> ChoiceManifest | None:
    """The manifest of `ifqa train choice`; None for a model from elsewhere."""
    is_ours = any((Path(checkpoint) / name).exists() for name in ("manifest.json", "inputs.json"))
    return load_choice_manifest(checkpoint, "choice") if is_ours else None


def input_format(settings: Mapping[str, Any], longest: int) -> InputFormat:
    """The format of a training's settings.

    Without settings, the format for a model that ifqa did not train.
    """
    return InputFormat(
        settings.get("paragraph") != "no", min(settings.get("max_tokens", longest), longest)
    )


@dataclass
class ChoiceEncoder:
    """A network with transformers' multiple-choice head, in float32 on the CPU, and its
    tokenizer.
    """

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"

    @property
    def longest(self) -> int:
        """The most tokens in a sequence.

        RoBERTa's positions begin after the padding id, so its table offers fewer.
        """
        config = self.model.config
        positions = loading.config_number(config, "max_position_embeddings") or _MOST
        if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer"):
            positions -= (config.pad_token_id or 0) + 1
        return min(positions, _MOST)

    def pad(self, pairs: Sequence[tuple[list[int], list[int]]]) -> dict[str, "Tensor"]:
        """The pairs of `encode_options` as the network's inputs, each tensor [sequences,
        tokens].
        """
        import torch
        from torch.nn.utils.rnn import pad_sequence

        ids, types = zip(*pairs, strict=True)
        rows = {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}
        # RoBERTa has a single token type
        if (loading.config_number(self.model.config, "type_vocab_size") or 0) > 1:
            rows["token_type_ids"] = types
        padding = {"input_ids": self.tokenizer.pad_token_id or 0}
        return {
            name: pad_sequence(
                list(map(torch.tensor, row)), batch_first=True, padding_value=padding.get(name, 0)
            )
            for name, row in rows.items()
        }

    def logits(self, features: Mapping[str, "Tensor"]) -> "Tensor":
        """A logit for each sequence, [sequences].

        To the head, each is a question with a single option.
        """
        logits: Tensor = self.model(
            **{name: tensor[:, None] for name, tensor in features.items()}
        ).logits
        return logits.squeeze(-1)


def open_choice_encoder(name: str, *, untrained: bool = False) -> ChoiceEncoder:
    """Load an encoder from a folder or the hub, without running any code from it.

    If `untrained`, a missing head and the pooler before it are initialised at random, from torch's
    seed.
    """
    from transformers import AutoModelForMultipleChoice

    loading.silence_transformers()
    folder = places.model_folder(name, _MEND)
    with loading.report_load_errors(name, "an encoder with a multiple-choice head", _MEND):
        model, report = AutoModelForMultipleChoice.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
    if untrained:
        report = {
            kind: [key for key in keys if not _HEAD.search(str(key))]
            for kind, keys in report.items()
        }
    loading.refuse_missing(name, report)
    tokenizer = loading.open_tokenizer(Path(folder))
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise ConfigError(
            f"{name} has no tokens [CLS] and [SEP]; take an encoder such as BERT, RoBERTa or MiniLM"
        )
    return ChoiceEncoder(model.float().eval(), tokenizer)


def encode_options(
    tokenizer: "PreTrainedTokenizerBase",
    question: Question,
    passages: Sequence[Passage],
    form: InputFormat,
) -> list[tuple[list[int], list[int]]]:
    """Token ids and token types for each option of a question.

    Types are 0 up to the first [SEP] and 1 after it, as in BERT's pairs. A paragraph that is empty
    or not read is left out, with its [SEP]. Text that looks like a special token is read as text.
    """
    paragraph = " ".join(
        text for passage in passages if form.paragraph and (text := passage.text.strip())
    )
    before, stem, *options = tokenizer(
        [paragraph, question.text, *question.choices],
        add_special_tokens=False,
        split_special_tokens=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    cls = tokenizer.cls_token_id
    sep = tokenizer.sep_token_id
    pairs = []
    for option in options:
        room = form.max_tokens - 4 - len(option)  # for paragraph and question
        cut = before[: max(0, room - len(stem))]
        segments = (
            [cut, stem[: max(0, room)], option] if cut else [stem[: max(0, room + 1)], option]
        )
        ids = [cls, *(token for segment in segments for token in (*segment, sep))][
            : form.max_tokens
        ]
        pairs.append((ids, [int(n > len(segments[0]) + 1) for n in range(len(ids))]))
    return pairs
