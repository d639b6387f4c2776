"""Runs a causal language model in this process with transformers, with its chat template and in
batches.
"""

import logging
from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ifqa.errors import ConfigError, FormatError, IfqaError, MissingInput
from ifqa.llms.cache import RequestBatch, sum_tokens
from ifqa.llms.local_model import LocalModel, LocalSettings
from ifqa.llms.streaming import TextCallback, text_callback
from ifqa.models.causal_lm import download_hint, find_causal_lm, is_adapter, pending_conversion
from ifqa.models.devices import is_out_of_memory, resolve_device, resolve_precision
from ifqa.models.loading import (
    config_number,
    open_tokenizer,
    refuse_missing,
    report_load_errors,
    silence_transformers,
)
from ifqa.models.places import MODELS, local_path
from ifqa.protocols import PathSetting, ProgressCallback, Requirement, no_progress
from ifqa.records import Completion, Estimate, Request
from ifqa.settings import Natural, PluginSettings, Precision
from ifqa.tracing import model_span

if TYPE_CHECKING:
    from transformers import (
        GenerationConfig,
        PretrainedConfig,
        PreTrainedModel,
        PreTrainedTokenizerBase,
    )

logger = logging.getLogger(__name__)

MEND = "wanted a causal language model, such as Qwen/Qwen2.5-1.5B-Instruct"
WINDOW = 4096  # tokens; the default if the files of a model do not set it
#: Tokens of prompts and answers in a batch, with padding.
BATCH_TOKENS = {"cpu": 8192, "cuda": 65_536, "mps": 16_384}
# On a CPU, for a small model: each step reads all weights once per batch
_MAX_BATCH_TOKENS = 65_536
_CPU_CACHE_BYTES = 2 << 30  # bytes of keys and values in a batch on a CPU
_TOKENIZERS = ("tokenizer.json", "*.model", "vocab.json", "vocab.txt", "tekken.json")
_MAX_BATCH = 256  # prompts in a batch, as the logits of all are in memory
# Llama 3: a fixed date, so that prompts are the same every day.
_TEMPLATE = {"add_generation_prompt": True, "tokenize": False, "date_string": "26 Jul 2024"}


class NetworkSettings(PluginSettings):
    """Which network runs, and how."""

    model: PathSetting
    """The model: "smollm2", a GGUF file, a folder with a model or an adapter, or a name on the hub
    (`ifqa.models.causal_lm`). No code of the model is run; weights are safetensors, or files that
    load as tensors only.
    """
    device: str = "auto"
    """The device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU."""
    precision: Precision = "auto"
    """The precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware supports it."""
    batch_tokens: Natural = 0
    """Maximum number of tokens of prompts and answers in a batch, with padding; 0 for a default by
    device. If the memory is too small, the number is halved, with a message.
    """
    window: Natural = 0
    """Tokens of prompt and answer together; 0 for the model's own."""


class HF(LocalModel):
    """A causal language model from the hub or a folder, run here.

    Temperature 0 takes the likeliest token at each step.

    Penalties, top_k and top_p in the model's folder are ignored. Sampling is seeded by each
    request, so other requests and their order do not matter. In float32 batching changes no answer;
    in bfloat16 it changes rounding.

    Attributes:
        name: the model, a hash of its weights, tokenizer and chat template, and a precision other
            than "auto"; completions are stored under it.
        chat: whether it has a chat template and takes messages; otherwise it continues a text.
        family: split family of an adapter's training questions.
        trained_on: SHA-256 of the files with these questions.
    """

    version = 1
    streams = True
    weighs_answers = True
    model_settings: ClassVar = {"model": ""}
    runtime_only = ("device", "batch_tokens", "store")

    # In a file, the fields of the last base come first
    class Settings(LocalSettings, NetworkSettings):
        pass

    def __init__(self, settings: Settings, *, root: Path = Path()) -> None:
        model = settings.model
        if not model.strip():
            raise ConfigError(f"hf: model is empty; {MEND}")
        silence_transformers()
        files = find_causal_lm(model, root)
        if (fetched := MODELS.get(model)) and fetched.caution:
            logger.warning(f"{model}: {fetched.caution}")
        self.family = files.family
        self.trained_on = files.sources
        self.model = load_model(files.folder, settings.device, settings.precision, files.adapter)
        self.tokenizer = load_tokenizer(files.folder, self.model)
        longest = (
            config_number(
                self.model.config.get_text_config(decoder=True), "max_position_embeddings"
            )
            or WINDOW
        )
        if settings.window > longest:
            raise ConfigError(
                f"hf: window is {settings.window:,}, but {model} has only {longest:,} positions"
            )
        self.window = settings.window or longest
        self.chat = bool(self.tokenizer.chat_template)
        shown = Path(model).resolve().name if Path(model).exists() else model
        self.name = f"{shown}@{files.fingerprint[:16]}"
        if settings.precision != "auto":
            self.name += f" {settings.precision}"
        self._set_limits(settings)
        self.batch_tokens = settings.batch_tokens or batch_budget(self.model)
        self._ends = end_tokens(self.model, self.tokenizer)
        self._pad: int = self.tokenizer.pad_token_id or 0
        # The model's own would set defaults of `generate`
        self.model.generation_config = self._settings()
        self._open_cache(root / settings.store)

    def count(self, text: str) -> int:
        """Tokens of a text, including special tokens."""
        return len(self.tokenise(text, add_special_tokens=True))

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """The tokens that the requests would take.

        Stored, repeated and too long requests take none.
        """
        todo = [
            (request, *self._prompt(request))
            for request in self._cache.missing(self.name, requests)
        ]
        prompts = [(request, ids) for request, ids, problem in todo if not problem]
        tokens = sum(len(ids) for _, ids in prompts)
        return Estimate(
            len(prompts), tokens, sum(request.max_tokens for request, _ in prompts), 0.0
        )

    def complete(
        self, requests: Sequence[Request], advance: ProgressCallback = no_progress
    ) -> list[Completion]:
        """The completions of the requests, in order; each is stored before it is returned.

        Stored completions are not computed again, and equal requests are computed once. A
        completion has `error` if prompt and answer exceed the window or the memory. `advance` is
        called with the number of requests done. IfqaError if a request has messages and the model
        has no chat template, or if the model's weights are damaged.
        """
        batch = RequestBatch(self._cache, self.name, requests, advance)
        todo: list[tuple[Request, list[int]]] = []
        try:
            for request in batch.missing:
                ids, problem = self._prompt(request)
                if problem:
                    batch.settle(request, Completion(error=problem))
                else:
                    todo.append((request, ids))
            todo.sort(key=lambda prompt: -len(prompt[1]) - prompt[0].max_tokens)
            while todo:
                group = todo[: self._next_batch_size(todo)]
                # One for a batch
                with model_span(self.name, "transformers", group[0][0]) as finish:
                    answers = self._generate(
                        group, text_callback() if group[0][0] == requests[0] else None
                    )
                    finish(Completion("", *sum_tokens(answers.values())) if answers else None)
                self._keep(batch, answers)
                todo = todo[len(answers) :]
        finally:
            self._cached += batch.cached
        return batch.completions()

    def log_likelihoods(self, request: Request, texts: Sequence[str]) -> list[float]:
        """The log probability of each text and an end after it, at temperature 1.

        The prompt is computed once for all.

        Empty if the prompt is refused, the window is too small, no token is an end, or the cache is
        not plain keys and values.
        """
        import torch
        from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

        from ifqa.llms.generation import enable_grouped_attention

        prompt, problem = self._prompt(request)
        rows = [self.tokenise(text, add_special_tokens=False) for text in texts]
        longest = max(map(len, rows), default=0)
        ends = self._ends.union(
            *(self.tokenise(stop, add_special_tokens=False)[-1:] for stop in request.stop)
        )
        if (
            problem
            or not rows
            or not ends
            or len(prompt) < 2
            or len(prompt) + longest >= self.window
        ):
            return []
        padded = [[prompt[-1], *row, *[self._pad] * (longest - len(row))] for row in rows]
        before, tokens = (
            torch.tensor(ids, device=self.model.device) for ids in ([prompt[:-1]], padded)
        )
        logits = []
        with torch.inference_mode(), enable_grouped_attention(self.model.device.type):
            cache = self.model.base_model(input_ids=before, use_cache=True, return_dict=True).get(
                "past_key_values"
            )
            layers = {type(layer) for layer in cache.layers} if cache else {None}
            if layers - {DynamicLayer, DynamicSlidingWindowLayer}:
                return []
            for group in torch.split(tokens, max(1, self.batch_tokens // (len(prompt) + longest))):
                copies = deepcopy(cache)
                copies.reorder_cache(group.new_zeros(len(group)))
                logits.append(
                    self.model(input_ids=group, past_key_values=copies, return_dict=True).logits
                )
        steps = torch.cat(logits).float().log_softmax(-1).cpu()
        ended = steps[..., sorted(ends)].logsumexp(-1)
        return [
            float(steps[n, range(len(row)), row].sum() + ended[n, len(row)])
            for n, row in enumerate(rows)
        ]

    def _prompt(self, request: Request) -> tuple[list[int], str]:
        """Token ids of a prompt, and why it cannot be answered ("" if it can)."""
        from jinja2 import TemplateError

        if request.messages and not self.chat:
            raise ConfigError(
                f"{self.name} has no chat template and takes no messages; wanted a text to continue"
            )
        try:
            ids = self.ids(request)
        except TemplateError as error:
            return (
                [],
                (
                    "the model's chat template refuses the messages: "
                    f"{' '.join(str(error).split())[:200]}"
                ),
            )
        if not ids:
            return [], "the prompt has no tokens"
        if len(ids) + request.max_tokens > self.window:
            sizes = f"a prompt of {len(ids):,} tokens and an answer of up to {request.max_tokens:,}"
            return [], f"{sizes} do not fit into the model's window of {self.window:,}"
        return ids, ""

    def ids(self, request: Request) -> list[int]:
        """The token ids of a request's prompt, with the chat template."""
        if not request.messages:
            return self.tokenise(request.text, add_special_tokens=True)
        return self.tokenise(self._render(request), add_special_tokens=False)

    def _render(self, request: Request) -> str:
        from jinja2 import TemplateError

        chat = [{"role": role, "content": content} for role, content in request.messages]
        render = partial(
            self.tokenizer.apply_chat_template, **_TEMPLATE, **self._template_arguments()
        )
        try:
            return str(render(chat))
        except TemplateError:
            if chat[0]["role"] != "system" or len(chat) < 2:
                raise
        # Some templates, such as Gemma's, have no system role: prepend its text to the first
        # message
        first, second, *rest = chat
        return str(
            render([second | {"content": f"{first['content']}\n\n{second['content']}"}, *rest])
        )

    def tokenise(self, text: str, add_special_tokens: bool) -> list[int]:
        text = text.encode("utf-8", "replace").decode()  # without lone surrogates
        return list(self.tokenizer(text, add_special_tokens=add_special_tokens)["input_ids"])

    def _next_batch_size(self, todo: Sequence[tuple[Request, list[int]]]) -> int:
        """The number of requests that form the next batch.

        Batches have about equal sizes, because small ones waste time.
        """
        longest_prompt = longest_answer = 0
        for number, (request, ids) in enumerate(todo[:_MAX_BATCH], start=1):
            longest_prompt = max(longest_prompt, len(ids))
            longest_answer = max(longest_answer, request.max_tokens)
            if number > 1 and number * (longest_prompt + longest_answer) > self.batch_tokens:
                break
            fits = number
        return -(-len(todo) // -(-len(todo) // fits))

    def _generate(
        self, group: Sequence[tuple[Request, list[int]]], on_text: TextCallback | None
    ) -> dict[Request, Completion]:
        """A batch's completions, the first one streamed.

        Empty, before a smaller batch, if several prompts exceed the memory.
        """
        import torch

        from ifqa.llms.generation import BatchStopping, TokenSampler, enable_grouped_attention

        width = max(len(ids) for _, ids in group)
        max_tokens = max(request.max_tokens for request, _ in group)
        device = self.model.device
        requests = [request for request, _ in group]
        sampler = TokenSampler(requests, str(device))
        stopping = BatchStopping(requests, self._ends, self._decode, on_text)
        padding = [width - len(ids) for _, ids in group]
        rows = [[self._pad] * count + ids for count, (_, ids) in zip(padding, group, strict=True)]
        mask = [[0] * count + [1] * (width - count) for count in padding]
        try:
            with torch.inference_mode(), enable_grouped_attention(device.type):
                self.model.generate(
                    input_ids=torch.tensor(rows, device=device),
                    attention_mask=torch.tensor(mask, device=device),
                    generation_config=self._settings(max_new_tokens=max_tokens),
                    logits_processor=[sampler],
                    stopping_criteria=[stopping],
                )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        else:
            return {
                request: stopping.completion(
                    row, len(ids), sampler.logprobs(row) if request.logprobs else ()
                )
                for row, (request, ids) in enumerate(group)
            }
        if device.type == "cuda":  # outside the handler, whose traceback holds the memory
            torch.cuda.empty_cache()
        if len(group) == 1:
            problem = f"a prompt of {width:,} tokens does not fit into the memory of {device}"
            return {requests[0]: Completion(error=problem)}
        self.batch_tokens = max(1, min(self.batch_tokens, len(group) * (width + max_tokens)) // 2)
        tokens = f"{self.batch_tokens:,} tokens"
        logger.info(
            f"out of memory with {len(group)} prompts per batch: "
            f"continuing with batches of {tokens}"
        )
        return {}

    def _settings(self, **settings: int) -> "GenerationConfig":
        from transformers import GenerationConfig

        tokens = {"pad_token_id": self._pad, "eos_token_id": sorted(self._ends) or None}
        return GenerationConfig(do_sample=False, num_beams=1, use_cache=True, **tokens, **settings)

    def _decode(self, tokens: Sequence[int]) -> str:
        kept = [token for token in tokens if token not in self._ends]
        return str(self.tokenizer.decode(kept, skip_special_tokens=True))

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> list[Requirement]:
        return [Requirement(settings.model, download_hint(settings.model, root))]

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        """SHA-256 of the model's weights, tokenizer, chat template and adapter."""
        return find_causal_lm(settings.model, root).fingerprint

    @classmethod
    def conversion(cls, settings: Settings, root: Path) -> str:
        return pending_conversion(settings.model, root)

    @classmethod
    def training_family(cls, settings: Settings, root: Path) -> str:
        """The split family of an adapter's training questions; empty for other models."""
        model = settings.model
        return find_causal_lm(model, root).family if is_adapter(local_path(model, root)) else ""


def load_model(
    folder: Path, device: str, precision: str, adapter: Path | None = None
) -> "PreTrainedModel":
    """The network in evaluation mode on its device.

    An adapter of peft is merged into its weights.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    device = resolve_device(device)
    dtype = resolve_precision(precision, device)
    here = {"local_files_only": True, "trust_remote_code": False}
    with report_load_errors(str(folder), "a causal language model", MEND):
        config = AutoConfig.from_pretrained(str(folder), **here)
        _check_kind(folder, config, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
        model, report = AutoModelForCausalLM.from_pretrained(
            str(folder),
            config=config,
            dtype=dtype,
            weights_only=True,
            output_loading_info=True,
            **here,
        )
    refuse_missing(str(folder), report)
    if adapter:
        from peft import PeftModel

        with report_load_errors(str(adapter), "an adapter of peft"):
            model = PeftModel.from_pretrained(
                model, str(adapter), local_files_only=True
            ).merge_and_unload()
    # The last tokens' states are a slice, for which torch.matmul copies the output matrix once per
    # row
    model.get_output_embeddings().register_forward_pre_hook(
        lambda _, inputs: (inputs[0].contiguous(), *inputs[1:])
    )
    try:
        return model.eval().to(device)
    except torch.OutOfMemoryError as error:
        raise IfqaError(
            f"{folder} does not fit into the memory of {device}; take a smaller model"
        ) from error


def _check_kind(
    folder: Path, config: "PretrainedConfig", causal: Iterable[str | Sequence[str]]
) -> None:
    """Refuse other kinds of models: a masked language model would load, and write nonsense."""
    known = {name for names in causal for name in ([names] if isinstance(names, str) else names)}
    architectures = list(config.architectures or [])
    if config.is_encoder_decoder or (architectures and not known.intersection(architectures)):
        kind = ", ".join(architectures) or config.model_type
        raise FormatError(f"{folder} is not a causal language model but {kind}; {MEND}")


def load_tokenizer(folder: Path, model: "PreTrainedModel") -> "PreTrainedTokenizerBase":
    # Transformers would make an empty one
    if not any(next(folder.glob(name), None) for name in _TOKENIZERS):
        raise MissingInput(
            f"{folder} has no tokenizer (such as tokenizer.json); copy the model's own there"
        )
    tokenizer = open_tokenizer(folder)
    vocabulary = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > vocabulary:
        counts = f"has {len(tokenizer):,} tokens and the model {vocabulary:,}"
        raise FormatError(f"the tokenizer of {folder} {counts}; copy the model's own there")
    return tokenizer


def end_tokens(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase") -> frozenset[int]:
    """The tokens that end an answer, from all of the model's files: a chat's end token may differ
    from a text's.
    """
    vocabulary = model.get_input_embeddings().num_embeddings
    config = model.config.get_text_config(decoder=True)
    named = [
        model.generation_config.eos_token_id,
        getattr(config, "eos_token_id", None),
        tokenizer.eos_token_id,
    ]
    tokens = [token for entry in named for token in (entry if isinstance(entry, list) else [entry])]
    return frozenset(token for token in tokens if token is not None and token < vocabulary)


def batch_budget(model: "PreTrainedModel") -> int:
    """The default of `batch_tokens` for a model on its device."""
    budget = BATCH_TOKENS[model.device.type]
    config = model.config.get_text_config(decoder=True)
    layers, heads = (
        config_number(config, name) for name in ("num_hidden_layers", "num_attention_heads")
    )
    if model.device.type != "cpu" or not layers or not heads:
        return budget  # if a GPU runs out of memory, batches are halved
    key_heads = config_number(config, "num_key_value_heads") or heads
    size = config_number(config, "head_dim") or config.hidden_size // heads
    token_bytes: int = 2 * layers * key_heads * size * model.dtype.itemsize  # keys and values
    return max(budget, min(_MAX_BATCH_TOKENS, _CPU_CACHE_BYTES // token_bytes))
