"""Reader 'unifiedqa': its inputs, its answers against transformers' T5, and a model for each
group.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from refusals import refused
from tiny_t5 import model, plain, save, tokenizer
from transformers import GenerationConfig

from ifqa.reading.t5.readers import (
    Fid,
    UnifiedQA,
    first_answer,
    group_folders,
    input_text,
    normalize_unifiedqa,
)
from ifqa.records import Passage, Question

BRIDGE = Passage(
    "w/1", "Old_Bridge", "The bridge was opened in 1895 by the mayor Anna Berg, five years late."
)
HARBOUR = Passage(
    "w/2", "", "The harbour of Wick was dug from 1803\tto 1811\nby the engineer  Thomas Telford."
)
EMPTY = Passage("w/3", "", " ")
QUESTIONS = [
    Question("q/0", "Why was the bridge opened late?", group="one"),
    Question("q/1", "Who dug the harbour?", choices=("Anna Berg", "Thomas Telford"), group="two"),
    Question("q/2", "What carries two lanes?", group="one"),
]
RANKED = [[BRIDGE, HARBOUR], [HARBOUR], []]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(save(tmp_path_factory.mktemp("unifiedqa") / "tiny"))


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    """Models of the groups "one" and "two", as `ifqa train unifiedqa` names them, and another
    model.
    """
    root = tmp_path_factory.mktemp("groups")
    for seed, name in enumerate(("model-one", "model-two", "other")):
        save(root / name, seed=seed)
        manifest = {"family": "causal/original", "sources": {f"{name}.jsonl": name}}
        (root / name / "manifest.json").write_text(json.dumps(manifest))
    return root


@pytest.fixture
def copies(groups, tmp_path):
    """A folder with copies of the models of the groups."""
    for name in ("one", "two"):
        shutil.copytree(groups / f"model-{name}", tmp_path / name)
    return tmp_path


def opened(checkpoint, root=Path()):
    settings = UnifiedQA.Settings(
        checkpoint=str(checkpoint), device="cpu", precision="float32", max_answer_tokens=8
    )
    return UnifiedQA(settings, root=root)


def family(checkpoint, root=Path()):
    return UnifiedQA.training_family(UnifiedQA.Settings(checkpoint=str(checkpoint)), root)


def fingerprint(checkpoint, reader=UnifiedQA, **settings):
    return reader.fingerprint(reader.Settings(checkpoint=str(checkpoint), **settings), Path())


# The forms of the examples in allenai/unifiedqa README.md, "Feeding data into UnifiedQA" and "Using
# the models"
@pytest.mark.parametrize(
    ("question", "passages", "expected"),
    [
        (
            Question("", "Which metal conducts best?", choices=("Iron", "a feather")),
            [],
            r"which metal conducts best? \n (a) iron (b) a feather",
        ),
        (
            Question("", "At what speed did the Lune run?"),
            [
                Passage(
                    "",
                    "River_Lune",
                    "In May 1906, the Lune ran at 16,000 litres (150 barrels) a minute.",
                )
            ],
            (
                r"at what speed did the lune run? \n (river_lune) in may 1906, the lune ran at "
                r"16,000 litres (150 barrels) a minute."
            ),
        ),
        (
            Question("", "What does Echo's spring do?"),
            [
                Passage(
                    "",
                    "",
                    "A drink from Echo's spring makes them ''Grow fond of "
                    "themselves.'' So she says.",
                )
            ],
            (
                r"what does echos spring do? \n a drink from echo's spring makes them ''grow fond "
                r"of themselves.' so she says."
            ),
        ),
        (Question("", "Why is  the sky\tblue?"), [EMPTY], "why is the sky blue?"),
        (
            Question("", "Who dug it?"),
            [BRIDGE, HARBOUR],
            r"who dug it? \n (old_bridge) the bridge was opened in 1895 by the mayor anna "
            r"berg, five years late. the harbour "
            "of wick was dug from 1803 to 1811 by the engineer thomas telford.",
        ),
    ],
)
def test_inputs_have_unifiedqas_format(question, passages, expected):
    assert input_text(question, passages) == expected


def test_titles_quotes_and_tabs_are_handled_as_in_unifiedqa_and_causalqa():
    assert input_text(Question("", "Why?"), [BRIDGE], titles=False).startswith(
        r"why? \n the bridge was opened"
    )
    # the maintainers' example in allenai/unifiedqa issue 42
    assert normalize_unifiedqa("Abc def 'ghi' jkl 'mno' 'pqr'") == "abc def ghi' jkl 'mno' 'pqr"
    assert [first_answer(text) for text in ("a b\tc\td", " a ", "\tb")] == ["a b", "a", ""]


def test_answers_are_those_of_transformers_t5(folder):
    """Fusion-in-Decoder with a single passage a question is a plain T5."""
    reader = opened(folder)
    network = plain(model(vocabulary=len(tokenizer())))
    greedy = GenerationConfig(
        max_length=8, use_cache=False, decoder_start_token_id=0, eos_token_id=1, pad_token_id=0
    )
    predictions = reader.answer(QUESTIONS, RANKED)
    for question, passages, prediction in zip(QUESTIONS, RANKED, predictions, strict=True):
        ids = torch.tensor([tokenizer()(input_text(question, passages))["input_ids"]])
        tokens = network.generate(input_ids=ids, generation_config=greedy)[0]
        assert prediction.completion == tokenizer().decode(tokens, skip_special_tokens=True)
        assert prediction.question_id == question.id
        assert prediction.passage_ids == tuple(passage.id for passage in passages)
        assert (prediction.passage_scores, prediction.score < 0) == ((), True)
    assert len({prediction.completion for prediction in predictions}) == 3
    assert reader.answer([], []) == []


def test_odd_texts_are_answered(folder):
    texts = ["", "\x00", "\u202e\U0001f600" * 30, "</s><pad></s>", "'" * 99, r"\n " * 999]
    questions = [Question(f"q/{n}", text, choices=(text, text)) for n, text in enumerate(texts)]
    predictions = opened(folder).answer(questions, [[Passage("", text, text)] for text in texts])
    assert [prediction.question_id for prediction in predictions] == [
        question.id for question in questions
    ]


def test_the_defaults_are_causalqas(folder, monkeypatch):
    reader = UnifiedQA(UnifiedQA.Settings(checkpoint=folder, device="cpu"))
    t5 = reader._t5
    assert t5 is not None
    assert (t5.conventions.max_tokens, t5.conventions.encoder_eos) == (2048, True)
    assert (t5.max_answer_tokens, t5.beams) == (500, 1)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with refused(r"unifiedqa-v2-t5-base-1363200.*reader 'unifiedqa' uses this .*train unifiedqa"):
        UnifiedQA(UnifiedQA.Settings())


def test_each_group_is_answered_by_its_own_model_in_any_order(groups):
    reader = opened(groups / "model-{group}")
    alone = {name: opened(groups / f"model-{name}") for name in ("one", "two")}
    order = [0, 1, 2, 1, 0]
    questions = [QUESTIONS[n] for n in order]
    ranked = [RANKED[n] for n in order]
    done: list[float] = []
    predictions = reader.answer(questions, ranked, done.append)
    assert (sum(done), len(predictions)) == (5, 5)
    for question, passages, prediction in zip(questions, ranked, predictions, strict=True):
        expected = alone[question.group].answer([question], [passages])[0]
        assert prediction == replace(expected, score=pytest.approx(expected.score, abs=1e-4))
    assert predictions[0].completion != alone["two"].answer(QUESTIONS[:1], RANKED[:1])[0].completion
    loaded = []  # a single model is in memory at a time, and stays as long as possible
    open_model = reader._open

    def opened_model(name):
        loaded.append(Path(name).name)
        return open_model(name)

    reader._open = opened_model
    for _ in range(2):
        reader.answer([QUESTIONS[0], QUESTIONS[2], QUESTIONS[1]], [[], [], []])
    assert loaded in (["model-two", "model-one"], ["model-one", "model-two"])


def test_a_question_of_another_group_is_refused_before_any_is_answered(groups):
    reader = opened(groups / "model-{group}")
    for group in ("three", "", "../model-one", "one/../one"):
        questions = [QUESTIONS[0], replace(QUESTIONS[1], group=group)]
        with refused(r"question q/1 is of group .* only for one, two; train one with"):
            reader.answer(questions, [[], []], lambda _: pytest.fail("it has answered"))


def test_groups_are_found_by_the_names_of_folders(groups, tmp_path):
    for name, root in (("model-{group}", groups), (str(groups / "model-{group}"), Path())):
        assert {*group_folders(name, root)} == {"one", "two"}
    assert group_folders("mine/{x}") == {"": "mine/{x}"}
    odd = tmp_path / "a[b]*" / "x-original"
    odd.mkdir(parents=True)
    assert group_folders(str(tmp_path / "a[b]*" / "{group}-original")) == {"x": str(odd)}
    for name, message in (
        ("none-{group}", "no folder has such a name"),
        ("{group}/{group}", "wanted {group} once"),
    ):
        with refused(message):
            family(tmp_path / name)


def test_the_models_of_groups_share_a_family_and_join_their_sources(groups, folder, copies):
    reader = opened("model-{group}", root=groups)
    assert (reader.family, reader.trained_on) == ("causal/original", {"model-one", "model-two"})
    assert family("model-{group}", root=groups) == "causal/original"
    (copies / "two/manifest.json").write_text('{"family": "causal/random"}')
    with refused("trained on causal/original and causal/random, which may share questions"):
        opened(copies / "{group}")


def test_the_fingerprint_covers_all_models(groups, folder, copies):
    pattern = copies / "{group}"
    prints = [fingerprint(pattern), fingerprint(groups / "model-{group}", beams=2)]
    assert prints[0] == prints[1]
    (copies / "two/manifest.json").write_text("{}")
    prints += [fingerprint(pattern), fingerprint(folder), fingerprint(folder, Fid)]
    shutil.move(copies / "two", copies / "three")
    prints.append(fingerprint(pattern))
    assert len(set(prints)) == 5
