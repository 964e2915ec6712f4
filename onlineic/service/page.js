"use strict";
// Keeps the gauge up to date. Everything else works without this file; texts are set as text, never as markup.
(function () {
  const all = document.getElementById("left-all");
  const own = document.getElementById("left-own");
  if (!all || !own) return;
  const percent = (part) => (100 * part).toFixed(1) + "%";
  async function look() {
    if (document.hidden) return;
    try {
      const reply = await fetch("/v1/statistics", { credentials: "same-origin" });
      if (!reply.ok) return;
      const told = await reply.json();
      all.textContent = "All: " + percent(Math.max(0, 1 - told.spent)) + " of the budget, at least " +
        told.hard_left + " measured answers.";
      own.textContent = "Yours: " + percent(told.you.left) + " of what measured answers share; you used " +
        percent(told.you.paid) + ".";
    } catch (error) {
      return;
    }
  }
  setInterval(look, 5000);
  for (const form of document.querySelectorAll("form[action='/ask']")) {
    form.addEventListener("submit", () => setTimeout(() => {
      for (const button of form.querySelectorAll("button")) button.disabled = true;
    }, 0));
  }
})();
