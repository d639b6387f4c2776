"""The grid of readers: each reader on each benchmark, without passages, with those that come with the question, and retrieved."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from ifqa.config.declared import declared_for
from ifqa.config.expected import measured
from ifqa.plugins import load, names, takes
from ifqa.report.results import Result, reader_needs
from ifqa.report.table import NOT_RUN, Grid, verdict_of
from ifqa.scoring.declared import Declared, declared
from ifqa.scoring.summary import partial

TITLE = "Every reader on every benchmark"
Kind = Literal["closed book", "given", "retrieved"]


class Asked(NamedTuple):
    """Questions of the grid: a split, the corpus that their passages are retrieved from, and whether they offer answers."""

    benchmark: str
    split: str
    corpus: str
    offers: bool = False


#: IfQA, CausalQA and WIQA, of each first the bundled questions in its manner. A table knows that the questions offer answers,
#: because a report must be the same on a machine that does not have them.
ASKED = (
    Asked("sample", "dev", "sample"),
    Asked("ifqa", "full-dev", "ifqa-gold-articles"),
    Asked("sample-causal", "dev", "sample"),
    Asked("causalqa", "original-valid", "enwiki"),
    Asked("sample-wiqa", "test", "sample-wiqa", offers=True),
    Asked("wiqa", "test", "processes", offers=True),
)

_NOTE = (
    "Closed book: the question alone. Given: the passages that come with the question. Retrieved: those found in the corpus. Of "
    "several experiments the first by name is shown. A letter stands where there is no score: "
)


def reader_grid(results: Sequence[Result]) -> list[Grid]:
    """A table of headline scores, a column for each reader of ifqa; a cell without a score has a letter, and the note its reason.

    Variants, and experiments that read questions they were trained on, are left out. There is no table without an experiment on
    these benchmarks.
    """
    readers = sorted(names("reader"))
    own = [one for one in results if not one.experiment.variant and "trained_on_them" not in one.made]
    reasons: dict[str, str] = {}
    rows = []
    for asked in ASKED:
        on_them = [one for one in own if (one.experiment.benchmark, one.experiment.split) == asked[:2]]
        for kind in get_args(Kind) if on_them else ():
            cells, shown = [], []
            for reader in readers:
                found = [one for one in on_them if _is_of(one, asked, reader, kind)]
                best = min((one for one in found if one.scores), key=_order, default=None)
                if best:
                    cells.append(_score(best))
                    shown.append(best.experiment.name)
                else:
                    reason = _why_not(asked, reader, kind, found)
                    cells.append(reasons.setdefault(reason, _letters(len(reasons))))
            passages = f"{kind} from {asked.corpus}" if kind == "retrieved" else kind
            head = (
                f"{asked.benchmark} {asked.split}",
                passages,
                _headline(declared(asked.benchmark, split=asked.split)),
            )
            rows.append((*head, *cells, ", ".join(shown)))
    columns = ("questions", "passages", "measure", *readers, "experiments")
    told = "; ".join(f"({letters}) {reason}" for reason, letters in reasons.items())
    return [Grid(TITLE, f"{_NOTE}{told}.", columns, tuple(rows))] if rows else []


def _is_of(one: Result, asked: Asked, reader: str, kind: Kind) -> bool:
    """Whether an experiment on these questions is of a reader and a kind of passages."""
    retriever = one.experiment.retriever
    if not one.experiment.reader or one.experiment.reader["name"] != reader or one.experiment.questions:
        return False
    if retriever is None:
        return kind == "closed book"
    if retriever["name"] in ("gold", "context"):
        return kind == "given"
    return kind == "retrieved" and one.experiment.corpus == asked.corpus


def _order(one: Result) -> tuple[bool, str]:
    """Whole splits first, then by name: no score decides which experiment is shown."""
    return bool(one.scores and partial(one.scores)), one.experiment.name


def _score(one: Result) -> str:
    assert one.scores is not None
    found = measured(one.scores, _headline(declared_for(one.experiment)))
    assert found is not None  # whatever answers has a score in the headline
    part = partial(one.scores)
    return f"{found['value']:.1f} [{found['low']:.1f}, {found['high']:.1f}]" + (f" {part}" if part else "")


def _headline(by: Declared) -> str:
    """The headline among the measures of answers."""
    return by.headline([each.name for each in by.answers])


def _why_not(asked: Asked, reader: str, kind: Kind, found: Sequence[Result]) -> str:
    """Why a cell has no score: what the reader is, else what the experiment for it, or the reader, needs."""
    plugin = load("reader", reader)
    if plugin.chooses and not asked.offers:
        return "the reader only chooses, and these questions offer no answers to choose from"
    if plugin.passages_are == "needed" and kind == "closed book":
        return "the reader takes its answers from passages"
    if plugin.passages_are == "ignored" and kind != "closed book":
        return "the reader reads no passages, so it answers as in the closed book"
    if found:
        told = verdict_of(min(found, key=_order))
        fetched = load("benchmark", asked.benchmark).downloads
        return f"{told}: needs the questions (ifqa data {asked.benchmark})" if told == NOT_RUN and fetched else told
    needs = reader_needs(reader) + (["a language model"] if takes("reader", reader, "llm") else [])
    return f"no experiment: the reader needs {', '.join(needs)}" if needs else "no experiment"


def _letters(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    first = _letters(number // 26 - 1) if number >= 26 else ""
    return first + chr(ord("a") + number % 26)
