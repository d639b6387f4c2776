"""What the paper says of its corpus (Bondarenko et al., COLING 2022, Tables 1, 2 and 4), by dataset in its order."""

from typing import NamedTuple


class Published(NamedTuple):
    """Of one dataset.

    Attributes:
        questions: all questions that the rules were tried on.
        causal: those that a rule matches, with an answer.
        share: these, in percent of all.
        question_words: mean words of a causal question.
        answer_words: mean words of its answer.
        original: causal questions of the original validation part, the N of Table 4.
        random: of the random one.
    """

    questions: int
    causal: int
    share: float
    question_words: float
    answer_words: float
    original: int
    random: int


PUBLISHED = {
    "paq": Published(64_875_601, 769_606, 1.2, 9.6, 2.7, 76_961, 76_961),
    "gooaq": Published(5_030_530, 146_286, 2.9, 7.3, 44.3, 33, 14_629),
    "msmarco": Published(1_010_916, 25_569, 2.5, 6.4, 17.5, 2_558, 2_557),
    "naturalquestions": Published(315_203, 1_208, 0.4, 9.8, 10.8, 71, 121),
    "eli5": Published(272_634, 131_033, 48.0, 32.5, 99.0, 13_104, 13_104),
    "searchqa": Published(216_136, 780, 0.4, 16.8, 1.8, 117, 78),
    "squad2": Published(142_192, 3_209, 2.3, 10.5, 6.2, 252, 321),
    "newsqa": Published(119_633, 652, 0.5, 7.2, 6.1, 29, 66),
    "hotpotqa": Published(112_662, 390, 0.4, 21.8, 3.8, 35, 39),
    "triviaqa": Published(109_767, 703, 0.6, 19.4, 3.1, 66, 71),
}
ALL = Published(72_205_274, 1_079_436, 1.5, 12.0, 22.5, 0, 0)  # the paper gives no sum of the validation parts
