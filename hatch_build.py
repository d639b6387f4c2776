"""Build hook: the tracked corpus, experiment and prompt files, and the notebooks, travel in the
wheel, under `ifqa/bundled/`, and in the sdist.
"""

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_BUNDLED = {
    "experiments": "*.toml", "experiments/notebooks": "*.ipynb", "indexes": "*.toml",
    "prompts": "*.toml", "prompts/judges": "*.toml", "prompts/demos": "*.jsonl",
}  # fmt: skip


class Bundle(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # runs from the checkout, which has them
            return
        tracked = _tracked_files(Path(self.root))
        for folder, pattern in _BUNDLED.items():
            for path in Path(self.root, folder).glob(pattern):
                if tracked is None or path in tracked:
                    target = f"{folder}/{path.name}"
                    is_wheel = self.target_name == "wheel"
                    build_data["force_include"][str(path)] = (
                        f"ifqa/bundled/{target}" if is_wheel else target
                    )


def _tracked_files(root: Path) -> set[Path] | None:
    """The files that git tracks: a user's own experiments and corpora hold private paths.

    None outside of a checkout.

    Outside, as in an unpacked source distribution, there are no other files.
    """
    if not (root / ".git").exists():
        return None
    command = ["git", "-c", f"safe.directory={root}", "-C", str(root), "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    return {root / name for name in listed.split("\0") if name}
