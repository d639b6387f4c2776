"""The type of a stage, and `Resolved`: a folder of stages, whose inputs and artifacts are read only
once.

A stage says what it needs, what decides its reuse, what it does and which folder it fills. How the
stages of an experiment or a corpus run is in `ifqa.pipeline.stages`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from ifqa.errors import IfqaError
from ifqa.pipeline.session import Session
from ifqa.plugins import ConfiguredPlugin
from ifqa.storage.artifacts import Artifact, Draft, Manifest, compute_fingerprint
from ifqa.workers.pool import Workers

R = TypeVar("R", bound="Resolved")


@dataclass(frozen=True)
class Stage(ABC, Generic[R]):
    """A stage of what `R` resolves: of an experiment (`Run`), or of a corpus (`CorpusBuild`)."""

    name: str  # its folder

    def resumes(self, resolved: R) -> Literal["", "same", "any"]:
        """When files of an interrupted build are kept, as in `Artifact.make`."""
        return ""

    @abstractmethod
    def needs(self, resolved: R) -> Sequence["Stage[R]"]:
        """The earlier stages whose files it reads, in order."""

    @abstractmethod
    def inputs(self, resolved: R) -> dict[str, object]:
        """What decides its reuse: settings, identities of what it reads, the plugin's code.

        IfqaError if a stage that it needs is missing, damaged or stale.
        """

    def identity(self, resolved: R) -> str:
        """Its identity for later stages; IfqaError if it is missing, damaged or stale."""
        return compute_fingerprint(resolved.finished(self)["inputs"])

    @abstractmethod
    def command(self, resolved: R) -> str:
        """The command that makes it, for messages."""

    def asker(self, resolved: R) -> ConfiguredPlugin[Any] | None:
        """The plugin through which it asks a language model; None if it asks none."""
        return None

    @abstractmethod
    def make(
        self,
        resolved: R,
        draft: Draft,
        session: Session | None = None,
        workers: Workers | None = None,
    ) -> list[str]:
        """Write its files into the draft's folder, and its facts into the draft's record.

        Returns what it did, in lines that are logged once the folder is in its place.
        """

    def inputs_again(self, resolved: R, draft: Path) -> dict[str, object]:
        """The inputs at the end of `make`, read again, to detect that one changed meanwhile.

        `draft` is the folder that was filled.
        """
        resolved.refresh()
        return resolved.inputs(self)


class Resolved:
    """A folder of stages: their artifacts, inputs and identities, each read or computed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._artifacts: dict[str, Artifact] = {}
        self._inputs: dict[str, dict[str, object]] = {}

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Counts of a manifest's record that make an artifact incomplete, so that it is made
        again.
        """
        return ("retry",)

    def artifact(self, name: str) -> Artifact:
        """The artifact in the folder of a stage."""
        if name not in self._artifacts:
            self._artifacts[name] = Artifact(self.folder / name, self.incomplete)
        return self._artifacts[name]

    def inputs(self, stage: Stage[Any]) -> dict[str, object]:
        """The inputs of a stage; raises like `Stage.inputs`."""
        if stage.name not in self._inputs:
            self._inputs[stage.name] = stage.inputs(self)
        return self._inputs[stage.name]

    def is_current(self, stage: Stage[Any]) -> bool:
        """Whether a stage was made from its current inputs; False if an input is missing."""
        try:
            return self.artifact(stage.name).is_current_for(self.inputs(stage))
        except IfqaError:
            return False

    def finished(self, stage: Stage[Any]) -> Manifest:
        """The manifest of a stage.

        If it is missing, damaged or stale, IfqaError names the command that makes it.
        """
        command = stage.command(self)
        # a missing stage is reported before missing inputs
        self.artifact(stage.name).require(command)
        return self.artifact(stage.name).require(command, self.inputs(stage))

    def identity(self, stage: Stage[Any]) -> str:
        """The identity of a finished stage; raises like `Stage.identity`."""
        return stage.identity(self)

    def refresh(self) -> None:
        """Forget everything that was read or computed, so that the next use looks at it again."""
        for artifact in self._artifacts.values():
            artifact.reread()
        self._inputs.clear()
