"""The questions, prompts and scores of the tasks for lm-eval and inspect; neither is needed here."""

import re
from pathlib import Path

import pytest
import yaml
from command_line import ifqa_here

import ifqa
from ifqa.errors import ConfigError
from ifqa.plugins import open_benchmark
from ifqa.tasks import lm_eval_tasks
from ifqa.tasks.questions import (
    as_question,
    first_line,
    load_records,
    prompt_text,
    question_scores,
    set_score,
)

FOLDER = Path(lm_eval_tasks.__file__).parent


class Loader(yaml.SafeLoader):
    """Reads `!function module.name` as its text."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def answers(records):
    """Right, wrong, wordy and missing answers in turn."""
    golds = [record["answers"][0] for record in records]
    return [(gold, "never", f"It is {gold}.", "")[n % 4] for n, gold in enumerate(golds)]


@pytest.mark.parametrize("split", ["dev", "hard"])
def test_the_scores_of_a_task_are_ours(split):
    records = load_records("sample", split)
    given = answers(records)
    rows = [question_scores(*pair) for pair in zip(records, given, strict=True)]
    ids = [record["id"] for record in records]
    ours = ifqa.evaluate(dict(zip(ids, given, strict=True)), "sample", split)
    assert rows[0].keys() == {"EM", "F1", "contains"}
    for name in rows[0]:
        mean = sum(row[name] for row in rows) / len(rows)
        assert 100 * mean == pytest.approx(ours[name].value)


@pytest.mark.parametrize("name", ["obeyed", "real_world", "right"])
def test_the_scores_of_pairs_are_ours(name):
    records = load_records("obedience", "sample-dev")
    given = answers(records)
    ids = [record["id"] for record in records]
    ours = ifqa.evaluate(dict(zip(ids, given, strict=True)), "obedience", "sample-dev")
    items = list(zip(records, given, strict=True))
    assert 100 * set_score(name, records, given) == pytest.approx(ours[name].value)
    assert getattr(lm_eval_tasks, name)(items) == set_score(name, records, given)


def test_a_record_is_the_whole_question():
    questions = open_benchmark("obedience").questions("sample-dev")
    assert list(map(as_question, load_records("obedience", "sample-dev"))) == questions


def test_the_prompt_shows_annotated_passages_only_if_asked():
    question = open_benchmark("sample").questions("dev")[0]
    assert question.gold_passages[0] not in prompt_text(question)
    assert question.gold_passages[0] in prompt_text(question, "gold")
    assert prompt_text(question).endswith(f"Question: {question.text}\nAnswer:")


def test_other_passages_are_refused():
    with pytest.raises(ConfigError, match="passages: wanted none or gold, found 'all'"):
        load_records("sample", "dev", "all")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "line"), [("\n Ada \nBo", "Ada"), ("Answer: Ada", "Ada"), ("", ""), (" \n ", "")]
)
def test_an_answer_is_the_first_line(text, line):
    assert first_line(text) == line


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_task_of_lm_eval_names_what_is_there(path):
    task = yaml.load(path.read_text(), Loader)
    assert task["task"] == path.stem
    included = (FOLDER / task["include"]).read_text()
    included += (FOLDER / "_ifqa_yaml").read_text()
    functions = re.findall(r"!function ifqa\.tasks\.lm_eval_tasks\.(\w+)", included)
    assert functions
    assert all(callable(getattr(lm_eval_tasks, name)) for name in functions)
    benchmark = open_benchmark(task["metadata"]["benchmark"])
    assert task["metadata"]["split"] in benchmark.splits


def test_lm_eval_gets_the_questions_with_their_prompts():
    dataset = lm_eval_tasks.load_dataset("sample", "dev", passages="gold", version=1.0)["test"]
    assert dataset[0]["prompt"] == load_records("sample", "dev", "gold")[0]["prompt"]
    assert len(dataset) == 83


def test_the_folder_of_tasks_is_printed(tmp_path):
    assert ifqa_here("tasks", folder=tmp_path).stdout.strip() == str(FOLDER)
