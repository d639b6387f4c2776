"""How many tokens a text has, and how many a model takes: exactly where it is known, else never too few."""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ifqa.progress import say
from ifqa.records import Request

WINDOW = 4096  # of a model that is not in the table
# Prompt and answer together. 272,000 is where prompts of the models from GPT-5.4 on get dearer, not their end.
WINDOWS = {
    "gpt-6": 272_000, "gpt-5": 272_000,
    "gpt-4.1": 1_047_576, "gpt-4o": 128_000, "gpt-4-turbo": 128_000, "gpt-4-32k": 32_768, "gpt-4": 8_192,
    "gpt-3.5-turbo": 16_385, "gpt-3.5-turbo-instruct": 4_096, "davinci-002": 16_384, "babbage-002": 16_384,
    "gpt-oss": 131_072, "o1": 200_000, "o3": 200_000, "o4": 200_000,
}  # fmt: skip

# tiktoken's files and their SHA-256, as tiktoken_ext/openai_public.py (tiktoken 0.14) has them
_VOCABULARIES = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}

_WORDS = re.compile(r"[A-Za-z]+")
_SPACES = re.compile(r" (?=[A-Za-z])")


def window_of(model: str) -> int:
    """Tokens a model takes, by the longest name in the table that its own begins with; 0 where there is none."""
    known = [name for name in WINDOWS if model.removeprefix("ft:").startswith(name)]
    return WINDOWS[max(known, key=len)] if known else 0


def at_most(text: str) -> int:
    """A number of tokens that no English prose reaches under today's vocabularies, by rule.

    A token for every three letters begun of each run of ASCII letters, which takes a space before it along; and one
    for every other byte. Why that is enough: vocabularies of byte pairs never use more than a token a byte, so what is
    not a word cannot take more; and a word takes more than a third of its letters only when it is made of groups rare
    in English, while most words of four letters and more, given two tokens and more here, are a single one. Held
    against a vocabulary of 30,000 byte pairs (cl100k has 100,000, o200k 200,000) learnt on other articles, 2,805
    passages of 100 words of English Wikipedia got 1.7 times their tokens in the median and never fewer than 1.16 times;
    of single sentences, 4 in 12,311 got fewer than they have, as lists of foreign names do.
    """
    words = _WORDS.findall(text)
    letters = sum(map(len, words)) + len(_SPACES.findall(text))
    return sum(-(-len(word) // 3) for word in words) + len(text.encode("utf-8", "surrogatepass")) - letters


@cache
def counter(model: str) -> Callable[[str], int]:
    """A function that counts a model's tokens in a text.

    It is tiktoken's where the model's vocabulary is on this machine already; nothing is ever fetched. Elsewhere it is
    the rule of `at_most`, and that is said once.
    """
    import tiktoken

    try:
        name = tiktoken.encoding_name_for_model(model)
    except KeyError:
        say(f"{model}: its vocabulary is unknown; tokens are counted by a rule that gives more, never fewer")
        return at_most
    base = {"o200k_harmony": "o200k_base"}.get(name, name)
    if not _is_here(base):
        say(
            f"{model}: tokens are counted by a rule that gives more, never fewer; for exact counts fetch its vocabulary "
            f"once: python -c \"import tiktoken; tiktoken.get_encoding('{base}')\""
        )
        return at_most
    encoding = tiktoken.get_encoding(base)
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def prompt_tokens(request: Request, count: Callable[[str], int]) -> int:
    """Tokens of a request's prompt, never too few.

    Where the count is exact, a message takes three more and the answer's start three (OpenAI cookbook, "How to count
    tokens with tiktoken"), and one for its role; where it is a rule, the template is a stranger's, which may open with
    a text of its own: 8 a message and 64 once.
    """
    if not request.messages:
        return count(request.text) + 2  # a beginning and an end
    each, once = (8, 64) if count is at_most else (4, 3)
    return sum(count(content) + each for _, content in request.messages) + once


def most_prompt_tokens(request: Request, count: Callable[[str], int]) -> int:
    """Tokens that a request's prompt cannot exceed, for what is set aside: as counted if exactly, else a token a byte."""
    if count is not at_most:
        return prompt_tokens(request, count) + 8
    texts = [text for message in request.messages for text in message] or [request.text]
    return sum(len(text.encode("utf-8", "surrogatepass")) + 16 for text in texts) + 256


def _is_here(name: str) -> bool:
    """Whether tiktoken would find a whole vocabulary without asking the network (tiktoken/load.py, read_file_cached)."""
    default = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", default))
    url = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    path = Path(folder) / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    if not folder or name not in _VOCABULARIES or not path.is_file():
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == _VOCABULARIES[name]
