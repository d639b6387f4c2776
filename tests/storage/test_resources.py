"""Which of several files of the same name is found."""

from ifqa.storage.resources import find_resource, list_resources


def test_a_resource_is_looked_for_nearby_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bundled = find_resource("experiments/sample.toml")
    assert bundled is not None
    own = tmp_path / "experiments" / "sample.toml"
    own.parent.mkdir()
    own.write_text("")
    assert find_resource("experiments/sample.toml") == own
    assert list_resources("experiments", ".toml")["sample"] == own
    assert find_resource("experiments/nothing.toml") is None
