"""Names of experiments: variants and what they vary, and names that cannot be used."""

from pathlib import Path

import pytest

from ifqa.config.experiment import load_experiment
from ifqa.config.names import bases, changed_keys
from ifqa.errors import IfqaError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("experiments").mkdir()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("x", []),
        ("x+k=5", ["x"]),
        ("x+k=5+retriever.k1=1.5", ["x+k=5", "x"]),
        ("x+reader=my_reader.Mine", ["x"]),
        ("x+reader.path=a_b~0123abcd", ["x"]),
        ("bm25+llm", []),
        ("bm25+llm+k=5", ["bm25+llm"]),
        ("c++", []),
    ],
)
def test_a_variant_is_an_experiment_and_settings(name, found):
    assert bases(name) == found


def test_an_experiment_with_a_file_of_its_own_is_no_variant():
    Path("experiments/x+k=5.toml").touch()
    assert bases("x+k=5") == []
    assert bases("x+k=5+limit=3") == ["x+k=5", "x"]


def test_a_variants_name_says_which_settings_it_changes():
    assert changed_keys("bm25+llm+k=5+reader.passages=3", "bm25+llm") == ["k", "reader.passages"]


@pytest.mark.parametrize("name", ["report.html", "RESULTS.md", "RESULTS.jsonl"])
def test_an_experiment_is_not_called_as_a_file_that_the_report_writes(name):
    Path(f"experiments/{name}.toml").write_text('benchmark = "sample"\nsplit = "dev"\n[retriever]\nname = "gold"\n')
    with pytest.raises(IfqaError, match="`ifqa report` writes a file of that name"):
        load_experiment(name)


@pytest.mark.parametrize("name", [5, None, ["sample"], b"sample"])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(IfqaError, match="wanted a name, as 'sample'"):
        load_experiment(name)
