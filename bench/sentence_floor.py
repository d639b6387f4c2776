"""Writes the sentence that BM25 ranks first for each question, as predictions: the floor for the
reader `sentence`.

    pip install rank-bm25
    python bench/sentence_floor.py sample-causal-context --to floor.jsonl
    ifqa run sample-causal-context --reader predictions --set reader.path=floor.jsonl

The sentences are those of the passages that the experiment reads.
"""

import argparse
import re
from pathlib import Path

import ifqa
from ifqa.config.experiment import load_experiment
from ifqa.corpus.sentences import split_sentences
from ifqa.storage.files import write_jsonl


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment")
    parser.add_argument("--to", type=Path, required=True, help="a .jsonl file")
    arguments = parser.parse_args()
    experiment = load_experiment(arguments.experiment)
    questions = ifqa.questions(experiment.benchmark, experiment.split)
    with ifqa.open(arguments.experiment) as system:
        rankings = system.retrieve(questions, experiment.reader.passages)
    texts = [" ".join(passage.text for passage, _ in ranking) for ranking in rankings]
    pairs = zip(questions, texts, strict=True)
    rows = (
        {"question_id": question.id, "answer": best_sentence(question.text, text)}
        for question, text in pairs
    )
    print(f"{arguments.to}: {write_jsonl(arguments.to, rows)} predictions")


def best_sentence(question: str, text: str) -> str:
    from rank_bm25 import BM25Okapi

    sentences = [sentence.strip() for sentence in split_sentences(text)]
    scores = BM25Okapi([*map(tokens, sentences)]).get_scores(tokens(question))
    return sentences[max(range(len(sentences)), key=scores.__getitem__)]


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


if __name__ == "__main__":
    main()
