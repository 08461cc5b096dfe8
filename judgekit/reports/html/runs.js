"use strict";
/* The list of runs: filters, two runs to compare, and new runs as they come. */
(() => {
  const at = (id) => document.getElementById(id);
  const EVERY = 4000;
  const chosen = new Set();
  let tag = null;

  function show() {
    const wanted = { suite: at("suite").value, state: at("state").value };
    const text = at("text").value.trim().toLowerCase();
    let n = 0;
    for (const row of document.querySelectorAll("#runs tbody tr")) {
      const tags = row.dataset.tags.split(" ");
      const fits = Object.entries(wanted).every(([key, value]) => !value || row.dataset[key] === value) &&
        (!at("tag").value || tags.includes(at("tag").value)) &&
        (!text || row.textContent.toLowerCase().includes(text));
      row.hidden = !fits;
      if (fits) n += 1;
      const box = row.querySelector("input");
      if (box) box.checked = chosen.has(box.value);
    }
    at("shown").textContent = `${n} shown`;
    at("compare").disabled = chosen.size !== 2;
  }

  function choose(event) {
    if (!event.target.matches("#runs input")) return;
    if (event.target.checked) chosen.add(event.target.value);
    else chosen.delete(event.target.value);
    if (chosen.size > 2) chosen.delete(chosen.values().next().value);
    show();
  }

  function compare() {
    const both = [...document.querySelectorAll("#runs input")].map((box) => box.value).filter((id) => chosen.has(id));
    /* The list has the newest first. */
    if (both.length === 2) location.href = `/compare/${both.reverse().map(encodeURIComponent).join("/")}`;
  }

  function ask() {
    const request = new XMLHttpRequest();
    request.open("GET", "/");
    request.responseType = "document";
    if (tag) request.setRequestHeader("If-None-Match", tag);
    request.onload = () => {
      if (request.status !== 200 || !request.response) return;
      const isFirst = tag === null;
      tag = request.getResponseHeader("ETag");
      const rows = request.response.querySelector("#runs tbody");
      const old = document.querySelector("#runs tbody");
      if (rows && old && !(isFirst && rows.textContent === old.textContent)) {
        old.replaceWith(document.adoptNode(rows));
        at("count").textContent = request.response.getElementById("count").textContent;
        show();
      } else if (rows && !old) location.reload();
    };
    request.onloadend = () => setTimeout(ask, EVERY);
    request.send();
  }

  if (at("runs")) {
    for (const id of ["suite", "tag", "state", "text"]) at(id).addEventListener("input", show);
    document.addEventListener("change", choose);
    at("compare").addEventListener("click", compare);
    at("tools").hidden = false;
    show();
  }
  setTimeout(ask, EVERY);
})();
