"""The generated parts of the cards in ifqa/bundled/cards, and the page of all cards."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ifqa.config.flags import FLAGS
from ifqa.formatting import one_decimal
from ifqa.models.cards import (
    CARDS,
    LICENCE,
    SAMPLE,
    describe_facts,
    join_card,
    list_files,
    make_head,
    model_names,
    read_facts,
    split_card,
)
from ifqa.storage.files import read_json
from ifqa.storage.resources import BUNDLED

MARK = re.compile(r"<!-- written by docs/write\.py: (.+?) -->\n.*?<!-- until here -->", re.DOTALL)
RECORDS = Path(__file__).parents[1] / "experiments/RESULTS.jsonl"
FLAG_OF = {flag.setting: name for name, flag in FLAGS.items()}
TAGS = {"file": "nq-swap"}
TITLES = {"ifqa": "IfQA", "sample": "the bundled sample", "file": "NQ-Swap"}
SPLITS = {"data/reading/nq-swap-held.jsonl": "the held-out third"}
GOLD = re.compile(r"gold_any@(\d+)")
HEADINGS = {"EM": "EM", "F1": "F1"}
METRICS = {"EM": "exact_match", "F1": "f1"}


def card(name: str) -> str:
    """The text that a card should have."""
    path = CARDS / f"{name}.md"
    head, body = split_card(path.read_text(encoding="utf-8"), path.name)
    body = MARK.sub(lambda match: _block(match[1], name), body)
    if name == SAMPLE:
        return join_card({**head, "license": LICENCE.lower()}, body)
    made = make_head(read_facts(name))
    kept = {key: value for key, value in head.items() if key not in ("model-index", *made)}
    index = {"name": name, "results": list(_results(body, str(head["pipeline_tag"])))}
    return join_card({**made, **kept, "model-index": [index]}, body)


def _block(what: str, name: str) -> str:
    """A generated block between its marks. `what` is "facts", "records", or the figures' names."""
    if what == "facts":
        text = describe_facts(read_facts(name))
    elif what == "records":
        text = _describe_records()
    else:
        text = _figures(*_parse_figures(what))
    return f"<!-- written by docs/write.py: {what} -->\n\n{text}\n\n<!-- until here -->"


def _parse_figures(what: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The measures and the records of a mark "MEASURE MEASURE of EXPERIMENT EXPERIMENT"."""
    measures, _, experiments = what.partition(" of ")
    lines = RECORDS.read_text(encoding="utf-8").splitlines()
    records = {record["experiment"]: record for record in map(json.loads, lines)}
    missing = [name for name in experiments.split() if name not in records]
    assert not missing, f"{RECORDS.name} has no {missing}; run them, then: ifqa report"
    return measures.split(), [records[name] for name in experiments.split()]


def _figures(measures: Sequence[str], records: Sequence[Mapping[str, Any]]) -> str:
    titles = [_title(measure) for measure in measures]
    lines = [
        ["questions", "passages", *titles, "command", "measured at"],
        ["---"] * (len(titles) + 4),
    ]
    for record in records:
        values = [_interval(record["scores"]["measures"].get(measure)) for measure in measures]
        made = record["made"]
        measured = f"{made['at'][:10]}, commit {made['commit']}, {made['hardware']}"
        command = f"`{_command(record['experiment'])}`"
        lines.append([_questions(record), _passages(record), *values, command, measured])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _title(measure: str) -> str:
    return GOLD.sub(r"gold recall @\1", HEADINGS.get(measure, measure))


def _interval(score: Mapping[str, float] | None) -> str:
    if score is None:
        return "-"
    value = one_decimal(score["value"])
    if score.get("low") is None:
        return value
    return f"{value} [{one_decimal(score['low'])}, {one_decimal(score['high'])}]"


def _questions(record: Mapping[str, Any]) -> str:
    tables = record["tables"]
    split = SPLITS.get(tables["split"], tables["split"])
    return f"{TITLES[tables['benchmark']]}, {split}: {record['scores']['questions']}"


def _passages(record: Mapping[str, Any]) -> str:
    tables = record["tables"]
    count = record["made"].get("passages")
    if "corpus" not in tables:
        return "annotated" if tables["retriever"]["name"] == "gold" else "given"
    parts = [part["name"] for part in tables["retriever"].get("parts", [])]
    names = " over ".join([tables["retriever"]["name"], *parts])
    over = f"{count:,} of " if count else ""
    return f"`{names}`, {over}`{tables['corpus']}`"


def _command(experiment: str) -> str:
    """The command that runs an experiment or a variant of one."""
    name, *changes = experiment.split("+")
    parts = ["ifqa run", name]
    for change in changes:
        setting, _, value = change.partition("=")
        flag = FLAG_OF.get(setting)
        parts.append(f"--{flag.replace('_', '-')} {value}" if flag else f"--set {change}")
    return " ".join(parts)


def _results(body: str, task: str) -> Iterator[dict[str, object]]:
    """The entries of a head's model-index, in the form of the model hub.

    They are a card's first figures, which are of its weights alone. Later ones are for comparison.
    """
    measures, records = _parse_figures(next(mark[1] for mark in MARK.finditer(body)))
    for record in records:
        scores = record["scores"]["measures"]
        metrics = [
            {
                "type": METRICS.get(measure, "recall"),
                "name": _title(measure),
                "value": float(one_decimal(scores[measure]["value"])),
            }
            for measure in measures
        ]
        benchmark = record["tables"]["benchmark"]
        title = f"{_questions(record)} questions; passages: {_passages(record)}"
        dataset = {
            "type": TAGS.get(benchmark, benchmark),
            "name": title.replace("`", ""),
            "split": Path(record["tables"]["split"]).stem,
        }
        yield {"task": {"type": task}, "dataset": dataset, "metrics": metrics}


def _describe_records() -> str:
    """The sections of the sample's card on its files: what each holds, and its SHA-256."""
    folder = BUNDLED / "sample"
    files = tuple(sorted(path for path in folder.iterdir() if path.name != "croissant.json"))
    lines = [
        f"| `{path.name}` | {len(read_json(path))} | {', '.join(read_json(path)[0])} |"
        for path in files
        if path.suffix == ".json"
    ]
    table = "\n".join(lines)
    heading = "## Questions\n\n| file | questions | fields |\n|---|---|---|"
    return f"{heading}\n{table}\n\n{list_files(files)}"


def page() -> str:
    """The page of all cards."""
    lines = ["| name | what | base model | size |", "|---|---|---|---|"]
    cards = {name: split_card(card(name), name) for name in [*model_names(), SAMPLE]}
    for name in model_names():
        facts = read_facts(name)
        base = f"`{facts.base.hub}`" if facts.base else "none"
        size = sum(file.stat().st_size for file in facts.files)
        cells = [f"[`{name}`](#{_anchor(name)})", _what(cards[name][1]), base, _size(size)]
        lines.append(f"| {' | '.join(cells)} |")
    text = INTRODUCTION.format(table="\n".join(lines))
    for name, (_, body) in cards.items():
        content = MARK.sub(lambda match: _inner(match[0]), body).strip()
        _, _, rest = content.partition("\n")  # without the title
        demoted = re.sub(r"^##", "###", rest, flags=re.MULTILINE)
        text += f"\n## {name}\n{demoted}\n"
    return text


def _inner(block: str) -> str:
    return block.partition("-->\n")[2].rpartition("<!--")[0].strip()


def _anchor(name: str) -> str:
    return name.replace(".", "")


def _what(body: str) -> str:
    """The first sentence of a card."""
    paragraph = body.strip().split("\n\n")[1]
    return " ".join(paragraph.split()).partition(". ")[0].rstrip(".")


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


INTRODUCTION = """\
# Models

Generated by `docs/write.py` from the cards in `ifqa/bundled/cards`. A card of weights has the
intended use, the figures with their commands, the limits, the base model, and the training data
with its licences. The last card is the bundled sample's.

{table}

`ifqa publish` lays out a folder for each of them as a repository of the Hugging Face hub needs it:
the card as `README.md`, the files, `LICENSE` and `NOTICE`. It uploads nothing; it prints the
command of huggingface_hub that would.

```sh
ifqa publish --to hub ranker sample       # without names: everything
ls hub/ranker
```

```text
LICENSE
NOTICE
README.md
ranker.json
```

The sample's folder has `croissant.json`, [Croissant](https://docs.mlcommons.org/croissant) metadata
with the SHA-256 of each file and the fields of each record. A folder `hub/ranker` that an earlier
`ifqa publish` wrote is replaced; one with any other file, even a hidden one, is refused.
"""
