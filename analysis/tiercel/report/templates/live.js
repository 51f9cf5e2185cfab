// A page that is made anew while its study runs: it shows the newer one, where the reader was. What the reader
// chose goes along in the history's state, which a page of a file has, too. Nobody is interrupted: not who
// reads a dialog, types, has marked text, or holds the page.
(() => {
  const every = Math.max(5, Number(document.body.dataset.refresh)) * 1000;
  const made = Number(document.body.dataset.made) * 1000;
  const hold = document.getElementById("hold");
  const filters = () => [...document.querySelectorAll(".choose select")];
  const searches = () => [...document.querySelectorAll('.tools input[type="search"]')];
  const tableOf = (tools) => tools.nextElementSibling?.querySelector("table");
  const named = (element) => element?.caption?.textContent ?? "";
  const foldOf = (fold) => {
    const near = fold.closest("[id]");
    return `${near?.id}/${[...(near ?? document).querySelectorAll("details")].indexOf(fold)}`;
  };
  const folds = () => [...document.querySelectorAll("details")];
  const sorted = () => [...document.querySelectorAll("th[aria-sort]")]
    .map((h) => [named(h.closest("table")), h.cellIndex, h.getAttribute("aria-sort")]);
  const places = () => [...document.querySelectorAll("main section[id], main figure[id], main article[id]")];

  function kept() {
    const place = places().find((p) => p.getBoundingClientRect().bottom > 0);
    const asked = document.activeElement?.id;
    return { held: hold.getAttribute("aria-pressed") === "true", y: scrollY, focus: asked,
      place: place && [place.id, place.getBoundingClientRect().top],
      filters: filters().map((s) => [s.id, s.value]),
      searches: searches().map((s) => [named(tableOf(s.parentNode)), s.value]).filter((s) => s[1]),
      folds: folds().filter((f) => f.open).map(foldOf), sorted: sorted() };
  }
  function restore(state) {
    for (const fold of folds()) if (state.folds.includes(foldOf(fold))) fold.open = true;
    for (const [id, value] of state.filters) {
      const select = document.getElementById(id);
      if (!select || ![...select.options].some((o) => o.value === value)) continue;
      select.value = value;
      select.dispatchEvent(new Event("change"));
    }
    for (const search of searches()) {
      const was = state.searches.find(([name]) => name === named(tableOf(search.parentNode)));
      if (!was) continue;
      search.value = was[1];
      search.dispatchEvent(new Event("input"));
    }
    for (const [name, column, direction] of state.sorted) {
      const table = [...document.querySelectorAll("table.sortable")].find((t) => named(t) === name);
      const heading = table?.tHead.rows[0].cells[column];
      for (let i = 0; heading && i < 2 && heading.getAttribute("aria-sort") !== direction; i += 1) heading.querySelector("button")?.click();
    }
    if (state.held) press(true);
    if (state.focus) document.getElementById(state.focus)?.focus({ preventScroll: true });
    // Figures further up may still be drawn: the place is found again a little later.
    const back = () => {
      const at = state.place && document.getElementById(state.place[0]);
      scrollTo({ top: at && state.y ? scrollY + at.getBoundingClientRect().top - state.place[1] : state.y, behavior: "instant" });
    };
    back();
    setTimeout(back, 150);
  }
  function press(down) {
    hold.setAttribute("aria-pressed", String(down));
    hold.textContent = down ? "Held: go on" : "Hold";
  }
  hold.hidden = false;
  hold.addEventListener("click", () => press(hold.getAttribute("aria-pressed") !== "true"));

  let touched = 0;
  for (const kind of ["input", "keydown", "pointerdown", "wheel", "touchmove"]) addEventListener(kind, () => { touched = Date.now(); }, { passive: true });
  const busy = () => document.hidden || document.querySelector("dialog[open]") || String(getSelection())
    || hold.getAttribute("aria-pressed") === "true" || Date.now() - touched < 2000;
  function renew() {
    if (busy()) { setTimeout(renew, 1000); return; }
    history.replaceState({ tiercel: kept() }, "");
    location.reload();
  }
  // Nobody makes a page that is much older than it says: told, and looked after seldom.
  const old = Date.now() - made > 4 * every + 120000;
  if (old) document.getElementById("live").textContent = "This page has not been made anew for a while: `tiercel report --follow` may have ended.";
  setTimeout(renew, old ? 60000 : every);

  history.scrollRestoration = "manual";
  const state = history.state?.tiercel;
  const begin = Date.now();
  const ready = () => {
    if (!document.documentElement.dataset.asked && Date.now() - begin < 3000) { setTimeout(ready, 20); return; }
    if (state) restore(state);
    document.documentElement.dataset.live = "ready";
  };
  ready();
})();
