"""What the command line writes, prints and serves, for two checkouts to be compared: a net under a change of the whole house.

    python tests/golden/black_box.py make CHECKOUT FOLDER    run every command of a checkout in FOLDER/work, keep what comes out in FOLDER/out
    python tests/golden/black_box.py again CHECKOUT FOLDER   run a checkout's commands where another one's results lie: what is computed anew?
    python tests/golden/black_box.py compare FOLDER FOLDER   list the files that differ; exit code 1 if there are any

Only `python -m ifqa` and HTTP are used, nothing of the package, so any two checkouts can be compared. Digits depend on the
processor and on torch, so both folders are made on one machine.
"""

import argparse
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

EXPERIMENTS = [
    "sample", "sample-hard", "sample-gold", "sample-hybrid", "sample-llm", "sample-closed-book", "sample-causal",
    "sample-causal-context", "sample-wiqa-majority", "sample-wiqa-polarity", "sample-wiqa-context", "sample-wiqa-open",
    "sample-wiqa-open-span",
]  # fmt: skip
#: Name of a variant -> the flags that make it from the experiment `sample-hard`.
VARIANTS = {
    "steps": ["--retriever", "steps"],
    "ranker-five": ["--retriever", "ranker", "--k", "5"],
    "clauses": ["--set", "retriever.query=presupposition"],
    "one-passage": ["--passages", "1"],
}
DOCUMENTS = {
    "notes/board.md": "# Board\n\n## Minutes\n\nThe mill at Varde burned down in 1907, because the dam had broken. "
    "Tomas Lund led the works until 1911.\n\n## Plan\n\nThe new mill opened in 1909 and cost 12,000 crowns.\n",
    "rates.csv": "year,crop,tons\n1907,rye,12\n1908,rye,15\n1909,barley,7\n",
    "letter.txt": "Dear Anna,\n\nhad the ferry not been late, we would have met the bishop on 4 June 1901.\n\nYours, Ole\n",
    "page.html": "<html><head><title>Ferry</title></head><body><h1>The ferry</h1><p>The ferry Hilda ran from 1899 to 1923 and "
    "carried 40 passengers.</p></body></html>",
}
QUESTIONS = [
    "If the dam had not broken, in which year would the mill at Varde not have burned down?",
    "If the new mill had opened three years later, in which year would it have opened?",
    "Who wrote Hamlet?",
]
PRINTED = {
    "compare": ["compare", "sample-hard", "sample-hybrid"],
    "stats-questions": ["stats", "questions", "--benchmark", "sample", "--split", "hard"],
    "stats-passages": ["stats", "passages", "sample"],
    "check": ["check", "sample"],
    "list": ["list"],
}
NOISE = [
    (re.compile(r"\d+(\.\d+)? (seconds|s|ms|minutes|min)\b"), "TIME"),
    (re.compile(r"\b20\d\d-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?"), "DATE"),
    (re.compile(r"\b(?=[0-9]*[a-f])[0-9a-f]{7,64}\b"), "HASH"),
    (re.compile(r"docs-my-documents-\w+"), "DOCS"),
]


def ifqa(checkout: Path, work: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": str(checkout),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "120",
    }
    return subprocess.run(
        [sys.executable, "-m", "ifqa", *args], cwd=work, env=environment, capture_output=True, text=True, check=False
    )


def without_noise(text: str, work: Path) -> str:
    text = text.replace(str(work), "WORK")
    for pattern, word in NOISE:
        text = pattern.sub(word, text)
    return text


def keep(out: Path, name: str, text: str) -> None:
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def record(out: Path, name: str, work: Path, result: subprocess.CompletedProcess[str]) -> None:
    keep(out, f"printed/{name}.txt", without_noise(f"exit {result.returncode}\n{result.stdout}", work))
    if result.returncode:
        keep(out, f"printed/{name}.stderr.txt", without_noise(result.stderr, work))


def keep_results(work: Path, out: Path) -> None:
    """The files of each stage; of a manifest its `inputs`, which decide reuse."""
    for stage in sorted(path for path in (work / "experiments").glob("*/*") if path.is_dir()):
        for path in sorted(stage.iterdir()):
            name = f"results/{stage.parent.name}/{stage.name}/{path.name}"
            if path.name == "manifest.json":
                keep(out, name, json.dumps(json.loads(path.read_text())["inputs"], indent=1, sort_keys=True))
            elif path.is_file():
                keep(out, name, path.read_text(encoding="utf-8"))
    for manifest in sorted((work / "indexes").glob("*/*/manifest.json")):
        inputs = json.dumps(json.loads(manifest.read_text())["inputs"], indent=1, sort_keys=True)
        name = f"corpora/{manifest.parent.relative_to(work / 'indexes')}.json"
        keep(out, re.sub(r"docs-my-documents-\w+", "DOCS", name), without_noise(inputs, work))


def make(checkout: Path, folder: Path) -> None:
    work, out = folder / "work", folder / "out"
    shutil.rmtree(folder, ignore_errors=True)
    work.mkdir(parents=True)
    for name, text in DOCUMENTS.items():
        keep(work / "my-documents", name, text)
    commands(checkout, work, out)
    keep_results(work, out)


def commands(checkout: Path, work: Path, out: Path) -> None:
    for name in EXPERIMENTS:
        record(out, f"run {name}", work, ifqa(checkout, work, "run", name, "--show", "2"))
    for name, flags in VARIANTS.items():
        record(out, f"variant {name}", work, ifqa(checkout, work, "run", "sample-hard", *flags))
    record(out, "report", work, ifqa(checkout, work, "report"))
    for path in (work / "experiments" / "RESULTS.md", work / "experiments" / "report.html"):
        if path.exists():
            keep(out, f"printed/{path.name}", without_noise(path.read_text(encoding="utf-8"), work))
    for name, args in PRINTED.items():
        record(out, name, work, ifqa(checkout, work, *args))
    for number, question in enumerate(QUESTIONS):
        record(out, f"ask {number}", work, ifqa(checkout, work, "ask", question, "--json"))
        docs = ifqa(checkout, work, "ask", "--docs", "my-documents", question, "--json")
        record(out, f"ask docs {number}", work, docs)
    serve(checkout, work, out)


def serve(checkout: Path, work: Path, out: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(checkout), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "ifqa", "serve", "sample", "--port", "8765"]
    with open(work / "serve.log", "wb") as log:
        server = subprocess.Popen(command, cwd=work, env=environment, stdout=log, stderr=log)
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen("http://127.0.0.1:8765/readyz", timeout=2).read()
                break
            except OSError:
                subprocess.run(["sleep", "0.5"], check=True)
        for name in ("openapi.json", "v1/about"):
            with urllib.request.urlopen(f"http://127.0.0.1:8765/{name}", timeout=30) as answer:
                keep(out, f"served/{name.replace('/', '-')}", without_noise(answer.read().decode(), work))
        for verb in ("ask", "retrieve"):
            for number, question in enumerate(QUESTIONS):
                body = json.dumps(
                    {"question": question} if verb == "ask" else {"questions": [question], "k": 3}
                ).encode()
                request = urllib.request.Request(
                    f"http://127.0.0.1:8765/v1/{verb}", body, {"content-type": "application/json"}
                )
                try:
                    with urllib.request.urlopen(request, timeout=60) as answer:
                        text = answer.read().decode()
                except urllib.error.HTTPError as error:
                    text = f"{error.code} {error.read().decode()}"
                keep(out, f"served/{verb} {number}.json", without_noise(text, work))
    finally:
        server.terminate()
        server.wait(30)


def again(checkout: Path, folder: Path) -> int:
    """Run the commands of a checkout over results that are there; lists each file of a result that was written anew."""
    work = folder / "work"

    def times() -> dict[str, int]:
        parts = [path for top in ("experiments", "indexes", "completions") for path in (work / top).rglob("*")]
        files = [
            path for path in parts if path.is_file() and not path.name.startswith(".") and path.name != "RESULTS.md"
        ]
        return {str(path.relative_to(work)): path.stat().st_mtime_ns for path in files}

    before = times()
    commands(checkout, work, folder / "again")
    after = times()
    written = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    for name in written:
        print(f"written anew: {name}")
    print(f"{len(written)} of {len(before)} files were written anew")
    return bool(written)


def compare(old: Path, new: Path) -> int:
    names = {
        str(path.relative_to(root / "out"))
        for root in (old, new)
        for path in (root / "out").rglob("*")
        if path.is_file()
    }
    different = []
    for name in sorted(names):
        pair = old / "out" / name, new / "out" / name
        if not all(path.exists() for path in pair) or not filecmp.cmp(*pair, shallow=False):
            different.append(name)
    for name in different:
        print(f"differs: {name}")
    print(f"{len(different)} of {len(names)} files differ")
    return bool(different)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["make", "again", "compare"])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    chosen = parser.parse_args()
    first, second = chosen.first.resolve(), chosen.second.resolve()
    if chosen.verb == "make":
        make(first, second)
        return 0
    return {"again": again, "compare": compare}[chosen.verb](first, second)


if __name__ == "__main__":
    sys.exit(main())
