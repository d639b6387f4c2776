"""Opens checkpoints of T5, and makes token ids of texts by a checkpoint's conventions.

A checkpoint is one of this project's, any T5 of the hub, or one of facebookresearch/FiD's.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.models.devices import CHUNK, Features
from ifqa.models.hub import (
    config_number,
    model_folder,
    open_tokenizer,
    report_load_errors,
    silence_transformers,
    weights_fingerprint,
)
from ifqa.settings import StoredModel, StrictModel, parse_stored
from ifqa.storage.files import read_json

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from ifqa.reading.t5.model import FusionInDecoder

#: Reader -> the model that it reads with if no checkpoint is named. UnifiedQA's is CausalQA's (coling22-benchmark-for-causal-
#: question-answering finetuning/train_unifiedqa.py:11).
DEFAULT_CHECKPOINTS = {
    "fid": "google/flan-t5-base",
    "rag": "google/flan-t5-base",
    "unifiedqa": "allenai/unifiedqa-v2-t5-base-1363200",
}
MAX_TOKENS = 250  # of question and passage together, as FiD's published readers were trained (FiD README:121)
TOKENIZER = "google-t5/t5-base"  # of all T5 models of version 1 (FiD test_reader.py:89)
_CROSS_BIAS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
_TOKENIZER_FILES = ("tokenizer.json", "spiece.model")

Mode = Literal["sequence", "token"]  # of RAG (see `ifqa.reading.t5.rag_model.log_likelihoods`)


@dataclass(frozen=True)
class Conventions:
    """How texts become inputs; a checkpoint reads best with the conventions of its training.

    `max_tokens` of question and passage together are read, and passages' `titles`: IfQA's gold passages have none and articles
    do, so in a corpus with both a title shows that a passage is not gold. With `encoder_eos` an input ends in `</s>`: FiD's
    published readers were trained with transformers before version 4, which added none.
    """

    max_tokens: int = MAX_TOKENS
    titles: bool = True
    encoder_eos: bool = True

    def __post_init__(self) -> None:
        """Refuse a `max_tokens` that is too short for any question."""
        if self.max_tokens < 16:
            raise IfqaError(f"max_tokens: wanted 16 or more for question and passage, found {self.max_tokens}")


#: Reader -> the conventions of a checkpoint that has none of its own. CausalQA trained UnifiedQA on 2048 tokens
#: (coling22-benchmark-for-causal-question-answering finetuning/train_unifiedqa.py:18).
CONVENTIONS = {"fid": Conventions(), "rag": Conventions(), "unifiedqa": Conventions(max_tokens=2048)}


class _StoredConventions(StrictModel):
    max_tokens: int = MAX_TOKENS
    titles: bool = True
    encoder_eos: bool = True


class _StoredRag(StoredModel):
    mode: Mode = "sequence"
    temperature: Annotated[float, Field(gt=0)] = 1.0


class T5Manifest(StoredModel):
    """What the manifest of `ifqa train` says; the defaults are those of a checkpoint from elsewhere.

    `family` and `sources` name the training data: a split family such as "ifqa/full", and question file -> SHA-256. `rag` has
    the mode and the temperature that were learnt.
    """

    family: str = ""
    sources: dict[str, str] = Field(default_factory=dict)
    conventions: _StoredConventions = Field(default_factory=_StoredConventions)
    rag: _StoredRag = Field(default_factory=_StoredRag)


def load_t5_manifest(folder: Path, reader: str) -> T5Manifest:
    """The manifest of a checkpoint's training."""
    path = folder / "manifest.json"
    return parse_stored(T5Manifest, read_json(path) if path.exists() else {}, str(path), suggest_checkpoint(reader))


@dataclass(kw_only=True)
class Checkpoint:
    """A network ready to read, in evaluation mode on the CPU, float32."""

    model: "FusionInDecoder"
    tokenizer: "PreTrainedTokenizerBase"
    conventions: Conventions
    manifest: T5Manifest


def checkpoint_folder(name: str, reader: str = "fid", mend: str = "") -> Path:
    """The folder of a checkpoint: a folder, or a model of the hub; empty for the reader's own (see `DEFAULT_CHECKPOINTS`).

    `mend` says how to name another one, empty for the way of a reader.
    """
    if name and (Path(name) / "inputs.json").exists() and not (Path(name) / "manifest.json").exists():
        raise IfqaError(f"{name} holds a training that is not finished; run its `ifqa train {reader}` again")
    mend = mend or suggest_checkpoint(reader)
    alone = f"reader {reader!r} uses this model if no checkpoint is named: {mend}"
    folder = model_folder(name or DEFAULT_CHECKPOINTS[reader], mend if name else alone)
    config = read_json(folder / "config.json")
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind != "t5":
        raise IfqaError(
            f"{folder} is no checkpoint for reader {reader!r}: wanted a model of type t5, found {kind}; {mend}"
        )
    return folder


def suggest_checkpoint(reader: str) -> str:
    """How a user gets a checkpoint for a reader."""
    return f"name one of yours with --checkpoint DIR, or train one with: ifqa train {reader}"


def fingerprint_checkpoint(folder: Path, tokenizer: str = "") -> str:
    """SHA-256 over a checkpoint's files, and the tokenizer's files if they are in another folder."""
    other = tokenizer_folder(folder, tokenizer)
    files = [weights_fingerprint(folder), *([weights_fingerprint(other)] if other != folder else [])]
    return hashlib.sha256("".join(files).encode()).hexdigest()


def open_checkpoint(name: str, tokenizer: str = "", reader: str = "fid", mend: str = "") -> Checkpoint:
    """Load a checkpoint without running any code from it.

    `tokenizer` is a folder, or a model of the hub; empty for the checkpoint's own, or T5's if it has none, as the published
    readers. `reader`, "fid", "rag" or "unifiedqa", decides the default model and `CONVENTIONS`. The others are as of
    `checkpoint_folder`.
    """
    silence_transformers()
    folder = checkpoint_folder(name, reader, mend)
    manifest = load_t5_manifest(folder, reader)
    known = manifest.conventions.model_dump(exclude_unset=True)
    model, published = _load(folder, mend or suggest_checkpoint(reader))
    conventions = replace(CONVENTIONS[reader], **{"encoder_eos": not published} | known)
    texts = open_tokenizer(tokenizer_folder(folder, tokenizer))
    if len(texts) > model.config.vocab_size:
        raise IfqaError(
            f"the tokenizer of {folder} has {len(texts):,} tokens and the model {model.config.vocab_size:,}; "
            "name the model's own tokenizer: --set reader.tokenizer=NAME"
        )
    return Checkpoint(model=model, tokenizer=texts, conventions=conventions, manifest=manifest)


def _load(folder: Path, mend: str) -> tuple["FusionInDecoder", bool]:
    """The model, and whether its file is in the layout of facebookresearch/FiD."""
    import torch
    from transformers import GenerationConfig, T5Config

    from ifqa.reading.t5.model import FusionInDecoder

    with report_load_errors(str(folder), "a T5", mend):
        config = T5Config.from_pretrained(str(folder))
        if config_number(config, "decoder_start_token_id") is None:
            config.decoder_start_token_id = config.pad_token_id  # as in every T5
        tensors = _pickled(folder)
        published = any(name.startswith("encoder.encoder.") for name in tensors)
        source: dict[str, object] = {"pretrained_model_name_or_path": str(folder), "local_files_only": True}
        if tensors:
            source = {"pretrained_model_name_or_path": None, "state_dict": tensors}
        if published:
            source["state_dict"] = {_t5_name(name): tensor for name, tensor in tensors.items()}
            config.cross_position_bias = _CROSS_BIAS in tensors
        model, report = FusionInDecoder.from_pretrained(
            config=config, dtype=torch.float32, output_loading_info=True, **source
        )
    if wrong := sorted(map(str, {*report["missing_keys"], *report["unexpected_keys"], *report["mismatched_keys"]})):
        raise IfqaError(
            f"{folder} is no whole T5: {len(wrong)} weights are missing or do not fit, as {wrong[0]}; {mend}"
        )
    # generate would take missing settings (beams, penalties, lengths) from the folder's generation_config
    model.generation_config = GenerationConfig(
        decoder_start_token_id=config.decoder_start_token_id, eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
    )  # fmt: skip
    return model.eval(), published


def _pickled(folder: Path) -> dict[str, "Tensor"]:
    """Weights by name of a folder without safetensors."""
    import torch

    file = folder / "pytorch_model.bin"
    if any(folder.glob("*.safetensors")) or not file.exists():
        return {}
    tensors = torch.load(file, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict) or not all(isinstance(name, str) for name in tensors):
        raise ValueError(f"{file.name} holds no table of weights by name")
    return tensors


def _t5_name(name: str) -> str:
    """T5's name of a weight of FiD, without FiD's wrappers of encoder and layers (FiD src/model.py:26, 139, 189)."""
    parts = name.replace("encoder.encoder.", "encoder.", 1).split(".")
    wrapped = parts[:2] == ["encoder", "block"]
    return ".".join(part for part in parts if not (wrapped and part == "module"))


def tokenizer_folder(folder: Path, name: str) -> Path:
    """The folder of a checkpoint's tokenizer: the named folder or model of the hub, else its own, else T5's."""
    if not name and _has_tokenizer(folder):
        return folder
    try:
        return model_folder(name or TOKENIZER)
    except IfqaError as error:
        mend = "copy T5's tokenizer.json into its folder, or name one: --set reader.tokenizer=DIR"
        raise IfqaError(f"{folder} has no tokenizer of its own, and {error}; {mend}") from error


def _has_tokenizer(folder: Path) -> bool:
    """Whether the folder has a vocabulary, or names a tokenizer class that needs none, such as ByT5's.

    AutoTokenizer cannot tell: for a folder without a vocabulary it makes a T5 tokenizer that knows no words.
    """
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

    if any((folder / file).exists() for file in _TOKENIZER_FILES):
        return True
    for path in (folder / "tokenizer_config.json", folder / "config.json"):
        table = read_json(path) if path.exists() else None
        if isinstance(table, dict) and isinstance(name := table.get("tokenizer_class"), str):
            kind = tokenizer_class_from_name(name)
            return kind is not None and not kind.vocab_files_names
    return False


def encode_texts(tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], conventions: Conventions) -> Features:
    """Padded token ids and their mask, both [texts, tokens]; an over-long text is cut at its end."""
    ids: list[list[int]] = []
    for start in range(0, len(texts), CHUNK):  # transformers starts threads in each call, so make few large calls
        ids += tokenizer(
            list(texts[start : start + CHUNK]), max_length=conventions.max_tokens, truncation=True,
            add_special_tokens=conventions.encoder_eos, return_attention_mask=False,
        )["input_ids"]  # fmt: skip
    return pad_ids(ids)


def pad_ids(ids: Sequence[Sequence[int]], padding: int = 0) -> Features:
    """Token ids of different lengths as one tensor, and its mask, False at padding."""
    import torch

    longest = max(map(len, ids), default=0)
    tensor = torch.full((len(ids), longest), padding, dtype=torch.long)
    for row, tokens in enumerate(ids):
        tensor[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
    lengths = torch.tensor(list(map(len, ids)))
    return {"input_ids": tensor, "attention_mask": torch.arange(longest)[None] < lengths[:, None]}
