"""Experiments over a test's own questions, scored without a model."""

import json
from pathlib import Path

from ifqa.config.experiment import load_experiment
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run


def benchmark(*records):
    """Write the records as the questions of ifqa full-dev, below the working directory."""
    write(
        "data/ifqa/full_split/dev.json",
        json.dumps([{"idx": n, **record} for n, record in enumerate(records)]),
    )


def write(path, text):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def scored(name, retriever="", answers=None, **more):
    """Run an experiment over `benchmark`: `retriever` is its table, `answers` are its reader's
    answers by index.

    `confidences` are its reader's confidences by index.
    """
    text = f'about = "About {name}."\nbenchmark = "ifqa"\nsplit = "full-dev"\n'
    if retriever:
        text += f"[retriever]\n{retriever}\n"
    if answers is not None:
        sure = more.get("confidences", {})
        lines = [
            json.dumps(
                {"question_id": f"ifqa/full-dev/{n}", "answer": answer}
                | ({"confidence": sure[n]} if n in sure else {})
            )
            for n, answer in answers.items()
        ]
        write(f"{name}.jsonl", "\n".join(lines))
        text += f'[reader]\nname = "predictions"\npath = "{name}.jsonl"\n' + more.get("reader", "")
    write(f"experiments/{name}.toml", text)
    experiment = load_experiment(name)
    stages.run(Run(experiment))
    return experiment


def ctxs(path, *rankings):
    """Write rankings with passages: question text -> list of (id, title, text), best first."""
    entries = [
        {
            "question": question,
            "answers": ["x"],
            "ctxs": [
                {"id": i, "title": t, "text": x, "score": str(9 - n)}
                for n, (i, t, x) in enumerate(passages)
            ],
        }
        for question, passages in rankings
    ]
    write(path, json.dumps(entries))
    return f'name = "run"\npath = "{path}"\nk = 5'
