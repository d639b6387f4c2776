"""Build hook: the tracked corpus, experiment and prompt files travel in the wheel, under `ifqa/bundled/`."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_BUNDLED = {
    "experiments": "*.toml", "indexes": "*.toml", "prompts": "*.toml", "prompts/demos": "*.jsonl"
}  # fmt: skip


class Bundle(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # runs from the checkout, which has them
            return
        for folder, pattern in _BUNDLED.items():
            for path in Path(self.root, folder).glob(pattern):
                build_data["force_include"][str(path)] = f"ifqa/bundled/{folder}/{path.name}"
