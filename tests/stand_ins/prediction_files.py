"""Experiments without a model: a file answers the questions, by default those of the sample, some
of them right.
"""

import json
from pathlib import Path

from scored_experiments import write

from ifqa.config.experiment import load_experiment
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.plugins import open_benchmark

MADE: dict[tuple[object, ...], dict[Path, bytes]] = {}  # the files of runs before


def write_predictions(name, answers, benchmark="sample", split="dev", more=""):
    """Write an experiment that gives these answers by question, and load it; it is not run."""
    lines = [
        json.dumps({"question_id": question_id, "answer": text}) + "\n"
        for question_id, text in answers.items()
    ]
    write(f"{name}.jsonl", "".join(lines))
    reader = f'[reader]\nname = "predictions"\npath = "{name}.jsonl"\n'
    write(
        f"experiments/{name}.toml",
        f'benchmark = "{benchmark}"\nsplit = "{split}"\n{more}\n{reader}',
    )
    return load_experiment(name)


def write_answers(name, right, more="", wrong="never"):
    """Write an experiment that answers the questions of these numbers right; it is not run."""
    questions = enumerate(open_benchmark("sample").questions("dev"))
    write_predictions(
        name, {q.id: q.answers[0] if n in right else wrong for n, q in questions}, more=more
    )


def run_answers(name, right, more="", wrong="never"):
    """The same experiment, run.

    The files of an equal run before are put there first: a stage keeps those it would make again.
    """
    write_answers(name, right, more, wrong)
    folder = Path("experiments", name)
    key = (name, *right, more, wrong)
    if key in MADE and not folder.exists():
        for path, content in MADE[key].items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
    stages.run(Run(load_experiment(name)))
    MADE[key] = {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    return load_experiment(name)
