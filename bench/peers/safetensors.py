"""Reading safetensors with NumPy alone, and the formula weights that stand in where a checkpoint cannot be had."""
import json
import struct

import numpy as np

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read(path):
    """All tensors of a file as {name: float32 array}; integer tensors keep their type."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        body = f.read()
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        lo, hi = entry["data_offsets"]
        if entry["dtype"] == "BF16":
            a = (np.frombuffer(body[lo:hi], "<u2").astype("<u4") << 16).view("<f4")
        else:
            a = np.frombuffer(body[lo:hi], _DTYPES[entry["dtype"]])
        a = a.reshape(entry["shape"])
        out[name] = a.astype(np.float32) if a.dtype.kind == "f" else a
    return out


def fnv1a_values(name, count):
    """`count` values in (-1, 1) that belong to a tensor name: FNV-1a of the name, then the splitmix64 finaliser."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    with np.errstate(over="ignore"):
        z = np.uint64(h) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) / 2**24 * 2 - 1
