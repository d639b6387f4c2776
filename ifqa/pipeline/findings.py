"""What a check finds: lines for people, with fields for programs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from ifqa.errors import IfqaError
from ifqa.pipeline.ready import Need
from ifqa.progress import counted

Kind = Literal["", "forecasts", "stages", "needs", "verified"]


class Finding(NamedTuple):
    """A line for people; and for programs its fields, below the key `kind` of the JSON. The header's kind is empty."""

    line: str
    kind: Kind = ""
    fields: Mapping[str, object] = MappingProxyType({})


def as_json(name: str, found: Iterable[Finding], problem: str) -> dict[str, object]:
    """What `check` found, as JSON data: the fields of each kind of finding, and the error, which is empty for none."""
    several = list(found)
    kinds = [kind for kind in get_args(Kind) if kind and (kind != "verified" or kind in {one.kind for one in several})]
    by_kind = {kind: [dict(one.fields) for one in several if one.kind == kind] for kind in kinds}
    missing = sum(not need["here"] for need in by_kind["needs"])
    return {"name": name, **by_kind, "missing": missing, "problem": problem}


def all_of(*parts: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of all parts; the errors of those that fail are raised together after the last part."""
    problems = []
    for part in parts:
        try:
            yield from part()
        except IfqaError as error:
            problems.append(str(error))
    if problems:
        raise IfqaError("; ".join(dict.fromkeys(problems)))


def found_needs(needed: Sequence[Need]) -> Iterator[Finding]:
    """How many things are here, and a line for each."""
    here = sum(need.here for need in needed)
    yield Finding(f"  needs: {here} of {len(needed)} here" + (f", {len(needed) - here} missing" * (here < len(needed))))
    for need in needed:
        line = f"    {'here   ' if need.here else 'missing'}  {need.what}" + (f": {need.how}" if need.how else "")
        yield Finding(line, "needs", {"what": need.what, "here": need.here, "how": need.how})


def forecasted(line: str, what: str, **known: object) -> Finding:
    """A finding of how much work is left; what is not in `known` is unknown."""
    fields = dict.fromkeys(("seconds", "disk", "memory", "calls", "prompt_tokens", "completion_tokens", "cost"), None)
    return Finding(line, "forecasts", {"what": what, "made": False, **fields, **known})


def size(count: float) -> str:
    """Bytes in a readable unit: "275 kB"."""
    if round(count) < 1000:  # round first: 999.6 kB is 1 MB
        return counted(count, "byte")
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if round(count) < 1000:
            return f"{count:.0f} {unit}"
    return f"{count / 1000:.1f} TB"
