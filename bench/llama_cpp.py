"""llama.cpp and transformers over one GGUF file: seconds of a processor, memory, and answers.

    python bench/llama_cpp.py FILE.gguf --count 20 --pairs 2

The questions are the bundled sample's, each with two passages, in the prompt `open-book`. A run is
a process of its own with one thread; the runs of a pair alternate in their order. `hf` dequantises
the file in its first run alone. Seconds are those of a processor, because other programs on the
machine stretch a clock's.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ifqa
from ifqa.llms.hf import HF
from ifqa.llms.llama_cpp import LlamaCpp
from ifqa.prompting.prompts import load_prompt
from ifqa.records import Request
from ifqa.scoring.measures.exact_match import f1

PROMPT = "open-book"
PASSAGES = 2
ALONE = 3  # prompts that are answered with a single token, to time prompts apart from answers


def write_requests(path: Path, count: int) -> None:
    """Write the prompts of the first questions, and their gold answers."""
    questions = list(ifqa.questions("sample", "dev"))[:count]
    prompt = load_prompt(PROMPT)
    rows = []
    rankings = ifqa.open("sample").retrieve([question.text for question in questions], PASSAGES)
    for question, ranking in zip(questions, rankings, strict=True):
        messages, _ = prompt.render(question.text, ranking.passages, (), chat=True)
        rows.append({"messages": messages, "golds": question.answers})
    path.write_text(json.dumps(rows))


def run_one(kind: str, file: str, root: Path) -> dict[str, object]:
    """Answer the prompts in this process; what that took."""
    rows = json.loads((root / "requests.json").read_text())
    prompt = load_prompt(PROMPT)
    chats = [tuple(map(tuple, row["messages"])) for row in rows]
    stop = tuple(prompt.stop)
    full = [Request(messages=chat, max_tokens=prompt.max_tokens, stop=stop) for chat in chats]
    short = [Request(messages=chat, max_tokens=1) for chat in chats[-ALONE:]]
    store = tempfile.mkdtemp(dir=root)
    moments = [time.process_time()]
    if kind == "hf":
        model: HF | LlamaCpp = HF(model=file, root=root, store=Path(store).name)
    else:
        model = LlamaCpp(model=file, root=root, store=Path(store).name, threads=1)
    first = model.complete(full[:1])
    moments.append(time.process_time())
    prompts = model.complete(short)
    moments.append(time.process_time())
    completions = [*first, *model.complete(full[1:])]
    moments.append(time.process_time())
    texts = [completion.text for completion in completions]
    answers = [prompt.parse(text).answer for text in texts]
    scores = [f1(answer, row["golds"]) for answer, row in zip(answers, rows, strict=True)]
    tokens = sum(completion.prompt_tokens for completion in prompts)
    return {
        "kind": kind,
        "first answer, s": round(moments[1] - moments[0], 1),
        "prompt tokens per s": round(tokens / (moments[2] - moments[1]), 1),
        "all others, s": round(moments[3] - moments[2], 1),
        "memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "F1": round(100 * sum(scores) / len(scores), 1),
        "texts": texts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--one", choices=["hf", "llama-cpp"], help="a run of the pairs")
    parser.add_argument("--root", type=Path)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_one(options.one, str(options.file), options.root)))
        return
    with tempfile.TemporaryDirectory() as name:
        write_requests(Path(name) / "requests.json", options.count)
        texts: dict[str, list[str]] = {}
        for pair in range(options.pairs):
            for kind in ["llama-cpp", "hf"][:: -1 if pair % 2 else 1]:
                command = [sys.executable, __file__, str(options.file.absolute()), "--one", kind]
                done = subprocess.run(
                    [*command, "--root", name],
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                row = json.loads(done.stdout.splitlines()[-1])
                texts[kind] = row.pop("texts")
                print(json.dumps(row), flush=True)
    same = sum(mine == its for mine, its in zip(*texts.values(), strict=True))
    print(f"the same text in {same} of {options.count}")


if __name__ == "__main__":
    main()
