"""`Client`: a server's system, asked over HTTP with the methods of an opened system."""

import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, Self, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import TypeAdapter, ValidationError

from ifqa.errors import IfqaError
from ifqa.llms.streaming import TextCallback
from ifqa.pipeline.system import as_questions, check_threshold
from ifqa.records import Answer, Passage, Question, Ranking
from ifqa.serve.schemas import About, AnswerForm, Answers, Problem, Rankings, Written
from ifqa.serve.security import is_loopback

if TYPE_CHECKING:
    import httpx2

_Form = TypeVar("_Form")
_Record = TypeVar("_Record", covariant=True)
_SECONDS = re.compile(r"\d{1,6}", re.ASCII)
_SLACK = 30.0  # seconds above the server's own time limit
_CONNECT = 5.0  # seconds


class _RecordForm(Protocol[_Record]):
    def record(self, question: Question) -> _Record: ...


class Client:
    """A system that `ifqa serve` holds open. Several threads may use a client at once.

    A server whose queue is full is asked again when it says so. Of a question its text, id, choices and context are sent.

    Args:
        url: the server's address, as it prints it: "http://127.0.0.1:8017".
        token: what the server wants from other machines; "" for the environment's IFQA_TOKEN.
        patience: seconds to ask again while the queue is full.

    Raises:
        IfqaError: the address is none, or nobody answers there.
    """

    def __init__(self, url: str, *, token: str = "", patience: float = 60.0) -> None:
        import httpx2

        try:
            host = urlsplit(url).hostname if url.startswith(("http://", "https://")) else None
            httpx2.URL(url)
        except (ValueError, httpx2.InvalidURL):
            host = None
        if not host:
            raise IfqaError(f"server {url!r:.80}: wanted an address, as in http://127.0.0.1:8017")
        self.url, self._patience = url.rstrip("/"), patience
        token = (token or os.environ.get("IFQA_TOKEN", "")).strip()
        if not (token.isascii() and token.isprintable()):
            raise IfqaError("the token has characters that no header can hold; wanted the server's own")
        self._web = httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            trust_env=not is_loopback(host),
            verify=url.startswith("https"),  # for plain HTTP no certificates need be read; redirects are not followed
            timeout=httpx2.Timeout(_SLACK),
        )
        self._about: About | None = None
        self._lock = threading.Lock()
        try:
            self.open()
        except IfqaError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> Self:
        """Check that the server answers."""
        _ = self.about
        return self

    def close(self) -> None:
        """Close the connections."""
        self._web.close()

    @property
    def about(self) -> About:
        """What the server searches, who reads, and what it takes at most; asked for once."""
        with self._lock:
            if self._about is None:
                self._about = self._reply("GET", "/v1/about", None, About)
            return self._about

    def ask(
        self, question: str | Question, threshold: float | None = None, on_text: TextCallback | None = None
    ) -> Answer:
        """The answer to a question, as `System.ask` gives it."""
        if on_text is None:
            return self.answer([question], threshold)[0]
        check_threshold(threshold)
        [(records, [body])] = self._parts([question])
        [answer] = self._records([self._stream({"question": body, "threshold": threshold}, on_text)], records)
        return answer

    def answer(self, questions: Sequence[str | Question], threshold: float | None = None) -> list[Answer]:
        """Each question's answer, as `System.answer` gives it.

        Raises:
            IfqaError: a question is empty or too long, the server refuses or cannot answer, or nobody answers there.
        """
        check_threshold(threshold)
        answers: list[Answer] = []
        for records, bodies in self._parts(questions):
            reply = self._reply("POST", "/v1/ask", {"questions": bodies, "threshold": threshold}, Answers)
            answers += self._records(reply.answers, records)
        return answers

    def retrieve(self, questions: Sequence[str | Question], k: int = 0) -> list[Ranking]:
        """The best `k` passages of each question, as `System.retrieve` gives them; raises as `answer`."""
        rankings: list[Ranking] = []
        for records, bodies in self._parts(questions):
            reply = self._reply("POST", "/v1/retrieve", {"questions": bodies, "k": k}, Rankings)
            rankings += self._records(reply.rankings, records)
        return rankings

    def passage(self, passage_id: str) -> Passage | None:
        """The corpus's passage of an id; None if there is no such passage."""
        try:
            quoted = quote(passage_id, safe="")
        except UnicodeEncodeError:  # half a surrogate pair: no passage's id
            return None
        response = self._send("GET", f"/v1/passages/{quoted}", None)
        return None if response.status_code == 404 else self._parsed(response, Passage)

    def _parts(self, questions: Sequence[str | Question]) -> Iterator[tuple[list[Question], list[dict[str, object]]]]:
        """The questions, as many at a time as the server takes, and what is sent of them.

        The server numbers those that were given as texts.
        """
        records, most = as_questions(questions), self.about.limits.questions
        bodies: list[dict[str, object]] = []
        for question, record in zip(questions, records, strict=True):
            named = {} if isinstance(question, str) else {"id": record.id}
            bodies.append({"text": record.text, "choices": list(record.choices), "context": record.context, **named})
        for start in range(0, len(records), most):
            yield records[start : start + most], bodies[start : start + most]

    @property
    def _timeout(self) -> float:
        return _SLACK + (self._about.limits.seconds if self._about else 0)

    def _reply(self, method: str, path: str, body: Mapping[str, object] | None, form: type[_Form]) -> _Form:
        return self._parsed(self._send(method, path, body), form)

    def _send(self, method: str, path: str, body: Mapping[str, object] | None) -> "httpx2.Response":
        """The response; a full queue is asked again."""
        import httpx2

        end = time.monotonic() + self._patience
        while True:
            with self._reached():
                timeout = httpx2.Timeout(self._timeout, connect=_CONNECT)
                response = self._web.request(method, path, json=body, timeout=timeout)
            later = response.headers.get("retry-after", "")
            wait = max(int(later), 1) if _SECONDS.fullmatch(later) else math.inf
            if response.status_code != 503 or time.monotonic() + wait > end:
                return response
            time.sleep(wait)

    def _stream(self, body: Mapping[str, object], on_text: TextCallback) -> AnswerForm:
        headers = {"Accept": "text/event-stream"}
        with (
            self._reached(),
            self._web.stream("POST", "/v1/ask", json=body, headers=headers, timeout=self._timeout) as response,
        ):
            if response.status_code != 200:
                response.read()
                raise self._refused(response)
            name, text = "", ""
            for line in response.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data" and name == "text":
                    piece = self._parsed(value, Written)
                    text = text[: piece.at] + piece.text
                    on_text(text)
                elif field == "data" and name == "answer":
                    return self._parsed(value, AnswerForm)
                elif field == "data" and name == "problem":
                    raise IfqaError(f"{self.url}: {self._parsed(value, Problem).detail}")
        raise IfqaError(f"{self.url}: the connection broke before the answer; ask again")

    @contextmanager
    def _reached(self) -> Iterator[None]:
        import httpx2

        try:
            yield
        except httpx2.RequestError as error:
            raise IfqaError(
                f"{self.url}: {str(error) or type(error).__name__}; is the server up? Start it with: ifqa serve"
            ) from None

    def _parsed(self, reply: "str | httpx2.Response", form: type[_Form]) -> _Form:
        if not isinstance(reply, str) and reply.status_code != 200:
            raise self._refused(reply)
        try:
            return TypeAdapter(form).validate_json(reply if isinstance(reply, str) else reply.content)
        except ValidationError as error:
            raise self._foreign() from error

    def _records(self, forms: Sequence[_RecordForm[_Record]], questions: Sequence[Question]) -> list[_Record]:
        try:
            return [form.record(question) for form, question in zip(forms, questions, strict=True)]
        except ValueError as error:  # another number of them, or a calculation without sense
            raise self._foreign() from error

    def _foreign(self) -> IfqaError:
        return IfqaError(f"{self.url} answers, but not as ifqa serve does; is it another server?")

    def _refused(self, response: "httpx2.Response") -> IfqaError:
        try:
            detail = Problem.model_validate_json(response.content).detail
        except ValidationError:
            detail = f"HTTP {response.status_code}, not as ifqa serve answers; is it another server?"
        return IfqaError(f"{self.url}: {detail}")
