"""Prints what Pillow 9.4 makes of the shared test images: path, width, height, channels, CRC-32 of the pixels, or path and `refused`.

    python3 make_expected.py FOLDER > expected.txt

The rules are those of <theo/image.h>: gray or RGB, alpha dropped without compositing, palettes expanded, 16 bits to their top 8.
"""
import os
import sys
import warnings
import zlib

import numpy as np
from PIL import Image

warnings.simplefilter("ignore")


def pixels(path):
    image = Image.open(path)
    image.load()
    if image.mode.startswith("I"):
        return (np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8)
    if image.mode in ("1", "L"):
        return np.asarray(image.convert("L"))
    if image.mode == "LA":
        return np.asarray(image)[..., 0]
    rgb = np.asarray(image)[..., :3] if image.mode == "RGBA" else np.asarray(image.convert("RGB"))
    with open(path, "rb") as f:
        head = f.read(26)
    if head[1:4] == b"PNG" and head[25] == 4:  # Pillow shows 16-bit gray with alpha as RGBA
        return rgb[..., 0]
    return rgb


for folder, _, names in sorted(os.walk(sys.argv[1])):
    for name in sorted(names):
        if not name.lower().endswith((".png", ".jpg", ".bmp", ".ppm")):
            continue
        path = os.path.join(folder, name)
        shown = os.path.relpath(path, sys.argv[1])
        refused = name.startswith("x") and "pngsuite" in folder or name.endswith((".bmp", ".ppm")) or name == "monkey12.jpg"
        if refused:
            print(shown, "refused")
            continue
        array = np.ascontiguousarray(pixels(path))
        height, width = array.shape[:2]
        print(shown, width, height, 1 if array.ndim == 2 else 3, f"{zlib.crc32(array):08x}")
