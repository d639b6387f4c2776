import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_wheel_has_what_a_run_of_the_sample_needs_and_no_results(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    package = {name for name in tracked if name.startswith("ifqa/")}
    tracked.remove("experiments/RESULTS.jsonl")  # of this repository's own runs
    tables = ("experiments/", "indexes/", "prompts/")
    tracked = [name for name in tracked if not name.startswith("bench/")]  # nobody needs them to run
    settings = {f"ifqa/bundled/{n}" for n in tracked if n.endswith((".toml", ".jsonl")) and n.startswith(tables)}
    assert {name for name in names if ".dist-info/" not in name} == package | settings
