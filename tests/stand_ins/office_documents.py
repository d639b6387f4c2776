"""Documents of Word, PowerPoint and OpenDocument in a few lines, for the tests of their readers."""

from mixed_documents import archive

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHOW = "http://schemas.openxmlformats.org/presentationml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"
OFFICE_NAMES = " ".join(
    f'xmlns:{prefix}="{name}"'
    for prefix, name in {
        "w": WORD,
        "p": SHOW,
        "a": DRAWING,
        "c": CHART,
        "m": MATH,
        "r": TYPES,
        "mc": COMPATIBILITY,
        "v": "urn:schemas-microsoft-com:vml",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    }.items()
)
OPEN_NAMES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "text": "text",
        "table": "table",
        "draw": "drawing",
        "presentation": "presentation",
        "office": "office",
        "style": "style",
        "fo": "xsl-fo-compatible",
        "chart": "chart",
    }.items()
)
OPEN_NAMES += ' xmlns:xlink="http://www.w3.org/1999/xlink"'
STRICT = {
    WORD: "http://purl.oclc.org/ooxml/wordprocessingml/main",
    TYPES: "http://purl.oclc.org/ooxml/officeDocument/relationships",
}


def relations(*links):
    """The part with relations of (id, kind, target)."""
    entries = "".join(
        f'<Relationship Id="{key}" Type="{TYPES}/{kind}" Target="{target}"/>'
        for key, kind, target in links
    )
    return f"<Relationships>{entries}</Relationships>"


def word_parts(body, links=(), **parts):
    """The files of a Word document of a body, and of other parts such as styles."""
    named = {
        f"word/{name}.xml": f"<w:{name} {OFFICE_NAMES}>{part}</w:{name}>"
        for name, part in parts.items()
    }
    document = f"<w:document {OFFICE_NAMES}><w:body>{body}</w:body></w:document>"
    files = {"word/document.xml": document, **named}
    return files | ({"word/_rels/document.xml.rels": relations(*links)} if links else {})


def word_document(body, links=(), more=None, **parts):
    """A Word document; `more` are files by their names."""
    return archive(word_parts(body, links, **parts) | (more or {}))


def run(text, look=""):
    return f'<w:r><w:rPr>{look}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(text, properties=""):
    """A paragraph of text, or of runs."""
    inner = text if text.startswith("<") or not text else run(text)
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>"


def cell(text="", properties=""):
    inner = text if text.startswith("<w:") else paragraph(text)
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner}</w:tc>"


def row(*cells, properties=""):
    """A row of cells, or of their texts."""
    inner = "".join(each if each.startswith("<w:tc>") else cell(each) for each in cells)
    return f"<w:tr><w:trPr>{properties}</w:trPr>{inner}</w:tr>"


def table(*rows):
    return f"<w:tbl>{''.join(rows)}</w:tbl>"


def level(number, style, text, more=""):
    """A level of a list."""
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{style}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def numbering(*levels, more=""):
    """Numbering with the list 1; `more` are other lists."""
    return (
        f'<w:abstractNum w:abstractNumId="0">{"".join(levels)}</w:abstractNum>'
        f'<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>{more}'
    )


def item(text, number=1, place=0):
    """A paragraph of a list."""
    return paragraph(
        text, f'<w:numPr><w:ilvl w:val="{place}"/><w:numId w:val="{number}"/></w:numPr>'
    )


def presentation(*slides, links=(), more=None):
    """Slides with the relations of the first one; `more` are files by their names."""
    files = {
        f"ppt/slides/slide{number}.xml": slide
        if slide.startswith("<p:sld")
        else f"<p:sld {OFFICE_NAMES}>{slide}</p:sld>"
        for number, slide in enumerate(slides, start=1)
    }
    numbers = range(1, len(slides) + 1)
    entries = "".join(f'<p:sldId r:id="r{number}"/>' for number in numbers)
    files["ppt/presentation.xml"] = f"<p:presentation {OFFICE_NAMES}>{entries}</p:presentation>"
    files["ppt/_rels/presentation.xml.rels"] = relations(
        *((f"r{number}", "slide", f"slides/slide{number}.xml") for number in numbers)
    )
    if links:
        files["ppt/slides/_rels/slide1.xml.rels"] = relations(*links)
    return archive(files | (more or {}))


def shape(*paragraphs, kind="", hidden=""):
    holder = f'<p:ph type="{kind}"/>' if kind else ""
    properties = f'<p:nvSpPr><p:cNvPr id="1" name="x"{hidden}/><p:nvPr>{holder}</p:nvPr></p:nvSpPr>'
    inner = "".join(
        each if each.startswith("<a:p>") else f"<a:p><a:r><a:t>{each}</a:t></a:r></a:p>"
        for each in paragraphs
    )
    return f"<p:sp>{properties}<p:txBody>{inner}</p:txBody></p:sp>"


def open_document(body, styles="", more=None, common=""):
    """An OpenDocument file of a body and automatic styles; `common` are those of styles.xml."""
    content = (
        f"<office:document-content {OPEN_NAMES}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body>{body}</office:body></office:document-content>"
    )
    files = {"content.xml": content}
    if common:
        files["styles.xml"] = (
            f"<office:document-styles {OPEN_NAMES}><office:styles>{common}</office:styles>"
            "</office:document-styles>"
        )
    return archive(files | (more or {}))


def chart_part(categories, **series):
    """The part of a chart."""

    def points(name, values, style="General"):
        inner = "".join(
            f'<c:pt idx="{place}"><c:v>{value}</c:v></c:pt>' for place, value in enumerate(values)
        )
        return f"<c:{name}><c:numRef><c:numCache><c:formatCode>{style}</c:formatCode>{inner}</c:numCache></c:numRef></c:{name}>"

    shown = "".join(
        f"<c:ser>{points('tx', [name])}{points('cat', categories)}{points('val', values, '0.0%')}</c:ser>"
        for name, values in series.items()
    )
    title = (
        "<c:title><c:tx><c:rich><a:p><a:r><a:t>Shares</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    )
    return (
        f"<c:chartSpace {OFFICE_NAMES}><c:chart>{title}<c:plotArea><c:barChart>{shown}"
        "</c:barChart></c:plotArea></c:chart></c:chartSpace>"
    )
