"""The JSON objects of the API, for requests and responses; they are also the results of the MCP tools.

Places are counts of Unicode code points, the end exclusive. In `pieces` of a text every second piece is marked.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from ifqa.records import Question
from ifqa.serve.limits import CHOICES, CONTEXT, ID, KEYS, QUESTION, QUESTIONS, K

QUESTION_EXAMPLE = (
    "If Neil Armstrong had caught a bad fever shortly before the first lunar landing flight, "
    "who would have sat in the commander's seat?"
)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("the question is empty")
    return text


Text = Annotated[
    str, Field(min_length=1, max_length=QUESTION, description='"If ..., ...?"'), AfterValidator(_not_blank)
]
Threshold = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Least confidence of an answer: 0 always answers, null is the reader's own.",
    ),
]
Depth = Annotated[int, Field(ge=0, le=K, description="Passages to retrieve; 0: as many as the experiment does.")]


class Form(BaseModel):
    """A request: unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _of_few_keys(cls, given: object) -> object:
        """Refuse many keys at once: to name each that is not known would take seconds, and all others would wait."""
        if isinstance(given, dict) and len(given) > KEYS:
            raise ValueError(f"{len(given):,} keys; wanted at most {KEYS}")
        return given


class Asked(Form):
    """A question with what may come with it."""

    text: Text
    id: Annotated[str, Field(max_length=ID, pattern=r"^\S*$", description="Comes back with the answer.")] = ""
    choices: Annotated[list[Annotated[str, Field(max_length=QUESTION)]], Field(max_length=CHOICES)] = []
    context: Annotated[str, Field(max_length=CONTEXT)] = ""

    def question(self, name: str) -> Question:
        """The question; `name` is its id if it has none."""
        return Question(self.id or name, self.text.strip(), choices=tuple(self.choices), context=self.context)


TEXT, OBJECT = "as text", "as object"  # in the place of an error: which of the two forms was taken
TextOrAsked = Annotated[
    Annotated[Text, Tag(TEXT)] | Annotated[Asked, Tag(OBJECT)],
    Discriminator(lambda given: TEXT if isinstance(given, str) else OBJECT),
]


class Questions(Form):
    """One question, or several."""

    question: TextOrAsked | None = None
    questions: Annotated[list[TextOrAsked] | None, Field(min_length=1, max_length=QUESTIONS)] = None

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if (self.question is None) == (self.questions is None):
            raise ValueError('wanted either "question" or "questions"')
        return self

    @property
    def asked(self) -> list[Asked]:
        """The questions as a list."""
        several = [self.question] if self.question is not None else self.questions or []
        return [Asked(text=one) if isinstance(one, str) else one for one in several]


class AskForm(Questions):
    """What POST /v1/ask takes."""

    threshold: Threshold = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"question": QUESTION_EXAMPLE}, {"questions": [QUESTION_EXAMPLE], "threshold": 0}]
        }
    )


class RetrieveForm(Questions):
    """What POST /v1/retrieve takes."""

    k: Depth = 0

    model_config = ConfigDict(json_schema_extra={"examples": [{"question": QUESTION_EXAMPLE, "k": 20}]})


class TokenForm(Form):
    """What POST /v1/session takes."""

    token: Annotated[str, Field(max_length=1000)]


class PassageForm(BaseModel):
    """A passage."""

    id: str
    title: str
    text: str


class Evidence(PassageForm):
    """A passage that the reader read; marked is the answer, or what it was computed from."""

    pieces: list[str]


class Ranked(PassageForm):
    """A passage of a ranking."""

    rank: int
    score: float


class RankingForm(BaseModel):
    """The passages of a question, best first."""

    id: str
    question: str
    passages: list[Ranked]


class TermForm(BaseModel):
    """A number, date or list that an answer was computed from; its place is in the passage's text or in the question."""

    text: str
    value: str
    source: Literal["passage", "question"]
    start: int
    end: int


class CalculationForm(BaseModel):
    """How an answer was computed: `rule` stands between the terms, and `line` is all of it in one line."""

    result: str
    rule: str
    terms: list[TermForm]
    line: str


class HowForm(BaseModel):
    """Where an answer comes from: the sentence and the span in the passage's text; `pieces` are the sentence's."""

    passage_id: str
    sentence: tuple[int, int]
    span: tuple[int, int]
    pieces: list[str]
    calculation: CalculationForm | None


class Supposed(BaseModel):
    """The question's if-clause, and the question in pieces with the if-clause marked."""

    text: str
    pieces: list[str]


class StepForm(BaseModel):
    """One of several searches: its query, and the passages that no earlier search had found, best first."""

    query: str
    passage_ids: list[str]


class AnswerForm(BaseModel):
    """An answer with its evidence, most important first; `answer` is empty after an abstention or a failure."""

    id: str
    question: str
    supposed: Supposed | None
    outcome: Literal["answered", "abstained", "failed"]
    answer: str
    confidence: Annotated[float | None, Field(description="Probability that the answer, or the candidate, is right.")]
    candidate: Annotated[str, Field(description="The best candidate of a reader that abstained.")]
    factual: Annotated[str, Field(description="The answer in the real world, if the reader gives it.")]
    error: Annotated[str, Field(description="Why there is no answer, after a failure.")]
    how: HowForm | None
    evidence: list[Evidence]
    steps: Annotated[
        list[StepForm], Field(description="The searches, of a retriever that searches several times.")
    ] = []
    seconds: Annotated[float, Field(description="From the question's arrival to its answer.")]


class Written(BaseModel):
    """The event `text`: what a language model writes, from the character `at`."""

    at: Annotated[int, Field(ge=0)]
    text: str


class Answers(BaseModel):
    """The answers, in the order of the questions."""

    answers: list[AnswerForm]


class Rankings(BaseModel):
    """The rankings, in the order of the questions."""

    rankings: list[RankingForm]


class CorpusForm(BaseModel):
    """The corpus that is searched."""

    name: str
    passages: int


class ReaderForm(BaseModel):
    """Who answers; `streams` says whether text comes piece by piece."""

    name: str
    label: str
    model: str
    streams: bool
    abstains_below: float


class LimitsForm(BaseModel):
    """What the server takes at most."""

    question_characters: int
    questions: Annotated[int, Field(ge=1)]
    k: int
    body_bytes: int
    seconds: Annotated[float, Field(ge=0, le=3600)]
    waiting: int


class About(BaseModel):
    """What is searched, who answers, and what the server takes."""

    name: str
    about: str
    version: str
    corpus: CorpusForm | None
    retriever: str | None
    reader: ReaderForm | None
    passages_read: int
    k: int
    examples: list[str]
    limits: LimitsForm


class Fault(BaseModel):
    """What is wrong with one part of a request."""

    where: str
    what: str


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    request_id: str = ""
    errors: list[Fault] = []
