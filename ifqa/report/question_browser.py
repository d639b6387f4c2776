"""The data of the page's question browser: gold answers, answers and passages.

`browser_data` returns plain data with short keys for the page's script. A text in pieces is a list
of alternating plain and highlighted pieces; a text without highlights is a string. For each
benchmark and split:

    {"name": "ifqa full-dev",
     "measures": [{"name", "digits" after the point, "best": 1, or 0 where low is best}], the
                 headline first,
     "subsets": [{"name", "told": 1 if its name is shown beside its questions}],
     "experiments": [{"name", "about", "read": passages per question,
                      "deep": the rank to which gold passages are searched,
                      "answers": whether it has a reader}],
     "questions": [{"id", "q": pieces, "a": answers, "n": [indexes of its subsets],
                    "g": [pieces of each gold passage],
                    "p": [{"i": id, "t": title, "x": pieces, "g": 1 if it covers a gold one}],
                    "e": [{"x": experiment, "a": answer, "f": factual answer, "r": error,
                           "s": confidence,
                           "b": the best candidate of a reader that abstained,
                           "h": what it was computed from,
                           "n": why a language model abstained,
                           "w": pieces of the sentence that contains it,
                           "o": who found that sentence, if neither reader nor model gave it,
                           "q": what a language model quotes, "v": what became of the quote,
                           "u": 1 if the passages do not have it as one piece,
                           "d": what the supposition changes, as the model says,
                           "m": [its score in each of the measures, or null],
                           "p": [indexes of passages, best first],
                           "k": [what a language model did before it answered, in words],
                           "y": [indexes of passages that it searched for],
                           "g": rank of the first gold passage among them,
                           "c": otherwise the least K with gold recall at K}]}]}

Empty values are left out of "p" and "e".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat

from ifqa.clauses import split_question
from ifqa.config.experiment import Experiment
from ifqa.corpus.passage_store import PassageStore, get_passages
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import passages_of, predictions_of, rankings_of, stores_of
from ifqa.records import FOUND_AFTERWARDS, Passage, Prediction, Question
from ifqa.scoring.gold_overlap import covers
from ifqa.scoring.measures.gold_recall import GOLD_ANY
from ifqa.scoring.scheme import ScoringScheme, merge_schemes
from ifqa.scoring.stored_scores import read_rows, row_score
from ifqa.storage.artifacts import read_manifest

PASSAGES_SHOWN = 5  # passages shown for an experiment without a reader
_MAX_ANSWER = 500  # characters; a longer answer is not highlighted

Pieces = str | list[str]
JsonObject = dict[str, object]


def browser_data(experiments: Sequence[Experiment]) -> dict[str, list[JsonObject]]:
    """The scored experiments' questions, as above, under "splits".

    A question has no entry for an experiment that omits it.
    """
    splits: dict[tuple[str, str], list[Experiment]] = {}
    for experiment in experiments:
        if read_manifest(experiment.folder / "score"):
            splits.setdefault((experiment.benchmark, experiment.split), []).append(experiment)
    return {
        "splits": [_split_data(f"{name} {split}", group) for (name, split), group in splits.items()]
    }


@dataclass
class _Card:
    """A question, the passages that experiments read for it, and the experiments' entries."""

    question: Question
    # Not by id, because corpora may share ids
    indexes: dict[Passage, int] = field(default_factory=dict)
    passages: list[JsonObject] = field(default_factory=list)
    entries: list[JsonObject] = field(default_factory=list)

    def add(self, passage: Passage) -> int:
        """Add a passage unless it is there; returns its index."""
        if passage not in self.indexes:
            self.indexes[passage] = len(self.passages)
            gold = any(covers(passage.text, gold) for gold in self.question.gold_passages)
            text = highlight(passage.text, self.question.answers)
            self.passages.append(
                {"i": passage.id, "x": text} | _drop_empty(t=passage.title, g=int(gold))
            )
        return self.indexes[passage]

    def to_json(self, scheme: ScoringScheme) -> JsonObject:
        question = self.question
        answers = self.question.answers
        subsets = [number for number, subset in enumerate(scheme.subsets) if subset.holds(question)]
        text = question.text
        supposed = split_question(question.text).presupposition
        pieces = [*text.partition(supposed)] if supposed and supposed in text else text
        head = {"id": question.id, "q": pieces, "a": list(answers), "n": subsets}
        gold = [highlight(text, answers) for text in question.gold_passages]
        return head | {"g": gold, "p": self.passages, "e": self.entries}


def _split_data(name: str, experiments: Sequence[Experiment]) -> JsonObject:
    scheme = merge_schemes(experiment.scheme for experiment in experiments)
    keys = scheme.table_keys([measure.name for measure in scheme.answers])
    questions_of = [Run(experiment).questions for experiment in experiments]
    cards: dict[str, _Card] = {}
    for questions in sorted(questions_of, key=len, reverse=True):
        for question in questions:
            cards.setdefault(question.id, _Card(question))
    whole = dict.fromkeys(keys, True)  # whether all scores in a measure are whole numbers
    for number, (experiment, questions) in enumerate(zip(experiments, questions_of, strict=True)):
        rows = {row["id"]: row for row in read_rows(experiment.folder / "score")}
        count = _passage_count(experiment)
        predictions = (
            predictions_of(experiment, questions)
            if experiment.reader
            else repeat(None, len(questions))
        )
        evidence = passages_of(
            experiment, (ranking[:count] for ranking in rankings_of(experiment, questions))
        )
        searches = experiment.reader is not None and experiment.reader.takes("search")
        stores = stores_of(experiment) if searches else []
        for question, prediction, passages in zip(questions, predictions, evidence, strict=True):
            card = cards[question.id]
            row = rows.get(question.id)
            indexes = {passage.id: card.add(passage) for passage in passages}
            scores = [row_score(row, key) if row else None for key in keys]
            whole |= {
                key: False
                for key, score in zip(keys, scores, strict=True)
                if score and score != int(score)
            }
            ranked = enumerate(indexes.values(), start=1)
            gold = next((rank for rank, index in ranked if "g" in card.passages[index]), 0)
            depths = [
                depth
                for depth in GOLD_ANY.depths
                if row and row_score(row, f"{GOLD_ANY.name}@{depth}")
            ]
            searched = _searched_passages(prediction, passages, stores) if prediction else []
            entry = _answer_data(prediction, [*passages, *searched]) if prediction else {}
            shown = scores if any(score is not None for score in scores) else []
            least = 0 if gold else min(depths, default=0)
            entry |= _drop_empty(m=shown, p=[*indexes.values()], g=gold, c=least)
            entry |= _drop_empty(y=[card.add(passage) for passage in searched])
            card.entries.append({"x": number, **entry})
    return {
        "name": name,
        "measures": [
            {
                "name": scheme.display_name(key),
                "digits": 0 if whole[key] else 2,
                "best": int(scheme.best_value(key)),
            }
            for key in keys
        ],
        "subsets": [
            {"name": subset.name, "told": int(subset.in_tables)} for subset in scheme.subsets
        ],
        "experiments": [*map(_experiment_data, experiments)],
        "questions": [card.to_json(scheme) for card in cards.values()],
    }


def _experiment_data(experiment: Experiment) -> JsonObject:
    read = _passage_count(experiment)
    k = experiment.retriever.k if experiment.retriever else 0
    depths = (
        [depth for depth in GOLD_ANY.depths if depth <= k]
        if GOLD_ANY in experiment.scheme.rankings
        else []
    )
    head: JsonObject = {
        "name": experiment.name,
        "about": experiment.about,
        "read": read,
        "deep": max([read, *depths]),
    }
    return head | {"answers": experiment.reader is not None}


def _passage_count(experiment: Experiment) -> int:
    """The number of passages per question that the reader read, or, without a reader, that are
    shown.
    """
    if not experiment.retriever:
        return 0
    return min(
        experiment.reader.passages if experiment.reader else PASSAGES_SHOWN,
        experiment.retriever.k,
    )


def _searched_passages(
    prediction: Prediction, passages: Sequence[Passage], stores: Sequence[PassageStore]
) -> list[Passage]:
    """The passages that a prediction cites beside those that the question came with."""
    ranked = {passage.id for passage in passages}
    ids = [passage_id for passage_id in prediction.passage_ids if passage_id not in ranked]
    return get_passages(stores, ids) if stores and ids else []


def _answer_data(prediction: Prediction, passages: Sequence[Passage]) -> JsonObject:
    how = prediction.how
    texts = [passage.text for passage in passages if how and passage.id == how.passage_id]
    quote = prediction.quote
    afterwards = how is not None and how.origin == "found afterwards"
    return _drop_empty(
        a=prediction.answer,
        f=prediction.factual,
        r=prediction.error,
        s="" if prediction.confidence is None else f"{prediction.confidence:.0%}",
        b=prediction.candidate,
        n=prediction.abstention,
        q=quote.text.strip() if quote else "",
        v=quote.verdict if quote else "",
        u=int(quote is not None and quote.outcome in ("stitched", "missing")),
        d=prediction.change,
        k=[str(step) for step in prediction.steps],
        o=FOUND_AFTERWARDS if afterwards else "",
        h=str(how.calculation) if how and how.calculation else "",
        w=how.pieces(texts[0], sentence=True) if how and texts else "",
    )


def _drop_empty(**values: object) -> JsonObject:
    return {key: values[key] for key in values if values[key]}


def highlight(text: str, answers: Sequence[str]) -> Pieces:
    """A text in pieces, with the answers highlighted as whole words in any case."""
    words = [
        answer.split()
        for answer in sorted(answers, key=len, reverse=True)
        if len(answer) <= _MAX_ANSWER
    ]
    patterns = [r"\s+".join(map(re.escape, answer)) for answer in words if answer]
    pieces = re.split(rf"(?i)(?<!\w)({'|'.join(patterns)})(?!\w)", text) if patterns else [text]
    return pieces if len(pieces) > 1 else text
