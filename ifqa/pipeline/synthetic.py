"""`ifqa data synthetic`: counterfactual questions generated from a corpus's passages by rule, as JSON lines to train on.

    {"id": "12-0/year", "question": "If …?", "answers": ["1908"], "passages": ["…"], "label": "year",
     "source": "ifqa data synthetic, corpus sample", "provenance": {"passage": "12-0", "rule": "year", "seed": 0}}

The benchmark `file` reads the lines as questions, and `ifqa train extractive --reading` as reading questions.
"""

import heapq
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from ifqa.config.corpus import CorpusConfig, load_corpus
from ifqa.corpus.passage_store import id_bytes
from ifqa.formatting import pluralize
from ifqa.pipeline.run import CorpusBuild
from ifqa.plugins import Plugins
from ifqa.progress import bar
from ifqa.protocols import Reader
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.storage.append_log import AppendLog
from ifqa.storage.artifacts import Artifact
from ifqa.storage.files import json_line
from ifqa.training.question_rules import RULES, VERSION, SyntheticQuestion, make_questions

logger = logging.getLogger(__name__)

FILE = "questions.jsonl"
_CHUNK = 256  # passages
_READER = "extractive"
Draft = tuple[Passage, SyntheticQuestion]


def make_synthetic(root: Path, corpus_name: str, seed: int, most: int = 0, check: bool = True) -> Iterator[str]:
    """Write `data/synthetic/CORPUS-SEED/questions.jsonl`; yields lines for the user. A killed command resumes if run again.

    Questions are made from `most` passages, chosen by `seed`; 0 for all. `check` keeps only questions that the span reader
    answers correctly from their passage. It drops those whose passage a rule misread, and those that are too hard for the reader.
    """
    corpus = load_corpus(corpus_name, root)
    build, questions = CorpusBuild(corpus), Artifact(root / "data" / "synthetic" / f"{corpus.name}-{seed}")
    store, file = build.store, questions.folder / FILE
    number = min(most, len(store)) if most else len(store)
    with questions.make(lambda: _inputs(corpus, seed, most, check), resume="same") as draft:
        if draft is not None:
            log = AppendLog(draft.folder, [FILE], lambda facts: type(facts.get("passages")) is int)
            done, drafted, kept = 0, Counter[str](), Counter[str]()
            for facts in log.kept:
                done += facts["passages"]
                drafted.update(facts["made"])
                kept.update(facts["kept"])
            if done:
                logger.info(f"{file.parent}: resuming after {done:,} of {pluralize(number, 'passage')}")
            reader = Plugins().reader(_READER)() if check else None
            source = f"ifqa data synthetic, corpus {corpus.name}"
            with bar(f"questions of {corpus.name}", number) as advance:
                advance(done)
                passages = islice(_draw_passages(store, seed, most), done, None)
                while batch := list(islice(passages, _CHUNK)):
                    drafts = [
                        (passage, question)
                        for passage in batch
                        for question in make_questions(passage.text, passage.title, f"{seed} {passage.id}")
                    ]
                    right = _filter_answered(reader, drafts) if reader else drafts
                    counts = [Counter(question.rule for _, question in part) for part in (drafts, right)]
                    lines = b"".join(_line(passage, question, source, seed) for passage, question in right)
                    log.add({FILE: lines}, {"passages": len(batch), "made": counts[0], "kept": counts[1]})
                    drafted, kept, done = drafted + counts[0], kept + counts[1], done + len(batch)
                    advance(len(batch))
            log.finish(FILE)
            draft.record |= {"passages": done, "made": dict(drafted), "kept": dict(kept)}
    record = questions.require(f"ifqa data synthetic --from {corpus.name}")["record"]
    yield f"{file}: {sum(record['kept'].values()):,} questions of {pluralize(record['passages'], 'passage')}"
    for rule in RULES:
        if rule in record["made"]:
            yield f"  {rule:12}{record['made'][rule]:8,} made{record['kept'].get(rule, 0):8,} kept"


def _inputs(corpus: CorpusConfig, seed: int, most: int, check: bool) -> dict[str, object]:
    passages, reader = CorpusBuild(corpus).identity, Plugins().reader(_READER).fingerprint() if check else ""
    draws: dict[str, object] = {"passages": passages, "seed": seed, "most": most, "reader": reader}
    return {"stage": "synthetic", "version": VERSION} | draws


def _draw_passages(store: Iterable[Passage], seed: int, most: int) -> Iterable[Passage]:
    if not most:
        return store
    return heapq.nsmallest(most, store, key=lambda passage: blake2b(b"%d " % seed + id_bytes(passage.id)).digest())


def _filter_answered(reader: Reader, drafts: Sequence[Draft]) -> list[Draft]:
    """The questions that the reader answers correctly from their passage."""
    if not drafts:
        return []
    questions = [Question(str(number), draft.text) for number, (_, draft) in enumerate(drafts)]
    predictions = reader.answer(questions, [[passage] for passage, _ in drafts])
    pairs = zip(drafts, predictions, strict=True)
    return [draft for draft, prediction in pairs if exact_match(prediction.answer, draft[1].answers)]


def _line(passage: Passage, question: SyntheticQuestion, source: str, seed: int) -> bytes:
    record = {
        "id": f"{passage.id}/{question.rule}", "question": question.text, "answers": list(question.answers),
        "passages": [passage.text], "label": question.rule, "source": source,
        "provenance": {"passage": passage.id, "rule": question.rule, "seed": seed},
    }  # fmt: skip
    return json_line(record)
