"""A function over many tasks, on processes of this machine or on a Ray cluster; results come as they are finished.

Workers hold no state and write nothing: a task goes to one as a value, its result comes back as a value, and whoever
asked writes it down. So nothing depends on how many there are, where they run, or when one dies.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Literal, TypeVar

from ifqa.errors import IfqaError
from ifqa.workers.cluster import on_ray
from ifqa.workers.local import on_processes
from ifqa.workers.machine import cores

Engine = Literal["local", "ray"]
Task = TypeVar("Task")
Result = TypeVar("Result")


def run(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    workers: int = 0,
    engine: Engine = "local",
    gpus: int = 0,
    name: Callable[[Task], str] = str,
) -> Iterator[tuple[Task, Result]]:
    """Each task and its result, in the order in which they are finished.

    Args:
        function: a function of a module, so that another process can import it.
        tasks: taken as workers become free: at most two for each are in memory.
        workers: how many; 0 for as many as there are cores, here or in the cluster. One works in this process.
        engine: "local" for processes of this machine, "ray" for the cluster that RAY_ADDRESS names, or one made here.
        gpus: of this machine; each worker sees one of them. With Ray, any number but 0 gives each task a GPU of its own.
        name: what an error calls a task.

    Raises:
        IfqaError: the function or `tasks` raised one, or a worker died twice at the same task, which is named. Before
            that, the results of the tasks that were being worked on are given.
        RuntimeError: the function has a bug; its traceback stands on stderr.
    """
    broken: list[IfqaError] = []
    source = _until_broken(tasks, broken)
    if engine == "ray":
        yield from on_ray(function, source, workers, gpus, name)
    else:
        workers = workers or cores()
        first = list(islice(source, 2))
        alone = workers == 1 or len(first) < 2
        source = chain(first, source)
        del first  # tasks are large
        if alone:
            yield from ((task, function(task)) for task in source)
        else:
            yield from on_processes(function, source, workers, gpus, name)
    if broken:
        raise broken[0]


def _until_broken(tasks: Iterable[Task], broken: list[IfqaError]) -> Iterator[Task]:
    """The tasks up to an error in reading them, which is put by until they are done."""
    try:
        yield from tasks
    except IfqaError as error:
        broken.append(error)
