"""Run a function over many tasks, on processes of this machine or on a Ray cluster.

Results come in the order in which the tasks finish.

Workers hold no state and write nothing: a worker receives a task and returns its result, and the caller writes the result.
So the output does not depend on the number of workers, on their machines, or on a worker's death.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal, TypeVar, get_args

from ifqa.errors import IfqaError, unknown
from ifqa.workers.cluster import on_ray
from ifqa.workers.local import on_processes
from ifqa.workers.machine import cores

Engine = Literal["local", "ray"]
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Workers:
    """Who does the tasks of a stage: `number` processes, 0 for one a core, of this machine or of a Ray cluster."""

    number: int = 1
    engine: Engine = "local"

    def __post_init__(self) -> None:
        if self.engine not in get_args(Engine):
            raise unknown("engine", self.engine, get_args(Engine))
        if type(self.number) is not int or self.number < 0:
            raise IfqaError(
                f"workers: wanted a whole number of processes, or 0 for one a core; found {self.number!r:.80}"
            )

    @property
    def alone(self) -> bool:
        """Whether this process does all of it."""
        return self.engine == "local" and (self.number or cores()) == 1


def run(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, workers: int = 0, engine: Engine = "local", gpus: int = 0,
    name: Callable[[Task], str] = str,
) -> Iterator[tuple[Task, Result]]:  # fmt: skip
    """Yield each task and its result, in the order in which they finish.

    Args:
        function: a function of a module, so that another process can import it.
        tasks: read as workers become free; at most two tasks a worker are in memory.
        workers: how many; 0 for one a core, here or in the cluster. A single worker runs in this process.
        engine: "local" for processes of this machine; "ray" for the cluster that RAY_ADDRESS names, or one started here.
        gpus: GPUs of this machine; each worker sees one of them. With Ray, any number but 0 gives each task its own GPU.
        name: the name of a task in error messages.

    Raises:
        IfqaError: `function` or `tasks` raised it, or a worker died twice at the task that the message names. The results of
            the tasks already begun are yielded before.
        RuntimeError: the function has a bug; its traceback is on stderr.
    """
    broken: list[IfqaError] = []
    source = _until_broken(tasks, broken)
    if engine == "ray":
        yield from on_ray(function, source, workers, gpus, name)
    else:
        workers = workers or cores()
        first = list(islice(source, 2))
        alone, source = workers == 1 or len(first) < 2, chain(first, source)
        del first  # tasks are large
        if alone:
            yield from ((task, function(task)) for task in source)
        else:
            yield from on_processes(function, source, workers, gpus, name)
    if broken:
        raise broken[0]


def _until_broken(tasks: Iterable[Task], broken: list[IfqaError]) -> Iterator[Task]:
    """The tasks up to an error in reading them; the error is appended to `broken`, to be raised once they finish."""
    try:
        yield from tasks
    except IfqaError as error:
        broken.append(error)
