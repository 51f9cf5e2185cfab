"use strict";
// Tables sort by a click on a heading, filter, choose columns, and download. Without this they are plain tables.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const names = headings.map((heading) => heading.textContent.trim());
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort ?? cell.textContent;
  };
  let order = null; // [column, 1 or -1]
  const sort = () => {
    if (!order) return;
    const [column, sign] = order, rows = [...body.rows];
    // What is missing is neither large nor small: it comes last, whichever way the others are sorted.
    const missing = (row) => ["", "–"].includes(key(row, column).trim());
    const numbers = rows.every((row) => missing(row) || !Number.isNaN(Number(key(row, column))));
    const compare = numbers ? (a, b) => Number(a) - Number(b) : (a, b) => a.localeCompare(b, "en");
    rows.sort((a, b) => missing(a) - missing(b) || sign * compare(key(a, column), key(b, column)));
    body.append(...rows);
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      table.dispatchEvent(new Event("wanted")); // rows that are packed are sorted with the others
      order = [column, heading.getAttribute("aria-sort") === "ascending" ? -1 : 1];
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order[1] > 0 ? "ascending" : "descending");
      sort();
    });
  });
  table.addEventListener("added", sort); // rows that were packed
  if (body.rows.length < 6) continue;

  const tools = document.createElement("div");
  tools.className = "tools";
  const words = document.createElement("input");
  words.type = "search";
  words.placeholder = "Filter rows";
  words.setAttribute("aria-label", "Filter rows by words");
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of body.rows) {
      const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
      row.classList.toggle("unlike", !wanted.every((word) => text.includes(word)));
    }
  };
  words.addEventListener("input", () => { table.dispatchEvent(new Event("wanted")); filter(); });
  table.addEventListener("added", filter);
  table.addEventListener("whole", () => { words.value = ""; filter(); });
  const columns = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Columns";
  columns.append(summary);
  const gone = new Set();
  const hide = (row) => [...row.cells].forEach((cell, i) => { cell.hidden = gone.has(i); });
  names.forEach((name, i) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      if (box.checked) gone.delete(i); else gone.add(i);
      [table.tHead.rows[0], ...body.rows].forEach(hide);
    });
    label.append(box, ` ${name}`);
    columns.append(label);
  });
  new MutationObserver((seen) => {
    if (gone.size) seen.forEach((s) => s.addedNodes.forEach((row) => row.cells && hide(row)));
  }).observe(body, { childList: true });
  // Rows and columns that are shown, in their order; texts that a spreadsheet would run are quoted.
  const download = document.createElement("button");
  download.type = "button";
  download.textContent = "CSV";
  download.title = "Download the visible rows and columns";
  download.addEventListener("click", () => {
    const quoted = (text) => {
      const number = /^[+-]?[\d.]+(?:e[+-]?\d+)?(?: ?[%×]| [a-zA-Zµ/]{1,9})?$/; // with its unit
      const safe = /^[=+\-@\t\r]/.test(text) && !number.test(text) ? `'${text}` : text;
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const shown = names.map((_, i) => i).filter((i) => !gone.has(i));
    const lines = [shown.map((i) => quoted(names[i]))];
    for (const row of body.rows) {
      if (row.classList.contains("unlike") || row.classList.contains("out")) continue;
      lines.push(shown.map((i) => quoted(row.cells[i].textContent.trim().replaceAll("\u00a0", " "))));
    }
    const text = lines.map((line) => line.join(",")).join("\r\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`\ufeff${text}\r\n`], { type: "text/csv" }));
    link.download = `${(table.caption.firstElementChild ?? table.caption).textContent.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  tools.append(words, columns, download);
  table.closest(".scroll").before(tools);
}
// A link to a row that is in a closed part, or that a filter hides, shows it first; printing opens all parts.
const show = (id) => {
  const target = document.getElementById(id);
  for (let part = target?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  if (target?.classList.contains("unlike")) target.closest("table").dispatchEvent(new Event("whole"));
};
const named = () => {
  try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; } // what is no name of ours
};
addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#"]');
  if (link) show(link.getAttribute("href").slice(1));
});
addEventListener("hashchange", () => show(named()));
show(named());
addEventListener("beforeprint", () => document.querySelectorAll("main details").forEach((d) => {
  if (!d.closest(".tools, .behind")) d.open = true;
}));
