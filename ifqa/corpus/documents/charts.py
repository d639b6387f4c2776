"""Reads the charts of Office: the categories and values that a chart keeps, as a table."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from xml.etree.ElementTree import Element

from ifqa.corpus.documents.decoding import TextRun
from ifqa.corpus.documents.drawings import drawing_text
from ifqa.corpus.documents.list_numbers import parse_count
from ifqa.corpus.documents.number_formats import format_value, plain_number
from ifqa.corpus.documents.office import CHART, DRAWING
from ifqa.corpus.documents.tables import table_runs

_MOST_SERIES = 256
_LATEST_DAY = 2_958_465  # 31 December 9999, as Excel counts the days


def chart_runs(tree: Element, place: int) -> Iterator[TextRun]:
    """The title of a chart, and a row for each of its categories."""
    title = tree.find(f"{CHART}chart/{CHART}title")
    if title is not None:
        words = " ".join(drawing_text(part) for part in title.iter(f"{DRAWING}p"))
        yield TextRun(words, place, item=True)
    plots = tree.find(f"{CHART}chart/{CHART}plotArea")
    series = [] if plots is None else list(plots.iter(f"{CHART}ser"))[:_MOST_SERIES]
    for rows in _tables(series):
        numbered = ((place, row) for row in rows)
        for run in table_runs(numbered, header=1, has_titles=False):
            yield replace(run, place=place)


def _tables(series: list[Element]) -> Iterator[list[list[str]]]:
    """A table of all series that share their categories; another one for the next series."""
    columns = list[tuple[str, Mapping[int, str]]]()
    shared: Mapping[int, str] = {}
    for each in series:
        categories = _points(each, "cat") or _points(each, "xVal")
        if columns and categories and categories != shared:
            yield _table(shared, columns)
            columns = []
        shared = categories or shared
        name = next(iter(_points(each, "tx").values()), "")
        columns.append((name, _points(each, "val") or _points(each, "yVal")))
    if columns:
        yield _table(shared, columns)


def _table(
    categories: Mapping[int, str], columns: list[tuple[str, Mapping[int, str]]]
) -> list[list[str]]:
    places = sorted({place for _, values in columns for place in values})
    names = [name or f"series {number}" for number, (name, _) in enumerate(columns, start=1)]
    rows = [["", *names]]
    for place in places:
        values = [values.get(place, "") for _, values in columns]
        rows.append([categories.get(place, ""), *values])
    return rows


def _points(series: Element, name: str) -> dict[int, str]:
    """Place -> text of the cached points of a series: its categories, values or name."""
    holder = series.find(f"{CHART}{name}")
    if holder is None:
        return {}
    written = holder.find(f"{CHART}v")
    if written is not None:
        return {0: (written.text or "").strip()}
    levels = list(holder.iter(f"{CHART}lvl"))
    points: dict[int, str] = {}
    for level in reversed(levels):  # from the outermost level, which names several categories
        points = _join(points, _cached(level, "General"), bool(points))
    if levels:
        return points
    style = next(holder.iter(f"{CHART}formatCode"), None)
    return _cached(holder, (style.text or "") if style is not None else "")


def _join(outer: dict[int, str], inner: dict[int, str], has_outer: bool) -> dict[int, str]:
    if not has_outer:
        return inner
    joined: dict[int, str] = {}
    group = ""
    for place in sorted(outer.keys() | inner.keys()):
        group = outer.get(place, group)
        joined[place] = f"{group} {inner.get(place, '')}".strip()
    return joined


def _cached(holder: Element, style: str) -> dict[int, str]:
    points: dict[int, str] = {}
    for point in holder.iter(f"{CHART}pt"):
        written = point.find(f"{CHART}v")
        text = ((written.text or "") if written is not None else "").strip()
        points[parse_count(point.get("idx"))] = _as_shown(text, point.get("formatCode") or style)
    return points


def _as_shown(text: str, style: str) -> str:
    """A number of a chart in its format, such as a percentage or a date."""
    try:
        number = float(text)
    except ValueError:
        return text
    if not style or style == "General":
        return plain_number(number)
    from openpyxl.styles.numbers import is_date_format
    from openpyxl.utils.datetime import from_excel

    is_day = 0 < number < _LATEST_DAY and is_date_format(style)
    return format_value(from_excel(number) if is_day else number, style)
