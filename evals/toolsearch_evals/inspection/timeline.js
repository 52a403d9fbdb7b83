"use strict";
/* The timeline: conversations, their turns and steps, drawn when they are unfolded. Text is only ever set as text. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.getElementById("timeline-of-all");
  if (!root) return;
  const MOST = { groups: 30, rows: 40, steps: 150 }; /* drawn at once; a button draws as many more */
  const make = (tag, name = "", ...inner) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...inner.filter((each) => each !== "" && each !== null && each !== undefined));
    return made;
  };
  const count = (number) => number.toLocaleString("en");
  const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
  const dollars = (value) => `$${value.toFixed(value >= 0.1 ? 2 : 4)}`;
  const seconds = (value) => (value < 1 ? `${Math.round(value * 1000)} ms` : value < 90 ? `${value.toFixed(1)} s` : `${Math.round(value / 60)} min`);
  const time = (at) => {
    const date = new Date(at * 1000);
    return at && !Number.isNaN(date.getTime()) ? date.toISOString().slice(0, 16).replace("T", " ") : "";
  };
  const list = (step, key) => step[key] || [];

  /* -- what is shown: groups of one conversation, or of two that are compared ------------------------------------- */

  const sides = data.against ? [data.conversations, data.against] : [data.conversations];
  const pairs = data.pairs || data.conversations.map((_, at) => [at]);
  const groups = pairs.map((pair) => {
    const of = pair.map((at, side) => (at === null ? null : sides[side][at]));
    const rows = [];
    for (let at = 0; at < Math.max(...of.map((each) => (each ? each.turns.length : 0))); at += 1) {
      rows.push(of.map((each) => (each && each.turns[at]) || null));
    }
    return { id: of.find(Boolean).id, of, rows };
  });

  /* -- filters ---------------------------------------------------------------------------------------------------- */

  const NOTHING = "a query found nothing";
  const LOST = "the cache lost tokens";
  const FAILED = "a model call failed";
  const OPEN = "the turn has not ended";
  const statusesOf = (step) => {
    const found = [];
    if (step.kind === "search" && (step.in_vain || list(step, "verdicts").includes("none"))) found.push(NOTHING);
    if ((step.kind === "call" || step.kind === "search") && step.status && step.status !== "ok") found.push(`call: ${step.status}`);
    if (step.kind === "approval") found.push(`approval: ${step.decision}`);
    if (step.kind === "round" && step.lost) found.push(LOST);
    if (step.kind === "round" && step.error) found.push(FAILED);
    if (step.kind === "log") found.push(`log: ${step.word}`);
    return found;
  };
  const toolsOf = (step) => [step.tool, step.of, ...list(step, "loaded"), ...list(step, "already"), ...list(step, "named")].filter(Boolean);
  const tools = new Map();
  const statuses = new Map();
  for (const conversation of sides.flat()) {
    for (const turn of conversation.turns) {
      if (!turn.ended && conversation.source === "journal") statuses.set(OPEN, 1 + (statuses.get(OPEN) || 0));
      for (const step of turn.steps) {
        for (const tool of toolsOf(step)) tools.set(tool, 1);
        for (const status of statusesOf(step)) statuses.set(status, 1 + (statuses.get(status) || 0));
      }
    }
  }
  const texts = (value) => (typeof value === "string" ? [value] : value && typeof value === "object" ? Object.values(value).flatMap(texts) : []);
  const straws = new WeakMap(); /* all texts of a turn, once somebody searches in them */
  const straw = (turn) => {
    if (!straws.has(turn)) straws.set(turn, texts(turn.steps).join("\n").toLowerCase());
    return straws.get(turn);
  };

  const filters = make("div", "filters");
  const field = (label, control) => {
    filters.append(make("label", "", label, control));
    return control;
  };
  const input = (label, values) => {
    const made = field(label, make("input"));
    made.type = "search";
    if (values && values.length > 1) {
      const listed = make("datalist", "", ...values.slice(0, 1000).map((value) => new Option(value, value)));
      listed.id = `values-of-${label}`;
      made.setAttribute("list", listed.id);
      filters.append(listed);
    }
    return made;
  };
  const by = {};
  if (groups.length > 1) by.conversation = input("conversation", groups.map((group) => group.id));
  if (tools.size > 1) by.tool = input("tool", [...tools.keys()].sort());
  if (statuses.size) {
    by.status = field("status", make("select"));
    by.status.append(new Option("all", ""), ...[...statuses.keys()].sort().map((each) => new Option(`${each} (${count(statuses.get(each))})`, each)));
  }
  by.text = input("text");
  const told = make("output");
  filters.append(told);
  const value = (name) => (by[name] ? by[name].value.trim() : "");

  const fitsTool = (step, tool) => toolsOf(step).some((each) => each.toLowerCase().includes(tool));
  const fits = (turn, wanted) => {
    if (!turn) return false;
    if (wanted.tool && !turn.steps.some((step) => fitsTool(step, wanted.tool))) return false;
    if (wanted.status === OPEN) {
      if (turn.ended) return false;
    } else if (wanted.status && !turn.steps.some((step) => statusesOf(step).includes(wanted.status))) return false;
    return wanted.words.every((word) => straw(turn).includes(word));
  };
  let wanted = { tool: "", status: "", words: [], conversation: "" };

  /* -- pieces ----------------------------------------------------------------------------------------------------- */

  const code = (text) => make("code", "", text);
  const long = (text, name = "") => {
    const first = text.split("\n", 1)[0];
    if (text.length <= 160 && first === text) return make("p", `said ${name}`, text);
    const folded = make("details", `folded ${name}`, make("summary", "", first.length > 120 ? `${first.slice(0, 120)}…` : first || "…"));
    folded.addEventListener("toggle", () => { if (folded.open && folded.children.length < 2) folded.append(make("pre", "", text)); });
    return folded;
  };
  const chip = (text, name = "") => make("span", `chip ${name}`, text);
  /* Draws a list piece by piece: `draw` makes an element of an item. */
  const inPieces = (place, items, most, draw) => {
    let done = 0;
    const more = make("button", "more");
    more.type = "button";
    const go = () => {
      const next = items.slice(done, done + most).map(draw);
      done += next.length;
      more.before(...next);
      more.textContent = `Show ${count(Math.min(most, items.length - done))} more of ${count(items.length - done)}`;
      more.hidden = done >= items.length;
    };
    place.append(more);
    more.addEventListener("click", go);
    go();
  };

  const tokens = (step, most) => {
    const bar = make("span", "tokens");
    bar.setAttribute("aria-hidden", "true");
    const cached = step.cached || 0;
    const lost = Math.min(step.lost || 0, (step.input || 0) - cached);
    const parts = [["cached", cached], ["lost", lost], ["fresh", (step.input || 0) - cached - lost], ["written", step.output || 0]];
    for (const [name, number] of parts) {
      const part = make("span", name);
      part.style.width = `${(100 * Math.max(0, number)) / most}%`;
      bar.append(part);
    }
    return bar;
  };

  const spent = (step) => [
    step.input ? `${count(step.input)} read` : "",
    step.cached ? `${count(step.cached)} cached` : "",
    step.output ? `${count(step.output)} written` : "",
    step.seconds ? seconds(step.seconds) : "",
    step.dollars === undefined ? "" : dollars(step.dollars),
  ].filter(Boolean).join(" · ");

  const hit = (tool, state, step) => {
    const sure = (step.confidence || {})[tool];
    const meter = make("span", "meter");
    if (sure !== undefined) {
      const part = make("span");
      part.style.width = `${100 * Math.min(1, sure)}%`;
      meter.append(part);
      meter.setAttribute("aria-hidden", "true");
    }
    const called = list(step, "led_to").includes(tool) ? chip("called then", "good") : "";
    return make("li", state, code(tool), meter, make("span", "number", sure === undefined ? "–" : sure.toFixed(2)), make("span", "chips", chip(state), called));
  };

  const draw = {
    user: (step) => ["User", [step.text ? long(step.text) : "", step.more ? make("p", "soft", `and ${counted(step.more, "further part")}: an image, a file or the like`) : ""]],
    round: (step, most) => [
      step.purpose ? `Model, for ${step.purpose}` : "Model",
      [
        step.input ? tokens(step, most) : "",
        step.lost ? make("p", "warn", `The cache lost ${counted(step.lost, "token")}${step.lost_dollars ? ` (${dollars(step.lost_dollars)})` : ""}${step.why ? `, after ${step.why}` : ""}.`) : "",
        step.reasoning ? long(step.reasoning, "soft") : "",
        step.text ? long(step.text) : "",
        step.stop ? make("p", "warn", `It stopped because of ${step.stop}.`) : "",
        step.error ? make("p", "bad", step.error) : "",
      ],
      [step.model || "", spent(step)].filter(Boolean).join(" · "),
    ],
    search: (step) => {
      const verdicts = list(step, "verdicts");
      const queries = list(step, "queries").map((query, at) => make("span", "query", `“${query}”`, verdicts.length === list(step, "queries").length && verdicts[at] ? chip(verdicts[at], { found: "good", weak: "fair", none: "bad" }[verdicts[at]] || "") : ""));
      const hits = [
        ...list(step, "loaded").map((tool) => hit(tool, "loaded", step)),
        ...list(step, "already").map((tool) => hit(tool, "loaded before", step)),
        ...list(step, "named").map((tool) => hit(tool, "named", step)),
      ];
      const shown = make("ul", "hits", ...hits.slice(0, 6));
      const rest = hits.length > 6 ? make("details", "folded", make("summary", "", `${hits.length - 6} more`), make("ul", "hits", ...hits.slice(6))) : "";
      return [
        "Search",
        [make("p", "queries", ...queries, step.category ? chip(`in ${step.category}`) : ""), step.in_vain ? make("p", "bad", hits.length ? "It found nothing; it named what is nearest:" : "It found nothing.") : "", hits.length ? shown : "", rest, step.answer ? make("details", "folded", make("summary", "", "What the model read"), make("pre", "", step.answer)) : ""],
        [step.tokens ? counted(step.tokens, "token") : "", step.seconds ? seconds(step.seconds) : ""].filter(Boolean).join(" · "),
        step.status && step.status !== "ok" ? step.status : "",
      ];
    },
    call: (step) => [
      "Call",
      [make("p", "said", code(step.tool || step.name || "?"), step.action ? chip("action") : "", step.name && step.tool && !step.tool.endsWith(step.name) ? make("span", "soft", ` called as ${step.name}`) : ""), step.arguments && step.arguments !== "{}" ? long(step.arguments, "mono") : "", step.error ? make("p", "bad", step.error) : "", step.answer ? long(step.answer, "answer") : ""],
      [step.by ? `answered by the ${step.by}` : "", step.tokens ? counted(step.tokens, "token") : "", step.seconds ? seconds(step.seconds) : ""].filter(Boolean).join(" · "),
      step.status || "no answer",
    ],
    approval: (step) => [
      "Approval",
      [make("p", "said", step.of ? code(step.of) : "", step.asks && step.asks !== "approval" ? chip(step.asks) : ""), step.question ? long(step.question) : "", step.changed ? long(`with ${step.changed}`, "mono") : "", step.why ? long(step.why) : ""],
      [step.actor ? `by ${step.actor}` : step.by ? `asked by ${step.by}` : "", step.at && step.decided ? `after ${seconds(step.decided - step.at)}` : "", step.remember ? `for the ${step.remember}` : ""].filter(Boolean).join(" · "),
      step.decision,
    ],
    tools: (step) => ["Tools", [
      list(step, "loaded").length ? make("p", "said", "Loaded without a search: ", code(step.loaded.join(", "))) : "",
      list(step, "unloaded").length ? make("p", "said", "Unloaded: ", code(step.unloaded.join(", "))) : "",
      ...list(step, "notices").map((each) => make("p", "soft", each)),
    ]],
    note: (step) => ["Note", [long(step.text || "")]],
    log: (step) => [step.word || "Log", [step.text ? long(step.text) : ""], step.seconds ? seconds(step.seconds) : ""],
    end: (step) => ["End", [step.text ? long(step.text) : ""], step.reason || ""],
  };
  const TONES = { ok: "good", approved: "good", found: "good", waits: "fair", expired: "bad", declined: "bad", denied: "bad", failed: "bad", unknown: "bad" };

  const key = (step) => (step.kind === "search" ? `s${list(step, "queries").join("\n").toLowerCase()}` : step.kind === "call" ? `c${step.tool || step.name} ${step.arguments || ""}` : "");
  const keysOf = (turn) => new Set(turn ? turn.steps.map(key).filter(Boolean) : []);

  const stepOf = (step, most, others) => {
    const made = (draw[step.kind] || ((each) => [each.kind, [long(texts(each).join("\n"))]]))(step, most);
    const [word, body, about = "", status = ""] = made;
    const is = wanted.tool && fitsTool(step, wanted.tool) || wanted.status && statusesOf(step).includes(wanted.status);
    const only = others && key(step) && !others.has(key(step));
    return make("li", `step of-${draw[step.kind] ? step.kind : "log"}${is ? " hit" : ""}${step.kind === "call" && TONES[status] !== "good" ? " is-bad" : ""}`,
      make("p", "head", make("b", "", word), status ? chip(status, TONES[status] || (step.kind === "call" ? "bad" : "")) : "", only ? chip("only here", "only") : "", about ? make("span", "about-step", about) : ""),
      ...body);
  };

  const sums = (turn) => {
    const of = (kind) => turn.steps.filter((step) => step.kind === kind);
    const searches = of("search");
    const empty = searches.filter((step) => statusesOf(step).includes(NOTHING)).length;
    const calls = of("call");
    const failed = calls.filter((step) => step.status && step.status !== "ok").length;
    return [
      searches.length ? chip(counted(searches.length, "search", "searches"), empty ? "fair" : "") : "",
      calls.length ? chip(counted(calls.length, "call") + (failed ? `, ${failed} failed` : ""), failed ? "bad" : "") : "",
      of("approval").length ? chip(of("approval").map((step) => step.decision).join(", "), "fair") : "",
      turn.input ? chip(`${count(turn.input + (turn.output || 0))} tokens`) : "",
      turn.lost ? chip(`${count(turn.lost)} lost`, "fair") : "",
      turn.dollars ? chip(dollars(turn.dollars)) : "",
      turn.ended && turn.ended !== "answered" ? chip(turn.ended, "bad") : "",
    ];
  };

  const longest = (turn) => Math.max(1, ...(turn ? turn.steps.map((step) => (step.input || 0) + (step.output || 0)) : []));
  const turnOf = (turn, others, open, most, side = "") => {
    const said = turn.said || turn.steps.map((step) => list(step, "queries")[0] || step.tool || (step.word ? `${step.word}: ${step.text || ""}` : "")).find(Boolean) || "(nothing was said)";
    const made = make("details", "turn", make("summary", "", make("span", "said", side ? make("b", "side", side) : "", `${turn.turn}. ${said}`), make("span", "chips", ...sums(turn))));
    const fill = () => {
      if (made.children.length > 1) return;
      const about = [time(turn.at), turn.seconds ? seconds(turn.seconds) : "", turn.mode ? `mode ${turn.mode}` : "", turn.user ? `for ${turn.user}` : "", turn.client ? `client ${turn.client}` : "", turn.ended || (turn.requests ? "not ended" : "")].filter(Boolean).join(" · ");
      made.append(make("p", "soft small", about));
      if (!turn.steps.length) made.append(make("p", "note", "Its steps have no room on this page: pass --conversation."));
      const steps = make("ol", "steps");
      inPieces(steps, turn.steps, MOST.steps, (step) => stepOf(step, most, others));
      made.append(steps);
    };
    made.addEventListener("toggle", () => { if (made.open) fill(); });
    if (open) { fill(); made.open = true; }
    return made;
  };

  const groupOf = (group, rows, openGroup, openTurns) => {
    const turns = group.of.map((each) => (each ? each.turns : []));
    const total = (name) => turns.map((of) => of.reduce((sum, turn) => sum + (turn[name] || 0), 0));
    const steps = (kind) => turns.map((of) => of.reduce((sum, turn) => sum + turn.steps.filter((step) => step.kind === kind).length, 0));
    const both = (numbers, write) => numbers.map(write).join(" | ");
    const told = (numbers, one, many) => `${both(numbers, count)} ${numbers.every((each) => each === 1) ? one : many}`;
    const first = group.of.find(Boolean);
    const read = total("input").map((each, at) => each + total("output")[at]);
    const made = make("details", "talk-of", make("summary", "",
      make("b", "", group.id), make("span", "soft small", [time(first.at), first.turns.length && first.turns[0].client ? `client ${first.turns[0].client}` : "", group.of.map((each) => (each ? each.file : "–")).join(" | ")].filter(Boolean).join(" · ")),
      make("span", "chips",
        chip(rows.length === group.rows.length ? counted(group.rows.length, "turn") : `${rows.length} of ${counted(group.rows.length, "turn")}`),
        chip(told(steps("search"), "search", "searches")), chip(told(steps("call"), "call", "calls")),
        read.some(Boolean) ? chip(`${both(read, count)} tokens`) : "",
        total("dollars").some(Boolean) ? chip(both(total("dollars"), dollars)) : "")));
    const fill = () => {
      if (made.children.length > 1) return;
      const place = make("div", "turns");
      if (group.of.length > 1) place.append(make("div", "row two heads", ...group.of.map((each, side) => make("b", "", `${"AB"[side]}: ${each ? `${each.file}, ${each.id}` : "no such conversation"}`))));
      inPieces(place, rows, MOST.rows, (row) => {
        const most = Math.max(...row.map(longest)); /* one scale for both sides */
        if (row.length === 1) return turnOf(row[0], null, openTurns, most);
        return make("div", "row two", ...row.map((turn, side) => (turn ? turnOf(turn, keysOf(row[1 - side]), openTurns, most, "AB"[side]) : make("p", "soft", `${"AB"[side]} has no such turn.`))));
      });
      made.append(place);
    };
    made.addEventListener("toggle", () => { if (made.open) fill(); });
    if (openGroup) { fill(); made.open = true; }
    return made;
  };

  /* -- all of it -------------------------------------------------------------------------------------------------- */

  const shown = make("div", "talks");
  const apply = () => {
    wanted = { conversation: value("conversation").toLowerCase(), tool: value("tool").toLowerCase(), status: value("status"), words: value("text").toLowerCase().split(/\s+/).filter(Boolean) };
    const isFiltered = wanted.tool || wanted.status || wanted.words.length;
    const left = groups
      .filter((group) => !wanted.conversation || group.id.toLowerCase().includes(wanted.conversation))
      .map((group) => [group, isFiltered ? group.rows.filter((row) => row.some((turn) => fits(turn, wanted))) : group.rows])
      .filter(([, rows]) => rows.length);
    const turns = left.reduce((sum, [, rows]) => sum + rows.length, 0);
    const all = groups.reduce((sum, group) => sum + group.rows.length, 0);
    told.textContent = turns === all ? "" : `${count(turns)} of ${counted(all, "turn")} in ${count(left.length)} of ${counted(groups.length, "conversation")}`;
    const isOne = left.length === 1;
    shown.replaceChildren();
    if (!left.length) shown.append(make("p", "note", "No turn has all of that."));
    else inPieces(shown, left, MOST.groups, ([group, rows]) => groupOf(group, rows, isOne || (isFiltered && turns <= 20), turns <= 2));
  };
  let soon = 0;
  filters.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(apply, sides.flat().length > 50 ? 150 : 0);
  });
  filters.addEventListener("change", apply);
  root.append(filters, shown);
  apply();
})();
