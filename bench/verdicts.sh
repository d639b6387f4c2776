#!/bin/sh
# What each verdict and each artifact said before, and what it says now.
#
#     bench/verdicts.sh [PYTHON]        from the root of a checkout, after `make demo`; some minutes
#
# Each line prints what happened in version 0.2, then what happens today: the end of the command's output, and its exit code.
python=$(cd "$(dirname "${1:-.venv/bin/python}")" && pwd)/$(basename "${1:-.venv/bin/python}")
root=$(pwd)
ifqa="$python -m ifqa"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

verdict() {  # verdict TITLE BEFORE LINES COMMAND...
    printf '\n%s\n  before: %s\n' "$1" "$2"
    lines=$3
    shift 3
    "$@" >"$work/out" 2>&1
    code=$?
    tail -n "$lines" "$work/out" | sed 's/^/  now:    /'
    printf '  exit:   %s\n' "$code"
}

tests() {  # tests PYTEST-ARGUMENTS...: the number of tests that pass
    "$python" -m pytest -q -p no:cacheprovider --no-header -rN "$@" | grep -E '^[0-9]+ (passed|failed)|^FAILED' ||
        echo "all pass"
}

tests_of_every_file() {
    TORN_FILES=every tests tests/training -k torn_checkpoint
}

plugin() {  # plugin TEXT: an experiment with a reader of that text
    mkdir -p "$work/plugin/experiments"
    printf '%s' "$1" >"$work/plugin/faulty.py"
    printf 'benchmark = "sample"\nsplit = "dev"\nlimit = 3\n[reader]\nname = "faulty:Reader"\n' \
        >"$work/plugin/experiments/mine.toml"
}

in_tests_of_every_file() {
    TORN_FILES=every tests tests/training -k torn_checkpoint
}

plugin() {
    (cd "$work/plugin" && "$@")
}

echo "1. The gate"
verdict "the power at the loss that 'noticed' names, and one answer below (EM and F1; EM, F1 and recall)" \
    "power .25 to .66 at 83 questions, .59 to .69 at 700" 20 "$python" bench/gate_power.py --trials 200
verdict "a system without a measure of the baseline" "passes, exit 0" 1 \
    $ifqa compare baselines/sample-hard "sample-hard+reader=none" --fail-if-worse
verdict "a stale baseline, and a loss of 15 answers with another version" "compared with another reader, replaced unseen" 1 \
    tests tests/report/test_baselines.py

echo
echo "2. The last digit"
verdict "268/479 and 52/83" "56.0 62.6" 1 "$python" -c "
from ifqa.formatting import one_decimal
from ifqa.scoring.statistics import to_percent
print(*(one_decimal(to_percent(share)) for share in (268 / 479, 52 / 83)))"

echo
echo "3. Plugins"
answer='from ifqa.records import Prediction
class Reader:
    chunk = 3
    def answer(self, questions, passages):
        return [Prediction(question.id, "") for question in questions]
'
plugin "$(printf '%s' "$answer" | sed 's/chunk = 3/chunk = -5/')"
verdict "a reader with chunk = -5" "3 questions answered, EM 0, exit 0" 1 in_plugin $ifqa run mine
plugin 'import sys
class Reader:
    def answer(self, questions, passages):
        sys.exit(0)
'
verdict "sys.exit(0) in a reader" "no score, exit 0" 1 in_plugin $ifqa run mine
plugin 'import os
os.nothing()
'
verdict "a plugin whose import fails, in ifqa run" "60 lines of traceback" 2 in_plugin $ifqa run mine
verdict "and in ifqa list readers, which does not name it" "60 lines of traceback" 1 in_plugin $ifqa list readers

echo
echo "4. Checkpoints"
verdict "each file of each trainer's newest checkpoint cut in half, and missing" \
    "other weights, a traceback, or 'stopped' for ever" 1 tests_of_every_file
verdict "a file missing, empty, cut or overwritten; a full disk" "taken; a traceback" 1 tests tests/training/test_checkpoints.py

echo
echo "5. Milvus"
verdict "a change in place of as many passages; a build killed between alias and drop" \
    "unnoticed; a collection for ever" 1 tests tests/retrieval/test_milvus.py -k "in_place or killed_between"

echo
echo "6. Documents that say what the code does"
verdict "paths in the docs exist" "corpus/shards.py, which is shard_writer.py" 1 tests tests/docs -k path
verdict "the interval of the calibration error" "3.6 [3.8, 8.2]" 1 "$python" -c "
import json
print(json.load(open('experiments/sample-hard/score/scores.json'))['measures']['ECE'])"

echo
echo "7. A page twice in a dump; packed dumps"
verdict "the later revision is kept" "the build ends at its very end" 1 tests tests/corpus/test_repeated_pages.py
mkdir -p "$work/packed/indexes"
printf '7z\274\257\047\034' >"$work/packed/dump.xml.7z"
printf 'about = "Packed."\n[[passages.sources]]\nformat = "dump"\npath = "dump.xml.7z"\n' >"$work/packed/indexes/packed.toml"
verdict "a .7z dump" "not XML" 1 sh -c "cd '$work/packed' && $ifqa passages packed"

echo
echo "8. Small"
mkdir -p "$work/small/experiments"
printf 'benchmark = "sample"\nsplit = "dev"\n[llm]\nname = []\n[reader]\nname = "llm"\n' >"$work/small/experiments/mine.toml"
verdict "[llm] name = []" "a traceback" 1 sh -c "cd '$work/small' && $ifqa run mine"
verdict "imported packages that are not declared" "eight" 1 "$python" .ci/imports
verdict "files of the wheel that git does not track" "indexes/docs-*.toml with private paths" 1 tests tests/test_wheel.py
verdict "twelve wrong tokens at the server's sign-in; its cookie's end" "no limit; none" 1 \
    tests tests/serve/test_safety.py -k "token or cookie"
