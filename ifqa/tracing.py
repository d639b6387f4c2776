"""OpenTelemetry spans of searching, reranking, reading and model calls, if
OTEL_EXPORTER_OTLP_ENDPOINT is set.

Names and attributes follow the GenAI conventions 0.1.0 (open-telemetry/semantic-conventions-genai).
Questions, prompts and answers are left out, unless
OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is "true".
"""

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from ifqa.records import Completion, Request
from ifqa.version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

logger = logging.getLogger(__name__)

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_Attribute = str | int | float | Sequence[str] | None
Attributes = Mapping[str, _Attribute]


@contextmanager
def span(
    name: str, attributes: Attributes, kind: Literal["internal", "client"] = "internal"
) -> Iterator[MutableMapping[str, _Attribute]]:
    """Trace the body of a `with` statement; attributes that are None are left out.

    The mapping that the statement gives takes attributes that are known at the end. An error is
    traced by its class, because its message may quote a text.
    """
    results: dict[str, _Attribute] = {}
    tracer = _tracer() if os.environ.get(ENDPOINT) else None
    if tracer is None:
        yield results
        return
    from opentelemetry.trace import SpanKind, StatusCode

    with tracer.start_as_current_span(
        name,
        kind=SpanKind[kind.upper()],
        attributes=_known(attributes),
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield results
        except BaseException as error:
            results["error.type"] = type(error).__qualname__
            raise
        finally:
            current.set_attributes(_known(results))
            if "error.type" in results:
                current.set_status(StatusCode.ERROR)


@contextmanager
def model_span(
    model: str, provider: str, request: Request, url: str = ""
) -> Iterator[Callable[[Completion | None], None]]:
    """Trace a model call with all its retries.

    The statement gives a function that takes the completion (None: not sent).
    """
    operation = "chat" if request.messages else "text_completion"
    server = urlsplit(url)
    messages = request.transcript or (("user", request.text),)
    attributes: Attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.temperature": request.temperature,
        "server.address": server.hostname,
        "server.port": server.port,
        "gen_ai.input.messages": _messages(messages),
    }
    with span(f"{operation} {model}", attributes, "client") as results:

        def finish(completion: Completion | None) -> None:
            if completion is None or completion.error:
                results["error.type"] = "no completion"
                return
            results["gen_ai.usage.input_tokens"] = completion.prompt_tokens
            results["gen_ai.usage.output_tokens"] = completion.completion_tokens
            results["gen_ai.response.finish_reasons"] = (
                [completion.finish] if completion.finish else None
            )
            calls = json.dumps(completion.calls) if completion.calls else ""
            results["gen_ai.output.messages"] = _messages((("assistant", completion.text + calls),))

        yield finish


def captures_content() -> bool:
    return os.environ.get(CONTENT, "").lower() == "true"


def _messages(messages: Sequence[tuple[str, str]]) -> str | None:
    """Messages as the conventions write them, in JSON; None if texts are left out."""
    if not captures_content():
        return None
    return json.dumps(
        [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
    )


def _known(attributes: Attributes) -> dict[str, str | int | float | Sequence[str]]:
    return {name: attribute for name, attribute in attributes.items() if attribute is not None}


@cache
def _tracer() -> "Tracer | None":
    """A tracer that exports to the endpoint, through the application's own provider if it has set
    one.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning(
            f"{ENDPOINT} is set, but there is no exporter: pip install 'ifqa[tracing]'; "
            "nothing is traced"
        )
        return None
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        os.environ.setdefault("OTEL_SERVICE_NAME", "ifqa")
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
    return trace.get_tracer("ifqa", __version__)
