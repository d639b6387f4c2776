"""The benchmark of Fusion-in-Decoder: every way gives the same answers, and FLOPs are as torch counts them."""

import json

import fid
import fid_ways
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode


@pytest.fixture
def ways(monkeypatch):
    for name in ("VOCABULARY", "NEVER"):  # a small vocabulary takes a tenth of the time
        monkeypatch.setattr(fid_ways, name, 1000)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # with this little work, threads mostly wait for each other
    yield fid_ways
    torch.set_num_threads(threads)


def test_every_way_of_reading_gives_the_same_answers(ways, capsys):
    ways.check()
    assert "5 different answers" in capsys.readouterr().out


@pytest.mark.parametrize("tokens", [0, 5])
def test_flops_are_as_torch_counts_them(ways, tokens):
    model = ways.network("tiny", torch.device("cpu"), 0).eval()
    model.set_attn_implementation("eager")
    ids = torch.randint(3, 1000, (6, 40))
    inputs = ways.Inputs(ids, torch.ones_like(ids, dtype=torch.bool), 3)
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        if tokens:
            ways.original(model, inputs, 2, tokens, ways.BatchLimits(1, 1), length=0, drop=True)
        else:
            model.encoder(input_ids=ids)
    assert counter.get_total_flops() == ways.flops(model, inputs, tokens)


def test_the_tables_have_a_row_for_each_way_and_each_training(ways, capsys, tmp_path):
    sizes = ["--shape", "tiny", "--passages", "2", "--questions", "2", "--answer", "2"]
    fid.main(["all", *sizes, "--rounds", "1", "--device", "cpu", "--json", str(tmp_path / "fid.json")])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    tables = json.loads((tmp_path / "fid.json").read_text())
    assert len(rows) == 1 + len(ways.WAYS) + 1 + 2
    assert {row["way"] for row in tables["read"] if row["rate"] > 0} == {way.name for way in ways.WAYS}
    assert [row["recompute"] for row in tables["train"]] == [False, True]
