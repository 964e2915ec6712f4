"use strict";
// Asks without leaving the page, says how long it takes, keeps the gauge up to date, and hides what a question does
// not need. Everything works without this file; what comes from the server is its own page, escaped there.
(function () {
  const part = (id) => document.getElementById(id);
  const all = (what, inside) => [...(inside || document).querySelectorAll(what)];
  const share = (left) => left > 0 && left < 0.001 ? "less than 0.1 %" : (100 * left).toFixed(1).replace(/\.0$/, "") + " %";
  const many = (count) => count ? "at least " + count.toLocaleString("en") + " measurement" + (count === 1 ? "" : "s") : "no further measurement";

  function fill(bar, left) {
    const [whole, filled] = bar.querySelectorAll("rect");
    filled.setAttribute("width", (Math.min(1, Math.max(0, left)) * whole.getAttribute("width")).toFixed(1));
  }

  // -- what is left: looked for now and then, while the page is seen
  function heard(told) {
    const left = Math.max(0, 1 - told.spent), you = told.you, own = you.share ? you.left / you.share : 0;
    if (!part("left-all")) return;
    part("left-all").textContent = "Of the whole budget: " + share(left) + " is left, enough for " + many(told.measured_left) + ".";
    part("left-own").textContent = you.hard_left
      ? "Of your share: " + share(own) + " is left, enough for " + many(you.hard_left) + "."
      : "Of your share " + share(own) + " is left, too little for a measurement: new questions are answered from what " +
        "was learned so far, without a check" + (part("exact") && you.left ? ", unless you say how exact you need it and that costs less" : "") +
        ". What was told before stays free.";
    fill(part("bar-all"), left);
    fill(part("bar-own"), own);
    part("news").hidden = told.length <= Number(part("released").dataset.length);
  }
  let asking = null;
  async function look() {
    if (document.hidden || asking || !part("left-all")) return;
    try {
      const reply = await fetch("v1/statistics", { headers: { accept: "application/json" } });
      if (reply.ok) heard(await reply.json());
    } catch { /* it is away; later again */ }
  }
  setInterval(look, 3000);
  document.addEventListener("visibilitychange", look);

  // -- the form: what a question needs, and values of the attribute that is chosen
  function fitted() {
    const kind = part("kind");
    if (!kind) return;
    const fit = () => {
      part("of").hidden = kind.value === "count" || kind.value === "series";
      part("by").hidden = kind.value !== "table";
      const own = document.querySelector("#unit option[value=own]"), derived = kind.value === "mean" || kind.value === "sum";
      if (own) own.textContent = derived ? (part("of").value ? "in the unit of " + part("of").value : "in its own unit") : "records";
    };
    part("of").addEventListener("change", fit);
    kind.addEventListener("change", fit);
    fit();
    const names = all("#a0 option").map((one) => one.value).slice(1);
    all(".condition").forEach((row, at) => {
      const name = part("a" + at), operator = part("o" + at), value = part("v" + at), end = part("w" + at);
      const suit = () => {
        const list = "values-" + names.indexOf(name.value);
        if (part(list)) value.setAttribute("list", list); else value.removeAttribute("list");
        if (part(list)) end.setAttribute("list", list); else end.removeAttribute("list");
        end.hidden = operator.value !== "between";
        for (const one of [operator, value]) one.hidden = !name.value && !value.value;
        if (!name.value) end.hidden = true;
      };
      name.addEventListener("change", suit);
      operator.addEventListener("change", suit);
      suit();
    });
    for (const form of all("form[action='ask']")) form.addEventListener("submit", (event) => submitted(event, form));
    for (const button of all(".copy")) {
      button.hidden = false;
      button.addEventListener("click", () => copied(button));
    }
  }

  async function copied(button) {
    const code = button.closest(".code").querySelector("pre");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected: press Ctrl-C";
    }
  }

  // -- asking
  const key = () => Array.from({ length: 4 }, () => Math.random().toString(36).slice(2, 10)).join("");

  async function submitted(event, form) {
    event.preventDefault();
    if (asking) return;
    const act = event.submitter ? event.submitter.value : "explain";
    const sent = new URLSearchParams(new FormData(form));
    sent.set("act", act);
    sent.set("key", key());
    asking = new AbortController();
    const shown = wait(form, act, sent.get("key"));
    try {
      const reply = await fetch("ask", { method: "POST", body: sent, signal: asking.signal, headers: { accept: "text/html" } });
      swap(await reply.text(), reply.url.includes("/ask") ? null : reply.url);
    } catch (error) {
      shown.say(error.name === "AbortError"
        ? "You stopped waiting. The question may still be answered, and is then told again for free."
        : "The server cannot be reached. What you typed is still here; try again.");
    } finally {
      asking = null;
      shown.end();
    }
  }

  function wait(form, act, key) {
    const line = form.querySelector(".waiting"), said = line.querySelector("span"), stop = line.querySelector(".stop");
    const buttons = all("form[action='ask'] button[type=submit]"), began = Date.now();
    const main = document.querySelector("main");
    let before = "";
    const words = act === "explain" ? "Looking at it" : "Asking";
    const tell = () => {
      const seconds = Math.round((Date.now() - began) / 1000);
      said.textContent = words + (seconds > 1 ? ", for " + seconds + " seconds" : "") + before + ".";
    };
    for (const one of buttons) one.disabled = true;
    main.setAttribute("aria-busy", "true");
    line.hidden = stop.hidden = false;
    const halt = () => asking && asking.abort();
    stop.addEventListener("click", halt);
    const escape = (event) => { if (event.key === "Escape") halt(); };
    document.addEventListener("keydown", escape);
    tell();
    const clock = setInterval(async () => {
      tell();
      try {
        const told = await (await fetch("v1/progress?key=" + key, { headers: { accept: "application/json" } })).json();
        if (told.state === "waiting" || told.state === "asking") {
          const left = told.seconds > 1 ? ", about " + Math.ceil(told.seconds) + " seconds to go" : "";
          before = (told.asked > 1 ? "; " + told.done.toLocaleString("en") + " of " + told.asked.toLocaleString("en") + " numbers are there" :
            told.before > 1 ? "; " + told.before.toLocaleString("en") + " come before" : "") + left;
          if (asking) tell();
        }
      } catch { /* said by the question itself */ }
    }, 1000);
    let kept = false;
    return {
      say(text) { said.textContent = text; stop.hidden = true; kept = true; },
      end() {
        clearInterval(clock);
        stop.removeEventListener("click", halt);
        document.removeEventListener("keydown", escape);
        for (const one of buttons) one.disabled = false;
        main.removeAttribute("aria-busy");
        if (!kept) line.hidden = true;
      },
    };
  }

  function swap(text, address) {
    const page = new DOMParser().parseFromString(text, "text/html");
    document.body.replaceWith(page.body);
    document.title = page.title;
    if (address) history.pushState(null, "", address);
    begun();
    const told = document.querySelector("[aria-invalid=true], #result h2, .card h1, #token");
    if (told) {
      if (!told.matches("input, select, textarea")) told.setAttribute("tabindex", "-1");
      told.focus();
      told.scrollIntoView({ block: "nearest" });
    }
  }

  addEventListener("popstate", () => location.reload());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  function begun() { fitted(); }
  begun();
})();
