"use strict";
// Tables sort by a click on a heading. Without this script they are plain tables.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort ?? cell.textContent;
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const rows = [...body.rows];
      const numbers = rows.every((row) => key(row, column) !== "" && !Number.isNaN(Number(key(row, column))));
      const compare = numbers ? (a, b) => Number(a) - Number(b) : (a, b) => a.localeCompare(b, "en");
      rows.sort((a, b) => sign * compare(key(a, column), key(b, column)));
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      body.append(...rows);
    });
  });
}
// A link to a row inside a closed part opens it; so does printing.
const open = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  target?.closest("details")?.setAttribute("open", "");
};
addEventListener("hashchange", open);
open();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
