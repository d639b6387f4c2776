"""The JSON API: answers equal those in process, events, problems, and no request that ends in a
5xx.
"""

import json
import re
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import blocking_reader
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_server import Reply
from openai_server import serving as language_model
from serving_system import HOSTILE, client, small

import ifqa
from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import open_system
from ifqa.report import html_page
from ifqa.serve import limits
from ifqa.serve.schemas import AnswerForm, Answers, RankingForm, Rankings

PLAIN = "If Ada had not come, who would have built it?"
LATER = "If it had been ten years later, in what year?"
UNSURE = "If unsure, who?"
QUESTIONS = [PLAIN, LATER, UNSURE, "If it fails, who?", "Who left?"]


def ask(web, **body):
    return web.post("/v1/ask", json=body)


def test_the_answers_are_those_of_the_opened_system(experiment, web):
    known = ifqa.Question("mine/7", "If you choose, which?", choices=("one", "two"))
    bodies = [*QUESTIONS, {"text": known.text, "id": known.id, "choices": list(known.choices)}]

    def compared(replies):
        return [
            reply | {"id": ""} | ({"seconds": 0} if "seconds" in reply else {}) for reply in replies
        ]

    with open_system(Run(experiment)) as system:
        answers = [
            AnswerForm.of(answer, 0).model_dump(mode="json")
            for answer in system.answer([*QUESTIONS, known])
        ]
        rankings = [
            RankingForm.of(ranking).model_dump(mode="json")
            for ranking in system.retrieve(QUESTIONS[:2], k=2)
        ]
        passage = system.passage("p/3")
    replies = ask(web, questions=bodies).json()["answers"]
    assert compared(replies) == compared(answers)
    assert [answer["answer"] for answer in replies] == [
        "Ada Stone",
        "1859",
        "",
        "",
        "Ada Stone",
        "two",
    ]
    assert (replies[1]["how"]["calculation"]["result"], replies[2]["candidate"]) == (
        "1859",
        "Ada Stone",
    )
    assert (replies[3]["error"], replies[5]["id"]) == ("cut off", "mine/7")
    assert ask(web, question=UNSURE, threshold=0).json()["answers"][0]["answer"] == "Ada Stone"
    retrieved = web.post("/v1/retrieve", json={"questions": QUESTIONS[:2], "k": 2}).json()[
        "rankings"
    ]
    assert compared(retrieved) == compared(rankings)
    assert (
        len(web.post("/v1/retrieve", json={"question": PLAIN}).json()["rankings"][0]["passages"])
        == 3
    )
    assert passage is not None
    assert web.get("/v1/passages/p%2F3").json() == asdict(passage) | {"source": None}


def test_why_tells_what_the_answer_becomes_without_a_part_of_the_evidence(web):
    [plain] = web.post("/v1/why", json={"questions": [PLAIN]}).json()["answers"]
    assert plain["answer"] == "Ada Stone"
    first, second, _, fact = plain["ablations"]
    assert first["passage"]["id"] == "p/0"
    assert second["passage"]["id"] == "p/1"
    assert fact["passage"]["id"] == "p/0"
    assert first["sentence"] == ""
    assert fact["sentence"][:11] == "It was fini"
    assert [each["answer"] for each in plain["ablations"]] == ["Ada Stone"] * 3 + [""]
    assert [each["same"] for each in plain["ablations"]] == [True, True, True, False]
    assert fact["confidence"] is None
    assert first["confidence"] == 0.9


def test_why_has_nothing_to_leave_out_where_no_answer_is_given(web):
    replies = web.post("/v1/why", json={"questions": [PLAIN, UNSURE]}).json()["answers"]
    assert [reply["answer"] for reply in replies] == ["Ada Stone", ""]
    assert replies[1]["ablations"] == []


def test_a_bug_is_a_500_of_why(web):
    assert web.post("/v1/why", json={"question": "If a bug, who?"}).status_code == 500


def test_an_answer_has_its_parts_marked(web):
    [answer] = ask(web, question=LATER).json()["answers"]
    assert [len(passage["pieces"]) for passage in answer["evidence"]] == [3, 1]


def test_markup_in_an_answer_stays_text(web):
    hostile = ask(web, question=f"If {HOSTILE}, who?")
    headers = [hostile.headers[name] for name in ("content-type", "x-content-type-options")]
    assert headers == ["application/json", "nosniff"]
    assert hostile.json()["answers"][0]["evidence"][0]["title"] == f"Mill 0 {HOSTILE}"


def test_an_answer_has_its_outcome(web):
    outcomes = [answer["outcome"] for answer in ask(web, questions=QUESTIONS).json()["answers"]]
    assert outcomes == ["answered", "answered", "abstained", "failed", "answered"]


WRONG = {
    "nothing": (b"", 422, "body"),
    "no JSON": (b"{", 422, "body: not JSON ("),
    "invalid UTF-8": (b'{"question": "\xff"}', 400, ""),
    "half a character": (b'{"question": "\\ud800?"}', 422, "question"),
    "no question": (b"{}", 422, 'wanted either "question" or "questions"'),
    "both": (b'{"question": "a?", "questions": ["b?"]}', 422, "wanted either"),
    "blank": (b'{"question": "  \\n"}', 422, "the question is empty"),
    "too long": (
        json.dumps({"question": "x" * 2001}).encode(),
        422,
        "question: String should have at most 2000",
    ),
    "too many": (
        json.dumps({"questions": ["a?"] * 65}).encode(),
        422,
        "questions: List should have at most 64",
    ),
    "long context": (
        json.dumps({"question": {"text": "a?", "context": "x" * 20_001}}).encode(),
        422,
        "20000 char",
    ),
    "many choices": (
        json.dumps({"question": {"text": "a?", "choices": ["b"] * 33}}).encode(),
        422,
        "at most 32",
    ),
    "long id": (
        json.dumps({"question": {"text": "a?", "id": "x" * 201}}).encode(),
        422,
        "question.id",
    ),
    "a number": (b'{"question": 7}', 422, "question"),
    "unknown key": (
        b'{"question": "a?", "thresold": 1}',
        422,
        "thresold: Extra inputs are not permitted",
    ),
    "threshold": (b'{"question": "a?", "threshold": 1.5}', 422, "threshold"),
    "NaN": (b'{"question": "a?", "threshold": NaN}', 422, "threshold"),
    "blank in an id": (b'{"question": {"text": "a?", "id": "a b"}}', 422, "question.id"),
    "deep": (b"[" * 100_000, 400, ""),
    "large number": (b'{"question": "a?", "threshold": ' + b"9" * 5000 + b"}", 400, ""),
}


def test_the_documented_limits_are_the_real_limits():
    text = (
        (Path(__file__).parents[2] / "docs/serve.md")
        .read_text()
        .partition("## Limits")[2]
        .partition("\n## ")[0]
    )
    documented = dict(re.findall(r"^\| ([^|]+?) +\| ([^|]+?) +\|", text, re.MULTILINE))
    sizes = {
        "connections at a time": limits.MAX_CONNECTIONS,
        "questions of a request": limits.MAX_QUESTIONS,
        "keys of an object": limits.MAX_KEYS,
        "its choices": limits.MAX_CHOICES,
        "passages of a ranking": limits.MAX_K,
        "an id": f"{limits.MAX_ID} characters",
        "a question": f"{limits.MAX_QUESTION:,} characters",
        "its context": f"{limits.MAX_CONTEXT:,} characters",
        "seconds to receive the head of a request": f"{limits.REQUEST_TIMEOUT:g} s",
        "seconds to receive the body after the head": f"{limits.REQUEST_TIMEOUT:g} s",
        "seconds between an answer and the next request": f"{limits.KEEP_ALIVE} s",
        "seconds that a client leaves an answer unread": f"{limits.WRITE_TIMEOUT:g} s",
        "the head of a request": f"{limits.MAX_HEADERS >> 10} KiB",
        "the body": f"{limits.MAX_BODY >> 20} MiB",
        "the body of `POST /v1/session`": f"{limits.MAX_SESSION_BODY >> 10} KiB",
        "questions that wait": f"`--queue`, {limits.Limits.waiting}",
        "from a question to its answer": f"`--timeout`, {limits.Limits.seconds:g} s",
    }
    assert {name: documented.get(name) for name in sizes} == {
        name: f"{size}" for name, size in sizes.items()
    }


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_a_problem_in_one_line(name, web):
    body, status, words = WRONG[name]
    refused = web.post(
        "/v1/ask",
        content=body,
        headers={"content-type": "application/json", "x-request-id": "mine-1"},
    )
    problem = refused.json()
    assert (refused.status_code, refused.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    assert (problem["status"], problem["request_id"], words in problem["detail"]) == (
        status,
        "mine-1",
        True,
    )
    assert "\n" not in problem["detail"]
    assert blocking_reader.BATCHES == []


def test_too_many_keys_are_refused_together(web):
    """To name each would hold up all others for seconds."""
    keys = {f"k{n}": 1 for n in range(40_000)}
    for form in (keys, {"question": keys}, {"questions": [keys]}):
        refused = web.post("/v1/ask", json=form)
        assert (
            refused.status_code,
            "40,000 keys; wanted at most 20" in refused.json()["detail"],
        ) == (422, True)


def test_the_page_has_a_strict_policy(web):
    page = web.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]


def test_what_the_page_links_to_is_served(web):
    page = web.get("/")
    linked = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
    assert [web.get(path).status_code for path in linked] == [200] * 4
    assert web.get("/favicon.ico").headers["content-type"] == "image/svg+xml"


def test_results_are_written_again_only_after_a_change(web, tmp_path, monkeypatch):
    written: list[dict[str, object]] = []

    def render_results(*_, **how):
        written.append(how)
        return f"<p>results {len(written)}"

    monkeypatch.setattr(html_page, "render_results", render_results)
    first = web.get("/results")
    assert (first.text, first.headers["content-security-policy"]) == (
        "<p>results 1",
        "frame-ancestors 'none'",
    )
    assert web.get("/results").text == first.text
    (tmp_path / "experiments/mine/score").mkdir(parents=True)
    for number, path in enumerate(("mine/score/manifest.json", "RESULTS.jsonl"), start=2):
        (tmp_path / "experiments" / path).touch()
        assert web.get("/results").text == f"<p>results {number}"
    assert written == [{"served": True}] * 3


def test_other_refusals_are_problems_too(web):
    def status_and_title(answer):
        return answer.status_code, answer.json()["title"]

    assert status_and_title(web.get("/v1/ask")) == (405, "Method Not Allowed")
    for path in (
        "nothing",
        "v1/passages/p%2F99",
        "v1/passages/" + "..%2F" * 100,
        "static/..%2F__init__.py",
    ):
        assert status_and_title(web.get(f"/{path}")) == (404, "Not Found")
    assert status_and_title(web.post("/v1/ask", content=b"question=a")) == (
        415,
        "Unsupported Media Type",
    )
    assert (
        status_and_title(
            web.post(
                "/v1/ask", content="x" * 1_050_000, headers={"content-type": "application/json"}
            )
        )[0]
        == 413
    )
    assert status_and_title(ask(web, question="refused?")) == (503, "Service Unavailable")
    bug = ask(web, questions=["a bug?", PLAIN])
    assert (bug.status_code, "secret" in bug.text) == (500, False)
    assert ask(web, question=PLAIN).json()["answers"][0]["answer"] == "Ada Stone"


def test_the_queue_refuses_what_does_not_fit(experiment):
    with client(experiment, waiting=2) as web:
        refused = ask(web, questions=["a?", "b?", "c?"])
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"


def test_the_queue_takes_what_fits_after_a_refusal(experiment):
    with client(experiment, waiting=2) as web:
        assert ask(web, questions=["a?", "b?", "c?"]).status_code == 503
        assert ask(web, questions=["a?", "b?"]).status_code == 200


def test_an_answer_that_takes_too_long_is_a_504(experiment):
    with client(experiment, seconds=0.05) as web:
        blocking_reader.OPEN.clear()
        assert ask(web, question=PLAIN).status_code == 504
        assert ask(web, question="If another, who?").status_code == 504
        blocking_reader.OPEN.set()
        assert web.get("/readyz").status_code == 200
    assert blocking_reader.BATCHES == [[PLAIN]]  # the second was withdrawn while it waited


def events(answer):
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in (
            event.split("\n")
            for event in answer.text.split("\n\n")
            if event and not event.startswith(":")
        )
    ]


def test_events_end_with_the_answer_or_a_problem(web):
    stream = {"accept": "text/event-stream"}
    stream_events = events(web.post("/v1/ask", json={"question": PLAIN}, headers=stream))
    assert [name for name, _ in stream_events][-2:] == ["reading", "answer"]
    [plain] = ask(web, question=PLAIN).json()["answers"]
    assert stream_events[-1][1] | {"seconds": 0, "id": ""} == plain | {"seconds": 0, "id": ""}
    stream_events = events(web.post("/v1/ask", json={"question": "refused?"}, headers=stream))
    assert (stream_events[-1][0], stream_events[-1][1]["status"]) == ("problem", 503)
    assert web.post("/v1/ask", json={"questions": [PLAIN]}, headers=stream).status_code == 422


def test_a_language_models_text_is_streamed(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-3f9c1e77a0b2")
    reply = Reply(text="Answer: the stationary {passages} engines", pace=0.05)
    with language_model(lambda *_: reply) as server:
        llm = {"name": "openai", "model": "m", "base_url": server.url, "window": 4096}
        with client(
            small(tmp_path, reader={"name": "llm", "prompt": "closed-book"}, llm=llm)
        ) as web:
            about = web.get("/v1/about").json()["reader"]
            assert (about["streams"], about["model"][:1]) == (True, "m")
            body = {"question": "If {question} {passages}, what?"}
            stream_events = events(
                web.post("/v1/ask", json=body, headers={"accept": "text/event-stream"})
            )
    pieces = [piece for name, piece in stream_events if name == "text"]
    text = ""
    for piece in pieces:
        text = text[: piece["at"]] + piece["text"]
    assert text
    # The newest state alone is sent
    assert "Answer: the stationary {passages} engines".startswith(text)
    assert stream_events[-1][1]["answer"] == "the stationary {passages} engines"
    assert server.bodies[0]["messages"][-1]["content"].endswith("If {question} {passages}, what?")


def test_the_schema_describes_the_responses(web):
    schema = web.get("/openapi.json").json()
    for path in ("/v1/ask", "/v1/retrieve"):
        body = schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        form = schema["components"]["schemas"][body["$ref"].rpartition("/")[2]]
        for example in form["examples"]:
            assert web.post(path, json=example).status_code == 200
    assert Answers.model_validate(ask(web, question=PLAIN).json())
    assert Rankings.model_validate(web.post("/v1/retrieve", json={"question": PLAIN}).json())
    about = web.get("/v1/about").json()
    assert about["corpus"] == {"name": "few", "passages": 5}
    assert (about["passages_read"], about["reader"]["abstains_below"], len(about["examples"])) == (
        2,
        0.5,
        3,
    )


def test_answers_are_counted_by_outcome(web):
    ask(web, questions=QUESTIONS)
    text = web.get("/metrics").text
    assert 'ifqa_answers_total{outcome="abstained"} 1.0' in text
    assert "ifqa_waiting" in text
    assert "_created" not in text


def test_requests_are_counted_by_route(web):
    web.get("/v1/passages/" + quote(HOSTILE))
    for number in range(9):
        assert web.request(f"ODD{number}", "/v1/about").status_code == 405
    text = web.get("/metrics").text
    assert 'route="/v1/passages/{passage_id:path}",status="404"} 1.0' in text
    assert 'ifqa_requests_total{method="other",route="/v1/about",status="405"} 9.0' in text
    assert "<script>" not in text


@pytest.fixture
def without_reader(tmp_path):
    with client(small(tmp_path, reader=None)) as web:
        yield web


def test_a_system_without_a_reader_says_so(without_reader):
    assert ask(without_reader, question=PLAIN).status_code == 404
    assert without_reader.get("/v1/about").json()["reader"] is None


def test_a_system_without_a_reader_retrieves(without_reader):
    retrieved = without_reader.post("/v1/retrieve", json={"question": PLAIN}).json()
    assert len(retrieved["rankings"][0]["passages"]) == 3


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["question", "questions", "text", "id", "choices", "k", "threshold"]),
            inner,
        )
    ),
    max_leaves=8,
)


def test_no_request_ends_in_a_5xx(web):
    routes = [
        ("POST", "/v1/ask"),
        ("POST", "/v1/retrieve"),
        ("POST", "/v1/session"),
        ("POST", "/mcp"),
    ]
    routes += [
        (method, f"/v1/passages/{n}")
        for method in ("GET", "PUT")
        for n in ("p%2F1", "%00", "%ff%fe", "..%2F..", "🜚")
    ]

    @settings(max_examples=60)
    @given(st.sampled_from(routes), _JSON, st.sampled_from(["application/json", "text/plain", ""]))
    def holds(route, body, kind):
        headers = {"content-type": kind} if kind else {}
        response = web.request(*route, content=json.dumps(body).encode(), headers=headers)
        assert response.status_code < 500, response.text

    holds()


def test_one_word_gets_advice_and_passages(web):
    [answer] = ask(web, question="Sluice").json()["answers"]
    assert (answer["outcome"], answer["answer"], len(answer["evidence"])) == ("abstained", "", 2)
    assert answer["note"].startswith("There is only one word in it: ask a whole question")
