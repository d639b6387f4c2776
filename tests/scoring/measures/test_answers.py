"""Answer scores, case by case and against torchmetrics' SQuAD."""

import json
import random
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.scoring.measures.contains import contains
from ifqa.scoring.measures.exact_match import exact_match, normalize
from ifqa.scoring.measures.f1 import f1
from ifqa.scoring.measures.numeric import is_numeric

untimed = settings(deadline=None)
SEEDS = [
    *("Paris", "the United Kingdom", "U.S.", "the U.S. Army", "New York City", "A", "The", "a the an", "", " "),
    *("10000", "3.5", "35", "$6.4 million", "twenty-one", "three years", "1987-88", "1914–1918", "May 4, 1979", "An"),
    *("10,000", "yes", "mid-1930s", "AC/DC", "R&D", "rock 'n' roll", "O’Brien", "O'Brien", "São Paulo", "Łódź"),
    *("İstanbul", "Straße", "ΟΔΥΣΣΕΥΣ", "Ναύπλιο", "東京", "Ha Long Bay", "two two one", "no", "-", "..."),
    *("co-operation", "Beyoncé", "50%", "World War II", "Anna and the King", "theatre", "Tyrannosaurus rex", "№ 5"),
    *("½ mile", "—", "H₂O"),
]
RELEASE = Path(__file__).parents[3] / "data/ifqa"  # where `ifqa data` puts it in a checkout


def mutate(text: str, rng: random.Random) -> str:
    """An answer as a reader might spell it: nearly the gold answer, or different by a word or a character."""
    words = text.split()
    match rng.randrange(16):
        case 0:
            return f"{rng.choice(['a', 'an', 'the', 'The', 'A'])} {text}"
        case 1:
            return text.replace("-", rng.choice([" ", "–", "", "—"]))
        case 2:
            return unicodedata.normalize(rng.choice(["NFD", "NFC", "NFKD"]), text)
        case 3:
            return "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))
        case 4:
            return text.replace(",", "").replace(".", "")
        case 5:
            return rng.choice([str.upper, str.lower, str.title, str.swapcase])(text)
        case 6:
            return text + rng.choice([".", "!", " ", "\n", "'s", "\u00a0", "’"])
        case 7:
            return rng.choice(["", " ", "the", ".", "an a"])
        case 8 if words:
            return " ".join(rng.sample(words, rng.randint(1, len(words))))
        case 9 if words:
            return f"{text} {rng.choice(words)}"
        case 10 if text:
            cut = rng.randrange(len(text))
            return text[:cut] + text[cut + 1 :]
        case 11 if text:
            cut = rng.randrange(len(text))
            return text[:cut] + rng.choice([" ", "-", "–", ",", "a", "\t", "\u0301", "5"]) + text[cut:]
        case 12:
            return f"It was {text}, in the end"
        case 13:
            return str(rng.choice([rng.randrange(100), f"{rng.randrange(1000, 99999):,}", rng.random()]))
        case 14:
            return mutate(mutate(text, rng), rng)
    return text


def test_agrees_with_torchmetrics_on_mutated_answers() -> None:
    from torchmetrics.functional.text import squad

    rng = random.Random(20231206)
    seeds = list(SEEDS)
    for file in sorted(RELEASE.glob("*/*.json")):  # the real answers too, where the release lies beside the repository
        seeds += {answer for row in json.loads(file.read_text(encoding="utf-8")) for answer in row["answers"]}
    seen = set()
    for _ in range(1_000):
        golds = rng.sample(seeds, rng.choice([1, 1, 2, 3]))
        answer = mutate(rng.choice(golds), rng)
        target = {"id": "0", "answers": {"text": golds, "answer_start": [0] * len(golds)}}
        theirs = squad({"prediction_text": answer, "id": "0"}, target)
        ours = exact_match(answer, golds), f1(answer, golds)
        wanted = theirs["exact_match"].item() / 100, theirs["f1"].item() / 100
        assert ours == pytest.approx(wanted, abs=1e-6), (answer, golds)
        seen.add("EM" if ours[0] else "F1" if ours[1] else "none")
    assert seen == {"EM", "F1", "none"}


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Beatles ", "beatles"),
        ("U.S.", "us"),
        ("2018-19", "201819"),
        ("10,000", "10000"),
        ("3.5", "35"),
        ("A", ""),
        ("an A, the", ""),
        ("A&M", "am"),
        ("a-n", ""),  # joined before articles are dropped
        ("Anna, theatre", "anna theatre"),
        ("1914–1918", "1914–1918"),  # an en dash is no ASCII punctuation
        ("São Paulo\u00a0\n", "são paulo"),
        ("", ""),
        ("...", ""),
    ],
)
def test_normalizes_as_squad(text: str, normal: str) -> None:
    assert normalize(text) == normal


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("10000", "10,000"),
        ("Eiffel tower.", "the Eiffel Tower"),
        ("coop", "co-op"),
        ("35", "3.5"),  # the known false match
        ("", "A"),
        ("the", "A"),
    ],
)
def test_equal_once_normalized(answer: str, gold: str) -> None:
    assert exact_match(answer, [gold]) == f1(answer, [gold]) == contains(answer, [gold]) == 1.0


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("co op", "co-op"),
        ("1914-1918", "1914–1918"),
        (unicodedata.normalize("NFD", "Łódź"), "Łódź"),
        ("five", "5"),
        ("b", "A"),
        ("", "Paris"),
    ],
)
def test_differ_though_close(answer: str, gold: str) -> None:
    assert exact_match(answer, [gold]) == f1(answer, [gold]) == contains(answer, [gold]) == 0.0


def test_combining_accents_are_not_composed() -> None:
    assert exact_match(unicodedata.normalize("NFD", "Beyoncé"), ["Beyoncé"]) == 0.0


def test_best_gold_counts() -> None:
    assert exact_match("5", ["five", "5"]) == 1.0
    assert f1("New York", ["the city of New York", "York", "Boston"]) == pytest.approx(2 / 3)
    assert contains("about five men", ["5", "five"]) == 1.0


def test_f1_counts_repeated_tokens_once_each() -> None:
    assert f1("two two one", ["two one one"]) == pytest.approx(2 / 3)


def test_containment_is_of_whole_tokens_in_order() -> None:
    assert contains("It opened in New York in 1931.", ["New York"]) == 1.0
    assert contains("York, New", ["New York"]) == 0.0
    assert contains("19310", ["1931"]) == 0.0
    assert contains("New", ["New York"]) == 0.0
    assert contains("Paris", ["A"]) == 0.0  # "A" normalises to nothing, which every text would contain


def test_golds_must_be_several_strings() -> None:
    with pytest.raises(IfqaError, match="without gold answers"):
        exact_match("Paris", [])
    with pytest.raises(TypeError, match="not one string"):
        f1("Paris", "Paris")


@untimed
@given(st.text(), st.lists(st.text(), min_size=1))
def test_scores_are_ordered(answer: str, golds: list[str]) -> None:
    assert 0 <= exact_match(answer, golds) <= min(f1(answer, golds), contains(answer, golds)) <= 1


@untimed
@given(st.text(), st.text())
def test_f1_is_symmetric_and_normalizing_twice_changes_nothing(one: str, other: str) -> None:
    assert f1(one, [other]) == f1(other, [one])
    assert normalize(normalize(one)) == normalize(one)


NUMERIC = [
    *("5", "five", "Twenty-one", "10,000", "3.5 years", "three years", "$6.4 million", "Rs. 550 billion", "2nd"),
    *("More than 10%", "fourth", "50th", "1999", "May", "May 4, 1979", "4 May 1979", "mid-1930s", "Early 1990s"),
    *("In 1991.", "1930s and 1940s", "300 MHz", "500 BC", "45.50° N", "6-0", "#54", "7.4-kilometre, 4.6 mi", "−40"),
]
OTHER = [
    *("Paris", "K2", "World War I", "2018 FIFA World Cup", "Bob May", "Three Rivers Stadium", "F-117", "Unicode 2.0"),
    *("the", "Two-seat roadsters", "helium-3", "yes", "", "No", "top-35 qualifying rule", "Five Nights at Freddy's"),
]


@pytest.mark.parametrize("gold", NUMERIC)
def test_numbers_and_dates_are_numeric(gold: str) -> None:
    assert is_numeric([gold])


@pytest.mark.parametrize("gold", OTHER)
def test_names_with_numbers_in_them_are_not_numeric(gold: str) -> None:
    assert not is_numeric([gold])


def test_numeric_when_half_the_forms_are() -> None:
    assert is_numeric(["fourty", "40"])
    assert not is_numeric(["Intersex people", "second-type female", "second kind of woman"])
    assert not is_numeric([])
