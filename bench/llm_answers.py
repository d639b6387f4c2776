"""What a language model's answers rest on, and how well their confidence was fitted.

    python bench/llm_answers.py --model qwen2.5-coder-1.5b [--prompt grounded] [--passages 3] \
        [--train 300] [--test 200] [--samples 5 --temperature 0.7] \
        [--set SETTING=VALUE ...] [--stored] [--weigh] [--features FILE] [--curves FILE.svg]
    python bench/llm_answers.py --borrow FILE FILE ...

Questions are drawn by a seed from IfQA's full-train and full-dev. Training questions are read from
BM25's passages of the corpus ifqa-pool-50k; those of full-dev once from the annotated passages
("given") and once from BM25's ("retrieved"). Completions are stored, and asked in turn (a training
question, the next given, the next retrieved), so that an interrupted run has some of each and goes
on where it stopped. --stored asks nothing, and counts the questions with a stored completion.

It prints the outcomes of the quotes, EM, abstentions, how often the model's sentence is the span
reader's, and the AUROC of right answers, calibration error, EM-50 and EM-80 of confidences that were
fitted on the training questions, and the AUROC of single features: the answer's log probability, the
agreement of --samples, and the span reader's share. Then it prints the EM of the span reader, of the
model, and of the cascade of both, as it decides with a served model (by both fitted confidences)
and, with --weigh, in this process (by log probabilities). --curves draws the wrong answers among the
surest questions (risk against coverage).

--features writes the confidences' features. --borrow reads such files, one for each model, and
prints for each the measures of confidences that were fitted on it, and on all the others.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ifqa.benchmarks.ifqa import IfQA
from ifqa.cli.options import settings_of_flags
from ifqa.corpus.passage_store import PassageStore
from ifqa.errors import MissingInput
from ifqa.llms.cache import CompletionCache
from ifqa.llms.hf import HF
from ifqa.llms.llama_cpp import LlamaCpp
from ifqa.plugins import Plugins
from ifqa.progress import bar
from ifqa.protocols import LanguageModel
from ifqa.reading.cascade import Cascade
from ifqa.reading.llm import Llm, Reply
from ifqa.reading.llm_confidence import fitted_confidence
from ifqa.records import Passage, Prediction, Question, gold_id
from ifqa.report.svg import RISK, Curve, curves_svg
from ifqa.scoring.measures.confidence import AUROC, ECE, EM_50, EM_80, calibration_curves
from ifqa.scoring.measures.exact_match import exact_match, f1
from ifqa.scoring.statistics import ColumnStatistic
from ifqa.settings import parse_settings
from ifqa.storage.files import read_jsonl
from ifqa.training.llm_calibration import LlmAnswer, fit_answers

SEED = 72
POOL = Path("indexes/ifqa-pool-50k")
PARTS = ("train", "given", "retrieved")
BATCH = 4  # questions asked together
SURE = 0.5  # the cascade's default
SINGLE_FEATURES = ("log_probability", "agreement", "span_share")


class Task(NamedTuple):
    """A question of a part, and the passages that it is read from."""

    part: str
    question: Question
    passages: list[Passage]


def draw(split: str, count: int) -> list[Question]:
    questions = list(IfQA(Path()).questions(split))
    random.Random(SEED).shuffle(questions)
    return questions[:count]


def retrieved(questions: Sequence[Question], depth: int) -> list[list[Passage]]:
    bm25 = Plugins().retriever("bm25")
    retriever = bm25(bm25.Settings(), index=POOL / "bm25")
    store = PassageStore(POOL / "passages")
    rankings = retriever.search(questions, depth)
    return [store.get([hit.passage_id for hit in ranking]) for ranking in rankings]


def given(questions: Sequence[Question], depth: int) -> list[list[Passage]]:
    return [
        [Passage(gold_id(text), "", text) for text in question.gold_passages][:depth]
        for question in questions
    ]


def plan(train: int, test: int, depth: int) -> Iterator[Task]:
    """All tasks, a question of each part in turn."""
    training = draw("full-train", train)
    dev = draw("full-dev", test)
    readings = {
        "train": list(zip(training, retrieved(training, depth), strict=True)),
        "given": list(zip(dev, given(dev, depth), strict=True)),
        "retrieved": list(zip(dev, retrieved(dev, depth), strict=True)),
    }
    for n in range(max(train, test)):
        for part, reading in readings.items():
            if n < len(reading):
                yield Task(part, *reading[n])


def read(reader: Llm, tasks: Sequence[Task]) -> list[Reply]:
    replies = list[Reply]()
    with bar("asking", len(tasks)) as advance:
        for start in range(0, len(tasks), BATCH):
            batch = tasks[start : start + BATCH]
            questions = [task.question for task in batch]
            asked = reader.ask(questions, [task.passages for task in batch], advance)
            replies += reader.explain(asked)
    return replies


def stored_tasks(reader: Llm, tasks: Sequence[Task], store: CompletionCache) -> list[Task]:
    """The tasks whose completions are stored; MissingInput if there are none."""
    kept = []
    for task in tasks:
        requests = reader.requests([task.question], [task.passages])
        if not store.missing(reader.llm.name, requests):
            kept.append(task)
    if not kept:
        raise MissingInput(f"no completion of {reader.llm.name} is stored; leave out --stored")
    return kept


def is_right(reply: Reply) -> bool:
    return exact_match(reply.prediction.answer, reply.question.answers) > 0


def show_quotes(part: str, replies: Sequence[Reply]) -> None:
    """A row of the outcomes of quotes, over all questions."""
    predictions = [reply.prediction for reply in replies]
    outcomes = Counter(
        prediction.quote.outcome if prediction.quote else "none" for prediction in predictions
    )
    count = len(replies)
    shares = [
        f"{100 * outcomes[name] / count:.1f}"
        for name in ("exact", "other passage", "stitched", "missing", "none")
    ]
    em = 100 * sum(map(is_right, replies)) / count
    overlap = [f1(reply.prediction.answer, reply.question.answers) for reply in replies]
    abstained = sum(prediction.abstained for prediction in predictions)
    failed = sum(prediction.failed for prediction in predictions)
    cells = [part, str(count), *shares, f"{em:.1f}", f"{100 * sum(overlap) / count:.1f}"]
    print("|", " | ".join([*cells, str(abstained), str(failed), same_sentences(replies)]), "|")


def same_sentences(replies: Sequence[Reply]) -> str:
    """How often the sentence that the model quotes is the one that the span reader reads from."""
    pairs = [
        (reply.prediction.how, reply.read.prediction.how)
        for reply in replies
        if reply.read and reply.prediction.how and reply.prediction.how.origin == "quoted"
    ]
    both = [(mine, its) for mine, its in pairs if its]
    same = sum(
        mine.passage_id == its.passage_id
        and mine.sentence[0] < its.sentence[1]
        and its.sentence[0] < mine.sentence[1]
        for mine, its in both
    )
    return f"{same} of {len(both)}"


def answers_of(reader: Llm, replies: Sequence[Reply]) -> list[LlmAnswer]:
    return [LlmAnswer(0, is_right(reply), reader.features(reply)) for reply in replies]


def show_confidence(part: str, training: Sequence[LlmAnswer], answers: Sequence[LlmAnswer]) -> None:
    """A row of measures of the confidences of one part, fitted on the training questions.

    Over all questions: one without an answer is wrong, with a confidence of 0.
    """
    fits = fit_answers(training)
    columns = np.array(
        [[fitted_confidence(each.features, *fits), float(each.right)] for each in answers]
    )
    values = [ColumnStatistic(measure, columns).value for measure in (AUROC, ECE, EM_50, EM_80)]
    cells = ["-" if value is None else f"{100 * value:.1f}" for value in values]
    print("|", " | ".join([part, str(len(answers)), *cells]), "|")


def show_single_features(part: str, answers: Sequence[LlmAnswer]) -> None:
    """A row of the AUROC of right answers by features alone; "-" where a reply lacks the feature."""
    cells = []
    for name in SINGLE_FEATURES:
        if not all(name in each.features for each in answers):
            cells.append("-")
            continue
        columns = np.array([[each.features[name], float(each.right)] for each in answers])
        value = ColumnStatistic(AUROC, columns).value
        cells.append("-" if value is None else f"{100 * value:.1f}")
    print("|", " | ".join([part, str(len(answers)), *cells]), "|")


def draw_curves(file: Path, answers: Mapping[str, Sequence[LlmAnswer]]) -> None:
    """The risk-coverage curve of each part but the training questions."""
    fits = fit_answers(answers["train"])
    curves = []
    for part in PARTS[1:]:
        columns = np.array(
            [[fitted_confidence(each.features, *fits), float(each.right)] for each in answers[part]]
        )
        points = tuple(
            (risk["coverage"], risk["value"], risk["low"], risk["high"])
            for risk in calibration_curves(columns, SEED)["risks"]
        )
        curves.append(Curve(part, points))
    file.write_text(curves_svg("Risk at coverage", curves, RISK), encoding="utf-8")


def show_cascade(
    part: str,
    training: Sequence[LlmAnswer],
    replies: Sequence[Reply],
    reader: Llm,
    weighed: Sequence[Prediction],
) -> None:
    """A row of EM: the span reader, the model, the cascade of both served, and in this process."""
    fits = fit_answers(training)
    scores: dict[str, list[float]] = {"span": [], "model": [], "served": [], "asked": []}
    for reply in replies:
        if reply.read is None:
            raise ValueError("the span reader has not read along")
        span = reply.read.prediction
        own = reply.prediction
        sure = span.confidence or 0.0
        confidence = fitted_confidence(reader.features(reply), *fits)
        is_unsure = sure < SURE
        takes_own = is_unsure and bool(own.answer) and confidence >= sure
        answers = reply.question.answers
        of_span = exact_match(span.answer or span.candidate, answers)
        of_model = exact_match(own.answer, answers)
        scores["span"].append(of_span)
        scores["model"].append(of_model)
        scores["served"].append(of_model if takes_own else of_span)
        scores["asked"].append(float(is_unsure))
    if weighed:
        scores["in this process"] = [
            exact_match(prediction.answer, reply.question.answers)
            for prediction, reply in zip(weighed, replies, strict=True)
        ]
    cells = [f"{name} {100 * sum(values) / len(values):.1f}" for name, values in scores.items()]
    print(f"{part}: {', '.join(cells)}")


def write_features(file: Path, parts: Mapping[str, Sequence[LlmAnswer]]) -> None:
    with file.open("w", encoding="utf-8") as lines:
        for part, answers in parts.items():
            for answer in answers:
                row = {"part": part, "right": answer.right, "features": answer.features}
                lines.write(json.dumps(row) + "\n")


def show_borrowed(files: Sequence[Path]) -> None:
    """For each model, the measures of confidences that were fitted on it, and on all the others."""
    answers: dict[Path, dict[str, list[LlmAnswer]]] = {}
    for file in files:
        parts = answers[file] = {part: [] for part in PARTS}
        for _, row in read_jsonl(file):
            parts[str(row["part"])].append(LlmAnswer(0, bool(row["right"]), row["features"]))
    print("| part | questions | AUROC of right answers | ECE | EM-50 | EM-80 |")
    print("|---|---|---|---|---|---|")
    for file, parts in answers.items():
        others = [answer for other in files if other != file for answer in answers[other]["train"]]
        for part in PARTS[1:]:
            show_confidence(f"{file.stem}, {part}, fitted", parts["train"], parts[part])
            show_confidence(f"{file.stem}, {part}, borrowed", others, parts[part])


def open_model(name: str, flags: Sequence[str]) -> LanguageModel:
    """The model in this process: a GGUF file by llama.cpp, any other by transformers."""
    kind = LlamaCpp if name.endswith(".gguf") else HF
    settings = settings_of_flags(list(flags)) | {"model": name}
    return kind(parse_settings(kind.Settings, settings, "setting"), root=Path())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="")
    parser.add_argument("--prompt", default="grounded")
    parser.add_argument("--passages", type=int, default=3)
    parser.add_argument("--train", type=int, default=300)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--set", nargs="*", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--stored", action="store_true")
    parser.add_argument("--weigh", action="store_true", help="the cascade in this process too")
    parser.add_argument("--features", type=Path, help="file for the confidences' features")
    parser.add_argument("--curves", type=Path, help="file for the curves of risk and coverage")
    parser.add_argument("--borrow", type=Path, nargs="+", default=[])
    arguments = parser.parse_args()
    if arguments.borrow:
        show_borrowed(arguments.borrow)
        return
    model = open_model(arguments.model, arguments.set)
    settings = Llm.Settings(
        prompt=arguments.prompt, samples=arguments.samples, temperature=arguments.temperature
    )
    reader = Llm(settings, llm=model)
    tasks = list(plan(arguments.train, arguments.test, arguments.passages))
    if arguments.stored:
        tasks = stored_tasks(reader, tasks, CompletionCache(Path("completions")))
    replies = read(reader, tasks)
    parts = {
        part: [reply for task, reply in zip(tasks, replies, strict=True) if task.part == part]
        for part in PARTS
    }
    print(
        "| part | questions | exact | other passage | stitched | missing | none | EM | F1 | "
        "abstained | failed | the span reader's sentence |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for part, part_replies in parts.items():
        show_quotes(part, part_replies)
    tokens = [reply.completion for reply in replies]
    count = max(1, len(tokens))
    prompt_tokens = sum(completion.prompt_tokens for completion in tokens) / count
    answer_tokens = sum(completion.completion_tokens for completion in tokens) / count
    print(
        f"tokens a question: {prompt_tokens:.0f} of the prompt, {answer_tokens:.0f} of the answer"
    )
    answers = {part: answers_of(reader, part_replies) for part, part_replies in parts.items()}
    if arguments.features:
        write_features(arguments.features, answers)
    print("| part | questions | AUROC of right answers | ECE | EM-50 | EM-80 |")
    print("|---|---|---|---|---|---|")
    for part in PARTS[1:]:
        show_confidence(part, answers["train"], answers[part])
    print(f"| part | questions | AUROC by {' | by '.join(SINGLE_FEATURES)} |")
    print("|---|---|---|---|---|")
    for part in PARTS[1:]:
        show_single_features(part, answers[part])
    if arguments.curves:
        draw_curves(arguments.curves, answers)
    cascade = Cascade(Cascade.Settings(prompt=arguments.prompt, sure=SURE), llm=model)
    for part in PARTS[1:]:
        chosen = [task for task in tasks if task.part == part]
        weighed: list[Prediction] = []
        if arguments.weigh:
            weighed = cascade.answer(
                [task.question for task in chosen], [task.passages for task in chosen]
            )
        show_cascade(part, answers["train"], parts[part], reader, weighed)


if __name__ == "__main__":
    main()
