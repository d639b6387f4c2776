"""Ten invented records of each dataset of CausalQA, in the layouts of their publishers.

Of every ten questions, number 0, 3, 6 and 9 are causal ("why ..."), and number 9 has no answer where a dataset has such questions.
"""

import bz2
import gzip
import json
import lzma
import zipfile

CAUSAL = (0, 3, 6, 9)


def question(n, what="lamp"):
    return f"why does {what} {n} glow" if n in CAUSAL else f"who built {what} {n}"


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def paq(folder):
    answers = [[{"passage_id": str(n + 1), "offset": 0, "text": f"heat {n}", "extractor": "L"}] for n in range(10)]
    records = [
        {
            "question": question(n),
            "subsets": ["L1"],
            "answer": f"heat {n}",
            "passage_score": -1.5,
            "answers": answers[n],
        }
        for n in range(10)
    ]
    (folder / "PAQ.metadata.jsonl.gz").write_bytes(gzip.compress(lines(records)))
    rows = [f'{n}\t"Lamp {n - 1} has a ""wick"" that is hot."\tLamps' for n in range(1, 41)]
    (folder / "psgs_w100.tsv").write_text("\n".join(["id\ttext\ttitle", *rows, ""]))


def gooaq(folder):
    records = [
        {"id": 100 + n, "question": question(n), "short_answer": f"short {n}", "answer": f"long {n}" if n != 6 else None,
         "answer_type": "feat_snip"}
        for n in range(10)
    ]  # fmt: skip
    (folder / "gooaq.jsonl.xz").write_bytes(lzma.compress(lines(records)))
    split = {"train": [[100, 0.5], [106, 0.25]], "dev": [103, 104], "test": [109]}
    (folder / "split.json").write_text(json.dumps(split))


def msmarco(folder):
    for part, first in (("train", 0), ("dev", 5)):
        records = [
            {
                "answers": [f"heat {n}"] if n != 9 else ["No Answer Present."],
                "passages": [{"is_selected": k, "passage_text": f"passage {k} of {n}", "url": "u"} for k in (0, 1)],
                "query": question(n), "query_id": 1000 + n, "query_type": "DESCRIPTION", "wellFormedAnswers": "[]",
            }
            for n in range(first, first + 5)
        ]  # fmt: skip
        columns = {key: {str(place): record[key] for place, record in enumerate(records)} for key in records[0]}
        (folder / f"{part}_v2.1.json.gz").write_bytes(gzip.compress(json.dumps(columns).encode()))
    columns = {"passages": {"0": []}, "query": {"0": "why is eval hidden"}, "query_id": {"0": 7}}
    (folder / "eval_v2.1_public.json").write_text(json.dumps(columns))


def naturalquestions(folder, original=False):
    tokens = ["<P>", "A", "lamp", "is", "hot", ".", "</P>", "<Table_colspan=2>"]
    for part, first in (("train", 0), ("dev", 5)):
        records = []
        for n in range(first, first + 5):
            spans = [{"start_token": 2, "end_token": 5}, {"start_token": 0, "end_token": 2}] if n != 9 else []
            record = {
                "example_id": -n, "question_text": question(n), "document_url": "u", "long_answer_candidates": [],
                "annotations": [{"long_answer": {"start_token": 0, "end_token": 7}, "yes_no_answer": "NONE", "short_answers": spans}],
            }  # fmt: skip
            if original or part == "dev":
                record["document_tokens"] = [{"token": token, "html_token": token[0] == "<"} for token in tokens]
            else:
                record["document_text"] = " ".join(tokens)
            records.append(record)
        simplified = {"train": "simplified-nq-train", "dev": "nq-dev-all"}[part]
        name = f"nq-{part}-00.jsonl.gz" if original else f"v1.0-simplified_{simplified}.jsonl.gz"
        (folder / name).write_bytes(gzip.compress(lines(records)))


def eli5(folder, kilt=False):
    if kilt:
        outputs = [[{"answer": f"heat {n}", "meta": {"score": 2}}, {"provenance": []}] for n in range(9)]
        records = [{"id": f"q{n}", "input": question(n), "output": outputs[n]} for n in range(9)]
        records.append({"id": "q9", "input": question(9), "output": [{"provenance": []}]})
        (folder / "eli5-train-kilt.jsonl").write_bytes(lines(records))
        return
    records = [
        {"q_id": f"q{n}", "title": question(n), "selftext": "in the dark" if n == 3 else "", "subreddit": "explainlikeimfive",
         "answers": {"a_id": ["a", "b"], "text": [f"heat {n}", "it\tburns"] if n != 9 else [], "score": [7, 2]}}
        for n in range(10)
    ]  # fmt: skip
    (folder / "train_eli5.jsonl.bz2").write_bytes(bz2.compress(lines(records)))


def searchqa(folder, packed=True):
    for part, numbers in (("train", range(5)), ("val", range(5, 8)), ("test", range(8, 10))):
        files = {
            f"{n:06}.json": {
                "id": f"{n:06}", "category": "LAMPS", "question": question(n), "answer": f"heat {n}", "value": "$400",
                "search_results": [{"url": "u", "title": "t", "snippet": s, "related_links": None} for s in (f"a {n}", None, f"b {n}")],
            }
            for n in numbers
        }  # fmt: skip
        if packed:
            with zipfile.ZipFile(folder / f"{part}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name, record in files.items():
                    archive.writestr(name, json.dumps(record))
        else:
            (folder / part).mkdir()
            for name, record in files.items():
                (folder / part / name).write_text(json.dumps(record))


def squad2(folder):
    for part, first in (("train", 0), ("dev", 5)):
        questions = [
            {"id": f"56be{n}", "question": question(n), "is_impossible": n == 9,
             "answers": [{"text": "hot", "answer_start": 10}] * (2 if n != 9 else 0)}
            for n in range(first, first + 5)
        ]  # fmt: skip
        article = {"title": "Lamps", "paragraphs": [{"context": "A lamp is hot.", "qas": questions}]}
        (folder / f"{part}-v2.0.json").write_text(json.dumps({"version": "v2.0", "data": [article]}, indent=1))


_STORY = "Hyrule -- A lamp is hot. It burns."


def newsqa(folder):
    stories = []
    for story, part in enumerate(("train", "dev")):
        questions = [
            {"q": question(n), "consensus": {"s": 17, "e": 24} if n != 9 else {"noAnswer": True}, "isAnswerAbsent": 0.0,
             "isQuestionBad": 0.0, "answers": [], "validatedAnswers": []}
            for n in range(5 * story, 5 * story + 5)
        ]  # fmt: skip
        stories.append(
            {"storyId": f"./cnn/stories/{story}.story", "text": _STORY, "type": part, "questions": questions}
        )
    (folder / "combined-newsqa-data-v1.json").write_text(json.dumps({"data": stories, "version": "1"}))


def hotpotqa(folder):
    for name, first in (("hotpot_train_v1.1", 0), ("hotpot_dev_distractor_v1", 5), ("hotpot_dev_fullwiki_v1", 5)):
        records = [
            {"_id": f"5a8b{n}", "question": question(n), "answer": f"heat {n}", "type": "bridge", "level": "hard",
             "supporting_facts": [["Lamp", 0]], "context": [["Lamp", ["It is hot.", " It burns."]], ["Wick", ["A wick."]]]}
            for n in range(first, first + 5)
        ]  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(records))
    hidden = [{"_id": "5t", "question": "why is the test hidden", "context": []}]
    (folder / "hotpot_test_fullwiki_v1.json").write_text(json.dumps(hidden))


def triviaqa(folder):
    for place, text in (("wikipedia/Lamp_3.txt", "Lamp 3 is hot.\n"), ("web/1/1_6.txt", "Lamp 6 burns.")):
        (folder / "evidence" / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / "evidence" / place).write_text(text)
    (folder.parent / "secret.txt").write_text("secret")
    for part, first in (("train", 0), ("dev", 5)):
        records = [
            {
                "Question": question(n), "QuestionId": f"tc_{n}", "QuestionSource": "http://quiz",
                "Answer": {"Value": f"heat {n}", "Aliases": ["warmth", f"heat {n}"], "NormalizedValue": "heat", "Type": "FreeForm"},
                "EntityPages": [{"DocSource": "TagMe", "Filename": f"Lamp_{n}.txt" if n else "../../../secret.txt", "Title": "Lamp"}],
                "SearchResults": [{"Description": f"About {n}", "Filename": f"1/1_{n}.txt", "Rank": 0, "Title": "t", "Url": "u"}],
            }
            for n in range(first, first + 5)
        ]  # fmt: skip
        (folder / f"unfiltered-web-{part}.json").write_text(json.dumps({"Data": records, "Split": part}, indent=4))
    hidden = {"Data": [{"Question": "why is the test hidden", "QuestionId": "tc_t"}], "Split": "test"}
    (folder / "unfiltered-web-test-without-answers.json").write_text(json.dumps(hidden))


WRITERS = {
    "paq": paq, "gooaq": gooaq, "msmarco": msmarco, "naturalquestions": naturalquestions, "eli5": eli5, "searchqa": searchqa,
    "squad2": squad2, "newsqa": newsqa, "hotpotqa": hotpotqa, "triviaqa": triviaqa,
}  # fmt: skip


def write_publishers(folder, *names):
    """Write the datasets, all if none is named, each into a folder of its name."""
    for name in names or WRITERS:
        (folder / name).mkdir(parents=True)
        WRITERS[name](folder / name)
    return folder


def write_release(folder, packed=False):
    """Write the authors' release of three datasets: four questions of each part of `squad2` and `paq`, and of `eli5` the ids."""
    files = {}
    for family in ("original", "random"):
        for part in ("train", "valid"):
            name = f"input/{family}-splits/{{}}_{part}_{family}_split.csv"
            head = "id,question,question_processed,context,context_processed,answer\n"
            rows = [
                f'{n},"Why, {part} {n}?","why, {part} {n}?","A ""lamp"",\nhot.","a ""lamp"", hot.","hot\thot {n}"\n'
                for n in range(3)
            ]
            files[name.format("squad2")] = head + "".join(rows) + "3,Why none?,why none?,c,c,\n"
            files[name.format("paq")] = head + "".join(f"{n // 2},why {part} {n},why,c,c,hot {n}\n" for n in range(4))
            files[name.format("eli5")] = "id\nq1\nq2\n"
    folder.mkdir(parents=True, exist_ok=True)
    if packed:
        with zipfile.ZipFile(folder / "Webis-CausalQA-22-v-1.0.zip", "w") as archive:
            for name, text in files.items():
                archive.writestr(f"Webis-CausalQA-22-v-1.0/{name}", text)
            archive.writestr("Webis-CausalQA-22-v-1.0/models/squad2/config.json", "{}")
    else:
        for name, text in files.items():
            path = folder / "Webis-CausalQA-22-v-1.0" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder
