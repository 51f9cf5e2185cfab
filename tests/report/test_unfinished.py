"""The page of a study that is not finished: what it says first, and how it shows itself anew."""

import http.server
import json
import queue
import re
import subprocess
import threading
import urllib.parse

import pytest
from tests.report.browser import CHROMIUM, OPTIONS
from tests.report.conftest import Page
from tests.report.synthetic import Synthetic, site, study

from tiercel.report.build import build
from tiercel.report.data import Results
from tiercel.report.unfinished import Live, unfinished
from tiercel.results.reasons import Failure
from tiercel.results.validity import FLAGS
from tiercel.runs.replaced import Replaced
from tiercel.runs.status import Part, Status


def part(workload, storage, done, left, failed=0):
    return Part(
        "scaling", workload, workload.capitalize(), storage, storage.upper(), "none", done, failed, left
    )


def status(*parts, state="measuring", failures=(), replaced=()):
    left, done = sum(p.left for p in parts), sum(p.done for p in parts)
    return Status(state, done, tuple(failures), left, 90.0, (), None, None, parts, (), tuple(replaced))


def test_it_says_what_is_there_what_is_missing_and_what_may_change():
    # 5 of 5 and 3 of 5 runs, one failed, of writing; both whole of reading: of two comparisons one waits.
    found = unfinished(
        status(
            part("write", "nvme", 5, 0), part("write", "nfs", 2, 2, failed=1),
            part("read", "nvme", 5, 0), part("read", "nfs", 5, 0),
            failures=[Failure("disk is gone", ("r1",))],
        ),
        "tiercel evaluate",
    )  # fmt: skip
    assert found.sentences[0] == (
        "This study is not finished: 17 of 20 planned runs done, 1 failed (90 % of the plan)."
    )
    assert "2 runs" in found.sentences[1] and "1 min 30 s" in found.sentences[1]
    assert found.sentences[2].startswith("1 of 2 comparisons between storage systems can still change")
    assert [[c.text for c in cells] for _, cells in found.table.rows] == [
        ["Write", "5 of 5", "2 of 5, 1 failed"]
    ]


@pytest.mark.parametrize("state", ["done", "measuring"])
def test_a_whole_study_says_nothing(state):
    """Also while its evaluation still makes tables: every planned run has ended."""
    assert unfinished(status(part("write", "nvme", 5, 0), state=state), "tiercel evaluate") is None


def test_damaged_runs_are_named():
    found = unfinished(status(part("write", "nvme", 5, 0), state="done"), "", ["raw/x/record.json: torn"])
    assert "raw/x/record.json: torn" in found.sentences


def test_what_changed_since_is_told():
    found = unfinished(
        status(
            part("write", "nvme", 1, 4),
            replaced=[Replaced("engine_version was 1 and is 2", 3), Replaced("seed was 1 and is 2", 1)],
        ),
        "",
    )
    assert (
        "4 of these runs replace earlier ones, because the setup changed: engine_version was 1 and is 2; "
        "seed "
        "was 1 and is 2. The page shows the earlier results until then."
    ) in found.sentences


@pytest.fixture
def live(tmp_path):
    missing = unfinished(status(part("write", "nvme", 5, 0), part("write", "nfs", 2, 3)), "tiercel evaluate")
    missing = type(missing)(missing.sentences, missing.table, missing.share, live=Live(5.0, 1.9e9))
    folder = Synthetic().whole().write(tmp_path / "results")
    return build(folder, site(), study(), FLAGS, missing=missing)


def test_the_page_begins_with_it(live):
    page = Page(live.read_text(encoding="utf-8"))
    assert page.text.index("This study is not finished") < page.text.index("Where to put which files")
    assert page.rows("Workload", "NFS") == [{"Workload": "Write", "NVME": "5 of 5", "NFS": "2 of 5"}]


_PROBE = """
<script>
(async () => {
  const soon = (ms) => new Promise((done) => setTimeout(done, ms));
  while (!document.documentElement.dataset.live) await soon(50);
  const chosen = document.getElementById("choose-storage");
  const words = document.getElementById("table-numbers").closest(".scroll").previousElementSibling
    .querySelector("input[type=search]");
  const state = () => ({ chosen: chosen.value, words: words.value, far: scrollY > 500 });
  if (!history.state) {
    chosen.selectedIndex = 2;
    chosen.dispatchEvent(new Event("change"));
    words.value = "write";
    document.getElementById("numbers").scrollIntoView({ behavior: "instant" });
    return;  // the page renews itself
  }
  await soon(500);
  new Image().src = `http://127.0.0.1:PORT/?${encodeURIComponent(JSON.stringify(state()))}`;
})();
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
def test_it_shows_itself_anew_where_the_reader_was(live, tmp_path):
    """In real time, as a reload is beyond --dump-dom: the probe chooses and scrolls, the page renews itself
    after its five seconds, and what the reader sees then is told to a server of this test."""
    said = queue.Queue()

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            said.put(json.loads(urllib.parse.unquote(self.path.partition("?")[2])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>\n', "", live.read_text("utf-8"))
        path = tmp_path / "probed.html"
        probe = _PROBE.replace("PORT", str(server.server_port))
        path.write_text(text.replace("</body>", f"{probe}</body>"), encoding="utf-8")
        browser = subprocess.Popen(
            [str(CHROMIUM), *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", "--remote-debugging-port=0",
             path.as_uri()],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            seen = said.get(timeout=100)
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
    assert seen["chosen"] and seen["words"] == "write" and seen["far"]


def test_sides_without_a_round_in_common_decide_nothing(tmp_path):
    """The first rounds failed on one side, the later ones on the other: the report ended in a traceback."""
    data = Synthetic(storages=("nvme", "shm"), processes=(1,))
    for storage, rounds in (("nvme", (0, 1, 2)), ("shm", (3, 4))):
        for i in rounds:
            data.add(
                "scaling", "scientific", "Write", storage, 1, i, "a", [], operation="write", bandwidth=1e8,
                operation_rate=100.0, total_time=10.0, look=0, bytes_per_process=1e9,
            )  # fmt: skip
    results = Results(study(), *data.frames(), FLAGS)
    assert len(results.numbers) == 2
    assert [(r["outcome"], r["rule"]) for r in results.comparisons] == [("no power", "not in turn")]
    assert build(data.write(tmp_path), site(), study(), FLAGS).is_file()
