"""RAG by enumeration: every passage with every answer, each read by transformers' T5 alone, without
a cache and padding.
"""

import copy
import itertools
import math

import torch
from tiny_t5 import plain
from transformers import DPRConfig, DPRQuestionEncoder, RagConfig, RagSequenceForGeneration
from transformers.modeling_outputs import BaseModelOutput

PAD, EOS = 0, 1


def log_prior(scores, temperature=1.0):
    """Logarithms of the softmax, as floats."""
    weights = [math.exp((score - max(scores)) / temperature) for score in scores]
    return [math.log(weight / sum(weights)) for weight in weights]


def likelihood(tables, priors):
    """p(y|x) from the log-probabilities of the answer's tokens, a list for each passage."""
    return sum(math.exp(prior + sum(table)) for prior, table in zip(priors, tables, strict=True))


def posterior(tables, priors):
    """p(z|x,y)."""
    joint = [math.exp(prior + sum(table)) for prior, table in zip(priors, tables, strict=True)]
    return [probability / sum(joint) for probability in joint]


def all_answers(vocabulary, most):
    """Every answer of up to `most` tokens that ends with `</s>`, and every one of `most` tokens
    that does not.
    """
    inner = [token for token in range(vocabulary) if token != EOS]
    ended = [
        (*some, EOS) for length in range(most) for some in itertools.product(inner, repeat=length)
    ]
    return [*ended, *itertools.product(inner, repeat=most)]


def tables_of_all(t5, question, answers):
    """Answer -> the log-probabilities of its tokens, a list for each passage.

    Answers of a length are read at once.
    """
    tables: dict[tuple[int, ...], list[list[float]]] = {answer: [] for answer in answers}
    for passage in question:
        states = t5.encoder(input_ids=torch.tensor([passage])).last_hidden_state
        for length in {len(answer) for answer in answers}:
            some = [answer for answer in answers if len(answer) == length]
            ids = torch.tensor(some)
            begun = torch.cat([torch.zeros(len(some), 1, dtype=torch.long), ids[:, :-1]], 1)
            encoded = BaseModelOutput(last_hidden_state=states.expand(len(some), -1, -1))
            logs_of_batch = t5(
                encoder_outputs=encoded, decoder_input_ids=begun, use_cache=False
            ).logits.log_softmax(-1)
            batch = logs_of_batch.gather(2, ids[..., None])[..., 0].tolist()
            for answer, table in zip(some, batch, strict=True):
                tables[answer].append(table)
    return tables


def transformers_rag(network, passages):
    """transformers' RAG with the same generator, which is given the passages of each question and
    their scores.
    """
    encoder = DPRConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    t5 = plain(network)
    config = RagConfig.from_question_encoder_generator_configs(encoder, t5.config, n_docs=passages)
    config.generator.bos_token_id = None  # T5 has none, and RAG asks for it
    rag = RagSequenceForGeneration(
        config=config, question_encoder=DPRQuestionEncoder(encoder), generator=copy.deepcopy(t5)
    ).eval()
    rag.rag.generator = t5  # the constructor ties the generator's head to its embeddings
    return rag
