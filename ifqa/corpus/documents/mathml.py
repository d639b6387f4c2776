"""Writes a formula of MathML as one line of text: a/b, x^2, √(x)."""

from collections.abc import Callable, Sequence

from ifqa.corpus.documents.marks import lowered

_DEEPEST = 50  # elements within one another; deeper ones are written one after another
_LEAVES = frozenset("mi mn mo mtext ms".split())
_SPACED = frozenset("= + - − ± × · ÷ < > ≤ ≥ ≠ ≈ ≡ → ⇒ ∈ ∪ ∩".split())
_UNSEEN = frozenset("annotation annotation-xml mphantom".split())


class Formula:
    """A formula, as its tags and texts are added in order."""

    def __init__(self) -> None:
        self._open: list[tuple[str, list[str]]] = [("math", [])]
        self._flat = 0  # open elements that are too deep

    def add_text(self, text: str) -> None:
        if text.strip():
            self._open[-1][1].append(text.strip())

    def add_tag(self, is_start: bool, name: str) -> None:
        name = name.rpartition(":")[2]  # m:mfrac
        if not is_start:
            self._end(name)
        elif name in _WRITERS or name in _LEAVES or name in _UNSEEN:
            if len(self._open) > _DEEPEST:
                self._flat += 1
            else:
                self._open.append((name, []))

    def _end(self, name: str) -> None:
        if self._flat:
            self._flat -= 1
        elif any(name == each for each, _ in self._open[1:]):
            while self._pop() != name:
                pass

    def _pop(self) -> str:
        name, parts = self._open.pop()
        if name in _LEAVES:
            text = "".join(parts)
            self._open[-1][1].append(f" {text} " if text in _SPACED else text)
        elif name not in _UNSEEN:
            self._open[-1][1].append(_WRITERS[name](parts))
        return name

    def text(self) -> str:
        while len(self._open) > 1:
            self._pop()
        return "".join(self._open[0][1])


def _write_row(parts: Sequence[str]) -> str:
    return "".join(parts)


def _grouped(text: str) -> str:
    """The text, in brackets if it has several parts."""
    text = text.strip()
    return text if text.isalnum() or len(text) < 2 or text.startswith("(") else f"({text})"


def _write_fraction(parts: Sequence[str]) -> str:
    return "/".join(map(_grouped, parts))


def _write_power(parts: Sequence[str]) -> str:
    return "^".join([*parts[:1], *map(_grouped, parts[1:])])


def _write_index(parts: Sequence[str]) -> str:
    return "".join([*parts[:1], *map(lowered, parts[1:])])


def _write_both(parts: Sequence[str]) -> str:
    return _write_power([_write_index(parts[:2]), *parts[2:]])


def _write_square_root(parts: Sequence[str]) -> str:
    return f"√({''.join(parts)})"


def _write_root(parts: Sequence[str]) -> str:
    index = "".join(parts[1:])
    return f"{index}√({''.join(parts[:1])})"


def _write_base(parts: Sequence[str]) -> str:
    return "".join(parts[:1])


def _write_cells(parts: Sequence[str]) -> str:
    return ", ".join(parts)


def _write_rows(parts: Sequence[str]) -> str:
    return "; ".join(parts)


_WRITERS: dict[str, Callable[[Sequence[str]], str]] = {
    "mrow": _write_row,
    "mstyle": _write_row,
    "mpadded": _write_row,
    "msup": _write_power,
    "msub": _write_index,
    "msubsup": _write_both,
    "munder": _write_index,
    "mover": _write_base,
    "munderover": _write_both,
    "mfrac": _write_fraction,
    "msqrt": _write_square_root,
    "mroot": _write_root,
    "mtd": _write_row,
    "mtr": _write_cells,
    "mtable": _write_rows,
}
