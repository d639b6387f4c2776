"""Splits articles into passages of 100 words, as DPR and IfQA do."""

from ifqa.errors import IfqaError


def split(text: str, words: int = 100, wrap: bool = True) -> list[str]:
    """Split an article into disjoint passages of `words` words; words are separated by white space.

    The last passage may be shorter. With `wrap` it is filled up with the article's first words, each used at most once
    more: an article of 130 words gives a second passage of its last 30 and first 70 words, an article of 19 words gives
    one passage of 38 words. IfQA's gold passages are cut this way (research notes D8: 4,202 of 4,223 have exactly 100
    words).

    Raises:
        IfqaError: `words` is less than 1.
    """
    if words < 1:
        raise IfqaError(f"passages of {words} words are impossible; wanted words >= 1")
    article = text.split()
    passages = [article[start : start + words] for start in range(0, len(article), words)]
    if wrap and passages:
        passages[-1] += article[: words - len(passages[-1])]
    return [" ".join(passage) for passage in passages]
