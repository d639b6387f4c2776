"""Writes the benchmark `obedience` as a task for EleutherAI's lm-eval: `obedience.yaml`, its
questions and its scores.

    python bench/lm_eval_task.py FOLDER [--split full-dev+nq-swap]
    lm-eval validate --tasks obedience --include_path FOLDER
    lm-eval run --model hf --model_args pretrained=MODEL --tasks obedience --include_path FOLDER

The task's scores are this package's own, so it must be installed beside lm-eval. Each question and
its twin are prompts of their own. An answer is the first line that the model writes.
"""

import argparse
from pathlib import Path

import ifqa
from ifqa.storage.files import write_jsonl

TASK = """\
task: obedience
dataset_path: json
dataset_kwargs:
  data_files: {questions}
test_split: train
output_type: generate_until
doc_to_text: "{{{{passage}}}}Question: {{{{question}}}}\\nAnswer:"
doc_to_target: "{{{{answers[0]}}}}"
generation_kwargs:
  until: ["\\n"]
  max_gen_toks: 32
  do_sample: false
process_results: !function obedience_scores.process_results
metric_list:
  - metric: obeyed
    aggregation: !function obedience_scores.obeyed
    higher_is_better: true
  - metric: real_world
    aggregation: !function obedience_scores.real_world
    higher_is_better: false
  - metric: right
    aggregation: !function obedience_scores.right
    higher_is_better: true
metadata:
  version: 1.0
"""
SCORES = '''\
"""Scores of the task obedience: written by bench/lm_eval_task.py of ifqa."""

from ifqa.benchmarks.obedience import Outcome, classify


def process_results(doc, results):
    answer = doc["pair"], doc["twin"], results[0].strip(), doc["answers"], doc["world"]
    return dict.fromkeys(Outcome._fields, answer)


def _share(name, items):
    twins = {pair: text for pair, twin, text, _, _ in items if twin}
    outcomes = [classify(text, twins.get(pair), answers, world) for pair, twin, text, answers, world in items if not twin]
    return sum(getattr(outcome, name) for outcome in outcomes) / len(outcomes)


def obeyed(items):
    return _share("obeyed", items)


def real_world(items):
    return _share("real_world", items)


def right(items):
    return _share("right", items)
'''


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", default="full-dev+nq-swap")
    arguments = parser.parse_args()
    records = []
    for question in ifqa.questions("obedience", arguments.split):
        passage = f"Passage: {question.context}\n\n" if question.context else ""
        world = [text for label, text in question.labels if label == "world"]
        pair = question.label("pair")
        record = {
            "pair": pair,
            "twin": question.id != pair,
            "passage": passage,
            "question": question.text,
        }
        records.append(record | {"answers": question.answers, "world": world})
    questions = arguments.folder.absolute() / "obedience.jsonl"
    write_jsonl(questions, records)
    (arguments.folder / "obedience.yaml").write_text(TASK.format(questions=questions))
    (arguments.folder / "obedience_scores.py").write_text(SCORES)
    print(f"{arguments.folder}: {len(records):,} prompts")


if __name__ == "__main__":
    main()
