"""Questions from graphs against brute force over the raw records; balance, explanations and splits."""

import random
from collections import Counter
from itertools import product

from ifqa.benchmarks.wiqa.graphs import parse_graph
from ifqa.benchmarks.wiqa.question_generation import assign_splits, balance_labels, make_balanced_questions
from ifqa.benchmarks.wiqa.question_generation import effect_questions as with_effect
from ifqa.benchmarks.wiqa.question_generation import no_effect_questions as without_effect
from ifqa.storage.files import read_jsonl
from ifqa.storage.resources import BUNDLED

RECORDS = [record for _, record in read_jsonl(BUNDLED / "wiqa" / "graphs.jsonl")]
GRAPHS = [parse_graph(record, "x") for record in RECORDS]
BREAD = GRAPHS[0]


def by_hand(record):
    """Stem -> (answer, nodes of the path), by the paths of the paper's Figure 2, without a graph."""
    good, bad = record["para_outcome_accelerate"], record["para_outcome_decelerate"]
    if record["Y_affects_outcome"] == "less":
        good, bad = bad, good
    texts = {name: [phrasings] if isinstance(phrasings, str) else phrasings for name, phrasings in record.items()}
    texts |= {"+": [good], "-": [bad]}
    more = {"ZY": 3, "VW": 3, "Z+": 4, "V-": 4, "XY": 2, "X+": 3, "U-": 3, "Y+": 2, "W-": 2}
    less = {"VY": 3, "ZW": 3, "V+": 4, "Z-": 4, "XW": 2, "X-": 3, "UY": 2, "U+": 3, "Y-": 2, "W+": 2}
    return {
        f"suppose {change} happens, how will it affect {effect}.": (answer, nodes)
        for answer, pairs in (("more", more), ("less", less))
        for (source, target), nodes in pairs.items()
        for change, effect in product(texts[source], texts[target])
    }


def test_questions_with_an_effect_are_those_by_hand():
    for record, graph in zip(RECORDS, GRAPHS, strict=True):
        questions = [*with_effect(graph)]
        labels = {
            question.question.stem: (question.question.answer_label, question.metadata.path_len)
            for question in questions
        }
        assert labels == by_hand(record)
        assert len(questions) == len({question.metadata.ques_id for question in questions}) == len(labels) == 37
        outside = {f"suppose {text} happens" for name in "ZV" for text in record[name]}
        for question in questions:
            assert (question.kind == "out_of_para") == (question.question.stem.partition(",")[0] in outside)


def test_questions_on_the_first_hop_from_outside_are_optional_and_a_graph_without_effect_has_none():
    labels = {effect.question.stem: effect.question.answer_label for effect in with_effect(BREAD, first_hop=True)}
    new = labels.keys() - {effect.question.stem for effect in with_effect(BREAD)}
    assert {stem.partition("affect ")[2] for stem in new} == {"the yeast gives off more gas."}
    assert Counter(labels[stem] for stem in new) == {"more": 2, "less": 2}
    assert [*with_effect(parse_graph(RECORDS[0] | {"Y_affects_outcome": "no_effect"}, "x"))] == []
    (question, *_) = with_effect(parse_graph(RECORDS[0] | {"Y": "the dough swells."}, "x"))
    assert question.question.stem.endswith("how will it affect the dough swells.")


def test_a_change_without_effect_comes_from_another_paragraph():
    questions = without_effect(BREAD, GRAPHS, 200, random.Random(0))
    foreign = {text for graph in GRAPHS[1:] for text in graph.changes}
    effects = {text for name in "XYWAD" for text in BREAD.nodes[name]}
    for question in questions:
        change, _, effect = question.question.stem.removeprefix("suppose ").partition(" happens, how will it affect ")
        assert (change in foreign, effect.removesuffix(".") in effects) == (True, True)
        labels = (question.question.answer_label, question.kind, question.metadata.path_len)
        assert labels == ("no_effect", "no_effect", 0)
    assert len({question.question.stem for question in questions}) == 200
    few = without_effect(BREAD, GRAPHS[:2], 10_000, random.Random(0))
    assert len(few) == 10 * 6  # compost has 10 changes, bread has 6 phrasings of effects
    same = parse_graph(RECORDS[0] | {"para_id": "twin", "graph_id": "twin"}, "x")
    assert without_effect(BREAD, [BREAD, same], 10, random.Random(0)) == []


def test_balance_cuts_the_more_frequent_answers():
    questions = [effect for graph in GRAPHS for effect in with_effect(graph)]
    questions += without_effect(BREAD, GRAPHS, 400, random.Random(0))
    before = Counter((question.kind, question.question.answer_label) for question in questions)
    assert before["in_para", "less"] > before["in_para", "more"]
    after = balance_labels(questions, 1)
    counts = Counter((question.kind, question.question.answer_label) for question in after)
    assert counts["in_para", "less"] == counts["in_para", "more"] == before["in_para", "more"]
    assert counts["out_of_para", "less"] == counts["out_of_para", "more"]
    assert counts["no_effect", "no_effect"] == sum(counts.values()) // 3
    assert after == balance_labels(questions, 1) != balance_labels(questions, 2)
    assert [question for question in questions if question in after] == after
    drawn = make_balanced_questions(GRAPHS, 3)
    assert drawn == make_balanced_questions(GRAPHS, 3) != make_balanced_questions(GRAPHS, 4)
    assert len(set(Counter(question.question.answer_label for question in drawn).values())) == 1


def test_paragraphs_keep_their_known_split_and_others_are_divided():
    names = [str(n) for n in range(100)]
    parts = assign_splits(iter(names), 0, {"5": "test", "x": "dev"})
    assert parts["5"] == "test"
    assert Counter(parts.values()) == {"train": 79, "dev": 10, "test": 11}
    assert parts == assign_splits(names, 0, {"5": "test"}) != assign_splits(names, 1, {"5": "test"})
