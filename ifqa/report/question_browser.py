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
                           "m": [its score in each of the measures, or null],
                           "p": [which of the passages, best first], "g": rank of the first gold passage among them,
                           "c": else the least K with gold recall at K,
                           "u": [its searches, if it tells them: [query, how many passages no earlier one had found, which of the
                                 passages of "p" are among those]]}]}]}

Empty values are left out of entries of "p" and "e".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat

from ifqa.config.experiment import Experiment
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import passages_of, predictions_of, rankings_of, steps_of
from ifqa.records import Passage, Prediction, Question
from ifqa.retrieval.queries import split_question
from ifqa.scoring.measures.gold_recall import GOLD_ANY, covers
from ifqa.scoring.scheme import ScoringScheme, merge_schemes
from ifqa.scoring.score_files import read_rows, row_score
from ifqa.storage.artifacts import read_manifest

SHOWN = 5  # passages shown of an experiment without a reader
_LONGEST = 500  # characters of an answer that is marked

Pieces = str | list[str]
Object = dict[str, object]  # of JSON


def browse(experiments: Sequence[Experiment]) -> dict[str, list[Object]]:
    """The questions of the scored ones among the experiments, as above, under "splits"; in the order given.

    An experiment over only some questions has no entry for the others.
    """
    splits: dict[tuple[str, str], list[Experiment]] = {}
    for experiment in experiments:
        if read_manifest(experiment.folder / "score"):
            splits.setdefault((experiment.benchmark, experiment.split), []).append(experiment)
    return {"splits": [_split(f"{name} {split}", some) for (name, split), some in splits.items()]}


@dataclass
class _Card:
    """A question, the passages that experiments read for it with their places, and the experiments' entries."""

    question: Question
    passages: dict[Passage, int] = field(default_factory=dict)  # another corpus may have another passage of the same id
    entries: list[Object] = field(default_factory=list)
    shown: list[Object] = field(default_factory=list)

    def place(self, passage: Passage) -> int:
        """Which of the passages it is; a new one is added."""
        if passage not in self.passages:
            self.passages[passage] = len(self.shown)
            gold = any(covers(passage.text, gold) for gold in self.question.gold_passages)
            text = marked(passage.text, self.question.answers)
            self.shown.append({"i": passage.id, "x": text} | _filled(t=passage.title, g=int(gold)))
        return self.passages[passage]

    def object(self, by: ScoringScheme) -> Object:
        """The entry of "questions"."""
        question = self.question
        subsets = [number for number, subset in enumerate(by.subsets) if subset.holds(question)]
        head = {"id": question.id, "q": _question(question.text), "a": list(question.answers), "n": subsets}
        gold = [marked(text, question.answers) for text in question.gold_passages]
        return head | {"g": gold, "p": self.shown, "e": self.entries}


def _split(name: str, experiments: Sequence[Experiment]) -> Object:
    by = merge_schemes(experiment.scheme for experiment in experiments)
    keys = by.table_keys([measure.name for measure in by.answers])
    questions = [Run(experiment).questions for experiment in experiments]
    cards: dict[str, _Card] = {}
    for some in sorted(questions, key=len, reverse=True):
        for question in some:
            cards.setdefault(question.id, _Card(question))
    whole = dict.fromkeys(keys, True)  # whether all scores in a measure are whole numbers
    for number, (experiment, some) in enumerate(zip(experiments, questions, strict=True)):
        rows, count = {row["id"]: row for row in read_rows(experiment.folder / "score")}, _count(experiment)
        predictions = predictions_of(experiment, some) if experiment.reader else repeat(None, len(some))
        evidence = passages_of(experiment, (ranking[:count] for ranking in rankings_of(experiment, some)))
        for question, prediction, passages, steps in zip(
            some, predictions, evidence, steps_of(experiment, some), strict=True
        ):
            card, row = cards[question.id], rows.get(question.id)
            places = {passage.id: card.place(passage) for passage in passages}
            scores = [row_score(row, key) if row else None for key in keys]
            whole |= {key: False for key, score in zip(keys, scores, strict=True) if score and score != int(score)}
            gold = next((rank for rank, place in enumerate(places.values(), start=1) if "g" in card.shown[place]), 0)
            depths = [depth for depth in GOLD_ANY.depths if row and row_score(row, f"{GOLD_ANY.name}@{depth}")]
            searches = []
            for step in steps:
                new = [place for passage_id, place in places.items() if passage_id in step.passage_ids]
                searches.append((step.query, len(step.passage_ids), new))
            entry = _answer(prediction, passages) if prediction else {}
            entry |= _filled(
                m=scores if any(score is not None for score in scores) else [],
                p=[*places.values()],
                g=gold,
                c=0 if gold else min(depths, default=0),
                u=searches,
            )
            card.entries.append({"x": number, **entry})
    return {
        "name": name,
        "measures": [
            {"name": by.display_name(key), "digits": 0 if whole[key] else 2, "best": int(by.best_value(key))}
            for key in keys
        ],
        "subsets": [{"name": subset.name, "told": int(subset.in_tables)} for subset in by.subsets],
        "experiments": [*map(_about, experiments)],
        "questions": [card.object(by) for card in cards.values()],
    }


def _about(experiment: Experiment) -> Object:
    read, depth = _count(experiment), experiment.retriever["k"] if experiment.retriever else 0
    depths = [deep for deep in GOLD_ANY.depths if deep <= depth] if GOLD_ANY in experiment.scheme.rankings else []
    facts: Object = {"name": experiment.name, "about": experiment.about, "read": read, "deep": max([read, *depths])}
    return facts | {"answers": experiment.reader is not None}


def _count(experiment: Experiment) -> int:
    """How many passages of each question were read, or are shown if there is no reader."""
    if not experiment.retriever:
        return 0
    count: int = min(experiment.reader["passages"] if experiment.reader else SHOWN, experiment.retriever["k"])
    return count


def _answer(prediction: Prediction, passages: Sequence[Passage]) -> Object:
    how = prediction.how
    texts = [passage.text for passage in passages if how and passage.id == how.passage_id]
    return _filled(
        a=prediction.answer,
        f=prediction.factual,
        r=prediction.error,
        s="" if prediction.confidence is None else f"{prediction.confidence:.0%}",
        b=prediction.candidate,
        h=str(how.calculation) if how and how.calculation else "",
        w=how.pieces(texts[0], sentence=True) if how and texts else "",
    )


def _filled(**values: object) -> Object:
    """The values that are not empty."""
    return {key: value for key, value in values.items() if value}


def _question(text: str) -> Pieces:
    """The text of a question in pieces, its presupposition marked."""
    supposed = split_question(text).presupposition
    return [*text.partition(supposed)] if supposed and supposed in text else text


def marked(text: str, answers: Sequence[str]) -> Pieces:
    """A text in pieces, its places of the answers as whole words, in any case, marked."""
    words = [answer.split() for answer in sorted(answers, key=len, reverse=True) if len(answer) <= _LONGEST]
    wanted = [r"\s+".join(map(re.escape, answer)) for answer in words if answer]
    pieces = re.split(rf"(?i)(?<!\w)({'|'.join(wanted)})(?!\w)", text) if wanted else [text]
    return pieces if len(pieces) > 1 else text
