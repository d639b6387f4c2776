"""Which server's language model answered the questions of a finished stage.

A reading belongs to the model and the server that gave it. So the server's name is part of a
stage's inputs, and a run that names another server does not replace finished answers.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from ifqa.config.experiment import Experiment
from ifqa.errors import ConfigError
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage import Stage
from ifqa.settings import change_settings, setting_fields
from ifqa.storage.artifacts import Manifest, compute_fingerprint


class OtherServer(ConfigError):
    """A finished stage is of another server than the one that a run would ask."""


def names_server(experiment: Experiment) -> bool:
    """Whether the settings say which server answers, by its address or by a name."""
    return bool(experiment.llm_setting("base_url") or experiment.llm_setting("served_as"))


def as_recorded(run: Run, stage: Stage[Run], inputs: dict[str, object]) -> dict[str, object]:
    """The inputs, or those of the stage's manifest if they mean the same.

    Until version 0.2 a manifest named the language model's server in its record alone. And if the
    settings name no server, a finished stage is that of the server which it names: a report needs
    no address. A run that asks calls `refuse_other_server` before.
    """
    asker = stage.asker(run)
    manifest = run.artifact(stage.name).manifest if asker else None
    if asker is None or manifest is None:
        return inputs
    recorded = _upgrade(run, manifest, asker.kind)
    if compute_fingerprint(recorded) == compute_fingerprint(inputs):
        return manifest["inputs"]
    rest, _ = _without_server(inputs, asker.kind)
    recorded_rest, server = _without_server(recorded, asker.kind)
    is_same = compute_fingerprint(rest) == compute_fingerprint(recorded_rest)
    return manifest["inputs"] if server and is_same and not names_server(run.experiment) else inputs


def refuse_other_server(run: Run, stage: Stage[Run]) -> None:
    """Refuse to replace a finished stage of another language model's server: it may serve another
    model.

    Also if other inputs have changed: a calibration that was fitted meanwhile is one, so that a
    reading would be gone for no reason that its owner knows of.

    Raises:
        OtherServer: the message names both servers.
    """
    asker = stage.asker(run)
    manifest = run.artifact(stage.name).manifest if asker else None
    if asker is None or manifest is None:
        return
    _, earlier = _without_server(_upgrade(run, manifest, asker.kind), asker.kind)
    model = run.require_model()
    now = model.plugin.served_by(model.local_settings)
    if not (earlier and now) or earlier == now:
        return
    folder = run.artifact(stage.name).folder
    name = run.experiment.llm_setting("model", "the model")
    mend = f"remove {folder} to ask again"
    if not run.experiment.llm_setting("served_as"):
        own = "give what is served there a name of its own (--set llm.served_as=NAME)"
        mend = f"{own}; or {mend}"
    raise OtherServer(
        f"{folder} holds answers of {name} at {earlier}, and this run would ask {name} at {now}, "
        f"which may serve another model: {mend}",
        found=earlier,
        wanted=now,
        mend=mend,
    )


def _upgrade(run: Run, manifest: Manifest, kind: str) -> dict[str, Any]:
    """The inputs of a manifest as this version writes them, also those of an earlier version."""
    inputs: dict[str, Any] = deepcopy(manifest["inputs"])
    llm = inputs.get(kind, {}).get("llm")
    server = manifest["record"].get("server", "")
    if not isinstance(llm, dict) or "server" in llm or not server:
        return inputs
    model = run.require_model()
    current = model.plugin.served_by(model.local_settings)
    known = setting_fields(model.plugin.Settings)
    address = {"base_url": server, "served_as": None}
    at_server = {name: value for name, value in address.items() if name in known}
    recorded = model.plugin.served_by(change_settings(model.local_settings, **at_server))
    # The record lacks the address's path
    llm["server"] = current if current.startswith(f"{recorded}/") else recorded
    for name, (default, _) in model.plugin.retired.items():
        if llm["settings"].get(name) == default:
            del llm["settings"][name]
    return inputs


def _without_server(inputs: Mapping[str, object], kind: str) -> tuple[dict[str, Any], str]:
    """A stage's inputs without the language model's server, and the server's name."""
    rest: dict[str, Any] = deepcopy(dict(inputs))
    llm = rest.get(kind, {}).get("llm", {})
    llm.get("settings", {}).pop("served_as", None)
    return rest, str(llm.pop("server", ""))
