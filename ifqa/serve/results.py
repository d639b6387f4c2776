"""The page of results, written again when an experiment has been scored since."""

import asyncio
from pathlib import Path


class Results:
    """The results of the experiments below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = asyncio.Lock()
        self._state: object = None
        self._text = ""

    async def page(self) -> str:
        """The page's HTML; one call at a time writes it, in a thread."""
        from ifqa.report.overview import results_page

        async with self._lock:
            state = await asyncio.to_thread(self._scored)
            if state != self._state:
                self._text = await asyncio.to_thread(results_page, self._root, served=True)
                self._state = state
        return self._text

    def _scored(self) -> object:
        """What the page depends on: each finished experiment and the records of others, and when they changed."""
        folder = self._root / "experiments"
        found = sorted([*folder.glob("*/score/manifest.json"), *folder.glob("RESULTS.jsonl")])
        return [(str(one), one.stat().st_mtime_ns) for one in found]
