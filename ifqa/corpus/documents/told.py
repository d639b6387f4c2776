"""What a build says of a user's documents: which files were read, and which were left out and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ifqa.progress import counted

_NAMED = 8  # files whose names are said
_KINDS = {
    "hidden": "hidden",
    "link": "links",
    "other": "of kinds that are not read",
    "special": "pipes or devices",
    "ifqa": "written by ifqa",
}


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """Which files were read, new, changed or removed since the last build.

    Args:
        before: key -> identity of each file of the last build; empty if there was none.
        after: the same of this build.
    """
    settings = {key.partition("/")[0] for key in before}
    if not any(key.partition("/")[0] in settings for key in after):
        return f"{counted(len(after), 'file')} read"
    new, gone = after.keys() - before.keys(), before.keys() - after.keys()
    changed = {key for key in after.keys() & before.keys() if list(_bytes(after[key])) != list(_bytes(before[key]))}
    parts = [_named(len(changed), "changed", changed), _named(len(new), "new", new), _named(len(gone), "removed", gone)]
    read, same = counted(len(changed) + len(new), "file"), len(after) - len(changed) - len(new)
    return f"{read} read again, {same:,} unchanged{''.join(filter(None, parts))}"


def _bytes(identity: object) -> Sequence[object]:
    return identity[-1:] if isinstance(identity, Sequence) else ()  # the SHA-256


def _named(count: int, what: str, keys: Iterable[str]) -> str:
    names = sorted(key.partition("/")[2] for key in keys)
    more = f" and {count - _NAMED:,} more" if count > _NAMED else ""
    return f"; {count:,} {what} ({', '.join(names[:_NAMED])}{more})" if count else ""


def left_out(bad: Sequence[Mapping[str, str]], listed: object = "") -> Iterator[str]:
    """What was left out, in a few lines.

    Args:
        bad: id, kind and reason of each.
        listed: the file that lists all of them, to be named at the end.
    """
    counts = Counter(one.get("kind", "") for one in bad)
    groups = [f"{counts[kind]:,} {what}" for kind, what in _KINDS.items() if counts[kind]]
    if groups:
        yield f"left out: {', '.join(groups)}"
    named = [one for one in bad if one.get("kind") not in _KINDS]
    for one in named[:_NAMED]:
        yield f"left out: {one['id']}: {one['reason']}"
    if len(named) > _NAMED:
        yield f"left out: {counted(len(named) - _NAMED, 'more file')}"
    if bad and listed:
        yield f"all that is left out, with reasons: {listed}"
