"""Variants: the settings and the name that flags give an experiment, and that it loads again by
this name.
"""

import os
import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refused

from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.config.overrides import as_sections, override, write_resolved
from ifqa.errors import IfqaError
from ifqa.storage.resources import list_resources

pytestmark = pytest.mark.usefixtures("here")

OPEN: dict[str, Any] = {
    "benchmark": "sample",
    "split": "dev",
    "corpus": "sample",
    "about": "Open.",
    "questions": ["sample/dev/2", "sample/dev/7"],
    "retriever": {"name": "bm25", "k": 20, "k1": 2.0, "index": "mine", "query": "names"},
    "reader": {"name": "extractive", "passages": 7, "weights": "mine"},
}
CLOSED: dict[str, Any] = {
    "benchmark": "sample", "split": "dev", "reader": {"name": "llm", "prompt": "closed-book"},
    "llm": {"name": "openai", "model": "m", "window": 4000},
}  # fmt: skip


def base(tables=OPEN, **more):
    return parse_experiment("x", tables | more, "x.toml")


@pytest.mark.parametrize(
    ("tables", "changes", "name", "settings"),
    [
        (OPEN, {"k": 5}, "x+k=5", {"retriever": {"k": 5}}),
        (OPEN, {"limit": 3, "split": "dev", "reader.passages": 7}, "x+limit=3", {"limit": 3}),
        (OPEN, {"seed": 7}, "x+seed=7", {"seed": 7}),
        (OPEN, {"sample": 3}, "x+sample=3", {"sample": 3}),
        (
            OPEN | {"sample": 3},
            {"stratified": True},
            "x+stratified=true",
            {"stratified": True},
        ),
        (OPEN, {"split": "train"}, "x+split=train", {"split": "train"}),
        (OPEN, {"corpus": "wiki"}, "x+corpus=wiki", {"corpus": "wiki"}),
        (
            OPEN,
            {"k": 20, "retriever": "bm25", "retriever.k1": 2.5},
            "x+retriever.k1=2.5",
            {"retriever": {"k1": 2.5}},
        ),
        (
            OPEN,
            {"retriever.index": "other"},
            "x+retriever.index=other",
            {"retriever": {"index": "other"}},
        ),
        (OPEN, {"reader.passages": 2}, "x+reader.passages=2", {"reader": {"passages": 2}}),
        (
            CLOSED,
            {"llm": "openai", "llm.window": 9000},
            "x+llm.window=9000",
            {"llm": {"window": 9000}},
        ),
    ],
)
def test_a_change_is_in_the_name_and_changes_that_setting_alone(tables, changes, name, settings):
    before = as_sections(base(tables))
    whole = {
        key: before[key] | value if isinstance(value, dict) else value
        for key, value in settings.items()
    }
    variant = override(base(tables), changes)
    assert variant.name == name
    assert as_sections(variant) == before | whole


def test_the_order_of_changes_does_not_matter():
    changes = {"k": 5, "retriever": "gold", "reader": "llm", "llm.name": "hf", "llm.model": "m"}
    variants = [override(base(), dict(order)) for order in list(permutations(changes.items()))[::7]]
    assert variants[0].name == "x+k=5+llm.model=m+llm.name=hf+reader=llm+retriever=gold"
    assert all(variant == variants[0] for variant in variants)


def test_a_variant_changed_back_has_the_settings_of_its_base():
    there = override(base(), {"k": 5, "retriever.query": "question"})
    back = override(there, {"k": 20, "retriever.query": "names"})
    assert there.retriever is not None
    assert there.retriever.query == "question"
    assert replace(back, name="x") == base()
    assert back.name == "x+k=5+retriever.query=question+k=20+retriever.query=names"


def test_another_plugin_keeps_only_the_number_of_passages():
    fresh = parse_experiment("y", OPEN | {"retriever": {"name": "dense", "k": 20}}, "y.toml")
    changed = override(base(), {"retriever": "dense"})
    assert changed.retriever is not None
    assert changed.retriever == fresh.retriever
    assert (changed.retriever.index, changed.reader) == ("dense", base().reader)
    named = override(base(), {"retriever": "dense", "retriever.index": "other", "k": 5})
    assert named.retriever is not None
    assert (named.retriever.index, named.retriever.k) == ("other", 5)
    reading = override(base(), {"reader": "predictions", "reader.path": "p.jsonl"})
    assert reading.reader is not None
    assert reading.reader.section() == {"name": "predictions", "passages": 7, "path": "p.jsonl"}
    assert reading.retriever == base().retriever
    assert override(base(), {"retriever": "bm25", "reader": "extractive"}) == base()


def test_parts_return_as_many_passages_as_the_whole():
    def depths(retriever):
        return [step.k for step in retriever.steps]

    nested = OPEN | {"retriever": {"name": "rerank", "k": 20}}
    deeper, fewer = (depths(override(base(nested), {"k": k}).retriever) for k in (50, 5))
    assert (deeper, fewer) == ([50, 50, 50, 50], [5, 20, 20, 20])
    shallow = OPEN | {
        "retriever": {
            "name": "fusion",
            "k": 30,
            "parts": [{"name": "bm25", "k": 20}, {"name": "dense"}],
        }
    }
    assert depths(override(base(shallow), {"k": 100}).retriever) == [100, 100, 100]
    assert depths(override(base(), {"retriever": "ranker", "k": 300}).retriever) == [300, 300]


def test_another_language_model_has_none_of_the_first_ones_settings():
    short, long = (
        override(base(CLOSED), {key: "hf", "llm.model": "n"}) for key in ("llm", "llm.name")
    )
    assert short.llm is not None
    assert short.llm == long.llm
    settings: Any = short.llm.settings
    assert (short.llm.name, settings.model, settings.window) == ("hf", "n", 0)
    assert (short.name, long.name) == ("x+llm=hf+llm.model=n", "x+llm.model=n+llm.name=hf")


def test_passages_to_read_without_a_retriever_are_refused():
    with pytest.raises(
        IfqaError, match=r"^experiment x: \[reader\]: passages = 3, but without a \[retriever\]"
    ):
        override(base(CLOSED), {"reader.passages": 3})
    with pytest.raises(IfqaError, match="passages = 5, but without"):
        base({**CLOSED, "reader": {**CLOSED["reader"], "passages": 5}})
    assert base(CLOSED).reader.passages == 0
    for changes, passages in (({}, 5), ({"reader.passages": 3}, 3)):
        variant = override(base(CLOSED), {"retriever": "gold", **changes})
        assert variant.reader is not None
        assert variant.reader.passages == passages


def test_runtime_settings_change_neither_the_name_nor_the_expected_scores():
    expecting = base(CLOSED, expected={"EM": {"value": 1.0}})
    faster = override(expecting, {"llm.concurrency": 3, "llm.max_cost": 2.5})
    assert faster.llm is not None
    settings: Any = faster.llm.settings
    assert (faster.name, settings.concurrency, settings.max_cost) == ("x", 3, 2.5)
    assert faster.expected == expecting.expected != ()
    fewer = override(expecting, {"llm.concurrency": 3, "limit": 2})
    assert fewer.llm is not None
    kept: Any = fewer.llm.settings
    assert (fewer.name, kept.concurrency, fewer.expected) == ("x+limit=2", 3, ())


@pytest.mark.parametrize(
    ("tables", "changes", "complaint"),
    [
        (OPEN, {"retreiver": "gold"}, "unknown setting 'retreiver'; did you mean 'retriever'?"),
        (
            OPEN,
            {"benchmark": "ifqa"},
            "unknown setting 'benchmark'; known: corpus, judge.…, k, limit, llm,",
        ),
        (OPEN, {"retriever": "bm52"}, "unknown retriever 'bm52'; did you mean 'bm25'?"),
        (
            OPEN,
            {"reader.pasages": 3},
            "unknown setting of reader 'extractive' 'pasages'; did you mean 'passages'?",
        ),
        (OPEN, {"retriever": "gold", "retriever.k1": 1.0}, "setting of retriever 'gold' 'k1'"),
        (OPEN, {"retriever.query": "name"}, "unknown query 'name'; did you mean 'names'?"),
        (OPEN, {"retriever.k1": "high"}, "'k1': wanted a number from 0, found 'high'"),
        (OPEN, {"k": 2, "retriever.k": 3}, "k is given twice: --k 2 and retriever.k=3"),
        (OPEN, {"limit": 0}, "--limit must be a whole number from 1, found 0"),
        (OPEN, {"limit": -1}, "'limit': wanted a whole number from 0, found -1"),
        (OPEN, {"sample": 0}, "--sample must be a whole number from 1, found 0"),
        (OPEN, {"sample": 3, "limit": 2}, "limit = 2 and sample = 3; wanted one of them"),
        (OPEN, {"stratified": True}, "stratified is for a sample; add sample = N"),
        (OPEN, {"corpus": ""}, "'bm25' searches passages; set corpus"),
        (
            OPEN,
            {"llm.model": "m"},
            "llm.model is for a language model, which 'bm25' and 'extractive' cannot use",
        ),
        (CLOSED, {"retriever.k1": 1.0}, "experiment x has no [retriever] whose k1 could change"),
    ],
)
def test_a_wrong_change_is_refused_in_one_line(tables, changes, complaint):
    with refused(re.escape(complaint)):
        override(base(tables), changes)


def test_a_sample_takes_the_place_of_a_limit():
    sampled = override(base(limit=8), {"sample": 5})
    assert (sampled.sample, sampled.limit) == (5, 0)
    limited = override(base(sample=5, stratified=True), {"limit": 8})
    assert (limited.sample, limited.stratified, limited.limit) == (0, False, 8)


DRAWN = CLOSED | {"reader": {"name": "llm", "demos": "sample/train", "shots": 2}}
WRITTEN = CLOSED | {"reader": {"name": "llm", "demos": "sample", "shots": 2}}


@pytest.mark.parametrize(
    ("tables", "changes", "seed"),
    [(DRAWN, {}, 7), (DRAWN, {"reader.seed": 3}, 3), (WRITTEN, {}, 0), (CLOSED, {}, 0)],
)
def test_a_seed_is_that_of_drawn_demonstrations_too(tables, changes, seed):
    variant = override(base(tables), {"seed": 7, **changes})
    assert variant.seed == 7
    assert variant.reader_setting("seed") == seed
    write_resolved(variant)
    assert load_experiment(variant.name) == variant


@pytest.mark.parametrize("letter", ["x", "ü"])
def test_a_name_has_up_to_200_bytes(letter):
    size = len(letter.encode())
    stem = letter * ((200 - len("+k=5")) // size)
    whole = override(replace(base(), name=stem), {"k": 5})
    assert len(whole.name.encode()) == 200
    write_resolved(whole)
    assert load_experiment(whole.name) == whole
    with pytest.raises(IfqaError, match="the name of so many changes is too long"):
        override(replace(base(), name=stem + letter), {"k": 5})


names = st.text(min_size=1, max_size=8)
changes_of_the_base = st.fixed_dictionaries(
    {},
    optional={
        "k": st.integers(1, 10**6),
        "limit": st.integers(1, 10**6),
        "seed": st.integers(0, 10**6),
        "stratified": st.booleans(),
        "corpus": names,
        "retriever.k1": st.floats(0, 1e30) | st.integers(0, 9),
        "retriever.query": st.sampled_from(["question", "presupposition", "main", "names"]),
        "reader.weights": st.text(max_size=8),
    },
)


@given(changes_of_the_base)
@example({"corpus": "../a/b"})
@example({"corpus": "a+b", "k": 5})
@example({"corpus": "\n"})
def test_a_variant_that_is_written_is_loaded_by_its_name_as_it_is(changes):
    variant = override(base(sample=9), {**changes})
    if variant.name == "x":
        assert variant == base(sample=9)
    else:
        write_resolved(variant)
        assert load_experiment(variant.name) == variant
        assert variant.variant


@given(names, names)
def test_two_values_never_share_a_name(first, second):
    variants = [override(base(), {"corpus": value}) for value in (first, second)]
    assert (variants[0].name == variants[1].name) == (first == second)


def test_every_tracked_experiment_is_loaded_as_it_was_written():
    for name in list_resources("experiments", ".toml"):
        copied = replace(load_experiment(name), name=f"{name}+copied")
        write_resolved(copied)
        assert load_experiment(copied.name) == copied


def test_a_variant_is_written_again_only_if_it_differs():
    Path("experiments").mkdir()
    Path("experiments/x.toml").write_text("of somebody else")
    write_resolved(override(base(), {"k": 5}))
    file = Path("experiments/x+k=5/experiment.toml")
    assert {path for path in Path("experiments").rglob("*.*") if path.is_file()} == {
        file,
        Path("experiments/x.toml"),
    }
    assert Path("experiments/x.toml").read_text() == "of somebody else"
    written = file.read_text()
    os.utime(file, ns=(0, 0))
    write_resolved(override(base(), {"k": 5}))
    assert file.stat().st_mtime_ns == 0
    file.write_text(written.replace("k = 5", "k = 6"))
    write_resolved(override(base(), {"k": 5}))
    assert file.read_text() == written


def test_a_model_on_this_machine_is_asked_here_unless_a_server_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("ifqa.models.causal_lm.importlib.util.find_spec", lambda name: name)
    for name in ("made", "else"):
        (tmp_path / name).mkdir()
    (tmp_path / "made" / "adapter_config.json").write_text("{}")

    def llm_of(tables, **changes):
        experiment = parse_experiment("x", tables, "x", tmp_path)
        return override(experiment, {f"llm.{key}": value for key, value in changes.items()}).llm

    for name in ("smollm2", "a/b.gguf", "made"):
        llm = llm_of(CLOSED, model=name, window=99)
        assert (llm.name, llm.settings.model, llm.settings.window) == (
            "llama-cpp" if "gguf" in name else "hf",
            name,
            99,
        )
        assert llm_of(CLOSED, model=name, base_url="http://localhost:8000/v1").name == "openai"
        assert llm_of(CLOSED, model=name, name="openai").name == "openai"
    for name in ("gpt-4.1", "else", "nowhere", "x" * 5000):
        assert llm_of(CLOSED, model=name).name == "openai"
    monkeypatch.setattr("ifqa.models.causal_lm.importlib.util.find_spec", lambda name: None)
    assert llm_of(CLOSED, model="a/b.gguf").name == "hf"


def test_a_variant_is_named_after_its_base():
    variant = override(base(name="BM25 + FiD"), {"k": 5, "reader.passages": 2})
    assert variant.display_name == "BM25 + FiD, k=5, reader.passages=2"
    assert override(base(), {"k": 5}).display_name == "x+k=5"
    write_resolved(variant)
    assert load_experiment(variant.name) == variant


def judged(**more):
    """A span reader's experiment with a judge at a server."""
    return base(judge={"name": "openai", "model": "m", **more})


def test_a_judge_is_in_the_name():
    changed = override(base(), {"judge.model": "gpt-4.1-mini"})
    assert changed.name == "x+judge.model=gpt-4.1-mini"
    assert changed.judge is not None
    assert changed.judge.name == "gpt-4.1-mini"
    assert "judged by gpt-4.1-mini" in [measure.name for measure in changed.scheme.measures]


def test_a_judge_is_read_back_unchanged():
    changed = override(base(), {"judge.model": "m", "judge.prompt": "mine"})
    assert parse_experiment(changed.name, as_sections(changed), "x.toml") == changed


def test_a_cap_holds_for_the_judge_of_a_reader_without_a_model():
    changed = override(judged(), {"llm.max_cost": 2.0})
    assert changed.name == "x"
    assert changed.judge is not None
    assert changed.judge.model.section()["max_cost"] == 2.0
    assert changed.llm is None


def test_a_cap_holds_for_the_reader_with_its_judge():
    changed = override(
        base(CLOSED, judge={"name": "openai", "model": "n"}), {"llm.max_total_tokens": 9}
    )
    assert changed.judge is not None
    assert changed.judge.model.section()["max_total_tokens"] == 9
    assert changed.llm_setting("max_total_tokens") == 9


def test_a_judge_has_the_caps_of_the_files_model():
    tables = CLOSED | {"llm": CLOSED["llm"] | {"max_cost": 3.0}}
    experiment = base(tables, judge={"name": "openai", "model": "n"})
    assert experiment.judge is not None
    assert experiment.judge.model.section()["max_cost"] == 3.0


def test_a_judge_keeps_its_prompt_with_another_model():
    changed = override(judged(prompt="mine"), {"judge.name": "llama-cpp", "judge.model": "x.gguf"})
    assert changed.judge is not None
    assert changed.judge.prompt == "mine"


def test_a_judge_goes_with_the_reader():
    assert override(judged(), {"reader": "none"}).judge is None


def test_a_judge_without_a_reader_is_refused():
    tables = {key: value for key, value in OPEN.items() if key != "reader"}
    with refused(r"\[judge\] judges answers; wanted a \[reader\]"):
        base(tables, judge={"model": "m"})


def test_a_judges_unknown_setting_is_refused():
    with refused("modle"):
        base(judge={"name": "openai", "model": "m", "modle": "n"})
