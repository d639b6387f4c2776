"""Models of sentence-transformers that weigh the vocabulary (learned sparse) or give a vector a token (late interaction)."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision, resolve_device
from ifqa.models.hub import encoder_requirements, identity_of, loading, model_folder, quiet, refuse_missing
from ifqa.protocols import Indexed, Place, Requirement
from ifqa.records import Passage
from ifqa.retrieval.vectors.encoders import in_float, load_report, refuse_other_weights
from ifqa.retrieval.vectors.sharded_build import Encode, Pace, encode_here, pace
from ifqa.settings import Positive, Precision, Stored, Text, check_stored, checked
from ifqa.storage.artifacts import identity
from ifqa.storage.files import read_json, require, write_json

Kind = Literal["sparse", "late"]
_CALLED: dict[Kind, str] = {"sparse": "a learned sparse encoder", "late": "a late-interaction model"}
_SAVED: dict[Kind, tuple[str, ...]] = {"sparse": ("SparseEncoder",), "late": ("MultiVectorEncoder", "ColBERT")}
BATCH = {
    "cpu": 16,
    "cuda": 64,
    "mps": 16,
}  # passages; a sparse encoder has a number for each token and each word of its list


class Facts(Stored):
    """What is stored of an index beside its shards."""

    model: Text
    weights: str  # SHA-256 of the model's files
    titles: bool
    precision: str
    passages: Positive


class TokenIndexed(Indexed):
    """A retriever whose index holds what a model says of each token of the passages."""

    not_identity = ("device",)
    resumes = True
    name: ClassVar[str]  # in messages, and of the file with the facts
    kind: ClassVar[Kind]
    arrays: ClassVar[tuple[str, ...]]  # names of the arrays of a shard

    @classmethod
    def open_model(cls, model: str, precision: str, device: str) -> Any:
        """The model of a name, as `open_token_model` opens it."""
        return open_token_model(cls.kind, model, precision, device)

    @classmethod
    def encoder(cls, model: Any, titles: bool) -> Encode:
        """A function that makes the arrays of passages."""
        raise NotImplementedError

    @classmethod
    def facts_of(cls, index: Path) -> Facts:
        """What `build` wrote of an index.

        Raises:
            IfqaError: it is missing or damaged, or the index is of other weights than the model has now.
        """
        path = require(index / f"{cls.name}.json", f"{cls.name} index")
        facts = check_stored(Facts, read_json(path), str(path), "build it again: ifqa index CORPUS")
        refuse_other_weights(index, facts.model, facts.weights, identity_of(facts.model))
        return facts

    @classmethod
    @checked("build setting", given=["passages", "folder"])
    def build(
        cls,
        passages: Path,
        folder: Path,
        *,
        model: Place,
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
        precise, weights = resolve_precision(precision, device), identity_of(model)
        facts = {"model": model, "weights": weights, "titles": titles, "precision": precise}
        encode = cls.encoder(cls.open_model(model, precise, device), titles)
        made_with = identity(facts | {"version": cls.version, "model": ""})
        count = encode_here(passages, folder, cls.arrays, made_with, encode)
        write_json(folder / f"{cls.name}.json", facts | {"passages": count})

    @classmethod
    def pace(cls, model: str, titles: bool, precision: str, device: str) -> Pace:
        """How fast `build` encodes on this machine.

        Raises:
            IfqaError: the model is missing, or a setting is out of range.
        """
        opened = cls.open_model(model, precision, device)
        return pace(cls.encoder(opened, titles), opened.device.type, copies=3)

    @classmethod
    def build_requirements(cls, index: Path, *, model: str, root: Path = Path(), **_: object) -> list[Requirement]:
        """The encoder."""
        return encoder_requirements(model, root)

    @classmethod
    def built_from(cls, *, model: str, **_: object) -> str:
        """SHA-256 of the files of the model that `build` uses."""
        return identity_of(model)


def texts_of(passages: Sequence[Passage], titles: bool) -> list[str]:
    """What is encoded of passages: the text, after the title where `titles` is set."""
    whole = [f"{passage.title} {passage.text}" if titles and passage.title else passage.text for passage in passages]
    return [text.encode("utf-8", "replace").decode() for text in whole]  # tokenizers refuse lone surrogates


def open_token_model(kind: Kind, name: str, precision: str, device: str) -> Any:
    """A `SparseEncoder` ("sparse") or `MultiVectorEncoder` ("late") of sentence-transformers; the last one opened is kept.

    Args:
        kind: what to open.
        name: a folder, or a model on the hub.
        precision: "float32", "bfloat16", or "auto" for bfloat16 where the device multiplies in it.
        device: "cpu", "cuda", "mps", or "auto".

    Raises:
        IfqaError: the model is missing, does not load, is of another kind, or lacks weights.
    """
    device = resolve_device(device)
    return _opened(kind, name, resolve_precision(precision, device), device, identity_of(name))


@lru_cache(maxsize=1)  # by the files' hash too, for a model may be trained again in the same folder
def _opened(kind: Kind, name: str, precision: str, device: str, weights: str) -> Any:
    import torch
    from sentence_transformers import MultiVectorEncoder, SparseEncoder

    quiet()
    folder = model_folder(name)
    opens: Any = SparseEncoder if kind == "sparse" else MultiVectorEncoder
    with loading(name, folder, _CALLED[kind]):
        _refuse_untrained(kind, name, folder)
        model = opens(str(folder), device=device, trust_remote_code=False, local_files_only=True)
        reports = [load_report(place, part) for part, place in _networks(model, folder)]
    for report in reports:
        refuse_missing(name, report, unused="pooler.")  # no module here pools by it
    if precision == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(in_float)
    return model.eval()


def resolve_precision(precision: str, device: str) -> str:
    """`precision`, or on "auto" the one that suits the device."""
    resolved = str(half_precision(resolve_device(device))).removeprefix("torch.")
    return resolved if precision == "auto" else precision


def _refuse_untrained(kind: Kind, name: str, folder: Path) -> None:
    """sentence-transformers makes either kind of any encoder, and draws the weights that are lacking at random."""
    own, saved = folder / "config_sentence_transformers.json", ""
    settings = read_json(own) if own.exists() else {}
    saved = str(settings.get("model_type", ""))
    if kind == "late" and "query_prefix" in settings:  # PyLate's models before they named their type
        saved = saved or "ColBERT"
    config = read_json(folder / "config.json") if (folder / "config.json").exists() else {}
    bare = not (folder / "modules.json").exists()
    architectures = [str(one) for one in config.get("architectures") or []]
    known = saved in _SAVED[kind] or (
        any(one.endswith("ForMaskedLM") for one in architectures) and bare
        if kind == "sparse"
        else "HF_ColBERT" in architectures
    )
    if not known:
        found = saved or ", ".join(architectures) or "no such type"
        raise IfqaError(
            f"{name} is not {_CALLED[kind]}: its files name {found}; see docs/retrieval.md for models that are"
        )


def _networks(model: Any, folder: Path) -> Iterator[tuple[Any, Path]]:
    """The modules that hold a network of transformers, each with the folder of its files."""
    path = folder / "modules.json"
    listed = [folder / one["path"] for one in read_json(path)] if path.exists() else [folder]
    for part, place in zip(model, listed, strict=False):  # a model of another library's layout adds modules at the end
        if (routes := getattr(part, "sub_modules", None)) is None:
            yield part, place
            continue
        for route, names in read_json(place / "router_config.json")["structure"].items():
            yield from ((own, place / name) for own, name in zip(routes[route], names, strict=True))
