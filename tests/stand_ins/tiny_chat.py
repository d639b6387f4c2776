"""A chat model of a few thousand random weights, with a tokenizer of its own."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

END = "<|im_end|>"
TURN = "<|im_start|>"
PAD = "<|endoftext|>"
TEXTS = [
    (
        "If the bridge had been built in 1890, who would have opened it? "
        "The mayor Anna Berg would have opened the bridge."
    ),
    (
        "The harbour of Wick was dug from 1803 to 1811 by the engineer Thomas Telford.\nAnswer: "
        "Thomas Telford\n"
    ),
    (
        "Question: If Wick had no harbour, where would the boats land?\nAnswer: "
        "They would land in the next town.\n"
    ),
]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] "
    "}}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
POSITIONS = 512


def tokenizer(template=TEMPLATE):
    """A byte-pair tokenizer trained on a few sentences.

    Every text has tokens, and a newline is a token.
    """
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=[PAD, TURN, END],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    words.train_from_iterator(TEXTS, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        eos_token=END,
        pad_token=PAD,
        chat_template=template,
        padding_side="left",
    )


def model(words, seed=0, **changes):
    """A random network whose answers depend on the whole prompt.

    Some have a newline, and some end.
    """
    torch.manual_seed(seed)
    end = words.convert_tokens_to_ids(END)
    settings = {
        "vocab_size": len(words),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": POSITIONS,
        "tie_word_embeddings": False,
        "eos_token_id": end,
        "bos_token_id": None,
        "pad_token_id": 0,
        "initializer_range": 0.2,
    }
    network = Qwen2ForCausalLM(Qwen2Config(**settings | changes)).eval()
    with torch.no_grad():
        network.lm_head.weight[words("\n")["input_ids"][0]] *= 2.0
        network.lm_head.weight[end] *= 1.5
    network.generation_config = GenerationConfig(eos_token_id=end, pad_token_id=0)
    return network


def save(folder, seed=0, template=TEMPLATE, **changes):
    """Save a model in a folder, in the hub's format."""
    words = tokenizer(template)
    model(words, seed, **changes).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
