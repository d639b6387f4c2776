"""The language of short questions, and of a corpus."""

import pytest

from ifqa.corpus.languages import (
    detect_language,
    is_plainly_english,
    majority_language,
    passage_language,
)

QUESTIONS = {
    "de": "Wenn der Müller weggezogen wäre, wer hätte dann die Schleuse geschlossen?",
    "es": "¿Quién habría cerrado la esclusa si el molinero se hubiera marchado?",
    "fr": "Si le meunier était parti, qui aurait fermé l'écluse ?",
    "it": "Chi avrebbe chiuso la chiusa se il mugnaio fosse partito?",
    "ja": "もし粉屋が引っ越していたら、誰が水門を閉めたでしょうか?",
    "nl": "Wie zou de sluis hebben gesloten als de molenaar was verhuisd?",
    "no": "Hvem kjøpte opp Sun?",
    "pl": "Kto zamknąłby śluzę, gdyby młynarz się wyprowadził?",
    "pt": "Quem teria fechado a comporta se o moleiro tivesse partido?",
    "ru": "Кто закрыл бы шлюз, если бы мельник уехал?",
    "sv": "Vem skulle ha stängt slussen om mjölnaren hade flyttat?",
    "zh": "如果磨坊主搬走了，谁会关上水闸？",
}


@pytest.mark.parametrize("language", QUESTIONS)
def test_a_short_question_tells_its_language(language):
    assert detect_language(QUESTIONS[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "who played bree van de kamp in desperate housewives",
        "If Schleswig-Holstein had joined, who?",
        "Napoleon Bonaparte",
        "Had Wilhelm Furtwängler emigrated, would the Berliner Philharmoniker have followed him?",
        "",
        "12 34",
        "\ud800",
        "💥" * 10**5,
    ],
)
def test_a_text_in_no_other_language_counts_as_english(text):
    assert detect_language(text) == "en"


TEXTS = QUESTIONS | {
    "en": "Who would have closed the sluice if the miller had moved away?",
    "no": "Mølla i Aldbrook maler rug for bakeriet i Marlow, og Tom Ferris lukker slusen.",
    "sv": "Kvarnen maler råg åt bageriet varje måndag, och mjölnaren stänger slussen på kvällen.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_sentence_of_a_passage_tells_its_language(language):
    assert passage_language(TEXTS[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "Tiny 1.",
        "Jürgen Müller, Utrecht. Jürgen Müller, Malmö.",
        "Name: Anna Svensson; town: Bergen; works since: 1998.",
        "12 34",
        "",
        "\ud800",
    ],
)
def test_a_passage_of_a_few_words_or_names_is_in_no_certain_language(text):
    assert passage_language(text) == ""


ENGLISH_PASSAGE = (
    "The mill of Aldbrook was built in 1712, and the miller of that time had three sons, of whom "
    "the eldest closed the sluice at dusk. From then on they have been millers in this valley."
)


def test_a_passage_with_the_frequent_words_of_english_is_plainly_english():
    assert is_plainly_english(ENGLISH_PASSAGE)


@pytest.mark.parametrize(
    "text",
    [
        *(5 * question for question in QUESTIONS.values()),
        "The quick fox.",
        ENGLISH_PASSAGE + " Мельник закрыл шлюз.",
    ],
)
def test_other_passages_are_not_plainly_english(text):
    assert not is_plainly_english(text)


def files(languages):
    """A file with a text of each language."""
    return [[TEXTS[language]] for language in languages.split()]


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ("no no de", "no"),
        ("no de en", None),
        ("no en en", None),
        ("pl pl pl", None),
        ("", None),
    ],
)
def test_a_folder_has_the_language_of_most_of_its_text_if_lucene_analyses_it(languages, expected):
    assert majority_language(files(languages)) == expected


def test_many_tiny_files_do_not_decide_the_language_of_a_folder():
    tiny = [[text] for text in ["Tot ziens.", "Guten Tag.", "Tiny 1."] * 1000]
    assert majority_language(tiny) is None
    assert majority_language([*tiny, *files("no")]) == "no"


def test_a_long_text_weighs_more_than_a_short_one():
    assert majority_language([[TEXTS["no"] * 5], *files("en en en")]) == "no"
