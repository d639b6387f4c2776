import re

import pytest

from ifqa.benchmarks.causalqa.rules import plain
from ifqa.benchmarks.causalqa.typology import PRAGMATIC, PRAGMATIC_FORMS, SEMANTIC, SEMANTIC_FORMS, label

FORMS = [(forms, place) for forms in (SEMANTIC_FORMS, PRAGMATIC_FORMS) for place in range(len(forms))]


@pytest.mark.parametrize(("forms", "place"), FORMS)
def test_a_form_is_the_first_that_its_example_has(forms, place):
    text = plain(forms[place].example)
    assert next(n for n, form in enumerate(forms) if re.search(form.pattern, text)) == place
    assert label(forms[place].example)[forms is PRAGMATIC_FORMS] == forms[place].label


def test_every_class_but_no_other_has_a_form():
    assert {form.label for form in SEMANTIC_FORMS} - {None} == SEMANTIC.keys()
    assert {form.label for form in PRAGMATIC_FORMS} - {None} == PRAGMATIC.keys()


@pytest.mark.parametrize("text", ["", "?", "salt and water", "a b c"])
def test_the_labeller_abstains_where_no_form_fits(text):
    assert label(text) == (None, None)


def test_a_long_question_takes_no_more_than_its_share_of_time():
    assert label("what is what does why is causes effects of " * 400)[0]  # minutes, were a pattern exponential
