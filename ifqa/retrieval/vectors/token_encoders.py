"""Models of sentence-transformers that weigh the vocabulary (learned sparse) or give a vector a token (late interaction)."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ifqa.errors import IfqaError
from ifqa.models.devices import resolve_device
from ifqa.models.hub import (
    encoder_requirements,
    model_fingerprint,
    model_folder,
    refuse_missing,
    report_load_errors,
    silence_transformers,
)
from ifqa.protocols import IndexedRetriever, PathSetting, Requirement
from ifqa.records import BuildCost, Passage
from ifqa.retrieval.vectors.encoders import (
    load_report,
    precision_name,
    refuse_other_weights,
    replace_surrogates,
    to_float32,
)
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
_SAVED_TYPES: dict[TokenModelKind, tuple[str, ...]] = {
    "sparse": ("SparseEncoder",),
    "late": ("MultiVectorEncoder", "ColBERT"),
}
#: Passages; a sparse encoder has a number for each token and each word of its list.
BATCH = {"cpu": 16, "cuda": 64, "mps": 16}


class TokenIndexFacts(StoredModel):
    """What is stored of an index beside its shards."""

    model: Text
    weights: str  # SHA-256 of the model's files
    titles: bool
    precision: str
    passages: Positive


class TokenIndexRetriever(IndexedRetriever):
    """A retriever whose index holds what a model says of each token of the passages."""

    runtime_only = ("device",)
    resumes = True
    name: ClassVar[str]  # in messages, and of the file with the facts
    kind: ClassVar[TokenModelKind]
    arrays: ClassVar[tuple[str, ...]]  # names of the arrays of a shard
    once: ClassVar[int] = 0  # of these, the number of the first ones that have the same size for any number of passages

    @classmethod
    def encode(cls, model: Any, passages: Sequence[Passage], texts: list[str]) -> Arrays:
        """The arrays of a shard's passages; `texts` is what the model reads of each."""
        raise NotImplementedError

    @classmethod
    def facts_of(cls, index: Path) -> TokenIndexFacts:
        """What `build` wrote of an index.

        Raises:
            IfqaError: it is missing or damaged, or the index is of other weights than the model has now.
        """
        path = require_file(index / f"{cls.name}.json", f"{cls.name} index")
        facts = parse_stored(TokenIndexFacts, read_json(path), str(path), "build it again: ifqa index CORPUS")
        refuse_other_weights(index, facts.model, facts.weights, model_fingerprint(facts.model))
        return facts

    @classmethod
    @check_arguments("build setting", injected=["passages", "folder"])
    def build(
        cls,
        passages: Path,
        folder: Path,
        *,
        model: PathSetting,
        titles: bool = False,
        precision: Precision = "auto",
        device: str = "auto",
    ) -> None:
        """Encode a folder of passages.

        Args:
            passages: a folder with `passages-*.jsonl`.
            folder: gets the arrays; those of passages that a killed build had done are reused.
            model: a model of the retriever's kind, a folder or a name on the hub.
            titles: put a passage's title before its text.
            precision, device: see `open_token_model`.

        Raises:
            IfqaError: there are no passages, or the model is missing or of another kind.
        """
        precise = precision_name(precision, device)
        facts = {"model": model, "weights": model_fingerprint(model), "titles": titles, "precision": precise}
        encode = partial(cls._encode, open_token_model(cls.kind, model, precise, device), titles)
        made_with = f"{VERSION} {compute_fingerprint(facts | {'version': cls.version, 'model': ''})} "
        count = encode_corpus(passages, folder, cls.arrays, made_with, encode)
        write_json(folder / f"{cls.name}.json", facts | {"passages": count})

    @classmethod
    def _encode(cls, model: "TokenModel", titles: bool, passages: Sequence[Passage]) -> Arrays:
        texts = [
            f"{passage.title} {passage.text}" if titles and passage.title else passage.text for passage in passages
        ]
        return cls.encode(model, passages, [replace_surrogates(text) for text in texts])

    @classmethod
    def forecast(
        cls, passages: int, *, model: str, titles: bool = False, precision: str = "auto", device: str = "auto"
    ) -> BuildCost:
        """What `build` will take on this machine, measured by encoding some passages."""
        opened = open_token_model(cls.kind, model, precision, device)
        return estimate_encoding(passages, partial(cls._encode, opened, titles), opened.device.type, once=cls.once)

    @classmethod
    def build_requirements(cls, index: Path, *, model: str, root: Path = Path(), **_: object) -> list[Requirement]:
        """The encoder."""
        return encoder_requirements(model, root)

    @classmethod
    def build_fingerprint(cls, *, model: str, **_: object) -> str:
        """SHA-256 of the files of the model that `build` uses."""
        return model_fingerprint(model)


def open_token_model(kind: TokenModelKind, name: str, precision: str, device: str) -> Any:
    """A `SparseEncoder` ("sparse") or `MultiVectorEncoder` ("late") of sentence-transformers.

    Args:
        kind: what to open.
        name: a folder, or a model on the hub.
        precision: "float32", "bfloat16", or "auto" for bfloat16 where the device multiplies in it.
        device: "cpu", "cuda", "mps", or "auto".

    Raises:
        IfqaError: the model is missing, does not load, is of another kind, or lacks weights.
    """
    import torch
    from sentence_transformers import MultiVectorEncoder, SparseEncoder

    silence_transformers()
    device, folder = resolve_device(device), model_folder(name)
    opens = SparseEncoder if kind == "sparse" else MultiVectorEncoder
    with report_load_errors(name, _KIND_NAMES[kind]):
        _refuse_untrained(kind, name, folder)
        model: TokenModel = opens(str(folder), device=device, trust_remote_code=False, local_files_only=True)
        reports = [load_report(place, part) for part, place in _list_networks(model, folder)]
    for report in reports:
        refuse_missing(name, report, unused="pooler.")  # no module here pools by it
    if kind == "sparse" and model.similarity_fn_name != "dot":
        raise IfqaError(
            f"{name} compares by {model.similarity_fn_name!r}; wanted a model that compares by inner product"
        )
    if precision_name(precision, device) == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(to_float32)
    return model.eval()


def _refuse_untrained(kind: TokenModelKind, name: str, folder: Path) -> None:
    """sentence-transformers makes either kind of any encoder, and draws the weights that are lacking at random."""
    settings, config = (
        read_json(path) if (path := folder / file).exists() else {}
        for file in ("config_sentence_transformers.json", "config.json")
    )
    saved, architectures = str(settings.get("model_type", "")), list(map(str, config.get("architectures") or []))
    if kind == "sparse":
        bare = not (folder / "modules.json").exists()
        known = bare and any(architecture.endswith("ForMaskedLM") for architecture in architectures)
    else:  # PyLate's models before they named their type, or those of ColBERT's authors
        known = (not saved and "query_prefix" in settings) or "HF_ColBERT" in architectures
    if not known and saved not in _SAVED_TYPES[kind]:
        raise IfqaError(
            f"{name} is not {_KIND_NAMES[kind]}: its files name {saved or ', '.join(architectures) or 'no such type'}; see "
            "docs/retrieval.md for models that are"
        )


def _list_networks(model: "TokenModel", folder: Path) -> Iterator[tuple["nn.Module", Path]]:
    """The modules that hold a network of transformers, each with the folder of its files."""
    path = folder / "modules.json"
    listed = [folder / module["path"] for module in read_json(path)] if path.exists() else [folder]
    for part, place in zip(model, listed, strict=False):  # a model of another library's layout adds modules at the end
        if (routes := getattr(part, "sub_modules", None)) is None:
            yield part, place
            continue
        for route, names in read_json(place / "router_config.json")["structure"].items():
            yield from ((inner, place / name) for inner, name in zip(routes[route], names, strict=True))
