"use strict";
/* The report's behaviour. Foreign text only ever becomes text nodes and property values, never markup. */
(() => {
  const at = (id) => document.getElementById(id);
  const DATA = JSON.parse(at("index").textContent);
  const BLOCKS = Array.from(document.getElementsByClassName("block"));
  const N = DATA.ids.length;
  const CANNOT_TELL = DATA.reasons.indexOf("n/a: the judge cannot tell");
  /* The labels of a judge are one column of texts, which its slice filter offers, too; not a column of 0 and 1 for each. */
  const LABELS = new Map(), FILTERS = new Map();
  for (const [judge, parts] of Object.entries(DATA.labels || {})) {
    const columnsOf = parts.map(([name]) => DATA.scores[name]);
    if (columnsOf.some((values) => values === undefined) || judge in DATA.scores) continue;
    const place = (row) => {
      if (typeof columnsOf[0][row] === "number") return columnsOf.findIndex((values) => values[row] === 1);
      return CANNOT_TELL >= 0 && columnsOf[0][row] === String(CANNOT_TELL) ? parts.length : columnsOf[0][row];
    };
    const values = DATA.ids.map((_, row) => place(row));
    const replaced = new Set(parts.map(([name]) => name));
    DATA.scores = Object.fromEntries(Object.entries(DATA.scores).flatMap(([name, found]) => (name === parts[0][0] ? [[judge, values]] : replaced.has(name) ? [] : [[name, found]])));
    LABELS.set(judge, [...parts.map(([, label]) => label), ...(values.includes(parts.length) ? ["cannot tell"] : [])]);
    FILTERS.set(judge in DATA.dimensions ? `${judge} (judge)` : judge, judge);
  }
  /* So is a judge of yes and no; criteria, and what passes, are only called so. */
  const WORDS = new Map(Object.entries(DATA.words || {}));
  for (const [judge, words] of WORDS) {
    if (!(judge in DATA.scales) || !(judge in DATA.scores)) continue;
    const values = DATA.scores[judge].map((value) => (CANNOT_TELL >= 0 && value === String(CANNOT_TELL) ? words.length : value));
    DATA.scores[judge] = values;
    LABELS.set(judge, [...words, ...(values.includes(words.length) ? ["cannot tell"] : [])]);
    FILTERS.set(judge in DATA.dimensions ? `${judge} (judge)` : judge, judge);
  }
  for (const [name, judge] of FILTERS) DATA.dimensions[name] = { values: LABELS.get(judge), of: DATA.scores[judge].map((value) => (typeof value === "number" ? [value] : [])) };
  const NAMES = Object.keys(DATA.scores), ORDER = Object.keys(DATA.scales);
  let ROW = 56;
  const FAILED = DATA.reasons.map((reason) => !reason.startsWith("n/a"));
  /* What cases are ranked by: the judges whose scale has a better end, else the scores that the table opens with. */
  const ranked = (names) => names.filter((name) => name in DATA.scores && DATA.tints[name] && DATA.tints[name][2]);
  const RANKED = ranked(ORDER).length ? ranked(ORDER) : ranked(DATA.opened);
  /* From 0, the worst end of a scale, to 1; null if it has no better end, or the case has no number. */
  function goodness(name, value) {
    const [low, high, better] = DATA.tints[name] || [];
    if (!better || typeof value !== "number") return null;
    const share = Math.min(1, Math.max(0, (value - low) / (high - low)));
    return better > 0 ? share : 1 - share;
  }
  const WORST = RANKED.length ? DATA.ids.map((_, row) => {
    let sum = 0, n = 0;
    for (const name of RANKED) { const good = goodness(name, DATA.scores[name][row]); if (good !== null) { sum += good; n += 1; } }
    return n ? sum / n : null;
  }) : null;
  const view = { rows: [], sort: WORST ? "worst" : null, down: false, active: 0, columns: DATA.opened.filter((name) => name in DATA.scores) };

  /* Elements */
  function make(tag, props, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(props || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "class") node.className = value;
      else if (key === "on") for (const [name, action] of Object.entries(value)) node.addEventListener(name, action);
      else node.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
    return node;
  }
  const code = (text) => make("code", {}, text);
  const foldable = (name) => name.split(/(?<=[_@.])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part]));
  const shown = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(3));
  const count = (n) => n.toLocaleString("en");

  function cell(name, row) {
    const value = DATA.scores[name][row];
    if (typeof value === "number") {
      const good = goodness(name, value);
      return { text: (LABELS.get(name) || WORDS.get(name) || [])[value] || shown(value), kind: good === null ? "" : `tint-${Math.round(good * 4)}` };
    }
    if (value === null) return { text: "", kind: "na", title: "no such score" };
    const reason = DATA.reasons[value];
    return FAILED[value] ? { text: "failed", kind: "bad-text", title: reason } : { text: "n/a", kind: "na", title: reason };
  }

  /* Filters */
  const HAY = [];
  function hay(row) {
    if (HAY[row] === undefined) HAY[row] = `${DATA.ids[row]}\n${DATA.questions[row]}\n${DATA.answers[row] || ""}`.toLowerCase();
    return HAY[row];
  }
  function option(value, text) {
    return make("option", { value }, text);
  }
  function fillFilters() {
    for (const [name, labels] of Object.entries(DATA.dimensions)) {
      const box = make("select", { "data-dimension": name }, option("", "any"));
      const order = labels.values.map((_, place) => place).sort((a, b) => (labels.values[a] < labels.values[b] ? -1 : 1));
      for (const place of order) box.append(option(place, labels.values[place]));
      at("slice-filters").append(make("label", {}, name, box));
    }
    const failure = at("failure");
    failure.append(option("", "any"), option("none", "none"), option("some", "any failure"));
    DATA.failures.values.forEach((kind, place) => failure.append(option(place, kind)));
    for (const [key, text] of [...(WORST ? [["worst", "worst first"]] : []), ["", "order of the file"], ["id", "case"], ["question", "question"], ...NAMES.map((name) => [name, name])]) at("sort").append(option(key, text));
    at("more-filters").open = matchMedia("(min-width: 40rem)").matches;
    at("score").append(option("", "any"));
    for (const name of NAMES) if (!LABELS.has(name)) at("score").append(option(name, name));
    for (const name of NAMES) {
      const box = make("input", { type: "checkbox", value: name });
      box.checked = view.columns.includes(name);
      at("columns").append(make("label", {}, box, make("span", {}, name)));
    }
  }
  function conditions() {
    const tests = [];
    const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) tests.push((row) => words.every((word) => hay(row).includes(word)));
    for (const box of at("slice-filters").querySelectorAll("select")) {
      if (box.value === "") continue;
      const of = DATA.dimensions[box.dataset.dimension].of;
      const place = Number(box.value);
      tests.push((row) => of[row].includes(place));
    }
    const failure = at("failure").value;
    if (failure === "none") tests.push((row) => DATA.failures.of[row].length === 0);
    else if (failure === "some") tests.push((row) => DATA.failures.of[row].length > 0);
    else if (failure !== "") tests.push((row) => DATA.failures.of[row].includes(Number(failure)));
    const name = at("score").value;
    if (name !== "") {
      const test = condition(at("condition").value, at("limit").value);
      if (test) tests.push((row) => test(DATA.scores[name][row]));
    }
    return tests;
  }
  function condition(kind, text) {
    if (kind === "na") return (value) => typeof value === "string" && !FAILED[value];
    if (kind === "failed") return (value) => typeof value === "string" && FAILED[value];
    if (text.trim() === "" || Number.isNaN(Number(text))) return null;
    const limit = Number(text);
    if (kind === "le") return (value) => typeof value === "number" && value <= limit + 1e-9;
    if (kind === "ge") return (value) => typeof value === "number" && value >= limit - 1e-9;
    return (value) => typeof value === "number" && Math.abs(value - limit) < 5e-5;
  }
  function filter() {
    const tests = conditions();
    const rows = [];
    for (let row = 0; row < N; row += 1) if (tests.every((test) => test(row))) rows.push(row);
    view.rows = rows;
    sort();
    at("limit").disabled = ["na", "failed"].includes(at("condition").value);
    at("count").textContent = rows.length === N ? `${count(N)} cases` : `${count(rows.length)} of ${count(N)} cases`;
    view.active = 0;
    if (box) box.scrollTop = 0;
    draw();
  }
  function sort() {
    const key = view.sort;
    at("sort").value = key || "";
    if (key === null) { view.rows.sort((a, b) => a - b); return; }
    const direction = view.down ? -1 : 1;
    if (["id", "question"].includes(key)) {
      const texts = key === "id" ? DATA.ids : DATA.questions;
      view.rows.sort((a, b) => (texts[a] < texts[b] ? -direction : texts[a] > texts[b] ? direction : a - b));
      return;
    }
    /* What has no number stands last in both directions: failures first, then what does not apply. */
    const values = key === "worst" ? WORST : DATA.scores[key];
    const rank = (value) => (typeof value === "number" ? 0 : value !== null && FAILED[value] ? 1 : 2);
    view.rows.sort((a, b) => rank(values[a]) - rank(values[b]) || (rank(values[a]) === 0 ? direction * (values[a] - values[b]) : 0) || a - b);
  }

  /* The table: only the rows in sight are in the document. */
  let box = null, body = null, table = null, head = null;
  function buildTable() {
    box = at("table");
    head = make("tr", { "aria-rowindex": "1", role: "row" });
    body = make("tbody");
    table = make("table", { role: "grid", "aria-label": "Cases", "aria-readonly": "true" }, make("thead", {}, head), body);
    box.replaceChildren(table);
    box.addEventListener("scroll", () => requestAnimationFrame(() => draw()), { passive: true });
    body.addEventListener("click", (event) => {
      const line = event.target.closest("tr[data-row]");
      if (line) { view.active = Number(line.dataset.row); open(view.active); }
    });
    table.addEventListener("keydown", onTableKey);
    buildHead();
  }
  function columns() {
    return [["id", "case", 150], ["question", "question and answer", 420], ...view.columns.map((name) => [name, name, 116])];
  }
  function buildHead() {
    const shownColumns = columns();
    head.replaceChildren(...shownColumns.map(([key, label, width], place) => {
      const sorted = view.sort === key ? (view.down ? "descending" : "ascending") : null;
      const arrow = sorted === null ? "" : view.down ? " ↓" : " ↑";
      const cellNode = make("th", { scope: "col", "aria-sort": sorted, "aria-colindex": place + 1, class: place > 1 ? "num" : null },
        make("button", { type: "button", on: { click: () => sortBy(key) } }, foldable(label), make("span", { "aria-hidden": "true" }, arrow)));
      cellNode.style.width = `${width}px`;
      return cellNode;
    }));
    table.setAttribute("aria-colcount", shownColumns.length);
    table.style.minWidth = `${shownColumns.reduce((sum, column) => sum + column[2], 0)}px`;
  }
  function sortBy(key) {
    if (view.sort !== key) { view.sort = key; view.down = false; }
    else if (!view.down) view.down = true;
    else { view.sort = null; view.down = false; }
    const focused = columns().findIndex(([name]) => name === key);
    sort();
    buildHead();
    draw();
    head.children[focused].firstChild.focus();
  }
  function spacer(height) {
    const line = make("tr", { class: "spacer", "aria-hidden": "true" }, make("td", { colspan: columns().length }));
    line.firstChild.style.height = `${height}px`;
    return line;
  }
  function line(place) {
    const row = view.rows[place];
    const failures = DATA.failures.of[row].map((kind) => DATA.failures.values[kind]).join(", ");
    const answer = DATA.answers[row];
    const cells = [
      make("td", { role: "gridcell", "aria-colindex": "1", class: "case-id", title: DATA.ids[row] }, make("bdi", {}, DATA.ids[row])),
      make("td", { role: "gridcell", "aria-colindex": "2", class: "texts" }, make("bdi", { class: "asked-text", title: DATA.questions[row] }, DATA.questions[row]),
        answer ? make("bdi", { class: "answer-text", title: answer }, answer) : make("span", { class: failures ? "answer-text bad-text" : "answer-text" }, failures ? `failed: ${failures}` : "no answer")),
      ...view.columns.map((name, number) => {
        const found = cell(name, row);
        return make("td", { role: "gridcell", "aria-colindex": number + 3, class: `num ${found.kind}`, title: found.title, "data-name": name }, make("span", {}, found.text));
      }),
    ];
    return make("tr", { role: "row", "data-row": place, "aria-rowindex": place + 2, tabindex: place === view.active ? "0" : "-1" }, cells);
  }
  function draw(all) {
    if (!box) return;
    ROW = Number.parseInt(getComputedStyle(box).getPropertyValue("--row"), 10);
    const n = view.rows.length;
    const inSight = Math.min(60, Math.ceil(box.clientHeight / ROW) || 20);
    const first = all ? 0 : Math.max(0, Math.min(Math.floor(box.scrollTop / ROW) - 8, n - 1));
    const last = all ? Math.min(n, 200) : Math.min(n, first + inSight + 16);
    const focused = document.activeElement && body.contains(document.activeElement) ? Number(document.activeElement.dataset.row) : null;
    const lines = [];
    for (let place = first; place < last; place += 1) lines.push(line(place));
    /* The row that can be reached by Tab is always in the document, in sight or not. */
    if (n && view.active >= last) lines.push(spacer((view.active - last) * ROW), line(view.active), spacer((n - view.active - 1) * ROW));
    else lines.push(spacer(all ? 0 : (n - last) * ROW));
    if (n && view.active < first) lines.unshift(spacer(view.active * ROW), line(view.active), spacer((first - view.active - 1) * ROW));
    else lines.unshift(spacer(first * ROW));
    body.replaceChildren(...lines);
    if (!n) body.replaceChildren(make("tr", { role: "row", "aria-rowindex": "2" }, make("td", { role: "gridcell", colspan: columns().length, class: "na" }, "No case matches these filters.")));
    table.setAttribute("aria-rowcount", n + 1);
    if (focused !== null) {
      const node = body.querySelector(`tr[data-row="${focused}"]`);
      if (node) node.focus({ preventScroll: true });
    }
  }
  function moveTo(place, focus) {
    if (!view.rows.length) return;
    view.active = Math.max(0, Math.min(view.rows.length - 1, place));
    const top = view.active * ROW, headHeight = head.offsetHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW + headHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW + headHeight - box.clientHeight;
    draw();
    if (focus) { const node = body.querySelector(`tr[data-row="${view.active}"]`); if (node) node.focus({ preventScroll: true }); }
  }
  function onTableKey(event) {
    if (!event.target.matches("tr[data-row]")) return;
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 2);
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(view.active); }
    else if (event.key in steps) { event.preventDefault(); event.stopPropagation(); moveTo(view.active + steps[event.key], true); }
  }

  /* Packed details */
  const unpacked = new Map();
  function blockOf(row) {
    let low = 0, high = DATA.starts.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (DATA.starts[middle] <= row) low = middle; else high = middle - 1; }
    return low;
  }
  async function details(row) {
    if (row >= DATA.packed) return null;
    const number = blockOf(row);
    if (!unpacked.has(number)) {
      if (unpacked.size > 24) unpacked.delete(unpacked.keys().next().value);
      unpacked.set(number, unpack(BLOCKS[number].textContent));
    }
    return (await unpacked.get(number))[row - DATA.starts[number]];
  }
  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  }

  /* Marking */
  const MEANS = { snippet: "snippet of a gold support", quote: "quoted by a judge" };
  const whole = (text) => (Array.isArray(text) ? text[0] : text);
  function pattern(needle) {
    const words = needle.trim().split(/\s+/).filter(Boolean).slice(0, 200).map((word) => word.replace(/[.*+?^${}()|[\]\\\/-]/g, "\\$&"));
    return words.length ? new RegExp(words.join("\\s+"), "giu") : null;
  }
  function ranges(text, needles, kind) {
    const found = [];
    for (const needle of needles) {
      let wanted = null;
      try { wanted = pattern(whole(needle).replace(/[.!?。]+\s*$/u, "")); } catch { wanted = null; }
      if (!wanted) continue;
      for (const match of text.matchAll(wanted)) { found.push([match.index, match.index + match[0].length, kind]); if (found.length > 200) break; }
    }
    return found;
  }
  function marked(text, found) {
    const parts = [];
    let place = 0;
    for (const [start, end, kind] of found.sort((a, b) => a[0] - b[0] || b[1] - a[1])) {
      if (start < place) continue;
      parts.push(text.slice(place, start), make("mark", { class: kind, title: MEANS[kind] || kind }, text.slice(start, end)));
      place = end;
    }
    parts.push(text.slice(place));
    return parts;
  }
  function block(text, file, found, tag) {
    const inner = make(tag || "div", { class: "text", dir: "auto", tabindex: tag === "pre" ? "0" : null }, found ? marked(whole(text), found) : whole(text));
    return make("div", {}, inner, cutNote(text, file));
  }
  function cutNote(text, file) {
    return Array.isArray(text) ? make("span", { class: "cut" }, `The first ${count(text[0].length)} of ${count(text[1])} characters; the whole is in ${file} of the run folder.`) : null;
  }

  /* A case */
  let openedAt = null, request = 0;
  async function open(place) {
    const row = view.rows[place];
    if (row === undefined) return;
    openedAt = place;
    const dialog = at("case");
    at("case-title").replaceChildren(make("bdi", {}, DATA.ids[row]));
    at("case-body").replaceChildren(make("p", { class: "quiet" }, "Opening…"));
    at("previous").disabled = place === 0;
    at("next").disabled = place === view.rows.length - 1;
    if (!dialog.open) dialog.showModal();
    const mine = request += 1;
    let nodes;
    try { nodes = caseNodes(row, await details(row)); }
    catch (error) { nodes = [make("p", { class: "notice bad" }, `This case cannot be shown: ${error}`)]; }
    if (mine !== request) return;
    at("case-body").replaceChildren(...nodes);
    at("case-body").scrollTop = 0;
    at("case-title").focus();
    history.replaceState(null, "", `#case=${encodeURIComponent(DATA.ids[row])}`);
  }
  function close() {
    at("case").close();
  }
  function onClosed() {
    request += 1;
    history.replaceState(null, "", `#${tab}`);
    if (openedAt !== null) moveTo(openedAt, tab === "cases");
    openedAt = null;
  }
  function section(title, ...nodes) {
    const inner = nodes.flat().filter((node) => node !== null && node !== undefined);
    return inner.length ? [make("h3", {}, title), ...inner] : [];
  }
  function caseNodes(row, found) {
    const labels = Object.entries(DATA.dimensions).filter(([name]) => !FILTERS.has(name)).flatMap(([name, labelsOf]) => labelsOf.of[row].map((place) => make("li", {}, `${name}: ${labelsOf.values[place]}`)));
    const failures = DATA.failures.of[row].map((place) => make("p", { class: "notice bad" }, make("strong", {}, "failed"), make("span", {}, DATA.failures.values[place])));
    if (found === null || found === undefined) {
      return [...failures, ...section("Question", make("p", { class: "lead text", dir: "auto" }, DATA.questions[row])),
        make("p", { class: "notice warn" }, `The texts of this case are not in this file, which has a limit. They are in outputs.jsonl and judgments.jsonl of the run folder, under case_id ${JSON.stringify(DATA.ids[row])}.`),
        ...scoresOf(row)];
    }
    const judged = found.judged || [];
    const primary = judged.filter((judgment) => judgment.role === "primary");
    const supported = primary.flatMap((judgment) => judgment.supported || []);
    const unsupported = primary.flatMap((judgment) => judgment.unsupported || []);
    const answer = found.answer === undefined ? null : found.answer;
    const marks = answer === null ? [] : [...ranges(whole(answer), unsupported, "unsupported"), ...ranges(whole(answer), supported, "supported")];
    return [
      ...failures,
      ...section("Question", block(found.question || DATA.questions[row], "cases.jsonl"), labels.length ? make("ul", { class: "chips" }, labels) : null),
      ...section(found.n_messages ? `Conversation (${found.n_messages})` : "Conversation", ...conversation(found)),
      ...section("Answer A", found.other === undefined || found.other === null ? null : block(found.other, "outputs.jsonl")),
      ...section(found.other === undefined || found.other === null ? "Answer" : "Answer B",
        found.error ? make("p", { class: "text" }, code(found.error[0]), " ", whole(found.error[1])) : null,
        answer === null ? make("p", { class: "quiet" }, "No answer came back.") : whole(answer).trim() === "" ? make("p", { class: "quiet" }, "The answer is blank.") : block(answer, "outputs.jsonl", marks),
        abstention(found.abstention),
        found.confidence !== undefined ? make("p", { class: "quiet" }, `Confidence ${found.confidence}.`) : null),
      ...section("Expected", ...expected(found)),
      ...section("Verdicts", ...opinions(judged, found.labels || [])),
      ...section(`Contexts${found.n_hits ? ` (${found.n_hits})` : ""}`, ...hits(found, primary.flatMap((judgment) => judgment.quotes || []).filter((quote) => quote[2]).map((quote) => quote[1]))),
      ...section("Citations", found.citations || found.cited ? make("ul", { class: "chips" }, [...(found.citations || []), ...(found.cited || [])].map((text) => make("li", {}, text))) : null),
      ...scoresOf(row),
      ...section("Latency", found.seconds ? make("ul", { class: "chips" }, Object.entries(found.seconds).map(([stage, seconds]) => make("li", {}, `${stage} ${(seconds * 1000).toFixed(0)} ms`))) : null),
      ...section("Replies and prompts", ...judged.flatMap(records)),
    ];
  }
  function conversation(found) {
    const messages = found.conversation || [];
    const n_left = (found.n_messages || 0) - messages.length;
    const box = (message) => make("div", { class: "box" },
      make("div", { class: "box-head" }, make("strong", {}, message.role), make("span", {}, `message ${message.number}`), message.n_hits === null ? null : make("span", {}, `${message.n_hits} retrieved`)),
      whole(message.text) === "" ? make("p", { class: "quiet" }, "No text.") : block(message.text, "cases.jsonl and outputs.jsonl"));
    return [n_left > 0 ? make("p", { class: "cut" }, `${n_left} earlier ones are in cases.jsonl and outputs.jsonl of the run folder.`) : null, ...messages.map(box)];
  }
  function expected(found) {
    const list = (title, texts) => (texts ? [make("div", {}, make("h4", {}, title), make("ul", {}, texts.map((text) => make("li", { class: "text", dir: "auto" }, whole(text), cutNote(text, "cases.jsonl")))))] : []);
    const lists = [
      ...list("Right answers", found.references), ...list("Key facts", found.facts), ...list("Must contain", found.must), ...list("Must not contain", found.forbidden),
      ...list("Expected tool calls", found.calls),
      ...list("Gold supports", found.supports && found.supports.map((support, number) => `${number + 1}. ${support.place}`)),
    ];
    return [found.answerable === false ? make("p", {}, "The corpus holds no answer to this question.") : null, lists.length ? make("div", { class: "expected" }, lists) : null];
  }
  const SAYS = { flag: "its own flag", grounded: "its own grounded: false", judge: "the abstention judge", rule: "the shipped rule", blank: "its blank answer" };
  function abstention(found) {
    if (!found) return null;
    return make("p", { class: "quiet" }, `Counts as ${found[0] ? "an abstention" : "an answer"}${SAYS[found[1]] ? `, by ${SAYS[found[1]]}` : ""}.`);
  }
  function hits(found, quotes) {
    const supports = found.supports || [];
    const nodes = (found.hits || []).map((hit) => {
      const matches = hit.supports.length > 0 || hit.expected;
      const snippets = hit.supports.flatMap((place) => (supports[place] || {}).snippets || []);
      const text = hit.text === null ? null : whole(hit.text);
      return make("div", { class: matches ? "box hit-match" : "box" },
        make("div", { class: "box-head" }, make("strong", {}, `#${hit.rank}`), make("bdi", {}, hit.place), hit.chunk && hit.chunk !== hit.place ? code(hit.chunk) : null,
          hit.score === null ? null : make("span", {}, `score ${shown(hit.score)}`),
          ...hit.supports.map((place) => make("span", { class: "badge good" }, `matches support ${place + 1}`)),
          hit.expected ? make("span", { class: "badge good" }, "expected chunk") : null),
        text === null ? make("p", { class: "quiet" }, "No text was returned with this hit.") : block(hit.text, "outputs.jsonl", [...ranges(text, quotes, "quote"), ...ranges(text, snippets, "snippet")]));
    });
    if (found.hits && found.n_hits > found.hits.length) nodes.push(make("p", { class: "cut" }, `${found.n_hits - found.hits.length} more are in outputs.jsonl of the run folder.`));
    return nodes;
  }
  function verdictText(judgment) {
    if (judgment.failure) return make("p", { class: "bad-text" }, `no verdict: ${judgment.failure[0]}`);
    const [low, high] = DATA.scales[judgment.judge] || [];
    const scale = judgment.score === undefined || high === undefined ? null : make("span", { class: "tile-note" }, low === 0 ? ` of ${high}` : ` on ${low} to ${high}`);
    const said = judgment.answer !== undefined ? (judgment.answer ? "yes" : "no") : judgment.said !== undefined ? judgment.said : judgment.score === undefined ? "" : `${judgment.score}`;
    /* Only what passes or fails by the judge's own rule is good or bad. */
    const passes = judgment.passes === undefined ? null : make("span", { class: `badge ${judgment.passes ? "good" : "bad"}` }, judgment.passes ? "pass" : "fail");
    return make("div", {}, make("p", { class: "score" }, make("bdi", {}, said), scale, passes ? [" ", passes] : null), judgment.means ? make("p", { class: "quiet" }, make("bdi", {}, judgment.means)) : null);
  }
  function opinion(judgment) {
    const quotes = judgment.quotes || [];
    const of = (claim) => quotes.filter((quote) => whole(quote[0]) === whole(claim)).map(quoted);
    const claims = (texts, kind) => (texts || []).map((text) => make("li", {}, make("span", { class: `badge ${kind === "supported" ? "good" : "bad"}` }, kind), make("div", {}, make("div", { class: "text", dir: "auto" }, whole(text), cutNote(text, "judgments.jsonl")), of(text))));
    const known = new Set([...(judgment.supported || []), ...(judgment.unsupported || [])].map(whole));
    const loose = quotes.filter((quote) => !known.has(whole(quote[0]))).map((quote) => make("li", {}, make("span", { class: "badge warn" }, "other claim"), make("div", {}, make("div", { class: "text", dir: "auto" }, whole(quote[0])), quoted(quote))));
    const criteria = (judgment.criteria || []).map(([name, met, evidence, weight]) => make("li", {}, make("span", { class: `badge ${met === "cannot tell" ? "warn" : (met === "met") === (weight > 0) ? "good" : "bad"}` }, met), make("div", {}, make("strong", {}, name), weight === 1 ? null : make("span", { class: "quiet" }, weight < 0 ? ` a fault, weight ${weight}` : ` weight ${weight}`), make("div", { class: "text", dir: "auto" }, whole(evidence)))));
    const listed = [...criteria, ...claims(judgment.unsupported, "unsupported"), ...claims(judgment.supported, "supported"), ...loose];
    return make("div", { class: "box" },
      make("div", { class: "box-head" }, make("strong", {}, judgment.judge), make("span", {}, roleOf(judgment)), code(judgment.model), make("span", {}, `prompt ${judgment.wording.split("/").pop()}`)),
      verdictText(judgment),
      judgment.chances ? make("p", { class: "quiet" }, judgment.chances) : null,
      judgment.failure ? block(judgment.failure[1], "judgments.jsonl") : null,
      judgment.reasoning ? block(judgment.reasoning, "judgments.jsonl") : null,
      listed.length ? make("ul", { class: "claims" }, listed) : null,
      judgment.flags ? make("p", { class: "bad-text" }, judgment.flags.join(", ")) : null);
  }
  function roleOf(judgment) {
    if (judgment.role === "member") return `member ${judgment.member}`;
    return judgment.role === "primary" ? "verdict of the run" : judgment.again ? "the judge asked again" : "second opinion";
  }
  function quoted(quote) {
    const [kind, word] = quote[2] === true ? ["good", "real"] : quote[2] === false ? ["bad", "fabricated"] : ["plain", "not looked up"];
    return make("div", { class: "quote" }, make("span", { class: `badge ${kind}`, title: kind === "bad" ? "this text is in no passage" : null }, word), make("q", { class: "text", dir: "auto" }, whole(quote[1])), cutNote(quote[1], "judgments.jsonl"));
  }
  function opinions(judged, labels) {
    const judges = [...new Set([...judged.map((judgment) => judgment.judge), ...labels.map((label) => label.judge).filter(Boolean)])];
    const rank = (name) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
    judges.sort((a, b) => rank(a) - rank(b));
    const place = (judgment) => ["primary", "member"].indexOf(judgment.role) >>> 0;
    const of = (name) => labels.filter((label) => label.judge === name || (label.judge === null && judges.length === 1));
    const rows = judges.map((name) => make("div", { class: "opinions" }, judged.filter((judgment) => judgment.judge === name).sort((a, b) => place(a) - place(b)).map(opinion), people(name, of(name))));
    const rest = judges.length === 1 ? [] : labels.filter((label) => label.judge === null);
    return rest.length ? [...rows, make("div", { class: "opinions" }, people("no judge named", rest))] : rows;
  }
  function people(name, labels) {
    if (!labels.length) return null;
    const rows = labels.map((label) => make("div", {}, make("dt", {}, make("bdi", {}, label.who)), make("dd", {}, make("strong", {}, String(label.says)), label.other ? make("span", { class: "bad-text" }, " about another answer") : null)));
    return make("div", { class: "box people" }, make("div", { class: "box-head" }, make("strong", {}, name), make("span", {}, "labels of people")), make("dl", { class: "scores-list" }, rows));
  }
  function records(judgment) {
    const facts = [judgment.cached ? "from the cache" : null, judgment.read ? `read: ${judgment.read}` : null, judgment.finish ? `finish reason ${judgment.finish}` : null,
      judgment.seconds !== undefined ? `${(judgment.seconds * 1000).toFixed(0)} ms` : null, judgment.usd !== undefined ? `${judgment.usd.toFixed(6)} USD` : null, judgment.tries > 1 ? `asked ${judgment.tries} times` : null].filter(Boolean).join(" · ");
    const title = `${judgment.judge}, ${roleOf(judgment)}`;
    const system = DATA.system[judgment.wording];
    return [make("details", { class: "more" }, make("summary", {}, title, " ", make("span", { class: "quiet" }, facts)),
      make("h4", {}, "Raw reply"), judgment.reply === undefined ? make("p", { class: "quiet" }, "Nothing came back.") : block(judgment.reply, "judgments.jsonl", null, "pre"),
      make("h4", {}, "Prompt as sent"),
      judgment.prompt === undefined ? make("p", { class: "quiet" }, "The run did not keep this wording or this judge input.") : make("div", {}, system ? make("details", {}, make("summary", {}, "Instructions, the same for every case"), block(system, "prompts.json", null, "pre")) : null, block(judgment.prompt, "judge_inputs.jsonl (with prompts.json)", null, "pre")))];
  }
  function scoresOf(row) {
    const pairs = NAMES.map((name) => [name, cell(name, row)]).filter(([, found]) => found.text !== "" && found.text !== "n/a");
    const silent = NAMES.length - pairs.length;
    return section("Scores", make("dl", { class: "scores-list" }, pairs.map(([name, found]) => make("div", {}, make("dt", {}, code(name)), make("dd", { class: found.kind, title: found.title }, found.kind === "bad-text" ? found.title : found.text)))),
      silent ? make("p", { class: "quiet" }, `${silent} scores do not apply; the reasons are in scores.jsonl.`) : null);
  }

  /* Distributions */
  function histogram(name) {
    const values = DATA.scores[name].filter((value) => typeof value === "number");
    const others = DATA.scores[name].filter((value) => typeof value === "string");
    const failed = others.filter((value) => FAILED[value]).length;
    /* Two bars say no more than the share does. */
    const names = LABELS.get(name);
    if (!values.length || (names ? names.length < 3 : WORDS.has(name) || values.every((value) => value === 0 || value === 1))) return null;
    const top = names ? names.length - 1 : (DATA.scales[name] || [])[1] || values.reduce((a, b) => Math.max(a, b), 1);
    const low = (DATA.scales[name] || [])[0] ?? values.reduce((a, b) => Math.min(a, b), 0);
    const whole_ = names !== undefined || (values.every(Number.isInteger) && top - low <= 12);
    const n = whole_ ? Math.round(top - low) + 1 : 10;
    const counts = new Array(n).fill(0);
    for (const value of values) counts[whole_ ? value - low : Math.min(n - 1, Math.floor(((value - low) / (top - low)) * n))] += 1;
    const most = Math.max(...counts);
    const edge = (place) => Number((low + ((top - low) * place) / n).toFixed(2));
    const bars = counts.map((amount, place) => {
      const label = names ? names[place] : whole_ ? `${low + place}` : `${edge(place)} to ${edge(place + 1)}`;
      const bar = make("i", {});
      bar.style.height = `${Math.round((amount / most) * 56)}px`;
      return make("button", { type: "button", "aria-label": `${name} ${label}: ${count(amount)} cases`, title: `${label}: ${count(amount)} cases`,
        on: { click: () => names ? onlyLabel(name, place) : only(name, whole_ ? "eq" : "le", whole_ ? low + place : edge(place + 1)) } }, n <= 7 || amount === most ? String(count(amount)) : "", bar);
    });
    const ticks = whole_ ? counts.map((_, place) => make("span", names ? { title: names[place] } : {}, names ? names[place] : String(low + place))) : [make("span", {}, String(edge(0))), make("span", {}, String(edge(n)))];
    return make("div", { class: "histogram" }, make("h3", {}, code(name)), make("div", { class: "bars" }, bars), make("div", { class: whole_ ? "ticks" : "ticks ends", "aria-hidden": "true" }, ticks),
      make("p", {}, `${count(values.length)} cases`, ...(failed ? [", ", make("span", { class: "bad-text" }, `${count(failed)} failed`)] : []), others.length > failed ? `, ${count(others.length - failed)} n/a` : null));
  }
  function only(name, kind, limit) {
    at("filters").reset();
    at("score").value = name;
    at("condition").value = kind;
    at("limit").value = limit;
    showCases();
  }
  function onlyLabel(judge, place) {
    at("filters").reset();
    const box_ = Array.from(at("slice-filters").querySelectorAll("select")).find((select) => FILTERS.get(select.dataset.dimension) === judge);
    box_.value = String(place);
    showCases();
  }
  function showCases() {
    filter();
    history.pushState(null, "", "#cases");
    showTab("cases");
    moveTo(0, true);
  }

  /* The worst cases, with what a judge says of each */
  const SHOWN_WORST = 5;
  async function worst() {
    const target = at("worst");
    const bad = WORST ? WORST.map((value, row) => [value, row]).filter(([value]) => value !== null && value < 1).sort((a, b) => a[0] - b[0] || a[1] - b[1]) : [];
    const failed = DATA.failures.of.filter((of) => of.length).length;
    const notes = failed ? [make("p", {}, make("button", { type: "button", class: "link", on: { click: () => { at("filters").reset(); at("failure").value = "some"; showCases(); } } }, failed === 1 ? "1 case failed" : `${count(failed)} cases failed`), " and cannot be ranked.")] : [];
    if (!bad.length && !notes.length) return;
    const cards = bad.slice(0, SHOWN_WORST).map(([, row]) => [row, make("li", { class: "box" })]);
    target.replaceChildren(
      make("h3", {}, "Worst cases"),
      bad.length ? make("p", { class: "quiet" }, `Lowest by ${RANKED.join(", ")}${RANKED.length > 1 ? " (their mean, each from its worst to its best)" : ""}. `, make("button", { type: "button", class: "link", on: { click: () => { at("filters").reset(); view.sort = "worst"; view.down = false; buildHead(); showCases(); } } }, "All cases, worst first")) : make("p", {}, "No case that has a score is below the best."),
      ...notes, make("ol", {}, cards.map(([, card]) => card)));
    target.hidden = false;
    for (const [row, card] of cards) card.append(...worstNodes(row, await details(row)));
  }
  function worstNodes(row, found) {
    const primary = ((found && found.judged) || []).filter((judgment) => judgment.role === "primary");
    const [lowest] = RANKED.map((name) => [goodness(name, DATA.scores[name][row]), primary.find((judgment) => judgment.judge === name)])
      .filter(([good, judgment]) => good !== null && judgment && judgment.reasoning).sort((a, b) => a[0] - b[0]);
    const scores = RANKED.map((name) => [name, cell(name, row)]).filter(([, one]) => one.text !== "");
    return [
      make("div", { class: "box-head" }, make("button", { type: "button", class: "link", on: { click: () => openId(row) } }, make("bdi", {}, DATA.ids[row])),
        scores.map(([name, one]) => make("span", { class: `chip ${one.kind}`, title: one.title }, `${name} `, make("strong", {}, one.text), DATA.scales[name] && !LABELS.has(name) && one.kind.startsWith("tint") ? ` of ${DATA.scales[name][1]}` : null))),
      make("p", { class: "asked-text" }, make("bdi", {}, DATA.questions[row])),
      make("p", { class: "clamp text" }, make("bdi", {}, DATA.answers[row] || "No answer came back.")),
      lowest ? make("p", { class: "clamp quiet" }, make("strong", {}, `${lowest[1].judge}: `), make("bdi", {}, whole(lowest[1].reasoning))) : null,
    ].filter(Boolean);
  }

  /* Disagreements, side by side */
  const AT_ONCE = 4;
  async function disagreements() {
    const target = at("disagreements");
    if (!target) return;
    const places = new Map(DATA.ids.map((id, row) => [id, row]));
    const pairs = Object.entries(DATA.checks).flatMap(([judge, sample]) => sample.filter((entry) => entry.disagrees).map((entry) => ({ judge, ...entry })));
    const gap = (entry) => Math.abs((entry.first ?? 0) - (entry.second ?? 0)) || 0;
    pairs.sort((a, b) => gap(b) - gap(a));
    if (!pairs.length) { target.replaceChildren(make("p", { class: "quiet" }, "No pair in the sample disagrees.")); return; }
    let next = 0;
    const more = make("button", { type: "button" }, "Show more");
    const list = make("div", {});
    async function show() {
      const chosen = pairs.slice(next, next + AT_ONCE);
      next += chosen.length;
      for (const entry of chosen) {
        const row = places.get(entry.case_id);
        const found = row === undefined ? null : await details(row);
        const both = ((found && found.judged) || []).filter((judgment) => judgment.judge === entry.judge && (judgment.role === "primary" || (judgment.role === "spot_check" && (entry.check === null || judgment.check === entry.check))));
        list.append(make("div", { class: "disagreement" },
          make("h4", {}, row === undefined ? make("bdi", {}, entry.case_id) : make("button", { type: "button", class: "link", on: { click: () => openId(row) } }, make("bdi", {}, entry.case_id)), ` · ${entry.judge}: ${entry.shown.join(" and ")}`),
          row === undefined ? null : make("p", { class: "quiet text", dir: "auto" }, DATA.questions[row]),
          make("div", { class: "opinions" }, both.map(opinion))));
      }
      more.hidden = next >= pairs.length;
    }
    more.addEventListener("click", show);
    target.replaceChildren(list, more);
    await show();
  }
  function openId(row) {
    let place = view.rows.indexOf(row);
    if (place < 0) { at("filters").reset(); filter(); place = view.rows.indexOf(row); }
    view.active = place;
    open(place);
  }

  /* Tabs: each has an address; inside one, so has each part and each case. */
  const TABS = Array.from(document.querySelectorAll(".tab"));
  let tab = "overview";
  function showTab(name) {
    tab = name;
    for (const part of TABS) part.classList.toggle("shown", part.id === name);
    for (const link of document.querySelectorAll(".sections a")) {
      if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (name === "cases") draw();
  }
  function go() {
    let hash = "";
    try { hash = decodeURIComponent(location.hash.slice(1)); } catch { hash = ""; }
    if (hash.startsWith("case=")) {
      showTab("cases");
      const row = DATA.ids.indexOf(hash.slice(5));
      if (row >= 0) openId(row);
      return;
    }
    if (at("case").open) close();
    const target = hash ? at(hash) : null;
    const inside = target && target.closest(".tab");
    showTab(inside ? inside.id : hash ? tab : "overview");
    if (inside && inside !== target) target.scrollIntoView();
    else if (inside) scrollTo(0, Math.min(scrollY, document.querySelector(".sections").offsetTop));
  }
  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
    if (at("case").open) return;
    if (event.key === "/") { event.preventDefault(); history.pushState(null, "", "#cases"); showTab("cases"); at("search").focus(); }
    else if (tab === "cases" && (event.key === "j" || event.key === "k")) moveTo(view.active, true);
  }

  /* Start */
  document.documentElement.classList.add("tabs");
  fillFilters();
  for (const id of ["filters", "tools", "table", "hint"]) at(id).hidden = false;
  buildTable();
  filter();
  let waiting = 0;
  at("filters").addEventListener("input", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(filter); });
  at("filters").addEventListener("reset", () => { requestAnimationFrame(filter); });
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("sort").addEventListener("input", (event) => {
    event.stopPropagation();
    const key = at("sort").value;
    view.sort = key || null;
    view.down = key in DATA.tints && DATA.tints[key][2] < 0;
    buildHead();
    filter();
  });
  at("columns").addEventListener("change", () => {
    const chosen = new Set(Array.from(at("columns").querySelectorAll("input:checked"), (input) => input.value));
    view.columns = NAMES.filter((name) => chosen.has(name));
    buildHead();
    draw();
  });
  for (const button of document.querySelectorAll("button[data-case]")) {
    button.addEventListener("click", () => {
      const row = DATA.ids.indexOf(button.dataset.case);
      if (row >= 0) openId(row);
    });
  }
  for (const button of document.querySelectorAll("button[data-dimension]")) {
    button.addEventListener("click", () => {
      const box_ = Array.from(at("slice-filters").querySelectorAll("select")).find((select) => select.dataset.dimension === button.dataset.dimension);
      const place = box_ ? DATA.dimensions[button.dataset.dimension].values.indexOf(button.dataset.value) : -1;
      if (place < 0) return;
      at("filters").reset();
      box_.value = String(place);
      showCases();
    });
  }
  at("previous").addEventListener("click", () => open(openedAt - 1));
  at("next").addEventListener("click", () => open(openedAt + 1));
  at("close").addEventListener("click", close);
  at("case").addEventListener("close", onClosed);
  at("case").addEventListener("click", (event) => { if (event.target === at("case")) close(); });
  at("case").addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (["ArrowLeft", "k"].includes(event.key) && !at("previous").disabled) open(openedAt - 1);
    else if (["ArrowRight", "j"].includes(event.key) && !at("next").disabled) open(openedAt + 1);
  });
  addEventListener("beforeprint", () => draw(true));
  addEventListener("afterprint", () => draw());
  addEventListener("resize", () => requestAnimationFrame(() => draw()));
  if (at("histograms")) at("histograms").replaceChildren(...NAMES.slice(0, 12).map(histogram).filter(Boolean));
  disagreements();
  worst();
  addEventListener("hashchange", go);
  addEventListener("keydown", onKey);
  go();
})();
