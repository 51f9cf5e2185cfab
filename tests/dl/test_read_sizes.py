"""dlkernel's reads against those of the libraries that frameworks read such files by, as strace saw both."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .kernel import run
from .system_calls import sizes_of_reads

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

_LIBRARY = {
    "npz": "import numpy, sys; a = numpy.load(sys.argv[1], allow_pickle=True)['x']; assert a.nbytes",
    "npy": "import numpy, sys; a = numpy.load(sys.argv[1]); assert a.nbytes",
    "jpeg": "import PIL.Image, sys; PIL.Image.open(sys.argv[1]).convert('RGB')",
    "png": "import PIL.Image, sys; PIL.Image.open(sys.argv[1]).convert('RGB')",
    "hdf5": "import h5py, sys; f = h5py.File(sys.argv[1], 'r'); f['records_0'][0]; f.close()",
}
_OURS = """
import sys
from pathlib import Path
from tiercel.dl.kernel.formats import format_of
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.spec import read_spec
spec = read_spec(Path(sys.argv[2]).read_text())
opened = format_of(spec.format).open(sys.argv[1], spec, IO())
opened.read(0)
opened.close()
"""


@pytest.mark.parametrize("kind", ["npz", "npz-packed", "npy", "jpeg", "png", "hdf5"])
@pytest.mark.parametrize("size", [3000, 1_000_000])
def test_reads_have_the_sizes_of_the_librarys(tmp_path: Path, kind: str, size: int) -> None:
    kind, _, packed = kind.partition("-")
    dataset = {"format": kind, "num_files_train": 2, "record_length_bytes": size,
               "compression": "zip" if packed else "none"}  # fmt: skip
    answer = run(tmp_path, 1, dataset=dataset, reader={"batch_size": 1}, train={"epochs": 1})
    assert answer.returncode == 0, answer.stderr
    given = tmp_path / "spec.json"
    given.write_text(answer.args[answer.args.index("--spec") + 1])
    path = sorted((tmp_path / "data" / "train").iterdir())[0]
    found = []
    for name, code in (("ours", _OURS), ("library", _LIBRARY[kind])):
        log = tmp_path / name
        subprocess.run(
            ["strace", "-f", "-y", "-e", "trace=read,readv,pread64,preadv,preadv2", "-o", str(log),
             sys.executable, "-c", code, str(path), str(given)], check=True, capture_output=True,
        )  # fmt: skip
        found.append(sizes_of_reads(log.read_text(), str(path.resolve())))
    ours, library = found
    assert sum(library) >= 0.9 * size
    assert ours == library
