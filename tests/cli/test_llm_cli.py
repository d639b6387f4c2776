"""Language models from the command line, against a scripted server on loopback."""

import json

import pytest
from openai_server import Reply, error, serving

from ifqa.cli import app
from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.llms.replay import Replay
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.protocols import Retriever
from ifqa.reading.llm import Llm
from ifqa.records import Hit, Passage, Question, SearchResult
from ifqa.retrieval.fusion import Fusion
from ifqa.retrieval.parts import Part
from ifqa.storage.files import read_json

KEY = "sk-canary-4711-do-not-tell"
QUESTIONS = [Question(f"t/{n}", f"If the mill {n} had burned, when?") for n in range(3)]


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def ifqa(capsys, monkeypatch):
    """The command line in this process: exit code, stdout, stderr."""

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["ifqa", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        told = capsys.readouterr()
        return ended.value.code or 0, told.out, told.err

    return call


def write(tmp_path, name, tables, url="http://127.0.0.1:1/v1"):
    path = tmp_path / f"experiments/{name}.toml"
    path.parent.mkdir(exist_ok=True)
    llm = f'[llm]\nmodel = "gpt-4o-mini"\nretries = 0\nbase_url = "{url}"\n'
    path.write_text(f'benchmark = "sample"\nsplit = "dev"\nlimit = 4\n{tables}\n{llm}')


CLOSED = '[reader]\nname = "llm"\nprompt = "closed-book"'
FUSED = """[retriever]
name = "fusion"
k = 5
method = "rrf"
[[retriever.parts]]
name = "gold"
[[retriever.parts]]
name = "genread"
k = 1
query = "main"
[reader]
name = "llm"
passages = 3"""
RERANKED = FUSED.replace(
    '[retriever]\nname = "fusion"\nk = 5\nmethod = "rrf"', '[retriever]\nname = "rerank"\nk = 5'
).replace('[[retriever.parts]]\nname = "gold"\n', "")


def only_line(told):
    """The one line of an error."""
    code, out, err = told
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    (line,) = [line for line in err.splitlines() if line.startswith("ifqa: ")]
    return line


def test_a_model_that_nobody_asks_is_refused(ifqa):
    assert "but 'ranker' and 'extractive' ask none; add --reader llm" in only_line(
        ifqa("run", "sample", "--model", "gpt-4o")
    )
    kept = override(load_experiment("sample-llm"), {"reader": "extractive"})  # the [llm] stays, unused
    assert kept.name == "sample-llm+reader=extractive"


def test_check_takes_the_flags_of_run_and_writes_and_sends_nothing(ifqa, tmp_path):
    write(tmp_path, "closed", CLOSED)
    code, out, _ = ifqa("check", "closed", "--prompt", "closed-book-cot", "--model", "gpt-4.1", "--limit", 3)
    assert code == 0
    assert "experiment closed+limit=3+llm.model=gpt-4.1+reader.prompt=closed-book-cot: sample dev" in out
    assert "llm openai gpt-4.1 of the reader: about 3 calls" in out
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["closed.toml", "experiments"]
    assert "enwiki is a corpus" in only_line(ifqa("check", "enwiki", "--model", "m"))


def test_a_setting_is_not_given_twice(ifqa, tmp_path):
    write(tmp_path, "closed", CLOSED)
    told = ifqa("run", "closed", "--max-cost", 1, "--set", "llm.max_cost=100")
    assert "llm.max_cost is given twice: 1.0" in only_line(told)


@pytest.mark.parametrize("url", [f"http://me:{KEY}@127.0.0.1:1/v1", f"http://127.0.0.1:1/v1?api_key={KEY}"])
def test_an_address_with_a_key_in_it_is_refused_before_it_is_written(ifqa, tmp_path, url):
    write(tmp_path, "closed", CLOSED)
    line = only_line(ifqa("run", "closed", "--limit", 2, "--set", f"llm.base_url={url}"))
    assert "base_url" in line
    assert "canary" not in line
    assert not [path for path in tmp_path.rglob("*.toml") if "canary" in path.read_text()]


def test_too_many_flags_for_a_folders_name_are_refused(ifqa, tmp_path):
    write(tmp_path, "closed", CLOSED)
    many = [f"llm.{key}={'x' * 40}" for key in ("model", "effort")] + [f"reader.demos={'y' * 40}", "seed=5"]
    many += ["reader.temperature=0.123456", "reader.samples=7", "reader.order=best last", "llm.window=100000"]
    line = only_line(ifqa("run", "closed", *(part for one in many for part in ("--set", one))))
    assert "too long a name" in line
    assert "experiments/NAME.toml" in line


def test_an_unwritable_store_is_refused_before_a_request_is_sent(ifqa, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "completions")

    with serving() as server:
        write(tmp_path, "closed", CLOSED, server.url)
        monkeypatch.setattr("ifqa.llms.cache.TemporaryFile", refuse)
        line = only_line(ifqa("run", "closed"))
        assert "cannot write completions into completions (Permission denied)" in line
        assert server.requests == 0


@pytest.mark.parametrize("text", ["Answer: a\ud800b", "Answer: \udfff"])
def test_half_a_surrogate_pair_in_an_answer_leaves_files_that_can_be_read(ifqa, tmp_path, text):
    with serving(lambda prompt, time, body: Reply(text=text)) as server:
        write(tmp_path, "gen", FUSED, server.url)
        code, _, err = ifqa("run", "gen")
    assert code == 0, err
    lines = (tmp_path / "experiments/gen/read/predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert "\N{REPLACEMENT CHARACTER}" in json.loads(lines[0])["answer"]


def test_a_servers_words_reach_the_terminal_without_control_characters(ifqa, tmp_path):
    with serving(lambda prompt, time, body: error(400, "no \x1b[31mred\x1b[0m \x9b2J\x07 here")) as server:
        write(tmp_path, "closed", CLOSED, server.url)
        line = only_line(ifqa("run", "closed"))
    assert "no [31mred [0m 2J here" in line


@pytest.mark.parametrize("tables", [FUSED, RERANKED], ids=["fusion", "rerank"])
def test_what_a_part_asks_is_estimated_counted_and_asked_again(ifqa, tmp_path, tables):
    down = {"now": True}

    def plan(prompt, time, body):
        return error(500, "no") if down["now"] and body["max_tokens"] == 300 else Reply(text="Answer: x")

    with serving(plan) as server:
        write(tmp_path, "parts", tables, server.url)
        code, out, _ = ifqa("check", "parts")
        assert code == 0
        assert out.count("about 4 calls") == 2  # the retriever's part, and the reader
        code, out, err = ifqa("run", "parts")
        assert code == 1  # every request of the retriever failed
        assert "4 of them not wholly, which the next run asks again" in err
        made = read_json(tmp_path / "experiments/parts/retrieve/manifest.json")["record"]
        assert (made["retry"], made["spent"]["calls"]) == (4, 4)
        down["now"] = False
        ifqa("run", "parts")
        made = read_json(tmp_path / "experiments/parts/retrieve/manifest.json")["record"]
        assert (made["retry"], made["spent"]["calls"]) == (0, 4)
        _, out, _ = ifqa("check", "parts")
        assert out.count("  done ") == 3


def test_two_parts_that_make_different_texts_of_one_id_are_refused():
    class Makes(Retriever):
        def __init__(self, text):
            self.text = text

        def search(self, questions, k):
            return [SearchResult([Hit("made/0", 1.0)], [Passage("made/0", "", self.text)]) for _ in questions]

    same = Fusion(parts=[Part(Makes("one"), 1), Part(Makes("one"), 1)])
    assert len(same.search(QUESTIONS, 1)[0].generated) == 1
    with pytest.raises(IfqaError, match="different passages with the id 'made/0'"):
        Fusion(parts=[Part(Makes("one"), 1), Part(Makes("two"), 1)]).search(QUESTIONS, 1)


def test_questions_that_the_window_has_no_room_for_are_counted_and_said(ifqa, tmp_path):
    with serving(lambda prompt, time, body: Reply(text="Answer: x")) as server:
        write(tmp_path, "gen", FUSED, server.url)
        code, out, _ = ifqa("run", "gen", "--set", "llm.window=60")
        assert code == 0
        assert server.requests == 0
    assert out.count("4 questions not asked, as the model's window has no room for one") == 2
    assert "4 failed" in out


def test_one_cap_holds_for_retriever_and_reader_and_a_higher_one_goes_on(ifqa, tmp_path):
    with serving(lambda prompt, time, body: Reply(text="Answer: x", usage=(200, 50))) as server:
        write(tmp_path, "gen", FUSED.replace('[[retriever.parts]]\nname = "gold"\n', "").replace(
            'name = "fusion"\nk = 5\nmethod = "rrf"\n[[retriever.parts]]\n', ""), server.url)  # fmt: skip
        code, out, err = ifqa("run", "gen", "--max-tokens", 2500, "--limit", 20)
        assert code == 0
        assert sum(server.tokens) <= 2500
        assert "not wholly, which the next run asks again" in err
        assert "PARTIAL: 20 of 83 questions; 20 not asked" in out
        ifqa("run", "gen", "--max-tokens", 1_000_000, "--limit", 20)
        ended = read_json(tmp_path / "experiments/gen+limit=20/score/scores.json")
        assert (ended["not_asked"], ended["n_failed"]) == (0, 0)
        assert max(server.asked.values()) == 1


def test_more_demonstrations_than_a_file_has_are_refused():
    with pytest.raises(IfqaError, match="wanted 99 demonstrations, found 4 in 'sample'"):
        Llm(Replay(path="sample"), demos="sample", shots=99)


def test_a_variant_made_by_flags_runs_by_its_name_without_the_server(ifqa, tmp_path):
    with serving(lambda prompt, time, body: Reply(text="Answer: x")) as server:
        write(tmp_path, "closed", CLOSED, server.url)
        first = ifqa("run", "closed", "--prompt", "closed-book-cot", "--model", "org/a model", "--limit", 2)
        assert first[0] == 0
        assert server.requests == 2
    (name,) = [path.parent.name for path in tmp_path.glob("experiments/*/experiment.toml")]
    again = ifqa("run", name)
    assert again[:2] == first[:2]
    assert stages.run(Run(load_experiment(name))).parent.name == name


def test_a_check_tells_what_it_costs_and_then_all_that_is_missing(tmp_path, ifqa, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    write(tmp_path, "mine", f'corpus = "enwiki"\n[retriever]\nname = "bm25"\n{CLOSED}', url="https://api.openai.com/v1")
    code, out, err = ifqa("check", "mine", "sample-closed-book", "--limit", "4")
    assert code == 2
    assert "llm openai gpt-4o-mini of the reader: about 4 calls, " in out
    assert "experiment sample-closed-book+limit=4: sample hard" in out, "the other one has its turn"
    [line] = [line for line in err.splitlines() if line.startswith("ifqa: ")]
    assert line.startswith("ifqa: mine: passage source not found: data/enwiki")
    assert "OPENAI_API_KEY is not set" in line


def test_a_run_without_any_answer_exits_with_1_and_keeps_its_results(ifqa, tmp_path):
    lost = lambda prompt, time, asked: error(400, "the context length is exceeded")  # noqa: E731
    with serving(lost) as server:
        write(tmp_path, "mine", CLOSED, server.url)
        code, out, err = ifqa("read", "mine")
        assert (code, out.strip()) == (1, "experiments/mine/read")
        assert "each question had a failed request" in err
        assert ifqa("run", "mine")[0] == 1
        assert ifqa("run", "mine", "--json")[0] == 1
        assert ifqa("ask", "-e", "mine", "If so, who?")[0] == 1
        (tmp_path / "q.txt").write_text("If so, who?\nIf not?\n")
        code, _, err = ifqa("ask", "-e", "mine", "--questions", "q.txt", "--out", "a.jsonl")
        assert (code, "0 questions answered, 2 failed" in err) == (1, True)
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 2
    assert read_json(tmp_path / "experiments/mine/score/scores.json")["n_failed"] == 4
    some = lambda prompt, time, asked: Reply() if server.requests % 2 else error(413, "too long")  # noqa: E731
    with serving(some) as server:
        write(tmp_path, "mine", CLOSED, server.url)
        assert ifqa("run", "mine")[0] == 0


def test_a_missing_key_is_noticed_before_the_retrieval(ifqa, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    write(tmp_path, "mine", '[retriever]\nname = "gold"\nk = 1\n[reader]\nname = "llm"\npassages = 1', "")
    assert "OPENAI_API_KEY is not set" in only_line(ifqa("run", "mine"))
    assert not (tmp_path / "experiments/mine").exists()
    kept = tmp_path / "completions/ab/cd.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    code, _, err = ifqa("run", "mine")
    assert (code, "what is kept in completions needs no key" in " ".join(err.split())) == (2, True)


def test_one_cap_holds_for_all_experiments_of_one_command(tmp_path, ifqa):
    with serving(lambda prompt, time, asked: Reply(text="Answer: 1", usage=(500, 10))) as server:
        write(tmp_path, "a", CLOSED, server.url)
        write(tmp_path, "b", CLOSED.replace("closed-book", "closed-book-cot"), server.url)
        code, out, _ = ifqa("run", "a", "b", "--max-tokens", 3000)
    assert code == 0
    assert server.requests == 4
    assert "b: sample dev  PARTIAL: 4 of 83 questions; 4 not asked" in out


def test_one_cap_holds_for_all_experiments_of_a_command(ifqa, tmp_path):
    names = ("first", "second", "third")
    models = "".join(f'"{name}" = {{ input = 100, output = 400 }}\n' for name in names)
    (tmp_path / "prices.toml").write_text(f'dated = "2026-01-02"\nsource = "there"\n[models]\n{models}')
    with serving(lambda *asked: Reply(text="so", usage=(100, 40))) as server:  # $0.026 each
        for name in names:
            write(tmp_path, name, CLOSED, server.url)
            path = tmp_path / f"experiments/{name}.toml"
            path.write_text(path.read_text().replace("gpt-4o-mini", name))
        code, out, _ = ifqa("run", *names, "--max-cost", 0.2)
    spent = 100 * server.tokens[0] / 1e6 + 400 * server.tokens[1] / 1e6
    assert (code, 0 < spent <= 0.2) == (0, True)
    assert "not asked" in out
