"""Loads a model's files: their fingerprint, the tokenizer, and errors of one line."""

import hashlib
import pickle
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import FormatError
from ifqa.models.places import model_folder
from ifqa.storage.files import cached_sha256

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase


def weights_fingerprint(folder: Path, only_weights: bool = False) -> str:
    """SHA-256 of the names and contents of a model's weights, and unless `only_weights` of its
    settings and tokenizer.
    """
    digest = hashlib.sha256()
    weights = ".safetensors" if any(folder.rglob("*.safetensors")) else ".bin"
    texts = () if only_weights else (".json", ".txt", ".model", ".jinja", ".metadata")
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (weights, *texts):
            digest.update(f"{path.relative_to(folder).as_posix()} {cached_sha256(path)}\n".encode())
    return digest.hexdigest()


def model_fingerprint(model: str, query_model: str = "") -> str:
    names = [model, *([query_model] if query_model else [])]
    return hashlib.sha256(
        "".join(weights_fingerprint(model_folder(name)) for name in names).encode()
    ).hexdigest()


def silence_transformers() -> None:
    """Switch off transformers' progress bars and warnings, but not its errors."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # Peft uses the old name
    warnings.filterwarnings("ignore", r".(is_)?gradient_checkpointing", FutureWarning)


@contextmanager
def report_load_errors(model: str, kind: str, mend: str = "") -> Iterator[None]:
    """Turn an error in loading a model into a FormatError of one line: "MODEL does not load as KIND
    (reason); MEND".
    """
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        yield
    except (  # TypeError, AttributeError, LookupError: a JSON value has the wrong type
        OSError,
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        RuntimeError,
        ImportError,
        SafetensorError,
        StrictDataclassError,
        pickle.UnpicklingError,
        EOFError,
    ) as error:
        reason = " ".join(str(error).split())[:200]
        end = f"; {mend}" if mend else ""
        raise FormatError(
            f"{model} does not load as {kind} ({type(error).__name__}: {reason}){end}"
        ) from error


def open_tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """The tokenizer of a model's folder; downloads nothing and runs no code from the folder."""
    from transformers import AutoTokenizer

    with report_load_errors(f"the tokenizer of {folder}", "a tokenizer of transformers"):
        return AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )


def config_number(config: "PretrainedConfig", name: str) -> int | None:
    number: int | None = getattr(config, name, None)
    return number


def refuse_missing(
    model: str, report: Mapping[str, Collection[object]], unused: str = "\0"
) -> None:
    """Refuse a model that lacks weights, which transformers would draw at random, except weights
    with `unused` in their names.
    """
    missing = sorted(
        str(key) for kind in ("missing_keys", "mismatched_keys") for key in report[kind]
    )
    if wrong := [name for name in missing if unused not in name]:
        problem = f"{len(wrong)} weights are missing or have a wrong shape, such as {wrong[0]}"
        raise FormatError(f"{model}: {problem}; fetch or copy the model's folder again")
