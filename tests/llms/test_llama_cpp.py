"""GGUF files answered by llama.cpp itself: as transformers answers with the same weights, stored,
streamed, and refused in one line.
"""

import json
import urllib.error
import urllib.request

import pytest
import tiny_chat
import tiny_gguf

from ifqa.errors import IfqaError
from ifqa.llms.hf import HF
from ifqa.llms.llama_cpp import LlamaCpp
from ifqa.llms.streaming import streaming
from ifqa.records import Request

pytest.importorskip(
    "xllamacpp", reason="llama.cpp is not installed; install it with: pip install 'ifqa[llama-cpp]'"
)
WORDS = tiny_chat.tokenizer()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tiny_gguf.write(
        tmp_path_factory.mktemp("gguf") / "tiny.gguf", WORDS, tiny_gguf.llama(WORDS)
    )


def start(file, root, **settings):
    return LlamaCpp(LlamaCpp.Settings(model=str(file), threads=1, **settings), root=root)


def chat(text, **settings):
    return Request(
        messages=(("system", "Answer."), ("user", text)), **{"max_tokens": 12} | settings
    )


REQUESTS = [
    chat(f"If Wick had {number} harbours, where would the boats land?") for number in range(6)
]


def test_it_answers_as_transformers_does_with_the_same_weights(file, tmp_path):
    answers = start(file, tmp_path).complete(
        [*REQUESTS, Request(text="The boats land", max_tokens=6)]
    )
    settings = HF.Settings(model=str(file), precision="float32", store="other")
    other = HF(settings, root=tmp_path).complete(REQUESTS)
    incomplete = "\ufffd"  # the first bytes of a character, at the end
    pairs = [
        (mine.text.rstrip(incomplete), its.text.rstrip(incomplete))
        for mine, its in zip(answers, other, strict=False)
    ]
    assert all(mine and mine == its for mine, its in pairs)
    assert [answer.prompt_tokens for answer in answers[:-1]] == [
        answer.prompt_tokens for answer in other
    ]
    assert answers[-1].text
    assert answers[-1].completion_tokens == 6


def test_a_stored_completion_is_not_computed_again_and_equal_requests_are_computed_once(
    file, tmp_path
):
    model = start(file, tmp_path)
    steps: list[float] = []
    first = model.complete([*REQUESTS, REQUESTS[0]], steps.append)
    assert first[0].text == first[-1].text
    assert (model.spent.calls, sum(steps)) == (6, 7)
    again = start(file, tmp_path)
    assert [answer.text for answer in again.complete(REQUESTS)] == [
        answer.text for answer in first[:-1]
    ]
    assert (again.spent.calls, again.spent.cached) == (0, 6)
    assert model.estimate([*REQUESTS, chat("Another question?")]).calls == 1


def test_samples_depend_on_the_request_alone(file, tmp_path):
    samples = [chat("Where?", temperature=1.0, sample=number) for number in range(5)]
    answers = start(file, tmp_path, store="a").complete(samples)
    assert len({answer.text for answer in answers}) > 1
    again = start(file, tmp_path, store="b", slots=1).complete(samples[::-1])
    assert [answer.text for answer in again[::-1]] == [answer.text for answer in answers]


def test_the_first_answer_is_streamed_and_ends_at_a_stop_string(file, tmp_path):
    model = start(file, tmp_path)
    texts: list[str] = []
    (whole,) = model.complete([chat("Where?")])
    stop = whole.text[3:5]
    with streaming(texts.append):
        (cut,) = model.complete([chat("Where?", stop=(stop,))])
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish == "stop"
    assert texts[-1] == cut.text
    assert all(cut.text.startswith(text) for text in texts)


def test_a_schema_keeps_the_answer_to_its_choices(file, tmp_path):
    answers = {"answer": {"type": "string", "enum": ["more", "less"]}}
    schema = {
        "type": "object",
        "properties": answers,
        "required": ["answer"],
        "additionalProperties": False,
    }
    (answer,) = start(file, tmp_path).complete(
        [chat("Which?", max_tokens=60, schema=json.dumps(schema))]
    )
    assert json.loads(answer.text)["answer"] in ("more", "less")


def test_a_completion_has_the_log_probabilities_of_its_tokens(file, tmp_path):
    request = chat("Where would the boats land?", logprobs=True)
    (completion,) = start(file, tmp_path).complete([request])
    settings = HF.Settings(model=str(file), precision="float32", store="other")
    (other,) = HF(settings, root=tmp_path).complete([request])
    # Its activations are quantised
    assert completion.logprobs[0][1] == pytest.approx(other.logprobs[0][1], abs=0.2)
    assert completion.logprobs[-1][0] == len(completion.text)


def test_a_prompt_longer_than_the_window_fails_alone(file, tmp_path):
    model = start(file, tmp_path)
    assert model.window == 512
    long, short = model.complete([chat("Wick " * 2000), chat("Where?")])
    assert "does not fit into the model's window of 512" in long.error
    assert short.text
    assert not short.error
    with pytest.raises(IfqaError, match=r"window is 600, but .* has only 512 positions"):
        start(file, tmp_path, window=600)


def test_other_files_are_refused_in_one_line(tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(50))
    with pytest.raises(
        IfqaError, match=r"bad\.gguf: llama\.cpp cannot load it; wanted a GGUF file"
    ):
        start(tmp_path / "bad.gguf", tmp_path)
    with pytest.raises(IfqaError, match="bert-base has no GGUF file; wanted one"):
        start("bert-base", tmp_path)


def test_its_server_answers_to_its_own_key_only_and_needs_no_proxy(file, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    model = start(file, tmp_path)
    body = urllib.request.Request(
        f"{model._server.listening_address}/completion",
        b'{"prompt": "x"}',
        {"Content-Type": "application/json"},
    )
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(body)
    refused.value.close()
