"""The phenomena of a change, told by rule."""

import pytest

from ifqa.benchmarks.wiqa.phenomena import PHENOMENA, phenomena

STEPS = ["The magma cools", "The magma solidifies", "Rain falls on the ground", ""]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("the sun shines", ()),
        ("hotter water", ("qualitative",)),
        ("more magma cools", ("qualitative", "lexical match")),
        ("MORE rain falling on grounds", ("qualitative", "lexical match")),
        ("magma and rain", ()),
        ("there is no magma", ("lexical match", "negation")),
        ("the magma doesn't cool", ("lexical match", "negation")),
        ("a note about nothing", ("negation",)),
        ("the knot is another one", ()),
        ("less of an increase in heat", ("qualitative", "juxtaposed")),
        ("more", ("qualitative",)),
    ],
)
def test_a_change_shows_its_phenomena(change, found):
    assert phenomena(change, STEPS, True) == found


def test_only_a_change_of_the_paragraph_matches_its_words():
    assert phenomena("the magma cools", STEPS, False) == ()
    assert phenomena("the magma cools", STEPS, True) == ("lexical match",)


def test_they_are_named_in_the_order_of_the_paper():
    assert list(PHENOMENA) == ["qualitative", "lexical match", "negation", "juxtaposed"]
