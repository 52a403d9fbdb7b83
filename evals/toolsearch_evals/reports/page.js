"use strict";
/* Everything can be read without this script: it adds switches, values under the pointer, filters and sorting. Text is
   only ever set as text. */
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, text = "", name = "") => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (name) made.className = name;
    return made;
  };

  /* One choice at a time: radio number n hides what has another value in data-c<n>. */
  for (const switches of all(".switches")) {
    const parts = all("[data-c]", switches.parentElement);
    const apply = () => {
      const chosen = all("input:checked", switches).map((input) => [`c${input.dataset.key}`, input.value]);
      for (const part of parts) {
        part.hidden = chosen.some(([key, value]) => key in part.dataset && part.dataset[key] !== value);
      }
    };
    switches.hidden = false;
    switches.addEventListener("change", apply);
    apply();
  }

  /* The values of all lines at the place nearest to the pointer, or at the next one by an arrow key. */
  for (const plot of all(".plot")) {
    const svg = plot.querySelector("svg");
    const cursor = plot.querySelector(".cursor");
    const dots = all(".dot", svg);
    if (!cursor || !dots.length) continue;
    const first = all(".plot:first-of-type .dot", plot.parentElement); /* other scales have the same dots, unnamed */
    first.forEach((dot, at) => {
      if (dots[at] !== dot) dots[at].told = dot.told;
      else {
        dot.told = dot.firstElementChild.textContent.split("\n");
        dot.firstElementChild.remove();
      }
    });
    const places = new Map();
    for (const dot of dots) {
      const x = Number(dot.dataset.x); /* a plot that is hidden has no box to measure */
      const [at, ...told] = dot.told;
      if (!places.has(x)) places.set(x, { at, told: [] });
      places.get(x).told.push([dot, told.join(" ")]);
    }
    const xs = [...places.keys()].sort((a, b) => a - b);
    const readout = make("div", "", "readout");
    readout.setAttribute("role", "status");
    readout.hidden = true;
    plot.append(readout);
    let now = -1;
    const show = (at) => {
      if (at === now) return;
      now = at;
      readout.hidden = at < 0;
      cursor.style.visibility = at < 0 ? "hidden" : "visible";
      if (at < 0) return;
      const place = places.get(xs[at]);
      readout.replaceChildren(make("b", place.at));
      for (const [dot, text] of place.told) {
        const row = make("span");
        const sample = svg.cloneNode(false);
        const mark = dot.cloneNode(false);
        const box = dot.getBBox();
        sample.setAttribute("viewBox", `${box.x - 8} ${box.y} ${box.width + 16} ${box.height}`);
        sample.removeAttribute("role");
        sample.setAttribute("aria-hidden", "true");
        sample.append(mark);
        row.append(sample, text);
        readout.append(row);
      }
      cursor.setAttribute("transform", `translate(${xs[at]} 0)`);
      const share = xs[at] / svg.viewBox.baseVal.width;
      readout.style.left = share < 0.5 ? `${100 * share + 3}%` : "auto";
      readout.style.right = share < 0.5 ? "auto" : `${100 * (1 - share) + 3}%`;
    };
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", "Chart: the arrow keys go through its values");
    plot.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      show(xs.reduce((best, each, at) => (Math.abs(each - x) < Math.abs(xs[best] - x) ? at : best), 0));
    });
    plot.addEventListener("pointerleave", () => show(-1));
    plot.addEventListener("blur", () => show(-1));
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) {
        show(now < 0 ? (step > 0 ? 0 : xs.length - 1) : Math.min(xs.length - 1, Math.max(0, now + step)));
        event.preventDefault();
      } else if (event.key === "Escape") show(-1);
    });
  }

  const number = (text) => {
    const found = /^[−$≤> ]*([\d,]*\.?\d+)/.exec(text);
    return found ? (text.includes("−") && text.indexOf("−") < 2 ? -1 : 1) * Number(found[1].replaceAll(",", "")) : NaN;
  };

  /* Filters by the columns of text, a search, and sorting by any column. */
  for (const scroll of all(".of-report")) {
    const table = scroll.querySelector("table");
    const body = table.tBodies[0];
    const heads = all("thead th", table);
    const rows = [...body.rows];
    if (rows.length < 8) continue;
    const filters = make("div", "", "filters");
    const count = make("output");
    const selects = [];
    heads.forEach((head, at) => {
      const values = [...new Set(rows.map((row) => row.cells[at].textContent))];
      const isName = head.classList.contains("text") && !values.some((value) => /^[≤>]? ?[\d,]+ ?(\[|$)/.test(value));
      if (!isName || values.length < 2 || values.length > 14) return;
      const label = make("label", head.textContent);
      const select = make("select");
      select.append(new Option("all", ""), ...values.map((value, n) => new Option(value, String(n))));
      label.append(select);
      filters.append(label);
      selects.push([at, select, values]);
    });
    const search = make("input");
    search.type = "search";
    if (rows.length >= 15) {
      const label = make("label", "search");
      label.append(search);
      filters.append(label);
    }
    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const fits = (each) => !each[1].value || row.cells[each[0]].textContent === each[2][Number(each[1].value)];
        row.hidden = !(selects.every(fits) && words.every((word) => text.includes(word)));
        left += row.hidden ? 0 : 1;
      }
      count.textContent = left === rows.length ? "" : `${left} of ${rows.length} rows`;
    };
    filters.addEventListener("input", apply);
    filters.append(count);
    if (filters.children.length > 1) scroll.before(filters);
    heads.forEach((head, at) => {
      const button = make("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const each of heads) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const order = (one, other) => {
          const [a, b] = [one, other].map((row) => row.cells[at].textContent);
          const [x, y] = [number(a), number(b)];
          if (Number.isNaN(x) || Number.isNaN(y)) return (a === "–") - (b === "–") || a.localeCompare(b);
          return x - y;
        };
        body.append(...[...rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
      });
    });
  }

  /* On paper, nothing can be unfolded. */
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details.case:not([open])");
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
  });
})();
