"use strict";
// The question browser of the page: search, filter, read. `make` creates every node from text and attributes, never from
// markup, so no text can become code. question_browser.py explains the short keys of the data.
(() => {
  const source = document.getElementById("data");
  if (!source) return;
  const splits = JSON.parse(source.textContent).splits;
  const STEP = 20;
  const byId = (id) => document.getElementById(id);
  const tools = { split: byId("split"), search: byId("search"), show: byId("show"), sort: byId("sort") };
  const status = byId("status"), list = byId("list"), more = byId("more"), all = byId("all");
  let split = splits[0], matches = [], shown = 0, single = "", timer = 0;

  /** An element with attributes and children; strings become text nodes, null children are left out. */
  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value) node.setAttribute(name, value);
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  }

  /** A text in pieces, every second piece highlighted. */
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

  /** The text that the search looks through, cached. */
  function haystack(question) {
    if (question.hay === undefined) {
      const texts = [question.id, whole(question.q), ...question.a, ...question.e.map((entry) => entry.a || "")];
      question.hay = plain(texts.join("\n"));
    }
    return question.hay;
  }

  // The first measure is the headline: an answer with its best score is right.
  const score = (entry, n) => (entry.m && entry.m[n] !== null ? entry.m[n] : undefined);
  const scored = (question) => question.e.filter((entry) => score(entry, 0) !== undefined);
  const isRight = (entry) => score(entry, 0) === split.measures[0]?.best;

  /** How much the experiments disagree on a question, by all measures but the headline; the headline breaks ties. */
  function disagreement(question) {
    const ranges = split.measures.map((_, n) => {
      const scores = question.e.map((entry) => score(entry, n)).filter((value) => value !== undefined);
      return scores.length ? Math.max(...scores) - Math.min(...scores) : 0;
    });
    return ranges.slice(1).reduce((sum, range) => sum + range, 0) + (ranges[0] || 0) / 1000;
  }

  function missed(question, name) {
    const entry = question.e.find(({ x }) => split.experiments[x].name === name);
    return Boolean(entry && question.g.length && !entry.g);
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
    const subset = split.subsets.findIndex((part) => part.name === name);
    const within = value.startsWith("in:") ? (question) => question.n.includes(subset) : (question) => missed(question, name);
    const wanted = shows[value] || within;
    const isMatch = (question) => wanted(question) && words.every((word) => haystack(question).includes(word));
    matches = split.questions.filter(single ? (question) => question.id === single : isMatch);
    if (!single && tools.sort.value === "apart") {
      const ranges = new Map(matches.map((question) => [question, disagreement(question)]));
      matches.sort((a, b) => ranges.get(b) - ranges.get(a));
    }
    shown = 0;
    list.replaceChildren();
    showMore();
  }

  function showMore() {
    list.append(...matches.slice(shown, shown + STEP).map(card));
    shown = Math.min(shown + STEP, matches.length);
    const left = matches.length - shown;
    more.hidden = left === 0;
    more.textContent = `Show ${Math.min(left, STEP)} more`;
    all.hidden = !single;
    const total = count(split.questions.length, "question");
    const some = matches.length === split.questions.length ? total : `${matches.length.toLocaleString("en")} of ${total}`;
    if (single && !matches.length) status.textContent = `There is no question ${single} here.`;
    else if (!matches.length) status.textContent = `None of ${total} matches.`;
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
      answers(question), reads, golds);
  }

  function answers(question) {
    const hasAnswers = split.experiments.some((experiment) => experiment.answers);
    const hasRanks = split.experiments.some((experiment) => experiment.deep) && question.g.length;
    const measures = split.measures.map((measure) => measure.name);
    const head = ["experiment", ...(hasAnswers ? ["answer", ...measures] : []), ...(hasRanks ? ["gold at rank"] : [])];
    const numbers = [...measures, "gold at rank"];
    const rows = question.e.map((entry) => {
      const experiment = split.experiments[entry.x];
      const cells = [make("th", { scope: "row", title: experiment.about },
        make("span", { class: "letter" }, letter(entry.x)), " ", experiment.name)];
      const scores = split.measures.map((measure, n) => number(score(entry, n), measure.digits));
      if (hasAnswers) cells.push(answerCell(entry, experiment), ...scores);
      if (hasRanks) cells.push(goldRank(entry, experiment));
      return make("tr", { class: isRight(entry) ? "right" : "" }, cells);
    });
    const columns = head.map((text) => make("th", { scope: "col", class: numbers.includes(text) ? "number" : "" }, text));
    return make("div", { class: "scroll answers", tabindex: "0", role: "region", "aria-label": `answers to ${question.id}` },
      make("table", {}, make("thead", {}, make("tr", {}, columns)), make("tbody", {}, rows)));
  }

  function answerCell(entry, experiment) {
    const text = entry.a || make("span", { class: "none" }, experiment.answers ? "no answer" : "retrieval only");
    return make("td", { class: "said" }, text,
      entry.n ? make("small", {}, `abstained: ${entry.n}`) : null,
      entry.b ? make("small", {}, `${entry.n ? "" : "abstained; "}best candidate: ${entry.b}`) : null,
      entry.s ? make("small", {}, `confidence ${entry.s}`) : null,
      entry.f ? make("small", {}, `in fact: ${entry.f}`) : null,
      entry.h ? make("small", {}, entry.h) : null,
      entry.v ? make("small", { class: entry.u ? "doubt" : "" }, `${entry.q ? `quote: “${entry.q}” ` : ""}(${entry.v})`) : null,
      entry.d ? make("small", {}, `change: ${entry.d}`) : null,
      (entry.k || []).map((step, n) => make("small", {}, `step ${n + 1}: ${step}`)),
      entry.w ? make("small", {}, marked(entry.w, isRight(entry) ? "answer" : "wrong"), entry.o ? ` (${entry.o})` : null) : null,
      entry.r ? make("small", { class: "error" }, entry.r) : null);
  }

  const number = (value, digits) => make("td", { class: "number" }, value === undefined ? "" : value.toFixed(digits));

  function goldRank(entry, experiment) {
    const bound = entry.c ? `≤ ${entry.c}` : experiment.deep ? `> ${experiment.deep}` : "–";
    return make("td", { class: "number" }, entry.g ? String(entry.g) : bound);
  }

  /** A `details` that is filled when it is first opened. */
  function folded(title, fill) {
    const node = make("details", {}, make("summary", {}, title));
    node.addEventListener("toggle", () => { if (node.open && node.children.length === 1) node.append(...fill()); });
    return node;
  }

  function passages(question) {
    const readers = question.p.map((_, n) =>
      question.e.filter((entry) => entry.p && entry.p.includes(n)).map((entry) => [entry.x, entry.p.indexOf(n) + 1]));
    const order = question.p.map((_, n) => n);
    const best = readers.map((pairs) => Math.min(...pairs.map(([, rank]) => rank)));
    order.sort((a, b) => best[a] - best[b] || readers[b].length - readers[a].length || a - b);
    return folded(`Passages (${question.p.length})`, () => order.map((n) => {
      const passage = question.p[n];
      const chips = readers[n].map(([x, rank]) => make("span", { title: `${split.experiments[x].name}, rank ${rank}` },
        make("b", {}, letter(x)), make("span", { class: "visually-hidden" }, ` (${split.experiments[x].name}) at rank`), ` ${rank}`));
      const searched = question.e.filter((entry) => entry.y && entry.y.includes(n)).map(({ x }) =>
        make("span", { title: `${split.experiments[x].name} searched for it` }, make("b", {}, letter(x)), " searched"));
      return make("div", { class: passage.g ? "passage covers" : "passage" },
        make("div", { class: "source" }, passage.t ? make("b", {}, passage.t) : null, make("code", {}, passage.i),
          passage.g ? make("span", { class: "gold" }, "gold") : null, make("span", { class: "readers" }, chips, searched)),
        make("p", { class: "text" }, marked(passage.x, "answer")));
    }));
  }

  function goldPassages(question) {
    return folded(`Gold passages (${question.g.length})`, () => question.g.map((text) =>
      make("div", { class: "passage covers" }, make("p", { class: "text" }, marked(text, "answer")))));
  }

  // The address holds the search, so that it can be shared: #q=ID, or #split=…&search=…&show=…&sort=….
  // A hash without "=" is a heading of the page.

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

  /** Update the address after a pause: browsers throttle pages that change it with every key stroke. */
  function keepAddress() {
    clearTimeout(timer);
    const before = location.hash;
    // If a link was followed meanwhile, its address stays; the hashchange event comes later.
    timer = setTimeout(() => location.hash === before && history.replaceState(null, "", address()), 250);
  }

  function follow() {
    clearTimeout(timer);
    if (!location.hash.includes("=")) {
      if (single) { single = ""; filter(); }
      return;
    }
    const params = new URLSearchParams(location.hash.slice(1).replace(/\+/g, "%2B"));
    single = params.get("q") || "";
    const hasSingle = (part) => part.questions.some((question) => question.id === single);
    const isNamed = (part) => part.name === params.get("split");
    choose(splits.find(single ? hasSingle : isNamed) || splits[0]);
    if (!single) {
      tools.search.value = params.get("search") || "";
      pick(tools.show, params.get("show"));
      pick(tools.sort, params.get("sort"));
    }
    filter();
    byId("questions").scrollIntoView();
  }

  /** Select an option by its value; the first option if there is none. */
  function pick(select, value) {
    select.value = value || "";
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  }

  /** Show a split, with its subsets and experiments among the filters. */
  function choose(chosen) {
    split = chosen;
    tools.split.value = split.name;
    const before = tools.show.value;
    tools.show.querySelectorAll("optgroup").forEach((group) => group.remove());
    const subsets = split.subsets.map((subset) => make("option", { value: `in:${subset.name}` }, subset.name));
    if (subsets.length) tools.show.append(make("optgroup", { label: "questions" }, subsets));
    const options = split.experiments.flatMap((experiment) =>
      experiment.read ? [make("option", { value: `not:${experiment.name}` }, experiment.name)] : []);
    if (options.length) tools.show.append(make("optgroup", { label: "no gold passage for" }, options));
    pick(tools.show, before);
  }

  function change() {
    single = "";
    filter();
    keepAddress();
  }

  tools.split.append(...splits.map((part) => make("option", { value: part.name }, part.name)));
  tools.split.addEventListener("change", () => {
    choose(splits.find((part) => part.name === tools.split.value));
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
