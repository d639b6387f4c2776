"""Files of Word before 2007 and of Outlook, made byte by byte as Microsoft describes them."""

import struct

LAST = 0xFFFFFFFE
FREE = 0xFFFFFFFF
TABLE = 0xFFFFFFFD
TEXT = 1024  # the place of a document's text in its stream
PAGE = 512
#: Numbers of tables in the header of a document.
STYLES = 1
NOTES = 2
NOTE_TEXTS = 3
CHARACTERS = 12
PARAGRAPHS = 13
FONTS = 15
PIECES = 33
SHAPES = 40
BOX_TEXTS = 56
LISTS = 73
LIST_USES = 74


def compound(streams):
    """A compound file of streams, by their paths: "folder/name"."""
    entries = [("Root Entry", 5, LAST, 0)]
    places = {"": 0}
    children: dict[int, list[int]] = {0: []}
    sectors: list[bytes] = []
    short = b""
    short_table: list[int] = []
    table: list[int] = []

    def store(content):
        first = len(sectors)
        pieces = [content[at : at + PAGE].ljust(PAGE, b"\0") for at in range(0, len(content), PAGE)]
        sectors.extend(pieces)
        table.extend([first + n + 1 for n in range(len(pieces) - 1)] + [LAST] * bool(pieces))
        return first if pieces else LAST

    for path, content in streams.items():
        *folders, name = path.split("/")
        parent = ""
        for folder in folders:
            inner = f"{parent}/{folder}"
            if inner not in places:
                places[inner] = len(entries)
                children[len(entries)] = []
                children[places[parent]].append(len(entries))
                entries.append((folder, 1, 0, 0))
            parent = inner
        children[places[parent]].append(len(entries))
        if len(content) >= 4096:
            start = store(content)
        else:
            start = len(short_table) if content else LAST
            count = -(-len(content) // 64)
            short_table += [start + n + 1 for n in range(count - 1)] + [LAST] * bool(count)
            short += content.ljust(count * 64, b"\0")
        entries.append((name, 2, start, len(content)))
    entries[0] = ("Root Entry", 5, store(short), len(short))
    following: dict[int, int] = {}  # the siblings of an entry as a list to the right
    first_child = {}
    for number, below in children.items():
        first_child[number] = below[0] if below else FREE
        following |= dict(zip(below, [*below[1:], FREE], strict=True))
    directory = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0")
        + struct.pack(
            "<HBBIII36xIQ",
            2 * len(name) + 2,
            kind,
            1,
            FREE,
            following.get(number, FREE),
            first_child.get(number, FREE),
            start,
            size,
        )
        for number, (name, kind, start, size) in enumerate(entries)
    )
    directory_at = store(directory)
    short_table_at = store(struct.pack(f"<{len(short_table)}I", *short_table))
    count = -(-(len(table) + 8) // 128)
    table_at = list(range(len(sectors), len(sectors) + count))
    table += [TABLE] * count
    table += [FREE] * (128 * count - len(table))
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        *(0x3E, 3, 0xFFFE, 9, 6),
        *(0, count, directory_at, 0, 4096, short_table_at, 1, LAST, 0),
    )
    listed = struct.pack("<109I", *table_at, *[FREE] * (109 - count))
    return header + listed + b"".join(sectors) + struct.pack(f"<{len(table)}I", *table)


def word(text, characters=(), paragraphs=None, tables=None, notes="", flags=0, version=0xC1):
    """A document of Word 97: `characters` are (start, end, properties), `paragraphs` the properties
    of paragraphs by their numbers from 0, with the style's number; `notes` is the text of footnotes.
    """
    content = (text + notes).encode("utf-16-le")
    body = len(text.encode("utf-16-le")) // 2
    text = "".join(map(chr, struct.unpack(f"<{len(content) // 2}H", content)))  # positions
    ends = [n + 1 for n, char in enumerate(text) if char in "\r\x07\x0c"]
    page = -(-(TEXT + len(content)) // PAGE)
    runs = []
    before = 0
    for start, end, properties in [*characters, (len(text), len(text), b"")]:
        runs += [(before, start, b"")] * (before < start) + [(start, end, properties)] * (
            start < end
        )
        before = end
    styled = [(paragraphs or {}).get(n, b"\0\0") for n in range(len(ends))]
    bounds = list(zip([0, *ends], ends, styled, strict=False))
    pages, listed = _pages(runs, 1, lambda data: bytes([len(data)]) + data, page)
    more, styled_list = _pages(bounds, 13, _odd, page + len(pages) // PAGE)
    pages += more
    parts = {
        CHARACTERS: listed,
        PARAGRAPHS: styled_list,
        PIECES: b"\2" + struct.pack("<IIIHIH", 16, 0, len(text), 0, TEXT, 0),
    } | (tables or {})
    places = bytearray(8 * 93)
    stored = b"\0" * 4
    for number, part in parts.items():  # that of the lists is the last
        struct.pack_into("<II", places, 8 * number, len(stored), len(part))
        stored += part
    header = struct.pack("<HH6xH20x", 0xA5EC, version, flags) + struct.pack("<H28xH", 14, 22)
    lengths = struct.pack("<12x7I48x", body, len(text) - body, 0, 0, 0, 0, 0)
    main = header + lengths + struct.pack("<H", 93) + bytes(places)
    main = main.ljust(TEXT, b"\0") + content
    main = main.ljust(page * PAGE, b"\0") + pages
    return compound({"WordDocument": main.ljust(4096, b"\0"), "0Table": stored})


def _odd(data):
    return (
        bytes([(len(data) + 1) // 2]) + data if len(data) % 2 else bytes([0, len(data) // 2]) + data
    )


def _pages(runs, step, pack, first):
    """Pages of formats from a number on, and the table of them."""
    parts = [runs[at : at + 8] for at in range(0, len(runs), 8)]
    places = [TEXT + 2 * part[0][0] for part in parts] + [TEXT + 2 * runs[-1][1]]
    numbers = range(first, first + len(parts))
    table = struct.pack(f"<{len(places) + len(parts)}I", *places, *numbers)
    return b"".join(_page(part, step, pack) for part in parts), table


def _page(runs, step, pack):
    places = [TEXT + 2 * start for start, _, _ in runs] + [TEXT + 2 * runs[-1][1]]
    page = bytearray(PAGE)
    struct.pack_into(f"<{len(places)}I", page, 0, *places)
    at = PAGE - 2
    for number, (_, _, properties) in enumerate(runs):
        packed = pack(properties)
        at -= len(packed) + len(packed) % 2
        page[at : at + len(packed)] = packed
        page[4 * len(places) + step * number] = at // 2
    page[PAGE - 1] = len(runs)
    return bytes(page)


def properties(*pairs):
    """Properties of characters or paragraphs: number and bytes of each."""
    return b"".join(struct.pack("<H", number) + value for number, value in pairs)


def message(texts=None, numbers=None, parts=None, header=32):
    """The streams of a message of Outlook: texts by the numbers of properties, and numbers and times
    as (property, type, value).
    """
    streams = {}
    rows = b"".join(
        struct.pack("<HH4xQ", kind, property_, value) for property_, kind, value in numbers or ()
    )
    for name, value in (texts or {}).items():
        is_text = isinstance(value, str)
        suffix = "001F" if is_text else "0102"
        streams[f"__substg1.0_{name}{suffix}"] = value.encode("utf-16-le") if is_text else value
    streams["__properties_version1.0"] = b"\0" * header + rows
    for folder, inner in (parts or {}).items():
        streams |= {f"{folder}/{name}": content for name, content in inner.items()}
    return streams
