"""The bundled processes, graphs and questions.

    python tests/benchmarks/wiqa/test_bundle.py

writes the questions again, after the processes or graphs have changed.
"""

from collections import Counter

import pytest

from ifqa.benchmarks.wiqa.derive import SPLITS, read_sentences, whole
from ifqa.benchmarks.wiqa.graphs import read_graphs
from ifqa.benchmarks.wiqa.release import read_items
from ifqa.storage.files import read_jsonl, write_jsonl
from ifqa.storage.resources import BUNDLED

FOLDER = BUNDLED / "wiqa"
PROCESSES = {record["para_id"]: record for _, record in read_jsonl(FOLDER / "processes.jsonl")}
GRAPHS = read_graphs(FOLDER / "graphs.jsonl")
SENTENCES = read_sentences()


def made(split):
    graphs = [graph for graph in GRAPHS.values() if PROCESSES[graph.paragraph_id]["split"] == split]
    return whole(graphs, 0, SENTENCES)


def test_each_of_twelve_graphs_tells_of_its_process_of_five_to_eight_sentences():
    assert len(PROCESSES) == len(GRAPHS) == len({one["topic"] for one in PROCESSES.values()}) == 12
    assert Counter(one["split"] for one in PROCESSES.values()) == {"train": 7, "test": 3, "dev": 2}
    for graph in GRAPHS.values():
        process = PROCESSES[graph.paragraph_id]
        assert 5 <= len(process["steps"]) <= 8
        assert (graph.paragraph, graph.prompt) == (". ".join(process["steps"]) + ".", process["prompt"])
        assert [len(own) for own in graph.nodes.values()] == [2, 2, 1, 2, 1, 2, 1, 1]
        assert SENTENCES[graph.id].j < len(process["steps"])


@pytest.mark.parametrize("split", SPLITS)
def test_the_questions_are_those_of_the_graphs(split):
    assert read_items(FOLDER / f"{split}.jsonl") == made(split)


if __name__ == "__main__":
    for name in SPLITS:
        write_jsonl(FOLDER / f"{name}.jsonl", (item.record() for item in made(name)))
