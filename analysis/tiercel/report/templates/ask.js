// Figures that can be asked. What lies behind the numbers is packed in the page; without this script, or in
// a browser that cannot unpack, the page is what it is on paper.
(() => {
  const held = document.getElementById("packed");
  if (!held || typeof DecompressionStream === "undefined") return;
  const make = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const unpack = async () => {
    const bytes = Uint8Array.from(atob(held.content.textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  unpack().then(begin);

  function begin({ numbers, runs: listed, shares: drawn, whole, rows, figures }) {
    const runs = Object.fromEntries(listed);
    for (const n of Object.values(numbers)) n.runs = n.runs.map((place) => listed[place][0]);
    // Marks of numbers: "figure-<name>-number-<n>".
    const anchorOf = (mark) => mark.id.match(/number-\d+$/)[0];
    const marksIn = (where) => [...where.querySelectorAll('figure svg g[id*="-number-"]')];
    let marks = [];
    const collect = () => { marks = marksIn(document).filter((m) => numbers[anchorOf(m)]); };

    // Figures and rows that the page holds packed, because there are many.
    const svgOf = (text) => document.importNode(new DOMParser().parseFromString(text, "text/html").querySelector("svg"), true);
    for (const place of document.querySelectorAll("[data-later]")) {
      const watch = new IntersectionObserver((seen) => {
        if (!seen.some((s) => s.isIntersecting)) return;
        watch.disconnect();
        unfold(place);
      }, { rootMargin: "600px" });
      watch.observe(place);
    }
    function unfold(place) {
      if (!place.isConnected) return;
      const svg = svgOf(figures[place.dataset.later]);
      place.replaceWith(svg);
      prepare(svg);
      collect();
      apply();
    }
    function expand(name) {
      const button = document.querySelector(`[data-more="${name}"]`);
      if (!button) return;
      const table = document.getElementById(`table-${name}`);
      const body = document.createElement("tbody");
      body.innerHTML = rows[name];
      askable(body);
      table.tBodies[0].append(...body.rows);
      button.closest("p").remove();
      table.dispatchEvent(new Event("added"));
      apply();
    }
    for (const button of document.querySelectorAll("[data-more]")) {
      button.hidden = false;
      button.addEventListener("click", () => expand(button.dataset.more));
      // What sorts or searches a table is about all of its rows.
      document.getElementById(`table-${button.dataset.more}`).addEventListener("wanted", () => expand(button.dataset.more));
    }
    addEventListener("beforeprint", () => document.querySelectorAll("[data-later]").forEach(unfold));
    // A link to a number whose row is packed, or that is not of what is chosen.
    const reach = (id) => {
      if (!Object.hasOwn(numbers, id)) return;
      if (!document.getElementById(id)) expand("numbers");
      const row = document.getElementById(id);
      if (row?.classList.contains("out")) choose({});
      if (row?.classList.contains("unlike")) row.closest("table").dispatchEvent(new Event("whole"));
    };
    const hash = () => {
      const id = location.hash.slice(1), there = document.getElementById(id)?.getClientRects().length;
      reach(id);
      if (!there) document.getElementById(id)?.scrollIntoView();
    };
    addEventListener("hashchange", hash);
    addEventListener("click", (event) => {
      const link = event.target.closest?.('a[href^="#"]');
      if (link) reach(link.getAttribute("href").slice(1));
    });

    // What is said of a number where it is pointed at.
    const tip = make("div", { id: "tip", role: "status", hidden: "" });
    document.body.append(tip);
    let lit = null;
    function light(mark) {
      const anchor = mark ? anchorOf(mark) : null;
      if (anchor === lit) return;
      lit = anchor;
      for (const other of marks) {
        const it = anchorOf(other);
        other.classList.toggle("lit", it === anchor);
        other.classList.toggle("pale", Boolean(anchor) && numbers[it].storage !== numbers[anchor].storage);
      }
      document.querySelectorAll("tr.lit").forEach((row) => row.classList.remove("lit"));
      tip.hidden = !anchor;
      if (!anchor) return;
      document.getElementById(anchor)?.classList.add("lit");
      const n = numbers[anchor];
      tip.replaceChildren(
        make("b", {}, `${n.value}`), make("span", {}, ` ${n.interval}`),
        make("div", {}, `${n.storage}, ${n.scale}`), make("div", {}, `${n.operation}: ${n.title}`),
        make("div", { class: "note" }, `No. ${anchor.slice(7)}, ${n.runs.length} runs`
          + `${n.origin === "measured" ? "" : `, ${n.origin}`}${n.flags.length ? `; ${n.flags.join(", ")}` : ""}`),
      );
      const box = mark.getBoundingClientRect();
      const left = Math.min(Math.max(8, box.left + 14), document.documentElement.clientWidth - tip.offsetWidth - 8);
      const below = box.bottom + 12;
      tip.style.left = `${Math.max(8, left)}px`;
      tip.style.top = `${below + tip.offsetHeight > innerHeight ? box.top - tip.offsetHeight - 12 : below}px`;
    }

    // A figure is one stop of the keyboard; arrows go from mark to mark, Enter opens.
    function prepare(svg) {
      const mine = () => marksIn(svg.parentNode).filter((m) => svg.contains(m) && !m.classList.contains("out") && numbers[anchorOf(m)]);
      if (!mine().length) return;
      svg.setAttribute("tabindex", "0");
      svg.classList.add("asked");
      const centre = (m) => { const b = m.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; };
      const nearest = (event) => {
        let best = null, least = 26;
        for (const m of mine()) {
          const [x, y] = centre(m), far = Math.hypot(event.clientX - x, event.clientY - y);
          if (far < least) { least = far; best = m; }
        }
        return best;
      };
      svg.addEventListener("pointermove", (event) => {
        const mark = nearest(event);
        svg.style.cursor = mark ? "pointer" : "";
        light(mark);
      });
      svg.addEventListener("pointerleave", () => light(null));
      svg.addEventListener("blur", () => light(null));
      svg.addEventListener("click", (event) => { const mark = nearest(event); if (mark) open(anchorOf(mark)); });
      svg.addEventListener("keydown", (event) => {
        const all = mine(), at = all.findIndex((m) => anchorOf(m) === lit);
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (step) {
          event.preventDefault();
          light(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : (at + step + all.length) % all.length]);
        } else if (event.key === "Enter" && at >= 0) open(lit);
        else if (event.key === "Escape") light(null);
      });
    }

    // The other kind of axis.
    for (const button of document.querySelectorAll("[data-other]")) {
      button.hidden = false;
      const name = button.dataset.other, [one, two] = [button.textContent, button.dataset.back];
      let other = null;
      button.addEventListener("click", () => {
        const figure = button.closest("figure");
        const now = figure.querySelector("svg");
        if (!now) return;
        if (!other) { other = svgOf(figures[`other-${name}`]); now.replaceWith(other); prepare(other); }
        else now.replaceWith(other);
        other = now;
        button.textContent = button.textContent === one ? two : one;
        collect();
        apply();
      });
    }

    // From a number to its runs.
    const dialog = make("dialog", { id: "evidence", "aria-labelledby": "evidence-title" });
    document.body.append(dialog);
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    const commandsOf = (id) => (runs[id]?.commands ?? []).map((c) => c.replaceAll("\u0001", id));
    function open(anchor) {
      const n = numbers[anchor];
      light(null);
      const close = make("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
      close.addEventListener("click", () => dialog.close());
      const only = [["storage", n.storage], ["workload", n.title], ["scale", n.scale]].map(([key, value]) => {
        const button = make("button", { type: "button" }, `Only ${value}`);
        button.addEventListener("click", () => { chosen[key].value = value; apply(); dialog.close(); });
        return button;
      });
      const link = make("a", { href: `#${anchor}` }, "its row in the table");
      link.addEventListener("click", () => dialog.close());
      const list = make("ol", { class: "runs" });
      n.runs.forEach((id, i) => {
        const run = runs[id] ?? {};
        const item = make("li", {}, make("div", {}, make("b", {}, n.values[i] ?? ""),
          ` ${[run.when, run.took && `took ${run.took}`, run.conditions].filter(Boolean).join("; ")}`),
          ...(n.within[i] ? [make("div", {}, `Within: ${n.within[i]}.`)] : []),
          make("div", { class: "note" }, ...(run.folder ? [make("a", { href: run.folder.split("/").map(encodeURIComponent).join("/") }, id)] : [id])));
        const lines = commandsOf(id);
        if (lines.length) {
          const copy = make("button", { type: "button" }, "Copy");
          copy.addEventListener("click", async () => {
            copy.textContent = (await copied(lines.join("\n"))) ? "Copied" : "Cannot copy: select it";
          });
          item.append(make("details", {}, make("summary", {}, lines.length > 1 ? "Command lines" : "Command line"), make("pre", {}, lines.join("\n")), copy));
        }
        list.append(item);
      });
      dialog.replaceChildren(
        close,
        make("h2", { id: "evidence-title" }, `${n.value}: ${n.operation}, ${n.title}`),
        make("p", {}, `${n.storage}, ${n.scale}, ${n.engine}${n.origin === "measured" ? "" : ` (${n.origin})`}. `
          + `Number ${anchor.slice(7)}: median of ${n.runs.length}, interval ${n.interval}. `, link),
        ...(n.flags.length ? [make("p", { class: "flagged" }, `Checks: ${n.flags.join(", ")}`)] : []),
        make("p", { class: "only" }, ...only),
        ...(n.latencies.some((l) => l.length) ? [curves(n)] : []),
        ...overTime(n), ...spread(n),
        ...(whole ? [] : [make("p", { class: "note" }, "What went on within the runs has no room in a page of so many; their folders have it.")]),
        make("h3", {}, "Runs"), list,
      );
      dialog.showModal();
    }
    // A page from a file may have no clipboard of the browser's: then the older way.
    async function copied(text) {
      try { await navigator.clipboard.writeText(text); return true; } catch { /* the older way */ }
      const area = make("textarea", {}, text);
      dialog.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
    const seconds = (v) => (v >= 1 ? `${+v.toPrecision(3)} s` : v >= 1e-3 ? `${+(v * 1e3).toPrecision(3)} ms` : `${+(v * 1e6).toPrecision(3)} µs`);
    // A figure with its words, and what it shows as a table: lists of cells, of which the first names the row.
    const figured = (svg, caption, heads, rows) => {
      const row = (cells, name, first, others) => make("tr", {}, ...cells.map((c, i) => make(name, i ? others : first, c)));
      const table = make("table", {}, make("thead", {}, row(heads, "th", { scope: "col" }, { scope: "col", class: "number" })),
        make("tbody", {}, ...rows.map((cells) => row(cells, "td", {}, { class: "number" }))));
      return make("figure", {}, svg, make("figcaption", {}, caption), make("details", {}, make("summary", {}, "As a table"),
        make("div", { class: "scroll", role: "group", "aria-label": "As a table", tabindex: "0" }, table)));
    };
    const space = svgOf("<svg></svg>").namespaceURI;
    const draw = (name, attributes, text) => {
      const made = document.createElementNS(space, name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      if (text) made.textContent = text;
      return made;
    };
    // An empty figure of rates: from none to the highest, with its lines and their words.
    function rates(n, values, label) {
      const most = Math.max(...values) || 1;
      const units = n.metric !== "operation_rate"
        ? [[2 ** 30, "GiB/s"], [2 ** 20, "MiB/s"], [2 ** 10, "KiB/s"], [1, "B/s"]] : [[1e6, "Mop/s"], [1e3, "kop/s"], [1, "op/s"]];
      const [divisor, unit] = units.find(([d]) => most >= d) ?? units.at(-1);
      const said = (v) => `${+(v / divisor).toPrecision(3)} ${unit}`;
      const y = (v) => 150 - 130 * v / most;
      const svg = draw("svg", { viewBox: "0 0 480 190", role: "img", "aria-label": label(said(most)) });
      for (const share of [0, 0.5, 1]) {
        svg.append(draw("line", { x1: 62, x2: 460, y1: y(share * most), y2: y(share * most), class: "grid" }),
          draw("text", { x: 60, y: y(share * most) + 4, "text-anchor": "end" }, said(share * most)));
      }
      return { svg, y, said };
    }
    // The speed of each process: a column of dots for each run, the median as a line.
    function spread(n) {
      const columns = n.runs.map((id, i) => [i + 1, runs[id]?.speeds?.[n.of]]).filter(([, speeds]) => speeds);
      if (!columns.length) return [];
      const middle = (l) => (l[(l.length - 1) >> 1] + l[l.length >> 1]) / 2;
      const { svg, y, said } = rates(n, columns.flatMap(([, speeds]) => speeds), (most) => `Speed of each process: up to ${most}`);
      const wide = 390 / columns.length, x = (at) => 70 + (at + 0.5) * wide, arm = Math.min(12, wide * 0.35);
      const every = Math.ceil(columns.length / 12);
      columns.forEach(([run, speeds], at) => {
        svg.append(draw("line", { x1: x(at) - arm, x2: x(at) + arm, y1: y(middle(speeds)), y2: y(middle(speeds)), class: "middle" }));
        for (const v of speeds) svg.append(draw("circle", { cx: x(at), cy: y(v), r: 2.5, class: "dot" }));
        if (at % every === 0) svg.append(draw("text", { x: x(at), y: 172, "text-anchor": "middle" }, `run ${run}`));
      });
      return [figured(svg, "The speed of each process, from its first open to its last close: a dot for each, a line at their median. The whole waits for the slowest.",
        ["Run", "Slowest process", "Median", "Fastest"],
        columns.map(([run, speeds]) => [`${run}`, ...[speeds[0], middle(speeds), speeds.at(-1)].map(said)]))];
    }
    // Each run's throughput over the time of its phase: a line each, stepped, as what ended in each interval.
    function overTime(n) {
      const lines = n.runs.map((id) => runs[id]?.series?.[n.of]).filter(Boolean);
      if (!lines.length) return [];
      const end = Math.max(...lines.map((l) => l[0] * (l.length - 1)));
      const { svg, y, said } = rates(n, lines.flatMap((l) => l.slice(1)), (most) => `Throughput over time: up to ${most} in ${seconds(end)}`);
      const x = (t) => 70 + 390 * t / end;
      for (const share of [0, 0.5, 1]) svg.append(draw("text", { x: x(share * end), y: 172, "text-anchor": "middle" }, seconds(share * end)));
      for (const [width, ...steps] of lines) {
        svg.append(draw("polyline", { class: "curve", points: steps.map((v, i) => `${x(i * width)},${y(v)} ${x((i + 1) * width)},${y(v)}`).join(" ") }));
      }
      return [figured(svg, "Throughput over the time of the phase, a line for each run: what ended in each interval. A gap is a pause; what still writes out at the end ends nothing.",
        ["Run", "From", "Throughput"],
        lines.flatMap(([width, ...steps], i) => steps.map((v, k) => [`${i + 1}`, seconds(k * width), said(v)])))];
    }
    // Each run's time of one operation: what share of the operations took at most so long.
    function curves(n) {
      const shares = ["50 %", "90 %", "99 %", "99.9 %", "all"];
      // Of each run [place, seconds] of its recorded histogram, else of the five points that its engine tells. Each
      // nine more of the share is as wide as the one before; all is beyond the last of them.
      const nines = (share) => -Math.log10(1 - share / 100);
      const lines = n.latencies.map((line, i) => {
        const recorded = runs[n.runs[i]]?.curves?.[n.of];
        const at = recorded ? drawn.slice(0, recorded.length - 1) : line.length ? [50, 90, 99, 99.9] : [];
        return (recorded ?? line).map((v, k) => [k < at.length ? nines(at[k]) : null, v]);
      }).filter((l) => l.length);
      const end = Math.max(1, ...lines.flat().map(([at]) => at ?? 0)) + 0.5;
      const all = lines.flat().map(([, v]) => v);
      const [least, most] = [Math.min(...all), Math.max(...all)];
      const said = seconds;
      const low = Math.log10(least), high = Math.max(Math.log10(most), low + 0.3);
      const x = (at) => 80 + 370 * (at ?? end) / end, y = (v) => 150 - 130 * (Math.log10(v) - low) / (high - low);
      const label = `Time of one operation: from ${said(least)} to ${said(most)}`;
      const svg = draw("svg", { viewBox: "0 0 480 190", role: "img", "aria-label": label });
      for (const share of [0, 0.5, 1]) {
        const v = 10 ** (low + share * (high - low));
        svg.append(draw("line", { x1: 62, x2: 460, y1: y(v), y2: y(v), class: "grid" }), draw("text", { x: 56, y: y(v) + 4, "text-anchor": "end" }, said(v)));
      }
      for (const share of [0, 50, 90, 99, 99.9, 99.99, 99.999]) {
        if (nines(share) <= end - 0.4) svg.append(draw("text", { x: x(nines(share)), y: 172, "text-anchor": "middle" }, `${share} %`));
      }
      svg.append(draw("text", { x: x(null), y: 172, "text-anchor": "middle" }, "all"));
      lines.forEach((line) => svg.append(draw("polyline", { points: line.map(([at, v]) => `${x(at)},${y(v)}`).join(" "), class: "curve" })));
      return figured(svg, "How long one operation took, a line for each run: what share of the operations took at most so long, from the histogram where the run recorded one. Logarithmic axes.",
        ["Run", ...shares], n.latencies.flatMap((line, i) => (line.length ? [[`${i + 1}`, ...line.map(said)]] : [])));
    }

    // Buttons in the table of numbers.
    function askable(where) {
      for (const row of where.querySelectorAll('tr[id^="number-"]')) {
        if (!numbers[row.id]) continue;
        const button = make("button", { type: "button", class: "ask", title: "Runs and command lines" }, row.cells[0].textContent);
        button.addEventListener("click", () => open(row.id));
        row.cells[0].replaceChildren(button);
      }
    }

    // One choice for the whole page: figures, and the table of numbers.
    const chosen = {};
    const bar = make("form", { class: "choose", "aria-label": "Show only" }, "Show only ");
    bar.addEventListener("submit", (event) => event.preventDefault());
    for (const [key, field, word] of [["storage", "storage", "storage"], ["workload", "title", "workload"], ["scale", "scale", "scale"]]) {
      const values = [...new Set(Object.values(numbers).map((n) => n[field]))];
      chosen[key] = make("select", { "aria-label": word, id: `choose-${key}` }, make("option", { value: "" }, `any ${word}`), ...values.map((v) => make("option", { value: v }, v)));
      chosen[key].addEventListener("change", apply);
      bar.append(chosen[key]);
    }
    const count = make("output");
    const all = make("button", { type: "reset" }, "All");
    bar.addEventListener("reset", () => setTimeout(apply));
    bar.append(all, count);
    if (Object.keys(numbers).length) document.querySelector("nav")?.after(bar); // else there is nothing to choose
    function choose(values) {
      for (const [key, select] of Object.entries(chosen)) select.value = values[key] ?? "";
      apply();
    }
    function apply() {
      const [storage, workload, scale] = ["storage", "workload", "scale"].map((k) => chosen[k].value);
      const some = Boolean(storage || workload || scale);
      if (some && document.querySelector('[data-more="numbers"]')) { expand("numbers"); return; } // it asks again
      const fits = (n) => (!storage || n.storage === storage) && (!workload || n.title === workload) && (!scale || n.scale === scale);
      const kept = new Set(Object.keys(numbers).filter((k) => fits(numbers[k])));
      bar.classList.toggle("some", some);
      all.hidden = !some;
      count.textContent = some ? `${kept.size} of ${Object.keys(numbers).length} numbers` : "";
      const figuresOf = new Map();
      for (const mark of marks) {
        const out = !kept.has(anchorOf(mark));
        mark.classList.toggle("out", out);
        const figure = mark.closest("figure");
        figuresOf.set(figure, (figuresOf.get(figure) ?? true) && out);
      }
      figuresOf.forEach((gone, figure) => { figure.hidden = gone; });
      for (const row of document.querySelectorAll('tr[id^="number-"]')) row.classList.toggle("out", numbers[row.id] !== undefined && !kept.has(row.id));
    }
    askable(document);
    document.querySelectorAll("figure svg").forEach(prepare);
    collect();
    apply();
    hash();
    document.documentElement.dataset.asked = "ready";
  }
})();
