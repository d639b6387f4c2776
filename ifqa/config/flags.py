"""The flags that change an experiment, on the command line and as arguments of the Python functions.

Imports nothing heavy, because the command line's help needs it.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict, get_args, get_type_hints

Commands = Literal["retrieve", "read", "score", "ask"]  # "read": run, probe and check too; "ask": serve and mcp too
_READING: tuple[Commands, ...] = ("read", "score", "ask")
_PAYING: tuple[Commands, ...] = ("retrieve", "read", "ask")


@dataclass(frozen=True)
class ExperimentFlag:
    """A flag: its setting, its help, the commands that have it, and its least value."""

    setting: str
    help: str
    commands: tuple[Commands, ...] = get_args(Commands)
    least: float | None = None


class Changes(TypedDict, total=False):
    """The flags with the types of their values."""

    k: Annotated[int, ExperimentFlag("k", "Passages to retrieve for each question.")]
    retriever: Annotated[str, ExperimentFlag("retriever", "Retriever: a name, or my_module:Class.")]
    reader: Annotated[str, ExperimentFlag("reader", "Reader: a name, my_module:Class, or none.", _READING)]
    passages: Annotated[int, ExperimentFlag("reader.passages", "Passages to read for each question.", _READING)]
    corpus: Annotated[str, ExperimentFlag("corpus", "Corpus to search instead.", ("ask",))]
    checkpoint: Annotated[
        str, ExperimentFlag("reader.checkpoint", "The reader's weights: a folder or a hub's model.", _READING)
    ]
    prompt: Annotated[
        str, ExperimentFlag("reader.prompt", "Prompt of the reader 'llm': a file prompts/NAME.toml.", _READING)
    ]
    model: Annotated[str, ExperimentFlag("llm.model", "Language model to ask.")]
    max_cost: Annotated[float, ExperimentFlag("llm.max_cost", "US dollars this run may cost; 0: no cap.", _PAYING, 0)]
    max_tokens: Annotated[
        int, ExperimentFlag("llm.max_total_tokens", "Tokens this run may take; 0: no cap.", _PAYING, 0)
    ]
    limit: Annotated[
        int, ExperimentFlag("limit", "Only the first N questions; scores say PARTIAL.", ("retrieve", "read", "score"))
    ]


_TYPES = {name: get_args(hint) for name, hint in get_type_hints(Changes, include_extras=True).items()}
FLAGS: dict[str, ExperimentFlag] = {name: flag for name, (_, flag) in _TYPES.items()}
TYPES: dict[str, type] = {name: kind for name, (kind, _) in _TYPES.items()}
