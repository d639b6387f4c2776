"""A folder of documents behind the server: sources in words with links, their text, their files, and those left out."""

from pathlib import Path

import pytest
from blocking_reader import FACT
from mixed_documents import pdf
from serving_system import client, small

LINES = [f"Wheel number {number} is greased by the crew in the first week of the year." for number in range(9)]


@pytest.fixture
def docs(tmp_path):
    """A folder whose first passage begins on page 1 of a PDF and has the answer on page 2."""
    folder = tmp_path / "my documents"
    (folder / "b c").mkdir(parents=True)
    (folder / "a & b.pdf").write_bytes(pdf([["The mill.", *LINES[:2]], [FACT, "The end."]]))
    (folder / "b c/notes #1.md").write_text("# Rye\n\nRye is ground on Monday.\n")
    (folder / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0")
    return folder


@pytest.fixture
def system(tmp_path, docs):
    """An experiment over the folder."""
    experiment = small(tmp_path)
    Path(tmp_path, "indexes/few.toml").write_text(f'[[passages.sources]]\nformat = "documents"\npath = "{docs}"\n')
    return experiment


@pytest.fixture
def web(system):
    with client(system) as web_client:
        yield web_client


def test_sources_are_told_in_words_with_links(web):
    [answer] = web.post("/v1/ask", json={"question": "If not, who?"}).json()["answers"]
    source = answer["evidence"][0]["source"]
    url = "/documents/a%2520%26%2520b.pdf%230%3Apage%3D1%2C2%40148"
    assert source == {"text": "a & b.pdf, p. 2", "url": url, "original": f"{url}/original#page=2"}
    ranking = web.post("/v1/retrieve", json={"question": "x", "k": 2}).json()["rankings"][0]["passages"]
    assert [passage["source"]["text"] for passage in ranking] == ["a & b.pdf, pp. 1-2", "b c/notes #1.md, lines 1-3"]
    assert ranking[1]["source"]["original"].endswith("/documents/b%2520c/notes%2520%25231.md%230%3Aline%3D1-3/original")


def test_the_folder_is_named_instead_of_the_experiments_collection(web):
    about = web.get("/v1/about").json()
    assert (about["about"], about["examples"]) == ("The documents of my documents.", [])
    assert about["documents"] == {"name": "my documents", "files": 2, "passages": 2, "left_out": 1, "updating": False}
