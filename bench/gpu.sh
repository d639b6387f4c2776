#!/usr/bin/env bash
# Measures what the docs say of a GPU: bench/gpu.sh FOLDER [--rehearse]. On an H200 it takes some five minutes.
#
# Each step writes FOLDER/NAME.txt, line by line, and FOLDER/NAME.done when it is complete. A step that is done is not
# repeated, so the same command goes on where a lent card was taken away. A step may take LIMIT seconds (default 240).
# --rehearse runs every step on the CPU with the smallest sizes, to see that it runs.
set -u
cd "$(dirname "$0")/.."
folder=${1:?name a folder for the results}
mkdir -p "$folder"
python=${PYTHON:-python}
export PYTHONPATH="$PWD:$PWD/bench"

step() {
  name=$1
  shift
  [ -e "$folder/$name.done" ] && return
  echo "$name: $*"
  timeout "${LIMIT:-240}" "$@" 2>&1 | tee "$folder/$name.txt"
  if [ "${PIPESTATUS[0]}" = 0 ]; then touch "$folder/$name.done"; else echo "$name: not complete" >&2; fi
}

if [ "${2:-}" = --rehearse ]; then
  step fid-read "$python" bench/fid.py read --device cpu --shape small --passages 2 --questions 2 --rounds 1 --seconds 0.1
  step fid-train "$python" bench/fid.py train --device cpu --shape small --passages 2 --rounds 1 --seconds 0.1
  step encoding "$python" bench/gpu_encoding.py --device cpu --passages 4 --vectors 1000
else
  for shape in base large; do
    step "fid-$shape-20" "$python" bench/fid.py read --shape $shape --passages 20 --questions 32 --seconds 1.5 --json "$folder/fid-$shape-20.json"
    step "fid-$shape-100" "$python" bench/fid.py read --shape $shape --passages 100 --questions 8 --seconds 1.5 --json "$folder/fid-$shape-100.json"
  done
  step encoding "$python" bench/gpu_encoding.py
  step fid-train "$python" bench/fid.py train --shape base large --passages 100 --seconds 2 --json "$folder/fid-train.json"
fi
