"""Names of experiments: valid names, and names of variants, which flags make from another experiment."""

import re
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.storage.resources import find_resource, plain_name

_CHANGE = re.compile(r"[\w.]+=[\w.~-]*")  # as `variants.override` writes it into a name
_WRITTEN = ("RESULTS.md", "RESULTS.jsonl", "report.html")  # by `ifqa report`, into experiments/


def bases(name: str, root: Path = Path()) -> list[str]:
    """The experiments that a variant NAME+KEY=VALUE... varies, the nearest first; empty if it is no variant.

    An experiment with a file of its own, experiments/NAME.toml, is no variant, whatever its name.
    """
    if find_resource(f"experiments/{name}.toml", root):
        return []
    parts = name.split("+")
    first = len(parts)
    while first > 1 and _CHANGE.fullmatch(parts[first - 1]):
        first -= 1
    return ["+".join(parts[:count]) for count in range(len(parts) - 1, first - 1, -1)]


def changed_keys(name: str, base: str) -> list[str]:
    """The settings of `base` that a variant changes, by its name: ["k", "reader.passages"]."""
    return [change.partition("=")[0] for change in name.removeprefix(base).split("+") if change]


def experiment_name(name: str | Path, root: Path = Path()) -> str:
    """The name itself, or that of a path experiments/NAME.toml, so that a shell's `experiments/*.toml` names several.

    Raises:
        IfqaError: it is no name, it leads to another folder, or `ifqa report` writes a file of that name.
    """
    if not isinstance(name, str | Path):
        raise IfqaError(f"experiment {name!r}: wanted a name, as 'sample'")
    path = Path(name)
    if path.name != str(name) and path.resolve().parent == (root / "experiments").resolve():
        name = path.name.removesuffix(".toml")
    if name in _WRITTEN:
        raise IfqaError(f"experiment {name!r}: `ifqa report` writes a file of that name; call the experiment otherwise")
    return plain_name(str(name), "experiment")
