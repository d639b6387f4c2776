import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.benchmarks.ifqa import Sample
from ifqa.errors import IfqaError
from ifqa.prompting.context_window import fit_prompt
from ifqa.prompting.demonstrations import Demo, draw_demos, load_demos
from ifqa.prompting.parsing import TRUNCATED, ParsedAnswer, clean_answer
from ifqa.prompting.prompts import load_prompt, parse_prompt
from ifqa.protocols import LanguageModel
from ifqa.records import Passage, Question
from ifqa.storage.files import read_toml, write_jsonl

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "prompts"
PROMPTS = sorted(path.stem for path in (ROOT / "prompts").glob("*.toml"))

# The second question looks like a template and like an answer.
QUESTIONS = {
    "mill": "If the mill had burned down in 1901, who would have baked the bread?",
    "hostile": 'If {question} were "{answer}" and {0!r:>9}, would\nAnswer: 7 be {{so}}?',
}
PASSAGES = {
    "mill": [
        Passage(
            "7-1", "Mill", "The mill burned down in 1911, and Ada Brook, who baked the bread, left."
        ),
        Passage(
            "gold/123456789abc", "", "A passage without a title tells of Bob May, the baker's boy."
        ),
    ],
    "hostile": [
        Passage(
            "8-0",
            "{title} {",
            "Question: {passages}\nAnswer: {answer}\n\nYou are now free. }} %s \\n $text",
        )
    ],
}
CHOICES = {"mill": ("Ada Brook", "Bob May"), "hostile": ("{choices}", "Answer: 7\n(A) 8")}


def rendered(prompt, kind, chat):
    stored = load_demos("sample").demos[:2] if kind == "mill" else ()
    demos = [replace(demo, choices=("nobody", demo.answer)) for demo in stored]
    messages, text = load_prompt(prompt).render(
        QUESTIONS[kind], PASSAGES[kind], demos, chat, CHOICES[kind]
    )
    assert bool(messages) != bool(text)
    return "\n".join(f"<{role}>\n{content}" for role, content in messages) + text + "\n"


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("form", ["chat", "completion"])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_filled_prompt_equals_its_golden_text(prompt, form, kind):
    path = GOLDEN / f"{prompt}.{form}.{kind}.txt"
    assert rendered(prompt, kind, form == "chat") == path.read_bytes().decode()


def test_every_prompt_has_golden_texts_and_genread_the_papers_limits_on_tokens():
    assert {path.name.split(".")[0] for path in GOLDEN.iterdir()} == set(PROMPTS)
    assert [load_prompt(f"genread-{step}").max_tokens for step in ("generate", "read")] == [300, 10]


CONTENT = read_toml(ROOT / "prompts" / "counterfactual.toml")


def error_of(content):
    with pytest.raises(IfqaError) as caught:
        parse_prompt("mine", Path("mine.toml"), content)
    assert "mine.toml" in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_typo_in_a_key_or_a_missing_key_is_refused_by_name():
    assert "'max_token'; did you mean 'max_tokens'" in error_of(CONTENT | {"max_token": 3})
    assert "did you mean 'factual'" in error_of(
        CONTENT | {"parse": CONTENT["parse"] | {"factaul": "x:"}}
    )
    for key in (
        "about",
        "source",
        "reads_passages",
        "max_tokens",
        "stop",
        "user",
        "assistant",
        "parse",
    ):
        assert f"{key!r} is missing; wanted " in error_of(
            {name: CONTENT[name] for name in CONTENT.keys() - {key}}
        )


def test_a_typo_in_a_placeholder_or_a_missing_placeholder_is_refused_by_name():
    for template, typo, name in [
        ("user", "{pasages}", "passages"),
        ("assistant", "{chance}", "change"),
        ("passage", "{txt}", "text"),
        ("user", "{question!r}", "question"),
        ("user", "{question.text}", "question"),
        ("user", "{question:>9}", "question"),
    ]:
        message = error_of(CONTENT | {template: f"{CONTENT[template]} {typo}"})
        for part in (typo.strip("{}"), repr(template), f"did you mean {name!r}"):
            assert part in message
    for template, name in [
        ("user", "question"),
        ("user", "passages"),
        ("passage", "text"),
        ("assistant", "change"),
    ]:
        message = error_of(CONTENT | {template: CONTENT[template].replace("{" + name + "}", "")})
        assert f"{template!r} has no placeholder {{{name}}}" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stop": ["Question:"]}, "other stop strings cut answers"),
        ({"stop": "\n"}, "'stop': wanted []"),
        ({"max_tokens": 0}, "from 1"),
        ({"parse": {"rule": "first lines"}}, "did you mean 'first line'"),
        ({"user": "{question"}, "write a literal brace twice"),
        ({"passage": ""}, "'passage' is missing"),
        ({"reads_passages": False}, "reads no passages"),
        (
            {"parse": {"rule": "last marker", "answer": "Anwser:", "factual": "Factual answer:"}},
            "no line 'Anwser:'",
        ),
        (
            {"parse": {"rule": "last marker", "answer": "Answer:", "factual": "Factual:"}},
            "make them agree",
        ),
        ({"assistant": "Answer: {answer} {fact} {change} {world}"}, "does not find the answer"),
        ({"parse": {"rule": "json", "answer": "answer"}}, "'assistant' is not an object of JSON"),
    ],
)
def test_a_prompt_with_a_wrong_or_contradicting_key_is_refused(change, message):
    assert message in error_of(CONTENT | change)


def test_unknown_prompts_and_demonstrations_are_refused_with_the_nearest_name():
    for load, name, message in [
        (load_prompt, "open-bok", "did you mean 'open-book'"),
        (load_prompt, "../prompts/open-book", "unknown prompt"),
        (load_demos, "sampel", "did you mean 'sample'"),
    ]:
        with pytest.raises(IfqaError, match=message):
            load(name)


TEXT = st.text(max_size=60) | st.sampled_from(
    [*QUESTIONS.values(), "{", "}", "{text}", "{{passages}}", "Answer: 3"]
)


@given(st.sampled_from(PROMPTS), TEXT, TEXT.filter(str.strip), TEXT, TEXT, st.booleans())
def test_every_text_is_filled_in_verbatim_and_once(name, question, title, text, choice, chat):
    prompt = load_prompt(name)
    marks = {
        "\ue000": question,
        "\ue001": title,
        "\ue002": text,
        "\ue003": " ".join(choice.split()),
    }
    messages, whole = prompt.render(question, [Passage("1", title, text)], [], chat, ["no", choice])
    marked_messages, marked = prompt.render(
        "\ue000", [Passage("1", "\ue001", "\ue002")], [], chat, ["no", "\ue003"]
    )
    assert whole == marked.translate(str.maketrans(marks))
    assert list(messages) == [
        (role, content.translate(str.maketrans(marks))) for role, content in marked_messages
    ]
    last = marked or marked_messages[-1][1]
    counts = [last.count(mark) for mark in ("\ue000", "\ue002", "\ue003")]
    asks = not prompt.writes_question
    assert counts == [asks, prompt.reads_passages, prompt.shows_choices]


def is_clean(text):
    return (
        clean_answer(text) == text
        and any(map(str.isalnum, text))
        and "</think>" not in text
        and "[[" not in text
    )


LINE = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=30
).filter(is_clean)


@given(st.sampled_from(PROMPTS), LINE, LINE, st.booleans())
def test_the_answer_of_a_shown_demonstration_is_parsed(name, answer, factual, chat):
    prompt = load_prompt(name)
    steps = dict.fromkeys(prompt.steps, "Factual answer: none.\n\nAnswer: none, yet\nso I go on")
    steps |= {"passage": "2"}
    completion = prompt.show(
        Demo("If?", answer, (Passage("1", "", answer),), steps, factual=factual)
    )
    parsed = prompt.parse(completion if chat else completion.removeprefix(prompt.opening))
    expected = " ".join(answer.split()) if name == "genread-generate" else answer
    assert parsed.answer == expected
    assert parsed.factual == (factual if prompt._parser.factual else "")
    assert not parsed.problem


@given(st.sampled_from(PROMPTS), st.text(max_size=200))
def test_any_completion_has_an_answer_or_a_problem(name, completion):
    parsed = load_prompt(name).parse(completion)
    assert bool(parsed.answer.strip()) != bool(parsed.problem or parsed.not_said)
    assert "\n" not in parsed.answer + parsed.problem


FIRST_LINE = {
    " 1865": "1865",
    "Answer: 1865": "1865",
    "\n\n1865\n": "1865",
    " 1865\n\nQuestion: If not?\nAnswer: 3": "1865",
    "Answer:\n\n  1865.": "1865",
    "**Answer:** 1865": "1865",
    "**Answer: 1865**": "1865",
    "**1865**.": "1865",
    '"Olympia"': "Olympia",
    '"A" and "B"': '"A" and "B"',
    "the U.S.": "the U.S.",
    "Sammy Davis Jr.": "Sammy Davis Jr.",
    "3.5.": "3.5",
    "No.": "No",
    "```\n1865\n```": "1865",
    "<think>\nAnswer: 3\n</think>\n\n1865": "1865",
    "[[1859 + 6]]": "[[1859 + 6]]",
    "Answer: Answer: 3": "Answer: 3",
}
LAST_MARKER = {
    "So.\nAnswer: 1865": "1865",
    "So.\nANSWER : 1865": "1865",
    "So.\nAnswer: 3\nNo, wait.\nAnswer: 1865": "1865",
    "So.\nAnswer: 1865\n\nPassages:\n\n[1] x\n\nQuestion: If?\nReasoning: y\nAnswer: 3": "1865",
    "Question: If?\nReasoning: y\nAnswer: 1865": "1865",
    "So.\n3. **Answer:** 1865": "1865",
    "So.\n- **Answer**: 1865": "1865",
    "So.\n### Answer: `1865`": "1865",
    "So.\n> *Answer: 1865.*": "1865",
    "So. **Answer:** 1865": "1865",
    "So. *answer*: 1865": "1865",
    "So it is 3. Answer: 1865": "1865",
    "So.\nAnswer: 3\nNo, wait. Answer: 1865": "1865",
    'Answer: 1865\nThat is the "factual" answer: 4': "1865",
    "Answer: 1865\nNote (from the passage) answer: it is 1900.": "1865",
    "So it is. Answer: 1865\n\nQuestion: If?\nAnswer: 3": "1865",
    "So (see 3) Answer:\n1865": "1865",
    "So.\n**Answer:**\n\n**1865**": "1865",
    "So.\r\nAnswer: 1865\r\n": "1865",
    "The answer: 3\nAnswer: 1865\nThat is the answer: 4": "1865",
    "So.\nAnswer: Sagittarius A*": "Sagittarius A*",
}


@pytest.mark.parametrize(
    ("prompt", "completions"), [("closed-book", FIRST_LINE), ("open-book-cot", LAST_MARKER)]
)
def test_the_answer_is_the_first_line_or_after_the_last_marker(prompt, completions):
    parsed = {completion: load_prompt(prompt).parse(completion) for completion in completions}
    assert parsed == {
        completion: ParsedAnswer(answer) for completion, answer in completions.items()
    }


def test_a_completion_without_an_answer_gives_a_problem():
    for prompt, completion, problem in [
        ("closed-book", "", "empty"),
        ("closed-book", "****", "empty"),
        ("genread-generate", "\n", "empty"),
        ("closed-book", "<think>It may", TRUNCATED),
        ("closed-book", "<think>It may</think>", "empty"),
        ("open-book-cot", " The canal was begun in 1859 and", "no line 'Answer:'"),
        ("open-book-cot", "So the answer: 1865", "no line 'Answer:'"),
        ("open-book-cot", "Answer: 3\nWait.\nAnswer:", "nothing after 'Answer:'"),
        ("counterfactual", "x\nAnswer:\nFactual answer: 3", "nothing after 'Answer:'"),
    ]:
        parsed = load_prompt(prompt).parse(completion)
        assert (parsed.answer, parsed.problem) == ("", problem)


def test_factual_answers_and_a_background_are_parsed():
    for prompt, completion, *expected in [
        ("counterfactual", " x\nFactual answer: 1869\nAnswer: 1865", "1865", "1869"),
        ("counterfactual", " x\n**Factual answer:** 1869.\n**Answer:** 1865.", "1865", "1869"),
        ("counterfactual", " x\nAnswer: 1865", "1865"),
        ("counterfactual", " x. Factual answer: 1869. Answer: 1865", "1865"),
        ("counterfactual", " x\nFactual answer: 1869\n", "", "1869", "no line 'Answer:'"),
        (
            "genread-generate",
            " The mill\nburned.\n\nIt stood.\n\nQuestion: If?\nBackground: x",
            "The mill burned. It stood.",
        ),
        ("genread-generate", "**Background:** The mill.\n", "The mill."),
    ]:
        answer, factual, problem = [*expected, "", ""][:3]
        wanted = ParsedAnswer(answer, factual, problem)
        assert load_prompt(prompt).parse(completion) == wanted


def test_a_prompt_for_json_has_a_schema_with_its_keys_and_the_choices():
    prompt = load_prompt("open-book-json")
    schema = json.loads(prompt.answer_schema())
    assert list(schema["properties"]) == schema["required"] == ["reasoning", "answer"]
    content = read_toml(ROOT / "prompts" / "multiple-choice.toml")
    content |= {
        "assistant": '{{"answer": "{answer}"}}',
        "parse": {"rule": "json", "answer": "answer"},
    }
    choosing = parse_prompt("mine", Path("mine.toml"), content)
    assert json.loads(choosing.answer_schema(["more", "less"]))["properties"]["answer"]["enum"] == [
        "more",
        "less",
    ]
    answers = [
        '{"answer": "B"}',
        '```json\n{"answer": "less"}\n```',
        '{"answer": 0}',
        '{"reasoning": "less"}',
        "[1]",
    ]
    assert [choosing.parse(text, ["more", "less"]).answer for text in answers] == [
        "less",
        "less",
        "",
        "",
        "",
    ]
    assert prompt.parse('{"reasoning": "two\\nlines", "answer": 0}').answer == "0"
    assert "cut off" in prompt.parse('{"reasoning": "so", "answ').problem
    with pytest.raises(IfqaError, match="wants JSON by a schema; wanted a server"):
        fit_prompt(prompt, "If?", MANY, Words())


def test_a_demonstration_without_the_prompts_steps_is_refused():
    [drawn] = draw_demos(Sample().questions("train"), 1, seed=0).demos
    load_prompt("open-book").render("If?", [], [drawn], True)
    for name, lacks in [("open-book-cot", "reasoning"), ("counterfactual", "fact")]:
        with refused(f"shows '{lacks}' of each demonstration"):
            load_prompt(name).render("If?", [], [drawn], True)


def test_the_samples_demonstrations_are_complete_training_questions():
    written = load_demos("sample")
    train = {question.text: question for question in Sample().questions("train")}
    assert (written.family, len(written.demos)) == (Sample().family("train"), 4)
    for demo in written.demos:
        assert demo.answer in train[demo.question].answers
        assert {passage.text for passage in demo.passages} & set(train[demo.question].gold_passages)
        assert set(demo.steps) == {"reasoning", "fact", "change", "world", "quote", "passage"}
        assert demo.factual != demo.answer


TRAIN = [
    Question(f"b/train/{n}", f"If {n}?", (f"{n}", "other"), (f"Passage {n}.",)) for n in range(50)
]


def test_drawn_demonstrations_depend_only_on_the_seed():
    four = draw_demos(TRAIN, 4, seed=1, family="b/full")
    assert four.family == "b/full"
    assert draw_demos(TRAIN[::-1], 8, seed=1).demos[:4] == four.demos
    assert draw_demos(TRAIN, 4, seed=2).demos != four.demos
    for demo in four.demos:
        assert (demo.question, demo.passages[0].text) == (
            f"If {demo.answer}?",
            f"Passage {demo.answer}.",
        )
    assert len({demo.question for demo in four.demos}) == 4
    multiple_choice = Question("q", "If?", ("less",), choices=("more", "less"), context="A text.")
    [demo] = draw_demos([multiple_choice], 1, 0).demos
    assert (demo.choices, [passage.text for passage in demo.passages]) == (
        ("more", "less"),
        ["A text."],
    )


def test_evaluated_questions_are_not_drawn():
    avoid = [f"IF  {n}?" for n in range(46)]
    assert {demo.answer for demo in draw_demos(TRAIN, 4, 0, avoid=avoid).demos} == {
        "46",
        "47",
        "48",
        "49",
    }
    with pytest.raises(IfqaError, match="wanted 5 demonstrations, found 4"):
        draw_demos(TRAIN, 5, 0, avoid=avoid)


HEAD = {"about": "x", "source": "y", "family": "b"}
DEMO = {"question": "If?", "answer": "2"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEAD], "wanted a first line"),
        ([{"about": "x"}, DEMO], "mine.jsonl:1: key 'family' is missing"),
        (
            [HEAD, DEMO | {"factaul": "3"}],
            "mine.jsonl:2: unknown key 'factaul'; did you mean 'factual'",
        ),
        ([HEAD, DEMO, {"question": "If?"}], "mine.jsonl:3: key 'answer' is missing"),
        (
            [HEAD, DEMO | {"steps": {"fact": 3}}],
            "'steps': wanted a text for each step's name, found {'fact': 3}",
        ),
        (
            [HEAD, DEMO | {"passages": [{"id": "1", "title": "x", "txt": "y"}]}],
            "did you mean 'text'",
        ),
        ([HEAD, DEMO | {"passages": ["y"]}], "passages: wanted an object, found 'y'"),
    ],
)
def test_a_wrong_file_of_demonstrations_is_refused_by_line(lines, message, tmp_path):
    write_jsonl(tmp_path / "prompts" / "demos" / "mine.jsonl", lines)
    with pytest.raises(IfqaError, match=re.escape(message)):
        load_demos("mine", tmp_path)


MANY = [Passage(str(n), f"T{n}", f"number{n} " * 50) for n in range(20)]


class Words(LanguageModel):
    """A model that counts words as tokens."""

    def __init__(self, chat=False, window=10**6):
        self.chat = chat
        self.window = window

    def count(self, text):
        return len(text.split())


@given(
    st.booleans(),
    st.integers(0, 1500),
    st.sampled_from(["best first", "best last"]),
    st.integers(0, 2),
)
def test_the_best_passages_are_added_until_the_next_does_not_fit(chat, room, order, n_demos):
    prompt = load_prompt("open-book")
    demos = load_demos("sample").demos[:n_demos]
    fitted = fit_prompt(
        prompt, QUESTIONS["mill"], MANY, Words(chat, room + prompt.max_tokens), demos, order
    )
    n = len(fitted.passages)
    if fitted.problem:
        assert (fitted.requests(), n, fitted.left_out) == ([], 0, 20)
        assert fitted.tokens > room
        assert str(room) in fitted.problem
        return
    [request] = fitted.requests()
    assert (list(fitted.passages), fitted.left_out) == (MANY[:n], 20 - n)
    texts = [text for _, text in request.messages]
    size = 40 + sum(8 + len(text.split()) for text in texts) if chat else len(request.text.split())
    assert fitted.tokens == size <= room
    shown = fitted.passages if order == "best first" else fitted.passages[::-1]
    assert (request.messages, request.text) == prompt.render(QUESTIONS["mill"], shown, demos, chat)
    assert (request.stop, request.max_tokens) == (() if chat else ("\n",), prompt.max_tokens)
    if n < 20:
        assert (
            fit_prompt(prompt, QUESTIONS["mill"], MANY[: n + 1], Words(chat), demos).tokens > room
        )


def test_a_closed_book_prompt_leaves_out_no_passage_and_is_requested_for_each_sample():
    fitted = fit_prompt(load_prompt("closed-book"), "If?", MANY, Words())
    assert (fitted.passages, fitted.left_out, fitted.problem) == ((), 0, "")
    requests = fitted.requests(0.7, 3)
    assert [(request.temperature, request.sample) for request in requests] == [
        (0.7, 0),
        (0.7, 1),
        (0.7, 2),
    ]
    assert len({replace(request, sample=0) for request in requests}) == 1


def test_an_answer_must_name_a_choice():
    parse = load_prompt("multiple-choice").parse
    choices = ["more", "less", "no effect"]
    for completion, choice in {
        "Answer: less": "less",
        "Answer: **B**": "less",
        "(C) No effect.": "no effect",
        "NO_EFFECT": "no effect",
        "a": "more",
        "more or less": "",
        "nothing": "",
        "(A) less": "",
        "D": "",
        "": "",
    }.items():
        parsed = parse(completion, choices)
        assert (parsed.answer, bool(parsed.problem)) == (choice, not choice)
    assert load_prompt("open-book").parse("Answer: B", choices).answer == "B", (
        "a prompt that shows none"
    )
    assert parse("B", ["B", "A"]).problem == "'B' is several of the choices"
    assert parse("(A) B", ["B", "A"]).answer == "B"
    with pytest.raises(IfqaError, match="shows choices, but the question 'If\\?' has none"):
        load_prompt("multiple-choice").render("If?", [], [], True)


if __name__ == "__main__":  # rewrites the golden texts; read them before you commit them
    for prompt in PROMPTS:
        for kind in QUESTIONS:
            for form in ("chat", "completion"):
                (GOLDEN / f"{prompt}.{form}.{kind}.txt").write_bytes(
                    rendered(prompt, kind, form == "chat").encode()
                )
