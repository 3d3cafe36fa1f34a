"""Frames as a film: mp4 by ffmpeg, gif by Pillow. Every pixel is equally large and no edge is blurred."""

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.core.errors import Failure, UserError

Bytes = NDArray[np.uint8]
QUALITY = 4
"""x264's rate factor: in a life of each of 24 games, at scale 2, no pixel was off by more than 11 of 255 levels. At 0,
which is lossless, x264 uses a profile that many players lack."""
FASTEST_GIF = 50.0
"""Viewers take frames shorter than two hundredths of a second for ones of ten."""
LARGEST_GIF = 10**9
"""Bytes of all frames: Pillow keeps them until it has seen the last one."""


@dataclass(frozen=True)
class Clip:
    """Frames to be shown."""

    chunks: Iterable[Bytes]
    """uint8 [n, H, W], in colour [n, H, W, 3]; read once."""
    shape: tuple[int, ...]
    """Of all of them: [n, H, W] or [n, H, W, 3]."""
    scale: int
    """Pixels of the film from the top to the bottom of a pixel of a frame."""
    pixel_width: int
    """How many times as wide as high a pixel of a frame is shown."""
    fps: float

    @property
    def num_frames(self) -> int:
        return self.shape[0]

    @property
    def has_colour(self) -> bool:
        return len(self.shape) == 4

    @property
    def size(self) -> tuple[int, int]:
        """Width and height on the screen."""
        _, height, width, *_ = self.shape
        return self.pixel_width * self.scale * width, self.scale * height


def write_mp4(path: Path, clip: Clip) -> None:
    """Encode with H.264, in the pixel format that every player knows (yuv420p), whose sides are even."""
    if any(side % 2 for side in clip.size):
        raise UserError(f"an mp4 of {clip.size[0]} x {clip.size[1]} pixels is not possible: give an even scale")
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(_encoding(path, clip), stdin=PIPE, stdout=DEVNULL, stderr=messages)
        assert process.stdin is not None
        try:
            with suppress(BrokenPipeError):  # why it ended is told below
                for chunk in clip.chunks:
                    process.stdin.write(np.ascontiguousarray(chunk).data)
            with suppress(BrokenPipeError):
                process.stdin.close()
            code = process.wait()
        finally:
            process.kill()
            process.wait()
        messages.seek(0)
        said = messages.read().decode(errors="replace")
    if os.strerror(errno.ENOSPC) in said:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if code:
        raise Failure(f"ffmpeg ended with code {code}: {' '.join(said.split())[-300:]}")


def write_gif(path: Path, clip: Clip) -> None:
    """Every frame with its own colours; a frame lasts whole hundredths of a second, all together the right time."""
    if clip.fps > FASTEST_GIF:
        raise UserError(f"a gif shows at most {FASTEST_GIF:g} frames per second, got {clip.fps:g}: write an mp4")
    width, height = clip.size
    if clip.num_frames * width * height > LARGEST_GIF:
        raise UserError(
            f"a gif of {clip.num_frames:,} frames of {width} x {height} pixels is too large: write an mp4,"
            " or a smaller scale"
        )
    pictures = _pictures(clip, _pillow())
    ends = [10 * round(100 * number / clip.fps) for number in range(clip.num_frames + 1)]
    durations = [end - start for start, end in pairwise(ends)]
    next(pictures).save(path, "gif", save_all=True, append_images=pictures, duration=durations, loop=0)


def _encoding(path: Path, clip: Clip) -> list[str]:
    _, height, width, *_ = clip.shape
    frames = f"-f rawvideo -pix_fmt {'rgb24' if clip.has_colour else 'gray'} -s {width}x{height} -r {clip.fps} -i -"
    larger = f"scale={clip.size[0]}:{clip.size[1]}:flags=neighbor:out_color_matrix=bt709:out_range=tv,format=yuv420p"
    colours = "-colorspace bt709 -color_primaries bt709 -color_trc bt709 -color_range tv"
    film = f"-c:v libx264 -crf {QUALITY} {colours} -movflags +faststart -f mp4"
    return [_ffmpeg(), "-y", "-loglevel", "error", *frames.split(), "-vf", larger, *film.split(), str(path.absolute())]


def _pictures(clip: Clip, image: Any) -> Iterator[Any]:
    for chunk in clip.chunks:
        for frame in chunk:
            picture = image.fromarray(np.ascontiguousarray(frame))
            if clip.has_colour:  # before it is enlarged, which is faster
                picture = picture.convert("P", palette=image.Palette.ADAPTIVE)
            yield picture.resize(clip.size, image.Resampling.NEAREST)


def _ffmpeg() -> str:
    """The encoder that imageio-ffmpeg brings, otherwise the system's own."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        found = shutil.which("ffmpeg")
    if found is None:
        raise UserError("writing an mp4 requires ffmpeg: install manicap[video], or write a gif or npz")
    return found


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise UserError("writing a gif requires pillow: install manicap[images], or write an npz") from None
    return Image
