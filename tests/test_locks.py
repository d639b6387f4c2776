"""The locks have the versions of constraints.txt, and hashes for all that a checkout requires."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "locks").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
REQUIREMENT = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;+]+)", re.MULTILINE)


def normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def versions(path):
    """Name and version of every requirement of a file, whatever the build."""
    found = REQUIREMENT.finditer(path.read_text())
    return {(normalized(match["name"]), match["version"]) for match in found}


def locked_names(*files):
    return {name for file in files for name, _ in versions(ROOT / "locks" / file)}


def required_names(requirements):
    return {normalized(re.split(r"[^\w.-]", line)[0]) for line in requirements}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_each_requirement_has_a_hash(lock):
    requirements = re.split(r"^(?=\w)", lock.read_text(), flags=re.MULTILINE)[1:]
    assert requirements
    assert [one for one in requirements if "--hash=sha256:" not in one] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_versions_are_those_of_the_constraints(lock):
    assert versions(lock) - versions(ROOT / "constraints.txt") == set()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_names_no_index(lock):
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if "://" in line or "index" in line] == []


def test_what_the_package_requires_is_locked():
    required = required_names(PROJECT["project"]["dependencies"])
    assert required - locked_names("ifqa.txt", "torch.txt") == set()


def test_what_the_tests_require_is_locked():
    required = required_names(PROJECT["dependency-groups"]["dev"])
    assert required - locked_names("ifqa.txt", "dev.txt") == set()


def test_what_a_build_requires_is_locked():
    required = required_names(PROJECT["build-system"]["requires"])
    assert required - locked_names("build.txt") == set()


def test_torch_without_cuda_is_of_the_version_of_the_other_build():
    torch = {pin for pin in versions(ROOT / "locks/torch.txt") if pin[0] == "torch"}
    assert versions(ROOT / "locks/torch-cpu.txt") == torch
