"""The encoders of the span reader: all-MiniLM-L6-v2, all-mpnet-base-v2, or any BERT or MPNet, by name or in a folder."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError, unknown
from ifqa.models.hub import NAME, WEIGHTS_SHA256, is_here, is_packaged, model_folder
from ifqa.storage.files import cached_sha256, read_json

if TYPE_CHECKING:
    from ifqa.models.transformer import Encoder

MPNET = "sentence-transformers/all-mpnet-base-v2"
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"  # of its model.safetensors
SHORT = MPNET.rpartition("/")[2]
PLACE = Path("models") / SHORT  # where `ifqa data all-mpnet-base-v2` puts it
WEIGHTS, _TOKENIZER = "model.safetensors", "tokenizer.json"
_OFFICIAL = {WEIGHTS_SHA256: NAME, MPNET_SHA256: MPNET}
_MEND = f"wanted a folder with an encoder, or {SHORT}, which this fetches: ifqa data {SHORT}"


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
    """The files of an encoder.

    Args:
        name: `NAME` or `MPNET`, with or without the organisation; a folder; or a model of the hub.
        root: the folder that a relative folder counts from, and in which `ifqa data` has put all-mpnet-base-v2.
    """
    folder = model_folder(_asked(name, root), _MEND)
    for file in (WEIGHTS, _TOKENIZER):
        if not (folder / file).is_file():
            raise IfqaError(f"{folder} has no {file}; {_MEND}")
    found = cached_sha256(folder / WEIGHTS)
    if is_mpnet(name) and found != MPNET_SHA256:
        raise IfqaError(
            f"{folder / WEIGHTS}: SHA-256 is {found[:8]}..., the official file's is {MPNET_SHA256[:8]}...; remove the folder "
            f"and fetch it again: ifqa data {SHORT}"
        )
    return Found(_OFFICIAL.get(found, name), folder, found)


def is_mpnet(name: str) -> bool:
    """Whether this names all-mpnet-base-v2."""
    return name in (MPNET, SHORT)


def is_found(name: str, root: Path) -> bool:
    """Whether an encoder opens without the network; its files are not looked at."""
    return is_here(_asked(name, root))


def _asked(name: str, root: Path) -> str:
    """The folder of an encoder if it is there, else its full name."""
    if is_packaged(name):
        return name
    folder = root / (PLACE if is_mpnet(name) else name)
    if os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for too long names
        return str(folder)
    return MPNET if is_mpnet(name) else name


def open_encoder(folder: Path, dropout: float = 0.0) -> "Encoder":
    """The network of an encoder, on the CPU; `dropout` is as in `Encoder`."""
    from safetensors import SafetensorError

    kind = _kind(folder)
    try:
        return kind(folder, dropout)
    except (SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise IfqaError(f"{folder} does not load as an encoder ({reason}); fetch or copy it again") from error


@cache
def marks(folder: Path) -> tuple[list[int], ...]:
    """The ids of the special tokens before, between and after the two texts of a pair."""
    from ifqa.models.transformer import tokenizer

    if not isinstance(read_json(folder / _TOKENIZER), dict):  # the library reads it unchecked
        raise IfqaError(f"{folder / _TOKENIZER}: wanted a JSON object; fetch or copy it again")
    words, wanted = tokenizer(folder), _kind(folder).MARKS
    for token in (token for tokens in wanted for token in tokens if words.token_to_id(token) is None):
        raise IfqaError(f"{folder / _TOKENIZER} has no token {token}; fetch or copy it again")
    return tuple([n for token in tokens if (n := words.token_to_id(token)) is not None] for tokens in wanted)


def _kind(folder: Path) -> type["Encoder"]:
    from ifqa.models.transformer import MiniLM, MPNet

    kinds: dict[str, type[Encoder]] = {"bert": MiniLM, "mpnet": MPNet}
    path = folder / "config.json"
    config = read_json(path)
    kind = str(config.get("model_type")) if isinstance(config, dict) else ""
    if kind not in kinds:
        raise unknown(f"model_type in {path}:", kind, kinds)
    return kinds[kind]
