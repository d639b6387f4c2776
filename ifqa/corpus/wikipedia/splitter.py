"""Articles into passages of 100 words, as DPR and IfQA cut them."""

from ifqa.errors import IfqaError


def split(text: str, words: int = 100, wrap: bool = True) -> list[str]:
    """Disjoint passages of `words` words each; a word is what stands between white space.

    The last passage is short. With `wrap` it is filled up from the article's start, going round at most once: an
    article of 130 words gives a second passage of its last 30 and first 70 words, one of 19 words gives one passage
    of 38. IfQA's gold passages are cut so (research notes D8: 4,202 of 4,223 have exactly 100 words).

    Raises:
        IfqaError: `words` is less than 1.
    """
    if words < 1:
        raise IfqaError(f"passages of {words} words cannot be; wanted words >= 1")
    article = text.split()
    passages = [article[start : start + words] for start in range(0, len(article), words)]
    if wrap and passages:
        passages[-1] += article[: words - len(passages[-1])]
    return [" ".join(passage) for passage in passages]
