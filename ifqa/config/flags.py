"""The flags that change an experiment, on the command line and as arguments of the Python
functions.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict, get_args, get_type_hints

# "read": also run, probe and check; "ask": also serve and mcp; "draft": init
Commands = Literal["retrieve", "read", "score", "ask", "draft"]
_SEARCH: tuple[Commands, ...] = ("retrieve", "read", "score", "ask")
_READ: tuple[Commands, ...] = ("read", "score", "ask")
_PAID: tuple[Commands, ...] = ("retrieve", "read", "ask", "draft")
_STAGES: tuple[Commands, ...] = ("retrieve", "read", "score")


@dataclass(frozen=True)
class Flag:
    """A flag: its setting, its help, the commands that have it, and its minimum."""

    setting: str
    help: str
    commands: tuple[Commands, ...] = get_args(Commands)
    minimum: float | None = None


class Changes(TypedDict, total=False):
    """The flags with the types of their values."""

    k: Annotated[int, Flag("k", "Passages to retrieve for each question.", _SEARCH)]
    retriever: Annotated[str, Flag("retriever", "Retriever: a name, or my_module:Class.", _SEARCH)]
    reader: Annotated[str, Flag("reader", "Reader: a name, my_module:Class, or none.", _READ)]
    passages: Annotated[int, Flag("reader.passages", "Passages to read for each question.", _READ)]
    corpus: Annotated[str, Flag("corpus", "Corpus to search instead.", ("ask",))]
    checkpoint: Annotated[
        str, Flag("reader.checkpoint", "The reader's weights: a folder or a hub model.", _READ)
    ]
    prompt: Annotated[
        str, Flag("reader.prompt", "Prompt of the reader 'llm': a file prompts/NAME.toml.", _READ)
    ]
    model: Annotated[str, Flag("llm.model", "Language model to use.")]
    max_tokens: Annotated[
        int, Flag("llm.max_tokens", "Most tokens of a model's answer.", minimum=1)
    ]
    thinking: Annotated[
        str, Flag("llm.thinking", "How much the model thinks: off, low, medium or high.")
    ]
    max_cost: Annotated[
        float, Flag("llm.max_cost", "US dollars this run may cost; 0: no cap.", _PAID, 0)
    ]
    max_total_tokens: Annotated[
        int, Flag("llm.max_total_tokens", "Tokens this run may use; 0: no cap.", _PAID, 0)
    ]
    retry_failed: Annotated[
        bool, Flag("llm.retry_failed", "Ask again where a stored failure stands.", _PAID)
    ]
    limit: Annotated[
        int,
        Flag(
            "limit", "Ask only the first N questions, to try; no sample. Marked PARTIAL.", _STAGES
        ),
    ]
    sample: Annotated[
        int, Flag("sample", "Ask a random sample of N questions. Marked PARTIAL.", _STAGES)
    ]
    stratified: Annotated[
        bool,
        Flag(
            "stratified", "With --sample: in the proportions of the benchmark's subsets.", _STAGES
        ),
    ]
    seed: Annotated[
        int, Flag("seed", "Seed of the sample, drawn demonstrations and bootstrap.", _STAGES, 0)
    ]


_TYPES = {
    name: get_args(hint) for name, hint in get_type_hints(Changes, include_extras=True).items()
}
FLAGS: dict[str, Flag] = {name: flag for name, (_, flag) in _TYPES.items()}
#: Flags that have one value even in a sweep: caps of all its runs, and switches.
ONE_VALUE = ("max_cost", "max_total_tokens", "retry_failed", "stratified")
TYPES: dict[str, type] = {name: kind for name, (kind, _) in _TYPES.items()}
