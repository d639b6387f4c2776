"""The command line as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path


def ifqa(*arguments, folder, **environment):
    """Run the command line in a folder; the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "ifqa", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
    )  # fmt: skip
