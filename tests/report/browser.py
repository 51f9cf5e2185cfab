"""A page in a real headless Chromium, with a probe that does what a reader does and says what it finds."""

import html
import json
import re
import shutil
import subprocess

from tiercel.pages.secured import secured

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--enable-logging=stderr",
)  # fmt: skip

#: `said()` is what the probe returns; it goes on once the page's own script has unpacked what it holds.
_PROBE = """
<script>
(async () => {
  const soon = (ms) => new Promise((done) => setTimeout(done, ms));
  while (document.documentElement.dataset.asked !== "ready") await soon(20);
  const press = (where, key) => where.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const find = (words) => [...document.querySelectorAll("table.sortable")]
    .find((t) => t.caption.textContent.startsWith(words));
  const said = await (async () => { PROBE })();
  parent.postMessage(JSON.stringify(said), "*");
})();
</script>
"""
#: A headless window is 500 px wide at least, whatever it is asked for: a narrower page is a frame in it.
_AROUND = """<!doctype html>
<meta name="color-scheme" content="light dark">
<iframe src="page.html" style="width: WIDTHpx; height: 900px; border: 0" allow="clipboard-write"></iframe>
<script>
addEventListener("message", (event) => {
  const place = document.createElement("pre");
  place.id = "probe";
  place.textContent = event.data;
  document.body.append(place);
});
</script>
"""


def asked(page, tmp_path, probe, width=1280, *, refused=False, dark=False):
    """Return what the body of a function, `probe`, returns in the page; fails on anything on the console.

    `dark`: as for a reader who prefers dark pages. `refused`: the policy refuses something, which the
    console says.
    """
    # The policy lets only the page's own scripts run: the probe becomes one of them.
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>\n', "", page)
    text = bare.replace("</body>", f"{_PROBE.replace('PROBE', probe)}</body>")
    (tmp_path / "page.html").write_text(secured(text), encoding="utf-8")
    path = tmp_path / "around.html"
    path.write_text(_AROUND.replace("WIDTH", str(width)), encoding="utf-8")
    ended = subprocess.run(
        [
            CHROMIUM, *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width + 20},920",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--virtual-time-budget=20000", "--dump-dom", path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    console = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
    if refused:
        assert all("Content Security Policy" in line for line in console)
    else:
        assert not console, console
    found = re.search(r'<pre id="probe">(.*?)</pre>', ended.stdout, re.DOTALL)
    assert found, ended.stderr[-2000:]
    return json.loads(html.unescape(found[1]))
