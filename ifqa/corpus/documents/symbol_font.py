"""Writes characters of the font Symbol, which older documents use for Greek letters and signs."""

_GREEK = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ"
_GREEK_CAPITALS = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ"
#: Codes of the font -> characters. Its other signs are parts of large brackets and ornaments.
_SIGNS = {
    **dict(enumerate(_GREEK, start=0x61)),
    **dict(enumerate(_GREEK_CAPITALS, start=0x41)),
    **{code: chr(code) for code in b" !#%&()+,./0123456789:;<=>?[]_{|}"},
    **dict(enumerate("ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…", start=0xA1)),
    **dict(enumerate("ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊", start=0xC0)),
    0x22: "∀",
    0x24: "∃",
    0x27: "∋",
    0x2A: "∗",
    0x2D: "−",
    0x40: "≅",
    0x5C: "∴",
    0x5E: "⊥",
    0x7E: "∼",
    0xA0: "€",
    0xE5: "∑",
    0xF2: "∫",
}


def symbol_text(codes: bytes) -> str:
    """The text of bytes in the font Symbol."""
    return "".join(_SIGNS.get(code, "") for code in codes)
