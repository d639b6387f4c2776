"""Writes a T5 with random weights and a tokenizer trained on a corpus, to train Fusion-in-Decoder
offline.

    python bench/fid_scratch.py CORPUS FOLDER [--shape tiny|small|base] [--vocabulary 8000] \
        [--seed 0]
    ifqa train fid --set model=FOLDER --set passages=5 --to models/fid-scratch

It learns language only from the training questions, so its scores only show that the code works.
"""

import argparse
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import T5Config, T5Tokenizer

from ifqa.corpus.passage_store import PassageStore
from ifqa.reading.t5.fusion_in_decoder import FusionInDecoder

SHAPES = {
    "tiny": {"d_model": 256, "d_kv": 64, "d_ff": 1024, "num_layers": 4, "num_heads": 4},
    "small": {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8},
    "base": {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument(
        "--passages", type=int, default=20_000, help="passages to train the tokenizer on"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    passages = list(PassageStore(Path("indexes") / arguments.corpus / "passages"))
    step = -(-len(passages) // arguments.passages)
    unigram = Tokenizer(models.Unigram())
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    texts = (
        f"question: title: {passage.title} context: {passage.text}" for passage in passages[::step]
    )
    trainer = trainers.UnigramTrainer(
        vocab_size=arguments.vocabulary, special_tokens=special, unk_token="<unk>"
    )
    unigram.train_from_iterator(texts, trainer)
    vocabulary = json.loads(unigram.to_str())["model"]["vocab"]
    tokenizer = T5Tokenizer(vocab=[(piece, score) for piece, score in vocabulary], extra_ids=0)
    torch.manual_seed(arguments.seed)
    config = T5Config(
        vocab_size=len(tokenizer), decoder_start_token_id=0, **SHAPES[arguments.shape]
    )
    model = FusionInDecoder(config)
    model.save_pretrained(arguments.folder)
    tokenizer.save_pretrained(arguments.folder)
    print(f"{arguments.folder}: {model.num_parameters():,} weights, {len(tokenizer):,} tokens")


if __name__ == "__main__":
    main()
