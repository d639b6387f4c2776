"""Reader 'agent': a language model that may search the corpus and compute before it answers.

All questions take their next step together, so that requests are sent, and texts searched for, in
batches. Each completion is stored, so an interrupted reading goes on where it was.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ifqa.errors import ConfigError, ToolsRefused
from ifqa.formatting import pluralize
from ifqa.prompting.context_window import FittedPrompt
from ifqa.prompting.parsing import TRUNCATED
from ifqa.prompting.prompts import load_prompt, prompt_path
from ifqa.prompting.thoughts import answer_part, has_thoughts
from ifqa.protocols import LanguageModel, ProgressCallback, RankedPassages, Search, no_progress
from ifqa.reading.agent.actions import LINES, Action, parse_calls, parse_text
from ifqa.reading.agent.calculator import CannotCompute, compute, format_value
from ifqa.reading.agent.conversation import (
    Conversation,
    ConversationPrompts,
    Turn,
    repeatable,
)
from ifqa.reading.llm import Llm, Reply
from ifqa.reading.llm_confidence import ONE_ANSWER, calibrations_of
from ifqa.records import (
    Completion,
    Prediction,
    Question,
    Request,
    StageUsage,
    Step,
    ToolCall,
)
from ifqa.settings import PluginSettings, Positive, Share
from ifqa.storage.files import sha256

logger = logging.getLogger(__name__)

_SEARCHED = "already searched, with the result above; search for something else, or answer"
_NOTHING = "(nothing)"  # in place of an empty message, which some servers refuse
_LONGEST = 300  # characters of what the model wrote, in a step


class Agent(Llm):
    """Lets a language model search the corpus and compute before it answers, in a few steps.

    The first request shows the question with its passages. The model answers, searches with the
    experiment's own retriever, or computes, and the next request shows it the result. It calls
    functions where its server has them, and else writes a line ("Search: ..."). The last request
    asks for the answer alone.

    A prediction fails as one of 'llm' does, and if the model twice writes nothing that it may. The
    sentence and the confidence of an answer are those of 'llm'.
    """

    version = 1
    takes = ("llm", "search", "root")

    class Settings(PluginSettings):
        prompt: str = "agent"
        """A file `prompts/NAME.toml`, which reads passages and marks the answer."""
        steps: Positive = 4
        """Most requests for a question; 1 for an answer without a search."""
        hits: Positive = 3
        """Passages that a search shows."""
        calls: Literal["auto", "functions", "lines"] = "auto"
        """How the model searches and computes: it calls "functions", writes "lines", or, with
        "auto", calls functions if its server has them.
        """
        span_reader: bool = True
        """Whether the span reader reads the passages, too. It finds the sentence of an answer
        without a quote, and the confidence counts what it says.
        """
        threshold: Share = 0.0
        """The reader abstains below this confidence, for which the model and the prompt need a
        calibration.
        """

    def __init__(
        self, settings: Settings, *, llm: LanguageModel, search: Search, root: Path = Path()
    ) -> None:
        """`search` searches with the experiment's retriever."""
        of_llm = Llm.Settings(
            prompt=settings.prompt, span_reader=settings.span_reader, threshold=settings.threshold
        )
        super().__init__(of_llm, llm=llm, root=root)
        if not (self.prompt.answer_marker and self.prompt.reads_passages):
            raise ConfigError(
                "reader 'agent': wanted a prompt that reads passages and marks the answer, found "
                f"{settings.prompt!r}; choose another, such as agent"
            )
        if settings.calls == "functions" and not llm.takes_tools:
            raise ConfigError(
                f"reader 'agent': {llm.name} takes no functions; wanted a server that does "
                "(llm.name = openai), or reader.calls = lines"
            )
        self._calls = settings.calls
        self._steps = settings.steps
        self._hits = settings.hits
        self._find = search
        self._prompts = ConversationPrompts(self.prompt, llm, settings.steps, settings.hits)
        self._actions = Counter[str]()
        self._sent_functions = False

    def ask(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Reply]:
        """What the model replies in the end, before support and confidence.

        Under a cap, as many questions are asked together as surely fit under it with all their
        requests, so that none is given up halfway.
        """
        conversations = self._open(questions, passages)
        if len(conversations) > 1:
            most = pluralize(len(conversations) * self._steps, "request")
            asked = pluralize(len(conversations), "question")
            logger.info(f"{self.llm.name}: at most {most} for {asked}, {self._steps} for each")
        waiting = conversations
        while waiting:
            count, refusal = self.llm.affordable([self._bound(each) for each in waiting])
            if not count:
                self._refuse(waiting, refusal)
                advance(len(waiting))
                break
            for step in range(self._steps):
                self._take_step(waiting[:count], step, advance)
            waiting = waiting[count:]
        replies = [conversation.reply for conversation in conversations]
        return [reply for reply in replies if reply is not None]

    def requests(self, questions: Sequence[Question], passages: RankedPassages) -> list[Request]:
        """As many requests as there may be at most, of as many tokens."""
        conversations = self._open(questions, passages)
        return [request for each in conversations for request in self._bound(each)]

    def usage(self) -> StageUsage:
        usage = super().usage()
        usage["searches"] = self._actions["search"]
        usage["computations"] = self._actions["compute"]
        if self._sent_functions and "sent" in usage:
            usage["sent"] += ", tools"
        return usage

    @classmethod
    def calibrated_name(cls, prompt: str) -> str:
        return f"{prompt} (reader agent)"

    @classmethod
    def draws(cls, settings: Settings) -> bool:  # type: ignore[override]
        return False

    @classmethod
    def training_family(cls, settings: Settings, root: Path) -> str:  # type: ignore[override]
        return ""

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:  # type: ignore[override]
        """A hash of the prompt, and of the calibrations for it."""
        files = [prompt_path(settings.prompt, root)]
        files += calibrations_of(root, cls.calibrated_name(settings.prompt), ONE_ANSWER)
        rule = load_prompt(settings.prompt, root).rule_version
        return hashlib.sha256(" ".join([*map(sha256, files), rule]).encode()).hexdigest()

    def _open(self, questions: Sequence[Question], passages: RankedPassages) -> list[Conversation]:
        has_functions = self._has_functions
        return [
            Conversation(question, tuple(ranking), has_functions)
            for question, ranking in zip(questions, passages, strict=True)
        ]

    @property
    def _has_functions(self) -> bool:
        """Whether a new conversation is one by function calls: a server may have refused them."""
        return self._calls == "functions" or (self._calls == "auto" and self.llm.takes_tools)

    def _bound(self, conversation: Conversation) -> list[Request]:
        return self._prompts.bound(self._prompts.fit(conversation, self._steps == 1))

    def _refuse(self, conversations: Sequence[Conversation], refusal: str) -> None:
        """End conversations that a cap has no room for."""
        error = f"{refusal} with up to {pluralize(self._steps, 'request')}"
        for conversation in conversations:
            prompt = self._prompts.fit(conversation, self._steps == 1)
            self._finish(conversation, prompt, Completion(error=error))

    def _take_step(
        self, conversations: Sequence[Conversation], step: int, advance: ProgressCallback
    ) -> None:
        """Send the next request of each conversation that goes on, and do what it asks for."""
        is_last = step == self._steps - 1
        asked: list[tuple[Conversation, FittedPrompt]] = []
        for conversation in conversations:
            if conversation.reply is not None:
                continue
            if not step:
                conversation.has_functions = self._has_functions
            prompt = self._prompts.fit(conversation, is_last)
            if prompt.problem:
                self._meter.counts["too_long"] += 1
                self._fail(conversation, prompt, f"not asked: {prompt.problem}")
                advance(1 - step / self._steps)
            else:
                asked.append((conversation, prompt))
        if not asked:
            return
        requests = [replace(prompt.request, logprobs=True) for _, prompt in asked]
        try:
            completions = self._meter.complete(requests, lambda done: advance(done / self._steps))
        except ToolsRefused:
            if self._calls == "functions" or step or self._sent_functions:
                raise
            # Nothing was asked yet; the model writes lines
            self._take_step([conversation for conversation, _ in asked], step, advance)
            return
        for (conversation, prompt), completion in zip(asked, completions, strict=True):
            if not step:
                conversation.shown = list(prompt.passages)
                conversation.ranked = len(prompt.passages)
                self._meter.counts["left_out"] += prompt.left_out
                self._sent_functions |= bool(prompt.request.tools)
            self._hear(conversation, prompt, completion, is_last)
            if conversation.reply is not None:
                advance(1 - (step + 1) / self._steps)
        self._search([conversation for conversation, _ in asked])

    def _hear(
        self,
        conversation: Conversation,
        prompt: FittedPrompt,
        completion: Completion,
        is_last: bool,
    ) -> None:
        """Take a completion: as the answer, or as the next turn.

        The results of its searches stay empty.
        """
        if completion.error:
            self._finish(conversation, prompt, completion)
            return
        calls = completion.calls if conversation.has_functions else ()
        asked = parse_calls(calls, self.prompt) if calls else [self._read(completion, is_last)]
        actions = [self._checked(conversation.question, completion, action) for action in asked]
        answer = next((action for action in actions if action.kind == "answer"), None)
        first = actions[0]
        if answer:
            self._finish(conversation, prompt, cut_to_answer(completion, answer))
        elif is_last:
            self._give_up(conversation, prompt, completion, first)
        elif calls or first.kind in LINES:
            self._act(conversation, calls, actions)
        elif conversation.was_reminded:
            self._give_up(conversation, prompt, completion, first)
        else:
            self._remind(conversation, completion, first)

    def _read(self, completion: Completion, is_last: bool) -> Action:
        """The action that a text asks for.

        Where only an answer is asked for, a text without a marker may be one by the prompt's rule.
        """
        text = answer_part(completion.text)
        thinks_on = self.cut_of(completion) == "in thoughts" and not has_thoughts(completion.text)
        if text is None or thinks_on:
            return Action("other", completion.text, TRUNCATED)
        action = parse_text(text, self.prompt)
        if action.kind == "other" and not action.problem and (is_last or self.prompt.needs_marker):
            return Action("answer", text)
        return action

    def _checked(self, question: Question, completion: Completion, action: Action) -> Action:
        """An action; "other" for an answer that the prompt's rule does not find."""
        if action.kind != "answer":
            return action
        whole = cut_to_answer(completion, action)
        parsed = self.prompt.parse(whole.text, question.choices, self.cut_of(whole))
        return Action("other", action.text, parsed.problem) if parsed.problem else action

    def _act(
        self, conversation: Conversation, calls: Sequence[ToolCall], actions: Sequence[Action]
    ) -> None:
        """Add a turn with what actions give; a search gives its result later."""
        written = "" if calls else f"{LINES[actions[0].kind]} {actions[0].text}"
        turn = Turn(written, tuple(map(repeatable, calls)), [])
        for action in actions:
            step = self._step(conversation, action)
            if action.kind == "search" and not step.result:
                place = (len(turn.results), len(conversation.steps))
                conversation.pending.append((*place, action.text))
            turn.results.append(step.result)
            conversation.steps.append(step)
        conversation.turns.append(turn)

    def _step(self, conversation: Conversation, action: Action) -> Step:
        """What is done for an action; a search has neither passages nor a result yet."""
        if action.kind == "compute":
            self._actions["compute"] += 1
            try:
                return Step("compute", action.text, format_value(compute(action.text)))
            except CannotCompute as error:
                return Step("compute", action.text[:_LONGEST], f"not computed: {error}")
        if action.kind == "search":
            query = " ".join(action.text.casefold().split())
            if query in conversation.queries:
                return Step("search", action.text, _SEARCHED)
            conversation.queries.add(query)
            return Step("search", action.text)
        return Step("other", action.text[:_LONGEST], action.problem)

    def _search(self, conversations: Sequence[Conversation]) -> None:
        """Search for what the last turns of conversations want to know, all together."""
        queries = dict.fromkeys(
            query for conversation in conversations for *_, query in conversation.pending
        )
        if not queries:
            return
        found = dict(zip(queries, self._find(list(queries), self._hits), strict=True))
        for conversation in conversations:
            searches = len(conversation.pending)
            self._actions["search"] += searches
            for result, place, query in conversation.pending:
                passages = found[query]
                text = self._prompts.show_hits(conversation, query, passages, searches)
                conversation.turns[-1].results[result] = text
                conversation.steps[place] = replace(
                    conversation.steps[place],
                    passage_ids=tuple(passage.id for passage in passages),
                    result="" if passages else text,
                )
            conversation.pending.clear()

    def _remind(self, conversation: Conversation, completion: Completion, action: Action) -> None:
        """Tell the model, once, that it wrote nothing that it may."""
        conversation.was_reminded = True
        told = f"not understood: {action.problem or 'no line is an answer or asks for something'}"
        if conversation.has_functions:
            told += ". Call search, compute or answer."
        written = completion.text.strip()[:_LONGEST] or _NOTHING
        conversation.turns.append(Turn(written, (), [told]))
        conversation.steps.append(Step("other", written, told))

    def _give_up(
        self,
        conversation: Conversation,
        prompt: FittedPrompt,
        completion: Completion,
        action: Action,
    ) -> None:
        """End a conversation without an answer."""
        problem = action.problem or f"no line {self.prompt.answer_marker!r}"
        if action.kind in LINES:
            problem = f"the last of {pluralize(self._steps, 'request')} got no answer"
        self._meter.counts["unparsed"] += 1
        self._meter.counts["cut"] += completion.finish == "length"
        written = completion.text or json.dumps(completion.calls)
        self._fail(conversation, prompt, f"unparsed: {problem}", written)

    def _finish(
        self, conversation: Conversation, prompt: FittedPrompt, completion: Completion
    ) -> None:
        """End a conversation with the answer in a completion, or with its error."""
        shown = tuple(conversation.shown or prompt.passages)
        seen = replace(prompt, passages=shown, shown=shown)
        reply = self.vote(conversation.question, seen, [completion])
        prediction = replace(reply.prediction, steps=tuple(conversation.steps))
        conversation.reply = replace(reply, prediction=prediction)

    def _fail(
        self, conversation: Conversation, prompt: FittedPrompt, error: str, written: str = ""
    ) -> None:
        shown = tuple(conversation.shown or prompt.passages)
        prediction = Prediction(
            conversation.question.id,
            "",
            completion=written,
            passage_ids=tuple(passage.id for passage in shown),
            error=error,
            steps=tuple(conversation.steps),
        )
        seen = replace(prompt, passages=shown, shown=shown)
        conversation.reply = Reply(conversation.question, prediction, seen)


def cut_to_answer(completion: Completion, action: Action) -> Completion:
    """A completion that has nothing but the answer of an action, with its tokens."""
    if action.from_call:
        return replace(completion, text=action.text, finish="stop", logprobs=())
    part = answer_part(completion.text) or ""
    start = completion.text.find(action.text, completion.text.rfind(part))
    end = start + len(action.text)
    logprobs = [(at - start, logprob) for at, logprob in completion.logprobs if start < at <= end]
    finish = completion.finish if end == len(completion.text) else "stop"
    return replace(completion, text=action.text, finish=finish, logprobs=tuple(logprobs))
