"""Language models by name: classes with `complete(requests, advance) -> list[Completion]` and
`count(text)`.
"""

PLUGINS = {
    "openai": "ifqa.llms.openai:OpenAI",
    "hf": "ifqa.llms.hf:HF",
    "llama-cpp": "ifqa.llms.llama_cpp:LlamaCpp",
    "replay": "ifqa.llms.replay:Replay",
}
