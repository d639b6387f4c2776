"""From names to classes that have their whole role."""

import sys

import pytest

from ifqa import plugins
from ifqa.errors import IfqaError
from ifqa.settings import settings_of


@pytest.mark.parametrize("kind", ["benchmark", "retriever", "reader"])
def test_every_listed_plugin_is_there(kind):
    for name in plugins.names(kind):
        assert plugins.load(kind, name).__doc__


def test_every_listed_measure_is_there_under_its_name():
    for name in plugins.names("measure"):
        assert plugins.load_measure(name).name == name


def test_an_unknown_name_gets_the_nearest_known_one():
    with pytest.raises(IfqaError, match="unknown retriever 'bm52'; did you mean 'bm25'"):
        plugins.load("retriever", "bm52")


def test_a_plugin_from_the_working_directory_is_named_by_module_and_class(tmp_path, monkeypatch):
    (tmp_path / "my_reader_of_tests.py").write_text(
        "class Silent:\n    'Says nothing.'\n    def answer(self, questions, passages): return []\n"
    )
    monkeypatch.chdir(tmp_path)
    assert plugins.load("reader", "my_reader_of_tests:Silent").__name__ == "Silent"
    with pytest.raises(IfqaError, match="has no 'Loud'"):
        plugins.load("reader", "my_reader_of_tests:Loud")
    with pytest.raises(IfqaError, match="no module named 'nowhere_at_all'"):
        plugins.load("reader", "nowhere_at_all:Loud")


def test_a_plugin_that_lacks_an_extra_says_which(tmp_path, monkeypatch):
    (tmp_path / "needs_ray_of_tests.py").write_text("raise ModuleNotFoundError('no ray', name='ray')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IfqaError, match=r"needs ray; install it with: pip install 'ifqa\[ray\]'"):
        plugins.load("reader", "needs_ray_of_tests:Any")


OUTSIDE = """
class Plain:
    'Answers nothing.'
    def __init__(self, said: str = "no"):
        self.said = said
    def answer(self, questions, passages):
        return [self.said for _ in questions]


class Whole(Plain):
    'Knows its pace, and how far it is.'
    chunk = 2
    def pace(self):
        return 7.0
    def answer(self, questions, passages, advance):
        advance(0.5)
        return []


class Finds:
    'Finds nothing, in an index.'
    def search(self, questions, k):
        return [[] for _ in questions]
    @classmethod
    def build(cls, passages, folder, *, most: int = 3):
        pass


not_a_class = Plain()
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    (tmp_path / "outside_of_plugins.py").write_text(OUTSIDE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield "outside_of_plugins"
    sys.modules.pop("outside_of_plugins", None)


def test_a_class_from_outside_gets_the_rest_of_its_role_and_stays_itself(outside):
    plain = plugins.load("reader", f"{outside}:Plain")
    heard = []
    assert plain("yes").answer(["one", "two"], [[], []], advance=heard.append) == ["yes", "yes"]
    assert (heard, plain().chunk, plain().pace(), plain.trained(), plain.fingerprint(said="x")) == (
        [2],
        32,
        0.0,
        "",
        "",
    )
    assert (plain.__module__, plain.__qualname__, plain.__doc__) == (outside, "Plain", "Answers nothing.")
    assert settings_of(plain.__init__) == {"said": "no"}
    assert plugins.load("reader", f"{outside}:Plain") is plain


def test_what_a_class_from_outside_has_of_its_role_is_kept(outside):
    whole, heard = plugins.load("reader", f"{outside}:Whole")(), []
    assert (whole.answer([], [], advance=heard.append), whole.chunk, whole.pace(), heard) == ([], 2, 7.0, [0.5])


def test_a_retriever_that_builds_is_one_over_an_index(outside):
    assert plugins.load_indexed(f"{outside}:Finds").forecast(10) is None
    with pytest.raises(IfqaError, match="retriever 'gold' has no index to build"):
        plugins.load_indexed("gold")


def test_what_is_no_plugin_of_its_kind_is_refused_by_name(outside):
    with pytest.raises(IfqaError, match="wanted a class with the method 'search', found none"):
        plugins.load("retriever", f"{outside}:Plain")
    with pytest.raises(IfqaError, match="wanted a class, found Plain"):
        plugins.load("reader", f"{outside}:not_a_class")


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
