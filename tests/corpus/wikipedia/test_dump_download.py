"""Downloads of dumps and passages from a server like dumps.wikimedia.org, which may be faulty."""

import bz2
import hashlib
import json
import random
from pathlib import Path

import pytest
from file_server import serving
from opened_sources import open_section
from refusals import refused

from ifqa.cli.data import fetch_wiki
from ifqa.corpus.wikipedia import dump_download
from ifqa.errors import IfqaError
from ifqa.storage import download as storage_download
from ifqa.storage.download import RemoteFile

DATE = "20260801"
NAMES = [f"enwiki-{DATE}-pages-articles-multistream{n}.xml-p{n}p{n + 9}.bz2" for n in (1, 2, 10)]
JOB = "articlesmultistreamdump"


def publish(server, wiki="enwiki", date=DATE, names=NAMES, status="done"):
    """Publish a dump of random bytes, with an index file."""
    index = f"{wiki}-{date}-pages-articles-multistream-index.txt.bz2"
    contents = {name: bz2.compress(random.Random(name).randbytes(3000)) for name in [*names, index]}
    files = {}
    for name, content in contents.items():
        server.files[f"/{wiki}/{date}/{name}"] = content
        files[name] = {"size": len(content), "sha1": hashlib.sha1(content).hexdigest()}
    other = {"status": "done", "files": {f"{wiki}-{date}-stub.xml.gz": {}}}
    status = {"version": "0.8", "jobs": {JOB: {"status": status, "files": files}, "stubs": other}}
    server.files[f"/{wiki}/{date}/dumpstatus.json"] = json.dumps(status).encode()
    return contents


@pytest.fixture
def server(monkeypatch, here):
    """Its newest dump has not begun, the next is not finished, the third is DATE."""
    monkeypatch.setattr(storage_download, "_PAUSE", 0.0)
    with serving() as state:
        monkeypatch.setattr(dump_download, "WIKIMEDIA", state.url)
        dates = ["20260720", DATE, "20260820", "20260901"]
        links = "".join(f'<a href="{date}/">{date}/</a> 01-Aug-2026\n' for date in dates)
        state.files["/enwiki/"] = (
            f'<a href="../">../</a>{links}<a href="latest/">latest/</a>'.encode()
        )
        publish(
            state,
            date="20260820",
            names=[name.replace(DATE, "20260820") for name in NAMES],
            status="in-progress",
        )
        state.contents = publish(state)
        yield state


def test_the_newest_finished_dump_is_downloaded(server):
    fetch_wiki("enwiki")
    assert {path.name for path in Path("data/enwiki").iterdir()} == {*NAMES, "dump.json"}
    assert all((Path("data/enwiki") / name).read_bytes() == server.contents[name] for name in NAMES)
    assert {path.name for path in Path("data").iterdir()} <= {"enwiki", ".lock"}


@pytest.mark.usefixtures("server")
def test_a_download_says_what_was_checked(capsys):
    fetch_wiki("enwiki")
    summary, step = capsys.readouterr().out.splitlines()
    assert "dump of 20260801, 3 files," in summary
    assert summary.endswith("each file verified by its published SHA-1")
    assert step == "next: ifqa passages enwiki"


@pytest.mark.usefixtures("server")
def test_a_downloaded_dump_is_a_source():
    fetch_wiki("enwiki")
    source = {"format": "dump", "path": "data/enwiki/enwiki-*-pages-articles-multistream*.xml*.bz2"}
    assert [path.name for path in open_section(source).files()] == NAMES


def test_a_downloaded_dump_is_not_fetched_again(server, capsys):
    fetch_wiki("enwiki")
    server.asked.clear()
    fetch_wiki("enwiki")
    assert server.asked == []
    assert "there already" in capsys.readouterr().out


def test_an_interrupted_download_resumes_although_a_newer_dump_is_finished(server):
    server.statuses[f"/enwiki/{DATE}/{NAMES[2]}"] = 503
    with pytest.raises(
        IfqaError, match=rf"{NAMES[2]} .HTTP Error 503: .*run the same command again to resume"
    ):
        fetch_wiki("enwiki")
    assert not Path("data/enwiki").exists()
    publish(server, date="20260901", names=[name.replace(DATE, "20260901") for name in NAMES])
    server.statuses.clear()
    server.asked.clear()
    fetch_wiki("enwiki")
    assert f"/enwiki/{DATE}/{NAMES[2]}" in {path for path, _ in server.asked}
    assert not any("dumpstatus" in path or "20260901" in path for path, _ in server.asked)
    assert {path.name for path in Path("data/enwiki").iterdir()} == {*NAMES, "dump.json"}


def test_another_wiki_of_a_date_from_a_mirror(server, capsys):
    name = "dewiki-20260701-pages-articles-multistream.xml.bz2"
    publish(server, "mirror/dewiki", "20260701", [name])
    fetch_wiki("dewiki", date="20260701", url=f"{server.url}/mirror/")
    assert {path.name for path in Path("data/dewiki").iterdir()} == {name, "dump.json"}
    assert 'write indexes/dewiki.toml with path = "data/dewiki"' in capsys.readouterr().out
    assert [
        path.name for path in open_section({"format": "dump", "path": "data/dewiki"}).files()
    ] == [name]


FILE = f"/enwiki/{DATE}/{NAMES[1]}"
STATUS = f"/enwiki/{DATE}/dumpstatus.json"


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (
            FILE,
            lambda content: content[::-1],
            "SHA1 .*, not .* as published; it was removed, run the same command again to",
        ),
        (
            FILE,
            None,
            (
                r"\(HTTP Error 404: Not Found\); if the dump is gone, take a mirror: "
                r"--url, or remove data/.enwiki.part"
            ),
        ),
        (FILE, lambda content: content + b"x", "the server's file has .* bytes, the published one"),
        (
            STATUS,
            lambda content: content.replace(b'"done"', b'"waiting"'),
            "of 20260901, 20260820, 20260801, 20260720 are not",
        ),
        (
            "/enwiki/",
            lambda _: b"<html>moved</html>",
            "lists no dump; wanted links to folders such as 20260801/",
        ),
        (
            "/enwiki/",
            None,
            (
                "404: Not Found.; wanted a wiki's name .dewiki., and a --date that the server "
                "keeps, or take a mirror: --url"
            ),
        ),
    ],
)
def test_each_fault_of_a_server_is_a_one_line_error_without_a_dump(path, change, message, server):
    content = server.files.pop(path)
    if change:
        server.files[path] = change(content)
    with refused(message):
        fetch_wiki("enwiki")
    assert not Path("data/enwiki").exists()


@pytest.mark.usefixtures("server")
def test_a_date_that_the_server_does_not_keep_is_refused():
    with pytest.raises(
        IfqaError, match=r"404: .*wanted .* a --date that the server keeps, or take a mirror: --url"
    ):
        fetch_wiki("enwiki", date="20220501")


@pytest.mark.usefixtures("server")
def test_a_dump_that_is_not_finished_is_refused():
    with pytest.raises(
        IfqaError, match=r"the articles of 20260820 are not finished; take another --date"
    ):
        fetch_wiki("enwiki", date="20260820")


@pytest.mark.usefixtures("server")
def test_dumps_of_two_dates_are_never_mixed():
    fetch_wiki("enwiki")
    with pytest.raises(
        IfqaError, match=r"data/enwiki holds the dump of 20260801; remove it, or leave out --date"
    ):
        fetch_wiki("enwiki", date="20260720")


@pytest.mark.usefixtures("server")
def test_a_folder_of_other_files_is_refused():
    Path("data/dewiki").mkdir(parents=True)
    Path("data/dewiki/mine.xml").write_text("mine")
    with pytest.raises(
        IfqaError, match=r"data/dewiki exists without a dump.json that names its dump"
    ):
        fetch_wiki("dewiki")


@pytest.mark.usefixtures("server")
def test_a_damaged_file_of_a_downloaded_dump_is_refused():
    fetch_wiki("enwiki")
    (Path("data/enwiki") / NAMES[0]).write_bytes(b"cut")
    with pytest.raises(
        IfqaError, match=r"has 3 bytes, the published file .* remove it to fetch it again"
    ):
        fetch_wiki("enwiki")


SUM = {"size": 9, "sha1": "0" * 40}
LISTINGS = [
    {},
    {NAMES[0]: 3},
    {NAMES[0]: {"size": 9}},
    {NAMES[0]: SUM | {"sha1": "0"}},
    {NAMES[0] + "/../../x": SUM},
]
JOBS = [3, *({JOB: {"status": "done", "files": files}} for files in LISTINGS)]


@pytest.mark.parametrize(
    "status", ["<html>sorry</html>", *(json.dumps({"jobs": jobs}) for jobs in JOBS)]
)
def test_a_status_file_without_checksums_is_refused(status, server, tmp_path):
    server.files[STATUS] = status.encode()
    with pytest.raises(
        IfqaError, match=r"json: wanted the job '\w+' whose files each have a size and a SHA-1"
    ):
        fetch_wiki("enwiki", date=DATE)
    assert not (tmp_path / "data").exists()


PSGS = b"id\ttext\ttitle\n1\tAaron is a prophet\tAaron\n"


@pytest.fixture
def publish_psgs(server, monkeypatch):
    """A function that publishes DPR's passages, here and at a mirror, with a checksum."""

    def publish(checksum):
        path = "/dpr/psgs_w100.tsv.gz"
        file = RemoteFile(
            f"{server.url}{path}", Path("psgs_w100.tsv.gz"), len(PSGS), "sha256", checksum
        )
        server.files[path] = PSGS
        server.files["/mine/psgs_w100.tsv.gz"] = PSGS
        monkeypatch.setattr(dump_download, "_PSGS", file)

    return publish


def test_dprs_passages_with_another_checksum_are_removed(publish_psgs):
    publish_psgs("0" * 64)
    with pytest.raises(
        IfqaError, match=r"SHA256 .*, not 000000000000… as published; it was removed"
    ):
        fetch_wiki("psgs_w100")
    assert not Path("data/psgs_w100/psgs_w100.tsv.gz").exists()


def test_dprs_passages_are_fetched_from_a_mirror(server, publish_psgs):
    publish_psgs(hashlib.sha256(PSGS).hexdigest())
    fetch_wiki("psgs_w100", url=f"{server.url}/mine/")
    assert Path("data/psgs_w100/psgs_w100.tsv.gz").read_bytes() == PSGS
    assert server.asked[-1][0] == "/mine/psgs_w100.tsv.gz"


def test_dprs_passages_are_fetched_once(server, publish_psgs, capsys):
    publish_psgs("0" * 64)
    with pytest.raises(IfqaError, match="it was removed"):
        fetch_wiki("psgs_w100")
    publish_psgs(hashlib.sha256(PSGS).hexdigest())
    fetch_wiki("psgs_w100", url=f"{server.url}/mine/")
    fetch_wiki("psgs_w100")
    assert "there already" in capsys.readouterr().out
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("enwiki", {"date": "August"}, "--date August: wanted the date of a dump as YYYYMMDD"),
        (
            "enwiki",
            {"url": "file:///etc"},
            "--url file:///etc: wanted an address that begins with https://",
        ),
        (
            "enwiki",
            {"url": "http://127.0.0.1:9/"},
            "cannot fetch http://127.0.0.1:9/enwiki/ .*; try again later",
        ),
        ("psgs_w100", {"date": DATE}, "--date is for a wiki's dump"),
    ],
)
@pytest.mark.usefixtures("here")
def test_wrong_options_are_refused(name, option, message):
    with pytest.raises(IfqaError, match=message):
        fetch_wiki(name, **option)


@pytest.mark.parametrize(
    ("kind", "path", "hint"),
    [
        ("dump", "data/enwiki/*.bz2", "fetch it with: ifqa data enwiki$"),
        ("dump", "data/simplewiki", "fetch it with: ifqa data simplewiki$"),
        ("passages", "data/psgs_w100/psgs_w100.tsv.gz", "fetch it with: ifqa data psgs_w100$"),
        ("passages", "data/mine.jsonl", "put it there or name another in the corpus file"),
    ],
)
@pytest.mark.usefixtures("here")
def test_the_error_for_a_missing_source_names_the_command_that_fetches_it(kind, path, hint):
    with pytest.raises(IfqaError, match=hint):
        open_section({"format": kind, "path": path})
