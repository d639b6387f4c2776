"""The encoders of the span reader: all-MiniLM-L6-v2, or any BERT, by name or in a folder."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError, unknown
from ifqa.models.hub import NAME, WEIGHTS_SHA256, is_packaged, model_folder
from ifqa.storage.files import cached_sha256, read_json

if TYPE_CHECKING:
    from ifqa.models.transformer import Encoder

WEIGHTS, _TOKENIZER = "model.safetensors", "tokenizer.json"
_MEND = "wanted a folder with a BERT as an encoder"


@dataclass(frozen=True)
class Found:
    """An encoder's files.

    Attributes:
        name: its official name if the weights are official, else the name that was asked for.
        folder: where `config.json`, `model.safetensors` and `tokenizer.json` are.
        sha256: of `model.safetensors`.
    """

    name: str
    folder: Path
    sha256: str

    @property
    def identity(self) -> dict[str, str]:
        """Name and SHA-256, as a manifest has them."""
        return {"name": self.name, "sha256": self.sha256}


def find_encoder(name: str, root: Path = Path()) -> Found:
    """The files of an encoder: all-MiniLM-L6-v2, a folder (a relative one counts from `root`), or a model of the hub."""
    here = not is_packaged(name) and os.path.isdir(root / name)  # noqa: PTH112 - Path.is_dir raises for too long names
    folder = model_folder(str(root / name) if here else name, _MEND)
    for file in (WEIGHTS, _TOKENIZER):
        if not (folder / file).is_file():
            raise IfqaError(f"{folder} has no {file}; {_MEND}")
    sha256 = cached_sha256(folder / WEIGHTS)
    return Found(NAME if sha256 == WEIGHTS_SHA256 else name, folder, sha256)


def open_encoder(folder: Path, dropout: float = 0.0) -> "Encoder":
    """The network of an encoder, on the CPU; `dropout` is as in `Encoder`. IfqaError if it is no BERT, or damaged."""
    from safetensors import SafetensorError

    from ifqa.models.transformer import Encoder

    path = folder / "config.json"
    config = read_json(path)
    if not isinstance(config, dict) or config.get("model_type") != "bert":
        kind = config.get("model_type") if isinstance(config, dict) else config
        raise unknown(f"model_type in {path}:", str(kind), ["bert"])
    try:
        return Encoder(folder, dropout)
    except (SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise IfqaError(f"{folder} does not load as an encoder ({reason}); fetch or copy it again") from error


@cache
def marks(folder: Path) -> tuple[list[int], ...]:
    """The ids of the special tokens before, between and after the two texts of a pair."""
    from ifqa.models.transformer import tokenizer

    if not isinstance(read_json(folder / _TOKENIZER), dict):  # the library reads it unchecked
        raise IfqaError(f"{folder / _TOKENIZER}: wanted a JSON object; fetch or copy it again")
    words, ids = tokenizer(folder), []
    for token in ("[CLS]", "[SEP]", "[SEP]"):
        number = words.token_to_id(token)
        if number is None:
            raise IfqaError(f"{folder / _TOKENIZER} has no token {token}; fetch or copy it again")
        ids.append([number])
    return tuple(ids)
