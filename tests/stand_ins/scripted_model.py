"""A language model that follows a script, and a search over a few passages, for the reader
'agent'.
"""

from ifqa.protocols import LanguageModel
from ifqa.records import Completion, Passage, Question, ToolCall

MILL = Passage("mill", "Mill", "The mill of Oakham was built in 1902 by Ada Carr, from Leith.")
FERRY = Passage("ferry", "Ferry", "The ferry at Wick was run by Bo May until 1931.")
BRIDGE = Passage("bridge", "", "The bridge of Wick was opened in 1948 by Cy Dale.")
QUESTION = Question("t/1", "If Ada Carr had died young, who would have run the ferry at Wick?")


class Scripted(LanguageModel):
    """Gives the n-th text, or list of calls, to a request that has n turns, and keeps all requests.

    The last one is given again and again.
    """

    name = "scripted"

    def __init__(self, *replies, takes_tools=False, chat=True, window=4096):
        self.replies = replies
        self.takes_tools = takes_tools
        self.chat = chat
        self.window = window
        self.seen = []

    def complete(self, requests, advance=lambda done: None):
        self.seen += requests
        advance(len(requests))
        return [self.reply(request) for request in requests]

    def reply(self, request):
        turns = len(request.turns) + sum(role == "assistant" for role, _ in request.messages)
        turns += request.text.count("\nSearch:")
        reply = self.replies[min(turns, len(self.replies) - 1)]
        if isinstance(reply, str):
            return Completion(reply, 1, 1, "stop")
        calls = tuple(ToolCall(name, arguments) for name, arguments in reply)
        return Completion("", 1, 1, "tool_calls", calls=calls)


class Searching:
    """Finds passages by the words of their texts, and keeps the texts that were searched for."""

    def __init__(self, *passages):
        self.passages = passages or (MILL, FERRY, BRIDGE)
        self.searched = []

    def __call__(self, texts, k):
        self.searched.append(list(texts))
        return [self.find(text)[:k] for text in texts]

    def find(self, text):
        words = set(text.lower().split())
        return [passage for passage in self.passages if words & set(passage.text.lower().split())]
