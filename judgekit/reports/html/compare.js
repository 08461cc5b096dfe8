"use strict";
(() => {
  const field = (name) => document.getElementById(name);
  const [kind, score, slice, text, shown] = ["kind", "score", "slice", "text", "shown"].map(field);
  const cases = [...document.querySelectorAll("details.compared")].map((box) => ({
    box,
    kinds: JSON.parse(box.dataset.kinds),
    slices: JSON.parse(box.dataset.slices),
    text: box.textContent.toLowerCase(),
  }));

  function filter() {
    const words = text.value.trim().toLowerCase();
    let n = 0;
    for (const item of cases) {
      const kinds = item.kinds[score.value] || [];
      const fits = (!score.value || kinds.length > 0) && (!kind.value || kinds.includes(kind.value)) &&
        (!slice.value || item.slices.includes(slice.value)) && (!words || item.text.includes(words));
      item.box.hidden = !fits;
      n += fits ? 1 : 0;
    }
    shown.textContent = `${n} of ${cases.length} shown`;
  }

  function openLinked() {
    if (!location.hash.startsWith("#case=")) return;
    let id = location.hash.slice("#case=".length);
    try {
      id = decodeURIComponent(id);
    } catch {
      // Not one of our links: taken as it stands.
    }
    const found = cases.find((item) => item.box.dataset.case === id);
    if (found) {
      if (found.box.hidden) {
        for (const control of [kind, score, slice, text]) control.value = "";
        filter();
      }
      found.box.open = true;
      found.box.scrollIntoView();
      found.box.querySelector("summary").focus();
    }
  }

  function step(by) {
    const visible = cases.filter((item) => !item.box.hidden);
    const at = visible.findIndex((item) => item.box.contains(document.activeElement));
    const next = visible[Math.min(visible.length - 1, Math.max(0, at + by))];
    if (next) {
      next.box.querySelector("summary").focus();
      history.replaceState(null, "", `#case=${encodeURIComponent(next.box.dataset.case)}`);
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/") {
      event.preventDefault();
      text.focus();
    }
  });

  const first = ["worse", "no value in b", "better", "same"], counts = new Map();
  for (const name of cases.flatMap((item) => item.kinds[""])) counts.set(name, (counts.get(name) || 0) + 1);
  const place = (name) => (first.includes(name) ? first.indexOf(name) : first.length);
  const kinds = [...counts.keys()].sort().sort((a, b) => place(a) - place(b));
  for (const name of kinds) kind.add(new Option(`${name} (${counts.get(name)})`, name));
  for (const name of [...new Set(cases.flatMap((item) => item.slices))].sort()) slice.add(new Option(name));
  slice.parentElement.hidden = slice.options.length < 2;
  field("filters").hidden = false;
  const warnings = field("warnings");
  if (warnings && matchMedia("(max-width: 48rem)").matches) warnings.open = false;
  for (const control of [kind, score, slice]) control.addEventListener("change", filter);
  text.addEventListener("input", filter);
  addEventListener("hashchange", openLinked);
  filter();
  openLinked();
})();
