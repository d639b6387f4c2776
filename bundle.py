"""Build hook: the tracked corpus and experiment files travel in the wheel, under `ifqa/bundled/`."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Bundle(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # runs from the checkout, which has them
            return
        for folder in ("experiments", "indexes"):
            for path in Path(self.root, folder).glob("*.toml"):
                build_data["force_include"][str(path)] = f"ifqa/bundled/{folder}/{path.name}"
