"""The layouts of CausalQA's ten datasets: their files, and where questions, contexts and answers are in them."""

import csv
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath

from ifqa.errors import FormatError
from ifqa.formats.causalqa_files import CausalTest, DatasetFile, Details, FileReader, Publisher, Record, parse_split
from ifqa.progress import bar
from ifqa.storage.files import LONGEST_LINE, text_field, typed_field
from ifqa.storage.json_stream import JsonStream


class PAQ(Publisher):
    """65 million questions that a model generated from passages of Wikipedia (Lewis et al., TACL 2021).

    A line of `PAQ.metadata.jsonl` (github.com/facebookresearch/PAQ):

        {"question": "...", "answer": "...", "answers": [{"passage_id": "123", "offset": 7, "text": "..."}], ...}

    The context is the passage of the first answer, from DPR's `psgs_w100.tsv`, uncompressed in the same folder; without it,
    empty. Passage ids are not unique, so a question's id is its line number. PAQ has no split; the random one replaces it.
    """

    wanted = "PAQ.metadata.jsonl and psgs_w100.tsv"
    files = ((r"PAQ\.metadata\.jsonl",),)
    lookup_pattern = r"psgs_w100\.tsv"

    def __init__(self, reader: FileReader, lookup_files: Sequence[DatasetFile], causal: CausalTest) -> None:
        super().__init__(reader, lookup_files, causal)
        self._passages = PassageTable(reader, lookup_files[0]) if lookup_files else None

    def details(self, record: Record) -> Details:
        answers, context = record.records("answers"), ""
        if self._passages and answers:
            context = self._passages.text(answers[0].identifier("passage_id"), record.where)
        return Details(record.where.rpartition(":")[2], context, [record.optional("answer")], "both")


class PassageTable:
    """Looks up the texts of DPR's passages by id, which is the number of the passage's line, from 1 after the header."""

    def __init__(self, reader: FileReader, file: DatasetFile) -> None:
        """Find the offset of each line; raises FormatError for a compressed file, which allows no look-ups."""
        if file.member or file.path.suffix != ".tsv":
            raise FormatError(
                f"{file}: look-ups need an uncompressed file; decompress it in its folder, and remove this one"
            )
        self._path = file.path
        self._handle = reader.hold_open(file.path)
        self._starts = array("Q", [0])  # offsets of all lines and of the end: 170 MB for DPR's 21 million passages
        reported = 0
        with bar(f"lines of {file.path.name}", file.size, unit="bytes") as advance:
            for line in self._handle:
                self._starts.append(self._starts[-1] + len(line))
                if len(self._starts) % 65_536 == 0:
                    advance(self._starts[-1] - reported)
                    reported = self._starts[-1]

    def text(self, passage_id: str, where: str) -> str:
        """The text of a passage; raises FormatError, starting with `where`, if there is no such passage."""
        line = int(passage_id) if passage_id.isdecimal() and len(passage_id) < 12 else 0  # line 0 is the header
        if 0 < line < len(self._starts) - 1:
            self._handle.seek(self._starts[line])
            row = self._handle.readline().decode("utf-8", "replace").rstrip("\r\n")
            fields = next(csv.reader([row], delimiter="\t"), [])
            if len(fields) == 3 and fields[0] == passage_id:
                return fields[1]
        raise FormatError(
            f"{where}: passage {passage_id!r} is not on its line of {self._path}; wanted PAQ's psgs_w100.tsv"
        )


class GooAQ(Publisher):
    """Questions from Google's auto-complete with answers from its answer boxes (Khashabi et al., EMNLP Findings 2021).

    A line of `gooaq.jsonl` (github.com/allenai/gooaq), and its `split.json`:

        {"id": 1032187, "question": "...", "short_answer": null, "answer": "...", "answer_type": "feat_snip"}
        {"train": [[id, similarity], ...], "dev": [id, ...], "test": [id, ...]}

    The gold answer is `answer`, else `short_answer`. `dev` is the original validation part; questions in `test` or in no list are
    only in the random split.
    """

    wanted = "gooaq.jsonl, and split.json for the original split"
    files = ((r"gooaq\.jsonl",),)
    lookup_pattern = r"split\.json"
    _LARGEST = 1 << 27  # limit of an id; the release has ids up to about 8 million
    _SPLITS = ("", "train", "dev")

    def __init__(self, reader: FileReader, lookup_files: Sequence[DatasetFile], causal: CausalTest) -> None:
        super().__init__(reader, lookup_files, causal)
        self._splits = bytearray()  # by id; a set of three million ids would take 20 times as much memory
        for file in lookup_files:
            with reader.json(file) as stream:
                for name in stream.members():
                    if name in self._SPLITS[1:]:
                        for _ in stream.elements():
                            self._add_id(stream.value(), self._SPLITS.index(name), f"{file}:{stream.line}")

    def _add_id(self, entry: object, split: int, where: str) -> None:
        number = entry[0] if isinstance(entry, list) and entry else entry
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < self._LARGEST:
            raise FormatError(f"{where}: wanted the id of a question, found {entry!r:.40}")
        if number >= len(self._splits):
            self._splits.extend(bytes(max(number + 1 - len(self._splits), len(self._splits))))
        self._splits[number] = split

    def details(self, record: Record) -> Details:
        number, answer = record.identifier("id"), record.optional("answer") or record.optional("short_answer")
        known = number.isdecimal() and len(number) < 12 and int(number) < len(self._splits)
        return Details(number, "", [answer], parse_split(self._SPLITS[self._splits[int(number)]]) if known else "")


class MSMARCO(Publisher):
    """MS MARCO's question answering v2.1: Bing queries with ten passages and answers written by people (Nguyen et al. 2016).

    `train_v2.1.json`, `dev_v2.1.json` and `eval_v2.1_public.json` (github.com/microsoft/MSMARCO-Question-Answering) are each
    a JSON object of columns:

        {"answers": {"0": ["..."]}, "passages": {"0": [{"passage_text": "...", ...}]}, "query": {"0": "..."}, "query_id": ...}

    A file is read twice, because its queries come last: first for the causal rows, then for their other columns. The gold answers
    are `answers` without "No Answer Present."; the context is the ten passages, one per line. `eval` is only counted.
    """

    wanted = "train_v2.1.json, dev_v2.1.json and eval_v2.1_public.json"
    files = ((r"(train|dev)_v2\.1\.json|eval_v2\.1_public\.json",),)
    reads = 2
    key = "query"

    def records(self, file: DatasetFile) -> Iterator[Record]:
        rows: dict[str, dict[str, object]] = {}
        for _, row, stream in self._columns(file, "query"):
            query = stream.value()
            if not isinstance(query, str):
                raise FormatError(f"{file}:{stream.line}: query {row!r} must be a string, found {type(query).__name__}")
            if self.causal(query):
                rows[row] = {"query": query}
            else:
                yield Record({"query": ""}, str(file), file)
        for key, row, stream in self._columns(file, "query_id", "passages", "answers"):
            if row in rows:
                rows[row][key] = stream.value()
        for row, values in rows.items():
            if "passages" not in values:
                raise FormatError(f"{file}: row {row!r} has a query and no passages; download the file again")
            yield Record(values, f"{file}: row {row!r}", file)

    def _columns(self, file: DatasetFile, *keys: str) -> Iterator[tuple[str, str, JsonStream]]:
        """Column, row and cursor for each value in some columns; all but "answers", which eval lacks, must exist."""
        seen = []
        with self.reader.json(file) as stream:
            for key in stream.members():
                seen.append(key)
                if key in keys:
                    for row in stream.members():
                        yield key, row, stream
        if missing := next((key for key in keys if key not in (*seen, "answers")), ""):
            names = ", ".join(map(repr, seen[:9])) or "no columns"
            raise FormatError(f"{file}: column {missing!r} is missing; found {names}")

    def details(self, record: Record) -> Details:
        answers = record.texts("answers") if "answers" in record.values else []
        answers = [answer for answer in answers if answer != "No Answer Present."]
        passages = [passage.optional("passage_text") for passage in record.records("passages")]
        return Details(record.identifier("query_id"), "\n".join(passages), answers, record.split)


class NaturalQuestions(Publisher):
    """Google queries with a Wikipedia page and annotated spans (Kwiatkowski et al., TACL 2019).

    A line of `simplified-nq-train.jsonl` (github.com/google-research-datasets/natural-questions); lines of `nq-dev-all.jsonl`
    and the original `nq-train-00.jsonl` have `document_tokens`, a list of {"token", "html_token"}, in place of the text:

        {"example_id": 3902, "question_text": "...", "document_text": "<P> A string is ... </P>",
         "annotations": [{"short_answers": [{"start_token": 5, "end_token": 8}], ...}], ...}

    The gold answers are the spans of all annotators' short answers, with repetitions, as in the authors' release. The context is
    the whole page without its tags (the authors cut it at 10,000 tokens). There is no test set.
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

    def details(self, record: Record) -> Details:
        tokens = self._tokens(record)
        spans = [span for annotation in record.records("annotations") for span in annotation.records("short_answers")]
        slices = [slice(*_span_bounds(span, "start_token", "end_token", len(tokens))) for span in spans]
        answers = [_join_tokens(tokens[bounds]) for bounds in slices]
        return Details(record.identifier("example_id"), _join_tokens(tokens), answers, record.split)

    def _tokens(self, question: Record) -> list[str]:
        """The page's tokens, with an empty string for each tag, so that the spans' offsets hold."""
        if "document_text" in question.values:  # separated by single spaces; other white space is within tokens
            return ["" if self._TAG.fullmatch(token) else token for token in question.text("document_text").split(" ")]
        tokens = question.records("document_tokens")
        return ["" if token.values.get("html_token") else token.text("token") for token in tokens]


def _span_bounds(span: Record, start: str, end: str, length: int) -> tuple[int, int]:
    """Start and end of a span, read from two keys, in a text of `length` tokens or characters."""
    first, last = span.number(start), span.number(end)
    if not 0 <= first <= last <= length:
        raise FormatError(f"{span.where}: an answer spans {first} to {last}, but its text ends at {length}")
    return first, last


def _join_tokens(tokens: Sequence[str]) -> str:
    return " ".join(token for token in tokens if token)


class ELI5(Publisher):
    """Questions and answers from the forum "Explain Like I'm Five" (Fan et al., ACL 2019).

    The authors used Hugging Face's copy (a line of `train_eli5.jsonl`, saved with `to_json`), which is now hard to get; KILT has
    the same questions (a line of `eli5-train-kilt.jsonl`, github.com/facebookresearch/KILT):

        {"q_id": "5lchat", "title": "...", "selftext": "", "answers": {"text": ["..."], ...}, ...}
        {"id": "5lchat", "input": "...", "output": [{"answer": "...", "meta": {"score": 7}}, {"provenance": [...]}]}

    The question is the title with the text below it: titles alone are shorter than the paper's 32.5 words. Every answer counts as
    gold. As in the paper, only the training set is read, and the random split replaces the original.
    """

    wanted = "train_eli5.jsonl, or eli5-train-kilt.jsonl"
    files = ((r"train_eli5\.jsonl", r"eli5-train-kilt\.jsonl"),)

    def question(self, record: Record) -> str:
        if "input" in record.values:
            return record.text("input")
        texts = record.text("title"), record.optional("selftext")
        return " ".join(text.strip() for text in texts if text.strip())

    def details(self, record: Record) -> Details:
        if "input" in record.values:
            answers = [output.optional("answer") for output in record.records("output")]
            return Details(record.identifier("id"), "", answers, "both")
        return Details(record.identifier("q_id"), "", record.record("answers").texts("text"), "both")


class SearchQA(Publisher):
    """Questions of the quiz show Jeopardy! with snippets from Google (Dunn et al. 2017).

    `train.zip`, `val.zip` and `test.zip` of data_json (github.com/nyu-dl/dl4ir-searchQA), or the extracted folders, hold a JSON
    file for each question:

        {"id": "000000", "question": "...", "answer": "...", "search_results": [{"snippet": "...", ...}], ...}

    The context is the snippets, one per line. `val` is the validation part; questions in `test` are only in the random split.
    """

    wanted = "train.zip, val.zip and test.zip (of data_json)"

    @classmethod
    def choose_files(cls, available: Sequence[DatasetFile]) -> list[DatasetFile]:
        chosen = [file for file in available if _split_folder(file) and re.fullmatch(r"\w+\.json", file.base)]
        for first, second in pairwise(chosen):
            if first.name == second.name:
                raise FormatError(f"{first} and {second} hold the same question; keep the archive or the folder")
        return chosen

    def records(self, file: DatasetFile) -> Iterator[Record]:
        with self.reader.json(file) as stream:
            where = f"{file}:{stream.line}"
            yield Record.of(stream.value(), where, file)

    def details(self, record: Record) -> Details:
        folder, name = _split_folder(record.file), record.file.base.removesuffix(".json")
        snippets = filter(None, (page.optional("snippet") for page in record.records("search_results")))
        return Details(f"{folder}-{name}", "\n".join(snippets), [record.text("answer")], parse_split(folder))


def _split_folder(file: DatasetFile) -> str:
    """The last folder named train, val or test; empty if there is none."""
    folders = reversed(PurePosixPath(file.name).parts[:-1])
    return next((folder for folder in folders if folder in ("train", "val", "test")), "")


class SQuAD2(Publisher):
    """SQuAD 2.0: questions on paragraphs of Wikipedia; a third have no answer (Rajpurkar et al., ACL 2018).

    The gold answers are those of all annotators, with repetitions, as in the authors' release; the context is the paragraph.
    """

    wanted = "train-v2.0.json and dev-v2.0.json"
    files = ((r"(train|dev)-v2\.0\.json",),)
    array = "data"

    def records(self, file: DatasetFile) -> Iterator[Record]:
        for article in super().records(file):
            for paragraph in article.records("paragraphs"):
                context = paragraph.text("context")
                yield from (question.extend(context=context) for question in paragraph.records("qas"))

    def details(self, record: Record) -> Details:
        answers = [answer.optional("text") for answer in record.records("answers")]
        return Details(record.identifier("id"), record.text("context"), answers, record.split)


class NewsQA(Publisher):
    """Questions on CNN stories, answered by a span of the story (Trischler et al. 2017).

    `combined-newsqa-data-v1.json`, from the publisher's script (github.com/Maluuba/newsqa):

        {"data": [{"storyId": "./cnn/stories/2e1d4", "text": "...", "type": "train",
                   "questions": [{"q": "...", "consensus": {"s": 115, "e": 125}, ...}]}], "version": "1"}

    The gold answer is the consensus, which may be "no answer"; the context is the story.
    """

    wanted = "combined-newsqa-data-v1.json"
    files = ((r"combined-newsqa-data-v1\.json",),)
    array = "data"
    key = "q"

    def records(self, file: DatasetFile) -> Iterator[Record]:
        for story in super().records(file):
            name, text = text_field(story.values, "storyId", story.where), story.text("text")
            split = parse_split(story.text("type"))
            for number, question in enumerate(story.records("questions")):
                yield question.extend(id=f"{name}/{number}", text=text, split=split)

    def details(self, record: Record) -> Details:
        consensus, text = record.record("consensus"), record.text("text")
        answers = [text[slice(*_span_bounds(consensus, "s", "e", len(text)))]] if "s" in consensus.values else []
        return Details(record.text("id"), text, answers, record.text("split"))


class HotpotQA(Publisher):
    """Questions that need two paragraphs of Wikipedia (Yang et al., EMNLP 2018).

    Each file (github.com/hotpotqa/hotpot) is a list of

        {"_id": "5a8b...", "question": "...", "answer": "...", "context": [["Title", ["A sentence.", " Another."]], ...], ...}

    The context is its paragraphs, one per line, as "Title: sentences". The test set has no answers and is only counted. The
    paper's 112,662 questions seem to count dev in both settings (distractor and fullwiki); here dev counts once.
    """

    wanted = "hotpot_train_v1.1.json, hotpot_dev_distractor_v1.json, hotpot_test_fullwiki_v1.json"
    files = (
        (r"hotpot_train_v1\.1\.json",),
        (r"hotpot_dev_distractor_v1\.json", r"hotpot_dev_fullwiki_v1\.json"),
        (r"hotpot_test_fullwiki_v1\.json",),
    )
    array = ""

    def details(self, record: Record) -> Details:
        pairs = typed_field(record.values, "context", list, record.where)
        context = "\n".join(_format_paragraph(pair, record.where) for pair in pairs)
        return Details(record.identifier("_id"), context, [record.optional("answer")], record.split)


def _format_paragraph(pair: object, where: str) -> str:
    title, sentences = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
    if not isinstance(title, str) or not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
        raise FormatError(f"{where}: 'context' must hold pairs of a title and its sentences, found {pair!r:.60}")
    return f"{title}: {''.join(sentences).strip()}"


class TriviaQA(Publisher):
    """Questions from quiz sites with documents retrieved for them (Joshi et al., ACL 2017).

    `unfiltered-web-train.json` and so on (nlp.cs.washington.edu/triviaqa; else `web-train.json` of the archive "rc"), and the
    documents, `evidence/wikipedia/FILENAME` and `evidence/web/FILENAME` of the archive "rc":

        {"Data": [{"Question": "...", "QuestionId": "tc_1", "Answer": {"Value": "...", "Aliases": ["..."], ...},
          "EntityPages": [{"Filename": "A_page.txt", ...}],
          "SearchResults": [{"Description": "...", "Filename": "1/1_2.txt", ...}]}], ...}

    The gold answers are the value and its aliases. The context is the first available document, Wikipedia pages first, else the
    descriptions of the search results. The test set has no answers and is only counted.
    """

    wanted = (
        "unfiltered-web-train.json, unfiltered-web-dev.json, unfiltered-web-test-without-answers.json, and evidence/"
    )
    files = ((r"unfiltered-web-(train|dev|test-without-answers)\.json", r"web-(train|dev|test-without-answers)\.json"),)
    array = "Data"
    key = "Question"

    @classmethod
    def fingerprint_lines(cls, folder: Path) -> Iterable[str]:
        """Name and size of every document; hashing 650,000 files would take too long."""
        for place, folders, files in os.walk(folder):
            folders.sort()
            below = Path(place).relative_to(folder).parts
            if "evidence" in below:
                for file in sorted(files):
                    yield f"{'/'.join(below)}/{file} {(Path(place) / file).stat().st_size}"

    def details(self, record: Record) -> Details:
        answers: list[str] = []
        if "Answer" in record.values:
            answer = record.record("Answer")
            answers = list(dict.fromkeys([answer.text("Value"), *answer.texts("Aliases")]))
        return Details(record.identifier("QuestionId"), self._context(record), answers, record.split)

    def _context(self, question: Record) -> str:
        folder = question.file.path.parent  # `evidence` is here, or one or two folders above
        candidates = (parent / "evidence" for parent in (folder, *list(folder.parents)[:2]))
        evidence = next((path for path in candidates if path.is_dir()), None)
        descriptions = []
        for key, kind in (("EntityPages", "wikipedia"), ("SearchResults", "web")):
            for page in question.records(key) if key in question.values else []:
                if evidence and (text := _read_document(evidence / kind, page.optional("Filename"))):
                    return text
                descriptions.append(page.optional("Description"))
        return "\n".join(filter(None, descriptions))


def _read_document(folder: Path, name: str) -> str:
    """A document's text; empty if it is absent or its name points outside the folder."""
    path = Path(os.path.normpath(folder / name)) if name and "\0" not in name else folder
    if path == folder or not path.is_relative_to(os.path.normpath(folder)) or not path.is_file():
        return ""
    with open(path, "rb") as handle:
        return handle.read(LONGEST_LINE).decode("utf-8", "replace").strip()


#: Dataset name -> layout, in the paper's order.
PUBLISHERS: dict[str, type[Publisher]] = {
    "paq": PAQ, "gooaq": GooAQ, "msmarco": MSMARCO, "naturalquestions": NaturalQuestions, "eli5": ELI5,
    "searchqa": SearchQA, "squad2": SQuAD2, "newsqa": NewsQA, "hotpotqa": HotpotQA, "triviaqa": TriviaQA,
}  # fmt: skip
