"""Practice questions made from passages."""

import re
from collections import Counter

from ifqa.training.pretraining_questions import make_pretraining_questions

PASSAGES = [
    "The club was founded by Ida Marrow in 1902. It has won 14 league titles and plays its home games in Veldmar.",
    "Nothing here has a name or a figure in it.",
    'After the war the band played "Long Rivers" in the old town hall of Brill every summer with 30 singers on stage.',
]


def test_each_passage_is_the_gold_passage_of_a_limited_number_of_questions():
    questions = make_pretraining_questions(PASSAGES, seed=0, each=3)
    counts = Counter(question.gold_passages for question in questions)
    assert counts.keys() <= {(text,) for text in PASSAGES}
    assert max(counts.values()) == 3
    assert len({question.id for question in questions}) == len(questions)
    again, other = (make_pretraining_questions(PASSAGES, seed=seed) for seed in (1, 2))
    assert make_pretraining_questions(PASSAGES, seed=1) == again != other
    gaps = [question for question in make_pretraining_questions(PASSAGES, seed=0, each=50) if " what " in question.text]
    assert all(gap.answers[0] in gap.gold_passages[0] for gap in gaps)


def test_numbers_dates_places_and_lists_are_changed_and_computed():
    text = "The Veldmar mill by the lake was the third to be built in May 1902 there. On 3 June 1950 it burnt to the ground."
    text += " Ann Lee, Bo Hay and Cy Orr owned the mill between them for a long time."
    answers = {question.text: question.answers[0] for question in make_pretraining_questions([text], seed=0, each=100)}
    endings = {re.split(r"[,?] (?=(?:in|on|how) )", text)[-1] for text in answers}
    assert endings >= {"in which year?", "in which place?", "how many?"}
    assert "48" in {answer for text, answer in answers.items() if " how many years until " in text}
    assert {"3", "2"} <= {answer for text, answer in answers.items() if text.endswith("how many?")}
    dates = [answer for text, answer in answers.items() if re.search("on which date|which month", text)]
    assert dates
    assert all(re.fullmatch(r"[A-Z][a-z]+( \d+,)?( \d{4})?", date) for date in dates)


def test_a_changed_number_is_computed():
    questions = make_pretraining_questions(PASSAGES, seed=0, each=50)
    changed = [question for question in questions if question.text.endswith("how many?")]
    assert changed
    words = "one two three four five six seven eight nine ten".split()
    for question in changed:
        step, way = re.search(rf"\b({'|'.join(words)}|\d+) (more|additional|fewer|less)\b", question.text).groups()
        step = int(step) if step.isdigit() else words.index(step) + 1
        original = int(question.answers[0]) + (-step if way in ("more", "additional") else step)
        assert str(original) in question.gold_passages[0]
