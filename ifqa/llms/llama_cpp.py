"""Runs a GGUF file in this process with llama.cpp, on its quantised weights, several prompts at a
time.
"""

import importlib.util
import json
import secrets
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ifqa.errors import ConfigError, FormatError, IfqaError, MissingInput
from ifqa.llms.cache import RequestBatch, request_seed, truncate_completion
from ifqa.llms.local_model import LocalModel, LocalSettings
from ifqa.llms.logprobs import RawToken, locate_tokens, parse_tokens
from ifqa.llms.streaming import TextCallback, text_callback
from ifqa.llms.token_counts import count_prompt_tokens, estimate_tokens
from ifqa.models.causal_lm import LLAMA_CPP, download_hint, find_gguf
from ifqa.protocols import PathSetting, ProgressCallback, Requirement, no_progress
from ifqa.records import Completion, Estimate, Request
from ifqa.settings import Natural, PluginSettings, Positive
from ifqa.storage.files import cached_sha256
from ifqa.tracing import model_span
from ifqa.workers.hardware import cores

if TYPE_CHECKING:
    from xllamacpp import Server

INSTALL = "install it with: pip install 'ifqa[llama-cpp]'"
WINDOW = 8192  # tokens; the default for a model whose own window is larger
_TOO_LONG = "exceed_context_size_error"
# The model's distribution as it is, as in `hf`
_SAMPLING = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


class ServerSettings(PluginSettings):
    """Which file llama.cpp runs, and how."""

    model: PathSetting
    """The GGUF file, or a fetched model that keeps one (`ifqa data qwen2.5-coder-1.5b`)."""
    slots: Positive = 4
    """Number of prompts that are answered at the same time."""
    threads: Natural = 0
    """Number of threads that compute; 0 for one per core."""
    window: Natural = 0
    """Tokens of prompt and answer together; 0 for the model's own window, but at most 8,192. Memory
    for this window in every slot is allocated at the start.
    """


class LlamaCpp(LocalModel):
    """A causal language model in a GGUF file, run by llama.cpp. Temperature 0 takes the likeliest
    token at each step.

    The weights stay quantised and activations are quantised too, so answers can differ from those
    of `hf`, which computes with the dequantised weights. Which prompts are answered together
    changes rounding. Sampling is seeded by each request. A file without a chat template gets
    ChatML's.

    Attributes:
        name: the file and a hash of it; completions are stored under it.
    """

    version = 1
    streams = True
    takes_schema = True
    _stopped = False
    model_settings: ClassVar = {"model": ""}
    runtime_only = ("slots", "threads", "store")

    # In a file, the fields of the last base come first
    class Settings(LocalSettings, ServerSettings):
        pass

    def __init__(self, settings: Settings, *, root: Path = Path()) -> None:
        window = settings.window
        file = find_gguf(settings.model, root)
        self.name = f"{file.name}@{cached_sha256(file)[:16]}"
        self._set_limits(settings)
        self._server, self.window = start_server(
            file, settings.slots, window or WINDOW, settings.threads or cores()
        )
        if window > self.window:
            raise ConfigError(
                f"llama-cpp: window is {window:,}, but {settings.model} has only "
                f"{self.window:,} positions"
            )
        self._slots = settings.slots
        self._open_cache(root / settings.store)

    def count(self, text: str) -> int:
        """An upper estimate of a text's number of tokens."""
        return estimate_tokens(text)

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """The tokens that the requests would take; stored and repeated requests take none."""
        missing = self._cache.missing(self.name, requests)
        prompt = sum(count_prompt_tokens(request, self.count) for request in missing)
        return Estimate(len(missing), prompt, sum(request.max_tokens for request in missing), 0.0)

    def complete(
        self, requests: Sequence[Request], advance: ProgressCallback = no_progress
    ) -> list[Completion]:
        """The completions of the requests, in order; each is stored as soon as it is there.

        Stored completions are not computed again, and equal requests are computed once. A
        completion has `error` if prompt and answer exceed the window. `advance` is called with the
        number of requests done.
        """
        batch = RequestBatch(self._cache, self.name, requests, advance)
        on_text = text_callback()  # of this thread
        pool = ThreadPoolExecutor(self._slots)
        try:
            futures = {
                pool.submit(
                    copy_context().run,
                    self._generate,
                    request,
                    on_text if request == requests[0] else None,
                ): request
                for request in batch.missing
            }
            for future in as_completed(futures):
                self._keep(batch, {futures[future]: future.result()})
        finally:
            self._stopped = True
            pool.shutdown(cancel_futures=True)
            self._stopped = False
            self._cached += batch.cached
        return batch.completions()

    def _generate(self, request: Request, on_text: TextCallback | None) -> Completion:
        """A request's completion, from any thread.

        `on_text` is called with the text after each of its tokens.
        """
        text = ""
        finish = ""
        usage = {"prompt_tokens": 0, "completion_tokens": 0}
        error: dict[str, Any] = {}
        raw_tokens = list[RawToken]()

        def take(chunk: dict[str, Any]) -> bool:
            """Take a part of the answer; returns whether to stop."""
            nonlocal text, finish, usage, error
            error = chunk.get("error", error)
            usage = chunk.get("usage", usage)
            for choice in chunk.get("choices", ()):
                text += choice.get("text") or choice.get("delta", {}).get("content") or ""
                finish = choice["finish_reason"] or finish
                raw_tokens.extend(parse_tokens(choice.get("logprobs")))
            if on_text:
                on_text(text)
            return self._stopped

        generate = (
            self._server.handle_chat_completions
            if request.messages
            else self._server.handle_completions
        )
        with model_span(self.name, "llama.cpp", request) as finished:
            generate(server_arguments(request, self._template_arguments()), take)
            finished(
                Completion(
                    text,
                    usage["prompt_tokens"],
                    usage["completion_tokens"],
                    finish,
                    error.get("message", ""),
                )
            )
        if error.get("type") == _TOO_LONG:
            tokens = f"a prompt of {error['n_prompt_tokens']:,} tokens"
            return Completion(
                error=f"{tokens} does not fit into the model's window of {self.window:,}"
            )
        if error or not finish:
            raise IfqaError(
                f"{self.name}: llama.cpp did not answer: {error.get('message', 'it was stopped')}"
            )
        return truncate_completion(
            Completion(
                text,
                usage["prompt_tokens"],
                usage["completion_tokens"],
                finish,
                logprobs=locate_tokens(text, raw_tokens),
            )
        )

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> list[Requirement]:
        model = settings.model
        missing = "" if importlib.util.find_spec(LLAMA_CPP) else INSTALL
        return [Requirement(model, download_hint(model, root)), Requirement(LLAMA_CPP, missing)]

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        """SHA-256 of the file."""
        return cached_sha256(find_gguf(settings.model, root))


def start_server(file: Path, slots: int, window: int, threads: int) -> tuple["Server", int]:
    """llama.cpp's server for a file, and its window in tokens, at most the model's own.

    It also listens at an address of this machine, where it answers to a random key only.
    """
    try:
        from xllamacpp import CommonParams, Server
    except ImportError as error:
        raise MissingInput(f"{LLAMA_CPP} is missing; {INSTALL}") from error
    settings = CommonParams()
    key = secrets.token_hex()
    settings.model.path = str(file)
    settings.api_keys = [key]
    settings.n_parallel = slots
    settings.n_ctx = slots * window
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.cache_ram_mib = 0
    settings.fit_params = False
    settings.ui = False
    settings.warmup = False
    settings.verbosity = -1
    try:
        server = Server(settings)
    except RuntimeError as error:
        raise FormatError(
            f"{file}: llama.cpp cannot load it; wanted a GGUF file of a causal language model"
        ) from error
    request = urllib.request.Request(
        f"{server.listening_address}/props", headers={"Authorization": f"Bearer {key}"}
    )
    # Not through the environment's proxy
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=60) as reply:
        return server, int(json.load(reply)["default_generation_settings"]["n_ctx"])


def server_arguments(request: Request, template: Mapping[str, object]) -> dict[str, object]:
    """The arguments of llama.cpp's server for a request.

    `template` are those of the chat template.
    """
    prompt: dict[str, object] = {"prompt": request.text}
    if request.messages:
        prompt = {
            "messages": [{"role": role, "content": content} for role, content in request.messages]
        }
    sampled: dict[str, object] = {
        "temperature": request.temperature,
        "seed": request_seed(request) % 2**32,
        "max_tokens": request.max_tokens,
    }
    schema: dict[str, object] = {}
    if request.schema:
        schema = {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"schema": json.loads(request.schema)},
            }
        }
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    if request.logprobs:
        # The older API takes a number of alternatives to each token
        sampled["logprobs"] = True if request.messages else 1
    sampled |= {**_SAMPLING, "chat_template_kwargs": dict(template)}
    return (
        prompt
        | sampled
        | schema
        | streamed
        | ({"stop": list(request.stop)} if request.stop else {})
    )
