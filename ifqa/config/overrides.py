"""Variants: experiments changed by flags, in folders such as `experiments/NAME+k=5/` with all
settings in `experiment.toml`.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ifqa.config.expected import expected_sections
from ifqa.config.experiment import CAPS, Experiment, parse_experiment
from ifqa.errors import ConfigError, IfqaError, unknown_name
from ifqa.models.causal_lm import is_local_model, local_llm
from ifqa.settings import setting_fields
from ifqa.storage.files import atomic_write, write_bytes

NO_READER = "none"  # as a reader's name: no reader; only the retrieved passages are scored
_SHARED = tuple(f"llm.{key}" for key in (*CAPS, "retry_failed"))  # of all models of a run
_LONGEST = 200  # bytes of a folder's name
#: The keys of an experiment's file that a change may set, besides its plugins.
_KEYS = ("limit", "sample", "stratified", "seed", "split", "corpus")


def override(experiment: Experiment, changes: Mapping[str, object]) -> Experiment:
    """The experiment with changes, under a name that lists them, or itself if nothing changes.

    ConfigError for a wrong change.

    Keys of `changes` are "k" (passages retrieved), "retriever" and "reader" (plugin names; "none"
    for no reader), "limit" (first N questions), "sample" (N random questions; it takes the place
    of a limit, and a limit its), "stratified", "seed" (of all that the experiment draws: sample,
    demonstrations, bootstrap), or "section.setting" such as "retriever.k1", "reader.passages",
    "llm.model" or "judge.model". A cap of "llm" holds for the judge too.

    Settings in the language model's `runtime_only`, such as its cap, do not change the name,
    because the answers stay the same. A local model runs in this process, unless the experiment or
    a change names a server or another plugin.

    A variant has no expected scores, except those of retired models if only the language model
    changes. It is listed in the experiment's table of results, unless its split differs.
    """
    if "k" in changes and "retriever.k" in changes:
        raise ConfigError(
            f"k is given twice: --k {changes['k']} and retriever.k={changes['retriever.k']}"
        )
    changes = _share_with_judge(experiment, changes)
    changed = _apply_changes(experiment, changes)
    if changed == experiment:
        return experiment
    llm_keys = [key for key in changes if key.partition(".")[0] == "llm"]
    if llm_keys and not changed.asks_llm:
        plugins = " and ".join(repr(plugin.name) for plugin in changed.asked)
        raise ConfigError(
            f"{min(llm_keys)} is for a language model, which {plugins} cannot use; add --reader llm"
        )
    naming = sorted(changes.keys() - _runtime_only(changed))
    effective = [key for key in naming if _is_effective(experiment, changes, key, changed)]
    if not effective:
        return changed
    name = experiment.name + "".join(
        f"+{key}={_folder_part(key, changes[key])}" for key in effective
    )
    if len(name.encode()) > _LONGEST:
        mend = "write them into a file experiments/NAME.toml"
        raise ConfigError(f"the name of so many changes is too long ({name[:60]}…); {mend}")
    only_llm = all(key.partition(".")[0] == "llm" for key in effective)
    expected = tuple(score for score in changed.expected if score.retired) if only_llm else ()
    heading = changed.table if changed.split == experiment.split else ""
    title = changed.title and ", ".join(
        [changed.title, *(f"{key}={changes[key]}" for key in effective)]
    )
    return replace(changed, name=name, title=title, expected=expected, table=heading)


def _runtime_only(experiment: Experiment) -> set[str]:
    """The settings of its language models that do not change what they answer."""
    models = {"llm": experiment.llm, "judge": experiment.judge and experiment.judge.model}
    return {
        f"{part}.{setting}"
        for part, model in models.items()
        if model
        for setting in model.plugin.runtime_only
    }


def _share_with_judge(
    experiment: Experiment, changes: Mapping[str, object]
) -> Mapping[str, object]:
    """The changes, of which those that hold for all models of a run also change the judge.

    They stay with the experiment's language model only if it is asked.
    """
    shared = {key: value for key, value in changes.items() if key in _SHARED}
    others = {key: value for key, value in changes.items() if key not in shared}
    has_judge = experiment.judge or any(key.startswith("judge.") for key in changes)
    if not shared or not has_judge:
        return changes
    changed = _apply_changes(experiment, others)
    if changed.judge is None:  # it was dropped with the reader
        return changes
    known = setting_fields(changed.judge.model.plugin.Settings)
    of_judge = {
        f"judge.{setting}": value
        for key, value in shared.items()
        if (setting := key.removeprefix("llm.")) in known
    }
    kept = {
        key: value
        for key, value in shared.items()
        if changed.asks_llm or key.replace("llm.", "judge.") not in of_judge
    }
    return {**of_judge, **others, **kept}


def _is_effective(
    experiment: Experiment, changes: Mapping[str, object], key: str, changed: Experiment
) -> bool:
    """Whether the experiment would differ without this change."""
    try:
        return (
            _apply_changes(experiment, {other: changes[other] for other in changes if other != key})
            != changed
        )
    except IfqaError:  # the other changes are invalid without it
        return True


def _apply_changes(experiment: Experiment, changes: Mapping[str, object]) -> Experiment:
    sections = as_sections(experiment)
    names = ("llm.name", "judge.name")  # first
    for key, value in sorted(
        changes.items(), key=lambda change: (change[0] not in names, change[0])
    ):
        _apply_change(experiment, sections, key, value)
    for part in ("llm", "judge"):
        if f"{part}.model" in changes:
            _run_here(experiment, sections, changes, part)
    if "sample" in changes and "limit" not in changes:
        sections.pop("limit", None)
    if "limit" in changes and "sample" not in changes:
        sections.pop("sample", None)
        sections.pop("stratified", None)
    reader = sections.get("reader")
    if reader and not reader.get("passages") and "reader.passages" not in changes:
        sections["reader"] = {key: value for key, value in reader.items() if key != "passages"}
    where = f"experiment {experiment.name}"
    changed = parse_experiment(
        experiment.name, sections, where, experiment.root, experiment.plugins
    )
    return _seed_plugins(changed, changes) if "seed" in changes else changed


def _seed_plugins(experiment: Experiment, changes: Mapping[str, object]) -> Experiment:
    """Give the experiment's new seed to its retriever and reader, if they draw by one and no change
    sets theirs.
    """
    for part in ("retriever", "reader"):
        plugin = getattr(experiment, part)
        if plugin and f"{part}.seed" not in changes and plugin.plugin.draws(plugin.settings):
            settings = plugin.settings.model_copy(update={"seed": experiment.seed})
            experiment = replace(experiment, **{part: replace(plugin, settings=settings)})
    return experiment


def _apply_change(
    experiment: Experiment, sections: dict[str, Any], key: str, value: object
) -> None:
    """Change the sections of an experiment in one key."""
    full_key = {"k": "retriever.k", "llm": "llm.name"}.get(key, key)
    part, _, setting = full_key.partition(".")
    if part in ("llm", "judge") and setting:
        _set_llm(sections, part, setting, value)
    elif part in ("retriever", "reader") and setting and setting != "name":
        _set_plugin_setting(experiment, sections, part, setting, value)
    elif (key, value) == ("reader", NO_READER):
        sections.pop("reader", None)
        sections.pop("judge", None)
    elif key in ("retriever", "reader"):
        _set_plugin(sections, part, value)
    elif key in ("limit", "sample") and value == 0:
        raise ConfigError(f"--{key} must be a whole number from 1, found 0")
    elif key in _KEYS:
        sections[key] = value
    else:
        known = [*_KEYS, *"k retriever reader llm retriever.… reader.… llm.… judge.…".split()]
        raise unknown_name("setting", key, known)


def _set_llm(sections: dict[str, Any], part: str, setting: str, value: object) -> None:
    """Set a setting of the language model, or of the judge; another plugin starts without the old
    one's settings.
    """
    section = sections.get(part) or {}
    if setting == "name" and section.get("name") != value:
        section = _prompt_of(section)
    sections[part] = {**section, setting: value}


def _set_plugin_setting(
    experiment: Experiment, sections: dict[str, Any], part: str, setting: str, value: object
) -> None:
    """Set a setting of the retriever or reader; the parts of a retriever get as many passages."""
    section = sections.get(part)
    if section is None:
        raise ConfigError(
            f"experiment {experiment.name} has no [{part}] whose {setting} could change"
        )
    sections[part] = {**section, setting: value}
    if setting == "k" and "parts" in section and isinstance(value, int) and value > section["k"]:
        sections[part]["parts"] = _deepen(section["parts"], value)


def _set_plugin(sections: dict[str, Any], part: str, name: object) -> None:
    """Take another retriever or reader; of the old one's settings only the counts stay."""
    section = sections.get(part) or {}
    if section.get("name") == name:
        return
    counts = {count: section[count] for count in ("k", "passages") if section.get(count)}
    sections[part] = {"name": name} | counts


def _run_here(
    experiment: Experiment, sections: dict[str, Any], changes: Mapping[str, object], part: str
) -> None:
    """Run the model of `llm.model` here if it can, unless a server or another plugin is named.

    `part` is "llm", or "judge" for `judge.model`.
    """
    llm = sections.get(part, {})
    names_another = llm.get("name", "openai") != "openai" or {part, f"{part}.name"} & changes.keys()
    if names_another or llm.get("base_url"):
        return
    model = str(llm["model"])
    if is_local_model(model, experiment.root):
        settings = {
            key.removeprefix(f"{part}."): value
            for key, value in changes.items()
            if key.startswith(f"{part}.")
        }
        named = {"name": local_llm(model, experiment.root)}
        sections[part] = {**_prompt_of(llm), **named, **settings}


def _prompt_of(section: Mapping[str, Any]) -> dict[str, Any]:
    """What stays of a [judge] whose model changes: its prompt. An [llm] has none."""
    return {key: value for key, value in section.items() if key == "prompt"}


def _deepen(parts: Sequence[Mapping[str, Any]], k: int) -> list[dict[str, Any]]:
    """The parts of a retriever, each with at least `k` passages."""
    inner = ({"parts": _deepen(part["parts"], k)} if "parts" in part else {} for part in parts)
    return [
        {**part, "k": max(part["k"], k), **more} for part, more in zip(parts, inner, strict=True)
    ]


def write_resolved(experiment: Experiment) -> None:
    """Write a variant's `experiment.toml`, unless it is up to date.

    Without `retry_failed`, which is for one run.
    """
    import tomli_w

    path = experiment.folder / "experiment.toml"
    sections = as_sections(experiment)
    for part in {"llm", "judge"} & sections.keys():
        section = sections[part]
        sections[part] = {key: value for key, value in section.items() if key != "retry_failed"}
    text = tomli_w.dumps(sections)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        with atomic_write(path) as handle:
            write_bytes(handle, text.encode())


def as_sections(experiment: Experiment) -> dict[str, Any]:
    """The experiment as sections, which `parse_experiment` reads back unchanged."""
    sections: dict[str, Any] = {
        "name": experiment.title,
        "about": experiment.about,
        "table": experiment.table,
        "benchmark": experiment.benchmark,
        "split": experiment.split,
        "corpus": experiment.corpus,
        "seed": experiment.seed,
        "limit": experiment.limit,
        "sample": experiment.sample,
        "stratified": experiment.stratified,
        "retriever": experiment.retriever and experiment.retriever.section(),
        "reader": experiment.reader and experiment.reader.section(),
        "llm": experiment.llm and experiment.llm.section(),
        "judge": experiment.judge and experiment.judge.section(),
        "questions": list(experiment.questions),
        "measures": list(experiment.measures),
        "expected": expected_sections(experiment.expected),
    }
    return {key: value for key, value in sections.items() if value or key == "seed"}


def _folder_part(key: str, value: object) -> str:
    """A value as part of a folder's name on any file system.

    With a hash if characters were replaced or cut off.
    """
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if key in ("retriever", "reader"):  # "my_module:Class"; no plugin of ifqa has a dot in its name
        text = text.replace(":", ".")
    safe = re.sub(r"[^\w.-]+", "_", text)[:40]
    return safe if safe == text else f"{safe}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"
