"""`ifqa ask`: a question, a file of questions, or a prompt.

Over an experiment's corpus or a folder of documents.
"""

import math
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ifqa.cli.options import Json, print_json, print_line, with_search
from ifqa.cli.process import error_message, print_error
from ifqa.errors import ConfigError, FormatError, IfqaError
from ifqa.formatting import pluralize

if TYPE_CHECKING:
    from ifqa.pipeline.run import Run
    from ifqa.records import Answer

_ENOUGH = 50  # questions to fit a threshold on


@with_search(
    Annotated[
        str, Option("--experiment", "-e", help="Experiment whose retriever and reader answer.")
    ]
)
def ask(
    run: "Run",
    changed: list[str],
    question: Annotated[
        str, Argument(help='A question: "If ..., ...?" Without it, type questions at a prompt.')
    ] = "",
    questions: Annotated[
        Path | None, Option(help="Answer the questions in this file (.txt, .csv or .jsonl).")
    ] = None,
    out: Annotated[
        Path | None,
        Option(help="With --questions: write the answers into this file (.jsonl, .csv, .txt)."),
    ] = None,
    threshold: Annotated[
        float | None,
        Option(
            min=0,
            max=1,
            help="Abstain below this confidence; 0 for never. By default the reader decides.",
        ),
    ] = None,
    why: Annotated[
        bool,
        Option(
            "--why",
            help="Also show the answer without each passage, and without each sentence of its "
            "source.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Answer a question or a file of questions, and show the evidence."""
    _check_arguments(question, questions, out, why)
    from ifqa.pipeline.stages import open_system
    from ifqa.pipeline.system import as_questions, refuse_ablations
    from ifqa.report.answers import ablation_json, answer_json, show_ablations, show_answer

    configured = run.require_reader()
    if why:
        refuse_ablations(configured)
    if questions is not None and out is not None:
        from ifqa.formats.questions import read_questions
        from ifqa.report.answers import answer_to_file, check_output

        check_output(out)
        parsed = as_questions(read_questions(questions))
        with open_system(run) as system:
            failed = answer_to_file(out, parsed, system, threshold)
        if json:
            print_json({"out": str(out), "questions": len(parsed)})
        raise typer.Exit(int(failed == len(parsed)))
    if question:
        as_questions([question])
    with open_system(run) as system:
        searched = system.searched
        reader = configured.name

        def show(answer: "Answer") -> int:
            least, answerable = system.thresholds(threshold)
            ablations = system.why(answer, threshold) if why else []
            if json:
                reasons = {"why": [*map(ablation_json, ablations)]} if why else {}
                print_json(
                    {
                        **answer_json(answer, searched),
                        "reader": reader,
                        "threshold": least,
                        "answerable_threshold": answerable,
                        **reasons,
                    }
                )
            else:
                doubt = f"below a confidence of {least:.0%}"
                if answer.answerable is not None and answer.answerable < answerable:
                    doubt = (
                        f"that a passage has the answer is {answer.answerable:.1%} likely, wanted "
                        f"{answerable:.1%}"
                    )
                refusal = f"by the reader {reader}: {doubt}; to see its answer: --threshold 0"
                advice = system.reader.advice if searched.folders else ""
                show_answer(answer, searched, refusal=refusal, advice=advice)
                if ablations:
                    show_ablations(ablations)
            return int(bool(answer.error))

        if question:
            raise typer.Exit(show(system.ask(question, threshold)))
        system.open()
        _prompt(lambda line: system.ask(line, threshold), show)


def _check_arguments(question: str, questions: Path | None, out: Path | None, why: bool) -> None:
    """Refuse arguments that contradict each other, and no question where none can be typed."""
    if (questions is None) != (out is None) or (question and questions is not None):
        raise ConfigError("wanted one question, or --questions FILE --out FILE")
    if why and questions is not None:
        raise ConfigError("--why is for one question; leave out --questions")
    if not question and questions is None and not (sys.stdin and sys.stdin.isatty()):
        mend = 'ifqa ask "If ..., ...?", or --questions FILE'
        raise ConfigError(f"no question, and no terminal to ask for one; wanted: {mend}")


def _prompt(ask_one: Callable[[str], "Answer"], show: Callable[["Answer"], object]) -> None:
    """Ask for questions, and show their answers, until an empty line or Ctrl-D."""
    with suppress(ImportError):  # Windows has no readline; its console edits lines itself
        import readline  # noqa: F401  # gives input() line editing and a history
    print('Ask "If ..., ...?"; an empty line ends.', file=sys.stderr)
    while line := _next_question():
        try:
            show(ask_one(line))
        except (IfqaError, OSError) as error:
            print_error(error_message(error))


def _next_question() -> str:
    """The next line that is typed; empty at its end."""
    try:
        return input("> " if sys.stdout.isatty() else "").strip()
    except EOFError:
        return ""


@with_search(
    Annotated[
        str, Option("--experiment", "-e", help="Experiment whose retriever and reader answer.")
    ]
)
def calibrate(
    run: "Run",
    changed: list[str],
    questions: Annotated[
        Path,
        Argument(
            help="File of your questions and answers; leave an answer empty if no passage has it."
        ),
    ],
    error: Annotated[
        float, Option(min=0, max=1, help="The share of wrong answers to allow.")
    ] = 0.1,
    json: Json = False,
) -> None:
    """Fit a threshold of the confidence on your own questions.

    It is the lowest confidence such that, of the answers with at least this
    confidence, at most the share --error is wrong. If no passage has the answer
    to a question, any answer to it is wrong. Use 50 questions or more. The
    threshold replaces the rule by which the reader abstains by default.
    """
    from ifqa.formats.questions import read_questions
    from ifqa.llms.budget import refuse_failures
    from ifqa.pipeline.stages import open_system
    from ifqa.scoring.measures.confidence import fit_threshold
    from ifqa.scoring.measures.exact_match import exact_match
    from ifqa.scoring.statistics import wilson_interval

    reader = run.require_reader()
    parsed = read_questions(questions)
    if not any(question.answers for question in parsed):
        raise FormatError(
            f"{questions}: no question has an answer; wanted a column or key 'answers'"
        )
    with open_system(run) as system:
        if system.reader.uncalibrated:  # before anything is asked
            raise ConfigError(system.reader.uncalibrated)
        given = system.answer(parsed, 0)
        failed = system.reader.usage().get("retry", 0)
    what = f"{pluralize(failed, 'question')} not answered"
    refuse_failures(failed, [answer.error for answer in given], what)
    answers = [answer for answer in given if answer.text]
    unsure = [answer for answer in answers if answer.confidence is None]
    if unsure:
        default = f"{reader} gives no confidence; wanted one such as extractive"
        raise ConfigError(unsure[0].uncalibrated or default)
    # As they are printed
    sure = [math.floor(10_000 * (answer.confidence or 0.0)) / 10_000 for answer in answers]
    right = [
        bool(answer.question.answers) and exact_match(answer.text, answer.question.answers) > 0
        for answer in answers
    ]
    threshold = fit_threshold(sure, right, error)
    kept = [
        n for n, confidence in enumerate(sure) if threshold is not None and confidence >= threshold
    ]
    wrong = sum(not right[n] for n in kept)
    unanswerable = sum(not question.answers for question in parsed)
    refused = unanswerable - sum(not answers[n].question.answers for n in kept)
    interval = wilson_interval(wrong, len(kept))
    if json:
        print_json(
            {
                "threshold": threshold,
                "questions": len(parsed),
                "answered": len(kept),
                "wrong": wrong,
                "wrong_interval": interval,
                "without_answer": unanswerable,
                "refused": refused,
            }
        )
    elif interval is None or threshold is None:
        why = (
            f"of {pluralize(len(answers), 'answer')} {sum(right)} are right, and the most "
            "confident are too often wrong"
        )
        print_line(f"no threshold keeps wrong answers to {error:.0%}: {why}")
    else:
        share, low, high = interval
        print_line(
            f"threshold {threshold:.4f}: {pluralize(len(kept), 'answer')} to "
            f"{pluralize(len(parsed), 'question')}"
        )
        print_line(f"{wrong} of them wrong: {share:.0%} [{low:.0%}, {high:.0%}]")
        if len(parsed) < _ENOUGH:
            print_line(
                f"fewer than {_ENOUGH} questions: with others the threshold may be quite different"
            )
        print_line(f"{refused} of {pluralize(unanswerable, 'question')} without an answer get none")
        print_line(
            f"use it with: --threshold {threshold:.4f}, or in an experiment: "
            f"reader.threshold = {threshold:.4f}"
        )
    raise typer.Exit(int(threshold is None))
