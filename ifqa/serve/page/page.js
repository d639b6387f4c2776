// The page to ask on. What comes from the server is only ever text: every node is made by `make`, which sets text and
// attributes and never markup. The shapes of requests and answers are those of /openapi.json.

const byId = (id) => document.getElementById(id);
const form = byId("ask"), box = byId("question"), hint = byId("hint"), stop = byId("stop"), session = byId("session");
const progress = byId("progress"), problem = byId("problem"), place = byId("answer"), said = byId("said");
const PLAIN = hint.innerText, NARROW = 160; // characters of an answer in large letters

let about = { reader: {}, corpus: null, limits: {}, examples: [] };
let running = null; // the AbortController of the question that is being asked
let waiting = 0; // the timer of "ask again in N s"

/** An element with attributes and children; a child that is text stays text, and one that is empty is left out. */
function make(tag, attributes, ...children) {
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

// ---- An answer

function draw(answer) {
  const told = [imagined(answer), inFact(answer)].filter(Boolean);
  place.replaceChildren(...[
    make("h2", { class: "asked" }, answer.supposed ? marked(answer.supposed.pieces, "supposed") : answer.question),
    make("div", { class: told.length > 1 ? "worlds" : "worlds alone" }, told),
    evidence(answer),
    about.retriever === null ? null : ranking(answer),
    foot(answer),
  ].filter(Boolean));
  place.hidden = false;
  said.textContent = announced(answer);
}

function announced(answer) {
  const sure = answer.confidence === null ? "" : `, ${percent(answer.confidence)} sure`;
  if (answer.outcome === "answered") return `Answer: ${answer.answer}${sure}.`;
  if (answer.outcome === "abstained") return `No answer found in these passages. The best candidate is ${answer.candidate}${sure}.`;
  return `No answer: ${answer.error}`;
}

/** The answer in the world of the question; of an abstention the best candidate, of a failure the reason. */
function imagined(answer) {
  const title = make("h2", {}, answer.supposed ? "If it had been so" : "Answer");
  if (answer.outcome === "failed") {
    return make("section", { class: "world failed" }, title,
      make("p", { class: "big" }, "No answer"), make("p", { class: "why error" }, answer.error));
  }
  if (answer.outcome === "abstained") {
    const least = about.reader?.abstains_below;
    return make("section", { class: "world abstained" }, title,
      make("p", { class: "big" }, "No answer found in these passages"),
      make("p", { class: "candidate" }, "The best candidate is ", make("b", {}, answer.candidate)), sure(answer),
      least ? make("p", { class: "why" }, `Below ${percent(least)}, no answer is given.`) : null);
  }
  const long = answer.answer.length > NARROW / 4;
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
  return make("section", { class: "world" }, make("h2", {}, "In fact"),
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
  return make("section", { class: "part" }, make("h2", {}, answer.how ? "Where it stands" : "What was read"),
    passage(first, answer.how),
    others.length ? make("details", {}, make("summary", {}, more), others.map((one) => passage(one, null))) : null);
}

function passage(one, how) {
  return make("div", { class: "passage" },
    make("h3", {}, one.title || null, make("span", { class: "source" }, one.id)),
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

/** The ranking, asked for when it is unfolded. */
function ranking(answer) {
  const list = make("ol", { class: "ranking" }), note = make("p", { class: "why", role: "status" });
  const node = make("details", {}, make("summary", {}, "The ranking, with scores"), note, list);
  const read = new Set(answer.evidence.map((one) => one.id));
  let asked = false;
  node.addEventListener("toggle", async () => {
    if (!node.open || asked) return;
    asked = true;
    note.textContent = "Searching …";
    try {
      const found = await json("/v1/retrieve", { question: answer.question });
      list.replaceChildren(...ranks(found.rankings[0].passages, read));
      note.textContent = "";
    } catch (trouble) {
      asked = false; // unfolding it again asks again
      note.textContent = plain(trouble);
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

function foot(answer) {
  const link = make("a", { href: address(answer.question) }, "Link to this question");
  return make("p", { class: "foot" }, link, make("span", {}, seconds(answer.seconds)),
    make("span", {}, about.reader?.model || about.reader?.name || ""));
}

// ---- Asking

const address = (question) => `/?q=${encodeURIComponent(question)}`;

/** What the server says against a request, or that it could not be reached. */
class Trouble extends Error {
  constructor(status, told, wait = 0) {
    super(told.detail || told.title || `The server answered ${status}.`);
    Object.assign(this, { status, wait, id: told.request_id || "", errors: told.errors || [] });
  }
}

const plain = (trouble) => (trouble instanceof Trouble ? trouble.message : "The server cannot be reached.");

async function send(path, body, accept, signal) {
  const headers = { Accept: accept };
  if (body) headers["Content-Type"] = "application/json";
  const reply = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  if (reply.ok) return reply;
  const told = await reply.json().catch(() => ({}));
  throw new Trouble(reply.status, told, Number(reply.headers.get("Retry-After")) || 0);
}

const json = async (path, body) => (await send(path, body, "application/json")).json();

/** The events of a stream: [name, data], until it ends. */
async function* events(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    kept += value;
    const blocks = kept.split("\n\n");
    kept = blocks.pop();
    for (const block of blocks) {
      const fields = block.split("\n").filter((line) => !line.startsWith(":")).map((line) => line.split(/: ?(.*)/s));
      const { event, data } = Object.fromEntries(fields);
      if (event) yield [event, JSON.parse(data)];
    }
  }
}

async function ask(question, remember) {
  running?.abort();
  clearTimeout(waiting);
  const own = (running = new AbortController());
  if (remember && address(question) !== location.pathname + location.search) history.pushState(null, "", address(question));
  document.title = `${question} · ifqa`;
  document.body.classList.add("answered");
  problem.replaceChildren();
  place.hidden = true;
  said.textContent = "";
  tell("Asking …");
  stop.hidden = false;
  let ended = false, draft = "";
  try {
    const reply = await send("/v1/ask", { question }, "text/event-stream", own.signal);
    for await (const [event, data] of events(reply)) {
      if (own !== running) return;
      if (event === "waiting") tell(data.ahead ? `${data.ahead === 1 ? "1 question is" : `${data.ahead} questions are`} ahead` : "Yours is next");
      else if (event === "reading") tell("Reading …");
      else if (event === "text") {
        draft = [...draft].slice(0, data.at).join("") + data.text;
        sketch(question, draft);
      } else if (event === "answer") {
        ended = true;
        draw(data);
      } else if (event === "problem") throw new Trouble(data.status, data);
    }
    if (!ended) throw new Trouble(0, { detail: "The connection broke before the answer came." });
  } catch (trouble) {
    if (own !== running || own.signal.aborted) return;
    place.hidden = true;
    complain(trouble, question);
  } finally {
    if (own === running) {
      running = null;
      stop.hidden = true;
      tell("");
      byId("examples").hidden = !about.examples.length;
    }
  }
}

function tell(text) {
  if (progress.textContent !== text) progress.textContent = text;
  progress.hidden = !text;
}

/** The text of a language model while it is written. */
function sketch(question, draft) {
  tell("");
  if (place.hidden || !place.querySelector(".draft")) {
    place.replaceChildren(make("h2", { class: "asked" }, question), make("div", { class: "worlds alone" },
      make("section", { class: "world imagined" }, make("h2", {}, `${about.reader?.model || "The model"} is writing`), make("p", { class: "draft" }))));
    place.hidden = false;
  }
  place.querySelector(".draft").textContent = draft;
}

const TITLES = { 503: "The queue is full", 504: "It took too long", 422: "This cannot be asked", 413: "This is too long" };

function complain(trouble, question) {
  if (trouble.status === 401) return wantToken(() => ask(question, false));
  const more = (trouble.errors || []).map((one) => make("p", {}, `${one.where}: ${one.what}`));
  const again = make("button", { type: "button", class: "quiet" }, "Ask again");
  again.addEventListener("click", () => ask(question, false));
  const wait = (left) => {
    again.disabled = left > 0;
    again.textContent = left > 0 ? `Ask again in ${left} s` : "Ask again";
    if (left > 0) waiting = setTimeout(wait, 1000, left - 1);
  };
  wait(trouble.wait || 0);
  problem.replaceChildren(make("div", { class: "trouble" }, make("b", {}, TITLES[trouble.status] || "No answer came"),
    make("p", {}, plain(trouble)), more, trouble.id ? make("small", {}, `Request ${trouble.id}`) : null,
    trouble.status === 422 ? null : make("div", {}, again)));
}

/** Ask for the token, once; the browser keeps it in a cookie that no script reads. */
function wantToken(then) {
  session.hidden = false;
  byId("token").focus();
  session.onsubmit = async (event) => {
    event.preventDefault();
    try {
      await send("/v1/session", { token: byId("token").value }, "application/json");
      byId("token").value = "";
      session.hidden = true;
      then();
    } catch (trouble) {
      byId("refused").textContent = plain(trouble);
    }
  };
}

// ---- The form, the address, what is searched

async function introduce() {
  try {
    about = await json("/v1/about");
  } catch (trouble) {
    if (trouble.status === 401) return wantToken(start);
    complain(trouble, box.value);
    throw trouble;
  }
  const over = about.corpus ? `${about.corpus.passages.toLocaleString("en")} passages of ${about.corpus.name}` : "no collection";
  byId("about").textContent = `Ask what would be so if something had been otherwise. Answers come from ${over}.`;
  if (about.limits.question_characters) box.maxLength = about.limits.question_characters;
  byId("examples").querySelector("ul").replaceChildren(...about.examples.map((text) => {
    const link = make("a", { href: address(text) }, text);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own
      event.preventDefault();
      box.value = text;
      scrollTo({ top: 0 });
      ask(text, true);
    });
    return make("li", {}, link);
  }));
  byId("examples").hidden = !about.examples.length;
}

/** Ask what the address asks, or show the empty form. */
function follow() {
  const question = (new URLSearchParams(location.search).get("q") || "").trim();
  running?.abort();
  running = null;
  box.value = question;
  if (question) return ask(question, false);
  document.title = "ifqa";
  document.body.classList.remove("answered");
  for (const node of [place, progress, stop]) node.hidden = true;
  problem.replaceChildren();
  box.focus();
}

const start = () => introduce().then(follow, () => {});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const question = box.value.trim();
  if (question) ask(question, true);
});
box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});
box.addEventListener("input", () => {
  const left = box.maxLength > 0 ? box.maxLength - box.value.length : Infinity;
  hint.textContent = left < 200 ? `${left} characters left` : PLAIN;
});
stop.addEventListener("click", () => {
  running?.abort();
  running = null;
  stop.hidden = true;
  tell("");
  box.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
  event.preventDefault();
  box.focus();
  box.select();
});
addEventListener("popstate", follow);
start();
