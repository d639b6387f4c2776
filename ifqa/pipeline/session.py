"""`Session`: the budget and the opened language models that a command's experiments share."""

import threading
from typing import Any

from ifqa.llms.budget import Budget
from ifqa.plugins import ConfiguredPlugin
from ifqa.protocols import LanguageModel
from ifqa.storage.files import json_line


class Session:
    """The budget and the opened language models of a command, or of an opened system.

    Stages and experiments that name a model with the same settings share it; the budget's caps hold
    for all together. Several threads may use a session.
    """

    def __init__(self) -> None:
        self.budget = Budget()
        self._lock = threading.Lock()
        self._models: dict[bytes, LanguageModel] = {}

    def model(self, configured: "ConfiguredPlugin[Any]") -> LanguageModel:
        """The language model of a section [llm]; IfqaError if it cannot be opened."""
        key = json_line({"root": str(configured.root.absolute()), **configured.section()})
        with self._lock:
            if key not in self._models:
                self._models[key] = configured.open(budget=self.budget)
            return self._models[key]
