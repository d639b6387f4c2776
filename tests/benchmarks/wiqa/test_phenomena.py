"""The phenomena of a change, by rule."""

from ifqa.benchmarks.wiqa.benchmark import PHENOMENA, find_phenomena

STEPS = ["The magma cools", "The magma solidifies", "Rain falls on the ground", ""]


def test_the_phenomena_of_changes():
    phenomena = {
        "the sun shines": (), "hotter water": ("qualitative",), "more magma cools": ("qualitative", "lexical match"),
        "MORE rain falling on grounds": ("qualitative", "lexical match"), "magma and rain": (),
        "there is no magma": ("lexical match", "negation"), "the magma doesn't cool": ("lexical match", "negation"),
        "a note about nothing": ("negation",), "the knot is another one": (), "more": ("qualitative",),
        "less of an increase in heat": ("qualitative", "juxtaposed"),
    }  # fmt: skip
    assert {change: find_phenomena(change, STEPS, True) for change in phenomena} == phenomena
    assert find_phenomena("the magma cools", STEPS, False) == (), "only a change in the paragraph matches its words"
    assert find_phenomena("the magma cools", STEPS, True) == ("lexical match",)
    assert list(PHENOMENA) == ["qualitative", "lexical match", "negation", "juxtaposed"]
