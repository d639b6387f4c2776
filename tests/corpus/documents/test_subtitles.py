"""Subtitles: what is said, with its time."""

import pytest
from mixed_documents import runs

from ifqa.corpus.documents.chunking import chunk_document, parse_locator
from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.subtitles import read_subtitles


def passages(text):
    return list(chunk_document("a.vtt", read_subtitles(text), "second"))


def test_captions_are_joined_to_sentences():
    text = "1\n00:00:01,000 --> 00:00:02,000\nThe chair of\n\n2\n00:00:02,500 --> 00:00:04,000\n<i>the mill</i> is old.\n42\n"
    assert [passage.text for passage in passages(text)] == ["The chair of the mill is old. 42"]


def test_the_place_of_a_caption_is_its_time():
    text = "WEBVTT\n\n01:01.500 --> 01:02.000\nOne\n\n01:00:05.000 --> 01:00:06.000\nTwo\n"
    assert [place for place, _, _ in runs(".vtt", text)] == [61, 3605]
    locator = parse_locator(passages(text)[0].id)
    assert locator is not None
    assert str(locator) == "a.vtt, 0:01:01-1:00:05"


def test_a_speaker_begins_a_line():
    text = (
        "WEBVTT\n\nNOTE no\nno\n\nSTYLE\n::cue {}\n\nname of cue\n00:01.000 --> 00:02.000 align:left\n"
        "<v Nora Pike>We &amp; they\n\n00:02.000 --> 00:03.000\n<v Nora Pike>agree.\n\n"
        "00:03.000 --> 00:04.000\n<v.loud Tom>No.\n- Why?\n"
    )
    assert passages(text)[0].text.split("\n") == [
        "Nora Pike: We & they agree.",
        "Tom: No.",
        "- Why?",
    ]


def test_a_line_that_rolls_up_is_read_once():
    text = "00:01.000 --> 00:02.000\nOne\nTwo\n\n00:02.010 --> 00:03.000\nTwo\nThree\n"
    assert passages(text)[0].text == "One Two Three"


@pytest.mark.parametrize(
    "tagged", ["{\\an8}<b>Hi</b>", "<c.red>Hi</c><s>no</s>", "<00:00:01.000>Hi"]
)
def test_tags_are_dropped(tagged):
    assert passages(f"00:01.000 --> 00:02.000\n{tagged}\n")[0].text == "Hi"


def test_a_file_without_times_is_unreadable():
    with pytest.raises(UnreadableFile, match="no times"):
        passages("Only text.\n")
