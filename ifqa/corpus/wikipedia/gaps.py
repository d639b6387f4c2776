"""What templates that were dropped leave around them: brackets, separators, signs of currencies, empty links."""

import re

from ifqa.corpus.wikipedia.numbers import GAP

_LINK_OF_GAP = re.compile(rf"\[\[[^\[\]|{GAP}]*+\|{GAP}\]\]")
# Most of them, with nothing to close: on a line of their own, or between words
_ALONE = re.compile(rf"{GAP}(?:(?:(?<![^\n]{GAP})|(?<=[\w.] {GAP}))(?=[\w\n]|\Z)|(?<=[\w.]{GAP})(?= ?[\w\n]|\Z))")
# "gap, gap and gap" where no word is before them; group 1 is there when none follows
_ENUMERATION = re.compile(rf"{GAP}(?<![^\s(]{GAP})(?: *+[,;]?+ *+(?:(?:and|or|&) *+)?+{GAP})++( *+(?=[.,;:)\n]|\Z))?+")
# A sign before its amount, not behind it (5€)
_CURRENCY = re.compile(r"(?<![0-9A-Z])(?<![0-9] )(?:(?:US|CA|AU|NZ|HK|NT|[ACRS])?[$£€¥₹]|&(?:pound|euro|yen);)\Z")
_CURRENCY_ENDS = set("$£€¥₹;")


def without_gaps(text: str, *, lone: bool = True) -> str:
    """Without the gaps, and the brackets, blanks and separators that made sense with what is dropped.

    Without `lone`, a blank between a word and the mark behind a gap stays ("a depth of ."): it says that a value is missing.
    Text that no gap touches is left as it is.
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
            left = _CURRENCY.sub("", left)  # of an amount that was computed
        for quotes in ("'''''", "'''", "''"):
            if left.endswith(quotes) and right.startswith(quotes):  # which held nothing else
                left, right = left.removesuffix(quotes), right.removeprefix(quotes)
        pieces[-1], right = _joined(left, right, lone)
        if right:  # the end apart, so that what is looked at is short
            pieces += right[:-32], right[-32:]
    return "".join(pieces)


def _joined(left: str, right: str, lone: bool) -> tuple[str, str]:
    """What stands before and behind a gap, without what made sense with it."""
    before, after = left.rstrip(" "), right.lstrip(" ")
    if before.endswith("("):  # "(gap; born" and "(gap)"
        after = after.lstrip(" ,;:") if after.strip(" –—") else ""  # a dash up to the next gap
        return (before[:-1].rstrip(" "), after[1:]) if after.startswith(")") else (before, after)
    if after.startswith(")"):
        return before.rstrip(" ,;:"), after
    if not after.startswith((",", ";", ".", ":")) or not before[-1:].strip():
        return left, right
    if before[-1] + after[0] == ":;":  # of a label without its value
        return before[:-1], after
    if after[0] == ".":
        before = before.rstrip(" ,;:") or before
    pair = before[-1] + after[0]
    doubled = pair[0] in "*#" or pair[0] == pair[1] or pair in (",;", ";,", ":,") or (pair == ".," and before != left)
    if doubled or lone or len(before) < len(left.rstrip(" ")):
        return before, after[doubled:]
    return left, right
