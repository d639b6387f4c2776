"""Loads a causal language model of transformers and its tokenizer from a folder, without running code from it."""

from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError
from ifqa.models.hub import loading, open_tokenizer

MEND = "wanted a causal language model, such as Qwen/Qwen2.5-1.5B-Instruct"
WINDOW = 4096  # tokens; of a model whose files do not say
#: Tokens of prompts and answers in a batch, with padding.
BUDGET = {"cpu": 8192, "cuda": 65_536, "mps": 16_384}
_SHARE = 0.4  # of a GPU's free memory, for keys and values
_MOST = (
    65_536  # tokens on a CPU, where a small model's keys and values leave room: each step reads all weights for a batch
)
_MEMORY = 2 << 30  # bytes of keys and values that are small on a CPU
_TOKENIZERS = ("tokenizer.json", "*.model", "vocab.json", "vocab.txt", "tekken.json")


def load_model(folder: Path, device: str, precision: str, adapter: Path | None = None) -> Any:
    """The network in evaluation mode, on its device, with an adapter of peft merged into its weights.

    Raises:
        IfqaError: it does not load, lacks weights, is no causal language model, or is too large for the device.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    from ifqa.models.devices import resolve_device, resolve_precision

    device = resolve_device(device)
    dtype = resolve_precision(precision, device)
    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with loading(str(folder), "a causal language model", MEND):
        config = AutoConfig.from_pretrained(str(folder), **here)
        _check_kind(folder, config, [*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()])
        model, report = AutoModelForCausalLM.from_pretrained(
            str(folder), config=config, dtype=dtype, weights_only=True, output_loading_info=True, **here
        )
    if wrong := sorted(map(str, {*report["missing_keys"], *report["mismatched_keys"]})):
        raise IfqaError(
            f"{folder} lacks weights of a causal language model: {len(wrong)} are missing or of another shape, such as "
            f"{wrong[0]}; {MEND}"
        )
    if adapter:
        model = _merged(model, adapter)
    # The last tokens' states are a slice. torch.matmul copies the whole output matrix for each row of a batch of those.
    model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: (inputs[0].contiguous(), *inputs[1:]))
    try:
        return model.eval().to(device)
    except torch.OutOfMemoryError as error:
        raise IfqaError(f"{folder} does not fit into the memory of {device}; take a smaller model") from error


def _merged(model: Any, adapter: Path) -> Any:
    try:
        from peft import PeftModel
    except ImportError as error:
        raise IfqaError(f"{adapter} needs peft; install it with: pip install 'ifqa[train]'") from error
    with loading(str(adapter), "an adapter of peft"):
        return PeftModel.from_pretrained(model, str(adapter), local_files_only=True).merge_and_unload()


def _check_kind(folder: Path, config: Any, causal: list[Any]) -> None:
    """Refuse other kinds by config.json: a masked model, say, would load as a causal one and write nonsense."""
    known = {name for names in causal for name in ([names] if isinstance(names, str) else names)}
    architectures = list(config.architectures or [])
    if config.is_encoder_decoder or (architectures and not known.intersection(architectures)):
        raise IfqaError(
            f"{folder} is no causal language model but {', '.join(architectures) or config.model_type}; {MEND}"
        )


def load_tokenizer(folder: Path, model: Any) -> Any:
    """The tokenizer of a model's folder.

    Raises:
        IfqaError: there is none, it does not load, or it belongs to another model.
    """
    if not any(next(folder.glob(name), None) for name in _TOKENIZERS):
        raise IfqaError(f"{folder} has no tokenizer (such as tokenizer.json); copy the model's own into it")
    tokenizer = open_tokenizer(folder)
    vocabulary = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > vocabulary:
        raise IfqaError(
            f"the tokenizer of {folder} has {len(tokenizer):,} tokens and the model {vocabulary:,}; copy the model's "
            "own into it"
        )
    return tokenizer


def window_of(model: Any) -> int:
    """Number of the model's positions, in tokens."""
    return getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None) or WINDOW


def ends(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end an answer, from all of the model's files: a chat's end token often differs from a text's."""
    config = model.config.get_text_config(decoder=True)
    named = [model.generation_config.eos_token_id, getattr(config, "eos_token_id", None), tokenizer.eos_token_id]
    tokens = [token for entry in named for token in (entry if isinstance(entry, list) else [entry])]
    return frozenset(token for token in tokens if token is not None)


def room(model: Any) -> int:
    """Tokens of prompts and answers that fit on the device: each has a key and a value in every layer."""
    import torch

    budget = BUDGET[model.device.type]
    config = model.config.get_text_config(decoder=True)
    layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    if model.device.type == "mps" or not layers or not heads:
        return budget
    kept = getattr(config, "num_key_value_heads", None) or heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    token: int = 2 * layers * kept * size * model.dtype.itemsize
    if model.device.type == "cpu":
        return max(budget, min(_MOST, _MEMORY // token))
    return max(1, min(budget, int(_SHARE * torch.cuda.mem_get_info(model.device)[0] / token)))
