"""Data for reading every question of finished experiments: gold answers, answers, and passages that were read.

`browse` gives plain data with short keys for the page's script. A text in pieces is a list in which every second piece, from
the second on, is marked; a text without marks is a string. For each benchmark and split:

    {"name": "ifqa full-dev",
     "measures": [{"name", "digits" after the point, "best": 1, or 0 where low is best}], the headline first,
     "subsets": [{"name", "told": 1 if its name is shown beside its questions}],
     "experiments": [{"name", "about", "read": passages a question, "deep": rank down to which gold passages are searched,
                      "answers": whether it has a reader}],
     "questions": [{"id", "q": pieces, "a": answers, "n": [which of the subsets], "g": [pieces of each gold passage],
                    "p": [{"i": id, "t": title, "x": pieces, "g": 1 if it covers a gold one}],
                    "e": [{"x": experiment, "a": answer, "f": factual answer, "r": error, "s": confidence,
                           "b": the best candidate of a reader that abstained, "h": what it was computed from,
                           "w": pieces of the sentence it stands in,
                           "o": of an answer that is not right: which of the passages it was found in, and there the starts and
                                ends of its places, in UTF-16 units, as JavaScript counts,
                           "m": [its score in each of the measures, or null],
                           "p": [which of the passages, best first], "g": rank of the first gold passage among them,
                           "c": else the least K with gold recall at K,
                           "u": [its searches, if it tells them: [query, how many passages no earlier one had found, which of the
                                 passages of "p" are among those]]}]}]}

Empty values are left out of entries of "p" and "e".
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TypedDict, cast

from ifqa.config.experiment import Experiment
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import passages_of, predictions_of, rankings_of, steps_of
from ifqa.records import How, Passage, Prediction, Question, Step, parted
from ifqa.retrieval.queries import split_question
from ifqa.scoring.measures.answer_recall import has_answer
from ifqa.scoring.measures.gold_recall import GOLD_ANY, covers
from ifqa.scoring.scheme import Declared, joined
from ifqa.scoring.score_files import Row, read_rows, score_in
from ifqa.storage.artifacts import read_manifest

SHOWN = 5  # passages shown of an experiment without a reader


Pieces = str | list[str]


class _Read(TypedDict, total=False):
    i: str
    t: str
    x: Pieces
    g: int


class _Entry(TypedDict, total=False):
    x: int
    a: str
    f: str
    r: str
    h: str
    w: Pieces
    o: list[int]
    s: str
    b: str
    m: list[float | None]
    p: list[int]
    g: int
    c: int
    u: list[tuple[str, int, list[int]]]


class _Card(TypedDict):
    id: str
    q: Pieces
    a: list[str]
    n: list[int]
    g: list[Pieces]
    p: list[_Read]
    e: list[_Entry]


def browse(experiments: Sequence[Experiment]) -> dict[str, list[dict[str, object]]]:
    """The questions of the scored ones among the experiments, as above, under "splits"; in the order given.

    An experiment over only some questions has no entry for the others.

    Raises:
        IfqaError: a file of a stage, or the benchmark's, is missing or damaged.
    """
    splits: dict[tuple[str, str], list[Experiment]] = {}
    for experiment in experiments:
        if read_manifest(experiment.folder / "score"):
            splits.setdefault((experiment.benchmark, experiment.split), []).append(experiment)
    return {"splits": [_split(f"{name} {split}", some) for (name, split), some in splits.items()]}


def _split(name: str, experiments: Sequence[Experiment]) -> dict[str, object]:
    asked = [Run(experiment).questions for experiment in experiments]
    longest_first = sorted(asked, key=len, reverse=True)
    by = _declared(experiments)
    cards: dict[str, _Card] = {}
    for question in (question for questions in longest_first for question in questions):
        if question.id not in cards:
            cards[question.id] = _card(question, by)
    known: dict[str, dict[Passage, int]] = {question_id: {} for question_id in cards}
    for number, (experiment, questions) in enumerate(zip(experiments, asked, strict=True)):
        for question, entry, passages in _entries(experiment, questions, by):
            card, own = cards[question.id], known[question.id]
            for passage in passages:
                if passage not in own:  # another corpus may have another passage of the same id
                    own[passage] = len(own)
                    card["p"].append(_passage(passage, question))
            read = [own[passage] for passage in passages]
            gold = next((rank for rank, one in enumerate(read, start=1) if "g" in card["p"][one]), 0)
            if gold:
                entry.pop("c", None)
            if "o" in entry:
                entry["o"][0] = read[entry["o"][0]]
            if "u" in entry:
                entry["u"] = [(query, new, [read[one] for one in found]) for query, new, found in entry["u"]]
            card["e"].append(cast(_Entry, _filled({"x": number}, {**entry, "p": read, "g": gold})))
    return {
        "name": name,
        "measures": _measures(by, [entry for card in cards.values() for entry in card["e"]]),
        "subsets": [{"name": one.name, "told": int(one.in_tables)} for one in by.subsets],
        "experiments": [*map(_about, experiments)],
        "questions": [*cards.values()],
    }


def _declared(experiments: Sequence[Experiment]) -> Declared:
    return joined(one.scheme for one in experiments)


def _shown(by: Declared) -> list[str]:
    """The measures of single answers that tables show, the headline first."""
    return by.shown([one.name for one in by.answers])


def _measures(by: Declared, entries: Sequence[_Entry]) -> list[dict[str, object]]:
    """These measures as the page wants them; without digits after the point if all scores are whole numbers."""
    found: list[dict[str, object]] = []
    for number, name in enumerate(_shown(by)):
        values = [entry["m"][number] for entry in entries if "m" in entry]
        whole = all(value is None or value == int(value) for value in values)
        found.append({"name": by.marked(name), "digits": 0 if whole else 2, "best": int(by.best(name))})
    return found


def _about(experiment: Experiment) -> dict[str, object]:
    read, depth = _read(experiment), experiment.retriever["k"] if experiment.retriever else 0
    by = experiment.scheme
    depths = [one for one in GOLD_ANY.depths if one <= depth] if GOLD_ANY in by.rankings else []
    return {
        "name": experiment.name,
        "about": experiment.about,
        "answers": experiment.reader is not None,
        "read": read,
        "deep": max([read, *depths]),
    }


def _read(experiment: Experiment) -> int:
    """How many passages of each question were read, or are shown if there is no reader."""
    if not experiment.retriever:
        return 0
    count: int = min(experiment.reader["passages"] if experiment.reader else SHOWN, experiment.retriever["k"])
    return count


def _card(question: Question, by: Declared) -> _Card:
    return {
        "id": question.id,
        "q": _question(question.text),
        "a": list(question.answers),
        "n": [number for number, one in enumerate(by.subsets) if one.holds(question)],
        "g": [cut(text, answer_spans(text, question.answers)) for text in question.gold_passages],
        "p": [],
        "e": [],
    }


def _question(text: str) -> Pieces:
    """The text of a question in pieces, its presupposition marked."""
    supposed = split_question(text).presupposition
    start = text.find(supposed)
    return cut(text, [(start, start + len(supposed))] if supposed else [])


def _passage(passage: Passage, question: Question) -> _Read:
    text = cut(passage.text, answer_spans(passage.text, question.answers))
    gold = any(covers(passage.text, gold) for gold in question.gold_passages)
    return cast(_Read, _filled({"i": passage.id, "x": text}, {"t": passage.title, "g": int(gold)}))


def _filled(needed: Mapping[str, object], more: Mapping[str, object]) -> dict[str, object]:
    """The `needed` values, and those of `more` that are not empty."""
    return {**needed, **{key: value for key, value in more.items() if value}}


def _entries(
    experiment: Experiment, questions: Sequence[Question], by: Declared
) -> Iterator[tuple[Question, _Entry, list[Passage]]]:
    """Each question with an experiment's entry and the passages it read, best first."""
    rows = {row["id"]: row for row in read_rows(experiment.folder / "score")}
    several = passages_of(experiment, (ranking[: _read(experiment)] for ranking in rankings_of(experiment, questions)))
    predictions: Iterable[Prediction | None] = [None] * len(questions)
    if experiment.reader:
        predictions = predictions_of(experiment, questions)
    shown = _shown(by)
    searched = steps_of(experiment, questions)
    for question, prediction, passages, steps in zip(questions, predictions, several, searched, strict=True):
        scores = _scores(rows.get(question.id), shown)
        entry: _Entry = {**scores, **_answer(prediction, passages)}
        if prediction and scores.get("m") and scores["m"][0] not in (None, by.best(shown[0])):
            entry |= _place(prediction, passages)
        if steps:
            entry["u"] = [_search(step, passages) for step in steps]
        yield question, entry, passages


def _search(step: Step, passages: Sequence[Passage]) -> tuple[str, int, list[int]]:
    """A search: its query, how many passages it found first, and which of the passages read are among those."""
    return step.query, len(step.passage_ids), [n for n, one in enumerate(passages) if one.id in step.passage_ids]


def _scores(row: Row | None, shown: Sequence[str]) -> _Entry:
    """The score in each shown measure, and the least K with a gold passage among the first K."""
    depths = [depth for depth in GOLD_ANY.depths if row and score_in(row, f"{GOLD_ANY.name}@{depth}")]
    scores = [score_in(row, name) if row else None for name in shown]
    least: _Entry = {"c": min(depths, default=0)}
    return {"m": scores, **least} if any(one is not None for one in scores) else least


def _answer(prediction: Prediction | None, passages: Iterable[Passage]) -> _Entry:
    if prediction is None:
        return {}
    sure = "" if prediction.confidence is None else f"{prediction.confidence:.0%}"
    texts: _Entry = {"a": prediction.answer, "f": prediction.factual, "r": prediction.error}
    return {**texts, "s": sure, "b": prediction.candidate, **_how(prediction.how, passages)}


def _how(how: How | None, passages: Iterable[Passage]) -> _Entry:
    if how is None:
        return {}
    text = next((one.text for one in passages if one.id == how.passage_id), "")
    calculation = str(how.calculation) if how.calculation else ""
    return {"h": calculation, "w": how.pieces(text, sentence=True) if text else ""}


def _place(prediction: Prediction, passages: Sequence[Passage]) -> _Entry:
    """Where an answer stands: as its reader says, else in the first passage that has it as whole words."""
    if not prediction.answer:
        return {}
    how = prediction.how
    for number, passage in enumerate(passages):
        if how and how.passage_id != passage.id:
            continue
        pieces = how.pieces(passage.text) if how else parted(passage.text, prediction.answer)
        if len(pieces) > 1:
            edges = [*accumulate(len(piece.encode("utf-16-le", "surrogatepass")) // 2 for piece in pieces)]
            return {"o": [number, *edges[:-1]]}
    return {}


def cut(text: str, spans: Sequence[tuple[int, int]]) -> Pieces:
    """The text in pieces, the spans (rising, apart) at the odd places; the text itself if there are no spans."""
    if not spans:
        return text
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def answer_spans(text: str, answers: Collection[str]) -> list[tuple[int, int]]:
    """The places of answers in a text, token by token: (start, end) in characters, rising; touching spans are joined.

    There is a span exactly if `has_answer` is true. A span never separates a letter from its accents.
    """
    if not has_answer(text, answers):
        return []
    tokens = _tokens(text)
    line, number_at = " ", {}
    for number, (token, _, _) in enumerate(tokens):
        number_at[len(line) - 1] = number
        line += f"{token} "
    number_at[len(line) - 1] = len(tokens)
    found: list[tuple[int, int]] = []
    for wanted in {tuple(token for token, _, _ in _tokens(answer)) for answer in answers} - {()}:
        phrase = f" {' '.join(wanted)} "
        place = line.find(phrase)
        while place >= 0:
            first, last = number_at[place], number_at[place + len(phrase) - 1] - 1
            found.append((tokens[first][1], tokens[last][2]))
            place = line.find(phrase, place + 1)
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _tokens(text: str) -> list[tuple[str, int, int]]:
    """The tokens that `has_answer` compares, each with its start and end in the text before NFD."""
    tokens: list[tuple[str, int, int]] = []
    joins = False  # whether a letter, number or mark continues the last token
    for start, end in _clusters(text):
        for char in unicodedata.normalize("NFD", text[start:end]):
            kind = unicodedata.category(char)[0]
            if kind in "ZC":
                joins = False
            elif joins and kind in "LNM":
                tokens[-1] = (tokens[-1][0] + char, tokens[-1][1], end)
            else:
                tokens.append((char, start, end))
                joins = kind in "LNM"
    return [(token.lower(), start, end) for token, start, end in tokens]


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """The parts of a text that NFD treats separately: a character and the marks after it, which NFD may reorder."""
    start = 0
    for place in range(1, len(text)):
        char = text[place]
        if char < "\u0300" or not unicodedata.combining(unicodedata.normalize("NFD", char)[0]):
            yield start, place
            start = place
    if text:
        yield start, len(text)
