"""Reads prompts from `prompts/*.toml`, renders them, and parses completions.

A prompt file states its purpose (`about`), its origin (`source`), whether it `reads_passages`, the
limit on the answer's tokens (`max_tokens`), the stop string (`stop`: none, or a newline), its
templates and, in `[parse]`, the rule that finds the answer. Templates have placeholders in braces
("{{" is a brace):

    system      no placeholders; the system message, empty for none
    passage     {number} (from 1), {title} and {text} of a passage. Without a title, {title} and
                the text up to the next placeholder are removed
    no_passages no placeholders; replaces {passages} if there are no passages
    user        {question}; {passages}, if the prompt reads passages; {choices}, if it shows them,
                one per line as "(A) more"
    assistant   what the model should write: {answer}, {factual} (the answer in the real world),
                {background} (the texts of the passages), and each reasoning step, by its name in
                `steps`

With the rule "fields", {quote} and {passage} are what the answer rests on, word for word, and the
number of its passage, and {change} is what the question's supposition changes. A model that keeps
to a JSON schema writes such an answer as an object, and any other as the lines of the template.
If [parse] names a marker of the `question`, the model writes the question, too, as {question} of
the assistant template, and the user template needs none.

The chat form has messages: system, demonstrations, user. The completion form is one text that ends
with the beginning of the assistant template, from which the model continues. Values may contain
braces or markers such as "Answer:".
"""

import json
import re
import string
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr, StringConstraints

from ifqa.errors import ConfigError, unknown_name
from ifqa.prompting.demonstrations import Demo
from ifqa.prompting.parsing import (
    RULE_VERSIONS,
    AnswerParser,
    ParsedAnswer,
    field_key,
    label_choices,
    match_choice,
)
from ifqa.protocols import Cut
from ifqa.records import Passage
from ifqa.settings import Positive, StrictModel, Text, parse_section, wanted
from ifqa.storage.files import read_toml
from ifqa.storage.resources import require_resource

Messages = tuple[tuple[str, str], ...]

_BETWEEN = "\n\n"
_FILLED = ("answer", "factual", "background", "question")
_TITLE = re.compile(r"\{title\}([^{}]*(?=\{))?")  # with the text up to the next placeholder
_Stripped = Annotated[str, StringConstraints(strip_whitespace=True)]
_Filled = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"\S")]


class Prompt(StrictModel):
    """A validated prompt file."""

    about: Text
    source: Text
    reads_passages: bool
    max_tokens: Positive
    #: Only for the completion form: a chat model stops by itself, and may begin with a newline.
    stop: Annotated[
        list[Literal["\n"]],
        Field(
            max_length=1,
            json_schema_extra=wanted('[] or ["\\n"], as other stop strings cut answers'),
        ),
    ]
    user: _Filled
    assistant: _Filled
    parse_settings: Annotated[dict[str, object], Field(alias="parse")]
    system: _Stripped = ""
    passage: _Stripped = ""
    no_passages: _Stripped = ""
    # Names of the reasoning steps that a demonstration must have
    steps: list[str] = Field(default_factory=list)
    _name: str = PrivateAttr("")
    _parser: AnswerParser = PrivateAttr()
    _labels: tuple[str, ...] = PrivateAttr(())

    def render(
        self,
        question: str,
        passages: Sequence[Passage],
        demos: Sequence[Demo],
        chat: bool,
        choices: Sequence[str] = (),
        as_json: bool = False,
        protocol: str = "",
    ) -> tuple[Messages, str]:
        """The rendered prompt: messages as (role, content) and no text, or no messages and a text.

        Passages keep their order. Parts without a placeholder in the templates are left out.
        `as_json` asks for the fields of an answer as an object of JSON, if the prompt has fields.
        `protocol` tells what the model may write before the answer; it is added to the system
        message, and the completion form then ends without the beginning of an answer.
        """
        demo_turns = [
            (
                self._user(demo.question, demo.passages, demo.choices),
                self.show(demo, as_json=as_json),
            )
            for demo in demos
        ]
        last = self._user(question, passages, choices)
        system = self.system
        if as_json and self.has_fields:
            keys = ", ".join(json.dumps(key) for key in self._field_keys())
            system += f"\nWrite these as one object of JSON with the keys {keys}."
        if protocol:
            system = f"{system}\n{protocol}".strip()
        if chat:
            head = [("system", system)] if system else []
            turns = [
                turn
                for user, reply in demo_turns
                for turn in (("user", user), ("assistant", reply))
            ]
            return (*head, *turns, ("user", last)), ""
        opening = "" if as_json or protocol else self.opening
        texts = [
            system,
            *(f"{user}\n{reply}" for user, reply in demo_turns),
            f"{last}\n{opening}",
        ]
        return (), _BETWEEN.join(filter(None, texts))

    def show(self, demo: Demo, chat: bool = True, as_json: bool = False) -> str:
        """The completion that a demonstration shows; `as_json` as in `render`.

        In the completion form without the opening, which the prompt ends with.
        """
        background = " ".join(passage.text for passage in demo.passages)
        values = {
            "answer": demo.answer,
            "factual": demo.factual,
            "background": background,
            "question": demo.question,
            **demo.steps,
        }
        for placeholder in _placeholders(self.assistant):
            if not values.get(placeholder, "").strip():
                raise ConfigError(
                    f"prompt {self._name!r} shows {placeholder!r} of each demonstration, but "
                    f"{demo.question[:60]!r} "
                    f"has none; use other demonstrations, such as 'sample', or none"
                )
        if as_json and self.has_fields:
            lines = self.assistant.splitlines()
            fields: dict[str, object] = {}
            for key, line in zip(self._field_keys(), lines, strict=True):
                _, _, template = line.partition(":")
                fields[key] = template.strip().format(**values)
            number = field_key(self._parser.passage)
            if number in fields:
                fields[number] = self._parser.passage_number(str(fields[number]))
            return json.dumps(fields, ensure_ascii=False)
        if self._parser.rule == "json":  # values within strings of JSON
            values = {
                name: json.dumps(value, ensure_ascii=False)[1:-1] for name, value in values.items()
            }
        return self.assistant.format(**values).removeprefix("" if chat else self.opening)

    def writes_json(self, takes_schema: bool) -> bool:
        """Whether a model is asked for an object of JSON.

        `takes_schema` says whether it keeps a completion to a schema.
        """
        return self._parser.rule == "json" or (self.has_fields and takes_schema)

    @property
    def needs_schema(self) -> bool:
        """Whether only a model that keeps to a JSON schema can answer."""
        return self._parser.rule == "json"

    @property
    def has_fields(self) -> bool:
        """Whether the answer comes with other fields, as an object of JSON or as lines."""
        return self._parser.rule == "fields"

    @property
    def answer_marker(self) -> str:
        """What begins the line of an answer, such as "Answer:"; empty if nothing does."""
        return self._parser.answer if self._parser.rule != "json" else ""

    @property
    def needs_marker(self) -> bool:
        """Whether a text is an answer only if a marker says so."""
        return self._parser.rule in ("last marker", "fields")

    @property
    def markers(self) -> tuple[str, ...]:
        """What begins the lines of an answer and of what is asked for beside it."""
        return self._parser.markers

    @property
    def asks_quote(self) -> bool:
        """Whether the answer comes with a quote from a passage."""
        return bool(self._parser.quote)

    @property
    def writes_question(self) -> bool:
        """Whether the model writes a question, instead of answering one."""
        return bool(self._parser.question)

    def _field_keys(self) -> list[str]:
        """The keys of the fields, in the order of the assistant template."""
        return [field_key(line.partition(":")[0]) for line in self.assistant.splitlines()]

    def answer_schema(self, choices: Sequence[str] = ()) -> str:
        """The JSON schema of the object that the assistant template describes.

        Empty unless [parse] has the rule "json" or "fields".
        """
        if self._parser.rule == "json":
            keys = list(json.loads(self.assistant.format_map(defaultdict(str))))
        elif self.has_fields:
            keys = self._field_keys()
        else:
            return ""
        properties: dict[str, object] = {}
        for key in keys:
            kind = "integer" if key == field_key(self._parser.passage) else "string"
            only = (
                {"enum": list(choices)}
                if choices and self.shows_choices and key == field_key(self._parser.answer)
                else {}
            )
            properties[key] = {"type": kind, **only}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return json.dumps(schema | {"additionalProperties": False})

    def parse(self, completion: str, choices: Sequence[str] = (), cut: Cut = "no") -> ParsedAnswer:
        """The answer in a completion of either form, or a `problem`.

        If the prompt shows choices, one of `choices`.

        `cut` says whether the completion was cut at its token limit.
        """
        parsed = self._parser.parse(completion, self._labels, cut)
        return match_choice(parsed, choices) if self.shows_choices and choices else parsed

    @property
    def rule_version(self) -> str:
        return RULE_VERSIONS.get(self._parser.rule, "")

    @property
    def wants_answer_alone(self) -> bool:
        """Whether the completion has nothing but a free answer to fill in."""
        return _placeholders(self.assistant) == ["answer"] and not self.shows_choices

    @property
    def shows_choices(self) -> bool:
        """Whether the prompt shows a question's choices."""
        return "choices" in _placeholders(self.user)

    @property
    def opening(self) -> str:
        """The beginning of the assistant template, which ends the completion form.

        An object of JSON is written whole.
        """
        if self._parser.rule == "json":
            return ""
        literal, *_ = next(iter(string.Formatter().parse(self.assistant)))
        return literal.rstrip()

    def _user(self, question: str, passages: Sequence[Passage], choices: Sequence[str]) -> str:
        if self.shows_choices and not choices:
            lacking = f"the question {question[:60]!r} has none"
            raise ConfigError(
                f"prompt {self._name!r} shows choices, but {lacking}; use another prompt"
            )
        choice_lines = "\n".join(
            f"({letter}) {' '.join(choice.split())}" for letter, choice in label_choices(choices)
        )
        shown = passages if self.reads_passages else ()
        texts = [self.show_passage(passage, n) for n, passage in enumerate(shown, start=1)]
        passage_text = _BETWEEN.join(texts) if texts else self.no_passages
        return self.user.format(question=question, passages=passage_text, choices=choice_lines)

    def show_passage(self, passage: Passage, number: int) -> str:
        """A passage as the model sees it, with its number."""
        template = self.passage if passage.title.strip() else _TITLE.sub("", self.passage)
        return template.format(number=number, title=passage.title, text=passage.text)


def prompt_path(name: str, root: Path = Path()) -> Path:
    """The file `prompts/NAME.toml`, below `root` or bundled."""
    return require_resource("prompt", "prompts", ".toml", name, root)


def load_prompt(name: str, root: Path = Path()) -> Prompt:
    """The prompt `name`, validated."""
    path = prompt_path(name, root)
    return parse_prompt(name, path, read_toml(path))


def parse_prompt(name: str, path: Path, content: Mapping[str, object]) -> Prompt:
    """A prompt from the content of its file; `path` is for messages."""
    where = str(path)
    prompt = parse_section(Prompt, content, where)
    prompt._name, prompt._parser = (
        name,
        parse_section(AnswerParser, prompt.parse_settings, f"{where}: [parse]"),
    )
    prompt._labels = tuple(re.findall(r"^[A-Z][\w ]*:", prompt.user, re.MULTILINE))
    reads = prompt.reads_passages
    for key, text in (("passage", prompt.passage), ("no_passages", prompt.no_passages)):
        if bool(text) != reads:
            problem = (
                "is missing, but the prompt reads" if reads else "is set, but the prompt reads no"
            )
            raise ConfigError(f"{where}: {key!r} {problem} passages")
    required = [] if prompt.writes_question else ["question"]
    if reads:
        required.append("passages")
    _check_template(prompt.user, "user", required, ["question", "choices"], where)
    _check_template(
        prompt.passage, "passage", ["text"] if reads else [], ["number", "title"], where
    )
    _check_template(prompt.assistant, "assistant", prompt.steps, _FILLED, where)
    try:
        prompt.answer_schema()
    except ValueError as error:
        raise ConfigError(
            f"{where}: 'assistant' is not an object of JSON ({error}), which [parse] wants"
        ) from error
    _check_parser(prompt, where)
    return prompt


def _check_parser(prompt: Prompt, where: str) -> None:
    """Refuse a prompt whose [parse] does not find the answer in the completion that `assistant`
    describes, in any of its forms.
    """
    parser = prompt._parser
    steps = {name: "3" if name == "passage" else "word" for name in prompt.steps}
    demo = Demo("If so?", "forty-two", (Passage("0", "", "forty-two"),), steps, "seven")
    expected = ParsedAnswer(
        "forty-two",
        "seven" if parser.factual else "",
        quote="word" if parser.quote else "",
        passage=3 if parser.passage else 0,
        change="word" if parser.change else "",
        question=demo.question if parser.question else "",
    )
    shown = [prompt.show(demo, chat) for chat in (True, False)]
    if prompt.has_fields:
        shown.append(prompt.show(demo, as_json=True))
    for completion in shown:
        parsed = prompt.parse(completion)
        if parsed != expected:
            reason = parsed.problem or f"found {parsed.answer!r} and {parsed.factual!r}"
            problem = (
                "[parse] does not find the answer in the completion that 'assistant' describes"
            )
            raise ConfigError(f"{where}: {problem} ({reason}); make them agree")


def _placeholders(template: str) -> list[str]:
    return [
        placeholder
        for _, placeholder, _, _ in string.Formatter().parse(template)
        if placeholder is not None
    ]


def _check_template(
    text: str, key: str, required: Sequence[str], optional: Sequence[str], where: str
) -> None:
    """Refuse a template with an unknown or missing placeholder."""
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ConfigError(f"{where}: {key!r}: {error}; write a literal brace twice") from error
    for _, placeholder, form, conversion in pieces:
        if placeholder is not None and (
            placeholder not in (*required, *optional) or form or conversion
        ):
            name = (
                placeholder
                + (f"!{conversion}" if conversion else "")
                + (f":{form}" if form else "")
            )
            raise unknown_name(f"{where}: placeholder of {key!r}", name, (*required, *optional))
    if missing := [name for name in required if name not in _placeholders(text)]:
        raise ConfigError(f"{where}: {key!r} has no placeholder {{{missing[0]}}}; add it")
