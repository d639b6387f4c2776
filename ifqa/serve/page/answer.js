// How an answer is shown. What comes from the server is only ever text: every node is made by `make`, which sets text and
// attributes and never markup. The shapes of answers are those of /openapi.json.

const LARGE = 40; // an answer of more characters is in smaller letters

/** An element with attributes and children; a child that is text stays text, and one that is empty is left out. */
export function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value) node.setAttribute(name, value);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

/** Pieces of a text, every second of them marked. */
const marked = (pieces, kind = "") => pieces.map((piece, n) => (n % 2 && piece ? make("mark", { class: kind }, piece) : piece));
const percent = (share) => `${Math.round(100 * share)}%`;
const seconds = (count) => `${count < 10 ? count.toFixed(1) : Math.round(count)} s`;

/** A bar of a share from 0 to 1; the number beside it says the same. */
function track(share) {
  const inner = make("span", {});
  inner.style.width = percent(Math.min(1, Math.max(0, share)));
  return make("span", { class: "track", "aria-hidden": "true" }, inner);
}

/**
 * The nodes of an answer.
 * `about` is what /v1/about gives, `retrieve` gets the ranking of a question, `change` is called with a question to change.
 */
export function drawn(answer, about, retrieve, change) {
  const told = [imagined(answer, about.reader?.abstains_below), inFact(answer)].filter(Boolean);
  return [
    asked(answer.question, answer.supposed ? marked(answer.supposed.pieces, "supposed") : answer.question, change),
    make("div", { class: told.length > 1 ? "worlds" : "worlds alone" }, told),
    evidence(answer),
    searches(answer),
    about.retriever === null ? null : ranking(answer, retrieve),
    foot(answer, about.reader?.model || about.reader?.name),
  ].filter(Boolean);
}

/** The nodes of a question that a language model is answering; its text goes into `.draft`. */
export function sketched(question, model, change) {
  return [asked(question, question, change), make("div", { class: "worlds alone" },
    make("section", { class: "world imagined" }, make("h3", {}, `${model || "The model"} is writing`), make("p", { class: "draft" })))];
}

/** The question above its answer, with a button that puts it back into the box. */
function asked(question, shown, change) {
  const button = make("button", { type: "button", class: "link" }, "Change");
  button.addEventListener("click", () => change(question));
  return make("div", { class: "asked" }, make("h2", {}, shown), button);
}

/** What a screen reader says of an answer. */
export function announced(answer) {
  const sure = answer.confidence === null ? "" : `, ${percent(answer.confidence)} sure`;
  if (answer.outcome === "answered") return `Answer: ${answer.answer}${sure}.`;
  if (answer.outcome === "abstained") return `No answer found in these passages. The best candidate is ${answer.candidate}${sure}.`;
  return `No answer: ${answer.error}`;
}

/** The answer in the world of the question; of an abstention the best candidate, of a failure the reason. */
function imagined(answer, least) {
  const title = make("h3", {}, answer.supposed ? "If it had been so" : "Answer");
  if (answer.outcome === "failed") {
    return make("section", { class: "world failed" }, title,
      make("p", { class: "big" }, "No answer"), make("p", { class: "why error" }, answer.error));
  }
  if (answer.outcome === "abstained") {
    return make("section", { class: "world abstained" }, title,
      make("p", { class: "big" }, "No answer found in these passages"),
      make("p", { class: "candidate" }, "The best candidate is ", make("b", {}, answer.candidate)), sure(answer),
      least ? make("p", { class: "why" }, `Below ${percent(least)}, no answer is given.`) : null);
  }
  const long = answer.answer.length > LARGE;
  return make("section", { class: "world imagined" }, title,
    make("p", { class: long ? "big long" : "big" }, answer.answer), sure(answer), sum(answer.how?.calculation));
}

function sure(answer) {
  if (answer.confidence === null) return null;
  return make("p", { class: "sure" }, track(answer.confidence), `${percent(answer.confidence)} sure`);
}

/** A computed answer as a sum: its terms below one another, the result below a line. */
function sum(calculation) {
  if (!calculation) return null;
  const signs = { plus: "+", minus: "−", times: "×" };
  const rule = calculation.rule ? calculation.rule.split(", ") : [];
  const counted = calculation.terms.length === 1 && !rule.length;
  const cells = calculation.terms.flatMap((term, n) => {
    const whence = term.text && term.text !== term.value ? `“${term.text}” in the ${term.source}` : `in the ${term.source}`;
    return [make("span", { class: "sign" }, n ? signs[rule[n - 1]] || rule[n - 1] : ""),
      make("span", { class: "value" }, counted ? "" : term.value),
      make("span", { class: "whence" }, counted ? `counted: ${term.text}` : term.text ? whence : `by the ${term.source}, unsaid`)];
  });
  return make("div", { class: "sum", role: "group", "aria-label": "How it was computed" }, cells,
    make("span", { class: "sign result" }, "="), make("span", { class: "value result" }, calculation.result),
    make("span", { class: "whence result" }));
}

/** What is so: the answer in the real world if the reader gives it, and the sentence that the answer comes from. */
function inFact(answer) {
  if (!answer.factual && !answer.how) return null;
  const source = answer.how && answer.evidence.find((one) => one.id === answer.how.passage_id);
  return make("section", { class: "world" }, make("h3", {}, "In fact"),
    answer.factual ? make("p", { class: "fact" }, answer.factual) : null,
    answer.how ? make("blockquote", { class: "quote" }, marked(answer.how.pieces)) : null,
    source ? make("p", { class: "cite" }, source.title || source.id) : null);
}

// ---- What it was read from

function evidence(answer) {
  if (!answer.evidence.length) return null;
  const first = answer.evidence.find((one) => one.id === answer.how?.passage_id) || answer.evidence[0];
  const others = answer.evidence.filter((one) => one !== first);
  const more = others.length === 1 ? "1 more passage was read" : `${others.length} more passages were read`;
  return make("section", { class: "part" }, make("h3", {}, answer.how ? "Source" : "What was read"),
    passage(first, answer.how),
    others.length ? make("details", {}, make("summary", {}, more), others.map((one) => passage(one, null))) : null);
}

function passage(one, how) {
  return make("div", { class: "passage" },
    make("h4", {}, one.title || null, make("span", { class: "source" }, one.id)),
    make("p", {}, how?.passage_id === one.id ? withSentence(one.pieces, how.sentence) : marked(one.pieces)));
}

/** A passage's pieces with its sentence from `start` to `end`, in Unicode characters, in a span of its own. */
function withSentence(pieces, [start, end]) {
  const parts = [[], [], []]; // before the sentence, in it, after it
  let at = 0;
  pieces.forEach((piece, n) => {
    const characters = Array.from(piece);
    [[0, start], [start, end], [end, Infinity]].forEach(([from, to], which) => {
      const text = characters.slice(Math.max(from - at, 0), Math.max(to - at, 0)).join("");
      if (text) parts[which].push(n % 2 ? make("mark", {}, text) : text);
    });
    at += characters.length;
  });
  return [...parts[0], make("span", { class: "sentence" }, parts[1]), ...parts[2]];
}

/** The searches of a retriever that searches several times, each with what it found first of what was read. */
function searches(answer) {
  if (!answer.steps?.length) return null;
  const steps = answer.steps.map((step) => {
    const read = answer.evidence.filter((one) => step.passage_ids.includes(one.id)).map((one) => one.title || one.id);
    const found = step.passage_ids.length === 1 ? "1 new passage" : `${step.passage_ids.length} new passages`;
    return make("li", {}, step.query, make("span", { class: "source" }, ` · ${found}`), read.length ? make("p", {}, `Read: ${read.join("; ")}`) : null);
  });
  const title = steps.length === 1 ? "1 search" : `${steps.length} searches`;
  return make("section", { class: "part" }, make("details", {}, make("summary", {}, title), make("ol", { class: "searches" }, steps)));
}

/** The ranking, asked for when it is unfolded. */
function ranking(answer, retrieve) {
  const list = make("ol", { class: "ranking" }), note = make("p", { class: "why", role: "status" });
  const node = make("details", {}, make("summary", {}, "The ranking, with scores"), note, list);
  const read = new Set(answer.evidence.map((one) => one.id));
  let asked = false;
  node.addEventListener("toggle", async () => {
    if (!node.open || asked) return;
    asked = true;
    note.textContent = "Searching …";
    try {
      list.replaceChildren(...ranks((await retrieve(answer.question)).passages, read));
      note.textContent = "";
    } catch (trouble) {
      asked = false; // unfolding it again asks again
      note.textContent = trouble.message;
    }
  });
  return make("section", { class: "part" }, node);
}

function ranks(passages, read) {
  const scores = passages.map((one) => one.score), least = Math.min(0, ...scores), most = Math.max(...scores);
  return passages.map((one) => make("li", {}, make("details", {},
    make("summary", {}, make("span", { class: "rank" }, String(one.rank)),
      make("span", {}, one.title || one.id, read.has(one.id) ? make("span", { class: "read" }, " · read") : null),
      track(most > least ? (one.score - least) / (most - least) : 1),
      make("span", { class: "score" }, one.score.toFixed(Math.abs(one.score) < 10 ? 2 : 1))),
    make("p", {}, one.text, " ", make("span", { class: "source" }, one.id)))));
}

function foot(answer, reader) {
  const link = make("a", { href: address(answer.question) }, "Link to this question");
  return make("p", { class: "foot" }, link, make("span", {}, seconds(answer.seconds)),
    reader ? make("span", {}, reader) : null);
}

/** The address that asks a question again. */
export const address = (question) => `/?q=${encodeURIComponent(question)}`;
