"""The bundled processes, graphs and questions."""

from collections import Counter

import pytest

from ifqa.benchmarks.wiqa.graphs import read_graphs
from ifqa.benchmarks.wiqa.question_generation import FOLDER, SPLITS, make_complete_questions
from ifqa.benchmarks.wiqa.release import read_wiqa_questions
from ifqa.storage.files import read_jsonl

PROCESSES = {record["para_id"]: record for _, record in read_jsonl(FOLDER / "processes.jsonl")}
GRAPHS = read_graphs(FOLDER / "graphs.jsonl")


def test_each_of_twelve_graphs_has_its_process_of_five_to_eight_sentences():
    assert len(PROCESSES) == len(GRAPHS) == len({process["topic"] for process in PROCESSES.values()}) == 12
    assert Counter(process["split"] for process in PROCESSES.values()) == {"train": 7, "test": 3, "dev": 2}
    for graph in GRAPHS.values():
        steps = PROCESSES[graph.paragraph_id]["steps"]
        assert 5 <= len(steps) <= 8
        assert graph.paragraph == ". ".join(steps) + "."
        assert [len(phrasings) for phrasings in graph.nodes.values()] == [2, 2, 1, 2, 1, 2, 1, 1]


@pytest.mark.parametrize("split", SPLITS)
def test_the_questions_are_those_of_the_graphs_and_some_have_an_explanation(split):
    questions = read_wiqa_questions(FOLDER / f"{split}.jsonl")
    assert any(question.explanation for question in questions)
    graphs = [graph for graph in GRAPHS.values() if PROCESSES[graph.paragraph_id]["split"] == split]
    plain = [question.model_copy(update={"explanation": None}) for question in questions]
    assert plain == make_complete_questions(graphs, 0)
