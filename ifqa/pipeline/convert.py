"""`ifqa convert`: runs, questions and judgements in the formats of other tools.

An experiment's run becomes the ctxs JSON of DPR and FiD, a TREC run, or TREC qrels; a ctxs JSON becomes a TREC run, and a TREC
run a ctxs JSON with the questions of a split and the passages of a corpus. Questions (an experiment's, a split's, a file's)
become Pyserini's topics, SQuAD, lm-eval's JSON lines, the IfQA release's layout, that of the benchmark `file`, or qrels over a
whole corpus. Questions that people wrote (`ifqa.formats.annotations`) become all of these, or tasks for those who verify them.
DPR's *training* JSON (positive_ctxs, negative_ctxs) is another format and not written here. Runs of other tools are read by
the retriever `run`.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ifqa.benchmarks.file import write_file
from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment, load_experiment
from ifqa.corpus.store import PassageStore, fetch
from ifqa.errors import IfqaError, unknown
from ifqa.formats.annotations import VERIFYING, are_tasks, read_annotated, verification_tasks, write_tasks
from ifqa.formats.ctxs import is_ctxs, read_ctxs, refuse_pickle, write_ctxs
from ifqa.formats.questions import WRITERS as OF_TOOLS
from ifqa.formats.questions import read_questions
from ifqa.formats.runs import read_qrels, read_run, write_qrels, write_run
from ifqa.pipeline.run import CorpusBuild, Run
from ifqa.pipeline.stage_inputs import passages_of, predictions_of, rankings_of
from ifqa.plugins import names, open_benchmark
from ifqa.progress import bar, say
from ifqa.records import Hit, Question, gold_id
from ifqa.retrieval.run_file import RunFile
from ifqa.scoring.measures.gold_recall import COVERED_SHARE, GoldGrams, covers
from ifqa.storage.files import require

WRITERS = {**OF_TOOLS, "file": write_file}
VERIFICATION = "verification"
_VERIFIERS = 2  # the second and the third worker
_FILES = (".json", ".jsonl", ".csv", ".trec", ".tsv", ".gz", ".xz", ".bz2", ".pkl")
_BY_SUFFIX = {".json": "ctxs", ".trec": "trec", ".qrels": "qrels", ".tsv": "topics", ".jsonl": "lm-eval"}
_FORMATS = ("ctxs", "trec", "qrels", *WRITERS, VERIFICATION)
_WHY_LEFT_OUT = {
    "squad": "none of their gold passages holds an answer, and SQuAD can only say that there is none",
    "ifqa": "they have no answer, and the layout wants one",
    "file": "they have no answer, and the benchmark wants one",
}


def convert(
    source: str, to: Path, k: int | None = None, benchmark: str = "ifqa", split: str | None = None, force: bool = False,
    scores: str = "run", form: str = "", corpus: str = "", qrels: Path | None = None,
) -> Path:  # fmt: skip
    """Write a run, questions or judgements to a file of another format; returns that file.

    Args:
        source: an experiment (to convert its run, the run must be finished), a benchmark's split ("ifqa:full-dev"), or a
            file: a ctxs JSON that becomes a TREC run, a TREC run that becomes a ctxs JSON, questions in a format that
            `formats.read_questions` reads, or annotation tasks that are filled in.
        to: the file to write; its suffix gives the format unless `form` does. If it is a link, its target is written.
        k: keep the first `k` passages of each question; None keeps all.
        benchmark: the benchmark of a file's questions, if `split` is given.
        split: the split in which a ctxs file's questions are looked up, by id or text as the retriever `run` does; the TREC
            run then has the benchmark's ids. None: the TREC run has the file's own ids. A TREC run names its questions by id.
        force: whether an existing file is overwritten.
        scores: "run" for the experiment's ranking; "reader" for the passages ranked by the reader's scores, as FiD's
            `dataset_wscores.json`, from which a retriever is distilled (FiD src/util.py:187-209).
        form: "ctxs" (.json), "trec" (.trec), "qrels" (.qrels), "topics" (.tsv), "lm-eval" (.jsonl), "squad", "ifqa", "file", or
            "verification" (.json for Label Studio, .csv) of written questions.
        corpus: to write qrels, judge every passage of this corpus, not the run's; with `qrels`, and to write the ctxs of a TREC
            run, the corpus of their passages.
        qrels: judgements of the source's questions; the relevant passages become the questions' gold passages.

    Raises:
        IfqaError: `to` exists, is no regular file or has another format's suffix; the run is not finished or older than the
            experiment's settings; or the source cannot be written in that format.
    """
    if k is not None and k < 1:
        raise IfqaError(f"--k, the number of passages to keep, must be at least 1; found {k}")
    if scores not in ("run", "reader"):
        raise unknown("--scores", scores, ("run", "reader"))
    names_split = source.find(":") > 1 and not Path(source).exists()  # from 2: a path of Windows begins with "C:"
    is_file = Path(source).is_file() or (not names_split and (source.endswith(_FILES) or Path(source).name != source))
    if is_file:
        refuse_pickle(require(Path(source), "file"))
    elif split is not None:
        raise IfqaError(f"--split {split} is for a ctxs file or a TREC run; {source} has its own split")
    form = _format(to, form)
    if to.is_dir() or (to.exists() and not force):
        raise IfqaError(f"{to} is {'a folder' if to.is_dir() else 'there already; overwrite it with --force'}")
    if to.exists() and not to.is_file():
        raise IfqaError(f"{to} is not a regular file, and would be replaced by one; wanted a new file")
    to = to.resolve() if to.is_symlink() else to  # a link stays one
    _check_options(form, k, split, scores, corpus, qrels, is_file)
    if form == VERIFICATION:
        if not is_file or not are_tasks(Path(source)):
            raise IfqaError(
                f"--format {VERIFICATION} is for a file of questions written about `ifqa screen`'s tasks, not {source}"
            )
        tasks = verification_tasks(Path(source))
        write_tasks(to, tasks, VERIFYING, copies=_VERIFIERS, force=force)
        say(f"{to}: {len(tasks):,} questions to be verified, each by {_VERIFIERS} workers")
    elif form == "ctxs" and is_file:
        say(f"{to}: passages of {_ctxs_of_trec(Path(source), to, k, benchmark, split, corpus)}")
    elif form in ("ctxs", "trec"):
        count = (
            _trec_of_ctxs(Path(source), to, k, benchmark, split) if is_file else _from_run(source, to, form, k, scores)
        )
        say(f"{to}: passages of {count:,} questions")
    elif form == "qrels" and not corpus:
        if is_file or ":" in source:
            raise IfqaError(
                f"qrels of {source}: wanted --corpus, whose passages are judged, or an experiment with a run"
            )
        experiment, questions, rankings = _run_of(source)
        say(_judge_run(experiment, questions, [ranking[:k] for ranking in rankings], to))
    elif form == "qrels":
        say(_judge_corpus(corpus, _questions(source, is_file), to))
    else:
        questions = _questions(source, is_file)
        if qrels:
            questions = _with_gold(questions, read_qrels(qrels), corpus)
        written = WRITERS[form](to, questions)
        left_out = f"; {len(questions) - written:,} left out: {_WHY_LEFT_OUT[form]}" if written < len(questions) else ""
        say(f"{to}: {written:,} questions{left_out}")
    return to


def _format(to: Path, form: str) -> str:
    if form and form not in _FORMATS:
        raise unknown("--format", form, _FORMATS)
    if to.suffix in (".gz", ".xz", ".bz2"):
        raise IfqaError(f"--to {to}: files are written plain; leave off {to.suffix} and compress it after")
    if not form and to.suffix not in _BY_SUFFIX:
        endings = ", ".join(f"{suffix} ({name})" for suffix, name in _BY_SUFFIX.items())
        raise IfqaError(f"--to {to}: wanted a file that ends in {endings}, or --format {' | '.join(_FORMATS)}")
    return form or _BY_SUFFIX[to.suffix]


def _check_options(
    form: str, k: int | None, split: str | None, scores: str, corpus: str, qrels: Path | None, is_file: bool
) -> None:
    of_questions = form in WRITERS
    of_trec = form == "ctxs" and is_file
    for option, given, fits, wants in (
        ("--k", k, not of_questions and not (form == "qrels" and corpus), "ctxs, TREC runs and qrels of a run"),
        (
            "--split",
            split,
            form == "trec" or of_trec,
            "a ctxs file that becomes a TREC run, or the reverse; a split's questions are BENCHMARK:SPLIT",
        ),
        ("--scores", scores != "run", form in ("ctxs", "trec") and not is_file, "ctxs and TREC runs of an experiment"),
        ("--corpus", corpus, form == "qrels" or qrels or of_trec, "qrels, and the ctxs of a TREC run"),
        (
            "--qrels",
            qrels,
            of_questions and corpus,
            "questions (topics, squad, lm-eval, ifqa), with --corpus NAME beside it",
        ),
    ):
        if given and not fits:
            raise IfqaError(f"{option} does not go with --format {form}: it is for {wants}")


def _questions(source: str, is_file: bool) -> list[Question]:
    if is_file and are_tasks(Path(source)):
        annotated = read_annotated(Path(source))
        say(f"{source}: {annotated}")
        return list(annotated.questions)
    if is_file:
        return read_questions(Path(source))
    if ":" not in source:
        return Run(load_experiment(source)).questions
    benchmark, _, split = source.partition(":")  # a path may hold more of them
    if benchmark not in names("benchmark"):
        benchmark, _, split = source.rpartition(":")  # of a plugin, my_module:Class:SPLIT
    return open_benchmark(benchmark).questions(split)


def _run_of(name: str) -> tuple[Experiment, list[Question], list[list[Hit]]]:
    """An experiment without its reader, its questions, and its run, which must be up to date."""
    experiment = replace(load_experiment(name), reader=None)
    if experiment.retriever is None:
        raise IfqaError(f"experiment {name} has no [retriever], so no run to convert")
    run = Run(experiment)
    run.inputs("score")  # raises if the run or the passages are older than the experiment's settings
    questions = run.questions
    return experiment, questions, list(rankings_of(experiment, questions))


def _from_run(name: str, to: Path, form: str, k: int | None, scores: str) -> int:
    if ":" in name:
        raise IfqaError(
            f"{name} is questions; wanted --format qrels, {', '.join(WRITERS)}, or for {form} an experiment"
        )
    experiment, questions, rankings = _run_of(name)
    if scores == "reader":
        experiment = load_experiment(name)
        Run(experiment).inputs("score")
        rankings = _rankings_of_reader(experiment, questions)
    rankings = [ranking[:k] for ranking in rankings]
    if form == "ctxs":
        return write_ctxs(to, questions, rankings, passages_of(experiment, rankings))
    assert experiment.retriever is not None
    return _write_trec(to, questions, rankings, f"ifqa-{experiment.retriever['name']}")


def _rankings_of_reader(experiment: Experiment, questions: Sequence[Question]) -> list[list[Hit]]:
    if experiment.reader is None:
        raise IfqaError(f"experiment {experiment.name} has no [reader] that could have scored passages")
    predictions = list(predictions_of(experiment, questions))
    if not any(one.passage_scores for one in predictions):
        raise IfqaError(
            f"reader {experiment.reader['name']!r} of {experiment.name} scores no passages; readers 'fid' and 'rag' do"
        )
    return [
        [Hit(*pair) for pair in zip(one.passage_ids, one.passage_scores, strict=True)] if one.passage_scores else []
        for one in predictions
    ]


def _ctxs_of_trec(path: Path, to: Path, k: int | None, benchmark: str, split: str | None, corpus: str) -> str:
    """Write the ctxs of a TREC run; says of how many questions, and how many of them the run leaves out."""
    if is_ctxs(path):
        raise IfqaError(
            f"{path} is JSON, and ctxs are written from a TREC run or an experiment; wanted --to FILE.trec, or --format "
            f"{', '.join(WRITERS)}"
        )
    rankings = read_run(path)
    if split is None or not corpus:
        raise IfqaError(
            f"{path}: a TREC run names questions and passages by id alone; wanted --benchmark NAME --split SPLIT for its "
            "questions, and --corpus NAME for its passages"
        )
    questions, build = open_benchmark(benchmark).questions(split), CorpusBuild(load_corpus(corpus))
    if strange := rankings.keys() - {question.id for question in questions}:
        raise IfqaError(f"{path} ranks {min(strange)}, and {benchmark} {split} has ids like {questions[0].id}")
    stores = [build.store]
    cut = [rankings.get(question.id, [])[:k] for question in questions]
    write_ctxs(to, questions, cut, (fetch(stores, [hit.passage_id for hit in ranking]) for ranking in cut))
    without = len(questions) - len(rankings)
    return f"{len(questions):,} questions" + (f"; the run ranks nothing for {without:,} of them" if without else "")


def _trec_of_ctxs(path: Path, to: Path, k: int | None, benchmark: str, split: str | None) -> int:
    if not is_ctxs(path):
        raise IfqaError(f"{path}: wanted an experiment, or a ctxs JSON ([{{...}}, ...]); found neither")
    if split is not None:
        questions = open_benchmark(benchmark).questions(split)
        run = RunFile(str(path))
        ranked = [
            list(run.search([question], k or sys.maxsize)[0]) for question in questions
        ]  # the texts of one at a time
        return _write_trec(to, questions, ranked, "ctxs")
    asked: dict[str, Question] = {}
    rankings: list[list[Hit]] = []
    for number, (question, ranking) in enumerate(read_ctxs(path), start=1):
        if question.id.split() != [question.id] or question.id in asked:
            raise IfqaError(
                f"{path}: entry {number}: wanted an 'id' of its own without white space, found {question.id!r}; "
                "take the ids from a benchmark: --benchmark NAME --split SPLIT"
            )
        asked[question.id] = question
        rankings.append([Hit(passage.id, score) for passage, score in ranking[:k]])
    return _write_trec(to, list(asked.values()), rankings, "ctxs")


def _write_trec(to: Path, questions: Sequence[Question], rankings: Sequence[list[Hit]], tag: str) -> int:
    write_run(to, dict(zip((question.id for question in questions), rankings, strict=True)), tag)
    return len(questions)


def _judge_run(
    experiment: Experiment, questions: Sequence[Question], rankings: Sequence[Sequence[Hit]], to: Path
) -> str:
    """Write qrels of a run: a retrieved passage that covers a gold passage is relevant (1), any other is not (0).

    Passages that were not retrieved are not judged, except gold passages that the corpus holds under their ids `gold/…`:
    they are relevant whether retrieved or not. Returns what was written, as text.
    """
    judged: dict[str, dict[str, int]] = {}
    held = set[str]()
    if experiment.corpus:
        golds = {gold_id(text) for question in questions for text in question.gold_passages}
        held = set(CorpusBuild(load_corpus(experiment.corpus, experiment.root)).store.find(golds))
    for question, passages in zip(questions, passages_of(experiment, rankings), strict=True):
        if question.gold_passages:
            judged[question.id] = {
                one.id: int(any(covers(one.text, gold) for gold in question.gold_passages)) for one in passages
            } | {name: 1 for text in question.gold_passages if (name := gold_id(text)) in held}
    but = ", except gold passages of the corpus" if held else ""
    return _write_judged(to, questions, judged) + f"; passages that the run did not find are not judged{but}"


def _judge_corpus(name: str, questions: Sequence[Question], to: Path) -> str:
    """Write qrels over a whole corpus: passages that cover a gold passage (1); passages not listed are not relevant."""
    asking: dict[str, list[str]] = {}
    for question in questions:
        for text in dict.fromkeys(question.gold_passages):
            asking.setdefault(text, []).append(question.id)
    judged: dict[str, dict[str, int]] = {question.id: {} for question in questions if question.gold_passages}
    grams, golds, store = GoldGrams(list(asking)), list(asking), _store_of(name)
    with bar(f"judging {name}", len(store)) as advance:
        for number, passage in enumerate(store, start=1):
            for gold, share in grams.shares(passage.text).items():
                for question_id in asking[golds[gold]] if share >= COVERED_SHARE else []:
                    judged[question_id][passage.id] = 1
            if number % 1_000 == 0:
                advance(1_000)
    return _write_judged(to, questions, judged) + f"; every other passage of {name} is not relevant"


def _store_of(corpus: str) -> PassageStore:
    """The passages of a corpus, which must be built from its file as it is."""
    return CorpusBuild(load_corpus(corpus)).store


def _write_judged(to: Path, questions: Sequence[Question], judged: dict[str, dict[str, int]]) -> str:
    # Tools average over the questions that qrels name, so a question without a line would silently not be counted.
    for question in questions:
        if question.id in judged and not judged[question.id]:
            judged[question.id] = {gold_id(question.gold_passages[0]): 0}
    if not judged:
        raise IfqaError(f"qrels judge by gold passages, and none of the {len(questions):,} questions has one")
    lines = write_qrels(to, judged)
    relevant = sum(sum(one.values()) for one in judged.values())
    without = sum(not any(one.values()) for one in judged.values())
    left_out = f"; {len(questions) - len(judged):,} left out: no gold passage" if len(judged) < len(questions) else ""
    return (
        f"{to}: {lines:,} judgements, {relevant:,} relevant, of {len(judged):,} questions, {without:,} of them without a "
        f"relevant passage{left_out}"
    )


def _with_gold(questions: Sequence[Question], judged: dict[str, dict[str, int]], corpus: str) -> list[Question]:
    """The questions with the texts of their relevant passages, in the judgements' order, as their gold passages."""
    if questions and not judged.keys() & {question.id for question in questions}:
        found = next(iter(judged), "nothing")
        raise IfqaError(f"--qrels judges other questions: wanted ids like {questions[0].id}, found {found}")
    stores = [_store_of(corpus)]
    relevant = [[name for name, rel in judged.get(one.id, {}).items() if rel > 0] for one in questions]
    texts = [tuple(passage.text for passage in fetch(stores, names)) for names in relevant]
    return [replace(one, gold_passages=gold) for one, gold in zip(questions, texts, strict=True)]
