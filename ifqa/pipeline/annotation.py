"""`ifqa screen`: selects passages of a corpus for annotators who write counterfactual questions about them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ifqa.config.corpus import CorpusConfig
from ifqa.corpus.passage_filter import CausalSentence, PassageSample, find_causal_sentence, merge_samples, sample_shard
from ifqa.corpus.passage_store import list_shards
from ifqa.errors import ConfigError, MissingInput
from ifqa.formats.annotations import WRITING_FIELDS, write_tasks
from ifqa.pipeline.run import CorpusBuild
from ifqa.progress import bar
from ifqa.records import Question
from ifqa.workers.pool import map_tasks


@dataclass(frozen=True)
class GoldSample:
    """The gold passages of a benchmark's split, each once: those kept, with the reason, and those left out."""

    kept: tuple[tuple[str, CausalSentence], ...]
    left: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of passages that is kept; NaN if there are no passages."""
        total = len(self.kept) + len(self.left)
        return len(self.kept) / total if total else float("nan")


def screen_corpus(corpus: CorpusConfig, number: int, examples: int, seed: int, workers: int = 0) -> PassageSample:
    """Screen a built corpus; choose at random, by `seed`, `number` of the kept passages and `examples` of the others."""
    if number < 1:
        raise ConfigError(f"--number, the passages to write questions about, must be at least 1; found {number}")
    _ = CorpusBuild(corpus).passages  # raises if they are not built
    paths = list_shards(corpus.folder / "passages").values()
    screen = partial(sample_shard, kept=number, left=examples, seed=seed)

    def samples() -> Iterator[PassageSample]:
        with bar(f"screening {corpus.name}", len(paths)) as advance:
            for _, part in map_tasks(screen, paths, workers=workers):
                yield part
                advance(1)

    drawn = merge_samples(samples(), number, examples)
    if not drawn.passages:
        raise MissingInput(f"corpus {corpus.name} holds no passage to screen")
    return drawn


def screen_gold(questions: Sequence[Question]) -> GoldSample:
    texts = dict.fromkeys(text for question in questions for text in question.gold_passages)
    causes = {text: find_causal_sentence(text) for text in texts}
    kept = tuple((text, why) for text, why in causes.items() if why)
    return GoldSample(kept, tuple(text for text, why in causes.items() if not why))


def write_annotation(drawn: PassageSample, to: Path, force: bool = False) -> list[Path]:
    """Write the chosen passages as tasks for annotators, who write questions about them; returns the files."""
    tasks: list[dict[str, str | list[str]]] = [
        {"passage_id": passage.id, "title": passage.title, "passage": passage.text, "keyword": why.keyword}
        for _, passage, why in drawn.kept
    ]
    return write_tasks(to, tasks, WRITING_FIELDS, force=force)
