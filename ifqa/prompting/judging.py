"""Prompts that ask whether an answer means the same as a gold answer, from
`prompts/judges/*.toml`, and the reply: yes or no.

A file states its purpose (`about`), its origin (`source`), the limit on the reply's tokens
(`max_tokens`), a `system` message without placeholders, and a `user` template with {question},
{golds} and {answer} ("{{" is a brace).
"""

import re
import string
from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import ConfigError
from ifqa.formatting import printable_line
from ifqa.prompting.thoughts import answer_part
from ifqa.protocols import LanguageModel
from ifqa.records import Request
from ifqa.settings import Positive, StrictModel, Text, parse_section
from ifqa.storage.files import read_toml
from ifqa.storage.resources import require_resource

FOLDER = "prompts/judges"
_PLACEHOLDERS = ("question", "golds", "answer")
# The whole reply is the word, with punctuation or marks of bold text around it: a sentence with
# "yes" in it may say anything
_REPLY = re.compile(r"[\W_]*(yes|no)[\W_]*", re.IGNORECASE)
# What begins a mark of a chat template, such as "<|im_end|>", "</s>" or "[INST]"
_MARK = re.compile(r"<(?=[|/\w])|\[(?=/?[A-Z_]+\])")


class JudgePrompt(StrictModel):
    """A checked prompt file."""

    about: Text
    source: Text
    max_tokens: Positive
    user: Text
    system: str = ""

    def request(
        self, question: str, golds: Sequence[str], answer: str, model: LanguageModel
    ) -> Request:
        """The request for a verdict on an answer, in the form that the model takes.

        All three are from outside: each is shown on one line, and marks of chat templates in them
        are broken by a space, so that none can end its line or the message.
        """
        user = self.user.strip().format(
            question=_one_line(question),
            golds=" | ".join(map(_one_line, golds)),
            answer=_one_line(answer),
        )
        system = self.system.strip()
        max_tokens = model.completion_tokens(self.max_tokens)
        if not model.chat:
            text = "\n\n".join(filter(None, (system, user)))
            return Request(text=f"{text}\nReply:", max_tokens=max_tokens, stop=("\n",))
        head = [("system", system)] if system else []
        return Request((*head, ("user", user)), max_tokens=max_tokens)


def load_judge_prompt(name: str, root: Path = Path()) -> JudgePrompt:
    """The prompt `prompts/judges/NAME.toml`, below `root` or bundled.

    ConfigError if it is missing or wrong.
    """
    path = judge_prompt_path(name, root)
    prompt = parse_section(JudgePrompt, read_toml(path), str(path))
    try:
        pieces = list(string.Formatter().parse(prompt.user))
    except ValueError as error:
        raise ConfigError(f"{path}: 'user': {error}; write a literal brace twice") from error
    found = [name for _, name, _, _ in pieces if name is not None]
    plain = all(not form and not conversion for _, _, form, conversion in pieces)
    if sorted(found) != sorted(_PLACEHOLDERS) or not plain:
        shown = ", ".join(f"{{{name}}}" for name in found) or "none"
        raise ConfigError(
            f"{path}: 'user': wanted the placeholders {{question}}, {{golds}} and {{answer}}, each "
            f"once; found {shown}"
        )
    return prompt


def judge_prompt_path(name: str, root: Path = Path()) -> Path:
    """The file `prompts/judges/NAME.toml`, below `root` or bundled."""
    return require_resource("judge's prompt", FOLDER, ".toml", name, root)


def parse_verdict(completion: str) -> bool | None:
    """Whether a reply, after any thoughts, is yes or no; None for any other reply.

    Only the word alone counts: "Yes." is a yes, and "Yes, but" is neither.
    """
    text = answer_part(completion)
    reply = _REPLY.fullmatch(text) if text is not None else None
    return reply[1].lower() == "yes" if reply else None


def _one_line(text: str) -> str:
    return _MARK.sub(r"\g<0> ", " ".join(printable_line(text).split()))
