"""Model cards: what a card and a NOTICE take from the manifest of weights and from the ledger.

The cards of the weights in this package, and of the bundled sample, are `bundled/cards/NAME.md`:
a head for the model hub, and text. Intended use and limits are written by hand. `docs/write.py`
writes the rest again from the functions here, so that nothing about a training is written twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from ifqa.errors import FormatError, unknown_name
from ifqa.models.ledger import Exposure, list_exposures, read_model_facts
from ifqa.models.places import MINILM, MODELS, is_packaged
from ifqa.storage.files import cached_sha256, read_json
from ifqa.storage.resources import BUNDLED

CARDS = BUNDLED / "cards"
WEIGHTS = BUNDLED / "weights"
SAMPLE = "sample"  # the card of the bundled questions
LICENCE = "Apache-2.0"  # of this package, so of the weights and of the sample
_MINILM_LICENCE = "Apache-2.0"  # by its model card
_FENCE = "---\n"


@dataclass(frozen=True)
class DataSource:
    """A set of questions that weights were trained on.

    `tag` names it in a card's head, as the model hub does.
    """

    title: str
    licence: str
    tag: str
    paper: str


_IFQA = DataSource("IfQA", "ODC-BY", "ifqa", "Yu et al., EMNLP 2023")
_TIMEQA = DataSource("TimeQA", "BSD-3-Clause", "timeqa", "Chen et al., NeurIPS 2021")
#: The benchmark of a split family, or a row's source in a manifest -> the data.
SOURCES: Mapping[str, DataSource] = {
    "ifqa": _IFQA,
    "squad1.1-train": DataSource(
        "SQuAD 1.1", "CC BY-SA 4.0", "squad", "Rajpurkar et al., EMNLP 2016"
    ),
    "squadshifts-newwiki": DataSource(
        "SquadShifts", "CC BY 4.0", "squadshifts", "Miller et al., ICML 2020"
    ),
    "timeqa-human-easy": _TIMEQA,
    "timeqa-human-hard": _TIMEQA,
    "qamr": DataSource("QAMR", "MIT", "qamr", "Michael et al., NAACL 2018"),
    "nq-swap": DataSource("NQ-Swap", "MIT", "nq-swap", "Longpre et al., EMNLP 2021"),
    "documents": DataSource(
        "files of Debian's packages",
        "free (Debian main)",
        "debian-documents",
        "bench/reading-questions-files.tsv",
    ),
    "written": DataSource(
        "documents written for ifqa", LICENCE, "ifqa-documents", "bench/reading-documents.jsonl"
    ),
}


@dataclass(frozen=True)
class Base:
    """The model that weights change.

    `hub` is its name on the model hub, `fingerprint` the SHA-256 in the manifest, `origin` where
    its files come from, and `fetch` how ifqa gets it.
    """

    hub: str
    licence: str
    fingerprint: str
    origin: str
    fetch: str


@dataclass(frozen=True)
class Phase:
    """A phase of a training: its questions, and its settings.

    `benchmark` is empty for questions of no benchmark of ifqa; then `split` is their file. `rows`
    counts the questions of each source; a count is None if the manifest has none.
    """

    benchmark: str
    split: str
    rows: Mapping[DataSource, int | None]
    settings: Mapping[str, object]


@dataclass(frozen=True)
class WeightsFacts:
    """What the manifest and the ledger say of weights that ship with this package."""

    name: str
    files: tuple[Path, ...]
    manifest: Mapping[str, Any]

    @cached_property
    def base(self) -> Base | None:
        """The model that the weights change; None for weights without one."""
        entry = self.manifest.get("encoder") or self.manifest.get("base")
        if not entry:
            return None
        name = entry["name"]
        if is_packaged(name):
            origin = f"huggingface.co/{MINILM}"
            installed = "It is installed with ifqa."
            return Base(MINILM, _MINILM_LICENCE, entry["sha256"], origin, installed)
        models = (model for model in MODELS.values() if name in (model.name, model.hub))
        model = next(models, None)
        if model is None:
            raise FormatError(
                f"the manifest of {self.name} has the base {name!r}; "
                "wanted a model of bundled/models.toml: add it there"
            )
        hub = model.made_from or model.hub or model.page
        origin = f"huggingface.co/{hub}"
        fetch = f"`ifqa data {model.name}` fetches it."
        if model.made_from:
            fetch = f"Others changed it; `ifqa data {model.name}` fetches what they made of it."
            packages = dict.fromkeys(package.name for package in model.packages)
            origin += f", changed by others in the package {' and '.join(packages)}"
        return Base(hub, model.licence, entry["sha256"], origin, fetch)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of the training, the first one first."""
        return tuple(_read_phase(manifest, self.name) for manifest in _chain(self.manifest))

    @cached_property
    def sources(self) -> tuple[DataSource, ...]:
        """All data of all phases, in the order of `SOURCES`."""
        used = {source for phase in self.phases for source in phase.rows}
        return tuple(source for source in dict.fromkeys(SOURCES.values()) if source in used)

    @cached_property
    def exposures(self) -> tuple[Exposure, ...]:
        """Which questions of a benchmark of ifqa the weights or their base have seen."""
        facts = read_model_facts(str(WEIGHTS / self.name))
        names = [self.name, f"ifqa-{self.name}", *facts["names"]]
        listed = list_exposures(names, BUNDLED)
        known = {exposure.benchmark for exposure in listed}
        own = [
            Exposure(benchmark=phase.benchmark, questions=phase.split, evidence="manifest.json")
            for phase in self.phases
            if phase.benchmark and phase.benchmark not in known
        ]
        unique = {(each.benchmark, each.questions): each for each in [*own, *listed]}
        return tuple(unique.values())


def model_names() -> list[str]:
    """The names of the weights that ship with this package and have a card."""
    return sorted(path.stem for path in CARDS.glob("*.md") if path.stem != SAMPLE)


def read_facts(name: str) -> WeightsFacts:
    """The facts of weights that ship with this package.

    Raises ConfigError for an unknown name.
    """
    if name not in model_names():
        raise unknown_name("weights", name, model_names())
    folder = WEIGHTS / name
    if folder.is_dir():
        files = tuple(sorted(path for path in folder.iterdir() if path.is_file()))
        return WeightsFacts(name, files, read_json(folder / "manifest.json"))
    file = WEIGHTS / f"{name}.json"
    return WeightsFacts(name, (file,), read_json(file))


def _chain(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The manifests of a training and of those it started from, the first one first."""
    manifests = [manifest]
    while earlier := (manifests[0].get("start") or {}).get("trained"):
        manifests.insert(0, earlier)
    return manifests


def _read_phase(manifest: Mapping[str, Any], name: str) -> Phase:
    settings = manifest.get("settings") or {
        key: manifest[key] for key in ("depth", "negatives", "penalty")
    }
    if teacher := manifest.get("teacher"):
        encoder = teacher["trained"]["encoder"]["name"].rpartition("/")[2]
        settings = {**settings, "teacher": encoder, "teacher_share": teacher["share"]}
    if manifest["family"]:
        benchmark, _, part = manifest["family"].partition("/")
        source = _find_source(benchmark, name)
        splits = [f"{part}-{Path(file).stem}" for file in manifest["sources"]]
        questions = manifest["questions"]  # a count, or a fingerprint
        count = questions if isinstance(questions, int) else manifest.get("examples")
        return Phase(benchmark, " ".join(splits), {source: count}, settings)
    rows: dict[DataSource, int | None] = {}
    for label, count in manifest["rows"].items():
        source = _find_source(label.partition(",")[0], name)
        rows[source] = (rows.get(source) or 0) + count
    files = [Path(file).name for file in manifest["sources"]]
    return Phase("", " ".join(files), rows, settings)


def _find_source(label: str, name: str) -> DataSource:
    if label not in SOURCES:
        raise FormatError(
            f"the manifest of {name} has questions of {label!r}; "
            "wanted data with a known licence: add it to SOURCES in ifqa/models/cards.py"
        )
    return SOURCES[label]


def split_card(text: str, name: str) -> tuple[dict[str, Any], str]:
    """The head of a card, and the text below it.

    Raises FormatError if there is no head, or it is not YAML; the message calls the card `name`.
    """
    parts = text.split(_FENCE, 2)
    if len(parts) < 3 or parts[0]:
        raise FormatError(f"{name}: wanted a head of YAML between two lines {_FENCE.strip()!r}")
    try:
        head = yaml.safe_load(parts[1])
    except yaml.YAMLError as error:
        raise FormatError(f"{name}: the head is not YAML ({error})") from error
    return dict(head or {}), parts[2]


def join_card(head: Mapping[str, object], body: str) -> str:
    """The text of a card. The reverse of `split_card`."""
    shown = yaml.safe_dump(dict(head), sort_keys=False, allow_unicode=True, width=100)
    return f"{_FENCE}{shown}{_FENCE}{body}"


def make_head(facts: WeightsFacts) -> dict[str, object]:
    """The keys of a card's head that the manifest decides."""
    head: dict[str, object] = {"license": LICENCE.lower()}
    if facts.base:
        head["base_model"] = facts.base.hub
        head["base_model_relation"] = "adapter"
    head["datasets"] = [source.tag for source in facts.sources]
    return head


def describe_facts(facts: WeightsFacts) -> str:
    """The sections of a card on base model, training data, licences and files, as Markdown."""
    sections = [_describe_base(facts.base)] if facts.base else []
    sections += [_describe_training(facts), _describe_licences(facts), list_files(facts.files)]
    return "\n\n".join(sections)


def _describe_base(base: Base) -> str:
    return (
        "## Base model\n\n"
        f"[`{base.hub}`](https://huggingface.co/{base.hub}). {base.fetch} "
        f"The manifest has its fingerprint, `{base.fingerprint[:16]}…`."
    )


def _describe_training(facts: WeightsFacts) -> str:
    lines = ["| phase | questions | rows | settings |", "|---|---|---|---|"]
    for number, phase in enumerate(facts.phases, start=1):
        counts = {source.title: count for source, count in phase.rows.items() if count}
        if phase.benchmark:
            shown = f"{SOURCES[phase.benchmark].title} {phase.split}"
        else:
            parts = ", ".join(f"{title} {count:,}" for title, count in counts.items())
            shown = f"`{phase.split}`: {parts}"
        total = f"{sum(counts.values()):,}" if counts else ""
        settings = ", ".join(f"{key} {value}" for key, value in phase.settings.items())
        lines.append(f"| {number} | {shown} | {total} | {settings} |")
    table = "\n".join(lines)
    if not facts.exposures:
        return f"## Training data\n\n{table}"
    seen = "\n".join(
        f"- `{exposure.benchmark}`: {exposure.questions} ({exposure.evidence})"
        for exposure in facts.exposures
    )
    return (
        f"## Training data\n\n{table}\n\n"
        "The weights or their base model have seen these questions of ifqa's benchmarks. Scores "
        f"of them are marked:\n\n{seen}"
    )


def _describe_licences(facts: WeightsFacts) -> str:
    lines = (f"| {what} | {licence} | {source} |" for what, licence, source in _licence_rows(facts))
    table = "\n".join(lines)
    return (
        f"## Licences\n\nThe weights are {LICENCE}. What they were made from has its own licences, "
        "which `NOTICE` names in a published folder:\n\n"
        f"| what | licence | by |\n|---|---|---|\n{table}"
    )


def _licence_rows(facts: WeightsFacts) -> Iterator[tuple[str, str, str]]:
    """Name, licence and origin of the base model and of the data."""
    if facts.base:
        yield facts.base.hub.rpartition("/")[2], facts.base.licence, facts.base.origin
    for source in facts.sources:
        yield source.title, source.licence, source.paper


def list_files(files: tuple[Path, ...]) -> str:
    """A section with the size and the SHA-256 of each file, as Markdown."""
    lines = [
        f"| `{file.name}` | {file.stat().st_size:,} | `{cached_sha256(file)}` |" for file in files
    ]
    table = "\n".join(lines)
    return f"## Files\n\n| file | bytes | SHA-256 |\n|---|---|---|\n{table}"


def write_notice(facts: WeightsFacts) -> str:
    """The NOTICE of a published folder: what the weights were made from, with the licences."""
    lines = [f"- {what} ({source}): {licence}" for what, licence, source in _licence_rows(facts)]
    made_from = "\n".join(lines)
    return (
        f"{facts.name}: weights of ifqa, made by the ifqa developers, under {LICENCE} "
        "(see LICENSE).\n\n"
        f"They were made from these, which have licences of their own:\n\n{made_from}\n\n"
        "None of the text of the questions is in this folder.\n"
    )
