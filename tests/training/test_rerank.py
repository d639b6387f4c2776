"""Training of the reranker, and the cross-encoder that reads what it leaves, on a handful of our
own passages.
"""

import numpy as np
import pytest
import torch
from peft import PeftModel
from refusals import refused
from short_trainings import Killed, ended_at, torn_copies
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from ifqa.models.places import minilm_folder
from ifqa.protocols import TrainingData
from ifqa.records import Passage, Question
from ifqa.retrieval import rerank
from ifqa.retrieval.rerank import CrossEncoder
from ifqa.training.rerank import Rerank
from ifqa.training.trainer import configure_trainer

pytestmark = pytest.mark.slow

TEXTS = [
    "Ada Lind, a rower from Brill in Kent, won nine cups before she turned to coaching in 1931.",
    "The Old Mill at Bow was built by Bo Carr in 1790 and burned down in the great storm.",
    "Cy Dunn painted harbours in Oslo until he left for Rome, where he taught for ten years.",
    "Di Ward wrote plays, travelled by rail, and never married; her letters are kept in Bath.",
]
QUESTIONS = [
    Question(
        "t/0", "If Ada Lind had not turned to coaching, what would she be?", ("rower",), (TEXTS[0],)
    ),
    Question(
        "t/1", "If the Old Mill had not burned down, where would it stand?", ("Bow",), (TEXTS[1],)
    ),
    Question("t/2", "If Cy Dunn had stayed, where would he be painting?", ("Oslo",), (TEXTS[2],)),
    Question(
        "t/3", "If Di Ward had married, what would she have written?", ("plays",), (TEXTS[3],)
    ),
]
RANKINGS = [[Passage(f"p{n}", "", text) for n, text in enumerate(TEXTS)]] * len(QUESTIONS)
DATASET = TrainingData(QUESTIONS, RANKINGS, "ifqa/full")
SETTINGS = {
    "epochs": 2,
    "batch": 2,
    "rank": 2,
    "negatives": 2,
    "checkpoint_every": 2,
    "learning_rate": 1e-2,
}


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # peft's
def test_the_adapter_merged_scores_as_peft_does(tmp_path, monkeypatch):
    with refused("pool: wanted 2 or more .negatives., found 1"):
        configure_trainer(Rerank, **SETTINGS, pool=1)
    configure_trainer(Rerank, **SETTINGS).train(DATASET, tmp_path)
    pairs = [(question.text, text) for question in QUESTIONS for text in TEXTS]
    monkeypatch.setattr(rerank, "half_precision", lambda device: torch.float32)
    ours = CrossEncoder(str(tmp_path), device="cpu")
    torch.manual_seed(1)  # the base's classifier is random, and must not matter
    base = AutoModelForSequenceClassification.from_pretrained(minilm_folder(), num_labels=1)
    network = PeftModel.from_pretrained(base, tmp_path).eval()
    texts = map(list, zip(*pairs, strict=True))
    tokens = AutoTokenizer.from_pretrained(minilm_folder())(
        *texts, padding=True, return_tensors="pt"
    )
    with torch.inference_mode():
        expected = network(**tokens).logits.squeeze(-1).float().numpy()
    assert expected.std() > 0.02
    np.testing.assert_allclose(ours.relevance(pairs), expected, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # peft's
def test_a_torn_checkpoint_gives_way_to_the_one_before(tmp_path):
    def train(folder):
        configure_trainer(Rerank, **SETTINGS | {"checkpoint_every": 1}).train(DATASET, folder)
        return (folder / "adapter_model.safetensors").read_bytes()

    whole = train(tmp_path / "whole")
    with ended_at(4), pytest.raises(Killed):
        train(tmp_path / "cut")
    for copy, file in torn_copies(tmp_path / "cut", tmp_path):
        assert train(copy) == whole, file
