"""Films: ffmpeg transcodes one, and takes it apart into pictures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.advise.programs.base import Program, path_of, programs, run

_FRAMES = 250


class _Ffmpeg(Program):
    needs = ("ffmpeg", "ffprobe ffmpeg")

    def make(self, folder: Path) -> None:
        (folder / "frames").mkdir()
        source = f"testsrc2=size=640x360:rate=25:duration={_FRAMES / 25}"
        quiet = ("-v", "error", "-threads", "1", "-fflags", "+bitexact", "-flags:v", "+bitexact")
        run(path_of("ffmpeg"), *quiet, "-f", "lavfi", "-i", source, "-c:v", "mjpeg", folder / "in.mkv")

    def _convert(self, folder: Path, *options: str) -> list[str]:
        head = ["-nostdin", "-v", "error", "-y", "-threads", "1", "-i", str(folder / "in.mkv")]
        return [path_of("ffmpeg"), *head, *options]


@programs.register("ffmpeg-transcode")
class Transcode(_Ffmpeg):
    title = "ffmpeg, a film to H.264: computes nearly only"

    def command(self, folder: Path) -> list[str]:
        return self._convert(
            folder, "-c:v", "libx264", "-preset", "veryfast", "-threads", "1", str(folder / "out.mp4")
        )

    def wrong(self, folder: Path) -> str | None:
        ask = ("-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0")
        frames = run(path_of("ffprobe"), *ask, folder / "out.mp4").strip()
        return None if frames == str(_FRAMES) else f"{frames} frames, not {_FRAMES}"


@programs.register("ffmpeg-frames")
class Frames(_Ffmpeg):
    title = f"ffmpeg, a film to {_FRAMES} pictures of 0.7 MB"

    def command(self, folder: Path) -> list[str]:
        return self._convert(folder, str(folder / "frames/%05d.bmp"))

    def wrong(self, folder: Path) -> str | None:
        sizes = [p.stat().st_size for p in (folder / "frames").glob("*.bmp")]
        good = len(sizes) == _FRAMES and set(sizes) == {640 * 360 * 3 + 54}
        return None if good else f"{len(sizes)} pictures, of {sorted(set(sizes))[:3]} bytes"
