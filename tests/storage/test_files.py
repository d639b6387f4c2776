import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.storage import files
from ifqa.storage.chunks import keep_whole_lines
from ifqa.storage.files import read_jsonl, write_jsonl


@settings(max_examples=20)
@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_as_json_lines_can_be_read(tmp_path_factory, record):
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    write_jsonl(path, [record, {"name": "caf\udce9"}])
    assert [one for _, one in read_jsonl(path)] == [record, {"name": "caf\udce9"}]


def test_what_could_not_be_read_back_is_not_published(tmp_path):
    with pytest.raises(
        IfqaError, match=r'record \{"id": "7", "answer": "xxx.* has 16,777,242 bytes .* at most 16,777,216'
    ):
        write_jsonl(tmp_path / "a.jsonl", [{"id": "7", "answer": "x" * files.LONGEST_LINE}])
    assert not (tmp_path / "a.jsonl").exists()


def test_a_json_lines_error_names_file_and_line(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n\n{"a": \n')
    with pytest.raises(IfqaError, match=r"x\.jsonl:3: not JSON"):
        list(files.read_jsonl(path))
    path.write_text("[1]\n")
    with pytest.raises(IfqaError, match=r"x\.jsonl:1: wanted a JSON object, found list"):
        list(files.read_jsonl(path))


@pytest.mark.parametrize(("suffix", "compress"), [(".bz2", bz2.compress), (".xz", lzma.compress)])
def test_compressed_lines_are_read_and_a_truncated_file_is_named(tmp_path, suffix, compress):
    data = compress(b"".join(b"line %d\n" % n for n in range(1000)))
    path = tmp_path / f"lines.txt{suffix}"
    path.write_bytes(data)
    assert [line for _, line in files.read_lines(path)][-1] == "line 999"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(IfqaError, match="compressed data ends or breaks"):
        list(files.read_lines(path))


def test_lines_that_are_not_utf8_are_named(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"fine\n\xff\xfe\n")
    with pytest.raises(IfqaError, match=r"x\.txt:2: not UTF-8"):
        list(files.read_lines(path))


@pytest.mark.parametrize("compress", [bz2.compress, gzip.compress, lzma.compress])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, compress):
    path = tmp_path / "x.jsonl"
    path.write_bytes(compress(b'{"a": 1}\n') + compress(b" " * (1 << 20)) * 2048)
    code = (
        "import resource, sys, pathlib; from ifqa.storage.files import read_jsonl\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "for number, record in read_jsonl(pathlib.Path(sys.argv[1])): print(number, record)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert done.stdout == "1 {'a': 1}\n"
    assert done.stderr.endswith("x.jsonl:2: a line of more than 16,777,216 bytes; wanted shorter lines\n")


def test_the_dearest_line_of_json_takes_forty_times_its_length(tmp_path):
    line = b'{"a":[' + b"{}," * (files.LONGEST_LINE // 12) + b"0]}\n"  # a quarter of what a line may have
    (tmp_path / "x.jsonl").write_bytes(line)
    code = (
        "import resource, sys, pathlib; from ifqa.storage.files import read_jsonl\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (5 << 25, 5 << 25))\n"
        "[(number, record)] = read_jsonl(pathlib.Path(sys.argv[1])); print(len(record['a']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "x.jsonl"], capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{line.count(b'{}') + 1}\n", done.stderr


def test_a_line_may_be_as_long_as_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 9)
    path = tmp_path / "x.txt"
    path.write_bytes(b"12345678\n123456789\n")
    lines = files.read_lines(path)
    assert next(lines) == (1, "12345678")
    with pytest.raises(IfqaError, match=r"x\.txt:2: a line of more than 9 bytes"):
        next(lines)


def test_fields_are_checked_by_name():
    with pytest.raises(IfqaError, match="here: key 'text' is missing; found 'id'"):
        files.text_field({"id": 1}, "text", "here")
    with pytest.raises(IfqaError, match="here: 'text' must be str, found int"):
        files.text_field({"text": 1}, "text", "here")
    with pytest.raises(IfqaError, match="here: 'text' is empty"):
        files.text_field({"text": " "}, "text", "here")
    with pytest.raises(IfqaError, match="here: 'answers' must be str, found int"):
        files.texts_field({"answers": ["5", 5]}, "answers", "here")


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path):
    path = tmp_path / "x.jsonl"
    files.write_jsonl(path, [{"a": 1}])

    def records():
        yield {"a": 2}
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        files.write_jsonl(path, records())
    assert path.read_text() == '{"a": 1}\n'


@given(
    st.lists(
        st.dictionaries(st.text(max_size=2), st.integers(), max_size=2).map(lambda one: json.dumps(one).encode()),
        max_size=9,
    ),
    st.binary(max_size=5),
)
def test_a_torn_file_is_cut_to_whole_lines(tmp_path_factory, lines, torn):
    path = tmp_path_factory.mktemp("torn") / "x.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines) + torn.replace(b"\n", b""))
    assert keep_whole_lines(path) == len(lines)
    assert path.read_bytes() == b"".join(line + b"\n" for line in lines)


@pytest.mark.parametrize("line", [b"\0\0\0\0\n", b"[1]\n", b'{"a": 1\n', b"\n", b"\xff\n", b'{"a": 3}\n'])
def test_a_file_is_cut_before_the_first_bad_line(tmp_path, line):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 0}\n{"a": 1}\n' + line + b'{"a": 3}\n')
    assert keep_whole_lines(path, lambda number, record: record["a"] == number) == 2
    assert path.read_bytes() == b'{"a": 0}\n{"a": 1}\n'


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_at_the_temporary_name_is_not_followed(tmp_path, exists):
    victim = tmp_path / "victim"
    if exists:
        victim.write_text("mine")
    (tmp_path / ".x.json.tmp").symlink_to(victim)
    files.write_json(tmp_path / "x.json", 1)
    assert (tmp_path / "x.json").read_text() == "1\n"
    assert not (tmp_path / "x.json").is_symlink()
    assert victim.exists() == exists
    assert not exists or victim.read_text() == "mine"


def test_a_pipe_in_the_place_of_the_temporary_file_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / ".x.json.tmp")
    files.write_json(tmp_path / "x.json", 1)
    assert (tmp_path / "x.json").read_text() == "1\n"


@pytest.mark.parametrize("text", ['{"idx": 1, "idx": 2}', '{"a": {"idx": 1, "b": 2, "idx": 1}}'])
def test_a_key_that_is_there_twice_is_refused(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(IfqaError, match=r"x\.json: not JSON .*the key 'idx' is there twice"):
        files.read_json(path)
    with pytest.raises(IfqaError, match=r"x\.json:1: not JSON .*the key 'idx' is there twice"):
        list(files.read_jsonl(path))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
def test_json_is_read_in_any_of_its_encodings(tmp_path, encoding):
    path = tmp_path / "x.json"
    path.write_text('{"a": "\u017c"}', encoding=encoding)
    assert files.read_json(path) == {"a": "\u017c"}


def test_toml_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text('a = "\u017c"\r\n', encoding="utf-8-sig")
    assert files.read_toml(path) == {"a": "\u017c"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
def test_toml_in_another_encoding_is_refused_with_the_mend(tmp_path, encoding):
    path = tmp_path / "x.toml"
    path.write_text('a = "\xe4"\n', encoding=encoding)
    with pytest.raises(IfqaError, match=r"x\.toml: not (UTF-8|TOML).*save the file as UTF-8"):
        files.read_toml(path)


@pytest.mark.parametrize("digest", [files.sha256, files.cached_sha256])
def test_devices_pipes_and_folders_have_no_fingerprint(tmp_path, digest):
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with pytest.raises(IfqaError, match="is not a regular file; wanted a file"):
            digest(path)
