"""Opens an encoder that scores options: BERT and its kin with transformers' head for multiple choice, one logit an option."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.models.hub import loading, model_folder, open_tokenizer, quiet, refuse_missing
from ifqa.reading.choice.inputs import Scheme, require_separators

if TYPE_CHECKING:
    from torch import Tensor

MEND = "name a folder that `ifqa train choice` made, or train one"
_MOST = 512  # positions of an encoder whose settings name none


@dataclass
class Encoder:
    """A network in float32 on the CPU, and its tokenizer."""

    model: Any
    tokenizer: Any

    @property
    def types(self) -> bool:
        """Whether the network tells segments apart by types of tokens; RoBERTa has a single type."""
        return getattr(self.model.config, "type_vocab_size", 0) > 1

    @property
    def longest(self) -> int:
        """Most tokens of a sequence. RoBERTa's positions begin after the padding's number, which takes them from its table."""
        config = self.model.config
        positions: int = getattr(config, "max_position_embeddings", _MOST)
        if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer"):
            positions -= (config.pad_token_id or 0) + 1
        return min(positions, _MOST)

    def logits(self, features: dict[str, "Tensor"]) -> "Tensor":
        """A logit for each sequence, [sequences]. Transformers' head wants [questions, options, tokens]: each one is alone here."""
        made: Tensor = self.model(**{name: one[:, None] for name, one in features.items()}).logits
        return made.squeeze(-1)


def open_encoder(name: str, *, untrained: bool = False) -> Encoder:
    """Load an encoder without running any code from it.

    Args:
        name: a folder, or a model of the hub.
        untrained: whether the head, and a pooler before it, may be missing: they are then drawn at random, from torch's seed.

    Raises:
        IfqaError: the model is missing, incomplete, no encoder with such a head, or its tokenizer has no [CLS] and [SEP].
    """
    from transformers import AutoModelForMultipleChoice

    quiet()
    folder = model_folder(name, MEND)
    with loading(name, folder, "an encoder with a head for multiple choice", MEND):
        model, report = AutoModelForMultipleChoice.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
    if untrained:
        report = {kind: [key for key in several if not _is_head(key)] for kind, several in report.items()}
    refuse_missing(name, report)
    tokenizer = open_tokenizer(Path(folder))
    require_separators(tokenizer, name)
    return Encoder(model.float().eval(), tokenizer)


def _is_head(key: object) -> bool:
    return any(part in str(key) for part in ("classifier", "pooler", "sequence_summary", "logits_proj"))


def scheme_of(settings: dict[str, Any], longest: int) -> Scheme:
    """The scheme of a training's settings."""
    most = min(settings["max_tokens"], longest)
    return Scheme(settings["paragraph"] == "yes", settings["explanation"] == "yes", most)
