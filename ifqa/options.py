"""Arguments and options that several verbs of the command line take."""

from typing import Annotated

import typer

CorpusName = Annotated[str, typer.Argument(help="Corpus: a file indexes/NAME.toml.")]
ExperimentName = Annotated[str, typer.Option("--experiment", "-e", help="Experiment to work on.")]
K = Annotated[int | None, typer.Option("--k", help="Passages to retrieve for each question.")]
RetrieverName = Annotated[str | None, typer.Option("--retriever", help="Retriever: a name, or my_module:Class.")]
ReaderName = Annotated[str | None, typer.Option("--reader", help="Reader: a name, or my_module:Class.")]
CheckpointName = Annotated[
    str | None, typer.Option("--checkpoint", help="Weights of the reader: a folder, or a model of the hub.")
]
Prompt = Annotated[str | None, typer.Option("--prompt", help="Prompt of the reader 'llm': a file prompts/NAME.toml.")]
Model = Annotated[str | None, typer.Option("--model", help="Language model that is asked.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="US dollars this run may cost; 0: no cap.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=0, help="Tokens this run may take; 0: no cap.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Only the first N questions; scores say PARTIAL.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting: retriever.k1=1.2, reader.passages=10. Repeatable.")
]
