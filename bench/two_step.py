"""Whether a reader that searches again finds, and answers, what one search does not.

    python bench/two_step.py CORPUS [--half try measure] [--hits 5] [--sparse]
    python bench/two_step.py CORPUS --half measure --model FILE.gguf [--hits 3] \
        [--readers open-book grounded agent]

The 40 questions of two-step-questions.jsonl each need two articles of Wikipedia: a bridge (the
question does not name the second article), a comparison, a sum or an order of two facts. They were
written from the articles alone, before anything had searched for them. CORPUS has these articles
(`ifqa-gold-articles`).

It prints, by kind of question, how often both pieces of evidence are among 3 x HITS passages: those
of one search, and those that the reader `agent` has seen after the first HITS and the two searches of
a script. The script has the queries that were written beside each question. It does not show what a
model would search for; it shows what the loop can find.

With --model, a language model reads the same questions by each of the readers, with at most as many
passages: EM, F1, searches and tokens. Its completions are stored, so an interrupted run goes on.
"""

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ifqa.config.experiment import parse_experiment
from ifqa.llms.hf import HF
from ifqa.llms.llama_cpp import LlamaCpp
from ifqa.pipeline.run import Run
from ifqa.pipeline.system import System
from ifqa.progress import bar
from ifqa.protocols import LanguageModel, ProgressCallback, no_progress
from ifqa.reading.agent.reader import Agent
from ifqa.reading.llm import Llm
from ifqa.records import Completion, Passage, Prediction, Question, Request
from ifqa.scoring.gold_overlap import covers
from ifqa.scoring.measures.exact_match import exact_match, f1
from ifqa.settings import parse_settings
from ifqa.storage.files import read_jsonl

QUESTIONS = Path(__file__).with_name("two-step-questions.jsonl")
STEPS = 3  # requests of the agent: two searches, and the answer
HALVES = ("try", "measure")
METHODS: Mapping[str, Mapping[str, object]] = {
    "bm25": {"name": "bm25"},
    "bm25, presupposition": {"name": "bm25", "query": "presupposition"},
    "bm25, names": {"name": "bm25", "query": "names"},
    "clauses": {
        "name": "fusion",
        "parts": [
            {"name": "bm25"},
            {"name": "bm25", "query": "presupposition"},
            {"name": "bm25", "query": "main"},
        ],
    },
    "ranker": {"name": "ranker"},
}
SPARSE = {
    "name": "fusion",
    "method": "weighted",
    "parts": [{"name": "ranker", "k": 100}, {"name": "sparse", "k": 100}],
}


@dataclass(frozen=True)
class TwoStep:
    """A question, the text of its two pieces of evidence, and what a person would search for."""

    question: Question
    kind: str
    evidence: tuple[str, ...]
    queries: tuple[str, ...]


class Script(LanguageModel):
    """Searches for the written queries of each question, one after the other, then answers."""

    name = "script"

    def __init__(self, queries: Mapping[str, Sequence[str]]) -> None:
        self._queries = queries

    def complete(
        self, requests: Sequence[Request], advance: ProgressCallback = no_progress
    ) -> list[Completion]:
        return [Completion(self._next_line(request), finish="stop") for request in requests]

    def _next_line(self, request: Request) -> str:
        turns = sum(role == "assistant" for role, _ in request.messages)
        text = next(text for role, text in request.messages if role == "user")
        queries = next(queries for asked, queries in self._queries.items() if asked in text)
        return f"Search: {queries[turns]}" if turns < len(queries) else "Answer: unknown"


def two_steps(halves: Sequence[str]) -> list[TwoStep]:
    rows = [row for _, row in read_jsonl(QUESTIONS) if row["half"] in halves]
    return [
        TwoStep(
            Question(row["id"], row["question"], tuple(row["answers"])),
            row["kind"],
            tuple(row["evidence"]),
            tuple(row["queries"]),
        )
        for row in rows
    ]


def open_system(corpus: str, retriever: Mapping[str, object]) -> System:
    sections = {
        "benchmark": "ifqa",
        "split": "full-dev",
        "corpus": corpus,
        "retriever": {**retriever, "k": 100},
    }
    return System(Run(parse_experiment("two-step", sections, "two-step", Path())))


def found_share(asked: TwoStep, passages: Sequence[Passage]) -> list[bool]:
    """Whether each piece of a question's evidence is in a passage."""
    return [
        any(covers(passage.text, evidence) for passage in passages) for evidence in asked.evidence
    ]


def show_found(name: str, asked: Sequence[TwoStep], ranked: Sequence[Sequence[Passage]]) -> None:
    """A row: the share of questions with all evidence, by kind, and with the first and second."""
    found = [found_share(each, passages) for each, passages in zip(asked, ranked, strict=True)]
    both = [all(each) for each in found]
    kinds = list(dict.fromkeys(each.kind for each in asked))
    cells = [f"{sum(both)} of {len(both)}"]
    for kind in kinds:
        of_kind = [right for right, each in zip(both, asked, strict=True) if each.kind == kind]
        cells.append(f"{sum(of_kind)} of {len(of_kind)}")
    cells += [str(sum(each[place] for each in found)) for place in range(2)]
    print("|", " | ".join([name, *cells]), "|", flush=True)


def compare_searches(corpus: str, asked: Sequence[TwoStep], hits: int, with_sparse: bool) -> None:
    depth = STEPS * hits
    kinds = list(dict.fromkeys(each.kind for each in asked))
    print("|", " | ".join([f"{depth} passages", "both", *kinds, "first", "second"]), "|")
    print("|" + "---|" * (len(kinds) + 4))
    questions = [each.question for each in asked]
    methods = dict(METHODS)
    if with_sparse:
        methods["ranker and sparse, fused"] = SPARSE
    for name, retriever in methods.items():
        with open_system(corpus, retriever) as system:
            rankings = system.retrieve(questions, depth)
            show_found(name, asked, [ranking.passages for ranking in rankings])
            if name not in ("bm25", "ranker"):
                continue
            script = Script({each.question.text: each.queries for each in asked})
            reader = open_agent(system, script, hits)
            passages = [ranking.passages[:hits] for ranking in rankings]
            predictions = reader.answer(questions, passages)
            seen = seen_passages(system, predictions, passages, hits)
            show_found(f"{name}, two searches more", asked, seen)


def open_agent(system: System, model: LanguageModel, hits: int) -> Agent:
    settings = Agent.Settings(hits=hits, steps=STEPS, span_reader=False)
    return Agent(settings, llm=model, search=system.find)


def seen_passages(
    system: System,
    predictions: Sequence[Prediction],
    given: Sequence[Sequence[Passage]],
    hits: int,
) -> list[list[Passage]]:
    """The passages that the agent began with, and those that its searches found."""
    queries = [step.text for each in predictions for step in each.steps if step.action == "search"]
    found = dict(zip(queries, system.find(queries, hits), strict=True))
    return [
        [*passages, *(passage for step in each.steps for passage in found.get(step.text, []))]
        for each, passages in zip(predictions, given, strict=True)
    ]


def compare_readers(
    corpus: str,
    asked: Sequence[TwoStep],
    hits: int,
    model: LanguageModel,
    readers: Sequence[str],
) -> None:
    questions = [each.question for each in asked]
    print("| reader | questions | EM | F1 | failed | searches | computations | tokens |")
    print("|---|---|---|---|---|---|---|---|")
    with open_system(corpus, METHODS["ranker"]) as system:
        rankings = system.retrieve(questions, STEPS * hits)
        for name in readers:
            reader: Llm
            if name == "agent":
                reader = open_agent(system, model, hits)
                passages = [ranking.passages[:hits] for ranking in rankings]
            else:
                reader = Llm(Llm.Settings(prompt=name, span_reader=False), llm=model)
                passages = [ranking.passages for ranking in rankings]
            before = model.spent
            with bar(name, len(questions)) as advance:
                predictions = reader.answer(questions, passages, advance)
            tokens = model.spent.prompt_tokens - before.prompt_tokens
            show_read(name, asked, predictions, tokens)


def show_read(
    name: str, asked: Sequence[TwoStep], predictions: Sequence[Prediction], tokens: int
) -> None:
    golds = [each.question.answers for each in asked]
    pairs = list(zip(predictions, golds, strict=True))
    actions = Counter(step.action for each in predictions for step in each.steps)
    cells = [
        name,
        str(len(pairs)),
        f"{100 * fmean(exact_match(each.answer, gold) for each, gold in pairs):.1f}",
        f"{100 * fmean(f1(each.answer, gold) for each, gold in pairs):.1f}",
        str(sum(each.failed for each in predictions)),
        str(actions["search"]),
        str(actions["compute"]),
        str(tokens),
    ]
    print("|", " | ".join(cells), "|", flush=True)
    for each, gold in pairs:
        steps = "; ".join(map(str, each.steps))
        row = {"id": each.question_id, "answer": each.answer or each.error, "gold": gold}
        print(json.dumps({**row, "steps": steps}, ensure_ascii=False), flush=True)


def open_model(name: str, window: int) -> LanguageModel:
    """The model in this process: a GGUF file by llama.cpp, any other by transformers."""
    if name.endswith(".gguf"):
        settings = {"model": name, "window": window, "slots": 1}
        return LlamaCpp(parse_settings(LlamaCpp.Settings, settings, "setting"), root=Path())
    return HF(parse_settings(HF.Settings, {"model": name}, "setting"), root=Path())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    parser.add_argument("--half", nargs="+", choices=HALVES, default=list(HALVES))
    parser.add_argument("--hits", type=int, default=5, help="passages of a search")
    parser.add_argument("--sparse", action="store_true", help="the corpus has sparse weights")
    parser.add_argument("--model", default="")
    parser.add_argument("--readers", nargs="+", default=["open-book", "grounded", "agent"])
    parser.add_argument("--window", type=int, default=6144)
    parser.add_argument("--limit", type=int, default=0, help="the first questions alone")
    arguments = parser.parse_args()
    asked = two_steps(arguments.half)
    if arguments.limit:
        asked = asked[: arguments.limit]
    if arguments.model:
        model = open_model(arguments.model, arguments.window)
        compare_readers(arguments.corpus, asked, arguments.hits, model, arguments.readers)
    else:
        compare_searches(arguments.corpus, asked, arguments.hits, arguments.sparse)


if __name__ == "__main__":
    main()
