"""What `ifqa screen` prints: the share of passages that is kept, by keyword, and examples each way."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from ifqa.corpus.screening import KEYWORDS, Drawn
from ifqa.pipeline.screen import GoldScreened
from ifqa.report.terminal import plain

_LONGEST = 300  # characters of a passage that is left out


def screened_json(drawn: Drawn, gold: Mapping[str, GoldScreened], examples: int) -> dict[str, object]:
    """Counts and shares, and examples, as JSON data."""
    kept = drawn.keywords.total()
    return {
        "passages": drawn.passages,
        "kept": kept,
        "share": kept / drawn.passages,
        "keywords": {name: drawn.keywords[name] for name in KEYWORDS},
        "gold": {
            split: {"passages": len(one.kept) + len(one.left), "kept": len(one.kept), "share": _number(one.share)}
            for split, one in gold.items()
        },
        "kept_examples": [
            {"id": passage.id, "keyword": why.keyword, "sentence": why.sentence}
            for _, passage, why in drawn.kept[:examples]
        ],
        "left_examples": [{"id": passage.id, "text": passage.text} for _, passage in drawn.left[:examples]],
    }


def _number(share: float) -> float | None:
    return share if share == share else None


def show(name: str, drawn: Drawn, gold: Mapping[str, GoldScreened], examples: int) -> None:
    """Print them as a table, and examples."""
    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("", "passages", "kept", "%"):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    kept = drawn.keywords.total()
    table.add_row(plain(name), f"{drawn.passages:,}", f"{kept:,}", f"{100 * kept / drawn.passages:.1f}")
    for keyword in KEYWORDS:
        found = drawn.keywords[keyword]
        table.add_row(f"  {keyword}", "", f"{found:,}", f"{100 * found / drawn.passages:.1f}")
    for split, one in gold.items():
        total = len(one.kept) + len(one.left)
        table.add_row(f"gold of {plain(split)}", f"{total:,}", f"{len(one.kept):,}", f"{100 * one.share:.1f}")
    console.print(table)
    if examples:
        console.print("\n[italic]kept: keyword, sentence[/italic]")
        for _, passage, why in drawn.kept[:examples]:
            console.print(f"{plain(passage.id)}  [bold]{why.keyword}[/bold]  {plain(why.sentence)}", soft_wrap=True)
        console.print("\n[italic]left out[/italic]")
        for _, passage in drawn.left[:examples]:
            console.print(f"{plain(passage.id)}  {plain(passage.text[:_LONGEST])} …", soft_wrap=True)
    for split, one in gold.items() if examples else ():
        console.print(f"\n[italic]gold passages of {plain(split)} that are left out[/italic]")
        for text in one.left[:examples]:
            console.print(f"{plain(text[:_LONGEST])} …", soft_wrap=True)
