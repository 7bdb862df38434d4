"""Prints what Pillow 9.4 resizes formula images to: channels, width, height, new width, new height, filter, sharp, CRC-32.

    python3 make_expected.py > expected.txt

Byte i of an image (row-major) is the top byte of splitmix64's finaliser of (i + 1) * 0x9E3779B97F4A7C15; for sharp images it is 0 or 255 by its top bit.
Images with alpha are weighted by it on the way, as Image.resize does.
"""
import zlib

from PIL import Image

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
SIZES = [(64, 48, 33, 21), (31, 17, 80, 60), (50, 40, 90, 13), (20, 60, 7, 99), (37, 29, 37, 11), (37, 29, 11, 29), (23, 19, 23, 19),
         (1, 1, 5, 4), (300, 2, 1, 1), (1, 70, 9, 3), (129, 65, 128, 64)]
MASK = (1 << 64) - 1


def noise(count, sharp):
    data = bytearray(count)
    for i in range(count):
        z = (i + 1) * 0x9E3779B97F4A7C15 & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        z ^= z >> 31
        data[i] = (255 if z >> 63 else 0) if sharp else z >> 56
    return bytes(data)


for channels, mode in MODES.items():
    for width, height, new_width, new_height in SIZES:
        for number, filter_ in enumerate(FILTERS.values()):
            for sharp in (0, 1):
                image = Image.frombytes(mode, (width, height), noise(width * height * channels, sharp))
                out = image.resize((new_width, new_height), filter_).tobytes()
                print(channels, width, height, new_width, new_height, number, sharp, f"{zlib.crc32(out):08x}")
