"""The ctxs JSON of DPR and FiD: written, read, and refused if invalid."""

import gzip
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.formats import ctxs
from ifqa.formats.ctxs import is_ctxs, read_ctxs, refuse_pickle, write_ctxs
from ifqa.formats.runs import read_run, write_run
from ifqa.records import Hit, Passage, Question
from ifqa.storage import files

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SOLID = TEXT.filter(str.strip)
ID = TEXT.filter(lambda text: text.split() == [text])
SCORE = st.floats(allow_nan=False, allow_infinity=False)
PASSAGES = st.lists(
    st.builds(Passage, ID, TEXT, TEXT), max_size=6, unique_by=lambda passage: passage.id
)
QUESTIONS = st.lists(
    st.builds(Question, ID, SOLID, st.lists(SOLID, max_size=2).map(tuple)), max_size=4
)

SONG = {
    "id": "wiki:9",
    "title": "99 Luftballons",
    "text": '"99 Luftballons" is a song by Nena – 🎈',
    "score": "9.5",
}
BALLOON = {
    "id": "11",
    "title": "Balloon",
    "text": "A balloon.",
    "score": "82.3",
    "has_answer": False,
}
ENTRIES = [
    {"question": 'who sang "99 red balloons"?', "answers": ["Nena"], "ctxs": [SONG, BALLOON]},
    {"question": "what is nothing", "answers": [], "ctxs": []},
]
DPR = json.dumps(ENTRIES, indent=4) + "\n"


def entry(**changes):
    passage = {"id": "1", "title": "t", "text": "x", "score": 1.0}
    return {
        "question": "who?",
        "answers": ["me"],
        "ctxs": [passage | changes.pop("passage", {})],
        **changes,
    }


def read(path, *entries):
    path.write_text(json.dumps(entries))
    return list(read_ctxs(path))


@given(QUESTIONS, PASSAGES, st.data())
def test_written_ctxs_are_read_back(tmp_path_factory, questions, pool, data):
    path = tmp_path_factory.getbasetemp() / "written.json"
    samples = st.lists(st.sampled_from(pool), unique=True) if pool else st.just([])
    passage_lists = [data.draw(samples) for _ in questions]
    rankings = []
    for passages in passage_lists:
        scores = data.draw(st.lists(SCORE, min_size=len(passages), max_size=len(passages)))
        rankings.append(
            [
                Hit(*pair)
                for pair in zip(
                    [passage.id for passage in passages], sorted(scores)[::-1], strict=True
                )
            ]
        )
    assert write_ctxs(path, questions, rankings, passage_lists) == len(questions)
    entries = list(read_ctxs(path))
    assert [question for question, _ in entries] == questions
    assert [[pair[0] for pair in ranking] for _, ranking in entries] == passage_lists
    assert [
        [Hit(passage.id, score) for passage, score in ranking] for _, ranking in entries
    ] == rankings


@given(st.integers(0, len(DPR) - 3))
def test_a_truncated_file_is_refused(tmp_path_factory, end):
    path = tmp_path_factory.getbasetemp() / "cut.json"
    path.write_text("[" + DPR[1:][:end])
    with pytest.raises(IfqaError, match=r"cut.json: not JSON \(.*: line \d+ column \d+"):
        list(read_ctxs(path))


def test_scores_in_dprs_layout_are_sorted_as_numbers(tmp_path):
    (question, ranking), (empty, nothing) = read(tmp_path / "dpr.json", *ENTRIES)
    assert question == Question("", 'who sang "99 red balloons"?', ("Nena",))
    assert [(passage.id, score) for passage, score in ranking] == [("11", 82.3), ("wiki:9", 9.5)]
    assert ranking[1][0].text == SONG["text"]
    assert (empty.text, nothing) == ("what is nothing", [])
    # Not all have a score
    passages = [{"text": "a"}, {"text": "b", "score": "7"}, {"text": "c", "score": None}]
    [(_, ranking)] = read(tmp_path / "x.json", {"question": "?", "ctxs": passages})
    assert [(passage.text, score) for passage, score in ranking] == [
        ("a", 1),
        ("b", 1 / 2),
        ("c", 1 / 3),
    ]


def test_fids_layout_is_read_as_a_list_as_lines_and_compressed(tmp_path):
    fid = {"target": "a", "answers": ["a"]}
    entries = [
        fid | {"id": n, "question": "q?", "ctxs": [{"title": "t", "text": f"x {n}"}] * n}
        for n in range(3)
    ]
    listed = tmp_path / "fid.json"
    lines = tmp_path / "fid.jsonl"
    packed = tmp_path / "fid.jsonl.gz"
    listed.write_text(json.dumps(entries))
    lines.write_text("\ufeff" + "\n\n".join(map(json.dumps, entries)) + "\n", encoding="utf-8")
    packed.write_bytes(gzip.compress(lines.read_bytes()))
    assert list(read_ctxs(listed)) == list(read_ctxs(lines)) == list(read_ctxs(packed))
    assert [question.id for question, _ in read_ctxs(listed)] == ["0", "1", "2"]
    assert all(map(is_ctxs, (listed, lines, packed)))
    (tmp_path / "run.trec").write_text("ifqa/full-dev/1 Q0 p 1 2.0 tag\n")
    (tmp_path / "empty").touch()
    assert not any(map(is_ctxs, (tmp_path / "run.trec", tmp_path / "empty")))
    assert list(read_ctxs(tmp_path / "empty")) == []


def test_written_scores_are_numbers_and_has_answer_ignores_the_title(tmp_path):
    passages = [Passage("a", "Nena", "A song."), Passage("b", "Song", "By NENA.")]
    write_ctxs(
        tmp_path / "x.json",
        [Question("q", "?", ("Nena",))],
        [[Hit("a", 82.3), Hit("b", 9.5)]],
        [passages],
    )
    [written] = json.loads((tmp_path / "x.json").read_text())
    assert [(ctx["score"], ctx["has_answer"]) for ctx in written["ctxs"]] == [
        (82.3, False),
        (9.5, True),
    ]
    with pytest.raises(ValueError, match="shorter"):
        write_ctxs(tmp_path / "y.json", [Question("a", "?"), Question("b", "?")], [[], []], [[]])
    assert not (tmp_path / "y.json").exists()


@given(st.lists(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=4), min_size=1, max_size=3))
def test_rankings_with_any_ids_can_be_written_as_a_run(tmp_path_factory, groups):
    folder = tmp_path_factory.getbasetemp()
    entries = [
        entry(ctxs=[{"id": i, "title": t, "text": x, "score": 1} for i, t, x in group])
        for group in groups
    ]
    rankings = [ranking for _, ranking in read(folder / "ids.json", *entries)]
    hits = [[Hit(passage.id, score) for passage, score in ranking] for ranking in rankings]
    run = {f"q{n}": ranking for n, ranking in enumerate(hits) if ranking}
    write_run(folder / "ids.trec", run, "tag")
    assert read_run(folder / "ids.trec") == run
    texts = {
        passage.id: (passage.title, passage.text) for ranking in rankings for passage, _ in ranking
    }
    for group, ranking in zip(groups, rankings, strict=True):
        assert {texts[passage.id] for passage, _ in ranking} == {(t, x) for _, t, x in group}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (entry(answers=["me", 1]), "entry 2: 'answers' must be str, found int"),
        (entry(question=" "), "entry 2: 'question' is empty"),
        (entry(id=[1]), "entry 2: 'id' must be text or a whole number, found list"),
        (
            entry(passage={"score": "high"}),
            "entry 2, passage 1: 'score' must be a number, .*; found 'high'",
        ),
        (entry(passage={"score": float("nan")}), "entry 2, passage 1: 'score' must be a number"),
        (entry(passage={"score": 10**400}), "entry 2, passage 1: 'score' must be a number"),
        (entry(passage={"score": True}), "entry 2, passage 1: 'score' must be a number"),
        (entry(passage={"text": None}), "entry 2, passage 1: 'text' must be str, found NoneType"),
        (
            entry(passage={"text": "\ud800"}),
            "entry 2, passage 1: 'text' holds half a surrogate pair",
        ),
        (
            {"question": "?", "positive_ctxs": []},
            "key 'ctxs' is missing; found 'question', 'positive_ctxs'",
        ),
        ([], "entry 2: wanted a JSON object, found list"),
    ],
)
def test_an_invalid_entry_is_named(tmp_path, wrong, complaint):
    with pytest.raises(IfqaError, match=complaint):
        read(tmp_path / "x.json", entry(), wrong)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[{} {}]", r"x\.json: not JSON \(Expecting ',' delimiter"),
        ("[{}] 2", r"x\.json: not JSON \(Extra data"),
        ('{"a":' * 100_000, r"x\.json:1: not JSON"),
        ("who sang it?", r"x\.json:1: not JSON"),
        ('{"a": ' + "1" * 5000 + "}", r"x\.json:1: not JSON"),
    ],
)
def test_invalid_json_is_refused(tmp_path, text, complaint):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(IfqaError, match=complaint):
        list(ctxs.iter_entries(tmp_path / "x.json"))


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_JSON", 1000)
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(json.dumps(ENTRIES * 100).encode()))
    with pytest.raises(
        IfqaError, match=r"x\.json\.gz: more than 1,000 bytes of JSON; wanted JSON lines"
    ):
        list(read_ctxs(path))


@pytest.mark.parametrize(("protocol", "packed"), [(2, False), (3, True), (4, False), (5, True)])
def test_a_pickle_is_refused_by_content_or_name(tmp_path, protocol, packed):
    pickled = pickle.dumps([("1", [0.5, 0.25])], protocol=protocol)
    path = tmp_path / "wikipedia_passages_00"
    path.write_bytes(gzip.compress(pickled) if packed else pickled)
    with pytest.raises(
        IfqaError, match=r"wikipedia_passages_00 is a pickle.*runs the code.*ifqa index"
    ):
        list(read_ctxs(path))
    for name in ("a.pkl", "a.PKL.gz", "a.pickle"):
        (tmp_path / name).write_text("(lp0\n.")  # protocol 0 is plain text
        with pytest.raises(IfqaError, match="is a pickle"):
            refuse_pickle(tmp_path / name)
