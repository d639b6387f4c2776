"""The cards of the weights agree with the manifests, the ledger and the docs."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from huggingface_hub import DatasetCard, ModelCard, ModelCardData

from ifqa.errors import ConfigError, FormatError
from ifqa.models.cards import (
    CARDS,
    LICENCE,
    SAMPLE,
    SOURCES,
    WEIGHTS,
    WeightsFacts,
    join_card,
    make_head,
    model_names,
    read_facts,
    split_card,
    write_notice,
)
from ifqa.models.ledger import list_exposures
from ifqa.reading.span.reader import Extractive
from ifqa.storage.files import read_json

ROOT = Path(__file__).parents[2]
GENERATED = re.compile(r"<!-- written by docs/write\.py: .*?<!-- until here -->", re.DOTALL)
IFQA_FULL = {"family": "ifqa/full", "sources": {"train.json": ""}, "questions": 1}


def read_card(name):
    return (CARDS / f"{name}.md").read_text(encoding="utf-8")


def manifests(name):
    """The manifest of weights, and those of the trainings before it."""
    (file,) = [
        path
        for path in (WEIGHTS / name / "manifest.json", WEIGHTS / f"{name}.json")
        if path.exists()
    ]
    manifest = read_json(file)
    while manifest:
        yield manifest
        manifest = (manifest.get("start") or {}).get("trained")


def test_all_weights_have_a_card():
    assert model_names() == sorted(
        path.stem if path.is_file() else path.name for path in WEIGHTS.iterdir()
    )


@pytest.mark.parametrize("name", model_names())
def test_the_head_is_one_of_the_model_hub(name):
    data = ModelCard(read_card(name)).data
    assert isinstance(data, ModelCardData)
    assert (data.license, data.model_name, data.language) == (LICENCE.lower(), name, "en")
    metrics = {result.metric_type for result in data.eval_results or ()}
    assert metrics in ({"exact_match", "f1"}, {"recall"})


def test_the_head_of_the_sample_is_one_of_the_model_hub():
    data = DatasetCard(read_card(SAMPLE)).data
    files = [file["path"] for config in data["configs"] for file in config["data_files"]]
    assert files == ["train.json", "dev.json", "hard.json", "causal.json"]


@pytest.mark.parametrize("name", model_names())
def test_the_head_has_the_base_model_of_the_manifest(name):
    manifest = next(manifests(name))
    entry = manifest.get("encoder") or manifest.get("base")
    base = split_card(read_card(name), name)[0].get("base_model", "")
    assert bool(base) == bool(entry)
    if entry:
        assert entry["name"].lower() in base.lower()


@pytest.mark.parametrize("name", model_names())
def test_the_head_has_all_data_of_the_manifest(name):
    sources = {
        row.partition(",")[0] for manifest in manifests(name) for row in manifest.get("rows", ())
    }
    benchmarks = {manifest["family"].partition("/")[0] for manifest in manifests(name)} - {""}
    head = split_card(read_card(name), name)[0]
    assert set(head["datasets"]) == {SOURCES[key].tag for key in sources | benchmarks}


@pytest.mark.parametrize("name", ["extractive", "extractive-large"])
def test_the_licences_are_those_that_the_manifest_counts(name):
    for manifest in manifests(name):
        counts: dict[str, int] = {}
        for row, count in manifest.get("rows", {}).items():
            licence = SOURCES[row.partition(",")[0]].licence
            counts[licence] = counts.get(licence, 0) + count
        assert counts == manifest.get("licences", {})


def test_the_licences_are_those_that_the_manifest_names():
    name = "qwen2.5-coder-0.5b-ifqa"
    facts = read_facts(name)
    licences = {source.title: source.licence for source in facts.sources}
    assert facts.base
    assert facts.manifest["licences"] == {"base": facts.base.licence, **licences}


def test_the_licence_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == LICENCE


@pytest.mark.parametrize("name", model_names())
def test_the_card_has_what_the_ledger_says(name):
    exposures = list_exposures([name, f"ifqa-{name}"])
    assert exposures
    for exposure in exposures:
        assert f"- `{exposure.benchmark}`: {exposure.questions}" in read_card(name)


@pytest.mark.parametrize("name", model_names())
def test_the_card_has_the_uses_the_limits_the_figures(name):
    headings = re.findall("^## (.+)$", read_card(name), re.MULTILINE)
    assert headings[:3] == ["Intended use", "Figures", "Limits"]


@pytest.mark.parametrize("name", ["extractive", "extractive-large"])
def test_the_figures_are_of_the_weights_that_ship(name):
    lines = (ROOT / "experiments/RESULTS.jsonl").read_text(encoding="utf-8").splitlines()
    records = {record["experiment"]: record for record in map(json.loads, lines)}
    shown = re.findall(r"write\.py: EM F1 of (.+) -->", read_card(name))[0].split()
    for experiment in shown:
        record = records[experiment]
        skim = record["tables"]["reader"].get("skim")
        settings = Extractive.Settings(weights="" if name == "extractive" else name, skim=skim)
        measured = record["made"]["inputs"]["the reader's weights"]
        assert measured == Extractive.fingerprint(settings, Path())


@pytest.mark.parametrize("name", model_names())
def test_a_figure_that_was_written_by_hand_stands_in_the_docs(name):
    docs = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "docs").glob("*.md")
        if path.name != "models.md"
    )
    _, body = split_card(read_card(name), name)
    figures = re.findall(r"(?<![\w.-])\d+\.\d(?![\w.-])", GENERATED.sub("", body))
    assert [figure for figure in figures if figure not in docs] == []


def test_a_card_is_the_same_after_a_reading():
    text = read_card("ranker")
    assert join_card(*split_card(text, "ranker.md")) == text


@pytest.mark.parametrize("text", ["# no head\n", "---\n- [\n---\n", "text\n---\na: 1\n---\n"])
def test_a_card_without_a_head_is_refused(text):
    with pytest.raises(FormatError, match=r"mine\.md: "):
        split_card(text, "mine.md")


def test_an_unknown_name_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'ranker'"):
        read_facts("rankr")


def test_data_without_a_known_licence_is_refused():
    manifest = {
        "family": "",
        "sources": {"mine.jsonl": ""},
        "rows": {"mine": 3},
        "settings": {"seed": 0},
    }
    with pytest.raises(FormatError, match="known licence"):
        assert WeightsFacts("mine", (), manifest).phases


def test_a_base_model_without_a_known_licence_is_refused():
    with pytest.raises(FormatError, match=r"bundled/models\.toml"):
        assert WeightsFacts("mine", (), {"base": {"name": "theirs", "sha256": ""}}).base


def test_the_phases_are_in_the_order_of_the_training():
    first = {**IFQA_FULL, "settings": {"seed": 1}, "start": None}
    facts = WeightsFacts(
        "mine", (), {**IFQA_FULL, "settings": {"seed": 2}, "start": {"trained": first}}
    )
    assert [phase.settings for phase in facts.phases] == [{"seed": 1}, {"seed": 2}]


def test_the_phase_of_a_taught_reader_names_its_teacher():
    teacher = {"share": 0.9, "trained": {"encoder": {"name": "someone/larger"}}}
    facts = WeightsFacts("mine", (), {**IFQA_FULL, "settings": {"seed": 1}, "teacher": teacher})
    (phase,) = facts.phases
    assert phase.settings == {"seed": 1, "teacher": "larger", "teacher_share": 0.9}


def test_the_head_of_weights_without_a_base_model_has_none():
    head = make_head(WeightsFacts("mine", (), {**IFQA_FULL, "settings": {"seed": 0}}))
    assert yaml.safe_dump(head) == "datasets:\n- ifqa\nlicense: apache-2.0\n"


def test_the_notice_names_a_base_model_that_others_changed():
    notice = write_notice(read_facts("fid"))
    assert "google/flan-t5-small, changed by others in the package traceforge-title-model" in notice
