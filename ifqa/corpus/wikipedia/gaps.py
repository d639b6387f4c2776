"""Removes what dropped templates leave around them: empty brackets, separators, currency signs, empty links."""

import re

GAP = "\x03"  # stands for a dropped template; XML forbids this character, so no dump contains it

_LINK_OF_GAP = re.compile(rf"\[\[[^\[\]|{GAP}]*+\|{GAP}\]\]")
# Most gaps need nothing more than to be removed: they are a line of their own, or stand between words
_ALONE = re.compile(rf"{GAP}(?:(?:(?<![^\n]{GAP})|(?<=[\w.] {GAP}))(?=[\w\n]|\Z)|(?<=[\w.]{GAP})(?= ?[\w\n]|\Z))")
# "gap, gap and gap" with no word before it; group 1 matches if no word follows
_ENUMERATION = re.compile(rf"{GAP}(?<![^\s(]{GAP})(?: *+[,;]?+ *+(?:(?:and|or|&) *+)?+{GAP})++( *+(?=[.,;:)\n]|\Z))?+")
# A sign before its amount, not after it (5€)
_CURRENCY = re.compile(r"(?<![0-9A-Z])(?<![0-9] )(?:(?:US|CA|AU|NZ|HK|NT|[ACRS])?[$£€¥₹]|&(?:pound|euro|yen);)\Z")
_CURRENCY_ENDS = set("$£€¥₹;")


def without_gaps(text: str) -> str:
    """Remove the gaps, and the brackets, blanks and separators that belonged to the dropped templates.

    A blank between a word and a mark after a gap stays ("a depth of ."): it shows that a value is missing. Text that touches no
    gap is unchanged.
    """
    if GAP not in text:
        return text
    text = _ALONE.sub("", text)
    if f"|{GAP}]]" in text:
        text = _LINK_OF_GAP.sub(GAP, text)
    text = _ENUMERATION.sub(lambda match: match[0] if match[1] is None else GAP + match[1], text)
    first, *rest = text.split(GAP)
    pieces = [first]
    for right in rest:
        left = pieces[-1]
        if left[-1:] in _CURRENCY_ENDS and not right[:1].isdigit():
            left = _CURRENCY.sub("", left)  # its amount was in the dropped template
        for quotes in ("'''''", "'''", "''"):
            if left.endswith(quotes) and right.startswith(quotes):  # they enclosed the gap alone
                left, right = left.removesuffix(quotes), right.removeprefix(quotes)
        pieces[-1], right = _joined(left, right)
        if right:  # the end is a piece of its own, so that the next step searches a short text
            pieces += right[:-32], right[-32:]
    return "".join(pieces)


def _joined(left: str, right: str) -> tuple[str, str]:
    """The text before and after a gap, without the marks that belonged to the dropped template."""
    before, after = left.rstrip(" "), right.lstrip(" ")
    if before.endswith("("):  # "(gap; born" and "(gap)"
        after = after.lstrip(" ,;:") if after.strip(" –—") else ""  # only a dash up to the next gap
        return (before[:-1].rstrip(" "), after[1:]) if after.startswith(")") else (before, after)
    if after.startswith(")"):
        return before.rstrip(" ,;:"), after
    if not after.startswith((",", ";", ".", ":")) or not before[-1:].strip():
        return left, right
    if before[-1] + after[0] == ":;":  # a label without its value
        return before[:-1], after
    if after[0] == ".":
        before = before.rstrip(" ,;:") or before
    pair = before[-1] + after[0]
    doubled = pair[0] in "*#" or pair[0] == pair[1] or pair in (",;", ";,", ":,") or (pair == ".," and before != left)
    if doubled or len(before) < len(left.rstrip(" ")):
        return before, after[doubled:]
    return left, right
