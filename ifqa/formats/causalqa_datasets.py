"""The ten datasets of CausalQA: the files of their publishers, and where these have questions, contexts and answers."""

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from csv import reader
from itertools import pairwise
from pathlib import Path, PurePosixPath

from ifqa.errors import IfqaError
from ifqa.formats.causalqa_files import (
    CausalTest,
    DatasetFile,
    FileReader,
    Publisher,
    QuestionDetails,
    Record,
    parse_split,
)
from ifqa.progress import bar
from ifqa.storage.files import LONGEST_LINE, text_field, typed_field
from ifqa.storage.json_stream import JsonStream


class PAQ(Publisher):
    """65 million questions that a model asked about passages of Wikipedia (Lewis et al., TACL 2021).

    A line of `PAQ.metadata.jsonl` (github.com/facebookresearch/PAQ):

        {"question": "...", "answer": "...", "answers": [{"passage_id": "123", "offset": 7, "text": "..."}], ...}

    The context is the passage of the first of `answers`, of DPR's `psgs_w100.tsv` beside it, unpacked; else it is empty.
    Passage ids are not unique, so an id is the number of the line. PAQ has no split: the random one stands for it.
    """

    wanted = "PAQ.metadata.jsonl and psgs_w100.tsv"
    files = ((r"PAQ\.metadata\.jsonl",),)
    beside = r"psgs_w100\.tsv"

    def __init__(self, reading: FileReader, beside: Sequence[DatasetFile], causal: CausalTest) -> None:
        super().__init__(reading, beside, causal)
        self._passages = PassageTable(reading, beside[0]) if beside else None

    def details(self, record: Record) -> QuestionDetails:
        places, context = record.records("answers"), ""
        if self._passages and places:
            context = self._passages.text(places[0].identifier("passage_id"), record.where)
        return QuestionDetails(record.where.rpartition(":")[2], context, [record.optional("answer")], "both")


class PassageTable:
    """Texts of DPR's passages by id, read from their places in the file. The ids count from 1, as the lines after the head do."""

    def __init__(self, reading: FileReader, part: DatasetFile) -> None:
        """Find the lines.

        Raises:
            IfqaError: the file is packed, which allows no look-up.
        """
        if part.member or part.path.suffix != ".tsv":
            raise IfqaError(
                f"{part}: passages are looked up in an unpacked file; unpack it beside, and remove this one"
            )
        self._path = part.path
        self._handle = reading.hold_open(part.path)
        self._starts = array("Q", [0])  # of each line, and the end: 170 MB for DPR's 21 million passages
        told = 0
        with bar(f"lines of {part.path.name}", part.size, unit="bytes") as advance:
            for line in self._handle:
                self._starts.append(self._starts[-1] + len(line))
                if len(self._starts) % 65_536 == 0:
                    advance(self._starts[-1] - told)
                    told = self._starts[-1]

    def text(self, passage_id: str, where: str) -> str:
        """The text of a passage.

        Raises:
            IfqaError: there is no such passage; `where` opens the message.
        """
        line = int(passage_id) if passage_id.isdecimal() and len(passage_id) < 12 else 0  # line 0 is the head
        if 0 < line < len(self._starts) - 1:
            self._handle.seek(self._starts[line])
            row = self._handle.readline().decode("utf-8", "replace").rstrip("\r\n")
            fields = next(reader([row], delimiter="\t"), [])
            if len(fields) == 3 and fields[0] == passage_id:
                return fields[1]
        raise IfqaError(
            f"{where}: passage {passage_id!r} is not at its line of {self._path}; wanted PAQ's own psgs_w100.tsv"
        )


class GooAQ(Publisher):
    """Questions of Google's auto-complete with the answers of its answer boxes (Khashabi et al., EMNLP Findings 2021).

    A line of `gooaq.jsonl` (github.com/allenai/gooaq), and its `split.json`:

        {"id": 1032187, "question": "...", "short_answer": null, "answer": "...", "answer_type": "feat_snip"}
        {"train": [[id, similarity], ...], "dev": [id, ...], "test": [id, ...]}

    The gold answer is `answer`, else `short_answer`. `dev` is the original validation part; questions in `test` or in no list
    are in the random split alone.
    """

    wanted = "gooaq.jsonl, and split.json for the original split"
    files = ((r"gooaq\.jsonl",),)
    beside = r"split\.json"
    _LARGEST = 1 << 27  # of an id; the release's go up to about 8 million
    _SPLITS = ("", "train", "dev")

    def __init__(self, reading: FileReader, beside: Sequence[DatasetFile], causal: CausalTest) -> None:
        super().__init__(reading, beside, causal)
        self._of_ids = bytearray()  # the split of every id: three million ids in a set would take 20 times the memory
        for part in beside:
            with reading.json(part) as stream:
                for name in stream.members():
                    if name in self._SPLITS[1:]:
                        for _ in stream.elements():
                            self._note(stream.value(), self._SPLITS.index(name), f"{part}:{stream.line}")

    def _note(self, value: object, split: int, where: str) -> None:
        number = value[0] if isinstance(value, list) and value else value
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < self._LARGEST:
            raise IfqaError(f"{where}: wanted the id of a question, found {value!r:.40}")
        if number >= len(self._of_ids):
            self._of_ids.extend(bytes(max(number + 1 - len(self._of_ids), len(self._of_ids))))
        self._of_ids[number] = split

    def details(self, record: Record) -> QuestionDetails:
        number, answer = record.identifier("id"), record.optional("answer") or record.optional("short_answer")
        known = number.isdecimal() and len(number) < 12 and int(number) < len(self._of_ids)
        return QuestionDetails(
            number, "", [answer], parse_split(self._SPLITS[self._of_ids[int(number)]]) if known else ""
        )


class MSMARCO(Publisher):
    """Question answering v2.1: queries of Bing with ten passages and answers that people wrote (Nguyen et al. 2016).

    `train_v2.1.json`, `dev_v2.1.json` and `eval_v2.1_public.json` (github.com/microsoft/MSMARCO-Question-Answering) are each
    one JSON object of columns:

        {"answers": {"0": ["..."]}, "passages": {"0": [{"passage_text": "...", ...}]}, "query": {"0": "..."}, "query_id": ...}

    A file is read twice, because its queries come last: for the causal rows, and for all else that these have. The gold answers
    are `answers` without "No Answer Present."; the context is the ten passages, a line each. `eval` only counts.
    """

    wanted = "train_v2.1.json, dev_v2.1.json and eval_v2.1_public.json"
    files = ((r"(train|dev)_v2\.1\.json|eval_v2\.1_public\.json",),)
    reads = 2
    key = "query"

    def records(self, part: DatasetFile) -> Iterator[Record]:
        rows: dict[str, dict[str, object]] = {}
        for _, row, stream in self._columns(part, "query"):
            query = stream.value()
            if not isinstance(query, str):
                raise IfqaError(f"{part}:{stream.line}: query {row!r} must be a string, found {type(query).__name__}")
            if self.causal(query):
                rows[row] = {"query": query}
            else:
                yield Record({"query": ""}, str(part), part)
        for key, row, stream in self._columns(part, "query_id", "passages", "answers"):
            if row in rows:
                rows[row][key] = stream.value()
        for row, values in rows.items():
            if "passages" not in values:
                raise IfqaError(f"{part}: row {row!r} has a query and no passages; fetch the file again")
            yield Record(values, f"{part}: row {row!r}", part)

    def _columns(self, part: DatasetFile, *keys: str) -> Iterator[tuple[str, str, JsonStream]]:
        """Column, row and cursor of each value of some columns, which must be there, but for the answers: eval has none."""
        seen = []
        with self.reading.json(part) as stream:
            for key in stream.members():
                seen.append(key)
                if key in keys:
                    for row in stream.members():
                        yield key, row, stream
        if missing := next((key for key in keys if key not in (*seen, "answers")), ""):
            names = ", ".join(map(repr, seen[:9])) or "no columns"
            raise IfqaError(f"{part}: column {missing!r} is missing; found {names}")

    def details(self, record: Record) -> QuestionDetails:
        answers = record.texts("answers") if "answers" in record.values else []
        answers = [answer for answer in answers if answer != "No Answer Present."]
        passages = [passage.optional("passage_text") for passage in record.records("passages")]
        return QuestionDetails(record.identifier("query_id"), "\n".join(passages), answers, record.split)


class NaturalQuestions(Publisher):
    """Queries of Google with a Wikipedia page and annotated spans (Kwiatkowski et al., TACL 2019).

    A line of `simplified-nq-train.jsonl` (github.com/google-research-datasets/natural-questions); one of `nq-dev-all.jsonl` and
    of the original `nq-train-00.jsonl` has `document_tokens`, a list of {"token", "html_token"}, for the text:

        {"example_id": 3902, "question_text": "...", "document_text": "<P> A string is ... </P>",
         "annotations": [{"short_answers": [{"start_token": 5, "end_token": 8}], ...}], ...}

    The gold answers are the short answers of all annotators, each span on its own, with repetitions, as in the authors'
    release. The context is the whole page without its tags (the authors cut it at 10,000 tokens). There is no test part.
    """

    wanted = (
        "simplified-nq-train.jsonl.gz and nq-dev-all.jsonl.gz, or nq-train-00.jsonl.gz ... and nq-dev-00.jsonl.gz ..."
    )
    files = (
        (r"(v1\.0-simplified_)?simplified-nq-train\.jsonl", r"nq-train-\d\d\.jsonl"),
        (r"(v1\.0-simplified_)?(simplified-nq-dev|nq-dev-all)\.jsonl", r"nq-dev-\d\d\.jsonl"),
    )
    key = "question_text"
    _TAG = re.compile(r"</?[A-Za-z][^ ]*>")

    def details(self, record: Record) -> QuestionDetails:
        tokens = self._tokens(record)
        spans = [span for annotation in record.records("annotations") for span in annotation.records("short_answers")]
        answers = [
            _join_tokens(tokens[slice(*_span_bounds(span, "start_token", "end_token", len(tokens)))]) for span in spans
        ]
        return QuestionDetails(record.identifier("example_id"), _join_tokens(tokens), answers, record.split)

    def _tokens(self, question: Record) -> list[str]:
        """The page's tokens, with an empty string for each tag, so that spans count right."""
        if "document_text" in question.values:  # split at single blanks, says the publisher: others are within tokens
            return ["" if self._TAG.fullmatch(token) else token for token in question.text("document_text").split(" ")]
        tokens = question.records("document_tokens")
        return ["" if token.values.get("html_token") else token.text("token") for token in tokens]


def _span_bounds(span: Record, start: str, end: str, length: int) -> tuple[int, int]:
    """The ends of a span, by the names of their keys, in a text of that many tokens or characters."""
    first, last = span.number(start), span.number(end)
    if not 0 <= first <= last <= length:
        raise IfqaError(f"{span.where}: an answer goes from {first} to {last}; its text ends at {length}")
    return first, last


def _join_tokens(tokens: Sequence[str]) -> str:
    return " ".join(token for token in tokens if token)


class ELI5(Publisher):
    """Questions and answers of the forum "Explain like I'm five" (Fan et al., ACL 2019).

    The authors took Hugging Face's (a line of `train_eli5.jsonl`, saved with `to_json`), which can hardly be had any more; KILT
    has the same questions (a line of `eli5-train-kilt.jsonl`, github.com/facebookresearch/KILT):

        {"q_id": "5lchat", "title": "...", "selftext": "", "answers": {"text": ["..."], ...}, ...}
        {"id": "5lchat", "input": "...", "output": [{"answer": "...", "meta": {"score": 7}}, {"provenance": [...]}]}

    The question is the title with the text below it: titles alone do not reach the 32.5 words of the paper's causal questions.
    Every answer is a gold answer. As in the paper, the training part alone is read, and the random split stands for the original.
    """

    wanted = "train_eli5.jsonl, or eli5-train-kilt.jsonl"
    files = ((r"train_eli5\.jsonl", r"eli5-train-kilt\.jsonl"),)

    def question(self, record: Record) -> str:
        if "input" in record.values:
            return record.text("input")
        pieces = record.text("title"), record.optional("selftext")
        return " ".join(piece.strip() for piece in pieces if piece.strip())

    def details(self, record: Record) -> QuestionDetails:
        if "input" in record.values:
            answers = [output.optional("answer") for output in record.records("output")]
            return QuestionDetails(record.identifier("id"), "", answers, "both")
        return QuestionDetails(record.identifier("q_id"), "", record.record("answers").texts("text"), "both")


class SearchQA(Publisher):
    """Questions of the quiz Jeopardy! with snippets that Google found (Dunn et al. 2017).

    `train.zip`, `val.zip` and `test.zip` of data_json (github.com/nyu-dl/dl4ir-searchQA), or the folders unpacked, hold a JSON
    file for each question:

        {"id": "000000", "question": "...", "answer": "...", "search_results": [{"snippet": "...", ...}], ...}

    The context is the snippets, a line each. `val` is the validation part; questions of `test` are in the random split alone.
    """

    wanted = "train.zip, val.zip and test.zip (of data_json)"

    @classmethod
    def choose_files(cls, available: Sequence[DatasetFile]) -> list[DatasetFile]:
        chosen = [part for part in available if _split_folder(part) and re.fullmatch(r"\w+\.json", part.base)]
        for first, second in pairwise(chosen):
            if first.name == second.name:
                raise IfqaError(f"{first} and {second}: one question twice; keep the archive or the folder")
        return chosen

    def records(self, part: DatasetFile) -> Iterator[Record]:
        with self.reading.json(part) as stream:
            where = f"{part}:{stream.line}"
            yield Record.of(stream.value(), where, part)

    def details(self, record: Record) -> QuestionDetails:
        folder, name = _split_folder(record.part), record.part.base.removesuffix(".json")
        snippets = filter(None, (page.optional("snippet") for page in record.records("search_results")))
        return QuestionDetails(f"{folder}-{name}", "\n".join(snippets), [record.text("answer")], parse_split(folder))


def _split_folder(part: DatasetFile) -> str:
    """The last folder named train, val or test; empty if there is none."""
    pieces = reversed(PurePosixPath(part.name).parts[:-1])
    return next((piece for piece in pieces if piece in ("train", "val", "test")), "")


class SQuAD2(Publisher):
    """SQuAD 2.0: questions on paragraphs of Wikipedia; a third of them have no answer there (Rajpurkar et al., ACL 2018).

    The gold answers are those of all annotators, with repetitions, as in the authors' release; the context is the paragraph.
    """

    wanted = "train-v2.0.json and dev-v2.0.json"
    files = ((r"(train|dev)-v2\.0\.json",),)
    array = "data"

    def records(self, part: DatasetFile) -> Iterator[Record]:
        for article in super().records(part):
            for paragraph in article.records("paragraphs"):
                context = paragraph.text("context")
                yield from (question.extend(context=context) for question in paragraph.records("qas"))

    def details(self, record: Record) -> QuestionDetails:
        answers = [answer.optional("text") for answer in record.records("answers")]
        return QuestionDetails(record.identifier("id"), record.text("context"), answers, record.split)


class NewsQA(Publisher):
    """Questions on stories of CNN, answered by a span of the story (Trischler et al. 2017).

    `combined-newsqa-data-v1.json`, which the publisher's script (github.com/Maluuba/newsqa) makes:

        {"data": [{"storyId": "./cnn/stories/2e1d4", "text": "...", "type": "train",
                   "questions": [{"q": "...", "consensus": {"s": 115, "e": 125}, ...}]}], "version": "1"}

    The gold answer is the consensus, which may be that there is none; the context is the story.
    """

    wanted = "combined-newsqa-data-v1.json"
    files = ((r"combined-newsqa-data-v1\.json",),)
    array = "data"
    key = "q"

    def records(self, part: DatasetFile) -> Iterator[Record]:
        for story in super().records(part):
            name, text = text_field(story.values, "storyId", story.where), story.text("text")
            split = parse_split(story.text("type"))
            for number, question in enumerate(story.records("questions")):
                yield question.extend(id=f"{name}/{number}", text=text, split=split)

    def details(self, record: Record) -> QuestionDetails:
        agreed, text = record.record("consensus"), record.text("text")
        answers = [text[slice(*_span_bounds(agreed, "s", "e", len(text)))]] if "s" in agreed.values else []
        return QuestionDetails(record.text("id"), text, answers, record.text("split"))


class HotpotQA(Publisher):
    """Questions that take two paragraphs of Wikipedia to answer (Yang et al., EMNLP 2018).

    Each file (github.com/hotpotqa/hotpot) is a list of

        {"_id": "5a8b...", "question": "...", "answer": "...", "context": [["Title", ["A sentence.", " Another."]], ...], ...}

    The context is all its paragraphs, a line each, as "Title: sentences". The test part has no answers and only counts. The
    paper's 112,662 questions seem to count dev in both settings (distractor and fullwiki), which this does not.
    """

    wanted = "hotpot_train_v1.1.json, hotpot_dev_distractor_v1.json, hotpot_test_fullwiki_v1.json"
    files = (
        (r"hotpot_train_v1\.1\.json",),
        (r"hotpot_dev_distractor_v1\.json", r"hotpot_dev_fullwiki_v1\.json"),
        (r"hotpot_test_fullwiki_v1\.json",),
    )
    array = ""

    def details(self, record: Record) -> QuestionDetails:
        pairs = typed_field(record.values, "context", list, record.where)
        context = "\n".join(_format_paragraph(pair, record.where) for pair in pairs)
        return QuestionDetails(record.identifier("_id"), context, [record.optional("answer")], record.split)


def _format_paragraph(pair: object, where: str) -> str:
    title, sentences = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
    if not isinstance(title, str) or not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
        raise IfqaError(f"{where}: 'context' must hold pairs of a title and a list of sentences, found {pair!r:.60}")
    return f"{title}: {''.join(sentences).strip()}"


class TriviaQA(Publisher):
    """Questions of quiz pages with documents found for them (Joshi et al., ACL 2017).

    `unfiltered-web-train.json` and so on (nlp.cs.washington.edu/triviaqa; else `web-train.json` of the archive "rc"), and the
    documents, `evidence/wikipedia/FILENAME` and `evidence/web/FILENAME` of the archive "rc":

        {"Data": [{"Question": "...", "QuestionId": "tc_1", "Answer": {"Value": "...", "Aliases": ["..."], ...},
          "EntityPages": [{"Filename": "A_page.txt", ...}],
          "SearchResults": [{"Description": "...", "Filename": "1/1_2.txt", ...}]}], ...}

    The gold answers are the value and its aliases. The context is the first document that is there, Wikipedia's pages
    first, else the descriptions of the search results. The test part has no answers and only counts.
    """

    wanted = (
        "unfiltered-web-train.json, unfiltered-web-dev.json, unfiltered-web-test-without-answers.json, and evidence/"
    )
    files = ((r"unfiltered-web-(train|dev|test-without-answers)\.json", r"web-(train|dev|test-without-answers)\.json"),)
    array = "Data"
    key = "Question"

    @classmethod
    def fingerprint_lines(cls, folder: Path) -> Iterable[str]:
        """Name and size of every document, in the place of 650,000 checksums."""
        for place, folders, files in os.walk(folder):
            folders.sort()
            below = Path(place).relative_to(folder).parts
            if "evidence" in below:
                for file in sorted(files):
                    yield f"{'/'.join(below)}/{file} {(Path(place) / file).stat().st_size}"

    def details(self, record: Record) -> QuestionDetails:
        answers: list[str] = []
        if "Answer" in record.values:
            answer = record.record("Answer")
            answers = list(dict.fromkeys([answer.text("Value"), *answer.texts("Aliases")]))
        return QuestionDetails(record.identifier("QuestionId"), self._context(record), answers, record.split)

    def _context(self, question: Record) -> str:
        folder = question.part.path.parent  # documents lie beside the questions, or up to two folders higher
        places = (up / "evidence" for up in (folder, *list(folder.parents)[:2]))
        evidence = next((place for place in places if place.is_dir()), None)
        descriptions = []
        for key, kind in (("EntityPages", "wikipedia"), ("SearchResults", "web")):
            for page in question.records(key) if key in question.values else []:
                if evidence and (text := _read_document(evidence / kind, page.optional("Filename"))):
                    return text
                descriptions.append(page.optional("Description"))
        return "\n".join(filter(None, descriptions))


def _read_document(folder: Path, name: str) -> str:
    """A document's text; empty if it is not there, or if its name leads out of the folder."""
    path = Path(os.path.normpath(folder / name)) if name and "\0" not in name else folder
    if path == folder or not path.is_relative_to(os.path.normpath(folder)) or not path.is_file():
        return ""
    with open(path, "rb") as handle:
        return handle.read(LONGEST_LINE).decode("utf-8", "replace").strip()


#: Name of a dataset -> its layout, in the paper's order.
PUBLISHERS: dict[str, type[Publisher]] = {
    "paq": PAQ,
    "gooaq": GooAQ,
    "msmarco": MSMARCO,
    "naturalquestions": NaturalQuestions,
    "eli5": ELI5,
    "searchqa": SearchQA,
    "squad2": SQuAD2,
    "newsqa": NewsQA,
    "hotpotqa": HotpotQA,
    "triviaqa": TriviaQA,
}
