"""Each stage finds its own artifact made from exactly this already, or makes it: from files alone, all or nothing."""

import json
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from scored_experiments import benchmark, write

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.config.variants import override
from ifqa.corpus.id_index import write_id_index
from ifqa.corpus.store import PassageStore
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.storage.artifacts import read_manifest
from ifqa.storage.files import sha256

GOLD = {"name": "gold", "k": 2}
FILE = {"name": "predictions", "path": "answers.jsonl"}
WORDS = {"name": "outside_of_stages:Words", "k": 3, "index": "words"}
LAST = {"name": "outside_of_stages:Last", "passages": 2}

IMPORTS = """
import json
from pathlib import Path
from ifqa.corpus.store import PassageStore
from ifqa.records import Hit, Passage, Prediction
"""
PLUGS = '''
class Words:
    """Ranks passages by the words that they share with the question; writes down what it is asked."""

    def __init__(self, index) -> None:
        self.words = json.loads((index / "words.json").read_text())

    def search(self, questions, k):
        with open("searched.jsonl", "a") as file:
            print(json.dumps([k, *(one.text for one in questions)]), file=file)
        return [self.ranked(set(one.text.split()))[:k] for one in questions]

    def ranked(self, asked):
        scores = {passage_id: len(asked.intersection(words)) for passage_id, words in self.words.items()}
        return [Hit(one, float(scores[one])) for one in sorted(scores, key=lambda one: -scores[one])]

    @classmethod
    def build(cls, passages, folder, *, most: int = 100):
        words = {one.id: one.text.split()[:most] for one in PassageStore(passages)}
        (folder / "words.json").write_text(json.dumps(words))


class Last:
    """Answers with the text of the last passage, or the question where there is none; the last is its first evidence."""

    def __init__(self) -> None:
        pass

    def answer(self, questions, passages):
        return [
            Prediction(one.id, given[-1].text if given else one.text, one.text, tuple(p.id for p in reversed(given)))
            for one, given in zip(questions, passages, strict=True)
        ]


class Careful:
    """Reads two questions at a time, writes down which, and stops at the last one while there is a file "stop"."""

    chunk = 2

    def __init__(self, said: str = "captain0") -> None:
        self.said = said

    def answer(self, questions, passages):
        if Path("stop").exists() and questions[-1].id.endswith("/4"):
            raise KeyboardInterrupt
        with open("asked.txt", "a") as file:
            print(*(one.id[-1] for one in questions), file=file)
        return [Prediction(one.id, self.said) for one in questions]


class Counts:
    """Counts its own progress, by handing on what it is handed to do so."""

    def __init__(self) -> None:
        pass

    def answer(self, questions, passages, advance):
        return [Prediction(one.id, f"{advance(1)}") for one in questions]
'''
BUILDER = '''
class Builder:
    """Writes down what it finds in its folder, and stops half-way while there is a file "stop"."""

    def __init__(self, index) -> None:
        pass

    @classmethod
    def build(cls, passages, folder):
        with open("found.txt", "a") as file:
            print(*(path.name for path in folder.glob("half*")), file=file)
        (folder / "half").write_text("of it")
        if Path("stop").exists():
            raise KeyboardInterrupt
'''


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Five questions, a file that answers three of them rightly, five passages, and plugs from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    benchmark(*map(question, range(5)))
    answers({n: f"captain{n}" if n < 3 else "nobody" for n in range(5)})
    passages(range(5))
    corpus()
    outside(PLUGS)
    yield
    sys.modules.pop("outside_of_stages", None)


def question(n):
    return {
        "question": f"If team{n} had won, who would lead?",
        "answers": [f"captain{n}"],
        "context": [f"team{n} is led by captain{n}"],
    }


def answers(said, path="answers.jsonl"):
    lines = [json.dumps({"question_id": f"ifqa/full-dev/{n}", "answer": one}) for n, one in said.items()]
    write(path, "\n".join(lines))


def passages(numbers, path="few.jsonl"):
    lines = [{"id": f"p{n}", "title": f"Team {n}", "contents": f"team{n} is led by captain{n}"} for n in numbers]
    write(path, "".join(json.dumps(line) + "\n" for line in lines))


def corpus(build='retriever = "outside_of_stages:Words"', sources=(("passages", "few.jsonl"),)):
    tables = [f'[[passages.sources]]\nformat = "{one}"\npath = "{path}"\n' for one, path in sources]
    write("indexes/few.toml", "".join(tables) + f"[index.words]\n{build}\n")


def outside(*classes):
    write("outside_of_stages.py", IMPORTS + "".join(classes))


def experiment(name="mine", **tables):
    return parse_experiment(name, {"benchmark": "ifqa", "split": "full-dev", **tables}, f"{name}.toml")


def searching(**tables):
    return experiment(corpus="few", retriever=WORDS, **tables)


def stamps(folder):
    """Which files there are, and a mark of each that no other file in its place has."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def rows(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def scores(folder="experiments/mine/score"):
    return json.loads((Path(folder) / "scores.json").read_text())


# The way from questions to scores


def test_every_stage_leaves_its_files_and_says_what_it_made():
    assert stages.run(experiment(retriever=GOLD, reader=FILE)) == Path("experiments/mine/score")
    files = {stage: {path.name for path in Path("experiments/mine", stage).iterdir()} for stage in ("retrieve", "read", "score")}  # fmt: skip
    assert files == {
        "retrieve": {"run.trec", "passages.jsonl", "manifest.json"},
        "read": {"predictions.jsonl", "manifest.json"},
        "score": {"scores.json", "per_question.jsonl", "manifest.json"},
    }
    made = {stage: read_manifest(Path("experiments/mine", stage)) for stage in files}
    assert {stage: one["wanted"]["stage"] for stage, one in made.items()} == {stage: stage for stage in files}
    assert (made["retrieve"]["made"]["questions"], made["retrieve"]["made"]["hits"]) == (5, 5)
    assert made["read"]["made"]["questions"] == 5


def test_a_second_run_touches_no_file():
    mine = searching(reader=FILE)
    stages.run(mine)
    before = stamps("experiments") | stamps("indexes")
    stages.run(mine)
    assert stamps("experiments") | stamps("indexes") == before


@pytest.mark.parametrize(
    ("change", "redone"),
    [
        ({"about": "Another.", "table": "Table 3", "expected": {"EM": {"value": 1.0}}}, set()),
        ({"seed": 1}, {"score"}),
        ({"reader": FILE | {"passages": 1}}, {"read", "score"}),
        ({"reader": FILE | {"path": "others.jsonl"}}, {"read", "score"}),
        ({"retriever": GOLD | {"k": 1}}, {"retrieve", "read", "score"}),
        ({"limit": 3}, {"retrieve", "read", "score"}),
    ],
    ids=lambda value: "+".join(sorted(value)),
)
def test_a_changed_setting_redoes_just_what_depends_on_it(change, redone):
    answers(dict.fromkeys(range(5), "captain0"), "others.jsonl")
    tables = {"retriever": GOLD, "reader": FILE}
    stages.run(experiment(**tables))
    before = stamps("experiments/mine")
    stages.run(experiment(**tables | change))
    after = stamps("experiments/mine")
    assert {Path(path).parent.name for path in after if after[path] != before.get(path)} == redone


def test_stages_one_by_one_make_what_a_run_makes():
    stages.run(experiment("whole", retriever=GOLD, reader=FILE))
    parts = experiment("parts", retriever=GOLD, reader=FILE)
    for name, stage in (("retrieve", stages.retrieve), ("read", stages.read), ("score", stages.score)):
        assert stage(parts) == stage(parts) == Path("experiments/parts", name)
    for file in ("retrieve/run.trec", "retrieve/passages.jsonl", "read/predictions.jsonl", "score/scores.json"):
        assert Path("experiments/parts", file).read_bytes() == Path("experiments/whole", file).read_bytes()


@pytest.mark.parametrize(
    ("stage", "tables", "complaint"),
    [
        (stages.retrieve, {"reader": FILE}, r"experiment mine has no \[retriever\]"),
        (stages.read, {"retriever": GOLD}, r"experiment mine has no \[reader\]"),
        (lambda mine: stages.ask(mine, "If so, who?"), {"retriever": GOLD}, r"experiment mine has no \[reader\]"),
    ],
    ids=["retrieve", "read", "ask"],
)
def test_a_stage_that_an_experiment_does_not_have_is_refused(stage, tables, complaint):
    with pytest.raises(IfqaError, match=f"^{complaint}$"):
        stage(experiment(**tables))
    assert not Path("experiments").exists()


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"split": "few-dev"}, "run: ifqa data ifqa"),
        ({"retriever": {"name": "run", "path": "nowhere.trec"}}, "run not found: nowhere"),
        ({"reader": FILE | {"path": "nowhere.jsonl"}}, "predictions not found: nowhere"),
        (
            {"reader": {"name": "outside_of_stages:Trained"}},
            "was trained on ifqa/few and may not be tested on ifqa/full",
        ),
    ],
    ids=["questions", "a run", "answers", "another setting"],
)
def test_what_is_wrong_is_found_before_a_corpus_is_built(tables, complaint):
    outside(PLUGS, "class Trained(Last):\n    @classmethod\n    def trained(cls): return 'ifqa/few'\n")
    with pytest.raises(IfqaError, match=complaint):
        stages.run(experiment(**{"corpus": "few", "retriever": WORDS, "reader": FILE, **tables}))
    assert not Path("indexes/few").exists()
    assert not Path("experiments").exists()


def test_a_run_says_what_it_made_and_another_one_that_there_was_nothing_to_do(capsys):
    made = ["indexes/few/passages", "indexes/few/words", *(f"experiments/mine/{one}" for one in ("retrieve", "read"))]
    facts = ["5 passages of 0 pages in 1 shards", "5 passages indexed", "15 passages for 5 questions", "5 questions answered"]  # fmt: skip
    stages.run(searching(reader=FILE))
    assert capsys.readouterr().err.splitlines() == [": ".join(pair) for pair in zip(made, facts, strict=True)]
    stages.run(searching(reader=FILE))
    nothing = "nothing to do, made from exactly this before"
    assert capsys.readouterr().err.splitlines() == [f"{one}: {nothing}" for one in (*made, "experiments/mine/score")]


def test_progress_counts_all_that_there_is_to_do_and_no_more(monkeypatch):
    done = {}

    @contextmanager
    def bar(label, total, unit=""):
        yield lambda count=1: done.setdefault((label, total), []).append(count)

    monkeypatch.setattr(stages, "bar", bar)
    stages.run(searching(name="whole", reader=LAST))
    stages.read(interrupted())
    stages.read(experiment("counts", reader={"name": "outside_of_stages:Counts"}))
    size = Path("few.jsonl").stat().st_size
    assert {key: sum(counts) for key, counts in done.items()} == {
        ("passages of few", size): size,
        ("searching whole", 5): 5,
        ("reading whole", 5): 5,
        ("reading mine", 5): 4 + 4 + 1,  # up to the interruption; what is there then, and the rest
        ("reading undisturbed", 5): 5,
        ("reading counts", 5): 5,
    }


# Passages and indexes


def test_passages_are_built_in_the_order_of_their_sources_and_found_by_id():
    passages((7, 5), "more.jsonl")
    corpus(sources=(("passages", "more.jsonl"), ("passages", "few.jsonl")))
    folder = stages.build_passages(load_corpus("few"))
    assert folder == Path("indexes/few/passages")
    assert [one.id for one in PassageStore(folder)] == ["p7", "p5", "p0", "p1", "p2", "p3", "p4"]
    assert PassageStore(folder).get(["p1"])[0].text == "team1 is led by captain1"
    made = read_manifest(folder)["made"]
    assert (made["passages"], made["shards"], made["words"]) == (7, 2, 35)


def test_passages_are_built_once_and_again_when_their_source_changed():
    few = load_corpus("few")
    folder = stages.build_passages(few)
    before = stamps(folder)
    stages.build_passages(few)
    assert stamps(folder) == before
    passages(range(3))
    stages.build_passages(few)
    assert [one.id for one in PassageStore(folder)] == ["p0", "p1", "p2"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"id": "1", "title": "Empty", "text": " "}\n', "corpus few: its sources hold no passage"),
        ('{"id": "1", "title": "A", "text": "a"}\n{"id": "1", "title": "B", "text": "b"}\n', "'1-0'"),
        (None, "few.jsonl is not in"),
    ],
    ids=["no passage", "an id twice", "no file"],
)
def test_a_source_that_makes_no_corpus_is_refused_and_what_was_built_stays(text, complaint):
    write("few.jsonl", '{"id": "1", "title": "A", "text": "some words"}\n')
    corpus(sources=[("articles", "few.jsonl")])
    before = stamps(stages.build_passages(load_corpus("few")))
    Path("few.jsonl").unlink()
    if text is not None:
        write("few.jsonl", text)
    with pytest.raises(IfqaError, match=complaint):
        stages.build_passages(load_corpus("few"))
    assert stamps("indexes/few/passages") == before


def test_a_source_of_an_unknown_format_is_refused():
    corpus(sources=[("pasages", "few.jsonl")])
    with pytest.raises(IfqaError, match="unknown format of a passage source 'pasages'; did you mean 'passages'"):
        stages.build_passages(load_corpus("few"))


def test_passages_for_which_there_is_no_room_are_not_begun(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(IfqaError, match="has room for 10 bytes, the passages will take about"):
        stages.build_passages(load_corpus("few"))
    assert not Path("indexes/few/passages").exists()


def test_passages_that_are_cut_while_they_are_indexed_are_not_called_done(monkeypatch):
    def cut_first(folder):
        shard = folder / "passages-00000.jsonl"
        shard.write_bytes(b"".join(shard.read_bytes().splitlines(keepends=True)[:4]))
        return write_id_index(folder)

    monkeypatch.setattr(stages, "write_id_index", cut_first)
    with pytest.raises(
        IfqaError, match=r"the shards in .* changed while they were indexed; run the same command again"
    ):
        stages.build_passages(load_corpus("few"))
    assert not Path("indexes/few/passages").exists()


def test_an_index_is_built_once_and_again_when_its_settings_or_its_passages_changed():
    stages.build_passages(load_corpus("few"))
    folder = stages.build_index(load_corpus("few"), "words")
    assert read_manifest(folder)["made"]["passages"] == 5
    before, of_passages = stamps(folder), stamps("indexes/few/passages")
    assert stages.build_index(load_corpus("few"), "words") == folder
    assert stamps(folder) == before
    corpus('retriever = "outside_of_stages:Words"\nmost = 1')
    stages.build_index(load_corpus("few"), "words")
    assert json.loads((folder / "words.json").read_text())["p2"] == ["team2"]
    assert stamps("indexes/few/passages") == of_passages
    passages(range(2))
    stages.build_passages(load_corpus("few"))
    stages.build_index(load_corpus("few"), "words")
    assert json.loads((folder / "words.json").read_text()) == {"p0": ["team0"], "p1": ["team1"]}


def test_an_index_that_the_corpus_does_not_have_is_refused():
    stages.build_passages(load_corpus("few"))
    with pytest.raises(IfqaError, match=r"corpus few has no \[index.dense\]; it has: words"):
        stages.build_index(load_corpus("few"), "dense")
    assert not Path("indexes/few/dense").exists()


@pytest.mark.parametrize(("resumes", "found"), [("    resumes = True\n", ["", "half"]), ("", ["", ""])])
def test_a_build_that_was_stopped_goes_on_only_where_the_plug_says_that_it_can(resumes, found):
    outside(BUILDER, resumes)
    corpus('retriever = "outside_of_stages:Builder"')
    stages.build_passages(load_corpus("few"))
    write("stop", "")
    with pytest.raises(KeyboardInterrupt):
        stages.build_index(load_corpus("few"), "words")
    assert not Path("indexes/few/words").exists()
    Path("stop").unlink()
    assert (stages.build_index(load_corpus("few"), "words") / "half").read_text() == "of it"
    assert Path("found.txt").read_text().splitlines() == found


# Retrieving


def test_a_retriever_is_given_some_questions_at_a_time_and_its_depth(monkeypatch):
    stages.run(searching())
    run, searched = Path("experiments/mine/retrieve/run.trec"), Path("searched.jsonl")
    at_once = run.read_text()
    assert [len(line) - 1 for line in rows(searched)] == [5]
    searched.unlink()
    monkeypatch.setattr(stages, "SEARCHED", 2)
    stages.run(experiment("parts", corpus="few", retriever=WORDS))
    assert [(line[0], len(line) - 1) for line in rows(searched)] == [(3, 2), (3, 2), (3, 1)]
    assert Path("experiments/parts/retrieve/run.trec").read_text() == at_once
    assert [line.split()[2] for line in at_once.splitlines() if line.startswith("ifqa/full-dev/3 ")] == ["p3", "p0", "p1"]  # fmt: skip


def test_a_retriever_may_be_asked_a_clause_and_the_reader_reads_the_whole_question():
    stages.run(experiment(corpus="few", retriever=WORDS | {"query": "presupposition"}, reader=LAST))
    assert rows("searched.jsonl")[0][1:3] == ["team0 had won", "team1 had won"]
    assert rows("experiments/mine/read/predictions.jsonl")[1]["completion"] == "If team1 had won, who would lead?"


@pytest.mark.parametrize(
    ("method", "complaint"),
    [
        ('search(self, questions, k): return [[Hit("p0", 1.0), Hit("p1", 2.0)] for _ in questions]', "scores rise"),
        ('search(self, questions, k): return [[Hit("p0", 1.0)] * 2 for _ in questions]', "a passage stands twice"),
        (
            'made_passages(self, questions): return [Passage("a b", "", "text")]',
            "has the id 'a b'; wanted one that is not empty",
        ),
    ],
    ids=["rising scores", "a passage twice", "an id with white space"],
)
def test_a_retriever_that_breaks_its_protocol_is_refused(method, complaint):
    outside(PLUGS, f"class Broken(Words):\n    'Not as it should be.'\n    def {method}\n")
    corpus('retriever = "outside_of_stages:Broken"')
    with pytest.raises(IfqaError, match=complaint):
        stages.run(experiment(corpus="few", retriever=WORDS | {"name": "outside_of_stages:Broken"}))
    assert not Path("experiments/mine/retrieve").exists()


def test_what_a_retriever_tells_of_itself_stands_in_the_manifest():
    known = sha256(Path("data/ifqa/full_split/dev.json"))
    outside(
        PLUGS, f"class Tells(Words):\n    trained_on = ({known!r},)\n    def told(self): return {{'took': [3, 4]}}\n"
    )
    corpus('retriever = "outside_of_stages:Tells"')
    stages.run(experiment(corpus="few", retriever=WORDS | {"name": "outside_of_stages:Tells"}))
    made = read_manifest(Path("experiments/mine/retrieve"))["made"]
    assert (made["took"], made["trained_on_them"]) == ([3, 4], True)


def test_a_ranking_of_a_passage_that_is_nowhere_is_refused_when_it_is_read():
    write("run.trec", "ifqa/full-dev/0 Q0 p0 1 2.0 t\nifqa/full-dev/0 Q0 p99 2 1.0 t\n")
    mine = experiment(corpus="few", retriever={"name": "run", "path": "run.trec"}, reader=LAST)
    stages.prepare(mine)
    stages.retrieve(mine)
    with pytest.raises(IfqaError, match="no passage 'p99' in indexes/few/passages"):
        stages.read(mine)
    assert not Path("experiments/mine/read").exists()


# Reading


def test_a_reader_gets_the_best_passages_of_each_ranking_and_no_more_than_it_asked_for():
    stages.run(searching(reader=LAST))
    predictions = rows("experiments/mine/read/predictions.jsonl")
    assert [one["passage_ids"] for one in predictions] == [["p1", "p0"], ["p0", "p1"], ["p0", "p2"], ["p0", "p3"], ["p0", "p4"]]  # fmt: skip
    assert predictions[0]["answer"] == "team1 is led by captain1"


def test_a_closed_book_gets_no_passage():
    stages.run(experiment(reader={"name": LAST["name"]}))
    assert not Path("experiments/mine/retrieve").exists()
    assert [one["passage_ids"] for one in rows("experiments/mine/read/predictions.jsonl")] == [[]] * 5


@pytest.mark.parametrize(
    ("answered", "complaint"),
    [
        ("[Prediction(one.id, 'x') for one in questions[1:]]", "one prediction a question, in their order"),
        ("[Prediction(one.id, 'x') for one in questions[::-1]]", "one prediction a question, in their order"),
        ("[Prediction(one.id, None) for one in questions]", "gave ifqa/full-dev/0 the answer None; wanted text"),
    ],
    ids=["one too few", "another order", "no text"],
)
def test_a_reader_that_breaks_its_protocol_is_refused(answered, complaint):
    outside(
        PLUGS, f"class Broken(Last):\n    'Not so.'\n    def answer(self, questions, passages): return {answered}\n"
    )
    with pytest.raises(IfqaError, match=f"reader 'outside_of_stages:Broken'.*{complaint}"):
        stages.run(experiment(reader={"name": "outside_of_stages:Broken"}))
    assert not Path("experiments/mine/read").exists()


def interrupted(**settings):
    """A reading that stopped at its last question, of five."""
    careful = {"name": "outside_of_stages:Careful"}
    stages.read(experiment("undisturbed", reader=careful))
    Path("asked.txt").unlink()
    write("stop", "")
    with pytest.raises(KeyboardInterrupt):
        stages.read(experiment(reader=careful))
    assert not Path("experiments/mine/read").exists()
    Path("stop").unlink()
    return experiment(reader=careful | settings)


def test_a_reading_that_was_interrupted_goes_on_after_the_questions_that_are_answered(capsys):
    stages.read(interrupted())
    assert Path("asked.txt").read_text().splitlines() == ["0 1", "2 3", "4"]
    assert "experiments/mine/read: going on after 4 of 5 questions" in capsys.readouterr().err
    mine, undisturbed = (Path("experiments", name, "read/predictions.jsonl") for name in ("mine", "undisturbed"))
    assert mine.read_bytes() == undisturbed.read_bytes()


def test_a_chunk_that_was_cut_is_read_again_from_its_start():
    mine = interrupted()
    left = Path("experiments/mine/.read.partial/predictions.jsonl")
    lines = left.read_bytes().splitlines(keepends=True)
    left.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    stages.read(mine)
    assert Path("asked.txt").read_text().splitlines() == ["0 1", "2 3", "2 3", "4"]
    undisturbed = Path("experiments/undisturbed/read/predictions.jsonl").read_bytes()
    assert Path("experiments/mine/read/predictions.jsonl").read_bytes() == undisturbed


def test_a_reading_with_another_setting_begins_anew():
    stages.read(interrupted(said="captain1"))
    assert Path("asked.txt").read_text().splitlines() == ["0 1", "2 3", "0 1", "2 3", "4"]
    assert {one["answer"] for one in rows("experiments/mine/read/predictions.jsonl")} == {"captain1"}


def test_questions_that_change_while_they_are_read_leave_nothing():
    spoil = "Path('data/ifqa/full_split/dev.json').write_text('[{\"idx\": 0, \"question\": \"?\", \"answers\": [\"x\"], \"context\": []}]')"  # fmt: skip
    outside(PLUGS, f"class Spoil(Last):\n    'Spoils.'\n    def answer(self, questions, passages):\n        {spoil}\n        return super().answer(questions, passages)\n")  # fmt: skip
    with pytest.raises(IfqaError, match="what experiments/mine/read is made from changed while it was being made"):
        stages.read(experiment(reader={"name": "outside_of_stages:Spoil"}))
    assert not Path("experiments/mine/read").exists()


def test_what_a_reader_tells_of_itself_stands_in_the_manifest():
    outside(PLUGS, "class Tells(Last):\n    label = 'a toy'\n    def told(self): return {'cut': 3}\n")
    stages.read(experiment(reader={"name": "outside_of_stages:Tells"}))
    made = read_manifest(Path("experiments/mine/read"))["made"]
    assert (made["label"], made["cut"], made["trained_on_them"]) == ("a toy", 3, False)


def test_questions_that_were_not_answered_wholly_are_asked_again_by_the_next_run(capsys):
    outside(
        "class Unlucky:\n    'Has no luck while there is a file called down.'\n"
        "    def __init__(self): self.failed = 0\n"
        "    def answer(self, questions, passages):\n"
        "        down = Path('down').exists()\n"
        "        self.failed += len(questions) * down\n"
        "        return [Prediction(one.id, '' if down else 'captain0', error='none came' * down) for one in questions]\n"
        "    def told(self): return {'retry': self.failed, 'not_asked': 0}\n"
    )
    mine = experiment(reader={"name": "outside_of_stages:Unlucky"})
    write("down", "")
    stages.run(mine)
    assert "5 questions answered; 5 of them not wholly, which the next run asks again" in capsys.readouterr().err
    assert (scores()["retry"], scores()["n_failed"]) == (5, 5)
    Path("down").unlink()
    stages.run(mine)
    assert (scores()["retry"], scores()["n_failed"], scores()["measures"]["EM"]["value"]) == (0, 0, 20)
    before = stamps("experiments/mine")
    stages.run(mine)
    assert stamps("experiments/mine") == before


# Scoring


def test_scores_are_over_all_questions_when_a_prediction_is_missing():
    answers({1: "captain1", 4: "nobody"})
    stages.run(experiment(reader=FILE))
    assert (scores()["questions"], scores()["n_failed"], scores()["measures"]["EM"]["value"]) == (5, 3, 20)
    per_question = rows("experiments/mine/score/per_question.jsonl")
    assert [(one["id"][-1], one["failed"], one["EM"]) for one in per_question] == [
        ("0", 1, 0), ("1", 0, 1), ("2", 1, 0), ("3", 1, 0), ("4", 0, 0)
    ]  # fmt: skip


def test_what_an_experiment_does_not_do_is_not_scored():
    stages.run(experiment("retrieves", retriever=GOLD))
    stages.run(experiment("reads", reader=FILE))
    retrieves, reads = (scores(f"experiments/{name}/score") for name in ("retrieves", "reads"))
    assert retrieves["measures"]["gold_any@1"]["value"] == 100
    assert "EM" not in retrieves["measures"]
    assert reads["measures"]["EM"]["value"] == 60
    assert not [name for name in reads["measures"] if "@" in name]


def test_a_gold_passage_counts_as_read_only_where_the_reader_was_given_it():
    lines = [f"ifqa/full-dev/{n} Q0 p{0 if n < 2 else n} 1 2.0 t\nifqa/full-dev/{n} Q0 p4 2 1.0 t\n" for n in range(4)]
    write("run.trec", "".join(lines))
    run = {"name": "run", "path": "run.trec", "k": 5}
    stages.run(experiment(corpus="few", retriever=run, reader=LAST | {"passages": 1}))
    per_question = rows("experiments/mine/score/per_question.jsonl")
    assert [one["gold_read"] for one in per_question] == [True, False, True, True, False]
    assert scores()["gold_read"]["questions"] == 3


def test_a_limited_experiment_says_of_how_many_questions():
    stages.run(experiment(reader=FILE, limit=2))
    assert (scores()["questions"], scores()["of"], scores()["measures"]["EM"]["value"]) == (2, 5, 100)


# Variants


def test_a_variants_reading_takes_over_what_was_retrieved_for_its_base(capsys):
    base = searching(reader=FILE)
    stages.run(base)
    before = stamps("experiments/mine")
    variant = override(base, {"reader.passages": 1})
    searched = Path("searched.jsonl").read_text()
    stages.read(variant)
    assert f"{variant.folder}/retrieve: taken over from mine" in capsys.readouterr().err
    assert (variant.folder / "retrieve/run.trec").read_bytes() == Path("experiments/mine/retrieve/run.trec").read_bytes()  # fmt: skip
    assert Path("searched.jsonl").read_text() == searched
    assert stamps("experiments/mine") == before


@pytest.mark.parametrize(
    ("tables", "taken"),
    [
        ({"retriever": GOLD, "reader": FILE}, {"retrieve", "read"}),
        ({"retriever": GOLD}, {"retrieve"}),
        ({"reader": FILE}, {"read"}),
    ],
    ids=["both", "no reader", "closed book"],
)
def test_a_variants_scores_take_over_the_stages_that_it_has(tables, taken):
    base = experiment(**tables)
    stages.run(base)
    variant = override(base, {"seed": 7})
    assert stages.score(variant) == variant.folder / "score"
    assert {path.parent.name for path in variant.folder.glob("*/manifest.json")} == {*taken, "score"}


@pytest.mark.parametrize("stage", [stages.retrieve, stages.read, stages.score])
def test_whichever_stage_of_a_variant_comes_first_it_runs_again_by_its_name(stage):
    base = experiment(retriever=GOLD, reader=FILE)
    stages.run(base)
    variant = override(base, {"seed": 7})
    stage(variant)
    assert load_experiment("mine+seed=7") == variant
    assert not Path("experiments/mine/experiment.toml").exists()


def test_a_stage_made_otherwise_is_not_taken_over():
    base = experiment(retriever=GOLD, reader=FILE)
    stages.run(base)
    with pytest.raises(IfqaError, match=r"make it with: ifqa retrieve --experiment mine\+k=1"):
        stages.read(override(base, {"k": 1}))


def test_a_variants_own_stage_is_not_replaced_by_its_bases():
    base = experiment(retriever=GOLD, reader=FILE)
    variant = override(base, {"reader.passages": 1})
    stages.run(variant)
    benchmark(*map(question, range(4)))
    answers(dict.fromkeys(range(4), "captain0"))
    stages.run(base)
    before = stamps(variant.folder)
    with pytest.raises(IfqaError, match=r"was made from something else \(changed: questions\)"):
        stages.read(variant)
    assert stamps(variant.folder) == before


# Asking


def test_a_question_is_answered_with_the_evidence_in_the_predictions_order():
    asked = stages.ask(searching(reader=LAST), "  If team3 had won, who would lead?\n")
    assert asked.prediction.completion == "If team3 had won, who would lead?"
    assert asked.prediction.answer == "team0 is led by captain0"
    assert [(one.id, one.title) for one in asked.evidence] == [("p0", "Team 0"), ("p3", "Team 3")]


def test_asking_builds_the_corpus_and_leaves_no_experiment():
    stages.ask(searching(reader=LAST), "If team3 had won, who would lead?")
    assert len(PassageStore(Path("indexes/few/passages"))) == 5
    assert Path("indexes/few/words/manifest.json").exists()
    assert not Path("experiments").exists()
    assert rows("searched.jsonl") == [[2, "If team3 had won, who would lead?"]]


def test_evidence_may_be_stored_or_made_by_the_retriever():
    outside(
        PLUGS,
        "class Both(Words):\n    'Finds some and makes some.'\n"
        "    def search(self, questions, k): return [[Hit('p4', 3.0), Hit('new', 2.0), Hit('p1', 1.0)] for _ in questions]\n"
        "    def made_passages(self, questions): return [Passage('new', 'New', one.text) for one in questions]\n",
    )
    corpus('retriever = "outside_of_stages:Both"')
    mine = experiment(corpus="few", retriever=WORDS | {"name": "outside_of_stages:Both"}, reader=LAST | {"passages": 3})
    asked = stages.ask(mine, "Who?")
    assert [(one.id, one.text) for one in asked.evidence] == [
        ("p1", "team1 is led by captain1"), ("new", "Who?"), ("p4", "team4 is led by captain4")
    ]  # fmt: skip


def test_a_closed_book_answers_without_evidence():
    asked = stages.ask(experiment(reader={"name": LAST["name"]}), "If so, who?")
    assert (asked.prediction.answer, asked.evidence) == ("If so, who?", [])


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_question_is_refused_before_anything_is_built(text):
    with pytest.raises(IfqaError, match="the question is empty; wanted something like: ifqa ask"):
        stages.ask(searching(reader=LAST), text)
    assert not Path("indexes/few").exists()
