"""Figures on disk: which kinds there are, and the same bytes for the same numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.storage.files import create, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: suffix of a figure -> what else it would say of itself; without it the same numbers give the same bytes.
FIGURES: dict[str, dict[str, None]] = {
    ".svg": {"Date": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None},
}


def check_figure(path: Path) -> str:
    """The suffix of a figure that can be drawn; ask before the work whose figure it is.

    Raises:
        IfqaError: it is no figure's suffix, or matplotlib is missing.
    """
    if path.suffix.lower() not in FIGURES:
        raise IfqaError(f"figure {path}: found the suffix {path.suffix!r}, wanted one of {', '.join(FIGURES)}")
    if find_spec("matplotlib") is None:
        raise IfqaError("a figure needs matplotlib; install it with: pip install 'ifqa[notebooks]'")
    return path.suffix.lower()


@contextmanager
def without_formulas() -> Iterator[None]:
    """Draw within this: "$" in a text, such as a split's name, is a dollar sign and opens no formula."""
    from matplotlib import rc_context

    with rc_context({"text.parse_math": False}):
        yield


def save(figure: "Figure", path: Path) -> None:
    """Write a figure when it is whole; its kind is that of the path's suffix."""
    from matplotlib import rc_context

    suffix, image = path.suffix.lower(), BytesIO()
    with rc_context({"svg.hashsalt": "ifqa"}):
        figure.savefig(image, format=suffix[1:], dpi=200, metadata=FIGURES[suffix])
    with create(path) as handle:
        write(handle, image.getvalue())
