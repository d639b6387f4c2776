"""Errors for unknown names: the nearest name, and a short list of known names."""

from ifqa.errors import unknown_name


def test_all_of_few_known_names_and_the_nearest_five_of_many_are_listed():
    names = [f"table3-{number}" for number in range(40)] + ["sample", "samples"]
    message = str(unknown_name("experiment", "sampel", names))
    assert message.startswith("unknown experiment 'sampel'; did you mean 'sample'? nearest of 42: sample, samples, ")
    assert message.count(",") == 4
    few = unknown_name("reader", "fud", ["llm", "fid"])
    assert str(few) == "unknown reader 'fud'; did you mean 'fid'? known: fid, llm"
    assert str(unknown_name("prompt", "x", [])) == "unknown prompt 'x'; known: none"
