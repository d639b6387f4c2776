"""`ifqa data synthetic`: counterfactual questions made from a corpus's passages by rule, as JSON lines to train on.

    {"id": "12-0/year", "question": "If …?", "answers": ["1908"], "passages": ["…"], "label": "year",
     "source": "ifqa data synthetic, corpus sample", "provenance": {"passage": "12-0", "rule": "year", "seed": 0}}

The lines are questions of the benchmark `file`, and reading questions of `ifqa train extractive --reading`.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from ifqa.config.corpus import Corpus, load_corpus
from ifqa.corpus.store import PassageStore, id_bytes
from ifqa.pipeline.run import CorpusBuild
from ifqa.plugins import Plugins
from ifqa.progress import bar, counted, say
from ifqa.protocols import Advance, Reader
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.storage import artifacts
from ifqa.storage.chunks import Chunks
from ifqa.storage.files import json_line
from ifqa.training.synthetic.names import Names, names_in
from ifqa.training.synthetic.rules import RULES, VERSION, Made, make

FILE = "questions.jsonl"
_CHUNK = 256  # passages
_READER = "extractive"
_NAMED = 20_000  # passages, at most, whose names are swapped with one another


def make_synthetic(root: Path, corpus_name: str, seed: int, most: int = 0, check: bool = True) -> Iterator[str]:
    """Write `data/synthetic/CORPUS-SEED/questions.jsonl`; yields lines for the user. A killed command goes on where it was.

    Args:
        root: the folder above data/ and indexes/.
        corpus_name: its passages must be built.
        seed: of all draws. The same seed gives the same questions.
        most: passages to make questions of, drawn from all; 0 for all.
        check: keep only questions that the span reader answers right from their passage. It drops what a rule misread; it
            also drops questions that are too hard for the reader.

    Raises:
        IfqaError: the corpus's passages are not built, or are out of date.
    """
    corpus = load_corpus(corpus_name, root)
    total = CorpusBuild(corpus).passages["record"]["passages"]
    number = min(most, total) if most else total
    folder = root / "data" / "synthetic" / f"{corpus.name}-{seed}"
    with artifacts.make(folder, lambda: _inputs(corpus, seed, most, check), resume="same") as draft:
        if draft is not None:
            log = Chunks(draft.folder, [FILE], lambda facts: type(facts.get("passages")) is int)
            counts = _Counts()
            for facts in log.kept:
                counts.add(facts)
            if counts.passages:
                say(f"{folder}: going on after {counts.passages:,} of {counted(number, 'passage')}")
            maker = _Maker(corpus.name, seed, check, _names_of(corpus, seed, total))
            with bar(f"questions of {corpus.name}", number) as advance:
                advance(counts.passages)
                passages = islice(_drawn(corpus, seed, most), counts.passages, None)
                while some := list(islice(passages, _CHUNK)):
                    lines, facts = maker.lines(some)
                    log.add({FILE: lines}, facts)
                    counts.add(facts)
                    advance(len(some))
            log.finish(FILE)
            draft.record |= {"passages": counts.passages, "made": dict(counts.made), "kept": dict(counts.kept)}
    manifest = artifacts.read_manifest(folder)
    assert manifest is not None  # it was made above, or before
    record = manifest["record"]
    yield f"{folder / FILE}: {sum(record['kept'].values()):,} questions of {counted(record['passages'], 'passage')}"
    for rule in RULES:
        if rule in record["made"]:
            yield f"  {rule:12}{record['made'][rule]:8,} made{record['kept'].get(rule, 0):8,} kept"


def _inputs(corpus: Corpus, seed: int, most: int, check: bool) -> dict[str, object]:
    passages = CorpusBuild(corpus).identity
    reader = Plugins().reader(_READER).fingerprint() if check else ""
    return {
        "stage": "synthetic",
        "version": VERSION,
        "passages": passages,
        "seed": seed,
        "most": most,
        "reader": reader,
    }


def _drawn(corpus: Corpus, seed: int, most: int) -> Iterable[Passage]:
    store = PassageStore(corpus.folder / "passages")
    if not most:
        return store
    return heapq.nsmallest(most, store, key=lambda one: blake2b(b"%d " % seed + id_bytes(one.id)).digest())


def _names_of(corpus: Corpus, seed: int, total: int) -> Names:
    several = _drawn(corpus, seed, _NAMED if total > _NAMED else 0)
    with bar(f"names of {corpus.name}", min(total, _NAMED)) as advance:
        return names_in(_each(several, advance))


def _each(passages: Iterable[Passage], advance: Advance) -> Iterator[str]:
    for passage in passages:
        yield passage.text
        advance(1)


class _Counts:
    """Passages so far, and questions made and kept by each rule."""

    def __init__(self) -> None:
        self.passages = 0
        self.made: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()

    def add(self, facts: dict[str, Any]) -> None:
        self.passages += facts["passages"]
        self.made.update(facts["made"])
        self.kept.update(facts["kept"])


class _Maker:
    """Makes the lines of passages; the reader is loaded with the first question."""

    def __init__(self, corpus: str, seed: int, check: bool, names: Names) -> None:
        self._source, self._seed, self._check = f"ifqa data synthetic, corpus {corpus}", seed, check
        self._names = names

    @cached_property
    def _reader(self) -> Reader:
        return Plugins().reader(_READER)()

    def lines(self, passages: Sequence[Passage]) -> tuple[bytes, dict[str, Any]]:
        """The lines of the questions that are kept, and counts."""
        made = [
            (one, each) for one in passages for each in make(one.text, one.title, f"{self._seed} {one.id}", self._names)
        ]
        kept = [(one, each) for (one, each), right in zip(made, self._right(made), strict=True) if right]
        facts = {
            "passages": len(passages),
            "made": Counter(each.rule for _, each in made),
            "kept": Counter(each.rule for _, each in kept),
        }
        return b"".join(json_line(self._row(*pair)) for pair in kept), facts

    def _right(self, made: Sequence[tuple[Passage, Made]]) -> list[bool]:
        """Whether the reader answers each question right."""
        if not self._check or not made:
            return [True] * len(made)
        asked = [Question(str(number), each.text) for number, (_, each) in enumerate(made)]
        found = self._reader.answer(asked, [[one] for one, _ in made])
        return [bool(exact_match(one.answer, each.answers)) for one, (_, each) in zip(found, made, strict=True)]

    def _row(self, passage: Passage, made: Made) -> dict[str, object]:
        return {
            "id": f"{passage.id}/{made.rule}",
            "question": made.text,
            "answers": list(made.answers),
            "passages": [passage.text],
            "label": made.rule,
            "source": self._source,
            "provenance": {"passage": passage.id, "rule": made.rule, "seed": self._seed},
        }
