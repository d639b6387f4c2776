"""Loading plugins by name: the role they get, the hash of their code, and what is refused."""

import hashlib
import importlib
import inspect
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from opened_sources import open_section
from pydantic import TypeAdapter

from ifqa import plugins
from ifqa.config.experiment import parse_experiment
from ifqa.errors import IfqaError
from ifqa.report.console import list_json
from ifqa.settings import as_section, join_paths


@pytest.mark.parametrize("kind", ["benchmark", "retriever", "reader"])
def test_every_listed_plugin_is_there(kind):
    for name in plugins.plugin_names(kind):
        assert plugins.load_plugin(kind, name).__doc__


def test_every_listed_measure_is_there_under_its_name():
    for name in plugins.plugin_names("measure"):
        assert plugins.load_measure(name).name == name


def test_a_plugin_from_the_working_directory_is_named_by_module_and_class(here):
    (here / "my_reader_of_tests.py").write_text(
        "class Silent:\n    'Says nothing.'\n    def answer(self, questions, passages): return []\n"
    )
    assert plugins.load_plugin("reader", "my_reader_of_tests:Silent").__name__ == "Silent"
    for name, complaint in {
        "my_reader_of_tests:Loud": "has no 'Loud'",
        "nowhere_at_all:Loud": "no module named 'nowhere_at_all'",
        "fud": "unknown reader 'fud'; did you mean",
        5: "wanted a name, or my_module:Class",
    }.items():
        with pytest.raises(IfqaError, match=complaint):
            plugins.load_plugin("reader", name)  # type: ignore[arg-type]


def test_a_plugin_that_lacks_an_extra_says_which(here):
    (here / "needs_ray_of_tests.py").write_text("raise ModuleNotFoundError('no ray', name='ray')\n")
    with pytest.raises(IfqaError, match=r"needs ray; install it with: pip install 'ifqa\[ray\]'"):
        plugins.load_plugin("reader", "needs_ray_of_tests:Any")


OUTSIDE = """
class Plain:
    'Answers nothing.'
    def __init__(self, said: str = "no"): self.said = said
    def answer(self, questions, passages): return [self.said for _ in questions]
class Whole(Plain):
    'Knows how far it is.'
    chunk = 2
    def answer(self, questions, passages, advance):
        advance(0.5)
        return []
class Finds:
    'Finds nothing, in an index.'
    def search(self, questions, k): return [[] for _ in questions]
    @classmethod
    def build(cls, passages, folder, *, most: int = 3): pass
not_a_class = Plain()
"""


@pytest.fixture
def outside(module):
    return module("outside_of_plugins", OUTSIDE)


def test_a_class_from_outside_gets_the_rest_of_its_role_and_stays_itself(outside):
    plain = plugins.load_plugin("reader", f"{outside}:Plain")
    heard: list[float] = []
    settings = plain.Settings(said="yes")
    answered = plain(settings).answer(["one", "two"], [[], []], advance=heard.append)
    assert answered == ["yes", "yes"]
    assert (heard, plain.chunk) == ([2], 32)
    assert plain.training_family(settings, Path()) == plain.fingerprint(settings, Path()) == ""
    assert (plain.__module__, plain.__qualname__, plain.__doc__) == (
        outside,
        "Plain",
        "Answers nothing.",
    )
    assert as_section(plain.Settings()) == {"said": "no"}
    assert plugins.load_plugin("reader", f"{outside}:Plain") is plain
    kind = plugins.load_plugin("reader", f"{outside}:Whole")
    whole = kind(kind.Settings())
    heard = []
    assert (whole.answer([], [], advance=heard.append), whole.chunk, heard) == ([], 2, [0.5])


def test_a_retriever_with_build_has_an_index(outside):
    finds = plugins.Plugins().indexed_retriever(f"{outside}:Finds")
    assert finds.forecast(10, finds.BuildSettings()) is None
    with pytest.raises(IfqaError, match="retriever 'gold' has no index to build"):
        plugins.Plugins().indexed_retriever("gold")


def test_a_class_without_the_method_of_its_role_is_refused(outside):
    with pytest.raises(IfqaError, match="wanted a class with a method 'search', found none"):
        plugins.load_plugin("retriever", f"{outside}:Plain")
    with pytest.raises(IfqaError, match="wanted a class, found Plain"):
        plugins.load_plugin("reader", f"{outside}:not_a_class")


MEASURES = """
from ifqa.protocols import Measure
SHORT = Measure("short", lambda question, prediction: float(len(prediction.answer) < 9))
LIMIT = 9
class Short:
    pass
"""


def test_a_measure_from_the_working_directory_is_named_by_module_and_object(here):
    (here / "measures_of_tests.py").write_text(MEASURES)
    assert plugins.load_measure("measures_of_tests:SHORT").name == "short"
    for name, complaint in {
        "EMM": "unknown measure 'EMM'; did you mean 'EM'",
        "measures_of_tests:LIMIT": "wanted a Measure, RankingMeasure, SetMeasure or ColumnMeasure, found 9",
        "measures_of_tests:Short": "found <class .*Short'>",
        "measures_of_tests:LONG": "has no 'LONG'",
        "measures_of_tests:": "wanted a name, or my_module:MEASURE",
    }.items():
        with pytest.raises(IfqaError, match=complaint):
            plugins.load_measure(name)


@pytest.fixture
def module(importable):
    """A function that writes a user's module into the working directory and returns its name."""

    def write(name, text):
        (importable / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return name

    return write


def test_an_edited_base_class_changes_the_code_of_a_plugin(module):
    module("base_of_tests", "class Base:\n    def answer(self, questions, passages): return []\n")
    derived = module("derived_of_tests", "from base_of_tests import Base\nclass Mine(Base): pass\n")
    before = plugins.code_fingerprint(plugins.load_plugin("reader", f"{derived}:Mine"))
    text = (
        "import abc\nclass Mine(abc.ABC):\n    def answer(self, questions, passages): return []\n"
    )
    alone = plugins.load_plugin("reader", f"{module('alone_of_tests', text)}:Mine")
    assert plugins.code_fingerprint(alone) == hashlib.sha256(text.encode()).hexdigest()
    with Path("base_of_tests.py").open("a") as file:
        file.write("# edited\n")
    assert plugins.code_fingerprint(plugins.load_plugin("reader", f"{derived}:Mine")) != before


@pytest.mark.parametrize(
    ("kind", "method", "arguments", "needed"),
    [
        ("reader", "answer(self, questions, passages)", "corpus", "corpus"),
        ("reader", "answer(self, questions, passages)", "size: int, index", "index"),
        ("retriever", "search(self, questions, k)", "index", "index"),
        ("benchmark", "questions(self, split)", "root, size: int", "size"),
        ("llm", "complete(self, requests)", "passages", "passages"),
    ],
)
def test_a_constructor_with_an_argument_that_is_not_injected_is_refused(
    module, kind, method, arguments, needed
):
    text = f"class Mine:\n    def __init__(self, {arguments}): pass\n    def {method}: return []\n"
    name = f"{module('needs_of_tests', text)}:Mine"
    message = f"^{kind} '{name}': its constructor needs '{needed}', which a {kind} does not get"
    with pytest.raises(IfqaError, match=message):
        plugins.load_plugin(kind, name)


def test_an_imported_file_is_logged_once(module, capsys):
    name = module(
        "said_of_tests", "class Mine:\n    def answer(self, questions, passages): return []\n"
    )
    for _ in range(2):
        plugins.load_plugin("reader", f"{name}:Mine")
    plugins.load_plugin("reader", "predictions")
    assert (
        capsys.readouterr().err
        == f"reader said_of_tests:Mine: imported {Path.cwd() / 'said_of_tests.py'}\n"
    )


def test_a_path_below_the_root_is_joined_and_a_default_name_is_not(tmp_path):
    (tmp_path / "ifqa").mkdir()
    (tmp_path / "ranker.json").touch()
    settings = plugins.load_plugin("retriever", "ranker").Settings
    assert join_paths(settings(model="ifqa"), tmp_path).model == "ifqa"
    assert join_paths(settings(model="ranker.json"), tmp_path).model == str(
        tmp_path / "ranker.json"
    )


SOURCE = """
from pathlib import Path
import ifqa
class Feed:
    'Three notes.'
    def __init__(self, path: str, title: str = ""):
        self.path, self.title = path, title
    def passages(self):
        for number, line in enumerate(Path(self.path).read_text().splitlines()):
            yield ifqa.Passage(f"note-{number}", self.title, line.strip())
"""


def test_a_source_from_outside_is_cut_into_units(module):
    Path("notes.txt").write_text("one\ntwo\nthree\n")
    name = module("source_of_tests", SOURCE)
    section = {"format": f"{name}:Feed", "path": "notes.txt", "title": "Notes"}
    [unit] = open_section(section).work_units()
    assert unit.make_shard().lines.splitlines()[1] == (
        b'{"id": "note-1", "title": "Notes", "contents": "two"}'
    )


def test_the_identity_of_a_source_from_outside_has_its_settings(module):
    Path("notes.txt").write_text("one\n")
    name = module("source_of_tests", SOURCE)
    identities = [
        open_section({"format": f"{name}:Feed", "path": "notes.txt", "title": title}).identity({})
        for title in ("Notes", "Other notes")
    ]
    assert identities[0] != identities[1]


def test_a_source_from_outside_that_yields_something_else_is_refused(module):
    name = module("source_of_tests", "class Feed:\n    def passages(self): return ['text']\n")
    with pytest.raises(IfqaError, match=r"source 'source_of_tests:Feed' gave 'text'; wanted an"):
        list(open_section({"format": f"{name}:Feed"}).work_units())


@pytest.fixture
def registered(monkeypatch, module):
    """A reader that an installed package registers under the name `last-word`."""
    text = (
        "class Last:\n    'Says nothing.'\n    def answer(self, questions, passages): return []\n"
    )
    name = module("registered_of_tests", text)
    entry = EntryPoint("last-word", f"{name}:Last", "ifqa.reader")
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: [entry] if group == entry.group else []
    )


@pytest.mark.usefixtures("registered")
def test_a_plugin_that_a_package_registers_is_loaded_by_its_name():
    assert plugins.load_plugin("reader", "last-word").__name__ == "Last"


@pytest.mark.usefixtures("registered")
def test_a_registered_plugin_is_among_the_known_names():
    with pytest.raises(IfqaError, match="unknown reader 'lastword'; did you mean 'last-word'"):
        plugins.load_plugin("reader", "lastword")


@pytest.mark.usefixtures("registered")
def test_a_registered_plugin_is_listed_without_an_import():
    sys.modules.pop("registered_of_tests", None)
    listed: Any = list_json()
    assert "last-word" in listed["readers"]
    assert "registered_of_tests" not in sys.modules


@pytest.mark.parametrize("kind", ["source", "retriever", "reader", "llm", "trainer"])
def test_every_setting_of_a_listed_plugin_is_described(kind):
    for name in plugins.plugin_names(kind):
        plugin = plugins.load_plugin(kind, name)
        models = [plugin.Settings, getattr(plugin, "BuildSettings", plugin.Settings)]
        for model in models:
            fields = model.model_fields.items()
            assert [f"{name} {setting}" for setting, field in fields if not field.description] == []


@pytest.mark.parametrize("kind", ["source", "retriever", "reader", "llm"])
def test_a_listed_plugin_takes_the_resources_that_it_declares(kind):
    for name in plugins.plugin_names(kind):
        plugin = plugins.load_plugin(kind, name)
        parameters = inspect.signature(plugin).parameters.values()
        by_keyword = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
        assert by_keyword == set(plugin.takes), name


@pytest.mark.parametrize("kind", ["source", "retriever", "reader", "llm", "trainer"])
def test_the_defaults_of_a_listed_plugin_are_valid(kind):
    for name in plugins.plugin_names(kind):
        model = plugins.load_plugin(kind, name).Settings
        for setting, field in model.model_fields.items():
            if not field.is_required():
                checked = TypeAdapter(field.rebuild_annotation(), config={"strict": True})
                value = checked.validate_python(field.default)
                assert type(value) is type(field.default), f"{name} {setting}"


def parse_retriever(name, **settings):
    sections = {
        "benchmark": "sample",
        "split": "dev",
        "corpus": "sample",
        "retriever": {"name": name, **settings},
    }
    return parse_experiment("x", sections, "x.toml").retriever


def test_a_setting_with_the_name_of_a_key_of_its_section_is_refused(module):
    text = (
        "class Mine:\n    def __init__(self, k: int = 60): pass\n"
        "    def search(self, questions, k): return []\n"
    )
    name = module("clash_of_tests", text)
    with pytest.raises(IfqaError, match="its setting 'k' has the name of a key of its section"):
        parse_retriever(f"{name}:Mine")


def test_a_classmethod_gets_the_settings_that_it_names(module):
    text = (
        "class Mine:\n    def __init__(self, file: str = 'a', other: int = 1): pass\n"
        "    def search(self, questions, k): return []\n"
        "    @classmethod\n    def fingerprint(cls, file): return file\n"
    )
    name = module("named_of_tests", text)
    assert parse_retriever(f"{name}:Mine", file="b").identity()["files"] == "b"


DECLARED = """
from ifqa.protocols import Retriever
class Mine(Retriever):
    takes = ("{resource}",)
    def __init__(self, settings, **resources): pass
"""


def test_a_declared_resource_that_the_role_does_not_get_is_refused(module):
    name = module("takes_of_tests", DECLARED.format(resource="budget"))
    with pytest.raises(IfqaError, match="it takes 'budget', which a retriever does not get"):
        parse_retriever(f"{name}:Mine")


def test_a_package_that_a_plugin_lacks_is_named_in_one_line(module):
    name = module("lacking_of_tests", "import no_such_package_of_tests\n")
    complaint = "imports no_such_package_of_tests, which is not installed; install it"
    with pytest.raises(IfqaError, match=complaint):
        plugins.load_plugin("reader", f"{name}:Any")
