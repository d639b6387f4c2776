"""`check` estimates the work of a corpus or an experiment, and reports mistakes after all lines."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from outside_plugins import answers, passages
from scored_experiments import benchmark, write

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.corpus.sources import BuildEstimate
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.check import check, findings_json, requirements
from ifqa.pipeline.run import Run
from ifqa.protocols import Requirement
from ifqa.retrieval.dense import Dense

FILE = '[reader]\nname = "predictions"\npath = "answers.jsonl"\n'
GOLD = '[retriever]\nname = "gold"\nk = 2\n'
PRICED = '[retriever]\nname = "outside_of_check:Priced"\nindex = "priced"\nk = 1\n'
ASKS = '[reader]\nname = "outside_of_check:Asks"\n'

PLUGINS = '''
from ifqa.errors import IfqaError
from ifqa.records import BuildCost, Estimate, Hit, Prediction, Request, TokenUsage
class Plain:
    """An index without a forecast."""
    def __init__(self, index) -> None: pass
    def search(self, questions, k): return [[Hit("p0", 1.0)] for _ in questions]
    @classmethod
    def build(cls, passages, folder, *, disk: float = 0.0, memory: float = 0.0, seconds: float = 0.0):
        (folder / "built").write_text("so")
class Priced(Plain):
    """An index whose forecast is its settings."""
    @classmethod
    def forecast(cls, passages, *, disk=0.0, memory=0.0, seconds=0.0):
        return BuildCost(seconds, disk, memory, f" for {passages} passages")
class Asks:
    """A reader with one request a question, which holds all its passages."""
    def __init__(self, llm) -> None: pass
    def answer(self, questions, passages): return [Prediction(question.id, "x") for question in questions]
    def search(self, questions, k): return []
    def requests(self, questions, passages):
        pairs = zip(questions, passages, strict=True)
        return [Request(text=" ".join([q.text, *(p.text for p in texts)]), max_tokens=10) for q, texts in pairs]
class Model:
    """A language model whose tokens are words; a word of a prompt costs a dollar, if the price is known."""
    name, window, chat, spent = "a model", 100_000, False, TokenUsage()
    def __init__(self, *, model: str, known: bool = True, key: bool = True) -> None:
        self.known, self.key = known, key
    def complete(self, requests): return []
    def count(self, text): return len(text.split())
    def estimate(self, requests):
        words = sum(len(request.text.split()) for request in requests)
        answers = sum(request.max_tokens for request in requests)
        return Estimate(len(requests), words, answers, float(words) if self.known else None)
    def check_ready(self):
        if not self.key:
            raise IfqaError("no key is set")
'''


@pytest.fixture(autouse=True)
def machine(importable, monkeypatch):
    """Two questions, a file that answers them, three passages, nothing built, and a machine with
    enough disk and memory.
    """
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    benchmark(
        *(
            {"question": f"If {n}, who?", "answers": ["x"], "context": [f"gold {n}"]}
            for n in range(2)
        )
    )
    answers({0: "x", 1: "y"})
    passages(range(3))
    write("outside_of_check.py", PLUGINS)
    corpus()
    machine = SimpleNamespace(free=10_000_000_000, memory=1.6e10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: machine)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=machine.memory))
    monkeypatch.setattr("ifqa.pipeline.check.cores", lambda: 2)
    return machine


@pytest.fixture
def forecast(monkeypatch):
    """A forecast of passages with round numbers: 1 GB, 30 s on two cores, 450 MB."""
    estimate = BuildEstimate(passages=2000, disk=1e9, reading=0.0, working=60.0, seen=0.5)
    monkeypatch.setattr("ifqa.pipeline.check.estimate_build", lambda sources: estimate)


def corpus(source='format = "passages"\npath = "few.jsonl"', **indexes):
    """The corpus "few"; each keyword is an index, with its plugin and settings."""
    tables = [
        f'[index.{name}]\nretriever = "outside_of_check:{build}\n'
        for name, build in indexes.items()
    ]
    write("indexes/few.toml", f"[[passages.sources]]\n{source}\n" + "".join(tables))


def experiment(*tables, name="mine", top=""):
    write(
        f"experiments/{name}.toml",
        f'benchmark = "ifqa"\nsplit = "full-dev"\n{top}\n' + "".join(tables),
    )


def llm(model, more=""):
    """The [llm] of an experiment; each test names its own model, because opened models are kept."""
    return f'[llm]\nname = "outside_of_check:Model"\nmodel = "{model}"\n{more}\n'


def findings(name="mine", **changes):
    """What `check` yields, and the error raised after that; empty for none."""
    yielded = []
    try:
        for finding in check(name, changes):
            yielded.append(finding)
    except IfqaError as error:
        return yielded, str(error)
    return yielded, ""


def check_lines(name="mine", **changes):
    """The lines on the work, and the error raised after all; empty for none."""
    yielded, complaint = findings(name, **changes)
    return [
        str(finding).strip() for finding in yielded if not isinstance(finding, Requirement)
    ], complaint


def need_lines(name="mine"):
    """The lines on what is needed."""
    return [
        str(finding).strip() for finding in findings(name)[0] if isinstance(finding, Requirement)
    ]


PRICED_INDEX = 'Priced"\ndisk = 5e9\nmemory = 9e9\nseconds = 60.0'


def test_passages_are_forecast_until_they_are_built():
    lines, complaint = check_lines("few")
    assert len(lines) == 2
    assert lines[0] == "corpus few"
    assert complaint == ""
    assert lines[1].startswith("to do  passages of few: about 3 passages, ")
    assert lines[1].endswith(", with 2 workers, estimated from 100.0% of the input")


def test_an_index_is_forecast_until_it_is_built(machine):
    stages.build_passages(load_corpus("few"))
    corpus(priced=PRICED_INDEX, plain='Plain"')
    assert check_lines("few")[0][1:] == [
        "done   passages of few: 3 passages",
        "to do  index priced of few: about 5.0 GB of disk, 9.0 GB of memory, 60 s, for 3 passages",
        "to do  index plain of few",
    ]
    corpus(priced=PRICED_INDEX)
    stages.build_index(load_corpus("few"), "priced")
    machine.free = 0
    machine.memory = 0
    assert check_lines("few") == (
        ["corpus few", "done   passages of few: 3 passages", "done   index priced of few"],
        "",
    )


def test_a_corpus_is_forecast_again_once_its_source_changed(machine):
    corpus(priced=PRICED_INDEX)
    stages.build_passages(load_corpus("few"))
    stages.build_index(load_corpus("few"), "priced")
    machine.free = 0
    machine.memory = 0
    passages(range(5))
    assert [line.partition(":")[0] for line in check_lines("few")[0][1:3]] == [
        "to do  passages of few",
        "to do  index priced of few",
    ]


@pytest.mark.usefixtures("forecast")
def test_the_whole_needs_the_sum_of_disk_with_the_largest_memory():
    corpus(
        one='Priced"\ndisk = 2e9\nmemory = 1e8\nseconds = 100.0',
        two='Priced"\ndisk = 3e9\nmemory = 7e9\nseconds = 3600.0',
    )
    assert check_lines("few")[0][1:] == [
        (
            "to do  passages of few: about 2,000 passages, 1.0 GB of disk, 450.1 MB of memory, "
            "30 s, with 2 workers, estimated from 50.0% of the input"
        ),
        (
            "to do  index one of few: about 2.0 GB of disk, 100.0 MB of "
            "memory, 100 s, for 2000 passages"
        ),
        (
            "to do  index two of few: about 3.0 GB of disk, 7.0 GB of "
            "memory, 60 min, for 2000 passages"
        ),
        "to do  all of few: about 6.0 GB of disk, 7.0 GB of memory, 62 min",
    ]


@pytest.mark.usefixtures("forecast")
def test_more_workers_need_more_memory_for_less_time():
    file = Path("indexes/few.toml")
    write("indexes/few.toml", "[passages]\nworkers = 5\n" + file.read_text())
    assert "900.1 MB of memory, 12 s, with 5 workers" in check_lines("few")[0][1]


@pytest.mark.usefixtures("forecast")
@pytest.mark.parametrize(
    ("free", "memory", "expected"),
    [
        (3_000_000_000, 2e9, ""),
        (
            2_900_000_000,
            2e9,
            "corpus few needs about 3.0 GB of disk, but 2.9 GB is free in {cwd}; make room",
        ),
        (
            3_000_000_000,
            1.9e9,
            (
                "corpus few needs about 2.0 GB of memory, but this machine has 1.9 GB; "
                "use fewer workers: [passages] workers = 1"
            ),
        ),
    ],
)
def test_too_little_disk_or_memory_is_refused_after_the_lines(machine, free, memory, expected):
    corpus(priced='Priced"\ndisk = 2e9\nmemory = 2e9')
    machine.free = free
    machine.memory = memory
    lines, complaint = check_lines("few")
    assert lines[-1].startswith("to do  all of few: about 3.0 GB of disk")
    assert complaint == expected.format(cwd=Path.cwd())


def test_changes_to_a_corpus_are_refused():
    complaint = "k belongs to an experiment; few is a corpus: edit indexes/few.toml"
    assert check_lines("few", **{"retriever.k1": 1.2, "k": 3}) == ([], complaint)


def test_an_experiment_hides_a_corpus_of_its_name():
    experiment(FILE, name="few")
    assert check_lines("few", limit=1)[0][0] == "experiment few+limit=1: ifqa full-dev"


STAGE_LINES = ["retrieve with gold", "read with predictions", "score 2 questions"]


def test_an_experiment_is_listed_by_stage():
    experiment(GOLD, FILE)
    assert check_lines() == (
        ["experiment mine: ifqa full-dev", *(f"to do  {line}" for line in STAGE_LINES)],
        "",
    )


def test_a_stage_whose_input_changed_is_to_do_again():
    experiment(GOLD, FILE)
    stages.run(Run(load_experiment("mine")))
    assert check_lines()[0][1:] == [f"done   {line}" for line in STAGE_LINES]
    answers({0: "x", 1: "x"})
    assert [line[:5] for line in check_lines()[0][1:]] == ["done ", "to do", "to do"]
    assert [line[:5] for line in check_lines(k=1)[0][1:]] == ["to do"] * 3


def test_an_experiment_with_a_change_is_named_by_it():
    experiment(GOLD, FILE)
    assert check_lines(seed=1)[0][0].startswith("experiment mine+seed=1: ")


def test_everything_missing_is_reported_at_once_without_repeats():
    corpus(priced='Priced"')
    Path("few.jsonl").unlink()
    run = '[retriever]\nname = "run"\npath = "nowhere.trec"\n'
    experiment(
        run,
        '[reader]\nname = "llm"\n',
        '[llm]\nname = "replay"\npath = "nowhere.jsonl"\n',
        top='corpus = "few"',
    )
    parts = check_lines()[1].split("; ")
    assert parts[0].startswith("passage source not found: few.jsonl")
    missing = [
        "run not found: nowhere.trec does not exist",
        "recording not found: nowhere.jsonl does not exist",
    ]
    assert [part for part in parts if "nowhere" in part] == missing


def test_what_is_needed_is_listed_with_how_to_get_it():
    Path("data/ifqa/full_split/dev.json").unlink()
    gold = (
        '[[passages.sources]]\nformat = "gold"\nbenchmark = "ifqa"\nsplits '
        '= ["full-train", "full-dev"]\n'
    )
    index = (
        '[index.dense]\nretriever = "dense"\nmodel = "facebook/dpr-ctx_encoder-single-nq-base"\n'
    )
    write("indexes/few.toml", gold + Path("indexes/few.toml").read_text() + index)
    experiment('[retriever]\nname = "dense"\nk = 5\n', FILE, top='corpus = "few"')
    lines, complaint = check_lines()
    assert (lines[-1], complaint) == ("fetch    ifqa data ifqa", "")
    mend = (
        "it is downloaded from the model hub at first use; without a network, copy its folder "
        "here and name the folder"
    )
    assert need_lines() == [
        "missing  ifqa full-dev: data/ifqa/full_split/dev.json is missing; run: ifqa data ifqa",
        "missing  ifqa full-train: data/ifqa/full_split/train.json is missing; run: ifqa data ifqa",
        "here     few.jsonl",
        f"missing  facebook/dpr-ctx_encoder-single-nq-base: {mend}",
        f"missing  facebook/dpr-question_encoder-single-nq-base: {mend}",
        "here     answers.jsonl",
    ]
    assert len(need_lines("few")) == 5


def test_what_ifqa_cannot_fetch_is_an_error(machine):
    machine.free = 10**12
    corpus('format = "passages"\npath = "nowhere.jsonl"')
    assert "nowhere.jsonl" in check_lines("few")[1]
    corpus('format = "passages"\npath = "data/psgs_w100/psgs_w100.tsv.gz"')
    lines, complaint = check_lines("few")
    assert (lines[-1], complaint) == ("fetch    ifqa data psgs_w100", "")


def test_each_missing_thing_has_one_command():
    write(
        "indexes/enwiki.toml",
        'about = "What `ifqa data enwiki` fetches."\n[[passages.sources]]\n'
        'format = "dump"\npath = "data/enwiki/*.xml.bz2"\n',
    )
    [need] = need_lines("enwiki")
    assert need.count("ifqa data enwiki") == 1


def test_a_published_source_is_estimated_before_it_is_fetched(machine):
    machine.free = 10**12
    corpus('format = "passages"\npath = "data/psgs_w100/psgs_w100.tsv.gz"', priced='Priced"')
    lines = check_lines("few")[0]
    assert lines[1].startswith("to do  passages of few: about 21,015,324 passages, 15.3 GB of disk")
    assert lines[1].endswith("with 2 workers, from the published size, by measured rates")
    assert lines[2].endswith("for 21015324 passages")


DPR = """
[index.dpr]
retriever = "dense"
model = "facebook/dpr-ctx_encoder-single-nq-base"
[index.unknown]
retriever = "dense"
model = "nobody/an-encoder"
"""


@pytest.mark.usefixtures("machine")
def test_an_encoder_that_cannot_be_reached_leaves_the_other_estimates(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("ifqa.retrieval.dense.cores", lambda: 10)
    corpus(priced='Priced"\nseconds = 60.0')
    write("indexes/few.toml", DPR + Path("indexes/few.toml").read_text())
    lines, complaint = check_lines("few")
    by_name = {line.split(" of few")[0].removeprefix("to do  "): line for line in lines}
    assert (
        "by a measured rate, 3.3 passages a second of a core; published: " in by_name["index dpr"]
    )
    assert by_name["index unknown"] == "to do  index unknown of few"
    assert "60 s" in by_name["index priced"]
    assert "nobody/an-encoder" in complaint
    assert "facebook/dpr-ctx_encoder-single-nq-base" in complaint


def test_dprs_row_has_hours_disk_and_memory_by_published_rates(monkeypatch):
    monkeypatch.setattr("ifqa.retrieval.dense.cores", lambda: 1)
    settings = Dense.BuildSettings(model="facebook/dpr-ctx_encoder-single-nq-base")
    cost = Dense.expected_cost(21_000_000, settings)
    assert cost
    assert cost.seconds / 3600 == pytest.approx(1768, abs=1)
    assert cost.disk == 21_000_000 * (768 * 2 + 16)
    assert "published: 70.3 h on a GPU of 16 GB" in cost.about  # the paper: 8.8 hours on 8 GPUs
    assert Dense.expected_cost(1, Dense.BuildSettings()) is None


def read_few_for_a_price():
    corpus(priced=PRICED_INDEX)
    experiment(PRICED, ASKS, llm("of fields"), top='corpus = "few"')


def test_a_check_writes_nothing():
    read_few_for_a_price()
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    findings_json("mine", *findings())
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before


def test_the_json_has_the_work_in_fields():
    read_few_for_a_price()
    report: Any = findings_json("mine", *findings())
    assert report["missing"] == 0
    assert report["problem"] == ""
    work = {part["what"]: part for part in report["work"]}
    assert work["passages of few"].items() >= {"made": False, "passages": 3}.items()
    assert (
        work["index priced of few"].items() >= {"disk": 5e9, "memory": 9e9, "seconds": 60.0}.items()
    )
    expected = {"calls": 2, "prompt_tokens": 1006, "completion_tokens": 20, "cost": 1006.0}
    assert work["llm outside_of_check:Model of fields of the reader"].items() >= expected.items()


def test_the_json_has_what_is_missing_in_fields():
    read_few_for_a_price()
    Path("few.jsonl").unlink()
    report: Any = findings_json("mine", *findings())
    assert [need["here"] for need in report["needs"]] == [True, False]
    assert report["missing"] == 1
    assert report["problem"].split(":")[0] == "passage source not found"


def test_a_reading_is_estimated():
    experiment(ASKS, llm("of a closed book"))
    estimated = "about 2 calls, 6 tokens of prompts and up to 20 of answers, up to $6.00"
    assert (
        f"to do  llm outside_of_check:Model of a closed book of the reader: {estimated}"
        in check_lines()[0]
    )


def test_a_reading_by_a_model_without_a_price_has_an_unknown_price():
    experiment(ASKS, llm("of no price", "known = false"))
    assert any("an unknown price" in line for line in check_lines()[0])


def test_a_reading_needs_a_key_until_it_is_done():
    experiment(ASKS, llm("of no price and key", "known = false\nkey = false"))
    lines, complaint = check_lines()
    assert lines[-1] == "to do  score 2 questions"
    assert complaint == "no key is set"
    assert any("an unknown price" in line for line in lines)
    stages.read(Run(load_experiment("mine")))
    lines, complaint = check_lines()  # nothing more is asked
    assert lines[1] == "done   read with outside_of_check:Asks"
    assert complaint == ""
    assert not [line for line in lines if "llm" in line]


def test_passages_not_yet_retrieved_count_as_of_the_usual_length():
    experiment(GOLD, ASKS, llm("of an open book"), name="open")
    assert "2 calls, 1,006 tokens of prompts" in check_lines("open")[0][3]
    stages.retrieve(Run(load_experiment("open")))
    assert "2 calls, 10 tokens of prompts" in check_lines("open")[0][3]


PARTS = (
    '[retriever]\nname = "fusion"\nparts = [{ name = "gold" }, { name = "genread", k = 3, '
    "temperature = 0.5 }]\n"
)


def test_a_retrievers_requests_are_estimated_too():
    experiment(PARTS, llm("that writes passages"))
    report: Any = findings_json("mine", *findings())
    work = report["work"][1]
    assert (work["calls"], work["completion_tokens"]) == (6, 1800)
    assert work["prompt_tokens"] > 0


def test_recorded_completions_are_not_asked():
    lines, complaint = check_lines("sample-closed-book")
    assert complaint == ""
    assert "done   llm replay of the reader: 83 completions are in the cache" in lines


def missing_for(experiment):
    return [need.name for need in requirements(Run(experiment)) if not need.present]


def parse(**tables):
    return parse_experiment("mine", {"benchmark": "sample", "split": "dev", **tables}, "mine.toml")


def closed_book(**llm):
    return parse(
        reader={"name": "llm", "prompt": "closed-book"}, llm={"name": "openai", "model": "m"} | llm
    )


def test_an_experiment_on_the_sample_misses_nothing():
    assert missing_for(load_experiment("sample")) == []
    assert missing_for(load_experiment("sample-closed-book")) == []


def test_what_an_experiment_misses_is_named():
    assert missing_for(load_experiment("table3-full-dpr")) == [
        "ifqa full-test",
        "data/enwiki/enwiki-*-pages-articles-multistream*.xml*.bz2",
        "facebook/dpr-ctx_encoder-single-nq-base",
        "facebook/dpr-question_encoder-single-nq-base",
        "an API key",
    ]


def test_a_missing_checkpoint_is_named_until_it_is_there():
    for experiment, checkpoint, folder in (
        (
            load_experiment("table4-bm25-fid"),
            "models/figure2-bm25-fid-large",
            "figure2-bm25-fid-large",
        ),
        (
            parse(reader={"name": "unifiedqa", "checkpoint": "models/unifiedqa-{group}"}),
            "models/unifiedqa-{group}",
            "unifiedqa-hotpotqa",
        ),
    ):
        assert f"the checkpoint {checkpoint}" in missing_for(experiment)
        Path("models", folder).mkdir(parents=True)
        assert f"the checkpoint {checkpoint}" not in missing_for(experiment)


def test_a_reranker_that_ships_with_the_package_needs_nothing():
    for model, wanted in (("ifqa", []), ("extractive", []), ("no/such", ["no/such"])):
        table = {"name": "rerank", "model": model, "parts": [{"name": "bm25"}]}
        assert missing_for(parse(corpus="sample", retriever=table)) == wanted


def test_the_encoder_of_the_span_readers_weights_is_needed_until_it_is_there():
    experiment = parse(reader={"name": "extractive", "weights": "mine"})
    assert missing_for(experiment) == ["mine"]
    Path("mine").mkdir()
    encoder = {"name": "sentence-transformers/all-mpnet-base-v2", "sha256": "78"}
    Path("mine/manifest.json").write_text(json.dumps({"family": "ifqa/full", "encoder": encoder}))
    [need] = [
        requirement for requirement in requirements(Run(experiment)) if not requirement.present
    ]
    assert need == Requirement(encoder["name"], "fetch it with: ifqa data all-mpnet-base-v2")
    Path("models/all-mpnet-base-v2").mkdir(parents=True)
    assert missing_for(experiment) == []


def test_an_api_key_is_needed_only_for_remote_servers(monkeypatch):
    assert missing_for(closed_book()) == ["an API key"]
    assert missing_for(closed_book(base_url="http://localhost:11434/v1")) == []
    assert missing_for(closed_book(base_url="https://api.example.com/v1")) == ["an API key"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    assert missing_for(closed_book()) == []
