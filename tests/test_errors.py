"""Errors for unknown names: the nearest name, and a short list of known names."""

from ifqa.errors import unknown


def test_few_known_names_are_all_listed():
    assert str(unknown("reader", "fud", ["llm", "fid"])) == "unknown reader 'fud'; did you mean 'fid'? known: fid, llm"


def test_of_many_known_names_the_nearest_five_are_listed():
    names = [f"table3-{number}" for number in range(40)] + ["sample", "samples"]
    message = str(unknown("experiment", "sampel", names))
    assert message.startswith("unknown experiment 'sampel'; did you mean 'sample'? nearest of 42: sample, samples, ")
    assert message.count(",") == 4


def test_nothing_known_is_said():
    assert str(unknown("prompt", "x", [])) == "unknown prompt 'x'; known: none"
