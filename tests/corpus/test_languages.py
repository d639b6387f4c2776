"""The language of short questions, and of a corpus."""

import pytest

from ifqa.corpus.languages import detect_language, majority_language

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


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ("no no de", "no"),
        ("no no de de", None),
        ("pl pl pl", None),
        ("", None),
    ],
)
def test_a_corpus_has_the_language_of_more_than_half_of_its_texts_if_lucene_analyses_it(
    languages, expected
):
    assert majority_language(QUESTIONS[code] for code in languages.split()) == expected
