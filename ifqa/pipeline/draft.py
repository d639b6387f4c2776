"""Drafts a user's first questions: a language model writes them about passages of the user's own
documents, and each is kept only if it survives a round trip.

The round trip is the model's, with the prompt `grounded`, and never the span reader's: a reader
that chose the questions would look surer on them than it is, and it is that reader whose threshold
`ifqa calibrate` fits on them.

    plain           from its own passage the model reads the same answer; from another passage
                    without the answer it does not, so the answer is not merely known or guessed
    counterfactual  from its own passage the model reads the same answer, which is not what is so
    unanswerable    from its own passage and the best that the retriever finds, the model says
                    that they do not have the answer

All prompts have temperature 0 and come in one order, so that a second run after an interruption
finds their completions in the cache and asks nothing twice.
"""

import csv
import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from io import StringIO
from itertools import chain, cycle, groupby, islice, zip_longest
from pathlib import Path

from ifqa.benchmarks.file import UNANSWERABLE
from ifqa.config.experiment import parse_experiment
from ifqa.config.overrides import override
from ifqa.corpus.documents.chunking import encoded_name
from ifqa.corpus.sentences import split_sentences
from ifqa.errors import ConfigError, SchemaRefused
from ifqa.formats.tables import join_cell
from ifqa.formatting import is_formula, pluralize, printable_line
from ifqa.llms.budget import UsageMeter, refuse_failures
from ifqa.pipeline.opening import open_stores
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import passage_source
from ifqa.pipeline.system import System
from ifqa.progress import bar
from ifqa.prompting.context_window import FittedPrompt, fit_prompt
from ifqa.prompting.drafts import KINDS, Draft, Flaw, Kind, read_draft, same_answer
from ifqa.prompting.prompts import load_prompt
from ifqa.protocols import Cut, ProgressCallback
from ifqa.records import Completion, Passage, Prediction, Question, Request
from ifqa.scoring.measures.exact_match import contains, normalize
from ifqa.storage.files import atomic_write, write_bytes

logger = logging.getLogger(__name__)

README_TITLE = "# Drafted questions"
TRIES = 3  # drafts that are asked for at most, for each question that is wanted
_READER = {"name": "llm", "prompt": "grounded", "span_reader": False}
_FEWEST_WORDS = 20  # of a passage to ask about
_FEWEST_LETTERS = 0.6  # their share of a passage's characters; a table of numbers has fewer
_SENTENCE = 8  # words of a whole sentence, of which a passage has one at least
_ENDS = (".", "!", "?", '."', ".”", ".)")  # of a sentence
_STAND_IN = "If Ada Stone had not built the bridge across the river at Oakham, who would have? " * 2
_COLUMNS = ("question", "answers", "label", "passages", "provenance")


def drafting_run(
    name: str, sections: Mapping[str, object], changes: Mapping[str, object], root: Path = Path()
) -> Run:
    """The run whose retriever and language model draft questions for an experiment.

    `sections` are those of the experiment; `changes` set its language model.

    Raises:
        ConfigError: no language model is named, or a change is of something else.
        MissingInput: there is no key for the model, nor a stored completion.
    """
    if wrong := [key for key in changes if key != "seed" and not key.startswith("llm.")]:
        raise ConfigError(
            f"--set {wrong[0]}: wanted a setting of the language model that drafts, such as "
            "llm.base_url, or seed"
        )
    if not {"llm.model", "llm.name"} & changes.keys():
        raise ConfigError(
            "--draft wants a language model to write the questions: add --model NAME",
            mend="--model",
        )
    stand_in = {"reader": _READER, "llm": {"model": "none"}}
    experiment = parse_experiment(name, {**sections, **stand_in}, f"experiment {name}", root)
    run = Run(override(experiment, changes))
    model = run.require_model()
    model.plugin.require_access(model.local_settings, model.root)
    return run


@dataclass
class Drafted:
    """What became of the drafts: the questions that are kept, and why the others are not."""

    wanted: int
    kept: list[Draft] = field(default_factory=list)
    asked: Counter[Kind] = field(default_factory=Counter)
    dropped: Counter[Flaw] = field(default_factory=Counter)

    def count(self, kind: Kind) -> int:
        return sum(draft.kind == kind for draft in self.kept)

    def add(self, drafts: Iterable[Draft]) -> None:
        for draft in drafts:
            self.asked[draft.kind] += 1
            if draft.flaw:
                self.dropped[draft.flaw] += 1
            else:
                self.kept.append(draft)

    def summary(self) -> Iterator[str]:
        """How many were asked for, kept and dropped, in lines."""
        kinds = ", ".join(f"{self.count(kind)} {kind}" for kind in KINDS)
        asked = self.asked.total()
        kept = pluralize(len(self.kept), "question")
        yield f"{kept} of {self.wanted:,} wanted ({kinds}), from {pluralize(asked, 'draft')}"
        for flaw, count in self.dropped.most_common():
            yield f"{count:,} dropped: {flaw}"
        if len(self.kept) < self.wanted:
            yield (
                f"fewer than wanted: at most {TRIES} drafts are asked for each question; another "
                "model, or more documents, may give more"
            )


def draw_passages(passages: Iterable[Passage], most: int, seed: int) -> list[Passage]:
    """Passages to ask about, drawn by the seed: one of each file in turn, so that a long file does
    not take all. Passages that are no prose are left out, and texts that come again.

    `passages` are in the corpus's order, in which those of a file follow each other.
    """

    def place(name: str) -> bytes:
        return hashlib.sha256(f"{seed} {name}".encode("utf-8", "replace")).digest()

    def drawn_of_files() -> Iterator[tuple[bytes, list[Passage]]]:
        for file, group in groupby(passages, key=lambda passage: _file_of(passage)):
            usable = (passage for passage in group if _is_prose(passage.text))
            drawn = nsmallest(most, usable, key=lambda passage: place(passage.id))
            if drawn:
                yield place(file), drawn

    files = [drawn for _, drawn in nsmallest(most, drawn_of_files(), key=lambda pair: pair[0])]
    turns = chain.from_iterable(zip_longest(*files))
    unique: dict[str, Passage] = {}
    for passage in turns:
        if passage:
            unique.setdefault(normalize(passage.text), passage)
    return list(islice(unique.values(), most))


def _file_of(passage: Passage) -> str:
    return encoded_name(passage.id) or passage.title


def _is_prose(text: str) -> bool:
    """Whether a passage tells something: it is no heading, table of numbers or list of words."""
    words = text.split()
    sentences = (sentence.split() for sentence in split_sentences(text))
    whole = (part for part in sentences if len(part) >= _SENTENCE and part[-1].endswith(_ENDS))
    if len(words) < _FEWEST_WORDS or not any(whole):
        return False
    characters = "".join(words)
    letters = sum(character.isalpha() for character in characters)
    return letters >= _FEWEST_LETTERS * len(characters)


class Drafter:
    """Has an opened system's language model write questions about passages, and asks it each again.

    The system's reader is `llm`.
    """

    def __init__(self, system: System, passages: Sequence[Passage], count: int) -> None:
        """`count` questions are wanted, about a third of each kind."""
        self._system = system
        self._model = system.model
        self._depth = system.run.require_reader().passages
        self._meter = UsageMeter(system.model)
        self._asked = set[str]()
        self._drafted = Drafted(count)
        self._wanted = Counter(islice(cycle(KINDS), count))
        self._passages = {kind: _turns(passages, n) for n, kind in enumerate(KINDS)}
        root = system.experiment.root
        self._prompts = {kind: load_prompt(f"draft-{kind}", root) for kind in KINDS}

    def requests(self) -> list[Request]:
        """As many requests as all tries may take, for an estimate.

        For those of the round trip, a long question stands in.
        """
        tasks = list[tuple[Kind, Passage]]()
        for kind, wanted in self._wanted.items():
            tasks += [(kind, passage) for passage in self._passages[kind][: TRIES * wanted]]
        read = list[list[Passage]]()
        some = [passage for _, passage in tasks[: self._depth]]
        for kind, passage in tasks:
            read.append(some if kind == "unanswerable" else [passage])
            if kind == "plain":
                read.append([passage])
        # Each another text, as equal requests would count once
        questions = [Question("draft", f"{_STAND_IN}{n}") for n in range(len(read))]
        again = self._system.reader.requests(questions, read)
        return [prompt.request for prompt in self._fitted(tasks)] + again

    def draft(self) -> Drafted:
        """The questions that survive, each kind until there are enough or its tries are used up.

        Raises:
            ServiceError: a request failed that may succeed later, such as one above a cap. What was
                answered is stored, and is not asked again by the next run.
        """
        while tasks := self._next_tasks():
            self._drafted.add(self._check(self._write(tasks)))
        kinds = [[draft for draft in self._drafted.kept if draft.kind == kind] for kind in KINDS]
        turns = chain.from_iterable(zip_longest(*kinds))
        self._drafted.kept = [draft for draft in turns if draft]
        return self._drafted

    def _next_tasks(self) -> list[tuple[Kind, Passage]]:
        """A passage for each question that is still lacking."""
        tasks = list[tuple[Kind, Passage]]()
        for kind, wanted in self._wanted.items():
            asked = self._drafted.asked[kind]
            lacking = wanted - self._drafted.count(kind)
            last = min(asked + lacking, TRIES * wanted)
            tasks += [(kind, passage) for passage in self._passages[kind][asked:last]]
        return tasks

    def _fitted(self, tasks: Sequence[tuple[Kind, Passage]]) -> list[FittedPrompt]:
        """The prompt of each task; one whose passage does not fit the window has no passage."""
        return [
            fit_prompt(self._prompts[kind], "", [passage], self._model) for kind, passage in tasks
        ]

    def _write(self, tasks: Sequence[tuple[Kind, Passage]]) -> list[Draft]:
        with bar(f"drafting {pluralize(len(tasks), 'question')}", len(tasks)) as advance:
            try:
                completions = self._complete(tasks, advance)
            except SchemaRefused:
                # Nothing was asked yet; the same fields are asked for as lines
                completions = self._complete(tasks, advance)
        drafts = list[Draft]()
        for (kind, passage), completion in zip(tasks, completions, strict=True):
            parsed = self._prompts[kind].parse(completion.text, cut=_cut_of(completion))
            draft = read_draft(kind, passage, parsed)
            text = normalize(draft.question)
            if not draft.flaw and text in self._asked:
                draft = replace(draft, flaw="it was asked before")
            if not draft.flaw:
                self._asked.add(text)
            drafts.append(draft)
        return drafts

    def _complete(
        self, tasks: Sequence[tuple[Kind, Passage]], advance: ProgressCallback
    ) -> list[Completion]:
        """A completion for each task; empty where the passage does not fit the window."""
        fitted = self._fitted(tasks)
        requests = [prompt.request for prompt in fitted if prompt.passages]
        answered = self._meter.complete(requests, advance)
        passing = [reply.error for reply in answered if reply.error and not reply.permanent]
        refuse_failures(len(passing), passing, _failed(len(passing)))
        completions = iter(answered)
        return [next(completions) if prompt.passages else Completion() for prompt in fitted]

    def _check(self, drafts: Sequence[Draft]) -> list[Draft]:
        """The drafts, with the flaws that the round trip shows."""
        found = self._other_passages(drafts)
        shown = list[list[Passage]]()
        for draft, others in zip(drafts, found, strict=True):
            read = [draft.passage]
            if draft.kind == "unanswerable":
                read += others
            shown.append(read[: self._depth])
        drafts = [
            draft if reply is None else _after_reading(draft, reply)
            for draft, reply in zip(drafts, self._ask(drafts, shown), strict=True)
        ]
        without = [_without_answer(*pair) for pair in zip(drafts, found, strict=True)]
        return [
            draft if reply is None else _after_reading_another(draft, reply)
            for draft, reply in zip(drafts, self._ask(drafts, without), strict=True)
        ]

    def _other_passages(self, drafts: Sequence[Draft]) -> list[list[Passage]]:
        """The best passages for each question but its own, best first; none for a dropped draft."""
        questions = [_question(draft) for draft in drafts if not draft.flaw]
        rankings = iter(self._system.retrieve(questions) if questions else ())
        found = list[list[Passage]]()
        for draft in drafts:
            ranked = () if draft.flaw else next(rankings).passages
            found.append([passage for passage in ranked if passage.text != draft.passage.text])
        return found

    def _ask(
        self, drafts: Sequence[Draft], shown: Sequence[Sequence[Passage]]
    ) -> list[Prediction | None]:
        """What the model reads from the passages.

        None for a draft that is dropped, or that has no passage to read.
        """
        chosen = [n for n, draft in enumerate(drafts) if shown[n] and not draft.flaw]
        questions = [_question(drafts[n]) for n in chosen]
        replies: dict[int, Prediction] = {}
        if chosen:
            with bar(f"checking {pluralize(len(chosen), 'draft')}", len(chosen)) as advance:
                passages = [shown[n] for n in chosen]
                scores = [[0.0] * len(read) for read in passages]
                before = self._system.reader.usage().get("retry", 0)
                predictions = self._system.read(questions, passages, scores, advance)
            failed = self._system.reader.usage().get("retry", 0) - before
            refuse_failures(failed, [reply.error for reply in predictions], _failed(failed))
            replies = dict(zip(chosen, predictions, strict=True))
        return [replies.get(n) for n in range(len(drafts))]


def _turns(passages: Sequence[Passage], first: int) -> list[Passage]:
    """The passages in the order of one kind of question: every third from `first`, then those that
    the other kinds have had before.
    """
    count = len(KINDS)
    return [passage for n in range(count) for passage in passages[(first + n) % count :: count]]


def _question(draft: Draft) -> Question:
    return Question("draft", draft.question)


def _cut_of(completion: Completion) -> Cut:
    return "in text" if completion.finish == "length" else "no"


def _failed(count: int) -> str:
    return f"{pluralize(count, 'request')} of the drafts failed"


def _after_reading(draft: Draft, reply: Prediction) -> Draft:
    """A draft after its question was asked again, with its own passage."""
    if reply.error:  # of a completion without an answer; other failures have ended the drafting
        return replace(draft, flaw="asked again, the model answers otherwise")
    if draft.kind == "unanswerable":
        return replace(draft, flaw="the documents answer it") if reply.answer else draft
    [answer] = draft.answers
    if not same_answer(reply.answer, answer):
        return replace(draft, flaw="asked again, the model answers otherwise")
    forms = {normalize(text): text for text in (reply.answer, answer)}
    return replace(draft, answers=tuple(reversed(forms.values())))


def _after_reading_another(draft: Draft, reply: Prediction) -> Draft:
    """A draft after its question was asked with a passage that does not have the answer."""
    if any(same_answer(reply.answer, answer) for answer in draft.answers):
        return replace(draft, flaw="another passage, without the answer, gives it")
    return draft


def _without_answer(draft: Draft, others: Sequence[Passage]) -> list[Passage]:
    """The best other passage that does not have a plain question's answer, if there is one."""
    if draft.kind != "plain" or draft.flaw:
        return []
    without = (
        passage
        for passage in others
        if not any(contains(passage.text, [answer]) for answer in draft.answers)
    )
    return list(islice(without, 1))


def drawn_passages(run: Run, count: int) -> list[Passage]:
    """The passages of a run's built corpus to draft `count` questions from."""
    passages = chain.from_iterable(open_stores(run))
    return draw_passages(passages, TRIES * count, run.experiment.seed)


def write_drafts(path: Path, readme: Path, drafted: Drafted, model: str, docs: str) -> None:
    """Write the drafted questions as a table that `ifqa calibrate` and `ifqa run` read, and what is
    to be known of them.

    The table comes last: without it, an earlier attempt was interrupted, and goes on.

    Raises:
        ConfigError: one of the files is there by now.
    """
    rows = StringIO(newline="")
    table = csv.DictWriter(rows, _COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(_row(draft, model) for draft in drafted.kept)
    for file, text in ((readme, _readme(path, drafted, model, docs)), (path, rows.getvalue())):
        content = text.encode("utf-8", "replace")
        if file == readme and file.is_file() and file.read_bytes() == content:
            continue  # of an interrupted attempt
        if file.exists() or file.is_symlink():
            raise ConfigError(f"{file} exists by now; move it away, and run the same command again")
        with atomic_write(file) as handle:
            write_bytes(handle, content)


def _row(draft: Draft, model: str) -> dict[str, str]:
    answers = [printable_line(answer) for answer in draft.answers]
    sentence = printable_line(draft.sentence_text) if answers else ""
    place = passage_source(draft.passage, draft.sentence[0])
    row = {
        "question": draft.question,
        "answers": join_cell(answers),
        "label": UNANSWERABLE if draft.kind == "unanswerable" else draft.kind,
        "passages": join_cell([sentence], separator=""),
        "provenance": printable_line(f"drafted by {model} from {place}; not read by a person yet"),
    }
    return {key: f"'{cell}" if is_formula(cell) else cell for key, cell in row.items()}


def _readme(path: Path, drafted: Drafted, model: str, docs: str) -> str:
    lines = "\n".join(f"- {line}" for line in drafted.summary())
    name = path.parent.name
    return f"""\
{README_TITLE}

The questions of `{path.name}` were drafted by the language model {printable_line(model)}, from
passages of {printable_line(docs)}. Read them before you use them: strike out a row whose question
is odd, whose answer is wrong, or, of the label `{UNANSWERABLE}`, whose question your documents do
answer after all. Add questions of your own.

{lines}

| column | |
|---|---|
| `question` | the question |
| `answers` | the forms of its answer, separated by a bar; none where the documents have no answer |
| `label` | what kind of question it is |
| `passages` | the sentence that the answer rests on |
| `provenance` | the model, and the file with its page or lines; write here that you have read it |

A question is kept if the model, asked again with its passage, gives the same answer. So use these
questions to calibrate a reader other than this model, which agrees with itself more often than it
is right.

    ifqa calibrate {path.as_posix()} --experiment {name}
    ifqa run {name} --show 3
"""
