"""Has a language model judge whether answers mean the same as gold answers, for the score stage.

An exact match is the same by definition. A question without an answer, or without gold answers, is
not judged. Every other answer is one request, whose completion is stored like any other, so that
equal requests are sent once and a run that was interrupted goes on.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ifqa.config.experiment import ConfiguredJudge
from ifqa.errors import ConfigError, ServiceError
from ifqa.formatting import pluralize
from ifqa.llms.budget import UsageMeter, refuse_failures
from ifqa.pipeline.run import Run
from ifqa.pipeline.session import Session
from ifqa.progress import bar
from ifqa.prompting.context_window import bound_tokens
from ifqa.prompting.judging import (
    judge_prompt_path,
    load_judge_prompt,
    parse_verdict,
)
from ifqa.protocols import LanguageModel
from ifqa.records import Completion, Prediction, Question, Request, StageUsage
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.scoring.measures.judged import Verdict
from ifqa.scoring.stored_scores import JudgeCounts
from ifqa.storage.artifacts import Manifest
from ifqa.storage.files import sha256

logger = logging.getLogger(__name__)

VERSION = 1  # increment when a request is made, or a reply is read, in another way


class JudgedAnswer(NamedTuple):
    """A question, its answer, and whether that is an exact match."""

    question: Question
    answer: str
    is_exact: bool


class Judgement(NamedTuple):
    """The verdict on each judged question's answer, by the question's id, and the model's usage,
    empty if it was not asked.
    """

    verdicts: dict[str, Verdict]
    usage: StageUsage


def judge_inputs(run: Run, judge: ConfiguredJudge) -> dict[str, object]:
    """What decides the verdicts, besides questions and answers: the model with its settings and
    server, and the prompt.

    If the settings do not say which server answers, finished verdicts are those of the server that
    their manifest names: a report needs no address. `refuse_other_judge` goes before a run.
    """
    path = judge_prompt_path(judge.prompt, run.experiment.root)
    server = _server(judge)
    if server and not _names_server(judge):
        server = _recorded_server(run.artifact("score").manifest) or server
    named = {"server": server} if server else {}
    model = {**judge.model.identity(), **named}
    return {"version": VERSION, "model": model, "prompt": sha256(path)}


def refuse_other_judge(run: Run) -> None:
    """Refuse to take the verdicts of one server for those of another, which may serve another
    model.

    Raises:
        ConfigError: the settings name no server, and finished scores are of another one than
            would be asked now.
    """
    judge = run.experiment.judge
    if judge is None or _names_server(judge):
        return
    earlier = _recorded_server(run.artifact("score").manifest)
    now = _server(judge)
    if earlier and now and earlier != now:
        folder = run.artifact("score").folder
        raise ConfigError(
            f"{folder} holds verdicts of {judge.name} at {earlier}, and this run would ask "
            f"{judge.name} at {now}, which may serve another model: give what is served there a "
            f"name of its own (--set judge.served_as=NAME); or remove {folder} to ask again",
            found=earlier,
            wanted=now,
        )


def require_judge(run: Run) -> None:
    """Check the judge before hours of work: its prompt, its model's files and its key.

    IfqaError if something is missing.
    """
    judge = run.experiment.judge
    if judge is None:
        return
    load_judge_prompt(judge.prompt, run.experiment.root)
    judge_inputs(run, judge)
    refuse_other_judge(run)
    judge.model.plugin.require_access(judge.model.local_settings, judge.model.root)


def judge_answers(
    run: Run, predictions: Sequence[Prediction], session: Session | None = None
) -> Judgement:
    """The verdicts on an experiment's answers, by its judge.

    What the requests may cost is logged before any is sent.

    Raises:
        ServiceError: a request failed or was not sent, so that a verdict is missing.
    """
    judge = run.experiment.judge
    assert judge is not None
    answers = judged_answers(run.questions, predictions)
    verdicts: dict[str, Verdict] = {
        each.question.id: "exact match" for each in answers if each.is_exact
    }
    asked = [each for each in answers if not each.is_exact]
    if not asked:
        return Judgement(verdicts, {})
    model = (session or Session()).model(judge.model)
    requests = judge_requests(run, asked, model)
    meter = UsageMeter(model, ())
    sent = [request for request in requests if request]
    completions = iter(_complete(judge, model, meter, sent))
    for each, request in zip(asked, requests, strict=True):
        verdicts[each.question.id] = _verdict(next(completions)) if request else "too long"
    return Judgement(verdicts, meter.usage())


def judged_answers(
    questions: Sequence[Question], predictions: Sequence[Prediction]
) -> list[JudgedAnswer]:
    """The answers that get a verdict: those of questions with an answer and a gold answer."""
    return [
        JudgedAnswer(
            question, prediction.answer, bool(exact_match(prediction.answer, question.answers))
        )
        for question, prediction in zip(questions, predictions, strict=True)
        if question.answers and not prediction.failed and not prediction.abstained
    ]


def judge_requests(
    run: Run, answers: Sequence[JudgedAnswer], model: LanguageModel
) -> list[Request | None]:
    """The request for each answer; None for an answer that does not fit the model's window.

    ConfigError if none fits.
    """
    judge = run.experiment.judge
    assert judge is not None
    prompt = load_judge_prompt(judge.prompt, run.experiment.root)
    requests = list[Request | None]()
    for question, answer, _ in answers:
        request = prompt.request(question.text, question.answers, answer, model)
        tokens = bound_tokens(request, model) + request.max_tokens
        requests.append(request if tokens <= model.window else None)
    if answers and not any(requests):
        raise ConfigError(
            f"judge {judge.name}: no question fits its window of {model.window:,} tokens, of which "
            f"a reply takes up to {model.completion_tokens(prompt.max_tokens):,}; lower "
            "judge.thinking_tokens or judge.max_tokens, or set judge.window if the model has more"
        )
    return requests


def counts_of(name: str, verdicts: Mapping[str, Verdict]) -> JudgeCounts:
    """How many verdicts there are of each kind, by the judge `name`."""
    found = Counter(verdicts.values())
    return {
        "model": name,
        "exact": found["exact match"],
        "same": found["same"],
        "different": found["different"],
        "unclear": found["unclear"],
        "too_long": found["too long"],
    }


def _complete(
    judge: ConfiguredJudge, model: LanguageModel, meter: UsageMeter, requests: list[Request]
) -> list[Completion]:
    """A completion of each request, none of which has failed."""
    what = pluralize(len(requests), "answer")
    logger.info(f"asking {model.name} to judge {what}: {model.estimate(requests)}")
    with bar("judging", len(requests)) as advance:
        completions = meter.complete(requests, advance)
    errors = [completion.error for completion in completions if completion.error]
    passing = sum(bool(reply.error) and not reply.permanent for reply in completions)
    missing = f"{pluralize(len(errors), 'verdict')} of {judge.name} missing"
    refuse_failures(passing, errors, missing)
    if errors:
        raise ServiceError(
            f"{missing} ({errors[0]}), and these failures are stored; no scores were written. Ask "
            "again with --retry-failed, name another model with --judge, or leave the judge out"
        )
    return completions


def _verdict(completion: Completion) -> Verdict:
    says_same = parse_verdict(completion.text)
    if says_same is None:
        return "unclear"
    return "same" if says_same else "different"


def _names_server(judge: ConfiguredJudge) -> bool:
    """Whether the settings say which server answers, by its address or by a name."""
    section = judge.model.section()
    return bool(section.get("base_url") or section.get("served_as"))


def _server(judge: ConfiguredJudge) -> str:
    """The server that would be asked now; empty for a model of this machine."""
    return judge.model.plugin.served_by(judge.model.local_settings)


def _recorded_server(manifest: Manifest | None) -> str:
    """The server that a manifest of scores names; empty if it names none."""
    inputs: dict[str, Any] = manifest["inputs"] if manifest else {}
    recorded = inputs.get("judge", {})
    return str(recorded.get("model", {}).get("server", ""))
