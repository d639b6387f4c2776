"""Tells which questions ask for several things, and what they say of them.

"Who were the officers in 2022?" asks for all of them. "Which of the officers ..." asks for one.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from ifqa.clauses import AUXILIARY, split_question

#: A noun in the plural; words of up to three letters, such as "OS", are none.
_PLURAL = (
    r"(?:people|men|women|(?!(?:does|this|always|news|series|species|means|headquarters|windows)\b)"
    r"[^\W\d_][\w-]{2,}(?<![\Wsui])s)\b(?!['’])"
)
_SIZES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
#: Words before the noun. After a preposition it is a unit ("what length in metres"), and after a
#: verb it does not ask ("which hall would members rent").
_BEFORE = rf"(?:(?!(?:of|in|per|to|for|by|with|from|on)\b|{AUXILIARY})[\w.-]+ ){{0,2}}?"
_PLACE = r"(?: (?:of|in|on|at|for|from) (?:the )?[\w-]+)?"
#: Not the first part of a longer noun, as in "the sales manager".
_NOUN_END = (
    r"(?=\W*$|[,;:]| (?:of|in|on|at|for|from|by|to|that|which|who|and|during|after|before|if|under"
    r"|with|about|among|between|\w+e[dn]|\w+able)\b)"
)
_TOGETHER = (
    r"attend|help|wrote|written|author|founded|develop|create|design|invent|compose|credited|named"
    r"|maintain|contribute|sign"
)
_PASTS = "came|gave|got|grew|held|led|left|lost|made|met|ran|rose|sank|sold|took|went|won|wrote"
_ASKS_FOR_SEVERAL = re.compile(
    r"(?:^|[,;:] )(?:(?:and|then|but) )?(?:"
    r"who (?:were|are)\b"
    r"|who (?:was|is|would (?:have been|be)) present\b"
    rf"|who (?:(?:would|had|has|have|been|be|first|was) ){{0,3}}(?:{_TOGETHER})(?:ed|d|s|n|ing)?\b"
    r"|who would (?:have been|be|remain|be left as) (?:the|its|their) (?:[\w-]+ ){0,2}?"
    rf"{_PLURAL}{_NOUN_END}"
    rf"|(?:please )?(?:name|list) (?:all|every|the (?:[\w-]+ ){{0,2}}?{_PLURAL}{_NOUN_END})"
    r")"
    rf"|\b(?:which|what) {_BEFORE}{_PLURAL}{_PLACE} (?!(?:is|was)\b){AUXILIARY}"
    rf"|\bwhich {_PLURAL} (?:\w+ed|{_PASTS})\b"
    rf"|\b(?:which|what) (?:were|are) (?:the|its|their) (?:[\w-]+ ){{0,2}}?{_PLURAL}",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\bhow (?:many|much)\b", re.IGNORECASE)
_SIZE = re.compile(rf"\b(?:which|what|who (?:are|were) the) ({'|'.join(_SIZES)})\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not|cannot|no|never|neither|without|only)\b|n['’]t\b", re.IGNORECASE)
#: "If only Ann Lee had come": the one that is named is the one that stays.
_KEEPS = re.compile(r"\b(?:only|even|also|too|unless|alone)\b", re.IGNORECASE)
_BESIDES = re.compile(r"\b(?:besides|except|other than|apart from)\b.*", re.IGNORECASE)
_COMPARES = re.compile(
    r"\b(?:than|before|after|since|until|between|over|under|above|below|at (?:least|most)"
    r"|(?:the|was|were|are) (?:most|least|\w{2,}est))\b",
    re.IGNORECASE,
)


class ListQuestion(NamedTuple):
    """A question for several things, as `read_list_question` reads it."""

    text: str
    asked: str  # its main clause
    left_out: str  # the words that name what is not asked for
    size: int  # how many things it asks for; 0 if it does not say
    compares: bool  # whether it asks for those that are longer, earlier and so on than another


@lru_cache(maxsize=256)
def read_list_question(question: str) -> ListQuestion | None:
    """A question that asks for all items of a list; None if it asks for one thing.

    None, too, if it has "not", "only" or the like, or supposes that only some stay: then the items
    that it asks for are others than a list has. Cached, because each of a question's passages needs
    it.
    """
    clauses = split_question(question)
    asked = clauses.question
    if not _ASKS_FOR_SEVERAL.search(asked) or _HOW_MANY.search(asked):
        return None
    if _NEGATED.search(asked) or _KEEPS.search(clauses.presupposition):
        return None
    besides = _BESIDES.search(asked)
    size = _SIZE.search(asked)
    return ListQuestion(
        question,
        asked,
        f"{clauses.presupposition} {besides.group() if besides else ''}",
        _SIZES[size[1].lower()] if size else 0,
        _COMPARES.search(asked) is not None,
    )
