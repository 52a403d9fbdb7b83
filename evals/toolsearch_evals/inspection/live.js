"use strict";
/* The search box: it sends a query to the server that this page comes from, and draws the answers. Text is only ever set
   as text. */
(() => {
  const begin = JSON.parse(document.getElementById("data").textContent);
  const [form, input, status, answers, about] = ["form", "query", "status", "answers", "about"].map((id) => document.getElementById(id));
  const make = (tag, name = "", ...inner) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...inner.filter((each) => each !== "" && each !== null && each !== undefined));
    return made;
  };
  const count = (number) => number.toLocaleString("en");
  const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
  const chip = (text, name = "") => make("span", `chip ${name}`, text);
  const TONES = { found: "good", weak: "fair", none: "bad", ready: "good", connecting: "fair", failed: "bad", "needs login": "bad" };

  const tell = (state) => {
    const servers = state.servers.map((server) => {
      const made = chip(`${server.name}: ${server.state}${server.state === "ready" ? `, ${counted(server.tools, "tool")}` : ""}`, TONES[server.state] || "");
      return server.reason ? make("span", "", made, make("span", "soft small", ` ${server.reason}`)) : made;
    });
    about.replaceChildren(`${counted(state.tools, "tool")}, searched by ${begin.indexes.join(", ")}`, make("span", "servers", ...servers));
  };

  const hit = (each, loaded) => {
    const meter = make("span", "meter");
    if (each.confidence !== null) {
      const part = make("span");
      part.style.width = `${100 * each.confidence}%`;
      meter.append(part);
      meter.setAttribute("aria-hidden", "true");
    }
    const sure = each.exact ? "name" : each.confidence === null ? "–" : each.confidence.toFixed(2);
    const words = each.matched.map((match) => (match.fields.join() === "meaning" ? "by its meaning" : `${match.word} (${match.fields.join(", ")})`)).join(", ");
    return make("li", "",
      make("div", "line", make("code", "", each.id), meter, make("span", "number", sure)),
      make("p", "", each.summary),
      make("p", "soft small", [words ? `matched ${words}` : "", each.score === null ? "" : `score ${each.score.toFixed(3)}`].filter(Boolean).join(" · ")),
      loaded.has(each.id) ? chip("would be loaded", "good") : "");
  };

  const index = (of) => {
    const loaded = new Set(of.loaded.map((tool) => tool.id));
    const notes = [of.problem, of.hint, of.degraded, of.unknown.length ? `No tool is named ${of.unknown.join(", ")}.` : ""].filter(Boolean);
    const tools = of.loaded.map((tool) => `${tool.id} (${counted(tool.tokens, "token")})`).join(", ");
    return make("section", "index",
      make("h2", "", of.index, of.verdict ? chip(of.verdict, TONES[of.verdict]) : "", make("span", "soft small", `${(1000 * of.seconds).toFixed(1)} ms`)),
      make("div", "load",
        make("p", "", of.loaded.length ? `A model would load ${counted(of.loaded.length, "tool")}: ${tools}.` : "A model would load nothing."),
        make("p", "soft", `${count(of.answer_tokens)} tokens of the answer, ${count(of.loaded_tokens)} of the definitions.`)),
      ...notes.map((note) => make("p", "warn", note)),
      of.hits.length ? make("ol", "found", ...of.hits.map((each) => hit(each, loaded))) : make("p", "bad", `Nothing fits.${of.near.length ? ` Nearest: ${of.near.join(", ")}.` : ""}`),
      make("details", "folded", make("summary", "", "What the model reads"), make("pre", "", of.answer)));
  };

  let asked = 0;
  const search = async () => {
    const query = input.value.trim();
    if (!query) return;
    asked += 1;
    const mine = asked;
    status.textContent = "Searching …";
    try {
      const response = await fetch("search", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ query }) });
      if (!response.ok) throw new Error(await response.text());
      const answer = await response.json();
      if (mine !== asked) return;
      tell(answer);
      answers.replaceChildren(...answer.indexes.map(index));
      status.textContent = `“${query}”`;
    } catch (error) {
      if (mine === asked) status.textContent = `The search failed: ${error.message}. Is the command still running?`;
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  tell(begin);
})();
