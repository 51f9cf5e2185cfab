"""The report of 10,000 runs: how long it takes to make, how large its page is, how long a browser takes.

The runs are made up (tests/report/synthetic.py): some 140 workloads on three storages at four scales, each
run with a record of its own, so that the page holds ten thousand command lines. The load time is Chromium's
own, from the start of the navigation until the page's script has unpacked everything and a frame was painted.
"""

from __future__ import annotations

import hashlib
import http.server
import os
import queue
import re
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from tests.report.browser import CHROMIUM, OPTIONS
from tests.report.synthetic import Synthetic, site, study

from tiercel.report.build import build
from tiercel.results.raw import RawStore, write_json
from tiercel.results.validity import FLAGS

_RUNS = 10_000
_LOADS = 5
_PROBE = """
<script>
(async () => {
  while (document.documentElement.dataset.asked !== "ready") await new Promise((done) => setTimeout(done, 5));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  new Image().src = `http://127.0.0.1:PORT/?ready=${performance.now()}`;
})();
</script>
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tiercel-bench-") as name:
        folder = Path(name)
        runs = _results(folder)
        began, used = time.perf_counter(), time.process_time()
        page = build(folder, site(), study(), FLAGS)
        took, computed = time.perf_counter() - began, time.process_time() - used
        size = page.stat().st_size
        print(f"report of {runs:,} runs                      {took:8.1f} s   ({computed:.1f} s of CPU)")
        print(f"its page                                   {size / 1e6:8.2f} MB  (target: under 3 MB)")
        if CHROMIUM is None:
            print("its time to load: not measured, there is no chromium on PATH")
        else:
            loads = [_load(page, folder) for _ in range(_LOADS)]
            print(
                f"until a browser can be asked, median       {median(loads):8.2f} s   (target: under 2 s; "
                f"{min(loads):.2f} to {max(loads):.2f} of {_LOADS}, {os.cpu_count()} processors)"
            )
    return 0


def _results(folder: Path) -> int:
    """Write the tables of 10,000 runs, and a record of each; return how many there are."""
    data = Synthetic(repetitions=5, processes=(1, 2, 4, 8))
    number = 0
    while len(data.runs) < _RUNS:
        number += 1
        data.data("scaling", f"w{number}", f"Sequential write, kind {number}", "write", "sequential", 3)
    data.observations, data.runs = data.observations[:_RUNS], data.runs[:_RUNS]
    for row in (*data.observations, *data.runs):  # as real ones end: no packing makes that shorter
        row["run"] += f"-{hashlib.sha256(row['run'].encode()).hexdigest()[:12]}"
    data.write(folder)
    store = RawStore(folder)
    for row in data.runs:
        path = store.path(row["run"])
        path.mkdir(parents=True)
        argv = [
            "mpiexec", "-n", str(row["processes"]), "iokernel-mpi", "-a", "POSIX", "-t", "1048576", "-b",
            "1048576", "-s", "512", "-o", f"/scratch/{row['run']}/data", "-k", "--phases", "w",
            "--summary-file", f"/results/raw/{row['run']}/main.json", "-F",
        ]  # fmt: skip
        write_json(path / "record.json", {"status": "ok", "steps": [{"argv": argv, "environment": {}}]})
    return len(data.runs)


def _load(page: Path, folder: Path) -> float:
    """Return the seconds from the start of the navigation until the page can be asked.

    The page tells them to a server of this process, which its policy would not allow: the copy has none.
    """
    said: queue.Queue[float] = queue.Queue()

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said.put(float(self.path.rpartition("=")[2]) / 1000)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        probe = _PROBE.replace("PORT", str(server.server_port))
        text = page.read_text(encoding="utf-8")
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>\n', "", text)
        probed = folder / "report" / "probed.html"
        probed.write_text(text.replace("</body>", f"{probe}</body>"), encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="tiercel-profile-", ignore_cleanup_errors=True) as profile:
            browser = subprocess.Popen(
                [
                    str(CHROMIUM), *OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-port=0",
                    probed.as_uri(),
                ],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            try:
                return said.get(timeout=60)
            finally:
                browser.terminate()
                browser.wait()
                server.shutdown()
