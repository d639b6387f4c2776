"""Figures: the kinds of files that can be written, with the same bytes for the same numbers; and SVG as an image in HTML."""

from base64 import b64encode
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

#: Suffix of a figure -> metadata to leave out, because it would change the bytes from run to run.
FIGURES: dict[str, dict[str, None]] = {
    ".svg": {"Date": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None},
}


def check_figure(path: Path) -> str:
    """The suffix of a figure, in lower case; called before the work, so that a wrong suffix fails early.

    Raises:
        IfqaError: no figure has this suffix, or matplotlib is missing.
    """
    if path.suffix.lower() not in FIGURES:
        raise IfqaError(f"figure {path}: found the suffix {path.suffix!r}, wanted one of {', '.join(FIGURES)}")
    if find_spec("matplotlib") is None:
        raise IfqaError("a figure needs matplotlib; install it with: pip install 'ifqa[notebooks]'")
    return path.suffix.lower()


@contextmanager
def without_formulas() -> Iterator[None]:
    """A context to draw in: "$" in a text, such as a split's name, is a dollar sign and begins no formula."""
    from matplotlib import rc_context

    with rc_context({"text.parse_math": False}):
        yield


def image(svg: str) -> str:
    """HTML of an SVG as an image, which runs no script and fetches nothing, whatever the SVG holds; "" for no SVG.

    A notebook shows a benchmark's `figure` with IPython.display.HTML(image(...)).
    """
    data = b64encode(svg.encode("utf-8", "replace")).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" style="max-width: 100%">' if svg else ""


def save(figure: "Figure", path: Path) -> None:
    """Write a figure atomically, in the format of the path's suffix."""
    from matplotlib import rc_context

    suffix, image = path.suffix.lower(), BytesIO()
    with rc_context({"svg.hashsalt": "ifqa"}):
        figure.savefig(image, format=suffix[1:], dpi=200, metadata=FIGURES[suffix])
    with create(path) as handle:
        write(handle, image.getvalue())
