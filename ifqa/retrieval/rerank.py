"""Reranks another retriever's passages with a cross-encoder (Nogueira and Cho 2019), by late
interaction, or by the span reader's answers.

A cross-encoder scores question and passage as a pair.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from ifqa.errors import ConfigError
from ifqa.models import loading, places
from ifqa.models.devices import (
    BATCH_TOKENS,
    CHUNK,
    half_precision,
    resolve_device,
    split_batches,
    to_device,
)
from ifqa.plugins import code_fingerprint
from ifqa.protocols import PathSetting, Requirement
from ifqa.reading.span.reader import Extractive
from ifqa.records import Hit, Question, SearchResult
from ifqa.retrieval.composition import (
    FetchPassages,
    Part,
    SinglePart,
    look_up_passages,
    standardise,
)
from ifqa.retrieval.late_interaction import LateInteraction, is_late_interaction
from ifqa.retrieval.queries import rewrite_questions
from ifqa.settings import Natural, PluginSettings, Positive, StoredModel, parse_stored
from ifqa.storage.files import read_json
from ifqa.storage.resources import BUNDLED
from ifqa.tracing import span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUNDLED_MODEL = "ifqa"  # the adapter that ships with the package
SPAN_READER = "extractive"  # the reader with this name, used as a model
MODEL_WEIGHT = 0.5  # better than the model alone on a held-out quarter of full-train
_WEIGHTS = BUNDLED / "weights" / "rerank"
_MAX_TOKENS = 512  # most tokens of a pair, also for a model without a limit
_MEND = "train it again: ifqa train rerank"
_Weight = Annotated[float, Field(gt=0, le=1)]


class Rerank(SinglePart):
    """Reranks the first passages of its part with a cross-encoder, a late-interaction model, or the
    span reader.
    """

    version = 1
    takes = ("parts", "passages")
    runtime_only = ("device",)
    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "fusion"}]
    model_settings: ClassVar = {"model": "ifqa-rerank"}

    class Settings(PluginSettings):
        model: PathSetting = BUNDLED_MODEL
        """The model: "ifqa", a folder from `ifqa train rerank`, a cross-encoder or a
        late-interaction model on the hub, or "extractive": the bundled span reader, which scores a
        passage by its candidate answers.
        """
        reads: str = "question"
        """The query that the model reads, a key of `ifqa.retrieval.queries.QUERIES`."""
        depth: Natural = 0
        """Number of passages to rerank; the others keep their order below them; 0 for all."""
        model_weight: _Weight = MODEL_WEIGHT
        """Weight of the model's scores, above 0 to 1; the part's scores get the rest."""
        device: str = "auto"
        """The device: "cpu", "cuda", or "auto"."""

    def __init__(
        self, settings: Settings, *, parts: Sequence[Part], passages: FetchPassages
    ) -> None:
        """Load the model.

        Raises IfqaError if there is not exactly one part, or the model is missing or does not load.
        """
        model = settings.model
        super().__init__("rerank", parts)
        self._fetch = passages
        self._reads = settings.reads
        self._weight = settings.model_weight
        self._depth = settings.depth or self._part.k
        self._model = model
        rewrite_questions([], settings.reads)
        self._relevance: Callable[
            [Sequence[tuple[str, str]]], Sequence[float] | NDArray[np.float32]
        ]
        if model == SPAN_READER:
            reader = Extractive(Extractive.Settings(device=settings.device))
            self._relevance = reader.relevance
            self.family = reader.family
            self.trained_on = (*reader.trained_on, *self.trained_on)
        elif not adapter_folder(model) and is_late_interaction(model):
            self._relevance = LateInteraction(model, settings.device).relevance
        else:
            encoder = CrossEncoder(model, settings.device)
            self._relevance = encoder.relevance
            if encoder.adapter:
                self.family = encoder.adapter.family
                self.trained_on = (*encoder.adapter.sources.values(), *self.trained_on)

    @classmethod
    def rewrites(cls, settings: Settings) -> bool:
        return settings.reads != "question"

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> list[Requirement]:
        """The model, unless it is bundled."""
        model = settings.model
        return (
            [] if model in (BUNDLED_MODEL, SPAN_READER) else [places.model_requirement(model, root)]
        )

    @classmethod
    def training_family(cls, settings: Settings, root: Path) -> str:
        """The split family that the model was trained on, or empty, without loading the model."""
        if settings.model == SPAN_READER:
            return Extractive.training_family(Extractive.Settings(), root)
        adapter = read_adapter(settings.model)
        return adapter.family if adapter else ""

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        """SHA-256 of the model's files, or of the span reader's code and files."""
        model = settings.model
        if model != SPAN_READER:
            return loading.weights_fingerprint(adapter_folder(model) or places.model_folder(model))
        files = Extractive.fingerprint(Extractive.Settings(), root)
        return hashlib.sha256(f"{code_fingerprint(Extractive)} {files}".encode()).hexdigest()

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first."""
        rankings = self._part.search(questions)
        heads = [ranking[: self._depth] for ranking in rankings]
        pairs: list[tuple[str, str]] = []
        for question, head in zip(rewrite_questions(questions, self._reads), heads, strict=True):
            pairs += [
                (question.text, passage.text) for passage in look_up_passages(head, self._fetch)
            ]
        with span(
            f"rerank {self._model}", {"ifqa.reranker": self._model, "ifqa.passages": len(pairs)}
        ):
            scores = iter(map(float, self._relevance(pairs)))
        reordered = []
        for ranking, head in zip(rankings, heads, strict=True):
            hits = reorder_hits(ranking, list(islice(scores, len(head))), self._weight)
            reordered.append(replace(ranking, hits=hits[:k]))
        return reordered


def reorder_hits(
    ranking: Sequence[Hit], scores: Sequence[float], model_weight: float = MODEL_WEIGHT
) -> list[Hit]:
    """A ranking with its head reordered by the weighted mean of its own scores and the model's
    `scores` of the head.

    Both are standardised over the head. The other passages follow, as far below the head as they
    were below its last passage.
    """
    import numpy as np

    head = ranking[: len(scores)]
    tail = ranking[len(scores) :]
    mixed = model_weight * standardise(np.array(scores, np.float64))
    mixed += (1 - model_weight) * standardise(np.array([hit.score for hit in head], np.float64))
    order = np.argsort(-mixed, kind="stable").tolist()
    hits = [Hit(head[position].passage_id, float(mixed[position])) for position in order]
    return hits + [
        Hit(hit.passage_id, hits[-1].score - (head[-1].score - hit.score)) for hit in tail
    ]


class _AdapterSettings(StoredModel):
    max_tokens: Positive


class Adapter(StoredModel):
    """The manifest of an adapter of all-MiniLM-L6-v2 from `ifqa train rerank`."""

    family: str  # split family of its training questions, such as "ifqa/full"
    sources: dict[str, str]  # file of training questions -> SHA-256
    encoder: dict[str, str]
    settings: _AdapterSettings


def adapter_folder(model: str) -> Path | None:
    """The folder of an adapter; None for a whole model."""
    folder = _WEIGHTS if model == BUNDLED_MODEL else Path(model)
    return folder if (folder / "adapter_config.json").exists() else None


def read_adapter(model: str) -> Adapter | None:
    """The manifest of an adapter; None for a whole model.

    Raises IfqaError if it is damaged, or is for another model.
    """
    if (folder := adapter_folder(model)) is None:
        return None
    adapter = parse_stored(
        Adapter, read_json(folder / "manifest.json"), str(folder / "manifest.json"), _MEND
    )
    if adapter.encoder.get("sha256") != places.WEIGHTS_SHA256:
        raise ConfigError(
            f"{folder} is not an adapter of all-MiniLM-L6-v2 from `ifqa train rerank`"
        )
    return adapter


class CrossEncoder:
    """Scores pairs of question and passage; a higher score is more relevant."""

    def __init__(self, model: str = BUNDLED_MODEL, device: str = "auto") -> None:
        """Load a model, in bfloat16 if the device supports it, else in float32.

        `model` is "ifqa", a folder from `ifqa train rerank`, or any cross-encoder with a single
        label (a folder, or a name on the hub, such as "cross-encoder/ms-marco-MiniLM-L6-v2").
        Raises IfqaError if it is missing, does not load, or is not such a model.
        """
        from peft import PeftModel
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        loading.silence_transformers()
        self.device = resolve_device(device)
        self.adapter = read_adapter(model)
        adapted = adapter_folder(model)
        folder = places.minilm_folder() if adapted else places.model_folder(model)
        labels = {"num_labels": 1} if adapted else {}
        with loading.report_load_errors(model, "a cross-encoder"):
            self._tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            network, report = AutoModelForSequenceClassification.from_pretrained(
                folder, trust_remote_code=False, output_loading_info=True, **labels
            )
        if self.adapter and adapted:  # the adapter has the classifier that the encoder lacks
            self._tokens = self.adapter.settings.max_tokens
            with loading.report_load_errors(model, "an adapter of `ifqa train rerank`", _MEND):
                network = PeftModel.from_pretrained(
                    network, str(adapted), local_files_only=True
                ).merge_and_unload()
        else:
            self._tokens = min(
                loading.config_number(network.config, "max_position_embeddings") or _MAX_TOKENS,
                _MAX_TOKENS,
            )
            loading.refuse_missing(model, report)
        if network.config.num_labels != 1:
            raise ConfigError(
                f"{model} has {network.config.num_labels} labels; wanted a "
                "cross-encoder with one label"
            )
        self._network = network.to(self.device, half_precision(self.device)).eval()

    def relevance(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float32]":
        """Scores of (question, passage text) pairs, float32 [pairs]."""
        import numpy as np
        import torch

        scores = np.empty(len(pairs), np.float32)
        with torch.inference_mode():
            for start in range(0, len(pairs), CHUNK):
                questions, texts = map(list, zip(*pairs[start : start + CHUNK], strict=True))
                features = self._tokenizer(
                    questions,
                    texts,
                    padding=True,
                    truncation=True,
                    max_length=self._tokens,
                    return_tensors="pt",
                )
                for positions, batch in split_batches(
                    dict(features), len(questions), BATCH_TOKENS[self.device]
                ):
                    logits = self._network(**to_device(batch, self.device)).logits
                    scores[start + np.array(positions)] = logits.squeeze(-1).float().cpu().numpy()
        return scores
