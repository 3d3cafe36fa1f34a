"""Gray frames and colour images as small PNG files, and as text for a page."""

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE, _GRAY, _COLOUR = 3, 0, 2


def encode_png(frame: NDArray[np.uint8]) -> bytes:
    """A lossless frame, gray [height, width] or colour [height, width, 3].

    Atari frames have few shades: up to 16 take 1, 2 or 4 bits per pixel.
    """
    is_gray = frame.ndim == 2
    if not (is_gray or (frame.ndim == 3 and frame.shape[2] == 3)) or frame.dtype != np.uint8 or not frame.size:
        raise ValueError(
            f"encode_png needs a frame uint8 [height, width] or [height, width, 3], got {frame.dtype} {frame.shape}"
        )
    height, width = frame.shape[:2]
    packed = frame if is_gray else frame.astype(np.uint32) @ np.array([2**16, 2**8, 1], np.uint32)
    shades, indices = np.unique(packed, return_inverse=True)
    bits = next((bits for bits in (1, 2, 4) if len(shades) <= 2**bits), 8)
    if is_gray and bits == 8:
        return _file(width, height, bits, _GRAY, b"", frame)
    if len(shades) > 256:
        return encode_colour_png(frame.transpose(2, 0, 1))
    colours = np.repeat(shades, 3) if is_gray else (shades[:, None] >> np.array([16, 8, 0])).astype(np.uint8)
    rows = _pack(indices.reshape(height, width).astype(np.uint8), bits)
    return _file(width, height, bits, _PALETTE, _chunk(b"PLTE", colours.tobytes()), rows)


def encode_colour_png(image: NDArray[np.uint8]) -> bytes:
    """A lossless colour image [3, height, width]."""
    if image.ndim != 3 or len(image) != 3 or image.dtype != np.uint8 or not image.size:
        raise ValueError(f"encode_colour_png needs an image uint8 [3, height, width], got {image.dtype} {image.shape}")
    _, height, width = image.shape
    return _file(width, height, 8, _COLOUR, b"", image.transpose(1, 2, 0).reshape(height, 3 * width))


def frame_text(frame: NDArray[np.uint8]) -> str:
    """The frame's PNG in base64, as `Player.frames` holds it."""
    return base64.b64encode(encode_png(frame)).decode("ascii")


def image_text(image: NDArray[np.uint8]) -> str:
    """The colour image's PNG in base64."""
    return base64.b64encode(encode_colour_png(image)).decode("ascii")


def _file(width: int, height: int, bits: int, colour: int, palette: bytes, rows: NDArray[np.uint8]) -> bytes:
    unfiltered = np.hstack([np.zeros((height, 1), np.uint8), rows])  # a leading 0: the row is stored unfiltered
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    body = _chunk(b"IDAT", zlib.compress(unfiltered.tobytes(), 9))
    return _SIGNATURE + _chunk(b"IHDR", header) + palette + body + _chunk(b"IEND", b"")


def _pack(indices: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Several pixels per byte, the leftmost in the highest bits; the last byte of a row is padded with zeros."""
    per_byte = 8 // bits
    padded = np.pad(indices, ((0, 0), (0, -indices.shape[1] % per_byte)))
    shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    pixels = padded.reshape(len(indices), -1, per_byte) << shifts
    return np.bitwise_or.reduce(pixels, axis=2).astype(np.uint8)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
