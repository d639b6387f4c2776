"""DPR's two encoders (Karpukhin et al., EMNLP 2020), for questions and for passages with their titles."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError
from ifqa.models.batches import Features
from ifqa.models.hub import loading, model_folder, question_model, refuse_missing
from ifqa.retrieval.vectors.encoder import Encoder, Facts, Side, check_positions

TOKENS = 256  # conf/encoder/hf_bert.yaml: sequence_length


def open_dpr(
    name: str, folder: Path, query_model: str, titles: str, max_tokens: int, precision: str, device: str
) -> Encoder:
    import torch
    from transformers import AutoTokenizer, DPRContextEncoder, DPRQuestionEncoder

    questions = question_model(name, query_model)
    if questions == name:
        raise IfqaError(f"{name} is an encoder of DPR; name the question encoder that belongs to it as query_model")
    question_folder = model_folder(questions)
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    longest, with_titles = max_tokens or TOKENS, titles != "no"

    def side(kind: Any, place: Path) -> Side:
        plain = _plain if kind is DPRQuestionEncoder else str
        with loading(str(place), place, f"a {kind.__name__}"):
            tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
            model, report = kind.from_pretrained(place, dtype=dtype, output_loading_info=True)
            model = model.to(device).eval()
        refuse_missing(str(place), report)
        check_positions(longest, model.config)

        def tokenise(pairs: Sequence[tuple[str, str]]) -> Features:
            ids: list[list[int]] = [[]] * len(pairs)
            # Title and text as a pair, or the text alone where there is no title (dpr/models/hf_models.py:281-317)
            for titled in (True, False):
                rows = [row for row, (_, title) in enumerate(pairs) if bool(title) is titled]
                texts = [plain(pairs[row][0]) for row in rows]
                both = ([pairs[row][1] for row in rows], texts) if titled else (texts,)
                cut = tokenizer(*both, truncation=True, max_length=longest)["input_ids"] if rows else []
                for row, tokens in zip(rows, cut, strict=True):
                    ids[row] = tokens
            features = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
            features["token_type_ids"] = torch.zeros_like(features["input_ids"])  # all 0 in DPR, in pairs too
            return dict(features)

        return Side(tokenise, lambda features: model(**features).pooler_output)

    facts: Facts = {"model": name, "query_model": questions, "pooling": "cls", "normalised": False, "query_prefix": "",
             "passage_prefix": "", "titles": with_titles, "max_tokens": longest, "precision": precision}  # fmt: skip
    passages = side(DPRContextEncoder, folder)
    encoder = Encoder(facts, device, side(DPRQuestionEncoder, question_folder), passages, with_titles)
    facts["dimension"] = int(encoder.encode_queries(["dimension"]).shape[1])
    return encoder


def _plain(text: str) -> str:
    """DPR replaces curly apostrophes in questions by straight apostrophes (dpr/utils/data_utils.py:63-65)."""
    return text.replace("’", "'")
