"""The page in a real browser: no errors, no network, and tables that sort."""

import shutil
import subprocess

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")

_PROBE = """
<script>
addEventListener("load", () => {
  const tables = [...document.querySelectorAll("table.sortable")];
  const table = tables.find((t) => t.caption.textContent.startsWith("All numbers"));
  const heading = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent.startsWith("Median"));
  const values = () => [...table.tBodies[0].rows].map((r) => Number(r.cells[heading].dataset.sort));
  const ordered = (v, sign) => v.every((x, i) => i === 0 || sign * (x - v[i - 1]) >= 0);
  const button = table.tHead.rows[0].cells[heading].querySelector("button");
  const results = [];
  button.click(); results.push(ordered(values(), 1));
  button.click(); results.push(ordered(values(), -1));
  const loaded = performance.getEntriesByType("resource").length;
  const images = document.querySelectorAll("figure svg").length;
  const wide = document.documentElement.scrollWidth <= innerWidth;
  document.title = `probe ${results.join(" ")} ${loaded} ${images} ${wide}`;
});
</script>
"""


@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_works(whole, tmp_path, width):
    page = tmp_path / "page.html"
    page.write_text(whole.html.replace("</body>", f"{_PROBE}</body>"), encoding="utf-8")
    ended = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--no-first-run", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    # Sorted up and down, nothing loaded, ten figures, and no sideways scrolling of the page.
    assert "<title>probe true true 0 10 true</title>" in ended.stdout, ended.stderr[-2000:]
    assert "CONSOLE" not in ended.stderr, ended.stderr[-2000:]
