"""Question sets as their publishers lay them out: the ten datasets of CausalQA, a module for each, and the table of them."""

from ifqa.formats.publishers import (
    eli5,
    gooaq,
    hotpotqa,
    msmarco,
    naturalquestions,
    newsqa,
    paq,
    searchqa,
    squad2,
    triviaqa,
)

#: Name of a dataset -> its layout, in the paper's order.
LAYOUTS = {
    "paq": paq.LAYOUT,
    "gooaq": gooaq.LAYOUT,
    "msmarco": msmarco.LAYOUT,
    "naturalquestions": naturalquestions.LAYOUT,
    "eli5": eli5.LAYOUT,
    "searchqa": searchqa.LAYOUT,
    "squad2": squad2.LAYOUT,
    "newsqa": newsqa.LAYOUT,
    "hotpotqa": hotpotqa.LAYOUT,
    "triviaqa": triviaqa.LAYOUT,
}
