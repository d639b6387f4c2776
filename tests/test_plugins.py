import pytest

from ifqa import plugins
from ifqa.errors import IfqaError


@pytest.mark.parametrize("kind", ["benchmark", "retriever", "reader"])
def test_every_listed_plug_is_there(kind):
    for name in plugins.names(kind):
        assert plugins.load(kind, name).__doc__


def test_every_listed_measure_is_there_under_its_name():
    for name in plugins.names("measure"):
        assert plugins.load_measure(name).name == name


def test_an_unknown_name_gets_the_nearest_known_one():
    with pytest.raises(IfqaError, match="unknown retriever 'bm52'; did you mean 'bm25'"):
        plugins.load("retriever", "bm52")


def test_a_plug_from_the_working_directory_is_named_by_module_and_class(tmp_path, monkeypatch):
    (tmp_path / "my_reader_of_tests.py").write_text("class Silent:\n    'Says nothing.'\n")
    monkeypatch.chdir(tmp_path)
    assert plugins.load("reader", "my_reader_of_tests:Silent").__name__ == "Silent"
    with pytest.raises(IfqaError, match="has no 'Loud'"):
        plugins.load("reader", "my_reader_of_tests:Loud")
    with pytest.raises(IfqaError, match="no module named 'nowhere_at_all'"):
        plugins.load("reader", "nowhere_at_all:Loud")


def test_a_plug_that_lacks_an_extra_says_which(tmp_path, monkeypatch):
    (tmp_path / "needs_ray_of_tests.py").write_text("raise ModuleNotFoundError('no ray', name='ray')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IfqaError, match=r"needs ray; install it with: pip install 'ifqa\[ray\]'"):
        plugins.load("reader", "needs_ray_of_tests:Any")


MEASURES = """
from ifqa.protocols import Measure

SHORT = Measure("short", lambda question, prediction: float(len(prediction.answer) < 9))
LIMIT = 9


class Short:
    pass
"""


def test_a_measure_from_the_working_directory_is_named_by_module_and_object(tmp_path, monkeypatch):
    (tmp_path / "measures_of_tests.py").write_text(MEASURES)
    monkeypatch.chdir(tmp_path)
    assert plugins.load_measure("measures_of_tests:SHORT").name == "short"
    for name, complaint in {
        "EMM": "unknown measure 'EMM'; did you mean 'EM'",
        "measures_of_tests:LIMIT": "wanted a Measure, RankingMeasure or SetMeasure, found an object of type int",
        "measures_of_tests:Short": "found the class Short",
        "measures_of_tests:LONG": "has no 'LONG'",
        "measures_of_tests:": "wanted a name, or my_module:MEASURE",
    }.items():
        with pytest.raises(IfqaError, match=complaint):
            plugins.load_measure(name)
