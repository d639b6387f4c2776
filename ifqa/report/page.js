"use strict";
// The questions of the page, to search, filter and read. What a text holds is only ever text: every node is made by
// `make`, which sets text and attributes and never markup. question_browser.py says what the data's short keys mean.
(() => {
  const source = document.getElementById("data");
  if (!source) return;
  const splits = JSON.parse(source.textContent).splits;
  const STEP = 20;
  const byId = (id) => document.getElementById(id);
  const tools = { split: byId("split"), search: byId("search"), show: byId("show"), sort: byId("sort") };
  const status = byId("status"), list = byId("list"), more = byId("more"), all = byId("all");
  let split = splits[0], found = [], shown = 0, single = "", waiting = 0;

  /** An element with attributes and children; a child that is text stays text, and one that is null is left out. */
  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value) node.setAttribute(name, value);
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  }

  /** A text in pieces, every second of them marked. */
  function marked(pieces, kind) {
    if (typeof pieces === "string") return [pieces];
    return pieces.map((piece, n) => (n % 2 ? make("mark", { class: kind }, piece) : piece));
  }

  const whole = (pieces) => (typeof pieces === "string" ? pieces : pieces.join(""));
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  function letter(number) {
    const last = String.fromCharCode(65 + (number % 26));
    return number < 26 ? last : letter(Math.floor(number / 26) - 1) + last;
  }

  /** All that the search looks through, made once for a question. */
  function haystack(question) {
    if (question.hay === undefined) {
      const texts = [question.id, whole(question.q), ...question.a, ...question.e.map((one) => one.a || "")];
      question.hay = plain(texts.join("\n"));
    }
    return question.hay;
  }

  // The first of the measures is the headline: an answer is right that scores best by it.
  const score = (one, n) => (one.m && one.m[n] !== null ? one.m[n] : undefined);
  const scored = (question) => question.e.filter((one) => score(one, 0) !== undefined);
  const isRight = (one) => score(one, 0) === split.measures[0]?.best;

  /** How far experiments are apart on a question: in the measures beside the headline, and where that is equal in it. */
  function apart(question) {
    const ranges = split.measures.map((_, n) => {
      const values = question.e.map((one) => score(one, n)).filter((value) => value !== undefined);
      return values.length ? Math.max(...values) - Math.min(...values) : 0;
    });
    return ranges.slice(1).reduce((sum, range) => sum + range, 0) + (ranges[0] || 0) / 1000;
  }

  function missed(question, name) {
    const one = question.e.find((entry) => split.experiments[entry.x].name === name);
    return Boolean(one && question.g.length && !one.g);
  }

  const shows = {
    all: () => true,
    right: (question) => scored(question).length > 0 && scored(question).every(isRight),
    differ: (question) => scored(question).some(isRight) && !scored(question).every(isRight),
    wrong: (question) => scored(question).length > 0 && !scored(question).some(isRight),
  };

  function filter() {
    const words = plain(tools.search.value).split(/\s+/).filter(Boolean);
    const value = tools.show.value;
    const name = value.slice(value.indexOf(":") + 1);
    const of = split.subsets.findIndex((one) => one.name === name);
    const within = value.startsWith("in:") ? (question) => question.n.includes(of) : (question) => missed(question, name);
    const wanted = shows[value] || within;
    if (single) found = split.questions.filter((question) => question.id === single);
    else found = split.questions.filter((one) => wanted(one) && words.every((word) => haystack(one).includes(word)));
    if (!single && tools.sort.value === "apart") {
      const far = new Map(found.map((question) => [question, apart(question)]));
      found.sort((a, b) => far.get(b) - far.get(a));
    }
    shown = 0;
    list.replaceChildren();
    showMore();
  }

  function showMore() {
    list.append(...found.slice(shown, shown + STEP).map(card));
    shown = Math.min(shown + STEP, found.length);
    const left = found.length - shown;
    more.hidden = left === 0;
    more.textContent = `Show ${Math.min(left, STEP)} more`;
    all.hidden = !single;
    const total = count(split.questions.length, "question");
    const some = found.length === split.questions.length ? total : `${found.length.toLocaleString("en")} of ${total}`;
    if (single && !found.length) status.textContent = `There is no question ${single} here.`;
    else if (!found.length) status.textContent = `None of ${total} is like that.`;
    else status.textContent = `${some}${left ? `, the first ${shown} below` : ""}.`;
  }

  function card(question) {
    const right = scored(question).filter(isRight).length;
    const tally = scored(question).length ? `${right} of ${scored(question).length} right` : null;
    const wanted = question.a.flatMap((answer, n) => (n ? [" or ", make("b", {}, answer)] : [make("b", {}, answer)]));
    const reads = question.p.length ? passages(question) : null;
    const golds = question.g.length ? goldPassages(question) : null;
    const link = make("a", { href: `#q=${escapeHash(question.id)}`, title: "A link to this question" }, question.id);
    return make("article", { class: "card" },
      make("p", { class: "where" }, link,
        question.n.map((n) => (split.subsets[n].told ? make("span", {}, split.subsets[n].name) : null)),
        tally ? make("span", {}, tally) : null),
      make("h3", {}, marked(question.q, "supposed")),
      make("p", { class: "wanted" }, make("span", {}, "Wanted "), ...wanted),
      answers(question), searches(question), reads, golds);
  }

  function answers(question) {
    const reading = split.experiments.some((one) => one.answers);
    const finding = split.experiments.some((one) => one.deep) && question.g.length;
    const measures = split.measures.map((one) => one.name);
    const head = ["experiment", ...(reading ? ["answer", ...measures] : []), ...(finding ? ["gold at rank"] : [])];
    const numbers = [...measures, "gold at rank"];
    const rows = question.e.map((one) => {
      const about = split.experiments[one.x];
      const cells = [make("th", { scope: "row", title: about.about },
        make("span", { class: "letter" }, letter(one.x)), " ", about.name)];
      if (reading) cells.push(said(one, about), ...split.measures.map((of, n) => number(score(one, n), of.digits)));
      if (finding) cells.push(goldRank(one, about));
      return make("tr", { class: isRight(one) ? "right" : "" }, cells);
    });
    const columns = head.map((text) => make("th", { scope: "col", class: numbers.includes(text) ? "number" : "" }, text));
    return make("div", { class: "scroll answers", tabindex: "0", role: "region", "aria-label": `answers to ${question.id}` },
      make("table", {}, make("thead", {}, make("tr", {}, columns)), make("tbody", {}, rows)));
  }

  function said(one, about) {
    const text = one.a || make("span", { class: "none" }, about.answers ? "no answer" : "retrieval only");
    return make("td", { class: "said" }, text,
      one.b ? make("small", {}, `abstained; best candidate: ${one.b}`) : null,
      one.s ? make("small", {}, `confidence ${one.s}`) : null,
      one.f ? make("small", {}, `in fact: ${one.f}`) : null,
      one.h ? make("small", {}, one.h) : null,
      one.w ? make("small", {}, marked(one.w, isRight(one) ? "answer" : "wrong")) : null,
      one.r ? make("small", { class: "error" }, one.r) : null);
  }

  const number = (value, digits) => make("td", { class: "number" }, value === undefined ? "" : value.toFixed(digits));

  function goldRank(one, about) {
    const text = one.g ? String(one.g) : one.c ? `≤ ${one.c}` : about.deep ? `> ${about.deep}` : "–";
    return make("td", { class: "number" }, text);
  }

  /** A `details` that is filled when it is first opened. */
  function folded(title, fill) {
    const node = make("details", {}, make("summary", {}, title));
    node.addEventListener("toggle", () => { if (node.open && node.children.length === 1) node.append(...fill()); });
    return node;
  }

  /** The searches of experiments that search several times, each with what it found first of what was read. */
  function searches(question) {
    const several = question.e.filter((one) => one.u);
    if (!several.length) return null;
    return folded("Searches", () => several.map((one) => make("div", { class: "passage" },
      make("div", { class: "source" }, make("b", {}, `${letter(one.x)} ${split.experiments[one.x].name}`)),
      make("ol", {}, one.u.map(([query, found, read]) => {
        const names = read.map((n) => question.p[n].t || question.p[n].i).join("; ");
        return make("li", {}, query, make("small", {}, ` · ${count(found, "new passage")}${names ? `, read: ${names}` : ""}`));
      })))));
  }

  function passages(question) {
    const readers = question.p.map((_, n) =>
      question.e.filter((one) => one.p && one.p.includes(n)).map((one) => [one.x, one.p.indexOf(n) + 1]));
    const order = question.p.map((_, n) => n);
    const best = readers.map((some) => Math.min(...some.map(([, rank]) => rank)));
    order.sort((a, b) => best[a] - best[b] || readers[b].length - readers[a].length || a - b);
    return folded(`Passages (${question.p.length})`, () => order.map((n) => {
      const one = question.p[n];
      const chips = readers[n].map(([x, rank]) => make("span", { title: `${split.experiments[x].name}, rank ${rank}` },
        make("b", {}, letter(x)), make("span", { class: "visually-hidden" }, ` (${split.experiments[x].name}) at rank`), ` ${rank}`));
      return make("div", { class: one.g ? "passage covers" : "passage" },
        make("div", { class: "source" }, one.t ? make("b", {}, one.t) : null, make("code", {}, one.i),
          one.g ? make("span", { class: "gold" }, "gold") : null, make("span", { class: "readers" }, chips)),
        make("p", { class: "text" }, marked(one.x, "answer")));
    }));
  }

  function goldPassages(question) {
    return folded(`Gold passages (${question.g.length})`, () => question.g.map((text) =>
      make("div", { class: "passage covers" }, make("p", { class: "text" }, marked(text, "answer")))));
  }

  // The address holds what is asked for, so that it can be sent on: #q=ID, or #split=…&search=…&show=…&sort=….
  // A hash without "=" is one of the page's own headings.

  const escapeHash = (text) => encodeURIComponent(text).replace(/%2F/g, "/");

  function address() {
    const parts = [];
    if (single) return `#q=${escapeHash(single)}`;
    if (split !== splits[0]) parts.push(["split", split.name]);
    if (tools.search.value.trim()) parts.push(["search", tools.search.value.trim()]);
    if (tools.show.value !== "all") parts.push(["show", tools.show.value]);
    if (tools.sort.value !== "file") parts.push(["sort", tools.sort.value]);
    return `#${parts.map(([key, value]) => `${key}=${escapeHash(value)}`).join("&") || "questions"}`;
  }

  /** Browsers slow a page down that changes its address at every key. */
  function keepAddress() {
    clearTimeout(waiting);
    const before = location.hash;
    // A link that was followed meanwhile has set an address of its own, which the page has yet to hear of.
    waiting = setTimeout(() => location.hash === before && history.replaceState(null, "", address()), 250);
  }

  function follow() {
    clearTimeout(waiting);
    if (!location.hash.includes("=")) {
      if (single) { single = ""; filter(); }
      return;
    }
    const asked = new URLSearchParams(location.hash.slice(1).replace(/\+/g, "%2B"));
    single = asked.get("q") || "";
    const isHome = (one) => (single ? one.questions.some((question) => question.id === single) : one.name === asked.get("split"));
    choose(splits.find(isHome) || splits[0]);
    if (!single) {
      tools.search.value = asked.get("search") || "";
      pick(tools.show, asked.get("show"));
      pick(tools.sort, asked.get("sort"));
    }
    filter();
    byId("questions").scrollIntoView();
  }

  /** Set a choice; the first one where there is none of that name. */
  function pick(select, value) {
    select.value = value || "";
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  }

  /** Take up a split: its name, and its subsets and experiments among the filters. */
  function choose(one) {
    split = one;
    tools.split.value = split.name;
    const kept = tools.show.value;
    tools.show.querySelectorAll("optgroup").forEach((group) => group.remove());
    const subsets = split.subsets.map((of) => make("option", { value: `in:${of.name}` }, of.name));
    if (subsets.length) tools.show.append(make("optgroup", { label: "questions" }, subsets));
    const options = split.experiments.flatMap((about) =>
      about.read ? [make("option", { value: `not:${about.name}` }, about.name)] : []);
    if (options.length) tools.show.append(make("optgroup", { label: "no gold passage for" }, options));
    pick(tools.show, kept);
  }

  function change() {
    single = "";
    filter();
    keepAddress();
  }

  tools.split.append(...splits.map((one) => make("option", { value: one.name }, one.name)));
  tools.split.addEventListener("change", () => {
    choose(splits.find((one) => one.name === tools.split.value));
    change();
  });
  tools.search.addEventListener("input", change);
  tools.show.addEventListener("change", change);
  tools.sort.addEventListener("change", change);
  more.addEventListener("click", showMore);
  all.addEventListener("click", change);
  window.addEventListener("hashchange", follow);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    tools.search.focus();
    tools.search.select();
  });
  byId("browser").hidden = false;
  choose(splits[0]);
  filter();
  follow();
})();
