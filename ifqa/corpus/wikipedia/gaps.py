"""What templates that were dropped leave around them: brackets, separators, signs of currencies, empty links."""

import re

from ifqa.corpus.wikipedia.numbers import GAP

_LINK_OF_GAP = re.compile(rf"\[\[[^\[\]|{GAP}]*+\|{GAP}\]\]")
# "gap, gap and gap" where no word is before them; group 1 is there when none follows
_ENUMERATION = re.compile(rf"{GAP}(?<![^\s(]{GAP})(?: *+[,;]?+ *+(?:(?:and|or|&) *+)?+{GAP})++( *+(?=[.,;:)\n]|\Z))?+")
# A sign before its amount, not behind it (5€)
_CURRENCY = re.compile(r"(?<![0-9A-Z])(?<![0-9] )(?:(?:US|CA|AU|NZ|HK|NT|[ACRS])?[$£€¥₹]|&(?:pound|euro|yen);)\Z")
_CURRENCY_ENDS = set("$£€¥₹;")


def without_gaps(text: str) -> list[str]:
    """The pieces between gaps, without the brackets, blanks and separators that made sense with what is dropped."""
    if f"|{GAP}]]" in text:
        text = _LINK_OF_GAP.sub(GAP, text)
    text = _ENUMERATION.sub(lambda match: match[0] if match[1] is None else GAP + match[1], text)
    pieces = [""]
    for number, right in enumerate(text.split(GAP)):
        left, after = pieces[-1], right.lstrip(" ")
        if number and left[-1:] in _CURRENCY_ENDS and not right[:1].isdigit():
            left = _CURRENCY.sub("", left)  # of an amount that was computed
        before = left.rstrip(" ")
        if not number:
            pass
        elif before.endswith("("):  # "(gap; born" and "(gap)"
            left, right = before, after.lstrip(" ,;:")
            if right.startswith(")"):
                left, right = before[:-1].rstrip(" "), right[1:]
        elif after.startswith(")"):
            left, right = before.rstrip(" ,;:"), after
        elif after.startswith((",", ";", ".", ":")) and before[-1:].strip():
            if after[0] == ".":
                before = before.rstrip(" ,;") or before
            doubled = before[-1] in "*#" or before[-1] == after[0] or before[-1] + after[0] in (",;", ";,")
            left, right = before, after[doubled:]
        else:
            for quotes in ("'''''", "'''", "''"):
                if left.endswith(quotes) and right.startswith(quotes):  # which held nothing else
                    left, right = left.removesuffix(quotes), right.removeprefix(quotes)
        pieces[-1] = left
        if right:  # the end apart, so that what is looked at is short
            pieces += right[:-32], right[-32:]
    return pieces
