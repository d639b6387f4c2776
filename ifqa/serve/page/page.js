// The page: it sends a question, follows the events of its answer, and updates the address.

import { address, announcement, asMarkdown, make, renderAnswer, renderDraft, visible } from "./answer.js";

const byId = (id) => document.getElementById(id);
const form = byId("ask"), box = byId("question"), hint = byId("hint"), stop = byId("stop"), session = byId("session");
const progress = byId("progress"), problem = byId("problem"), place = byId("answer"), announcer = byId("said");
const leftOut = byId("left-out"), updates = byId("updates"), past = byId("history");
const KEYS = [...hint.childNodes], BROKEN = "The connection broke before the answer came.";
const EMPTY = "Type a question first, such as: If Ann had left, who would have closed the sluice?";

let about = { reader: {}, corpus: null, limits: {}, examples: [] };
let running = null; // the AbortController of the current question
let waiting = 0; // the timer of "ask again in N s"
let looking = 0; // the timer of the next look at the folder
let answers = []; // of this session, newest first
let recalled = -1; // the place in `answers` of the question that the arrow keys put into the box

// ---- Asking

/** A refused or failed request; status 0 if the server could not be reached. */
class Trouble extends Error {
  constructor(status, details, wait = 0) {
    super(details.detail || details.title || `The server answered ${status}.`);
    Object.assign(this, { status, wait, id: details.request_id || "" });
  }
}

/** A network promise: a failure becomes a `Trouble`, unless the question was withdrawn. */
const reached = (promise, detail) => promise.catch((failure) => {
  throw failure.name === "AbortError" ? failure : new Trouble(0, { detail });
});

async function send(path, body, accept, signal) {
  const headers = { Accept: accept };
  if (body) headers["Content-Type"] = "application/json";
  const request = fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  const reply = await reached(request, "The server cannot be reached.");
  if (reply.ok) return reply;
  const details = await reply.json().catch(() => ({}));
  throw new Trouble(reply.status, details, Number(reply.headers.get("Retry-After")) || 0);
}

const json = async (path, body) => (await send(path, body, "application/json")).json();

/** The events of a stream: [name, data], until it ends. */
async function* events(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reached(reader.read(), BROKEN);
    if (done) return;
    buffer += value;
    const blocks = buffer.split("\n\n");
    buffer = blocks.pop();
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
  const controller = (running = new AbortController());
  if (remember && new URLSearchParams(location.search).get("q") !== question) history.pushState(null, "", address(question));
  document.title = `${question} · ifqa`;
  document.body.classList.add("answered");
  rest();
  problem.replaceChildren();
  place.hidden = true;
  announcer.textContent = "";
  tell("Asking …");
  stop.hidden = false;
  let ended = false, draft = "";
  try {
    const reply = await send("/v1/ask", { question }, "text/event-stream", controller.signal);
    for await (const [event, data] of events(reply)) {
      if (controller !== running) return;
      if (event === "waiting") tell(data.ahead ? `${data.ahead === 1 ? "1 question is" : `${data.ahead} questions are`} ahead` : "Yours is next");
      else if (event === "reading") tell("Reading …");
      else if (event === "text") {
        draft = [...draft].slice(0, data.at).join("") + data.text;
        sketch(question, draft);
      } else if (event === "answer") {
        ended = true;
        show(data);
        keep(data);
      } else if (event === "problem") throw new Trouble(data.status, data);
    }
    if (!ended) throw new Trouble(0, { detail: BROKEN });
  } catch (trouble) {
    if (controller !== running || controller.signal.aborted) return;
    place.hidden = true;
    complain(trouble, question);
  } finally {
    if (controller === running) {
      running = null;
      stop.hidden = true;
      tell("");
      byId("examples").hidden = !about.examples.length;
      look();
    }
  }
}

/** Have the focus where the next question is typed, because the focused link or button may leave. */
function rest() {
  if (matchMedia("(pointer: coarse)").matches) box.blur(); // its keyboard would cover the answer
  else box.focus({ preventScroll: true });
}

function show(answer) {
  place.replaceChildren(...renderAnswer(answer, about, { retrieve, why, change, again: (question) => ask(question, false) }));
  reveal(answer.question);
  announcer.textContent = announcement(answer);
}

function tell(text) {
  if (progress.textContent !== text) progress.textContent = text;
  progress.hidden = !text;
}

/** Show the language model's text so far. */
function sketch(question, draft) {
  tell("");
  if (place.hidden || !place.querySelector(".draft")) {
    place.replaceChildren(...renderDraft(question, about.reader?.model, change));
    reveal(question);
  }
  place.querySelector(".draft").textContent = draft;
}

/** Show the answer with its question, and empty the box, unless it already holds another question. */
function reveal(question) {
  if (box.value.trim() === question) box.value = "";
  box.placeholder = "Ask another";
  place.hidden = false;
}

function change(question) {
  box.value = question;
  box.focus();
}

const why = async (question) => (await json("/v1/why", { question })).answers[0].ablations;
const retrieve = async (question) => (await json("/v1/retrieve", { question })).rankings[0];

const TITLES = { 503: "The queue is full", 504: "It took too long", 422: "This cannot be asked", 413: "This is too long" };

function complain(trouble, question) {
  if (!box.value) box.value = question;
  if (trouble.status === 401) return wantToken(() => ask(question, false));
  const again = make("button", { type: "button", class: "quiet" }, "Ask again");
  again.addEventListener("click", () => ask(question, false));
  const wait = (left) => {
    again.disabled = left > 0;
    again.textContent = left > 0 ? `Ask again in ${left} s` : "Ask again";
    if (left > 0) waiting = setTimeout(wait, 1000, left - 1);
  };
  wait(trouble.wait || 0);
  problem.replaceChildren(make("div", { class: "trouble" }, make("b", {}, TITLES[trouble.status] || "No answer came"),
    make("p", {}, trouble.message), trouble.id ? make("small", {}, `Request ${trouble.id}`) : null,
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
      byId("refused").textContent = trouble.message;
    }
  };
}

// ---- The form, the address, the collection

async function introduce() {
  try {
    about = await json("/v1/about");
  } catch (trouble) {
    if (trouble.status === 401) return wantToken(start);
    complain(trouble, box.value);
    throw trouble;
  }
  const folder = about.documents;
  const over = folder ? `${count(folder.files, "file")} in ${folder.name}`
    : about.corpus ? `${about.corpus.passages.toLocaleString("en")} passages of ${about.corpus.name}` : "no collection";
  byId("results").hidden = Boolean(folder);
  byId("folder").hidden = !folder;
  byId("about").textContent = `Ask what would be so if something had been otherwise. Answers come from ${over}.`;
  if (about.limits.question_characters) box.maxLength = about.limits.question_characters;
  list(byId("examples"), about.examples, (text) => {
    box.value = text;
    ask(text, true);
  });
}

const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** Fill a section with links to questions, which `open` follows. */
function list(section, questions, open) {
  section.querySelector("ul").replaceChildren(...questions.map((text) => {
    const link = make("a", { href: address(text) }, text);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // opens a new tab
      event.preventDefault();
      scrollTo({ top: 0 });
      open(text);
    });
    return make("li", {}, link);
  }));
  section.hidden = !questions.length;
}

/** Show what the folder's files are doing, until its index is up to date; the server looks at them again meanwhile. */
async function look() {
  clearTimeout(looking);
  if (!about.documents) return;
  const folder = await json("/v1/documents").catch(() => null);
  if (!folder) return;
  const at = folder.updated && new Date(folder.updated).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const news = folder.updating ? `updating: ${count(folder.changed || 0, "file")} changed` : folder.problem || (at ? `updated at ${at}` : "");
  if (updates.textContent !== news) updates.textContent = news;
  const files = folder.left_out, all = Math.max(files.length, files.length < 1000 ? 0 : about.documents.left_out); // the list is cut
  leftOut.hidden = !all;
  leftOut.querySelector("summary").textContent = `${count(all, "file")} ${all === 1 ? "was" : "were"} left out`;
  leftOut.querySelector("ul").replaceChildren(...files.map(({ file, reason, hint: mend }) =>
    make("li", {}, make("b", {}, visible(file)), `: ${reason}`, mend ? `; ${mend}` : null)));
  if (folder.updating) looking = setTimeout(look, 1000);
  else if (folder.files !== about.documents.files || about.documents.updating) introduce().catch(() => {});
}

// ---- The session's answers

function restore() {
  try {
    answers = JSON.parse(sessionStorage.getItem("ifqa")) || [];
  } catch {
    answers = []; // the browser stores nothing for this page
  }
  remind();
}

/** Keep an answer for this session; the oldest ones leave when the browser's room is full. */
function keep(answer) {
  answers = [answer, ...answers.filter((other) => other.question !== answer.question)];
  recalled = -1;
  remind();
  for (let kept = answers.length; kept; kept -= 1) {
    try {
      return sessionStorage.setItem("ifqa", JSON.stringify(answers.slice(0, kept)));
    } catch { /* try with one less */ }
  }
}

function remind() {
  list(past, answers.map((answer) => answer.question), (question) => {
    history.pushState(null, "", address(question));
    follow();
  });
}

byId("export").addEventListener("click", () => {
  const file = URL.createObjectURL(new Blob([asMarkdown([...answers].reverse())], { type: "text/markdown" }));
  make("a", { href: file, download: "answers.md" }).click();
  setTimeout(() => URL.revokeObjectURL(file), 60_000);
});

/** Show the address's question with its kept answer, ask it if there is none or it is `fresh`, or show the empty form. */
function follow(fresh = false) {
  const asked = new URLSearchParams(location.search).get("q"), question = (asked || "").trim();
  running?.abort();
  running = null;
  box.value = question;
  const kept = fresh ? null : answers.find((answer) => answer.question === question);
  if (question && !kept) return ask(question, false);
  document.title = kept ? `${question} · ifqa` : "ifqa";
  document.body.classList.toggle("answered", Boolean(kept));
  for (const node of [place, progress, stop]) node.hidden = true;
  problem.replaceChildren();
  if (kept) show(kept);
  if (asked !== null && !question) hint.replaceChildren(EMPTY);
  rest();
}

const start = () => introduce().then(() => {
  look();
  return follow(performance.getEntriesByType("navigation")[0]?.type !== "back_forward");
}, () => {});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const question = box.value.trim();
  if (question) return ask(question, true);
  hint.replaceChildren(EMPTY);
  box.focus();
});
box.addEventListener("keydown", (event) => {
  const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (!box.value) recalled = -1;
  if (step && (!box.value || box.value === answers[recalled]?.question) && recalled + step < answers.length && recalled + step > -2) {
    event.preventDefault();
    recalled += step;
    box.value = answers[recalled]?.question || "";
  }
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});
box.addEventListener("input", () => {
  const left = box.maxLength > 0 ? box.maxLength - box.value.length : Infinity;
  hint.replaceChildren(...(left < 200 ? [`${left} characters left`] : KEYS));
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
addEventListener("popstate", () => follow());
document.addEventListener("visibilitychange", () => document.hidden || look());
restore();
start();
