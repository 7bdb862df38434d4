"""Prints what Pillow decodes the JPEG files of a folder to: name, width, height, channels, CRC-32 of the pixels (of RGB, or of gray).

    python3 make_expected.py [FOLDER]

Pillow 9.4 with libjpeg-turbo 2.1.5 (Debian 12) made the table that is committed.
"""
import os
import sys
import zlib

from PIL import Image

folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
for name in sorted(os.listdir(folder)):
    if not name.lower().endswith((".jpg", ".jpeg")):
        continue
    image = Image.open(os.path.join(folder, name))
    image = image.convert("L" if image.mode == "L" else "RGB")
    print(name, *image.size, len(image.getbands()), f"{zlib.crc32(image.tobytes()):08x}")
