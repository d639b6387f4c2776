"""The flags that change an experiment, on the command line and as arguments of the Python
functions.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict, get_args, get_type_hints

# "read": also run, probe and check; "ask": also serve and mcp; "draft": init
Commands = Literal["retrieve", "read", "score", "ask", "draft"]
_SEARCH: tuple[Commands, ...] = ("retrieve", "read", "score", "ask")
_READ: tuple[Commands, ...] = ("read", "score", "ask")
_ANSWERS: tuple[Commands, ...] = ("read", "score")
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

    k: Annotated[int, Flag("k", "Number of passages to retrieve for each question.", _SEARCH)]
    retriever: Annotated[str, Flag("retriever", "Retriever: a name, or my_module:Class.", _SEARCH)]
    reader: Annotated[str, Flag("reader", "Reader: a name, my_module:Class, or none.", _READ)]
    passages: Annotated[
        int,
        Flag("reader.passages", "Number of retrieved passages to read for each question.", _READ),
    ]
    corpus: Annotated[
        str, Flag("corpus", "Corpus to search instead of the experiment's.", ("ask",))
    ]
    checkpoint: Annotated[
        str,
        Flag(
            "reader.checkpoint", "Weights of a reader such as fid: a folder or a hub model.", _READ
        ),
    ]
    prompt: Annotated[
        str, Flag("reader.prompt", "Prompt of the reader 'llm': NAME for prompts/NAME.toml.", _READ)
    ]
    model: Annotated[
        str, Flag("llm.model", "Language model: a name at its server, a GGUF file, a folder.")
    ]
    judge: Annotated[
        str,
        Flag(
            "judge.model",
            "Language model that judges whether answers mean the same as gold answers.",
            _ANSWERS,
        ),
    ]
    max_tokens: Annotated[
        int, Flag("llm.max_tokens", "Maximum number of tokens of a model's answer.", minimum=1)
    ]
    thinking: Annotated[
        str,
        Flag(
            "llm.thinking", "How much the model thinks before it answers: off, low, medium, high."
        ),
    ]
    max_cost: Annotated[
        float,
        Flag("llm.max_cost", "Maximum cost of this run in US dollars; 0 for no cap.", minimum=0),
    ]
    max_total_tokens: Annotated[
        int,
        Flag(
            "llm.max_total_tokens", "Maximum number of tokens of this run; 0 for no cap.", minimum=0
        ),
    ]
    retry_failed: Annotated[
        bool, Flag("llm.retry_failed", "Also repeat requests whose failure is stored.")
    ]
    limit: Annotated[
        int,
        Flag(
            "limit",
            "Ask only the first N questions, for a trial; scores are marked PARTIAL.",
            _STAGES,
        ),
    ]
    sample: Annotated[
        int, Flag("sample", "Ask N random questions; scores are marked PARTIAL.", _STAGES)
    ]
    stratified: Annotated[
        bool,
        Flag(
            "stratified", "With --sample: keep the proportions of the benchmark's subsets.", _STAGES
        ),
    ]
    seed: Annotated[
        int, Flag("seed", "Seed of the sample, drawn demonstrations and the bootstrap.", _STAGES, 0)
    ]


_TYPES = {
    name: get_args(hint) for name, hint in get_type_hints(Changes, include_extras=True).items()
}
FLAGS: dict[str, Flag] = {name: flag for name, (_, flag) in _TYPES.items()}
#: Flags that have one value even in a sweep: caps of all its runs, and switches.
ONE_VALUE = ("max_cost", "max_total_tokens", "retry_failed", "stratified")
TYPES: dict[str, type] = {name: kind for name, (kind, _) in _TYPES.items()}
