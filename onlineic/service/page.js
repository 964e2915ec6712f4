"use strict";
// Keeps the gauge up to date and hides what a question does not need. Everything works without this file; texts
// are set as text, never as markup.
(function () {
  const part = (id) => document.getElementById(id);
  const percent = (share) => (100 * share).toFixed(1) + "%";
  function fill(bar, share) {
    const [whole, filled] = bar.querySelectorAll("rect");
    filled.setAttribute("width", (Math.min(1, Math.max(0, share)) * whole.getAttribute("width")).toFixed(1));
  }
  if (part("left-all")) {
    const events = new EventSource("/v1/events");
    events.addEventListener("facts", (event) => {
      const told = JSON.parse(event.data), left = Math.max(0, 1 - told.spent), you = told.you;
      part("left-all").textContent = "All: " + percent(left) + " of the budget, at least " +
        told.hard_left.toLocaleString("en") + " measured answers.";
      part("left-own").textContent = "Yours: " + percent(you.left) + " of what measured answers share; you used " +
        percent(you.paid) + ".";
      fill(part("bar-all"), left);
      fill(part("bar-own"), you.share ? you.left / you.share : 0);
      part("news").hidden = told.length <= Number(part("released").dataset.length);
    });
    addEventListener("pagehide", () => events.close());
  }
  const kind = part("kind");
  if (kind) {
    const fit = () => {
      part("of").hidden = kind.value === "count" || kind.value === "series";
      part("by").hidden = kind.value !== "table";
    };
    kind.addEventListener("change", fit);
    fit();
  }
  for (const form of document.querySelectorAll("form[action='/ask']")) {
    form.addEventListener("submit", () => setTimeout(() => {
      for (const button of form.querySelectorAll("button")) button.disabled = true;
    }, 0));
  }
})();
