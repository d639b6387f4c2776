"""`ifqa ask`: one question, many from a file, or a prompt; over an experiment's corpus or a folder of documents."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ifqa.cli.exit_codes import error_message, print_error
from ifqa.cli.options import Json, print_json, with_search
from ifqa.errors import IfqaError

if TYPE_CHECKING:
    from ifqa.pipeline.run import Run
    from ifqa.records import Answer


@with_search(Annotated[str, typer.Option("--experiment", "-e", help="Experiment whose retriever and reader answer.")])
def ask(
    run: "Run",
    changed: list[str],
    question: Annotated[
        str, typer.Argument(help='A counterfactual question: "If ..., ...?" Without one, on a terminal: a prompt.')
    ] = "",
    questions: Annotated[
        Path | None, typer.Option("--questions", help="Answer the questions of this file: .txt, .csv or .jsonl.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="With --questions: the file of the answers: .jsonl, .csv or .txt.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", min=0, max=1, help="Least confidence of an answer; 0: always answer."),
    ] = None,
    json: Json = False,
) -> None:
    """Answer a question, or a file of them, and show the evidence."""
    if (questions is None) != (out is None) or (question and questions is not None):
        raise IfqaError("wanted one question, or --questions FILE --out FILE")
    if not question and questions is None and not (sys.stdin and sys.stdin.isatty()):
        raise IfqaError(
            'no question, and no terminal to ask for one; wanted: ifqa ask "If ..., ...?", or --questions FILE'
        )
    from ifqa.pipeline.stages import open_system
    from ifqa.pipeline.system import as_questions
    from ifqa.report.answers import answer_json, show_answer

    _ = run.reader  # raises if there is none
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

        def show(answer: "Answer") -> int:
            if json:
                print_json(answer_json(answer, searched))
            else:
                show_answer(answer, searched)
            return int(bool(answer.error))

        if question:
            raise typer.Exit(show(system.ask(question, threshold)))
        system.open()
        _prompt(lambda line: show(system.ask(line, threshold)))


def _prompt(answer: Callable[[str], object]) -> None:
    """Ask for questions until an empty line or Ctrl-D."""
    with suppress(ImportError):  # Windows, whose console edits lines by itself
        import readline  # noqa: F401  # input() then edits lines, and remembers them
    print('Ask "If ..., ...?"; an empty line ends.', file=sys.stderr)
    with suppress(EOFError):
        while line := input("> ").strip():
            try:
                answer(line)
            except (IfqaError, OSError) as error:
                print_error(error_message(error))
