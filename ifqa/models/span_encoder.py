"""The encoders of the span reader: all-MiniLM-L6-v2, all-mpnet-base-v2, or any BERT, MPNet,
ModernBERT or DeBERTa-v3, by name or in a folder.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import DamagedArtifact, FormatError, MissingInput, unknown_name
from ifqa.models.places import MINILM, MPNET, WEIGHTS, WEIGHTS_SHA256, model_folder
from ifqa.storage.files import cached_sha256, read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from ifqa.models.transformer import Encoder

_TOKENIZER = "tokenizer.json"
_OF_TRANSFORMERS = ("modernbert", "deberta-v2")  # DeBERTa-v3's files have DeBERTa-v2's type
_OFFICIAL = {WEIGHTS_SHA256: MINILM, MPNET.sha256: MPNET.hub}
_MEND = f"wanted a folder with an encoder, or {MPNET.name} (to fetch it: ifqa data {MPNET.name})"


@dataclass(frozen=True)
class EncoderFiles:
    """An encoder's files."""

    name: str  # the official name of official weights, else the requested name
    folder: Path  # has `config.json`, `model.safetensors` and `tokenizer.json`
    sha256: str  # the hash of `model.safetensors`

    @property
    def identity(self) -> dict[str, str]:
        return {"name": self.name, "sha256": self.sha256}


def find_encoder(name: str, root: Path = Path()) -> EncoderFiles:
    """The files of an encoder: all-MiniLM-L6-v2, all-mpnet-base-v2, a folder below `root`, or a
    model on the hub.
    """
    folder = model_folder(name, _MEND, root)
    for file in (WEIGHTS, _TOKENIZER):
        if not (folder / file).is_file():
            raise MissingInput(f"{folder} has no {file}; {_MEND}")
    sha256 = cached_sha256(folder / WEIGHTS)
    if name in (MPNET.name, MPNET.hub) and sha256 != MPNET.sha256:
        problem = (
            f"{folder / WEIGHTS}: SHA-256 is {sha256[:8]}..., the official file's is "
            f"{MPNET.sha256[:8]}..."
        )
        raise DamagedArtifact(
            f"{problem}; remove the folder and fetch it again: ifqa data {MPNET.name}"
        )
    return EncoderFiles(_OFFICIAL.get(sha256, name), folder, sha256)


def open_encoder(folder: Path, dropout: float = 0.0) -> "Encoder":
    """Load an encoder's network on the CPU; `dropout` as in `Encoder`."""
    from safetensors import SafetensorError

    kind = _encoder_class(folder)
    try:
        return kind(folder, dropout)
    except (SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise FormatError(
            f"{folder} does not load as an encoder ({reason}); fetch or copy it again"
        ) from error


@cache
def load_tokenizer(folder: Path) -> "Tokenizer":
    """The encoder's tokenizer, without padding or truncation."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@cache
def special_token_ids(folder: Path) -> tuple[list[int], ...]:
    """The ids of the special tokens before, between and after a pair's texts."""
    if not isinstance(read_json(folder / _TOKENIZER), dict):  # the library does not check this
        raise FormatError(f"{folder / _TOKENIZER}: wanted a JSON object; fetch or copy it again")
    tokenizer = load_tokenizer(folder)
    groups = _encoder_class(folder).SPECIAL_TOKENS
    for token in (
        token for tokens in groups for token in tokens if tokenizer.token_to_id(token) is None
    ):
        raise FormatError(f"{folder / _TOKENIZER} has no token {token}; fetch or copy it again")
    return tuple(
        [n for token in tokens if (n := tokenizer.token_to_id(token)) is not None]
        for tokens in groups
    )


def _encoder_class(folder: Path) -> type["Encoder"]:
    from ifqa.models.transformer import MiniLM, MPNet

    kinds: dict[str, type[Encoder]] = {"bert": MiniLM, "mpnet": MPNet}
    path = folder / "config.json"
    config = read_json(path)
    kind = str(config.get("model_type")) if isinstance(config, dict) else ""
    if kind in kinds:
        return kinds[kind]
    if kind in _OF_TRANSFORMERS:
        from ifqa.models.library_encoder import LibraryEncoder

        return LibraryEncoder
    raise unknown_name(f"model_type in {path}:", kind, [*kinds, *_OF_TRANSFORMERS])
