"use strict";
/* The labelling page. Foreign text only ever becomes text nodes and property values, never markup. */
(() => {
  const at = (id) => document.getElementById(id);
  const query = new URLSearchParams(location.search);
  const TOKEN = query.get("token") || "";
  const OTHER = "\u0000other";
  /* What was chosen and written but not saved, by person and case, so that going on and back loses nothing. */
  const drafts = new Map();
  let state = null;
  let who = query.get("annotator") || at("who").dataset.annotator;
  let busy = false;
  let typed = "";
  let typedAt = 0;

  function make(tag, props, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(props || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "class") node.className = value;
      else node.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
    return node;
  }
  function say(text, bad) {
    at("message").textContent = text;
    at("message").classList.toggle("bad-text", Boolean(bad));
  }

  /* The server */
  async function ask(path, values, sent) {
    const address = `${path}?${new URLSearchParams({ token: TOKEN, ...values })}`;
    const more = sent ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(sent) } : {};
    let reply;
    try {
      reply = await fetch(address, { cache: "no-store", ...more });
    } catch {
      throw new Error("The server does not answer. Start judgekit label --web again, and open the address that it shows.");
    }
    const isJson = (reply.headers.get("Content-Type") || "").startsWith("application/json");
    if (!isJson) throw new Error("The server refuses this page. Open the address that the terminal shows.");
    const document_ = await reply.json();
    if (!reply.ok) throw new Error(document_.message);
    return document_;
  }
  async function go(path, values, sent) {
    if (busy) return;
    busy = true;
    try {
      const found = await ask(path, values, sent);
      if (sent && sent.key) drafts.delete(`${who} ${sent.key}`);
      show(found);
    } catch (error) {
      say(error.message, true);
    } finally {
      busy = false;
    }
  }
  const show_case = (place) => go("/case", { annotator: who, ...place });

  /* What is chosen */
  const boxes = () => Array.from(document.querySelectorAll("#questions fieldset"));
  function chosen(box) {
    const written = box.querySelector("input[type=number]");
    if (written && written.value.trim()) return written.value.trim();
    const picked = box.querySelector("input[type=radio]:checked");
    return picked ? picked.value : null;
  }
  function remember() {
    if (!state || !state.case) return;
    const given = state.case.questions.map((item) => item.chosen);
    const found = { typed: boxes().map(chosen), comment: at("comment").value };
    if (found.comment === state.case.comment && found.typed.every((text, place) => text === given[place])) return;
    drafts.set(`${who} ${state.case.key}`, found);
  }
  function save() {
    if (!state || !state.case) return;
    const labels = boxes().map(chosen);
    const missing = labels.indexOf(null);
    if (missing >= 0) {
      say(labels.length > 1 ? "Answer every criterion first." : "Choose a label first.", true);
      boxes()[missing].querySelector("input").focus();
      return;
    }
    const sent = { annotator: who, key: state.case.key, typed: labels, comment: at("comment").value, known: state.case.given !== null };
    go("/label", {}, sent);
  }
  function undo() {
    remember();
    go("/undo", {}, { annotator: who });
  }
  function skip() {
    remember();
    if (state && state.case) show_case({ after: state.case.key });
  }
  function back() {
    remember();
    if (state && state.case) show_case({ before: state.case.key });
  }

  /* The page */
  function question(item, place) {
    const name = `q${place}`;
    const draft = drafts.get(`${who} ${state.case.key}`);
    const now = draft ? draft.typed[place] : item.chosen;
    const legend = make("legend", {}, item.name ? make("code", {}, item.name) : null, item.name ? " " : null, item.text || (item.name ? "" : "Your label"));
    const list = make("div", { class: item.choices.some((one) => one.meaning) ? "label-choices wide-choices" : "label-choices" });
    if (item.bounds) {
      const [low, high] = item.bounds;
      const number = make("input", { type: "number", min: low, max: high, step: 1, id: `${name}-number`, inputmode: "numeric" });
      if (now !== null && /^-?\d+$/.test(now)) number.value = now;
      number.addEventListener("input", () => { const radio = list.querySelector(":checked"); if (radio) radio.checked = false; });
      list.append(make("label", { for: `${name}-number` }, `A score from ${low} to ${high}`), number);
    }
    for (const one of item.choices) {
      const radio = make("input", { type: "radio", name, value: one.typed });
      radio.checked = one.typed === now;
      radio.addEventListener("change", () => { const number = list.querySelector("input[type=number]"); if (number) number.value = ""; });
      const key = one.typed === one.name ? null : make("kbd", {}, one.typed);
      list.append(make("label", { class: "label-choice" }, radio, make("span", { class: "strong" }, one.name), key, one.meaning ? make("span", { class: "quiet" }, one.meaning) : null));
    }
    return make("fieldset", {}, legend, list);
  }
  function names() {
    const box = at("who");
    box.replaceChildren(...state.annotators.map((name) => make("option", { value: name }, name)), make("option", { value: OTHER }, "someone else\u2026"));
    box.value = state.annotator;
    box.hidden = false;
    at("new-name").hidden = true;
  }
  function show(found) {
    state = found;
    who = state.annotator;
    query.set("annotator", who);
    history.replaceState(null, "", `?${query}`);
    names();
    const place = state.case ? `Case ${state.number} of ${state.n}` : `${state.n} cases`;
    at("place").textContent = `${place}, ${state.n_labelled} labelled by ${who}`;
    at("progress").max = state.n;
    at("progress").value = state.n_labelled;
    const lines = state.agreement.length ? state.agreement : ["No case has labels of two people yet. Every annotator gets the same cases in the same order."];
    at("agreement").replaceChildren(...lines.map((line) => make("li", {}, line)));
    at("work").hidden = !state.case;
    at("done").hidden = Boolean(state.case);
    if (state.case) show_item(state.case);
    else show_end();
    say(state.message);
  }
  function part({ title, texts }) {
    const name = title.startsWith("Answer") ? "label-text label-answer" : "label-text";
    const shown = texts.map((text) => make("p", { class: name, dir: "auto" }, text));
    if (title !== "Passages") return [make("h3", {}, title), ...shown];
    const open = matchMedia("(min-width: 48.01rem)").matches;
    return [make("details", { class: "more", open }, make("summary", {}, make("h3", {}, `${title} (${texts.length})`)), shown)];
  }
  function show_item(item) {
    const draft = drafts.get(`${who} ${item.key}`);
    at("case-id").textContent = item.id;
    at("shown").replaceChildren(...item.shown.flatMap(part));
    at("questions").replaceChildren(...item.questions.map(question));
    at("comment").value = draft ? draft.comment : item.comment;
    at("skipped").textContent = [
      item.given === null ? "" : `You said: ${item.given}. Saving replaces it.`,
      state.n_skipped ? `${state.n_skipped} skipped. The labels are a random sample only if you come back to them.` : "",
    ].join(" ").trim();
    typed = "";
    scrollTo(0, 0);
    at("case-id").focus({ preventScroll: true });
  }
  function show_end() {
    const open = state.n - state.n_labelled;
    at("done-title").textContent = open ? "You are at the end" : "All cases are labelled";
    at("done-text").textContent = open
      ? `${open} of ${state.n} cases have no label by ${who}. The labels are a random sample only if none is skipped.`
      : `${who} has labelled all ${state.n} cases.`;
    at("open-ones").hidden = !open;
    at("next").textContent = state.next;
    at("done-title").focus();
  }

  /* Keys */
  function pick(box, key) {
    const radio = Array.from(box.querySelectorAll("input[type=radio]")).find((one) => one.value === key);
    if (radio) radio.checked = true;
    return Boolean(radio);
  }
  function choose(key) {
    const all = boxes();
    const here = document.activeElement ? all.indexOf(document.activeElement.closest("fieldset")) : -1;
    const place = here >= 0 ? here : Math.max(0, all.findIndex((box) => chosen(box) === null));
    const box = all[place];
    if (!box) return;
    /* Two digits in quick succession are one number, such as 10. */
    const now = Date.now();
    typed = /\d/.test(key) && now - typedAt < 800 ? typed + key : key;
    typedAt = now;
    const done = pick(box, typed) || (typed !== key && pick(box, key));
    if (!done) return;
    const number = box.querySelector("input[type=number]");
    if (number) number.value = "";
    say("");
    const next = all[place + 1];
    if (next) next.querySelector("input").focus();
    else if (all.length > 1) at("save").focus();
  }
  const ACTIONS = { u: undo, s: skip, b: back, m: () => at("comment").focus(), "?": () => choose("c") };
  document.addEventListener("keydown", (event) => {
    const { target, key } = event;
    const writes = target.matches("textarea, select, input:not([type=radio])");
    if (key === "Escape" && writes) {
      target.blur();
      return;
    }
    if (target.id === "comment" && key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      save();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !state || event.repeat) return;
    if (writes) return;
    if (key === "Enter" && !target.matches("button, summary, a")) {
      event.preventDefault();
      save();
    } else if (ACTIONS[key]) {
      event.preventDefault();
      ACTIONS[key]();
    } else if (/^[0-9ync]$/.test(key)) {
      event.preventDefault();
      choose(key);
    }
  });

  at("form").addEventListener("submit", (event) => { event.preventDefault(); save(); });
  at("undo").addEventListener("click", undo);
  at("undo-last").addEventListener("click", undo);
  at("back").addEventListener("click", back);
  at("skip").addEventListener("click", skip);
  at("open-ones").addEventListener("click", () => show_case({}));
  at("who").addEventListener("change", () => {
    remember();
    if (at("who").value !== OTHER) {
      who = at("who").value;
      show_case({});
      return;
    }
    at("new-name").hidden = false;
    at("name").focus();
  });
  at("new-name").addEventListener("submit", (event) => {
    event.preventDefault();
    const before = who;
    who = at("name").value.trim();
    at("name").value = "";
    show_case({}).then(() => { if (state && state.annotator !== who) who = state ? state.annotator : before; });
  });
  show_case({});
})();
