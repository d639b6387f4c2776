"""What of a passage is shown beside an answer."""

import pytest

from ifqa.records import parted
from ifqa.report.answers import excerpt

PASSAGE = (
    "left there. Design. The mill was drawn by J. P. Ash of St. Ives. It cost \"nine pounds.\" In 1820 it burned down! "
    "Was it the miller? No. 5 of the reports blamed the U.S. consul and"
)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "question", "shown"),
    [
        ("1820", "", '… It cost "nine pounds." In 1820 it burned down! Was it the miller? …'),
        ("miller", "", "… In 1820 it burned down! Was it the miller? No. 5 of the reports blamed the U.S. consul and"),
        ("burn", "Who had drawn the mill?", 'left there. Design. The mill was drawn by J. P. Ash of St. Ives. It cost "nine pounds." …'),
        ("", "Which reports blamed him?", "… Was it the miller? No. 5 of the reports blamed the U.S. consul and"),
    ],
)  # fmt: skip
def test_the_sentence_with_the_answer_or_the_questions_words_is_shown(answer, question, shown):
    assert "".join(excerpt(parted(PASSAGE, answer), question)) == shown


def test_of_several_sentences_with_the_answer_the_questions_is_shown():
    text = "Ash was born in a town. He wrote four books there. Nobody read any of them. The mill burned under Ash in May. So it was lost to all."
    assert "".join(excerpt(parted(text, "Ash"), "Who had the mill when it burned?")).startswith(
        "… Nobody read any of them. The mill"
    )
    assert "".join(excerpt(parted(text, "Ash"), "Who?")).startswith("Ash was born in a town. He wrote")


@pytest.mark.parametrize("text", ["", "One sentence alone", "Short. Ones. Only."])
def test_a_text_of_one_sentence_is_shown_whole(text):
    assert excerpt(parted(text, "x"), "y") == [text]


def test_marks_stay_on_what_was_marked():
    pieces = [
        "It rose early. It was built in ",
        "1951",
        " by Ash and Bo. It was sold in 1951 to Cy. Nobody came to it at all.",
    ]
    shown = excerpt(pieces, "When was it built?")
    assert shown == ["It rose early. It was built in ", "1951", " by Ash and Bo. It was sold in 1951 to Cy. …"]
