"""Derives reading questions by rule from others: without an answer in their passage, and with an
answer to compute.

    python bench/derived_reading.py reading.jsonl --to derived.jsonl [--unanswerable N] \
        [--arithmetic N] ...

`reading.jsonl` is as `bench/reading_files.py` writes it. The rows have its layout, for `ifqa train
extractive --reading`.

- Unanswerable (no answers, as in SQuAD 2.0): half of the questions have their context less the
  sentences that have an answer. The others have a context like the question by TF-IDF, drawn from
  the best three among those without an answer's words.
- Arithmetic: a question whose answer is a number, date or ordinal, and a supposition that changes
  it: "If it had happened three years later, when would ...?" The answer comes from the reader's own
  rules, and the step from a seeded draw.
- Incomputable: such questions with the passages of the first kind.
- Plain: questions as they are, so that the training does not unlearn them.
"""

import argparse
import logging
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ifqa.corpus.sentences import split_sentences
from ifqa.reading.span.arithmetic import compute_answers, has_supposition
from ifqa.reading.span.numbers import SCALES, Number, find_numbers
from ifqa.scoring.measures.exact_match import normalize
from ifqa.storage.files import read_jsonl, write_jsonl

logger = logging.getLogger(__name__)

Row = dict[str, Any]
# Most of each kind
COUNTS = {"unanswerable": 12_000, "arithmetic": 8_000, "incomputable": 2_500, "plain": 6_000}
FEWEST_WORDS = 25  # of a context that lost sentences
NEAREST = 3  # contexts to draw from
WORDS = "one two three four five six seven eight nine ten eleven twelve".split()
#: Suppositions with a step up and a step down; {} is the step with its unit.
MOMENT = (
    (
        "it had happened {} later",
        "this had taken place {} after that",
        "it had been delayed by {}",
        "it had come {} later than it did",
    ),
    (
        "it had happened {} earlier",
        "this had taken place {} before that",
        "it had been brought forward by {}",
        "it had come {} sooner",
    ),
)
TIME = (
    ("it had lasted {} longer", "it had taken {} more", "{} had been added to it"),
    ("it had lasted {} less", "it had been {} shorter", "it had been cut by {}"),
)
PLACE = (
    ("{} more had come before it", "it had been {} lower"),
    ("{} fewer had come before it", "it had been {} higher"),
)
COUNT = (
    (
        "there had been {} more {n}",
        "{} more {n} had been counted",
        "the number of {n} had been {} higher",
        "{} {n} had been added",
        "{} additional {n} had joined",
    ),
    (
        "there had been {} fewer {n}",
        "{} of the {n} had not been there",
        "the number of {n} had been {} lower",
        "{} {n} had been lost",
    ),
)
AMOUNT = (
    (
        "it had been {} more",
        "the figure had been {} higher",
        "{} had been added",
        "it had risen by a further {}",
    ),
    (
        "it had been {} less",
        "the figure had been {} lower",
        "{} had been taken away",
        "it had been cut by {}",
    ),
)
TIMES = ("twice as large", "doubled", "halved", "three times as large", "half as large")
#: Unit of a moment -> units of its steps, with the largest step.
MOMENT_STEPS = {
    "calendar year": (("year", 40), ("decade", 5)),
    "date": (("day", 20), ("week", 6), ("month", 10), ("year", 12)),
    "month of year": (("month", 10), ("year", 12)),
    "century": (("century", 3),),
}
_NOUN = re.compile(r"\bhow many ((?:[a-z]+ )?[a-z]+s)\b(?! of\b)", re.IGNORECASE)
_NUMERIC = re.compile(
    r"\b(?:how (?:many|much|long|old|far|high|tall|deep|wide|big|large|fast|hot|cold|heavy)"
    r"|when|years?|dates?|months?"
    r"|century|decade|per ?cent|percentage|age|price|costs?|budget|salary|population|number"
    r"|amount|size|length|height|distance"
    r"|weight|speed|rank|ranked|place|position|score|points|rate|temperature|capacity|area)\b",
    re.IGNORECASE,
)
_DID = re.compile(
    r"\b(when|(?:in )?(?:what|which) (?:year|month|date|century)"
    r"|how (?:many|much|long) ?(?:[a-z]+ ){0,2}?) did\b",
    re.IGNORECASE,
)
# First words of a question that are no names
_LOWER = ("in", "on", "what", "when", "how", "which", "by", "at", "for")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reading", type=Path)
    parser.add_argument("--to", type=Path, required=True, help="a .jsonl file")
    for kind, count in COUNTS.items():
        parser.add_argument(
            f"--{kind}", type=int, default=count, help="most questions of this kind"
        )
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    arguments = parser.parse_args()
    rows = [row for _, row in read_jsonl(arguments.reading)]
    draw = random.Random(arguments.seed)
    kinds: dict[str, list[Row]] = {kind: [] for kind in COUNTS}
    kinds["plain"] = rows
    for number, (row, contexts) in enumerate(zip(rows, nearest_contexts(rows), strict=True)):
        lacking = passage_without_answer(row, contexts, draw, cut=number % 2 == 1)
        question, answer = suppose(row, draw)
        if lacking:
            kinds["unanswerable"].append({**row, "context": lacking, "answers": []})
        if question:
            kinds["arithmetic"].append({**row, "question": question, "answers": [answer]})
        if lacking and question:
            kinds["incomputable"].append(
                {**row, "question": question, "context": lacking, "answers": []}
            )
    derived: list[Row] = []
    for kind, candidates in kinds.items():
        chosen = draw.sample(candidates, min(getattr(arguments, kind), len(candidates)))
        logger.info(f"{kind}: {len(chosen):,} of {len(candidates):,}")
        derived += [{**row, "source": f"{row['source']}, {kind}"} for row in chosen]
    write_jsonl(arguments.to, derived)


def passage_without_answer(
    row: Row, contexts: Sequence[str], draw: random.Random, cut: bool
) -> str:
    """A passage that lacks the answer: the question's own without some sentences if `cut`, or
    another; empty for none.
    """
    forms = [f" {normalize(answer)} " for answer in row["answers"]]
    rest = "".join(
        text for text in split_sentences(row["context"]) if not has_form(text, forms)
    ).strip()
    if cut and len(rest.split()) >= FEWEST_WORDS and not has_form(rest, forms):
        return rest
    if row["source"] == "nq-swap":  # another context may be the same passage with another answer
        return ""
    fitting = [text for text in contexts if not has_form(text, forms)][:NEAREST]
    return draw.choice(fitting) if fitting else ""


def has_form(text: str, forms: Sequence[str]) -> bool:
    normalized = f" {normalize(text)} "
    return any(form in normalized for form in forms)


def nearest_contexts(rows: Sequence[Row]) -> Iterator[list[str]]:
    """For each question its ten most similar contexts, best first, without its own."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    contexts = list(dict.fromkeys(row["context"] for row in rows))
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    table = vectorizer.fit_transform(contexts).T.tocsr()
    for start in range(0, len(rows), 256):
        batch = rows[start : start + 256]
        scores = (vectorizer.transform([row["question"] for row in batch]) @ table).toarray()
        best = np.argpartition(-scores, 12, axis=1)[:, :12]
        for row, score, places in zip(batch, scores, best, strict=True):
            order = sorted(places, key=lambda place: -score[place])
            yield [contexts[place] for place in order if contexts[place] != row["context"]][:10]


def suppose(row: Row, draw: random.Random) -> tuple[str, str]:
    """The question with a supposition that moves its answer, and that answer.

    Empty unless it is a single number.
    """
    question = row["question"]
    context = row["context"]
    answer = row["answers"][0]
    start = context.find(answer)
    inside = [
        number
        for number in find_numbers(context)
        if start <= number.start and number.end <= start + len(answer)
    ]
    if (
        len(inside) != 1
        or start < 0
        or len(answer.split()) > 4
        or has_supposition(question)
        or not _NUMERIC.search(question)
    ):
        return "", ""
    for _ in range(4):  # a step that the rules refuse is drawn again
        if change := draw_step(inside[0], question, draw):
            supposition, operation = change
            text, (first, last) = phrase(supposition, question, draw)
            steps = [
                step
                for step in find_numbers(text, in_question=True)
                if first <= step.start and step.end <= last
            ]
            answers = {compute_answers(inside[0], step, text)[operation] for step in steps}
            if len(texts := [each for each in answers if each]) == 1:
                return text, texts[0]
    return "", ""


def draw_step(number: Number, question: str, draw: random.Random) -> tuple[str, int] | None:
    """A supposition, and the place of its result in `compute_answers`: 0 for a sum or a product, 1
    for a difference.
    """
    unit = number.unit.rstrip("?")
    side = 0 if draw.random() < 0.55 else 1
    if unit in MOMENT_STEPS:
        period, most = draw.choice(MOMENT_STEPS[unit])
        count = draw.randint(1, most)
        return draw.choice(MOMENT[side]).format(with_period(count, period, draw)), side
    if unit in ("ordinal", "nth"):
        return draw.choice(PLACE[side]).format(spell(draw.randint(1, 4), draw) + " places"), side
    if draw.random() < 0.12 and unit != "%":
        return f"the figure had been {draw.choice(TIMES)}", 0
    most = number.value if unit or number.value < 20 else number.value / 2
    step = draw.randint(1, max(1, int(min(most, 10 ** draw.randint(1, 5)))))
    if step > 100:
        step = round(step, -len(str(step)) + 2)
    if side == 1 and step >= number.value:
        return None
    if unit == "%":
        return draw.choice(AMOUNT[side]).format(
            f"{step}%" if draw.random() < 0.5 else f"{step} percent"
        ), side
    if unit in SCALES:
        return draw.choice(AMOUNT[side]).format(f"{number.before}{step} {unit}"), side
    if unit:
        return draw.choice(TIME[side]).format(with_period(step, unit, draw)), side
    if number.before or number.behind:
        text = f"{number.before}{step:,}{number.behind}"
        return draw.choice(AMOUNT[side]).format(text), side
    if noun := _NOUN.search(question):
        return draw.choice(COUNT[side]).format(spell(step, draw), n=noun[1].lower()), side
    return draw.choice(AMOUNT[side]).format(spell(step, draw)), side


def with_period(count: int, period: str, draw: random.Random) -> str:
    if count == 1 and draw.random() < 0.5:
        return f"a {period}".replace("a hour", "an hour")
    plural = {"century": "centuries"}.get(period, f"{period}s")
    return f"{spell(count, draw)} {period if count == 1 else plural}"


def spell(count: int, draw: random.Random) -> str:
    return WORDS[count - 1] if count <= len(WORDS) and draw.random() < 0.6 else f"{count:,}"


def phrase(supposition: str, question: str, draw: random.Random) -> tuple[str, tuple[int, int]]:
    """The question under the supposition, and where that stands.

    Verbs mostly stay as they are, because they are hard to turn.
    """
    question = _DID.sub(lambda match: f"{match[1]} would", question, count=1)
    if draw.random() < 0.2:
        main = question.rstrip("?. ")
        return f"{main} if {supposition}?", (len(main), len(main) + len(supposition) + 4)
    clause = f"{draw.choice(('If', 'If', 'If', 'Suppose'))} {supposition}"
    if supposition.startswith(("it had ", "this had ")) and draw.random() < 0.25:
        clause = f"Had {supposition.replace(' had ', ' ', 1)}"
    lower = question.split(" ", 1)[0].lower() in _LOWER
    return f"{clause}, {question[0].lower() if lower else question[0]}{question[1:]}", (
        0,
        len(clause),
    )


if __name__ == "__main__":
    main()
