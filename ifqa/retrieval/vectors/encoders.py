"""Encoders turn texts into vectors, in batches of similar length: any sentence-transformers model, or DPR's two encoders.

A model's own files decide pooling, prefixes and normalisation. `Encoder.facts` reports them, because a wrong query prefix
raises no error and costs recall.
"""

import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, Required, TypedDict

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import IfqaError
from ifqa.models.batches import BUDGET, CHUNK, Features, batches, to_device
from ifqa.models.devices import half_precision, resolve_device
from ifqa.models.hub import loading, model_folder, question_model, quiet, refuse_missing
from ifqa.progress import say
from ifqa.records import Passage
from ifqa.settings import Precision, YesNo, checked
from ifqa.storage.files import read_json

if TYPE_CHECKING:
    from torch import Tensor

_NEEDS_PREFIX = re.compile(r"(^|[/_-])(e5|bge|gte-qwen|nomic-embed|arctic-embed|dkrr)", re.I)
_DPR_TOKENS = 256  # conf/encoder/hf_bert.yaml: sequence_length


class Facts(TypedDict):
    """The settings that decide an encoder's vectors."""

    model: str
    query_model: NotRequired[str]  # DPR only
    pooling: str
    normalised: bool
    query_prefix: str | None
    passage_prefix: str | None
    titles: bool
    max_tokens: int | None
    precision: str
    dimension: NotRequired[int | None]  # known once the model is loaded


class Side:
    """How a model encodes questions, or passages: texts to padded token ids, and token ids to vectors."""

    def __init__(
        self, tokenise: Callable[[Sequence[tuple[str, str]]], Features], forward: Callable[[Features], "Tensor"]
    ) -> None:
        self.tokenise, self.forward = tokenise, forward


class Encoder:
    """A loaded model. `facts` has the settings that decide its vectors; they are printed and stored in the index."""

    def __init__(self, facts: Facts, device: str, queries: Side, passages: Side, with_titles: bool) -> None:
        """Do not call this; use `open_encoder`."""
        self.facts = facts
        self.device = device
        self._queries, self._passages, self._with_titles = queries, passages, with_titles

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions, float32 [texts, dimension]."""
        return _encode(self._queries, [(text, "") for text in texts], self.device)

    def encode_passages(
        self, passages: Sequence[Passage], advance: Callable[[int], None] = lambda done: None
    ) -> NDArray[np.float32]:
        """Vectors of passages, float32 [passages, dimension]; `advance` gets the number of further passages done."""
        pairs = [(passage.text, passage.title if self._with_titles else "") for passage in passages]
        return _encode(self._passages, pairs, self.device, advance)


def described(facts: Facts) -> str:
    """An encoder's facts in one line. They are printed because wrong treatment of texts fails silently."""
    return (
        f"{facts['model']}, {facts['dimension']} dimensions, {facts['pooling']} pooling, "
        f"{'normalised' if facts['normalised'] else 'not normalised'}, {facts['max_tokens']} tokens, "
        f"query prefix {json.dumps(facts['query_prefix'])}, passage prefix {json.dumps(facts['passage_prefix'])}, "
        f"titles {'before the text' if facts['titles'] else 'left out'}, {facts['precision']}"
    )


class EncoderSettings(TypedDict, total=False):
    """The arguments of `open_encoder`."""

    model: Required[str]
    query_model: str
    titles: YesNo
    max_tokens: int
    precision: Precision | Literal["int8"]
    device: str
    query_prefix: str | None
    passage_prefix: str | None


@checked("setting of the encoder", given=["max_tokens"])  # without a limit in a model of word vectors
def open_encoder(
    model: str,
    *,
    query_model: str = "",
    titles: YesNo = "auto",
    max_tokens: int = 0,
    precision: Precision | Literal["int8"] = "auto",
    device: str = "auto",
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
) -> Encoder:
    """Load an encoder.

    Args:
        model: a sentence-transformers model, or DPR's context encoder: a folder, or a name on the hub.
        query_model: DPR's question encoder; empty for the encoder whose name matches that of the context encoder.
        titles: whether to put a passage's title before its text: "yes", "no", or "auto" (yes for DPR, else no).
        max_tokens: tokens after which a text is cut off; 0 for the model's own limit (256 for DPR).
        precision: "float32", "bfloat16", "int8" (passages alone, on a CPU, with ONNX Runtime), or "auto". "auto" is
            bfloat16 where the hardware multiplies in it, else int8 on a CPU if the extra onnx is installed, else float32.
        device: "cpu", "cuda", "mps", or "auto" (CUDA where there is a GPU, else the CPU).
        query_prefix, passage_prefix: put before each text; None for the prefix in the model's own files.

    Raises:
        IfqaError: the model is missing or does not load, or a setting does not fit the model.
    """
    quiet()
    device, folder = resolve_device(device), model_folder(model)
    if precision == "int8" and device != "cpu":
        raise IfqaError(
            f"precision 'int8' is for a CPU, and the device is {device}; take bfloat16, or device = \"cpu\""
        )
    resolved = resolve_precision(precision, device, model)
    config = read_json(folder / "config.json") if (folder / "config.json").exists() else {}
    if not isinstance(config, dict):
        raise IfqaError(f"{folder / 'config.json'}: wanted a table, found {type(config).__name__}")
    if config.get("model_type") == "dpr":
        if resolved == "int8" or query_prefix or passage_prefix:
            raise IfqaError("DPR's encoders take no prefix, and no precision int8; leave these settings out")
        return _open_dpr(model, folder, query_model, titles, max_tokens, resolved, device)
    if query_model:
        raise IfqaError(f"query_model is for DPR's two encoders; {model} encodes questions itself")
    return _open_sentence_transformer(
        model, folder, titles, max_tokens, resolved, device, query_prefix, passage_prefix
    )  # fmt: skip


def resolve_precision(precision: str, device: str, model: str) -> str:
    """`precision`, or on "auto" the precision that suits the device and the model."""
    if precision != "auto":
        return precision
    half = str(half_precision(device)).removeprefix("torch.")
    if half == "bfloat16" or device != "cpu" or question_model(model):
        return half
    # A CPU that lacks bfloat16 uses 8-bit integers, which are as fast and cost no more recall (README)
    return "int8" if all(find_spec(name) for name in ("onnx", "onnxruntime", "onnxscript")) else half


def refuse_other_weights(index: Path, model: str, built_with: str, found: str) -> None:
    """Refuse to search an index with a model whose files are not those that it was built with; both as SHA-256.

    Raises:
        IfqaError: they differ.
    """
    if found != built_with:
        raise IfqaError(
            f"{index} was built with another {model} (the SHA-256 of its files was {built_with[:8]}..., "
            f"now it is {found[:8]}...); build it again: ifqa index CORPUS"
        )


def check_positions(max_tokens: int, config: Any) -> None:
    """Refuse more tokens than a network has positions, for it would fail at the first text that long."""
    most = getattr(config, "max_position_embeddings", max_tokens)
    if not 3 <= max_tokens <= most:
        raise IfqaError(f"max_tokens: wanted 3 to {most}, the number of the model's positions; found {max_tokens}")


def _whole(text: str) -> str:
    """The text without lone surrogates, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode()


def _encode(
    side: Side, pairs: Sequence[tuple[str, str]], device: str, advance: Callable[[int], None] = lambda done: None
) -> NDArray[np.float32]:
    """A thread tokenises the next chunk. A chunk's batches hold texts of similar length, up to a budget of tokens."""
    import torch

    pairs = [(_whole(text), _whole(title)) for text, title in pairs]
    if not pairs:
        return _encode(side, [("x", "")], device)[:0]
    chunks = [pairs[start : start + CHUNK] for start in range(0, len(pairs), CHUNK)]
    found = []
    with ThreadPoolExecutor(1) as ahead, torch.inference_mode():
        waiting = [ahead.submit(side.tokenise, chunk) for chunk in chunks[:1]]
        for number, chunk in enumerate(chunks):
            features = waiting.pop().result()
            waiting += [ahead.submit(side.tokenise, following) for following in chunks[number + 1 : number + 2]]
            vectors: list[Tensor] = []
            order: list[int] = []
            for places, batch in batches(features, len(chunk), BUDGET[device]):
                vectors.append(side.forward(to_device(batch, device)).float())
                order += places
                if device == "cpu":
                    advance(len(places))
            found.append(torch.cat(vectors).cpu().numpy()[np.argsort(order)])  # wait for a GPU once per chunk
            if device != "cpu":
                advance(len(chunk))
    return np.concatenate(found) if found else np.empty((0, 0), np.float32)


def _open_dpr(
    name: str, folder: Path, query_model: str, titles: str, max_tokens: int, precision: str, device: str
) -> Encoder:
    """DPR's two encoders (Karpukhin et al., EMNLP 2020), for questions and for passages with their titles."""
    import torch
    from transformers import AutoTokenizer, DPRContextEncoder, DPRQuestionEncoder

    questions = question_model(name, query_model)
    if questions == name:
        raise IfqaError(f"{name} is an encoder of DPR; name the question encoder that belongs to it as query_model")
    question_folder = model_folder(questions)
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    longest, with_titles = max_tokens or _DPR_TOKENS, titles != "no"

    def side(kind: Any, place: Path) -> Side:
        plain = _straight if kind is DPRQuestionEncoder else str
        with loading(str(place), place, f"a {kind.__name__}"):
            tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
            model, report = kind.from_pretrained(place, dtype=dtype, output_loading_info=True)
            model = model.to(device).eval()
        refuse_missing(str(place), report)
        check_positions(longest, model.config)

        def tokenise(pairs: Sequence[tuple[str, str]]) -> Features:
            ids: list[list[int]] = [[]] * len(pairs)
            # Title and text as a pair, or the text alone where there is no title (dpr/models/hf_models.py:281-317)
            for titled in (True, False):
                rows = [row for row, (_, title) in enumerate(pairs) if bool(title) is titled]
                texts = [plain(pairs[row][0]) for row in rows]
                both = ([pairs[row][1] for row in rows], texts) if titled else (texts,)
                cut = tokenizer(*both, truncation=True, max_length=longest)["input_ids"] if rows else []
                for row, tokens in zip(rows, cut, strict=True):
                    ids[row] = tokens
            features = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
            features["token_type_ids"] = torch.zeros_like(features["input_ids"])  # all 0 in DPR, in pairs too
            return dict(features)

        return Side(tokenise, lambda features: model(**features).pooler_output)

    facts: Facts = {"model": name, "query_model": questions, "pooling": "cls", "normalised": False, "query_prefix": "",
             "passage_prefix": "", "titles": with_titles, "max_tokens": longest, "precision": precision}  # fmt: skip
    passages = side(DPRContextEncoder, folder)
    encoder = Encoder(facts, device, side(DPRQuestionEncoder, question_folder), passages, with_titles)
    facts["dimension"] = int(encoder.encode_queries(["dimension"]).shape[1])
    return encoder


def _straight(text: str) -> str:
    """DPR replaces curly apostrophes in questions by straight apostrophes (dpr/utils/data_utils.py:63-65)."""
    return text.replace("’", "'")


def _open_sentence_transformer(
    name: str, folder: Path, titles: str, max_tokens: int, precision: str, device: str, query_prefix: str | None,
    passage_prefix: str | None,
) -> Encoder:  # fmt: skip
    """Any sentence-transformers model; its files decide pooling, prefixes and normalisation.

    Raises:
        IfqaError: the model does not load, or has fewer positions than `max_tokens`.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    with loading(name, folder, "a sentence-transformers model"):
        model = SentenceTransformer(str(folder), device=device, trust_remote_code=False, local_files_only=True)
        modules = folder / "modules.json"
        place = folder / read_json(modules)[0]["path"] if modules.exists() else folder
        report = load_report(place, model[0])
    refuse_missing(name, report, unused="pooler.")  # pooling here is of the tokens' vectors
    if max_tokens and max_tokens != model.max_seq_length:
        transformer: Any = model[0]
        check_positions(max_tokens, transformer.model.config)
        model.max_seq_length = max_tokens
    prompts = {"query": query_prefix, "document": passage_prefix}
    for task, names in (("query", ("query",)), ("document", ("document", "passage", "corpus"))):
        if prompts[task] is None:
            prompts[task] = next((model.prompts[key] for key in names if model.prompts.get(key)), "")
    if not any(prompts.values()) and _NEEDS_PREFIX.search(name):
        say(f"{name}: its files name no prefix, but models of its family are trained with a prefix; see query_prefix")

    def side(task: str, used: Any) -> Side:
        def tokenise(pairs: Sequence[tuple[str, str]]) -> Features:
            texts = [f"{title} {text}" if title else text for text, title in pairs]
            features: Features = used.preprocess(texts, prompt=prompts[task] or None, task=task)
            return features

        return Side(tokenise, lambda features: used.forward(features, task=task)["sentence_embedding"])

    if precision == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(in_float)
    passages = model
    if precision == "int8":
        from ifqa.retrieval.vectors.int8 import quantised

        passages = quantised(model)
    pooling = next((str(part.pooling_mode) for part in model if hasattr(part, "pooling_mode")), "the model's own")
    facts: Facts = {
        "model": name,
        "pooling": pooling,
        "normalised": any(type(part).__name__ == "Normalize" for part in model),
        "query_prefix": prompts["query"],
        "passage_prefix": prompts["document"],
        "titles": titles == "yes",
        "max_tokens": model.max_seq_length,
        "precision": precision,
        "dimension": model.get_embedding_dimension(),
    }
    return Encoder(facts, device, side("query", model), side("document", passages), titles == "yes")


def load_report(place: Path, transformer: Any) -> Any:
    """What transformers reports of the weights it found, which sentence-transformers keeps to itself.

    On the meta device, which takes accelerate, the second loading costs neither time nor memory.
    """
    network: Any = getattr(transformer, "model", None)
    if not hasattr(network, "from_pretrained"):  # word vectors, which load whole or not at all
        return {"missing_keys": (), "mismatched_keys": ()}
    meta = {"device_map": "meta"} if find_spec("accelerate") else {}
    loaded = type(network).from_pretrained(place, output_loading_info=True, local_files_only=True, **meta)
    return loaded[1]


def in_float(module: Any, given: Any, features: Features) -> Features:
    """Features in float32, for pooling and normalisation in bfloat16 would give vectors of length 0.996."""
    return {
        k: v.float() if hasattr(v, "is_floating_point") and v.is_floating_point() else v for k, v in features.items()
    }
