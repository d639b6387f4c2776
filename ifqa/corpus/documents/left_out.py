"""A build's messages about the files that it left out of a folder, and what would help to read
them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ifqa.corpus.documents.readers import suffix_of
from ifqa.formatting import pluralize, printable_line

#: A file left out: its `id` (path), `kind` and `reason`, as in a line of bad_pages.jsonl.
LeftOut = Mapping[str, str]

_CORPUS = "CORPUS"  # stands for the corpus's name in a hint
#: Kind of a file left out, or start of its reason -> what would help.
_MENDS = {
    "no text on": "a scan without text: ocrmypdf IN OUT adds it, or start with --ocr",
    "it needs a password": "save a copy without the password",
    "it is of a version of Word before 97": "soffice --headless --convert-to docx FILE",
    "not a complete PDF": "open it and save it again, or fetch it again",
    "cannot be read (File name too long": "give its folders shorter names",
    "it changed while it was being read": "run the same command again",
    "large": f"start with --max-mb, or raise max_mb in indexes/{_CORPUS}.toml",
    "closed": "allow your user to read it",
    "link": "put the file itself into the folder",
    "hidden": "rename without the dot to have it read",
}
#: Formats to save other kinds of files in -> the suffixes of these, looked up only for files that
#: no reader takes.
_SAVED_AS = {
    "docx": ".abw .pages .sxw .wpd .wps",
    "xlsx": ".fods .numbers .sxc .wks",
    "pptx": ".key .pps .ppt .sxi",
}
_SUFFIX_MENDS = {
    suffix: f"save as .{kind}: soffice --headless --convert-to {kind} FILE"
    for kind, suffixes in _SAVED_AS.items()
    for suffix in suffixes.split()
}
_SUFFIX_MENDS |= {
    ".ps": "save as .pdf: ps2pdf FILE",
    **dict.fromkeys(
        (".azw", ".azw3", ".fb2", ".mobi"), "save as .epub: ebook-convert FILE OUT.epub"
    ),
    **dict.fromkeys(
        (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"),
        "pictures: ocrmypdf IN OUT.pdf makes a PDF with their text",
    ),
    **dict.fromkeys(
        (".7z", ".bz2", ".gz", ".rar", ".tar", ".tgz", ".xz", ".zip", ".zst"),
        "unpack into the folder",
    ),
}
#: Kind of files that are only counted -> the noun.
_COUNTED = {
    "hidden": "hidden",
    "link": "linked",
    "special": "pipe or device",
    "ifqa": "written by ifqa",
}
_NAMED = 8  # files, or kinds of files, to name in a message
_LONGEST_SUFFIX = 12  # characters of one that is named


def mend(file: LeftOut, corpus: str) -> str:
    """What would help to read a file that was left out of the corpus `corpus`.

    Often empty.
    """
    if file["kind"] == "other":
        return _SUFFIX_MENDS.get(suffix_of(file["id"]), "")
    hints = (
        hint
        for mark, hint in _MENDS.items()
        if mark == file["kind"] or file["reason"].startswith(mark)
    )
    return next(hints, "").replace(_CORPUS, corpus)


def describe_left_out(bad: Sequence[LeftOut], corpus: str) -> Iterator[str]:
    """The files left out of the corpus `corpus` in a few lines, with what would help."""
    files = [file for file in bad if "kind" in file]
    counts = Counter(file["kind"] for file in files)
    for kind, noun in _COUNTED.items():
        if counts[kind]:
            yield _line(f"{counts[kind]:,} {noun}", _MENDS.get(kind, ""))
    yield from _describe_kinds([file for file in files if file["kind"] == "other"], corpus)
    named = [file for file in files if file["kind"] not in {*_COUNTED, "other"}]
    for file in named[:_NAMED]:
        yield _line(f"{file['id']}: {file['reason']}", mend(file, corpus), "; ")
    if len(named) > _NAMED:
        yield _line(pluralize(len(named) - _NAMED, "more file"))


def _describe_kinds(files: Sequence[LeftOut], corpus: str) -> Iterator[str]:
    """Files that no reader takes, counted by suffix: a line for each way to read them."""
    by_mend: dict[str, Counter[str]] = {}
    for file in files:
        by_mend.setdefault(mend(file, corpus), Counter())[_shown_suffix(file["id"])] += 1
    for hint, suffixes in sorted(by_mend.items(), key=lambda pair: (not pair[0], pair[0])):
        parts = [f"{count:,} {suffix}" for suffix, count in suffixes.most_common(_NAMED)]
        rest = sum(suffixes.values()) - sum(count for _, count in suffixes.most_common(_NAMED))
        parts += [f"{rest:,} others"] if rest else []
        yield _line(", ".join(parts), hint or "not read as documents")


def _shown_suffix(name: str) -> str:
    """The suffix of a file for a message."""
    suffix = suffix_of(name)
    if not 1 < len(suffix) <= _LONGEST_SUFFIX:
        return "without a usual ending"
    return printable_line(suffix)


def _line(what: str, hint: str = "", mark: str = ": ") -> str:
    return f"left out: {what}{mark if hint else ''}{hint}"
