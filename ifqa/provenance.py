"""What each stage is made from: its settings, its inputs' identities, its plug's version. This alone decides reuse.

Inputs are named by the hash of what *they* were made from, so a change anywhere shows in everything after it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ifqa import artifacts, sources
from ifqa.errors import IfqaError
from ifqa.experiment import Corpus, Experiment, load_corpus
from ifqa.inputs import questions_of
from ifqa.plugins import load, settings_of
from ifqa.scoring import summary

NOT_IDENTITY = {"threads", "device", "memory_gb", "batch_tokens"}  # settings that change how fast, not what


def wanted_passages(corpus: Corpus) -> dict[str, Any]:
    """The sources' settings and the SHA-256 of what they read."""
    manifest = artifacts.read_manifest(corpus.folder / "passages")
    known = manifest["made"].get("sources", {}) if manifest else {}
    return {
        "stage": "passages",
        "version": 1,
        "sources": [sources.identify(source, known) for source in corpus.sources],
    }


def wanted_index(corpus: Corpus, name: str) -> dict[str, Any]:
    """The build settings, defaults too, and the passages."""
    settings = dict(corpus.indexes[name])
    plug = load("retriever", settings["retriever"])
    passages = finished(corpus.folder / "passages", f"ifqa passages {corpus.name}")
    own = _identifying(settings_of(plug.build) | settings)
    return {
        "stage": "index",
        "version": getattr(plug, "version", 1),
        "settings": own,
        "passages": artifacts.identity(passages["wanted"]),
    }


def wanted_retrieve(experiment: Experiment) -> dict[str, Any]:
    """The search settings, the questions, and the index, which must be of the passages that are there."""
    assert experiment.retriever is not None
    settings = experiment.retriever
    plug = load("retriever", settings["name"])
    wanted = {"stage": "retrieve", "version": getattr(plug, "version", 1), "settings": _identifying(settings)}
    if "index" in settings:
        corpus = load_corpus(experiment.corpus)
        passages = artifacts.identity(finished(corpus.folder / "passages", f"ifqa passages {corpus.name}")["wanted"])
        index = finished(corpus.folder / settings["index"], f"ifqa index {corpus.name}")["wanted"]
        if index["passages"] != passages:
            raise IfqaError(
                f"{corpus.folder / settings['index']} was built from other passages than {corpus.folder / 'passages'} holds; "
                f"build it again: ifqa index {corpus.name}"
            )
        wanted["index"] = artifacts.identity(index)
    return wanted | _questions_wanted(experiment) | _fingerprint(plug, experiment.search_settings)


def wanted_read(experiment: Experiment) -> dict[str, Any]:
    """The reader's settings and weights, the questions, and the run."""
    assert experiment.reader is not None
    plug = load("reader", experiment.reader["name"])
    wanted = {"stage": "read", "version": getattr(plug, "version", 1), "settings": _identifying(experiment.reader)}
    return (
        wanted
        | _questions_wanted(experiment)
        | _run_wanted(experiment)
        | _fingerprint(plug, experiment.reader_settings)
    )


def wanted_score(experiment: Experiment) -> dict[str, Any]:
    """The questions, the run, the predictions, and the version of the scorer."""
    wanted = {"stage": "score", "version": summary.VERSION} | _questions_wanted(experiment) | _run_wanted(experiment)
    if experiment.reader:
        wanted["predictions"] = artifacts.identity(_stage(experiment, "read", wanted_read))
    return wanted


def _questions_wanted(experiment: Experiment) -> dict[str, Any]:
    return {"questions": sources.questions_identity(questions_of(experiment)), "seed": experiment.seed}


def _run_wanted(experiment: Experiment) -> dict[str, Any]:
    if not experiment.retriever:
        return {}
    return {"run": artifacts.identity(_stage(experiment, "retrieve", wanted_retrieve))}


def _fingerprint(plug: Any, settings: dict[str, Any]) -> dict[str, str]:
    """What a plug reads beside its settings (weights, a file), as one hash it makes itself."""
    return {"files": plug.fingerprint(**settings)} if hasattr(plug, "fingerprint") else {}


def _identifying(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in sorted(settings.items()) if key not in NOT_IDENTITY}


def finished(folder: Path, command: str) -> dict[str, Any]:
    """The manifest of an artifact another one needs; where there is none, the error names the command that makes it."""
    manifest = artifacts.read_manifest(folder)
    if manifest is None:
        raise IfqaError(f"{folder} is not there yet; make it with: {command}")
    return manifest


def _stage(experiment: Experiment, stage: str, wanted_by: Callable[[Experiment], dict[str, Any]]) -> dict[str, Any]:
    """What an earlier stage was made from, which must be what the experiment says now."""
    wanted = wanted_by(experiment)
    folder, command = experiment.folder / stage, f"ifqa {stage} --experiment {experiment.name}"
    if experiment.base and not artifacts.is_made(folder, wanted):
        artifacts.take_over(folder, wanted, Path("experiments") / experiment.base / stage)
    found = finished(folder, command)["wanted"]
    if artifacts.identity(found) != artifacts.identity(wanted):
        changed = sorted(key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key))
        raise IfqaError(
            f"{folder} was made from something else (changed: {', '.join(changed)}); make it again: {command}"
        )
    return wanted
