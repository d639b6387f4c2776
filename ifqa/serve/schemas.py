"""The JSON objects of the API and the MCP tools.

Offsets count Unicode code points, the end exclusive. `pieces` alternate between plain and
highlighted text.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Annotated, Literal, Self
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    model_validator,
)

from ifqa.clauses import split_question
from ifqa.corpus.documents.chunking import encoded_name, parse_locator
from ifqa.corpus.documents.indexed_file import IndexedFile
from ifqa.corpus.documents.page_picture import page_parts
from ifqa.formatting import printable_line
from ifqa.records import (
    Ablation,
    Answer,
    Explanation,
    Passage,
    Question,
    QuotedPlace,
    QuoteOutcome,
    Ranking,
    Term,
)
from ifqa.serve.limits import (
    MAX_BODY,
    MAX_CHOICES,
    MAX_CONTEXT,
    MAX_ID,
    MAX_K,
    MAX_KEYS,
    MAX_PICTURES,
    MAX_QUESTION,
    MAX_QUESTIONS,
)
from ifqa.version import __version__

QUESTION_EXAMPLE = (
    "If Neil Armstrong had caught a bad fever shortly before the first lunar landing flight, "
    "who would have sat in the commander's seat?"
)
DIGITS = 16  # of a file's SHA-256 in the address of a picture
_THRESHOLD = "Abstain below this confidence: 0 always answers, null leaves it to the reader."


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("the question is empty")
    return text


Text = Annotated[
    str,
    Field(min_length=1, max_length=MAX_QUESTION, description='"If ..., ...?"'),
    AfterValidator(_not_blank),
]
Threshold = Annotated[float | None, Field(ge=0, le=1, allow_inf_nan=False, description=_THRESHOLD)]
Depth = Annotated[
    int, Field(ge=0, le=MAX_K, description="Passages to retrieve; 0: the experiment's number.")
]


class Form(BaseModel):
    """A request; unknown keys and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _limit_keys(cls, body: object) -> object:
        """Refuse too many keys together, because an error for each would block the server for
        seconds.
        """
        if isinstance(body, dict) and len(body) > MAX_KEYS:
            raise ValueError(f"{len(body):,} keys; wanted at most {MAX_KEYS}")
        return body


class QuestionForm(Form):
    """A question with its id, choices and context."""

    text: Text
    id: Annotated[
        str, Field(max_length=MAX_ID, pattern=r"^\S*$", description="Returned with the answer.")
    ] = ""
    choices: Annotated[
        list[Annotated[str, Field(max_length=MAX_QUESTION)]], Field(max_length=MAX_CHOICES)
    ] = []
    context: Annotated[str, Field(max_length=MAX_CONTEXT)] = ""


TEXT, OBJECT = "as text", "as object"  # in an error's location: the parsed form
TextOrQuestion = Annotated[
    Annotated[Text, Tag(TEXT)] | Annotated[QuestionForm, Tag(OBJECT)],
    Discriminator(lambda question: TEXT if isinstance(question, str) else OBJECT),
]


def _examples(*bodies: dict[str, JsonValue]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [*bodies]})


class Questions(Form):
    """One or more questions."""

    question: TextOrQuestion | None = None
    questions: Annotated[
        list[TextOrQuestion] | None, Field(min_length=1, max_length=MAX_QUESTIONS)
    ] = None

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if (self.question is None) == (self.questions is None):
            raise ValueError('wanted either "question" or "questions"')
        return self

    @property
    def records(self) -> list[Question]:
        """The questions; a missing id is empty."""
        questions = [self.question] if self.question is not None else self.questions or []
        forms = [
            QuestionForm(text=question) if isinstance(question, str) else question
            for question in questions
        ]
        return [
            Question(form.id, form.text.strip(), (), (), tuple(form.choices), form.context)
            for form in forms
        ]


class AskForm(Questions):
    """The body of POST /v1/ask."""

    threshold: Threshold = None

    model_config = _examples(
        {"question": QUESTION_EXAMPLE}, {"questions": [QUESTION_EXAMPLE], "threshold": 0}
    )


class RetrieveForm(Questions):
    """The body of POST /v1/retrieve."""

    k: Depth = 0

    model_config = _examples({"question": QUESTION_EXAMPLE, "k": 20})


class TokenForm(Form):
    """The body of POST /v1/session."""

    token: Annotated[str, Field(max_length=1000)]


class Reply(BaseModel):
    """A response.

    "?" replaces each lone surrogate, which UTF-8 cannot encode; offsets stay the same.
    """

    @model_validator(mode="before")
    @classmethod
    def _encodable(cls, fields: object) -> object:
        return _replace_surrogates(fields)


def _replace_surrogates(content: object) -> object:
    if isinstance(content, str):
        return content.encode("utf-8", "replace").decode()
    if isinstance(content, dict):
        return {key: _replace_surrogates(inner) for key, inner in content.items()}
    return [*map(_replace_surrogates, content)] if isinstance(content, list | tuple) else content


class SourceForm(Reply):
    """The document of a passage: its file and place in words, the page of its text, and the file
    itself.
    """

    text: Annotated[str, Field(examples=["notes & emails/Board minutes.docx, paragraphs 3-4"])]
    url: Annotated[str, Field(description="The file's text, with the passage marked.")]
    original: Annotated[
        str, Field(description="The file: a PDF opens at the page, any other is downloaded.")
    ]

    @classmethod
    def of(cls, passage_id: str, files: Collection[str], at: int | None = None) -> Self | None:
        """The source of a passage, or of its character `at`.

        None unless its file is in `files`, encoded as in an id.
        """
        locator = parse_locator(passage_id, at)
        if locator is None or encoded_name(passage_id) not in files:
            return None
        url = f"/documents/{quote(passage_id)}"
        page = f"#page={locator.first}" if locator.unit == "page" else ""
        return cls(text=str(locator), url=url, original=f"{url}/original{page}")


class PassageForm(Reply):
    """A passage; `source` is null unless it is from a folder of documents."""

    id: str
    title: str
    text: str
    source: SourceForm | None = None


class Evidence(PassageForm):
    """A passage that the reader read, with the answer or the terms of its calculation
    highlighted.
    """

    pieces: list[str]


class RankedPassage(PassageForm):
    """A passage of a ranking."""

    rank: int
    score: float


class RankingForm(Reply):
    """The passages of a question, best first."""

    id: str
    question: str
    passages: list[RankedPassage]

    @classmethod
    def of(cls, ranking: Ranking, files: Collection[str] = ()) -> Self:
        """The form of a ranking; `files` as in `SourceForm.of`."""
        passages = [
            {
                **asdict(passage),
                "source": SourceForm.of(passage.id, files),
                "rank": rank,
                "score": score,
            }
            for rank, (passage, score) in enumerate(ranking, start=1)
        ]
        question = ranking.question
        return cls.model_validate(
            {"id": question.id, "question": question.text, "passages": passages}
        )


class CalculationForm(Reply):
    """How an answer was computed: `rule` joins the terms, and `line` is the whole calculation."""

    result: str
    rule: str
    terms: list[Term]
    line: str


class PictureForm(Reply):
    """A page of a PDF as a picture with the sentence, or its part on this page, marked."""

    page: int
    text: Annotated[str, Field(description="File and page in words.")]
    url: Annotated[str, Field(description="The address of a PNG.")]

    @classmethod
    def all_of(
        cls, passage: Passage, how: Explanation, files: Mapping[str, IndexedFile]
    ) -> list[Self]:
        """The pages that the sentence stands on; none unless the passage is from a PDF."""
        file = files.get(encoded_name(passage.id))
        if file is None or not file.is_pdf:
            return []
        start, end = how.sentence
        query = f"start={start}&end={end}&of={file.record.sha256[:DIGITS]}"
        parts = [part.page for part in page_parts(passage, start, end)]
        return [
            cls(
                page=page,
                text=f"{printable_line(file.name)}, p. {page}",
                url=f"/documents/{quote(passage.id)}/pages/{page}.png?{query}",
            )
            for page in parts[:MAX_PICTURES]
        ]


class ExplanationForm(Reply):
    """The source of an answer: sentence and span in the passage's text, and the sentence's pieces;
    of a PDF also the pages with it as pictures.
    """

    passage_id: str
    sentence: tuple[int, int]
    span: tuple[int, int]
    items: Annotated[
        list[tuple[int, int]],
        Field(description="The spans of the items of an answer that is a list; else empty."),
    ]
    origin: Annotated[
        Literal["read", "quoted", "found afterwards"],
        Field(
            description="Who found the sentence: the reader that gave the answer (read), a "
            "language model that quoted it (quoted), or another reader, for a language model's "
            "answer that came without it (found afterwards)."
        ),
    ]
    pieces: list[str]
    calculation: CalculationForm | None
    pictures: list[PictureForm] = []


class PlaceForm(Reply):
    """Where a quote, or a part of it, stands: `text` from `start` to `end` of the passage."""

    passage_id: str
    start: int
    end: int
    text: str
    source: Annotated[
        SourceForm | None, Field(description="Null unless it is from a folder of documents.")
    ]

    @classmethod
    def of(cls, place: QuotedPlace, passage: Passage, files: Collection[str]) -> Self:
        """The form of a place in a passage; `files` as in `SourceForm.of`."""
        source = SourceForm.of(passage.id, files, place.start)
        text = passage.text[place.start : place.end]
        return cls.model_validate(asdict(place) | {"text": text, "source": source})


class QuoteForm(Reply):
    """What a language model quotes for its answer, and whether the passages have it.

    A quote that is `missing` is no evidence: the model wrote it, and no passage that it was shown
    has it. A `stitched` one joins parts that stand apart, so its sentence is the model's own.
    """

    text: Annotated[str, Field(description="In the model's words; empty if it quotes nothing.")]
    outcome: QuoteOutcome
    verdict: Annotated[str, Field(description="The outcome in words.")]
    places: Annotated[
        list[PlaceForm],
        Field(description="One for a whole quote, several for a stitched one."),
    ]

    @classmethod
    def of(cls, answer: Answer, files: Collection[str]) -> Self | None:
        """The form of an answer's quote; None if its reader was not asked for one."""
        quoted = answer.quote
        if quoted is None:
            return None
        passages = {passage.id: passage for passage in answer.evidence}
        places = [
            PlaceForm.of(place, passages[place.passage_id], files)
            for place in quoted.places
            if place.passage_id in passages
        ]
        return cls(text=quoted.text, outcome=quoted.outcome, verdict=quoted.verdict, places=places)


class StepForm(Reply):
    """What a language model did before it answered: a search of the corpus, a computation, or
    something that could not be done.
    """

    action: Literal["search", "compute", "other"]
    text: Annotated[str, Field(description="The query, the expression, or what it wrote.")]
    result: Annotated[
        str,
        Field(description="The value, or what it was told; empty for a search with passages."),
    ]
    passage_ids: list[str]
    line: Annotated[str, Field(description="The step in words.")]


class Supposition(Reply):
    """The question's if-clause, and the question in pieces with the if-clause highlighted."""

    text: str
    pieces: list[str]


class AnswerForm(Reply):
    """An answer with its evidence, most important first.

    `answer` is empty after an abstention or a failure.
    """

    id: str
    question: str
    supposed: Supposition | None
    outcome: Literal["answered", "abstained", "failed"]
    answer: str
    confidence: Annotated[
        float | None, Field(description="Probability that the answer, or the candidate, is right.")
    ]
    answerable: Annotated[
        float | None,
        Field(description="Probability that a passage has the answer, whatever it is."),
    ]
    candidate: Annotated[str, Field(description="The best candidate of a reader that abstained.")]
    factual: Annotated[
        str, Field(description="The answer in the real world, if the reader gives it.")
    ]
    abstention: Annotated[
        str,
        Field(description="Why the reader abstained, if it was not for a low confidence."),
    ] = ""
    error: Annotated[str, Field(description="Why there is no answer, after a failure.")]
    quote: Annotated[
        QuoteForm | None,
        Field(description="Null unless a language model was asked for a quote, and answered."),
    ] = None
    change: Annotated[
        str,
        Field(description="What the supposition changes, as a language model says; not checked."),
    ] = ""
    steps: Annotated[
        list[StepForm],
        Field(description="What a language model did before it answered, in order."),
    ] = []
    how: ExplanationForm | None
    evidence: list[Evidence]
    uncalibrated: Annotated[
        str,
        Field(
            description="Why a language model's answer has no confidence, and the command that "
            "fits one."
        ),
    ] = ""
    note: Annotated[
        str,
        Field(
            description="Why the answer means little: the reader does not know the language of "
            "question or passage, or the text is no question."
        ),
    ] = ""
    seconds: Annotated[float, Field(description="From the question's arrival to its answer.")]

    @classmethod
    def of(
        cls, answer: Answer, seconds: float, files: Mapping[str, IndexedFile] = MappingProxyType({})
    ) -> Self:
        """The form of an answer that took `seconds`; `files` are those of the searched folder."""
        abstained = bool(answer.candidate or answer.abstention or answer.note)
        failed = not answer.text and bool(answer.error or not abstained)
        text = answer.question.text
        how = answer.how
        supposed = split_question(text).presupposition
        before, clause, after = text.partition(supposed) if supposed else (text, "", "")
        passage = answer.supporting
        explanation = None
        if how and passage:
            explanation = asdict(how) | {"pieces": how.pieces(passage.text, sentence=True)}
            explanation["pictures"] = PictureForm.all_of(passage, how, files)
            if how.calculation:
                explanation["calculation"]["line"] = str(how.calculation)
        outcome = "failed" if failed else "abstained"
        if answer.text:
            outcome = "answered"
        evidence = []
        for passage in answer.evidence:
            source = SourceForm.of(passage.id, files, answer.position(passage))
            evidence.append(
                {**asdict(passage), "source": source, "pieces": answer.highlights(passage)}
            )
        return cls.model_validate(
            {
                **asdict(answer),
                "id": answer.question.id,
                "question": text,
                "supposed": {"text": clause, "pieces": [before, clause, after]} if clause else None,
                "outcome": outcome,
                "answer": answer.text,
                "error": answer.no_answer_reason.removeprefix("no answer: ") if failed else "",
                "quote": QuoteForm.of(answer, files),
                "steps": [asdict(step) | {"line": str(step)} for step in answer.steps],
                "how": explanation,
                "evidence": evidence,
                "seconds": round(seconds, 3),
            }
        )


class TextEvent(Reply):
    """The event `text`: the language model's text from the character `at`."""

    at: int
    text: str


class Answers(Reply):
    """The answers, in the order of the questions."""

    answers: list[AnswerForm]


class Rankings(Reply):
    """The rankings, in the order of the questions."""

    rankings: list[RankingForm]


class AblationForm(Reply):
    """What the answer becomes without a passage, or without a sentence of it.

    `sentence` is empty for the whole passage.
    """

    passage: PassageForm
    sentence: str
    answer: str
    confidence: float | None
    same: bool

    @classmethod
    def of(cls, ablation: Ablation, files: Collection[str]) -> Self:
        source = SourceForm.of(ablation.passage.id, files)
        record = asdict(ablation)
        return cls.model_validate(record | {"passage": {**record["passage"], "source": source}})


class WhyForm(Reply):
    """A question's answer, and what it becomes without each passage and each sentence of the
    supporting passage.
    """

    id: str
    answer: str
    ablations: list[AblationForm]


class Whys(Reply):
    """The reasons, in the order of the questions."""

    answers: list[WhyForm]


class CorpusForm(Reply):
    """The corpus that is searched."""

    name: str
    passages: int


class _FolderForm(Reply):
    name: str
    files: int
    passages: int
    updating: Annotated[bool, Field(description="Whether new and changed files are being read.")]


class DocumentsForm(_FolderForm):
    """The searched folder of documents, with the number of files left out."""

    left_out: int


class LeftOutFile(Reply):
    """A file that is not read; `hint` says what would help."""

    file: str
    reason: str
    hint: str


class FolderForm(_FolderForm):
    """The searched folder of documents, with the files left out, at most 1,000, and its last update
    while the server runs.
    """

    left_out: list[LeftOutFile]
    changed: Annotated[int, Field(description="Files that the update is for.")] = 0
    updated: Annotated[
        str, Field(description="When the update was complete (ISO 8601), or empty.")
    ] = ""
    problem: Annotated[str, Field(description="Why the folder could not be read again.")] = ""


class ReaderForm(Reply):
    """The reader; `streams`: whether its text arrives while it is generated; `searches`: whether it
    searches for itself, so that /v1/why cannot leave out passages.
    """

    name: str
    label: str
    model: str
    streams: bool
    searches: bool = False
    abstains_below: Annotated[float, Field(description="It gives no answer below this confidence.")]
    answerable_threshold: Annotated[
        float, Field(description="By default it gives none where `answerable` is below it.")
    ]
    language: Annotated[
        str, Field(description="The only one that it was trained on, as ISO 639-1; empty for any.")
    ]


class LimitsForm(Reply):
    """The server's limits."""

    question_characters: int = MAX_QUESTION
    questions: int = MAX_QUESTIONS
    k: int = MAX_K
    body_bytes: int = MAX_BODY
    seconds: float
    waiting: int


class About(Reply):
    """The corpus, the reader and the limits."""

    name: str
    about: str
    version: str = __version__
    corpus: CorpusForm | None
    documents: Annotated[
        DocumentsForm | None, Field(description="Null unless a folder of documents is searched.")
    ]
    retriever: str | None
    reader: ReaderForm | None
    passages_read: int
    k: int
    examples: list[str]
    limits: LimitsForm


class Problem(Reply):
    """Problem details (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    request_id: str = ""
    #: The parts of `detail`, where the error tells them apart.
    found: str | None = None
    wanted: str | None = None
    mend: str | None = None
