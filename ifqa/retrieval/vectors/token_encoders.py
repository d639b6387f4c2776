"""Token-level encoders of sentence-transformers: learned sparse (vocabulary weights) and late interaction (token vectors)."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ifqa.errors import ConfigError
from ifqa.models import hub
from ifqa.models.devices import resolve_device
from ifqa.protocols import IndexedRetriever, PathSetting, Requirement
from ifqa.records import BuildCost, Passage
from ifqa.retrieval.vectors import encoders
from ifqa.retrieval.vectors.vector_store import VERSION, Arrays, encode_corpus, estimate_encoding
from ifqa.settings import Positive, Precision, StoredModel, Text, check_arguments, parse_stored
from ifqa.storage.artifacts import compute_fingerprint
from ifqa.storage.files import read_json, require_file, write_json

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder, SparseEncoder
    from torch import nn

    TokenModel = SparseEncoder | MultiVectorEncoder

TokenModelKind = Literal["sparse", "late"]
_KIND_NAMES: dict[TokenModelKind, str] = {"sparse": "a learned sparse encoder", "late": "a late-interaction model"}
_SAVED_TYPES: dict[TokenModelKind, list[str]] = {"sparse": ["SparseEncoder"], "late": ["MultiVectorEncoder", "ColBERT"]}
BATCH = {
    "cpu": 16,
    "cuda": 64,
    "mps": 16,
}  # passages; a sparse encoder computes a number for each token and vocabulary word


class TokenIndexFacts(StoredModel):
    """The settings of an index, stored with its shards."""

    model: Text
    weights: str  # SHA-256 of the model's files
    titles: bool
    precision: str
    passages: Positive


class TokenIndexRetriever(IndexedRetriever):
    """The base of retrievers whose index stores a model's outputs for the passages' tokens."""

    runtime_only = ("device",)
    resumes = True
    name: ClassVar[str]  # in messages and in the name of the facts file
    kind: ClassVar[TokenModelKind]
    arrays: ClassVar[tuple[str, ...]]  # names of a shard's arrays
    fixed_arrays: ClassVar[int] = 0  # how many of the first arrays do not grow with the number of passages

    @classmethod
    def encode(cls, model: Any, passages: Sequence[Passage], texts: list[str]) -> Arrays:
        """The arrays of a shard; the model reads `texts`, the passages' texts."""
        raise NotImplementedError

    @classmethod
    def read_facts(cls, index: Path) -> TokenIndexFacts:
        """The facts of an index. Raises IfqaError if they are missing or damaged, or the model's weights changed."""
        path = require_file(index / f"{cls.name}.json", f"{cls.name} index")
        facts = parse_stored(TokenIndexFacts, read_json(path), str(path), "build it again: ifqa index CORPUS")
        encoders.refuse_other_weights(index, facts.model, facts.weights, hub.model_fingerprint(facts.model))
        return facts

    @classmethod
    @check_arguments("build setting", injected=["passages", "folder"])
    def build(
        cls, passages: Path, folder: Path, *, model: PathSetting, titles: bool = False, precision: Precision = "auto",
        device: str = "auto",
    ) -> None:  # fmt: skip
        """Encode `passages-*.jsonl` into a folder; shards of an interrupted build are reused.

        With `titles`, a passage's title goes before its text; for the other settings see `open_token_model`. Raises IfqaError if
        there are no passages, or the model is missing or of another kind.
        """
        resolved = encoders.precision_name(precision, device)
        facts = {"model": model, "weights": hub.model_fingerprint(model), "titles": titles, "precision": resolved}
        encode = partial(cls._encode, open_token_model(cls.kind, model, resolved, device), titles)
        fingerprint = f"{VERSION} {compute_fingerprint(facts | {'version': cls.version, 'model': ''})} "
        count = encode_corpus(passages, folder, cls.arrays, fingerprint, encode)
        write_json(folder / f"{cls.name}.json", facts | {"passages": count})

    @classmethod
    def _encode(cls, model: "TokenModel", titles: bool, passages: Sequence[Passage]) -> Arrays:
        pairs = [(passage.title if titles else "", passage.text) for passage in passages]
        texts = [encoders.replace_surrogates(f"{title} {text}" if title else text) for title, text in pairs]
        return cls.encode(model, passages, texts)

    @classmethod
    def forecast(
        cls, passages: int, *, model: str, titles: bool = False, precision: str = "auto", device: str = "auto"
    ) -> BuildCost:
        """The cost of `build` on this machine, measured by encoding some passages."""
        encoder = open_token_model(cls.kind, model, precision, device)
        encode = partial(cls._encode, encoder, titles)
        return estimate_encoding(passages, encode, encoder.device.type, fixed_arrays=cls.fixed_arrays)

    @classmethod
    def build_requirements(cls, index: Path, *, model: str, root: Path = Path(), **_: object) -> list[Requirement]:
        """The encoder."""
        return hub.encoder_requirements(model, root)

    @classmethod
    def build_fingerprint(cls, *, model: str, **_: object) -> str:
        """SHA-256 of the model files that `build` uses."""
        return hub.model_fingerprint(model)


def open_token_model(kind: TokenModelKind, name: str, precision: str, device: str) -> Any:
    """Load a `SparseEncoder` ("sparse") or `MultiVectorEncoder` ("late") of sentence-transformers.

    The model is a folder or a name on the hub; precision and device are as in `ifqa.retrieval.vectors.encoders.EncoderSettings`.
    Raises IfqaError if the model is missing, cannot be loaded, is of another kind, or lacks weights.
    """
    import torch
    from sentence_transformers import MultiVectorEncoder, SparseEncoder

    hub.silence_transformers()
    device, folder = resolve_device(device), hub.model_folder(name)
    model_class = SparseEncoder if kind == "sparse" else MultiVectorEncoder
    with hub.report_load_errors(name, _KIND_NAMES[kind]):
        _refuse_untrained(kind, name, folder)
        model: TokenModel = model_class(str(folder), device=device, trust_remote_code=False, local_files_only=True)
        reports = [encoders.load_report(path, module) for module, path in _list_networks(model, folder)]
    for report in reports:
        hub.refuse_missing(name, report, unused="pooler.")
    if kind == "sparse" and (similarity := model.similarity_fn_name) != "dot":
        raise ConfigError(f"{name} has the similarity {similarity!r}; wanted a model for inner product ('dot')")
    if encoders.precision_name(precision, device) == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(encoders.to_float32)
    return model.eval()


def _refuse_untrained(kind: TokenModelKind, name: str, folder: Path) -> None:
    """Refuse models of another kind: sentence-transformers opens any encoder, and initialises missing weights at random."""
    paths = (folder / "config_sentence_transformers.json", folder / "config.json")
    settings, config = (read_json(path) if path.exists() else {} for path in paths)
    saved, architectures = str(settings.get("model_type", "")), list(map(str, config.get("architectures") or []))
    if kind == "sparse":
        bare = not (folder / "modules.json").exists()
        known = bare and any(architecture.endswith("ForMaskedLM") for architecture in architectures)
    else:  # old PyLate models, which lack the type, or models of ColBERT's authors
        known = (not saved and "query_prefix" in settings) or "HF_ColBERT" in architectures
    if not known and saved not in _SAVED_TYPES[kind]:
        kinds = saved or ", ".join(architectures) or "no type"
        fault = f"{name} is not {_KIND_NAMES[kind]}: its files name {kinds}"
        raise ConfigError(f"{fault}; docs/retrieval.md lists suitable models")


def _list_networks(model: "TokenModel", folder: Path) -> Iterator[tuple["nn.Module", Path]]:
    """The modules with a network of transformers, each with the folder of its files."""
    modules = folder / "modules.json"
    folders = [folder / module["path"] for module in read_json(modules)] if modules.exists() else [folder]
    for module, path in zip(model, folders, strict=False):  # for other libraries' layouts, modules are added at the end
        if (routes := getattr(module, "sub_modules", None)) is None:
            yield module, path
            continue
        for route, names in read_json(path / "router_config.json")["structure"].items():
            yield from ((submodule, path / name) for submodule, name in zip(routes[route], names, strict=True))
