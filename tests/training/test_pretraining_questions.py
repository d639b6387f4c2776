"""Practice questions made of passages."""

import re

from ifqa.training.pretraining_questions import make_pretraining_questions

PASSAGES = [
    "The club was founded by Ida Marrow in 1902. It has won 14 league titles and plays its home games in Veldmar.",
    "Nothing here has a name or a figure in it.",
    'After the war the band played "Long Rivers" in the old town hall of Brill every summer with 30 singers on stage.',
]


def test_each_passage_gives_no_more_than_asked_and_is_the_gold_passage():
    made = make_pretraining_questions(PASSAGES, seed=0, each=3)
    assert {one.gold_passages for one in made} <= {(text,) for text in PASSAGES}
    assert max(sum(one.gold_passages == (text,) for one in made) for text in PASSAGES) == 3
    assert len({one.id for one in made}) == len(made)
    again, other = (make_pretraining_questions(PASSAGES, seed=seed) for seed in (1, 2))
    assert make_pretraining_questions(PASSAGES, seed=1) == again != other
    gaps = [question for question in make_pretraining_questions(PASSAGES, seed=0, each=50) if " what " in question.text]
    assert all(gap.answers[0] in gap.gold_passages[0] for gap in gaps)


def test_numbers_dates_places_and_lists_are_changed_and_computed():
    text = (
        "The Veldmar mill by the lake was the third to be built in May 1902 there. "
        "On 3 June 1950 it burnt down to the ground. "
        "Ann Lee, Bo Hay and Cy Orr owned the mill between them for a long time."
    )
    made = make_pretraining_questions([text], seed=0, each=100)
    endings = {re.split(r"[,?] (?=(?:in|on|how) )", one.text)[-1] for one in made}
    assert endings >= {"in which year?", "in which place?", "how many?"}
    assert "48" in {one.answers[0] for one in made if " how many years until " in one.text}
    assert {"3", "2"} <= {one.answers[0] for one in made if one.text.endswith("how many?")}
    dates = [one for one in made if re.search("on which date|which month", one.text)]
    assert dates
    assert all(re.fullmatch(r"[A-Z][a-z]+( \d+,)?( \d{4})?", date.answers[0]) for date in dates)


def test_a_changed_number_is_computed():
    changed = [
        question
        for question in make_pretraining_questions(PASSAGES, seed=0, each=50)
        if question.text.endswith("how many?")
    ]
    assert changed
    words = "one two three four five six seven eight nine ten".split()
    for one in changed:
        step, way = re.search(rf"\b({'|'.join(words)}|\d+) (more|additional|fewer|less)\b", one.text).groups()
        step = int(step) if step.isdigit() else words.index(step) + 1
        started = int(one.answers[0]) + (-step if way in ("more", "additional") else step)
        assert str(started) in one.gold_passages[0]
