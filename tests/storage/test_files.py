import bz2
import gzip
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from ifqa.storage import files
from ifqa.storage.append_log import truncate_log
from ifqa.storage.files import read_jsonl, write_jsonl
from ifqa.storage.resources import find_resource, list_resources


@settings(max_examples=20)
@given(st.dictionaries(st.text(), st.text()))
def test_json_lines_are_read_as_written(tmp_path_factory, record):
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    write_jsonl(path, [record, {"name": "caf\udce9"}])
    assert [row for _, row in read_jsonl(path)] == [record, {"name": "caf\udce9"}]


def test_a_record_too_long_to_read_back_is_refused_before_the_old_file_is_replaced(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"a": 1}])
    with refused(r'record \{"id": "7", "answer": "xxx.* has 16,777,242 bytes .* most 16,777,216'):
        write_jsonl(tmp_path / "a.jsonl", [{"id": "7", "answer": "x" * files.LONGEST_LINE}])
    assert (tmp_path / "a.jsonl").read_text() == '{"a": 1}\n'


TRUNCATED = lzma.compress(b"".join(b'{"line": %d}\n' % n for n in range(1000)))[:-40]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"a": 1}\n\n{"a": \n', r"x\.jsonl:3: not JSON"),
        ("x.jsonl", b"[1]\n", r"x\.jsonl:1: wanted a JSON object, found list"),
        ("x.jsonl", b"{}\n\xff\xfe\n", r"x\.jsonl:2: not UTF-8"),
        ("x.jsonl.xz", TRUNCATED, "the compressed data is truncated or damaged"),
        ("x.jsonl.bz2", bz2.compress(b"{}\n")[:-9], "the compressed data is truncated or damaged"),
        (
            "x.jsonl",
            b'{"a": {"idx": 1, "b": 2, "idx": 1}}',
            r"x\.jsonl:1: not JSON .*the key 'idx' appears twice",
        ),
        ("x.json", b'{"idx": 1, "idx": 2}', r"x\.json: not JSON .*the key 'idx' appears twice"),
    ],
)
def test_a_json_error_names_its_place(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with refused(message):
        list(read_jsonl(tmp_path / name) if "jsonl" in name else files.read_json(tmp_path / name))


@pytest.mark.parametrize("compress", [bz2.compress, gzip.compress])
def test_an_endless_line_is_refused_before_it_fills_the_memory(tmp_path, compress):
    path = tmp_path / "x.jsonl"
    path.write_bytes(compress(b'{"a": 1}\n') + compress(b" " * (1 << 20)) * 2048)
    code = (
        "import resource, sys, pathlib; from ifqa.storage.files import read_jsonl\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "for number, record in read_jsonl(pathlib.Path(sys.argv[1])): print(number, record)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert process.stdout == "1 {'a': 1}\n"
    assert process.stderr.endswith(
        "x.jsonl:2: a line of more than 16,777,216 bytes; wanted shorter lines\n"
    )


def test_a_line_may_be_as_long_as_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 9)
    path = tmp_path / "x.txt"
    path.write_bytes(b"12345678\n123456789\n")
    lines = files.read_lines(path)
    assert next(lines) == (1, "12345678")
    with refused(r"x\.txt:2: a line of more than 9 bytes"):
        next(lines)


def test_fields_are_checked_by_name():
    for record, message in (
        ({"id": 1}, "key 'text' is missing; found 'id'"),
        ({"text": 1}, "'text' must be str, found int"),
        ({"text": " "}, "'text' is empty"),
    ):
        with refused(f"here: {message}"):
            files.text_field(record, "text", "here")
    with refused("here: 'answers' must be str, found int"):
        files.texts_field({"answers": ["5", 5]}, "answers", "here")


@pytest.mark.parametrize("line", [b"\0\0\0\0\n", b"[1]\n", b"\n", b"\xff\n", b'{"a": 3}\n'])
def test_a_log_is_truncated_at_the_first_bad_line(tmp_path, line):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 0}\n{"a": 1}\n' + line + b'{"a": 3}\n')
    assert truncate_log(path, lambda number, record: record["a"] == number) == 2
    assert path.read_bytes() == b'{"a": 0}\n{"a": 1}\n'


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_at_the_temporary_name_is_not_followed(tmp_path, exists):
    target = tmp_path / "target"
    if exists:
        target.write_text("mine")
    (tmp_path / ".x.json.tmp").symlink_to(target)
    os.mkfifo(tmp_path / ".y.json.tmp")  # a pipe does not hang
    for name in ("x.json", "y.json"):
        files.write_json(tmp_path / name, 1)
        assert (tmp_path / name).read_text() == "1\n"
    assert not (tmp_path / "x.json").is_symlink()
    assert target.exists() == exists
    assert not exists or target.read_text() == "mine"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
def test_json_is_read_in_its_encodings(tmp_path, encoding):
    path = tmp_path / "x.json"
    path.write_text('{"a": "\u017c"}', encoding=encoding)
    assert files.read_json(path) == {"a": "\u017c"}


def test_toml_is_read_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text('a = "\u017c"\r\n', encoding="utf-8-sig")
    assert files.read_toml(path) == {"a": "\u017c"}


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_toml_in_another_encoding_is_refused(tmp_path, encoding):
    path = tmp_path / "x.toml"
    path.write_text('a = "\xe4"\n', encoding=encoding)
    with refused(r"x\.toml: not (UTF-8|TOML).*save the file as UTF-8"):
        files.read_toml(path)


@pytest.mark.parametrize("digest", [files.sha256, files.cached_sha256])
def test_only_a_regular_file_has_a_fingerprint(tmp_path, digest):
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with refused("is not a regular file; wanted a file"):
            digest(path)


def test_a_local_resource_precedes_the_bundled_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_resource("experiments/sample.toml") is not None
    local = tmp_path / "experiments" / "sample.toml"
    local.parent.mkdir()
    local.write_text("")
    assert (
        find_resource("experiments/sample.toml")
        == list_resources("experiments", ".toml")["sample"]
        == local
    )
    assert find_resource("experiments/nothing.toml") is None
