"use strict";
(() => {
  const kind = document.getElementById("kind");
  const text = document.getElementById("text");
  const shown = document.getElementById("shown");
  const cases = [...document.querySelectorAll("details.compared")];
  const texts = cases.map((item) => item.textContent.toLowerCase());

  function filter() {
    const wanted = text.value.trim().toLowerCase();
    let n = 0;
    cases.forEach((item, place) => {
      const fits = (!kind.value || item.dataset.kind.split(" ").includes(kind.value)) && (!wanted || texts[place].includes(wanted));
      item.hidden = !fits;
      n += fits ? 1 : 0;
    });
    shown.textContent = `${n} of ${cases.length} shown`;
  }

  document.getElementById("filters").hidden = false;
  kind.addEventListener("change", filter);
  text.addEventListener("input", filter);
  filter();
})();
