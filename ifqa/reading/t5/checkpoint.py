"""Opens checkpoints of T5 (ifqa's, the hub's, or facebookresearch/FiD's), and tokenizes texts by a
checkpoint's conventions.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ifqa.errors import ConfigError, DamagedArtifact, FormatError, IfqaError, MissingInput
from ifqa.models import loading, places
from ifqa.models.causal_lm import base_model, is_adapter
from ifqa.models.devices import CHUNK, Features
from ifqa.settings import StoredModel, StrictModel, parse_stored
from ifqa.storage.files import read_json
from ifqa.storage.resources import BUNDLED

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from ifqa.reading.t5.fusion_in_decoder import FusionInDecoder

#: Reader -> its default checkpoint. FiD's, which RAG reads too, is the adapter in this package.
#: UnifiedQA's is CausalQA's (coling22-benchmark-for-causal-question-answering
#: finetuning/train_unifiedqa.py:11).
DEFAULT_CHECKPOINTS = {
    "fid": str(BUNDLED / "weights" / "fid"),
    "unifiedqa": "allenai/unifiedqa-v2-t5-base-1363200",
}
# Most tokens of question and passage, as in training FiD's published readers (FiD README:121)
MAX_TOKENS = 250
# The tokenizer of all T5 models of version 1 (FiD test_reader.py:89)
TOKENIZER = "google-t5/t5-base"
_CROSS_BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
_TOKENIZER_FILES = ("tokenizer.json", "spiece.model")


@dataclass(frozen=True)
class Conventions:
    """How texts become inputs; a checkpoint reads best with the conventions of its training."""

    max_tokens: int = MAX_TOKENS  # most tokens of question and passage together
    # If gold passages and articles are mixed, a missing title gives gold passages away
    titles: bool = True
    # Inputs end in `</s>`; FiD's readers were trained with transformers 3, which added none
    encoder_eos: bool = True

    def __post_init__(self) -> None:
        if self.max_tokens < 16:
            raise ConfigError(
                f"max_tokens: wanted 16 or more for question and passage, found {self.max_tokens}"
            )


#: Reader -> the conventions of a checkpoint without its own. CausalQA trained UnifiedQA on 2048
#: tokens (train_unifiedqa.py:18).
CONVENTIONS = {"fid": Conventions(), "unifiedqa": Conventions(max_tokens=2048)}


class _StoredConventions(StrictModel):
    max_tokens: int = MAX_TOKENS
    titles: bool = True
    encoder_eos: bool = True


class _StoredBase(StoredModel):
    sha256: str = ""  # of the weights that an adapter was trained on


class T5Manifest(StoredModel):
    """The manifest of `ifqa train`; the defaults are for a checkpoint from elsewhere."""

    family: str = ""  # the split family of the training questions, such as "ifqa/full"
    sources: dict[str, str] = Field(default_factory=dict)  # question file -> SHA-256
    conventions: _StoredConventions = Field(default_factory=_StoredConventions)
    base: _StoredBase = Field(default_factory=_StoredBase)


def load_t5_manifest(folder: Path, reader: str) -> T5Manifest:
    """The manifest of a checkpoint."""
    path = folder / "manifest.json"
    return parse_stored(
        T5Manifest, read_json(path) if path.exists() else {}, str(path), suggest_checkpoint(reader)
    )


@dataclass(kw_only=True)
class Checkpoint:
    """A float32 network on the CPU, in evaluation mode, and its tokenizer."""

    model: "FusionInDecoder"
    tokenizer: "PreTrainedTokenizerBase"
    conventions: Conventions
    manifest: T5Manifest
    folder: Path  # of the checkpoint
    weights: Path  # the same folder, or that of an adapter's base model

    @property
    def adapter(self) -> Path | None:
        return self.folder if self.folder != self.weights else None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the weights, settings and tokenizer."""
        return _fingerprint(self.folder, self.weights)

    @property
    def training(self) -> dict[str, object]:
        """What its manifest says of how it was trained, for the manifest of a training that starts
        from it.
        """
        path = self.folder / "manifest.json"
        manifest = read_json(path) if path.exists() else {}
        return (
            {"trained": {key: value for key, value in manifest.items() if key != "record"}}
            if manifest
            else {}
        )


def checkpoint_folder(name: str, reader: str = "fid", mend: str = "") -> Path:
    """The folder of a checkpoint or an adapter.

    `name` is a folder or a model of the hub, or empty for the reader's default.

    `mend` says in messages how to name another checkpoint; empty for the text of
    `suggest_checkpoint`.
    """
    if (
        name
        and (Path(name) / "inputs.json").exists()
        and not (Path(name) / "manifest.json").exists()
    ):
        raise MissingInput(
            f"{name} holds an unfinished training; run the same `ifqa train {reader}` again"
        )
    mend = mend or suggest_checkpoint(reader)
    default = f"reader {reader!r} uses this model if no checkpoint is named: {mend}"
    if is_adapter(adapter := Path(name or DEFAULT_CHECKPOINTS[reader])):
        return adapter
    folder = places.model_folder(name or DEFAULT_CHECKPOINTS[reader], mend if name else default)
    config = read_json(folder / "config.json")
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind != "t5":
        raise ConfigError(
            f"{folder} is not a checkpoint of reader {reader!r}: wanted "
            f"type t5, found {kind}; {mend}"
        )
    return folder


def weights_folder(folder: Path, reader: str, mend: str = "") -> Path:
    """The folder of a checkpoint's weights: the folder itself, or that of an adapter's base model,
    whose weights are verified.
    """
    if not is_adapter(folder):
        return folder
    name = base_model(folder)
    if is_adapter(Path(name)):
        raise ConfigError(
            f"{folder}: its base model {name} is an adapter; wanted an adapter of a complete T5"
        )
    base = checkpoint_folder(name, reader, mend)
    trained_on = load_t5_manifest(folder, reader).base.sha256
    sha256 = loading.weights_fingerprint(base, only_weights=True) if trained_on else ""
    if trained_on != sha256:
        problem = (
            f"{folder} was trained on a different {name} (SHA-256 {trained_on[:8]}..., found "
            f"{sha256[:8]}...)"
        )
        raise DamagedArtifact(f"{problem}; train it again, or restore that model")
    return base


def suggest_checkpoint(reader: str) -> str:
    """How to get a checkpoint for a reader, for messages."""
    return f"name one of yours with --checkpoint DIR, or train one with: ifqa train {reader}"


def fingerprint_checkpoint(folder: Path, reader: str, tokenizer: str = "") -> str:
    """SHA-256 over the files of a checkpoint, and of its tokenizer if that is in another folder."""
    weights = weights_folder(folder, reader)
    return _fingerprint(folder, weights, tokenizer_folder(weights, tokenizer))


def _fingerprint(*folders: Path) -> str:
    return hashlib.sha256(
        "".join(map(loading.weights_fingerprint, dict.fromkeys(folders))).encode()
    ).hexdigest()


def open_checkpoint(
    name: str, tokenizer: str = "", reader: str = "fid", mend: str = "", merged: bool = True
) -> Checkpoint:
    """Load a checkpoint without running any code from it.

    The default model and conventions are the reader's.

    `tokenizer` is a folder or a model of the hub; empty for the checkpoint's own, or for T5's if it
    has none (as with FiD's published readers). `name` and `mend` are as in `checkpoint_folder`.
    Unless `merged`, an adapter is not added to its base.
    """
    loading.silence_transformers()
    folder = checkpoint_folder(name, reader, mend)
    manifest = load_t5_manifest(folder, reader)
    stored = manifest.conventions.model_dump(exclude_unset=True)
    weights = weights_folder(folder, reader, mend)
    model, published = _load(weights, mend or suggest_checkpoint(reader))
    if merged and weights != folder:
        model = _merge_adapter(model, folder)
    conventions = replace(CONVENTIONS[reader], **{"encoder_eos": not published} | stored)
    opened = loading.open_tokenizer(tokenizer_folder(weights, tokenizer))
    if len(opened) > model.config.vocab_size:
        problem = (
            f"the tokenizer of {weights} has {len(opened):,} tokens and the model "
            f"{model.config.vocab_size:,}"
        )
        raise ConfigError(f"{problem}; name the model's own tokenizer: --set reader.tokenizer=NAME")
    return Checkpoint(
        model=model,
        tokenizer=opened,
        conventions=conventions,
        manifest=manifest,
        folder=folder,
        weights=weights,
    )


def _load(folder: Path, mend: str) -> tuple["FusionInDecoder", bool]:
    """The model, and whether its weights have the names of facebookresearch/FiD."""
    import torch
    from transformers import GenerationConfig, T5Config

    from ifqa.reading.t5.fusion_in_decoder import FusionInDecoder

    with loading.report_load_errors(str(folder), "a T5", mend):
        config = T5Config.from_pretrained(str(folder))
        if loading.config_number(config, "decoder_start_token_id") is None:
            config.decoder_start_token_id = config.pad_token_id  # as in every T5
        tensors = _pickled(folder)
        published = any(name.startswith("encoder.encoder.") for name in tensors)
        source: dict[str, object] = {
            "pretrained_model_name_or_path": str(folder),
            "local_files_only": True,
        }
        if tensors:
            source = {"pretrained_model_name_or_path": None, "state_dict": tensors}
        if published:
            source["state_dict"] = {_t5_name(name): tensor for name, tensor in tensors.items()}
            config.cross_position_bias = _CROSS_BIAS in tensors
        source |= {"config": config, "dtype": torch.float32, "output_loading_info": True}
        model, report = FusionInDecoder.from_pretrained(**source)
    if wrong := sorted(
        map(str, {*report["missing_keys"], *report["unexpected_keys"], *report["mismatched_keys"]})
    ):
        raise FormatError(
            f"{folder} is incomplete: {len(wrong)} weights missing or unfit, such as "
            f"{wrong[0]}; {mend}"
        )
    # generate would take missing settings (beams, penalties, lengths) from the folder's
    # generation_config
    tokens = ("decoder_start_token_id", "eos_token_id", "pad_token_id")
    model.generation_config = GenerationConfig(**{name: getattr(config, name) for name in tokens})
    return model.eval(), published


def _merge_adapter(model: "FusionInDecoder", adapter: Path) -> "FusionInDecoder":
    from peft import PeftModel

    if model.lm_head.weight is not model.shared.weight:
        # Transformers sets it for every T5, and peft would warn
        model.config.tie_word_embeddings = False
    with loading.report_load_errors(str(adapter), "an adapter of a T5", "train it again"):
        network: Any = PeftModel.from_pretrained(model, str(adapter), local_files_only=True)
        merged: FusionInDecoder = network.merge_and_unload().eval()
    return merged


def _pickled(folder: Path) -> dict[str, "Tensor"]:
    """Name -> weights of a folder without safetensors; torch refuses a pickle that holds code."""
    import torch

    file = folder / "pytorch_model.bin"
    if any(folder.glob("*.safetensors")) or not file.exists():
        return {}
    tensors = torch.load(file, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict) or not all(isinstance(name, str) for name in tensors):
        raise ValueError(f"{file.name} does not hold weights by name")
    return tensors


def _t5_name(name: str) -> str:
    """T5's name of a weight, without FiD's wrappers around encoder and layers (FiD src/model.py:26,
    139, 189).
    """
    name = name.replace("encoder.encoder.", "encoder.", 1)
    return name.replace(".module.", ".") if name.startswith("encoder.block.") else name


def tokenizer_folder(folder: Path, name: str) -> Path:
    """The folder of a checkpoint's tokenizer: the named folder or model of the hub, else its own,
    else T5's.
    """
    if not name and any((folder / file).exists() for file in _TOKENIZER_FILES):
        return folder
    try:
        return places.model_folder(name or TOKENIZER)
    except IfqaError as error:
        mend = "copy T5's tokenizer.json into its folder, or name one: --set reader.tokenizer=DIR"
        raise MissingInput(f"{folder} has no tokenizer of its own, and {error}; {mend}") from error


def encode_texts(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], conventions: Conventions
) -> Features:
    """Padded token ids and their mask, both [texts, tokens].

    A text beyond `max_tokens` is cut at its end.
    """
    ids: list[list[int]] = []
    # Large batches, because transformers starts threads in each call
    for start in range(0, len(texts), CHUNK):
        ids += tokenizer(
            list(texts[start : start + CHUNK]),
            max_length=conventions.max_tokens,
            truncation=True,
            add_special_tokens=conventions.encoder_eos,
            return_attention_mask=False,
        )["input_ids"]
    return pad_ids(ids)


def pad_ids(ids: Sequence[Sequence[int]], padding: int = 0) -> Features:
    """Token ids of different lengths as one tensor, and its mask, False at padding."""
    import torch

    longest = max(map(len, ids), default=0)
    rows = [[*tokens, *[padding] * (longest - len(tokens))] for tokens in ids]
    lengths = torch.tensor([len(tokens) for tokens in ids])
    tensor = torch.tensor(rows, dtype=torch.long).view(len(ids), longest)
    return {"input_ids": tensor, "attention_mask": torch.arange(longest)[None] < lengths[:, None]}
