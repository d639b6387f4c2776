"""Language models by name: classes with `complete(requests, advance) -> list[Completion]` and `count(text)`."""

PLUGINS = {
    "openai": "ifqa.llms.openai:OpenAI",
    "hf": "ifqa.llms.hf:HF",
    "replay": "ifqa.llms.replay:Replay",
}
