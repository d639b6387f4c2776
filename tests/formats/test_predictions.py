"""Answers in the forms that FlashRAG, lm-eval and inspect write; their fields are those of real
files, shortened.
"""

import gzip
import json
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.errors import IfqaError
from ifqa.formats.predictions import read_answers

QUESTION = "If so, who?"


def flashrag(answer="Ada", **changes):
    return {
        "id": "test_0",
        "question": QUESTION,
        "golden_answers": ["Ada"],
        "output": {
            "retrieval_result": [{"id": "7", "contents": "Title\nText"}],
            "prompt": "…",
            "raw_pred": f"{answer}.",
            "pred": answer,
            "metric_score": {"em": 1.0},
        },
    } | changes


def lm_eval(answer="Ada", **changes):
    return {
        "doc_id": 0,
        "doc": {"id": "test_0", "question": QUESTION, "answers": ["Ada"]},
        "target": "Ada",
        "arguments": {"gen_args_0": {"arg_0": "…", "arg_1": {"until": ["\n"]}}},
        "resps": [[f" {answer}"]],
        "filtered_resps": [f" {answer}"],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": 1.0,
    } | changes


def inspect(answer="Ada", **changes):
    return {
        "id": "test_0",
        "epoch": 1,
        "input": [{"role": "system", "content": "…"}, {"role": "user", "content": QUESTION}],
        "target": ["Ada"],
        "output": {"model": "m", "choices": [], "completion": answer},
        "scores": {"match": {"value": "C", "answer": answer}},
    } | changes


def write_archive(path, samples):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", "{}")
        for sample in samples:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("header.json", "{}")
    return path


def write(path, content):
    path.write_text(content)
    return path


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def log(*samples):
    return json.dumps({"version": 2, "eval": {}, "samples": samples}, indent=2)


def test_each_tool_gives_the_same_answer(tmp_path):
    files = {
        "FlashRAG": write(tmp_path / "intermediate_data.json", json.dumps([flashrag()], indent=4)),
        "lm-eval": write(tmp_path / "samples_nq_open_2026.jsonl", lines(lm_eval())),
        "inspect": write_archive(tmp_path / "a.eval", [inspect()]),
    }
    for tool, path in files.items():
        found, [answer] = read_answers(path)
        assert found == tool
        assert (answer.question_id, answer.question, answer.answer, answer.error) == (
            "test_0",
            QUESTION,
            "Ada",
            "",
        )


def test_a_log_of_inspect_is_also_read_as_json(tmp_path):
    pretty = write(tmp_path / "a.json", log(inspect()))
    short = write(tmp_path / "b.json", json.dumps(json.loads(pretty.read_text())))
    archive = write_archive(tmp_path / "a.eval", [inspect()])
    read = [[a.answer for a in read_answers(path)[1]] for path in (pretty, short, archive)]
    assert read == [["Ada"]] * 3


def test_files_may_be_compressed(tmp_path):
    path = tmp_path / "samples.jsonl.gz"
    path.write_bytes(gzip.compress(lines(lm_eval()).encode()))
    assert read_answers(path)[1][0].answer == "Ada"


def test_our_own_lines_keep_their_confidence(tmp_path):
    line = {"question_id": "q/1", "answer": "Ada", "confidence": 0.5}
    tool, [answer] = read_answers(write(tmp_path / "mine.jsonl", lines(line)))
    assert (tool, answer.question_id, answer.answer, answer.confidence) == ("", "q/1", "Ada", 0.5)


def test_the_answer_that_a_scorer_took_is_preferred_to_the_completion(tmp_path):
    taken = inspect("So: Ada", scores={"pattern": {"value": "C", "answer": "Ada"}})
    two = inspect("Bo", scores={"a": {"answer": "x"}, "b": {"answer": "y"}})
    for sample, expected in ((taken, "Ada"), (two, "Bo"), (inspect("Cy", scores=None), "Cy")):
        _, [answer] = read_answers(write(tmp_path / "a.json", log(sample)))
        assert answer.answer == expected


def test_a_sample_that_failed_in_inspect_has_an_error(tmp_path):
    sample = inspect("", error={"message": "no\nserver", "traceback": "…"}, scores=None)
    _, [answer] = read_answers(write(tmp_path / "a.json", log(sample)))
    assert (answer.answer, answer.error) == ("", "no server")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.json", json.dumps([flashrag(output={"prompt": "…"})]), "no 'pred' in 'output'"),
        ("a.json", json.dumps([flashrag(output={"pred": ["A"]})]), "'pred' must be str"),
        ("a.jsonl", lines(lm_eval(filtered_resps=[[-1.5, False]])), "not generated text"),
        ("a.jsonl", lines(lm_eval(filtered_resps=["a", "b"])), "2 different answers"),
        (
            "a.jsonl",
            lines(lm_eval(), lm_eval(filter="strict")),
            r"several filters \(none, strict\)",
        ),
        ("a.json", log(inspect(), inspect(epoch=2)), "several answers .* --epochs 1"),
        ("a.json", '{\n"results": {}\n}', "not a file of answers"),
        ("a.jsonl", "", "wanted answers, found none"),
        ("a.jsonl", lines({"question_id": "q"}), "not as ifqa writes it"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path, name, content, complaint):
    with refused(complaint):
        read_answers(write(tmp_path / name, content))


def test_an_archive_without_samples_is_refused(tmp_path):
    with refused("an archive without samples"):
        read_answers(write_archive(tmp_path / "a.eval", []))


def test_a_compression_that_python_lacks_is_named(tmp_path):
    path = write_archive(tmp_path / "a.eval", [inspect()])
    content = path.read_bytes()
    start = content.rindex(b"PK\x01\x02", 0, content.rindex(b"samples/"))
    path.write_bytes(content[: start + 10] + b"\x63" + content[start + 11 :])  # method 99
    with refused("pip install 'ifqa.inspect.', or convert the log: inspect log convert"):
        read_answers(path)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: (
    st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from("id doc resps filtered_resps output pred samples question_id answer".split()),
        inner,
        max_size=4,
    )
)))  # fmt: skip
def test_any_json_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "a.json"
    path.write_text(json.dumps(content))
    with suppress(IfqaError):
        read_answers(path)
