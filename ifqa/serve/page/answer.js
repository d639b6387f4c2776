// Renders an answer. Text from the server stays text: `make` creates every node, and sets text and attributes, never markup.
// /openapi.json describes the answers.

const LARGE = 40; // longer answers are in smaller letters

/** An element with attributes and children; empty children are left out. */
export function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value) node.setAttribute(name, value);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

/** Pieces of a text, every second piece marked. */
const marked = (pieces, kind = "") => pieces.map((piece, n) => (n % 2 && piece ? make("mark", { class: kind }, piece) : piece));
const percent = (share) => `${Math.round(100 * share)}%`;
const seconds = (count) => `${count < 10 ? count.toFixed(1) : Math.round(count)} s`;

/** A bar for a share from 0 to 1; the number beside it is for screen readers. */
function track(share) {
  const inner = make("span", {});
  inner.style.width = percent(Math.min(1, Math.max(0, share)));
  return make("span", { class: "track", "aria-hidden": "true" }, inner);
}

/**
 * The nodes of an answer.
 * `about` is the response of /v1/about, `retrieve` and `why` fetch a question's ranking and its ablations, `change` lets the user edit a question, `again` asks it.
 */
export function renderAnswer(answer, about, { retrieve, why, change, again }) {
  const worlds = [imagined(answer, answer.note ? null : about.reader), inFact(answer)].filter(Boolean);
  return [
    questionBlock(answer.question, answer.supposed ? marked(answer.supposed.pieces, "supposed") : answer.question, change),
    answer.note ? make("p", { class: "why", role: "note" }, answer.note) : null,
    make("div", { class: worlds.length > 1 ? "worlds" : "worlds alone" }, worlds),
    steps(answer),
    evidence(answer),
    about.retriever === null || about.reader?.searches || answer.outcome !== "answered" ? null : ablations(answer, why),
    about.retriever === null ? null : ranking(answer, retrieve),
    foot(answer, about.reader?.model || about.reader?.name, again),
  ].filter(Boolean);
}

/** The nodes of a question that a language model is answering; its text goes into `.draft`. */
export function renderDraft(question, model, change) {
  return [questionBlock(question, question, change), make("div", { class: "worlds alone" },
    make("section", { class: "world imagined" }, make("h3", {}, `${model || "The model"} is writing; nothing is checked yet`),
      make("p", { class: "draft" })))];
}

function textButton(label, action) {
  const button = make("button", { type: "button", class: "link" }, label);
  button.addEventListener("click", () => action(button));
  return button;
}

/** The question above its answer, with a button that puts it back into the box. */
function questionBlock(question, shown, change) {
  return make("div", { class: "asked" }, make("h2", {}, shown), textButton("Change", () => change(question)));
}

const NOT_FOUND = "No answer found in these passages";
const UNSURE = "Not sure enough of an answer";

/** The announcement of an answer for screen readers. */
export function announcement(answer) {
  const sure = answer.confidence === null ? "" : `, ${percent(answer.confidence)} sure`;
  const best = answer.candidate ? ` The best candidate is ${answer.candidate}${sure}.` : "";
  const doubt = isFound(answer.quote) ? "" : ` The model’s quote is ${answer.quote.text.trim() ? answer.quote.verdict : "empty"}.`;
  if (answer.outcome === "answered") return `Answer: ${answer.answer}${sure}.${doubt}`;
  if (answer.outcome === "abstained" && !answer.candidate && !answer.abstention) return `No answer. ${answer.note}`;
  if (answer.outcome === "abstained" && !answer.abstention) return `${UNSURE}.${best}`;
  if (answer.outcome === "abstained") return `${NOT_FOUND}: ${answer.abstention}.${best}`;
  return `No answer: ${answer.error}`;
}

/** Whether a quote stands in the passages as one piece, or none was asked for. */
const isFound = (quote) => !quote || quote.outcome === "exact" || quote.outcome === "other passage";

/** The answer in the world of the question; of an abstention the best candidate, of a failure the reason. */
function imagined(answer, reader) {
  const title = make("h3", {}, supposes(answer) ? "If it had been so" : "Answer");
  if (answer.outcome === "failed") {
    return make("section", { class: "world failed" }, title,
      make("p", { class: "big" }, "No answer"), make("p", { class: "why error" }, answer.error));
  }
  if (answer.outcome === "abstained" && !answer.candidate && !answer.abstention) {
    return make("section", { class: "world abstained" }, title, make("p", { class: "big" }, "No answer"));
  }
  if (answer.outcome === "abstained") {
    const best = answer.candidate ? make("p", { class: "candidate" }, "The best candidate is ", make("b", {}, answer.candidate)) : null;
    return make("section", { class: "world abstained" }, title,
      make("p", { class: "big" }, answer.abstention ? NOT_FOUND : UNSURE), best, sure(answer),
      make("p", { class: "why" }, refusal(answer, reader)));
  }
  const long = answer.answer.length > LARGE;
  return make("section", { class: "world imagined" }, title,
    make("p", { class: long ? "big long" : "big" }, answer.answer), sure(answer), uncalibrated(answer),
    sum(answer.how?.calculation), changed(answer));
}

const capitalised = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** Why the reader gives no answer; empty if it does not say. */
function refusal(answer, reader) {
  if (answer.answerable !== null && answer.answerable < reader?.answerable_threshold) {
    return `That a passage has the answer is ${percent(answer.answerable)} likely; below ${percent(reader.answerable_threshold)}, none is given.`;
  }
  if (answer.abstention) return `${capitalised(answer.abstention)}.`;
  return reader?.abstains_below ? `Below ${percent(reader.abstains_below)}, no answer is given.` : "";
}

function sure(answer) {
  if (answer.confidence === null) return null;
  return make("p", { class: "sure" }, track(answer.confidence), `${percent(answer.confidence)} sure`);
}

/** Why an answer has no percentage, with the command that fits one. */
function uncalibrated(answer) {
  if (!answer.uncalibrated || answer.confidence !== null) return null;
  const [, why, command] = answer.uncalibrated.match(/^(.*?)(ifqa train .*)?$/s);
  return make("p", { class: "why uncalibrated" }, capitalised(why), command ? make("code", {}, command) : null);
}

/** What the supposition changes, as a language model says. */
function changed(answer) {
  if (!answer.change) return null;
  return make("p", { class: "change" }, make("b", {}, "What changes, says the model:"), " ", make("span", {}, visible(answer.change)));
}

/** What a language model did before it answered: its searches and computations. */
function steps(answer) {
  const count = answer.steps?.length;
  if (!count) return null;
  const title = count === 1 ? "1 step before the answer" : `${count} steps before the answer`;
  return make("section", { class: "part" }, make("details", {}, make("summary", {}, title),
    make("ol", { class: "steps" }, answer.steps.map((step) => make("li", {}, visible(step.line))))));
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

/** Whether an answer supposes something: then its evidence tells what is so in fact. */
const supposes = (answer) => Boolean(answer.supposed) && answer.outcome === "answered";

/** The answer in the real world, if the question supposes another and the reader gives it. */
function inFact(answer) {
  if (!answer.factual || !supposes(answer)) return null;
  return make("section", { class: "world" }, make("h3", {}, "In fact"), make("p", { class: "fact" }, answer.factual));
}

// ---- The evidence

const supporting = (answer) => answer.evidence.find((passage) => passage.id === answer.how?.passage_id);
const nameOf = (passage) => (passage.source ? visible(passage.source.text) : passage.title || passage.id);

/** A text with its marks of writing direction made visible: a file's name could show another ending, a quote other words. */
export const visible = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** A document's file and place as a link to the text there, and a link to the original; of any other passage its id. */
function place({ id, source }) {
  if (!source) return [make("span", { class: "source" }, id)];
  const text = visible(source.text), label = `original of ${text}`;
  return [make("a", { class: "source", href: source.url }, text),
    source.original ? make("a", { class: "source", href: source.original, "aria-label": label }, "original") : null];
}

function evidence(answer) {
  const doubt = warning(answer.quote);
  if (!answer.evidence.length) return doubt && make("section", { class: "part" }, doubt);
  const first = supporting(answer) || answer.evidence[0];
  const byId = new Map(answer.evidence.map((passage) => [passage.id, passage]));
  const quoted = (answer.quote?.places || []).map((each) => byId.get(each.passage_id)).filter(Boolean);
  const shown = [...new Set(answer.quote?.outcome === "stitched" && quoted.length ? quoted : [first, ...quoted])];
  const others = answer.evidence.filter((passage) => !shown.includes(passage));
  const more = others.length === 1 ? "1 more passage was read" : `${others.length} more passages were read`;
  return make("section", { class: "part" }, doubt, make("h3", {}, evidenceTitle(answer)),
    shown.map((passage) => passageBlock(passage, answer.how, answer.quote)),
    others.length ? make("details", {}, make("summary", {}, more), others.map((other) => passageBlock(other, null, null))) : null);
}

/** A quote that is no evidence as it stands: it is shown as the model's words, apart from the passages. */
function warning(quote) {
  if (isFound(quote)) return null;
  const isStitched = quote.outcome === "stitched";
  if (!quote.text.trim()) return make("div", { class: "doubt", role: "note" }, make("b", {}, "The model quotes nothing"));
  const title = isStitched ? `The model’s quote is ${quote.verdict}` : `The model’s quote is ${quote.verdict}: do not take it for evidence`;
  const parts = isStitched ? `Its ${quote.places.length} parts are marked below.` : null;
  return make("div", { class: isStitched ? "doubt stitched" : "doubt missing", role: "note" }, make("b", {}, title),
    make("blockquote", {}, `“${visible(quote.text)}”`), parts ? make("p", { class: "why" }, parts) : null);
}

/** Who found the sentence of a passage, and whether a model quoted it from there. */
function origin(passage, how, quote) {
  if (how?.origin === "found afterwards" && how.passage_id === passage.id) return "Found afterwards for the model’s answer: the model did not quote it.";
  if (!quote?.places.some((each) => each.passage_id === passage.id)) return null;
  return quote.outcome === "stitched" ? null : `Quoted by the model; ${quote.verdict}.`;
}

/** What the passages are to an answer: the facts behind a supposition, its source, or only what was read. */
function evidenceTitle(answer) {
  if (!answer.how || answer.outcome !== "answered") return "What was read";
  return supposes(answer) && !answer.factual ? "In fact" : "Source";
}

function passageBlock(passage, how, quote) {
  const title = passage.source ? passage.title.split(" › ").slice(1).join(" › ") : passage.title; // the source names the file
  const isSource = how?.passage_id === passage.id;
  const parts = quote?.outcome === "stitched" ? quote.places.filter((each) => each.passage_id === passage.id) : [];
  const whole = isSource ? withSentence(passage.pieces, how.sentence) : marked(passage.pieces);
  const told = origin(passage, how, quote);
  return make("div", { class: "passage" }, make("h4", {}, title || null, place(passage)),
    make("p", {}, parts.length ? withParts(passage.pieces, parts, quote.places) : whole),
    told ? make("p", { class: "why origin" }, told) : null,
    isSource ? (how.pictures || []).map((picture) => pageImage(picture, passage.source)) : null);
}

/** A passage's pieces with each part of a stitched quote marked and numbered, in the order of the quote. */
function withParts(pieces, parts, places) {
  let at = 0;
  return pieces.flatMap((piece, n) => {
    const start = at;
    at += Array.from(piece).length;
    if (n % 2 === 0) return [piece];
    const number = 1 + places.indexOf(parts.find((part) => part.start === start));
    return [make("span", { class: "visually-hidden" }, ` (part ${number} of ${places.length} of the quote:) `),
      make("mark", { class: "stitched" }, piece, make("sup", { "aria-hidden": "true" }, String(number))),
      make("span", { class: "visually-hidden" }, " (end of the part) ")];
  });
}

/** A page of a PDF with the sentence marked; it leads to the page in the file, and leaves if it cannot be drawn. */
function pageImage({ page, text, url }, source) {
  const image = make("img", { src: url, loading: "lazy", alt: `Page ${page} as it looks, with the sentence marked: ${visible(text)}` });
  const link = make("a", { class: "page", href: source.original.replace(/#page=\d+$/, `#page=${page}`) }, image);
  image.addEventListener("error", () => link.remove());
  return link;
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

/** The ranking, fetched when it is unfolded. */
function ranking(answer, retrieve) {
  const read = new Set(answer.evidence.map((passage) => passage.id));
  return unfolded("The ranking, with scores", "Searching …", "ranking", async () => ranks((await retrieve(answer.question)).passages, read));
}

/** What the answer becomes without each passage and each sentence, fetched when it is unfolded. */
function ablations(answer, why) {
  return unfolded("Why this answer: what it becomes without each source", "Reading again …", "ablations", async () =>
    (await why(answer.question)).map(({ passage, sentence, answer: text, confidence, same }) => make("li", { class: same ? "" : "changed" },
      make("span", { class: "left" }, sentence ? `Without “${sentence}”` : `Without ${nameOf(passage)}`),
      make("span", { class: "becomes" }, same ? "the same answer" : text || "no answer", text && confidence !== null ? ` · ${percent(confidence)}` : null))));
}

/** A list that is fetched when it is unfolded. */
function unfolded(title, waiting, kind, items) {
  const list = make("ol", { class: kind }), note = make("p", { class: "why", role: "status" });
  const node = make("details", {}, make("summary", {}, title), note, list);
  let requested = false;
  node.addEventListener("toggle", async () => {
    if (!node.open || requested) return;
    requested = true;
    note.textContent = waiting;
    try {
      list.replaceChildren(...(await items()));
      note.textContent = "";
    } catch (trouble) {
      requested = false; // unfolding it again tries again
      note.textContent = trouble.message;
    }
  });
  return make("section", { class: "part" }, node);
}

function ranks(passages, read) {
  const scores = passages.map((passage) => passage.score), least = Math.min(0, ...scores), most = Math.max(...scores);
  return passages.map((passage) => make("li", {}, make("details", {},
    make("summary", {}, make("span", { class: "rank" }, String(passage.rank)),
      make("span", {}, nameOf(passage), read.has(passage.id) ? make("span", { class: "read" }, " · read") : null),
      track(most > least ? (passage.score - least) / (most - least) : 1),
      make("span", { class: "score" }, passage.score.toFixed(Math.abs(passage.score) < 10 ? 2 : 1))),
    make("p", {}, passage.text, " ", place(passage)))));
}

function foot(answer, reader, again) {
  const link = make("a", { href: address(answer.question) }, "Link to this question");
  const copied = async (button) => { button.textContent = (await copy(asText(answer))) ? "Copied" : "Copying failed"; };
  return make("p", { class: "foot" }, link, textButton("Copy", copied), textButton("Ask again", () => again(answer.question)),
    make("span", {}, seconds(answer.seconds)), reader ? make("span", {}, reader) : null);
}

// ---- An answer as text

/** Copy a text; the fallback is for a page over plain HTTP. */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const fill = (event) => { event.clipboardData.setData("text/plain", text); event.preventDefault(); };
  document.addEventListener("copy", fill, { once: true });
  return document.execCommand("copy");
}

/** The lines of an answer below its question: [label, text]. */
function lines(answer) {
  const sure = answer.confidence === null ? "" : ` (${percent(answer.confidence)} sure)`;
  const best = answer.candidate ? `; the best candidate is ${answer.candidate}${sure}` : "";
  const because = answer.abstention ? `: ${answer.abstention}` : "";
  const outcome = { answered: answer.answer + sure, abstained: best || because ? `not found${because}${best}` : "none" };
  const first = supporting(answer) || answer.evidence[0];
  return [["Answer", outcome[answer.outcome] || `none: ${answer.error}`], ["Note", answer.note], ["Computed", answer.how?.calculation?.line], ["In fact", supposes(answer) && answer.factual],
    ["Confidence", answer.outcome === "answered" && answer.uncalibrated], ["Quote", quoteLine(answer.quote)], ["Change", answer.change],
    ["Steps", (answer.steps || []).map((step) => step.line).join("; ")],
    [answer.how?.origin === "found afterwards" ? "Sentence (found afterwards)" : "Sentence", answer.how?.pieces.join("")], ["Source", first && nameOf(first)]].filter(([, text]) => text);
}

function quoteLine(quote) {
  if (!quote) return "";
  return quote.text.trim() ? `“${quote.text}” (${quote.verdict})` : quote.verdict;
}

const asText = (answer) => [answer.question, ...lines(answer).map(([label, text]) => `${label}: ${text}`)].join("\n");

/** Answers as Markdown; nothing in them is markup. */
export function asMarkdown(answers) {
  const plain = (text) => text.replace(/\s+/g, " ").replace(/[\\`*_{}[\]<>#|~&!]/g, "\\$&");
  const rows = (answer) => lines(answer).map(([label, text]) => `- ${label}: ${plain(text)}\n`).join("");
  return answers.map((answer) => `## ${plain(answer.question)}\n\n${rows(answer)}`).join("\n");
}

/** The address of a question. */
export const address = (question) => `/?q=${encodeURIComponent(question)}`;
