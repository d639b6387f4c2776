"""The typology of causal questions of Webis-CausalQA-22: annotations, and a labeller by surface
form.

The classes are the paper's (Bondarenko et al., COLING 2022). A causal relation has an antecedent
and a consequent. The semantic class says which part a question asks for. The pragmatic class says
what the asker wants.

The labeller has two ordered lists of patterns for a question's first 1,000 characters. The first
match decides. The labeller abstains if the match's class is None or no pattern matches. The
patterns were written before they were compared with labelled questions, and changed once after
reading its errors on other questions.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ifqa.companions.causalqa.rules import normalize_question
from ifqa.errors import FormatError
from ifqa.formats.tables import read_rows, row_id

#: Aspect -> its classes; docs/causalqa.md defines them.
ASPECTS: Mapping[str, Sequence[str]] = {
    "semantic": ("cause", "goal", "purpose", "enablement", "result", "verification", "none"),
    "pragmatic": ("solution", "knowledge", "opinion"),
}


class Cue(NamedTuple):
    """A surface form: its class (None: abstain), its pattern, and an example question."""

    label: str | None
    pattern: str
    example: str


_BE = "(?:is|are|was|were)"
_DO = "(?:do|does|did|can|could|will|would|may|might)"
_WHAT = "(?:what|which)"
_CAUSES = (
    "(?:causes?|caused|leads? to|led to|results? in|resulted in|triggers?|triggered|brings? "
    "about|brought about)"
)
_BY = "(?:caused|brought about|triggered|affected)"
_EFFECTS = "(?:effects?|consequences?|impacts?|outcomes?|results?)"

SEMANTIC_FORMS = (
    Cue(
        "result",
        r"\bwhat (?:happens|happened|(?:will|would|might|could) happen) .*\b(?:if|when|to)\b|"
        r"\b(?:if|when) .*\bwhat (?:happens|(?:will|would|might|could) happen)\b",
        "What happens if sugar is heated?",
    ),
    Cue("enablement", r"\Awhat (?:to do|should be done) ", "What to do if the sink is blocked?"),
    # Names that contain a rule's words.
    Cue(
        "none",
        r"\b(?:special|sound|visual|side) effects? (?:artist|artists|team|supervisor"
        r"|designer)\b|\bmass effect\b|"
        r"\b(?:take|takes|took|taking|went|go|goes|into|come|came) (?:into )?effect\b"
        r"|\bwithout a cause\b|\bcause and effect\b",
        "When did the law take effect?",
    ),
    Cue(
        "none",
        rf"\A{_WHAT} {_BE} (?:the |an? )?(?:\w+ ){{1,2}}effect(?: in \w+)?\Z",
        "What is the greenhouse effect?",
    ),
    # Questions that ask for a place, a time or a number.
    Cue(
        "none",
        r"\A(?:when|where|whose|whom|how (?:many|much|long|old|often|far|tall|big)|"
        r"(?:in |on )?(?:what|which) (?:year|city|country|date|day|century))\b"
        rf"(?!.*\b(?:why (?:is|are|was|were|do|does|did|can|would)|what {_CAUSES})\b)",
        "How long does a storm affect a harbour?",
    ),
    Cue("cause", rf"\Awho {_CAUSES}\b", "Who caused the fire?"),
    Cue("none", r"\Awho\b(?!.*\bwhy\b)", "Who wrote a book about the effects of war?"),
    # Yes-no questions that state both parts.
    Cue(
        "verification",
        rf"\A(?:{_BE}|{_DO}|has|have|had|should) (?!you\b|i\b|we know\b)(?!.*\b(?:why|what|how)\b)"
        rf".*\b(?:{_CAUSES}|{_BY}|affect|affects|(?:an?|any|the) effects?|make|makes|help"
        r"|prevent|contribute to|due to|because of)\b",
        "Can salt cause rust?",
    ),
    # Purposes and goals.
    Cue(
        "purpose",
        rf"\bwhat {_BE} (?:the |its |their )?(?:\w+ )?(?:purpose|function|use)s? of\b|\bused for\b|"
        r"\bwhat (?:is|are) .* for\Z",
        "What is the purpose of a fuse?",
    ),
    Cue(
        "purpose",
        r"\Awhy (?:(?:do|does|did) (?:we|you|they|people|\w+|the \w+) (?:use|need|have to have)\b|"
        r"(?:is|are|was|were) .*\b(?:used|needed|required|necessary)\b|"
        r"(?:is|are|was|were) (?:(?!where\b|been\b|longer\b)\w+ ){1,6}"
        r"(?:built|constructed|created|designed|established|founded"
        r"|introduced|invented|made|set up)\Z)",
        "Why are fuses used in houses?",
    ),
    Cue(
        "goal",
        r"\b(?:trying|hoping|wanting|aiming|wants?|hopes?|aims?|hoped|wanted"
        r"|aimed) to (?:achieve|accomplish|reach|"
        r"attain|gain|do)\b|\bwhat (?:is|are|was|were) (?:the |his |her |its "
        r"|their )?(?:main )?(?:goal|aim|objective)s?\b",
        "What was she trying to achieve with the strike?",
    ),
    # The consequent.
    Cue(
        "result",
        rf"\A{_WHAT} (?:\w+ )*?{_BE} (?:\w+ )*?{_BY} by\b",
        "Which disease is caused by a lack of iron?",
    ),
    Cue(
        "result",
        rf"\A{_WHAT} (?:\w+ ){{0,2}}?(?:do|does|did) .+ (?:cause|lead to"
        r"|result in|trigger|bring about|affect|effect)\b",
        "What did the drought lead to?",
    ),
    Cue(
        "result",
        rf"\A{_WHAT} (?:(?:can|could|will|would|may|might) )(?!cause\b|lead\b|result\b"
        r"|trigger\b|affect\b).+ (?:cause|lead to|result in|trigger|bring about)\b",
        "What can smoke cause?",
    ),
    Cue(
        "result",
        rf"\A(?:what (?:{_BE} )?)?(?:the |some |an? "
        rf"|\w+ )?(?:\w+ ){{0,2}}{_EFFECTS} (?:of|on|from)\b|"
        rf"\A{_WHAT} (?:\w+ )?{_EFFECTS}\b|\Ahow (?:do|does|did|can|could|will|would|is|are|was"
        r"|were|has|have) .+ (?:affect|affected|effect|impact|influence)\b|\bside effects\b",
        "How does frost affect vines?",
    ),
    # The antecedent.
    Cue("cause", r"\bbecause of what\b|\bhow come\b", "How come the lake is salty?"),
    Cue(
        "cause",
        rf"\A(?:what (?:{_BE} |s )?)?(?:the |some |an? )?(?:\w+ ){{0,2}}causes? (?:of|for)\b|"
        rf"\A{_WHAT} (?:(?:can|could|may|might|would|will) )?{_CAUSES}\b"
        rf"|\Awhen\b.*\bwhat {_CAUSES}\b",
        "What caused the landslide?",
    ),
    Cue(
        "cause",
        rf"\A{_WHAT} (?:\w+ )+?(?<!\bthe )(?<!\bof )(?<!\band )(?:{_CAUSES}|affects?|affected)\b",
        "Which event led to the war?",
    ),
    Cue("cause", r"\A(?:what )?affects? ", "What affects the tides?"),
    Cue("cause", r"\Ahow did .*\b(?:die|died)\b", "How did the painter die?"),
    Cue(
        None,
        r"\Ahow did .*\b(?:feel|react|respond|vote|do|perform|look|end)\b",
        "How did the team perform?",
    ),
    Cue("enablement", r"\Ahow did\b", "How did the climbers reach the summit?"),
    Cue(None, r"\Awhy .*\b(?:important|so that|in order to|for)\b", "Why is sleep important?"),
    Cue("cause", r"\Awhy\b", "Why did the dam break?"),
    Cue(
        "cause",
        r"\A(?:if|when|since)\b.*\bwhy (?:is|are|was|were|do|does|did|can|would)\b|\band why\b",
        "If ice is solid, why does it float?",
    ),
)

PRAGMATIC_FORMS = (
    Cue(
        "solution",
        r"\Awhat (?:to do|should be done|should i do|can i do|do i do)\b|"
        r"\bhow (?:can|do|should) i (?:stop|fix|prevent|treat|cure|avoid|get rid)\b|"
        r"\b(?:how to|(?:can|do|should) (?:you|we|one)|ways? to"
        r"|what (?:will|can)) get rid of\b|\bwhat gets rid of\b|\Aget rid of\b",
        "What to do if the sink is blocked?",
    ),
    Cue(
        "solution",
        r"\bwhy (?:is|are|does|do|did|has|have|wont|won t|doesn t|don t|can t|isn t"
        r"|aren t) (?:my|i|me)\b|"
        r"\bwhat (?:\w+ )?(?:causes?|is causing|would cause|could cause|can cause) (?:my|me)\b",
        "Why does my phone get hot?",
    ),
    Cue(
        "opinion",
        r"\A(?:why )?do you (?:think|believe|agree)\b|\bwhat do you think (?:of|about)\b|"
        r"\bshould (?:we|people|the|there|one|schools?|children)\b|"
        r"\b(?:overrated|underrated|worth it|ethical|unethical|immoral|unfair)\b|"
        r"\bwhy do (?:so many )?people (?:hate|love|like)\b",
        "Why do people hate modern art?",
    ),
    Cue(
        None,
        r"\b(?:i|my|me|you|your|we|us|our)\b|\bwhy (?:is|are) .*\b(?:important|good|bad|better"
        r"|best|great|popular)\b",
        "Why is sleep important?",
    ),
    Cue(
        None,
        r"\b(?:pain|pains|ache|aches|sore|swelling|swollen|swell|itch\w*|rash|rashes|cramps?"
        r"|cramping|fever|vomiting|"
        r"nausea|diarrhea|bleeding|dizz\w+|numbness|headaches?|bruis\w+|cough\w*|infections?"
        r"|error|leak\w*|noise)\b",
        "What causes itchy eyes?",
    ),
    Cue(
        "knowledge",
        r"\A(?:what|which|who|why|how|when|where|is|are|was|were|do|does|did|can|could|will"
        r"|would|may|might|in|on|if|has|have|had|causes?|effects?|because)\b",
        "What caused the landslide?",
    ),
)

# characters; the forms are among the first words, and some patterns take quadratic time
_READ = 1_000
_SEMANTIC = tuple((form.label, re.compile(form.pattern)) for form in SEMANTIC_FORMS)
_PRAGMATIC = tuple((form.label, re.compile(form.pattern)) for form in PRAGMATIC_FORMS)


def classify_question(question: str) -> tuple[str | None, str | None]:
    """The semantic and pragmatic class of a question by its form.

    None where the labeller abstains.
    """
    text = normalize_question(question)[:_READ]
    semantic = next((name for name, pattern in _SEMANTIC if pattern.search(text)), None)
    pragmatic = next((name for name, pattern in _PRAGMATIC if pattern.search(text)), None)
    return semantic, pragmatic


QuestionKey = tuple[str, str]  # dataset ("" where the file names none) and id


class Annotation(NamedTuple):
    """The two classes of a question."""

    semantic: str
    pragmatic: str


class LabellerScore(NamedTuple):
    """How a labeller agrees with annotations, in numbers of questions."""

    given: int  # to which the labeller gives the class
    right: int  # of these, those whose annotation agrees
    annotated: int  # whose annotation is the class
    of: int  # all annotated questions


def read_annotations(path: Path) -> dict[QuestionKey, Annotation]:
    """The annotations of a file with `id`, `semantic`, `pragmatic` and, if datasets share ids,
    `dataset`.
    """
    annotations: dict[QuestionKey, Annotation] = {}
    for where, row in read_rows(path, "semantic"):
        key = str(row.get("dataset") or ""), row_id(row, where)
        if not key[1]:
            raise FormatError(
                f"{where}: wanted an 'id', found {', '.join(map(repr, row)) or 'no keys'}"
            )
        if key in annotations:
            raise FormatError(
                f"{where}: {' '.join(key).strip()!r} is annotated twice; wanted one "
                "annotation per question"
            )
        for aspect, classes in ASPECTS.items():
            if (label := row.get(aspect)) not in classes:
                raise FormatError(
                    f"{where}: {aspect!r} must be one of {', '.join(classes)}; found {label!r:.60}"
                )
        annotations[key] = Annotation(str(row["semantic"]), str(row["pragmatic"]))
    if not annotations:
        raise FormatError(f"{path}: wanted annotations, found none")
    return annotations


def score_labels(
    labels: Mapping[QuestionKey, str | None],
    annotations: Mapping[QuestionKey, str],
    classes: Sequence[str],
) -> dict[str, LabellerScore]:
    """A labeller's scores on the annotated questions: over "all" classes, and for each class."""
    labelled = Counter(labels.get(key) for key in annotations)
    annotated = Counter(annotations.values())
    right = Counter(name for key, name in annotations.items() if labels.get(key) == name)
    total = len(annotations)
    scores = {
        "all": LabellerScore(sum(labelled[name] for name in classes), right.total(), total, total)
    }
    return scores | {
        name: LabellerScore(labelled[name], right[name], annotated[name], total) for name in classes
    }
