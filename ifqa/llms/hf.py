"""Runs a causal language model of transformers in this process, with its chat template, in batches.

The beginning that all prompts of a call share, such as their demonstrations, is computed once (`ifqa.llms.generation`).
"""

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.llms.cache import CompletionCache, RequestBatch, check_store, sum_tokens
from ifqa.llms.streaming import TextCallback, text_callback
from ifqa.models.causal_lm import download_hint, find_causal_lm, is_adapter
from ifqa.models.devices import is_out_of_memory, resolve_device, resolve_precision
from ifqa.models.hub import config_number, open_tokenizer, refuse_missing, report_load_errors, silence_transformers
from ifqa.protocols import LanguageModel, PathSetting, ProgressCallback, Requirement, no_progress
from ifqa.records import Completion, Estimate, Request, TokenUsage
from ifqa.settings import Natural, Precision, check_arguments

if TYPE_CHECKING:
    from transformers import GenerationConfig, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from ifqa.llms.generation import PrefixCaches

logger = logging.getLogger(__name__)

MEND = "wanted a causal language model, such as Qwen/Qwen2.5-1.5B-Instruct"
WINDOW = 4096  # tokens; of a model whose files do not say
#: Tokens of prompts and answers in a batch, with padding.
BATCH_TOKENS = {"cpu": 8192, "cuda": 65_536, "mps": 16_384}
_MAX_BATCH_TOKENS = 65_536  # tokens on a CPU, where a small model leaves room: each step reads all weights for a batch
_CPU_CACHE_BYTES = 2 << 30  # bytes of keys and values that are small on a CPU
_TOKENIZERS = ("tokenizer.json", "*.model", "vocab.json", "vocab.txt", "tekken.json")
_MAX_BATCH = 256  # prompts in a batch, at most, as the logits of all are in memory
# Qwen3's template: no thinking, the answer alone. Llama 3's: a fixed date, so that prompts are the same every day.
_TEMPLATE_SETTINGS = {"enable_thinking": False, "date_string": "26 Jul 2024"}


class HF(LanguageModel):
    """A causal language model of the hub or a folder, run here. Temperature 0 takes the likeliest token at each step.

    Only the temperature changes the model's probabilities: penalties, top_k and top_p in the model's folder are ignored.
    With a temperature, each request has random numbers of its own, so other requests and their order do not matter. In
    float32 batching changes no answer; in bfloat16 it changes roundings.

    Args:
        model: "smollm2", a GGUF file, a folder with a model or an adapter, or a name of the hub (`ifqa.models.causal_lm`). The
            weights are safetensors, or load as tensors; no code of the model is run.
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.
        precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware multiplies in it.
        batch_tokens: tokens of prompts and answers in a batch, with padding; 0 for a value that suits the device. If the
            memory is too small, the value is halved, and a message says so.
        window: tokens of prompt and answer together; 0 for the model's own.
        store: the folder for completions, below `root`.

    Attributes:
        name: the model, with a hash of its weights, tokenizer and chat template, and a precision if one was asked for;
            completions are stored under it.
        chat: whether it has a chat template, and takes messages; else it continues a text.
        family: split family of an adapter's training questions.
        trained_on: SHA-256 of the files with these questions.

    Raises:
        IfqaError: the model cannot be found, is no causal language model, has no tokenizer, or an argument is wrong.
    """

    version = 1
    streams = True
    runtime_only = ("device", "batch_tokens", "store")

    @check_arguments("setting of llm 'hf'")
    def __init__(
        self,
        *,
        model: PathSetting,
        device: str = "auto",
        precision: Precision = "auto",
        batch_tokens: Natural = 0,
        window: Natural = 0,
        store: str = "completions",
        root: Path = Path(),
    ) -> None:
        if not model.strip():
            raise IfqaError(f"hf: model is empty; {MEND}")
        silence_transformers()
        files = find_causal_lm(model, root)
        self.family, self.trained_on = files.family, files.sources
        self.model = load_model(files.folder, device, precision, files.adapter)
        self.tokenizer = load_tokenizer(files.folder, self.model)
        longest = model_window(self.model)
        if window > longest:
            raise IfqaError(f"hf: window is {window:,}, and {model} has no more than {longest:,} positions")
        self.window = window or longest
        self.chat = bool(self.tokenizer.chat_template)
        self.name = f"{Path(model).resolve().name if Path(model).exists() else model}@{files.identity[:16]}"
        if precision != "auto":
            self.name += f" {precision}"
        self.room = batch_tokens or batch_budget(self.model)
        self._ends = end_tokens(self.model, self.tokenizer)
        self._pad: int = self.tokenizer.pad_token_id or 0
        self.model.generation_config = self._settings()  # the model's own would set what `generate` is not given
        self._cache = CompletionCache(root / store)
        self._calls, self._cached, self._tokens = 0, 0, (0, 0)

    @property
    def spent(self) -> TokenUsage:
        """Tokens computed so far, for no money."""
        return TokenUsage(self._calls, self._cached, *self._tokens, 0.0)

    def count(self, text: str) -> int:
        """Tokens of a text, with those that the tokenizer adds around it (of a chat: see `ids`)."""
        return len(self.tokenise(text, add_special_tokens=True))

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """What the requests would take; requests that are stored, repeated or too long take nothing."""
        todo = [(request, *self._prompt(request)) for request in self._cache.missing(self.name, requests)]
        prompts = [(request, ids) for request, ids, problem in todo if not problem]
        tokens = sum(len(ids) for _, ids in prompts)
        return Estimate(len(prompts), tokens, sum(request.max_tokens for request, _ in prompts), 0.0)

    def complete(self, requests: Sequence[Request], advance: ProgressCallback = no_progress) -> list[Completion]:
        """The completions of the requests, in order; each is stored before it is returned.

        Stored completions are not computed again, and equal requests are computed once. A completion has `error` if prompt
        and answer exceed the window or the memory.

        Args:
            requests: what to answer.
            advance: called with the number of requests done, each time some are done.

        Raises:
            IfqaError: a request has messages and the model no chat template, or the model's weights are damaged.
        """
        from ifqa.llms.generation import PrefixCaches  # loads transformers

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
            caches = PrefixCaches(self.model, [ids for _, ids in todo])
            while todo:
                group = todo[: self._next_batch_size(todo)]
                answers = self._generate(group, caches, text_callback() if group[0][0] == requests[0] else None)
                self._cache.put(self.name, {request: answer for request, answer in answers.items() if not answer.error})
                self._calls += sum(not completion.error for completion in answers.values())
                self._tokens = sum_tokens(answers.values(), self._tokens)
                for request, completion in answers.items():
                    batch.settle(request, completion)
                todo = todo[len(answers) :]
        finally:
            self._cached += batch.cached
        return batch.completions()

    def _prompt(self, request: Request) -> tuple[list[int], str]:
        """Token ids of a prompt, and why it cannot be answered, or ""."""
        from jinja2 import TemplateError

        if request.messages and not self.chat:
            raise IfqaError(f"{self.name} has no chat template and takes no messages; give it a text to continue")
        try:
            ids = self.ids(request)
        except TemplateError as error:
            return [], f"the model's chat template refuses the messages: {' '.join(str(error).split())[:200]}"
        if not ids:
            return [], "the prompt has no tokens"
        if len(ids) + request.max_tokens > self.window:
            return [], (
                f"a prompt of {len(ids):,} tokens and an answer of up to {request.max_tokens:,} do not fit into the "
                f"model's window of {self.window:,}"
            )
        return ids, ""

    def ids(self, request: Request) -> list[int]:
        """The tokens of a request's prompt as the model gets it, with the chat template."""
        if not request.messages:
            return self.tokenise(request.text, add_special_tokens=True)
        return self.tokenise(self._render(request), add_special_tokens=False)

    def _render(self, request: Request) -> str:
        from jinja2 import TemplateError

        chat = [{"role": role, "content": content} for role, content in request.messages]
        render = partial(
            self.tokenizer.apply_chat_template, add_generation_prompt=True, tokenize=False, **_TEMPLATE_SETTINGS
        )
        try:
            return str(render(chat))
        except TemplateError:
            if chat[0]["role"] != "system" or len(chat) < 2:
                raise
        # Some templates, such as Gemma's, know no system message: put its text before the first message's
        first, second, *rest = chat
        return str(render([second | {"content": f"{first['content']}\n\n{second['content']}"}, *rest]))

    def tokenise(self, text: str, add_special_tokens: bool) -> list[int]:
        """The tokens of a text."""
        whole = text.encode("utf-8", "replace").decode()  # a lone surrogate is no character
        ids: list[int] = self.tokenizer(whole, add_special_tokens=add_special_tokens)["input_ids"]
        return ids

    def _next_batch_size(self, todo: Sequence[tuple[Request, list[int]]]) -> int:
        """How many of the first requests make the next batch; batches are even, as one of a single prompt is slow for it."""
        longest = most = 0
        for number, (request, ids) in enumerate(todo[:_MAX_BATCH], start=1):
            longest, most = max(longest, len(ids)), max(most, request.max_tokens)
            if number > 1 and number * (longest + most) > self.room:
                break
            fits = number
        return -(-len(todo) // -(-len(todo) // fits))

    def _generate(
        self, group: Sequence[tuple[Request, list[int]]], caches: "PrefixCaches", on_text: TextCallback | None
    ) -> dict[Request, Completion]:
        """Completions of a batch, the first streamed; none if the memory was too small for several: the next is smaller."""
        import torch

        from ifqa.llms.generation import BatchStopping, TokenSampler, enable_grouped_attention

        width, most = max(len(ids) for _, ids in group), max(request.max_tokens for request, _ in group)
        device = self.model.device
        requests = [request for request, _ in group]
        rows = BatchStopping(requests, self._ends, self._decode, on_text)
        padded, mask = caches.padded([ids for _, ids in group], self._pad)
        try:
            with torch.inference_mode(), enable_grouped_attention(device.type):
                self.model.generate(
                    input_ids=padded,
                    attention_mask=mask,
                    past_key_values=caches.cache(len(group), width + most),
                    generation_config=self._settings(max_new_tokens=most),
                    logits_processor=[TokenSampler(requests, str(device))],
                    stopping_criteria=[rows],
                )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        else:
            return {request: rows.completion(row, len(ids)) for row, (request, ids) in enumerate(group)}
        if device.type == "cuda":  # outside the handler, as its traceback keeps the memory in use
            torch.cuda.empty_cache()
        if len(group) == 1:
            return {
                requests[0]: Completion(error=f"a prompt of {width:,} tokens does not fit into the memory of {device}")
            }
        self.room = max(1, min(self.room, len(group) * (width + most)) // 2)
        logger.info(f"out of memory with {len(group)} prompts at a time: going on with batches of {self.room:,} tokens")
        return {}

    def _settings(self, **settings: int) -> "GenerationConfig":
        from transformers import GenerationConfig

        end, pad = sorted(self._ends) or None, self._pad
        return GenerationConfig(
            do_sample=False, num_beams=1, use_cache=True, pad_token_id=pad, eos_token_id=end, **settings
        )

    def _decode(self, tokens: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(
            [token for token in tokens if token not in self._ends], skip_special_tokens=True
        )
        return text

    @classmethod
    def refuse_settings(cls, *, store: str = "", **_: object) -> None:
        """Refuse what no experiment's file may hold: a store elsewhere on the disk."""
        check_store(store)

    @classmethod
    def requirements(cls, *, model: str, root: Path = Path(), **_: object) -> list[Requirement]:
        """The model."""
        return [Requirement(model, download_hint(model, root))]

    @classmethod
    def fingerprint(cls, model: str, root: Path = Path(), **_: object) -> str:
        """One hash of the model's files, with its tokenizer, its chat template and its adapter."""
        return find_causal_lm(model, root).identity

    @classmethod
    def training_family(cls, model: str, root: Path = Path(), **_: object) -> str:
        """The split family of an adapter's training questions; empty for other models."""
        return find_causal_lm(model, root).family if is_adapter(root / model) else ""


def load_model(folder: Path, device: str, precision: str, adapter: Path | None = None) -> "PreTrainedModel":
    """The network in evaluation mode, on its device, with an adapter of peft merged into its weights."""
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
            str(folder), config=config, dtype=dtype, weights_only=True, output_loading_info=True, **here
        )
    refuse_missing(str(folder), report)
    if adapter:
        try:
            from peft import PeftModel
        except ImportError as error:
            raise IfqaError(f"{adapter} needs peft; install it with: pip install 'ifqa[train]'") from error
        with report_load_errors(str(adapter), "an adapter of peft"):
            model = PeftModel.from_pretrained(model, str(adapter), local_files_only=True).merge_and_unload()
    # The last tokens' states are a slice. torch.matmul copies the whole output matrix for each row of a batch of those.
    model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: (inputs[0].contiguous(), *inputs[1:]))
    try:
        return model.eval().to(device)
    except torch.OutOfMemoryError as error:
        raise IfqaError(f"{folder} does not fit into the memory of {device}; take a smaller model") from error


def _check_kind(folder: Path, config: "PretrainedConfig", causal: Iterable[str | Sequence[str]]) -> None:
    """Refuse other kinds by config.json: a masked model, say, would load as a causal one and write nonsense."""
    known = {name for names in causal for name in ([names] if isinstance(names, str) else names)}
    architectures = list(config.architectures or [])
    if config.is_encoder_decoder or (architectures and not known.intersection(architectures)):
        raise IfqaError(
            f"{folder} is no causal language model but {', '.join(architectures) or config.model_type}; {MEND}"
        )


def load_tokenizer(folder: Path, model: "PreTrainedModel") -> "PreTrainedTokenizerBase":
    """The tokenizer of a model's folder."""
    if not any(next(folder.glob(name), None) for name in _TOKENIZERS):  # transformers would make one of nothing
        raise IfqaError(f"{folder} has no tokenizer (such as tokenizer.json); copy the model's own into it")
    tokenizer = open_tokenizer(folder)
    vocabulary = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > vocabulary:
        raise IfqaError(
            f"the tokenizer of {folder} has {len(tokenizer):,} tokens and the model {vocabulary:,}; copy the model's "
            "own into it"
        )
    return tokenizer


def model_window(model: "PreTrainedModel") -> int:
    """Number of the model's positions, in tokens."""
    return config_number(model.config.get_text_config(decoder=True), "max_position_embeddings") or WINDOW


def end_tokens(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase") -> frozenset[int]:
    """The tokens that end an answer, from all of the model's files: a chat's end token often differs from a text's."""
    config = model.config.get_text_config(decoder=True)
    named = [model.generation_config.eos_token_id, getattr(config, "eos_token_id", None), tokenizer.eos_token_id]
    tokens = [token for entry in named for token in (entry if isinstance(entry, list) else [entry])]
    return frozenset(token for token in tokens if token is not None)


def batch_budget(model: "PreTrainedModel") -> int:
    """Tokens of prompts and answers that fit on the device: each has a key and a value in every layer."""
    budget = BATCH_TOKENS[model.device.type]
    config = model.config.get_text_config(decoder=True)
    layers, heads = (config_number(config, name) for name in ("num_hidden_layers", "num_attention_heads"))
    if model.device.type != "cpu" or not layers or not heads:
        return budget  # a GPU says when its memory is too small, and batches are halved
    kept = config_number(config, "num_key_value_heads") or heads
    size = config_number(config, "head_dim") or config.hidden_size // heads
    token: int = 2 * layers * kept * size * model.dtype.itemsize
    return max(budget, min(_MAX_BATCH_TOKENS, _CPU_CACHE_BYTES // token))
