"""What a language model's answers rest on, and how well their confidence was fitted.

    python bench/llm_answers.py --model qwen2.5-coder-1.5b [--prompt grounded] [--passages 3] \
        [--train 300] [--test 200] [--set SETTING=VALUE ...] [--stored]

Questions are drawn by a seed from IfQA's full-train and full-dev. Training questions are read from
BM25's passages of the corpus ifqa-pool-50k; those of full-dev once from the annotated passages
("given") and once from BM25's ("retrieved"). Completions are stored, and asked in turn (a training
question, the next given, the next retrieved), so that an interrupted run has some of each and goes
on where it stopped. --stored asks nothing, and counts the questions with a stored completion.

It prints the outcomes of the quotes, EM, abstentions, how often the model's sentence is the span
reader's, and the AUROC, calibration error, EM-50 and EM-80 of confidences that were fitted on the
training questions.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ifqa.benchmarks.ifqa import IfQA
from ifqa.cli.options import settings_of_flags
from ifqa.corpus.passage_store import PassageStore
from ifqa.llms.cache import CompletionCache
from ifqa.llms.hf import HF
from ifqa.llms.llama_cpp import LlamaCpp
from ifqa.plugins import Plugins
from ifqa.progress import bar
from ifqa.protocols import LanguageModel
from ifqa.reading.llm import Llm, Reply
from ifqa.reading.llm_confidence import fitted_confidence
from ifqa.records import Passage, Question, gold_id
from ifqa.scoring.measures.confidence import AUROC, ECE, EM_50, EM_80
from ifqa.scoring.measures.exact_match import exact_match, f1
from ifqa.scoring.statistics import ColumnStatistic
from ifqa.settings import parse_settings
from ifqa.training.llm_calibration import LlmAnswer, fit_answers

SEED = 72
POOL = Path("indexes/ifqa-pool-50k")
PARTS = ("train", "given", "retrieved")
BATCH = 4  # questions asked together


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
    """The tasks whose completions are stored."""
    kept = []
    for task in tasks:
        requests = reader.requests([task.question], [task.passages])
        if not store.missing(reader.llm.name, requests):
            kept.append(task)
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
    """A row of measures of the confidences of one part, fitted on the training questions."""
    fits = fit_answers(training)
    columns = np.array(
        [[fitted_confidence(each.features, *fits), float(each.right)] for each in answers]
    )
    values = [ColumnStatistic(measure, columns).value for measure in (AUROC, ECE, EM_50, EM_80)]
    cells = ["-" if value is None else f"{100 * value:.1f}" for value in values]
    print("|", " | ".join([part, str(len(answers)), *cells]), "|")


def open_model(name: str, flags: Sequence[str]) -> LanguageModel:
    """The model in this process: a GGUF file by llama.cpp, any other by transformers."""
    kind = LlamaCpp if name.endswith(".gguf") else HF
    settings = settings_of_flags(list(flags)) | {"model": name}
    return kind(parse_settings(kind.Settings, settings, "setting"), root=Path())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompt", default="grounded")
    parser.add_argument("--passages", type=int, default=3)
    parser.add_argument("--train", type=int, default=300)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--set", nargs="*", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--stored", action="store_true")
    arguments = parser.parse_args()
    model = open_model(arguments.model, arguments.set)
    reader = Llm(Llm.Settings(prompt=arguments.prompt), llm=model)
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
    training = answers_of(reader, parts["train"])
    print("| part | questions | AUROC | ECE | EM-50 | EM-80 |")
    print("|---|---|---|---|---|---|")
    for part in PARTS[1:]:
        show_confidence(part, training, answers_of(reader, parts[part]))


if __name__ == "__main__":
    main()
