import re

import pytest

from ifqa.benchmarks.causalqa.rules import normalize_question
from ifqa.benchmarks.causalqa.typology import ASPECTS, PRAGMATIC_FORMS, SEMANTIC_FORMS, classify_question

FORMS = [(forms, place) for forms in (SEMANTIC_FORMS, PRAGMATIC_FORMS) for place in range(len(forms))]


@pytest.mark.parametrize(("forms", "place"), FORMS)
def test_a_form_is_the_first_match_of_its_example(forms, place):
    text = normalize_question(forms[place].example)
    assert next(n for n, form in enumerate(forms) if re.search(form.pattern, text)) == place
    assert classify_question(forms[place].example)[forms is PRAGMATIC_FORMS] == forms[place].label


def test_exactly_the_classes_have_forms():
    for aspect, forms in (("semantic", SEMANTIC_FORMS), ("pragmatic", PRAGMATIC_FORMS)):
        assert {form.label for form in forms} - {None} == {*ASPECTS[aspect]}


def test_the_labeller_abstains_without_a_match_and_is_fast_on_a_long_question():
    assert classify_question("salt and water") == classify_question("") == (None, None)
    long = "what is what does why is causes effects of " * 400  # minutes, if a pattern were exponential
    assert classify_question(long)[0]
