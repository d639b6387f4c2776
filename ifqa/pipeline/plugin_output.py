"""Checks what a retriever or a reader returned; a plugin that breaks its protocol is refused."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from numbers import Real

from ifqa.errors import PluginError
from ifqa.formats.runs import check_order
from ifqa.pipeline.stage_outputs import valid_prediction
from ifqa.records import Explanation, Hit, Passage, Prediction, Question, SearchResult
from ifqa.storage.files import unicode_text


def check_rankings(
    retriever: str, questions: Sequence[Question], k: int, rankings: Sequence[Sequence[Hit]]
) -> None:
    """Check a retriever's output.

    PluginError if a ranking is missing, too long, or holds something other than hits.
    """
    name = f"retriever {retriever!r}"
    if not isinstance(rankings, list) or len(rankings) != len(questions):
        what = len(rankings) if isinstance(rankings, list) else type(rankings).__name__
        problem = f"wanted {len(questions)}, found {what}"
        raise PluginError(
            f"{name} must return a list with one ranking for each question: {problem}"
        )
    for question, found_ranking in zip(questions, rankings, strict=True):
        ranking = found_ranking.hits if isinstance(found_ranking, SearchResult) else found_ranking
        gave = f"{name} gave {question.id}"
        if not isinstance(ranking, list | tuple) or not all(
            isinstance(hit, Hit) for hit in ranking
        ):
            raise PluginError(
                f"{gave} {ranking!r:.80}; wanted a list of ifqa.Hit(passage_id, score)"
            )
        if len(ranking) > k or len({hit.passage_id for hit in ranking}) < len(ranking):
            raise PluginError(
                f"{gave} {len(ranking)} passages; wanted at most k = {k}, and none twice"
            )
        for hit in ranking:
            name_fits = isinstance(hit.passage_id, str) and hit.passage_id.split() == [
                hit.passage_id
            ]
            if not (name_fits and isinstance(hit.score, Real) and math.isfinite(hit.score)):
                raise PluginError(
                    f"{gave} {hit!r:.80}; wanted an id without white space, "
                    "and a number as its score"
                )
        check_order(question.id, ranking)


def check_predictions(
    reader: str,
    questions: Sequence[Question],
    passages: Sequence[Sequence[Passage]],
    predictions: Sequence[Prediction],
) -> None:
    """Check a reader's output.

    PluginError unless each question has one prediction, which cites only its passages.
    """
    name = f"reader {reader!r}"
    if not isinstance(predictions, list | tuple) or not all(
        isinstance(each, Prediction) for each in predictions
    ):
        raise PluginError(
            f"{name} gave {predictions!r:.80}; wanted a list of "
            "ifqa.Prediction(question.id, answer)"
        )
    if [prediction.question_id for prediction in predictions] != [
        question.id for question in questions
    ]:
        raise PluginError(f"{name} must give one prediction for each question, in the same order")
    for prediction, read in zip(predictions, passages, strict=True):
        name = f"reader {reader!r}, {prediction.question_id}"
        if not isinstance(prediction.how, Explanation | None):
            raise PluginError(
                f"{name}: wanted ifqa.Explanation as `how`, found {prediction.how!r:.80}"
            )
        checked = valid_prediction(asdict(prediction), name)
        written = (
            checked.answer,
            checked.factual,
            checked.completion,
            checked.error,
            checked.candidate,
            *(f"{step.text}{step.result}" for step in checked.steps),
        )
        unicode_text(f"{''.join(written)}{checked.how and checked.how.calculation}", "answer", name)
        texts = {passage.id: passage.text for passage in read}
        cited = [*prediction.passage_ids, *([prediction.how.passage_id] if prediction.how else [])]
        if foreign := [passage_id for passage_id in cited if passage_id not in texts]:
            raise PluginError(
                f"{name}: cites passage {foreign[0]!r:.80}, which is not "
                "among the passages it was given"
            )
        if how := prediction.how:
            terms = how.calculation.terms if how.calculation else ()
            spans = [
                how.sentence,
                how.span,
                *how.items,
                *((term.start, term.end) for term in terms if term.source == "passage"),
            ]
            length = len(texts[how.passage_id])
            if wrong := [span for span in spans if not 0 <= span[0] <= span[1] <= length]:
                limits = f"wanted places within the passage's {length} characters in `how`"
                raise PluginError(f"{name}: {limits}, found {wrong[0]}")
