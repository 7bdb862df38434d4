#!/usr/bin/env python3
"""test_readable.py WRITE_SAMPLES: the files that the library writes, read by NumPy, zipfile and Python's own unpickler.

Torch itself is not needed: its few names are stood in for by recorders, which shows that the pickles are well formed and say what
they should. Exit 77 where NumPy is absent.
"""
import collections
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

try:
    import numpy as np
except ImportError:
    print("readable: skipped: NumPy is not installed")
    sys.exit(77)

MATRIX = np.array([[0, 1, -2.5], [3e-5, 1e30, 6]], np.float32)
HALF = np.array([1, -2, 2.0**-24], np.float16)
LONGS = np.array([-1, 2**40], np.int64)
TYPES = {"FloatStorage": "<f4", "HalfStorage": "<f2", "LongStorage": "<i8"}


class Unpickler(pickle.Unpickler):
    """Rebuilds tensors as NumPy arrays; `storage(key)` gives the raw bytes."""

    def __init__(self, file, storage):
        super().__init__(file)
        self.storage = storage

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in TYPES:
            return np.dtype(TYPES[name])
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return self.rebuild
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid):
        kind, dtype, key, location, count = pid[:5]
        assert (kind, location) == ("storage", "cpu")
        return key, dtype, count

    def rebuild(self, storage, offset, size, stride, requires_grad, hooks):
        key, dtype, count = storage
        return self.storage(key, dtype, count, size, offset, stride)


def view(raw, dtype, count, size, offset, stride):
    flat = np.frombuffer(raw, dtype)
    assert len(flat) == count
    steps = [s * dtype.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(flat[offset:], size, steps) if count else np.empty(size, dtype)


class Readable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        subprocess.run([WRITE_SAMPLES, cls.folder], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def check_tensors(self, arrays):
        np.testing.assert_array_equal(arrays["matrix"], MATRIX)
        np.testing.assert_array_equal(arrays["half"], HALF)
        np.testing.assert_array_equal(arrays["longs"], LONGS)
        self.assertEqual(arrays["scalar"].shape, ())
        self.assertEqual(float(arrays["scalar"]), -2.5)
        self.assertEqual(arrays["empty"].shape, (0, 2))
        self.assertEqual([arrays[k].dtype for k in ("matrix", "half", "longs", "scalar", "empty")], ["f4", "f2", "i8", "f4", "f4"])

    def test_npz(self):
        for name in ("stored.npz", "deflated.npz"):
            self.assertIsNone(zipfile.ZipFile(self.path(name)).testzip())
            with np.load(self.path(name), allow_pickle=False) as arrays:
                self.check_tensors(arrays)
                self.assertEqual(arrays["bytes"].shape, (10, 100, 3))
                self.assertEqual(list(arrays["bytes"].ravel()[:4]), [1, 2, 3, 0])
                self.assertEqual(arrays["model"].dtype.kind, "U")
                self.assertEqual(str(arrays["model"]), "superpoint-\u00f6pen")
        methods = {e.filename: e.compress_type for e in zipfile.ZipFile(self.path("deflated.npz")).infolist()}
        self.assertEqual((methods["bytes.npy"], methods["scalar.npy"]), (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))

    def test_zip64(self):
        archive = zipfile.ZipFile(self.path("zip64.zip"))
        self.assertIsNone(archive.testzip())
        self.assertEqual(archive.read("stored"), b"headbody")
        self.assertEqual(archive.read("deflated"), b"head" + bytes([1, 2, 3]) + bytes(2997))

    def test_npy(self):
        np.testing.assert_array_equal(np.load(self.path("matrix.npy"), allow_pickle=False), MATRIX)

    def test_safetensors(self):
        with open(self.path("tensors.safetensors"), "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
            data = file.read()
        self.assertEqual(length % 8, 0)
        self.assertEqual(header.pop("__metadata__"), {"format": "pt"})
        types = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}
        arrays = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            arrays[name] = np.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
            self.assertEqual(begin % arrays[name].itemsize, 0)
        self.check_tensors(arrays)

    def test_torch_zip(self):
        archive = zipfile.ZipFile(self.path("zip.pt"))
        self.assertIsNone(archive.testzip())
        self.assertEqual(archive.read("archive/version"), b"3\n")

        def storage(key, dtype, count, *where):
            return view(archive.read(f"archive/data/{key}"), dtype, count, *where)

        top = Unpickler(io.BytesIO(archive.read("archive/data.pkl")), storage).load()
        self.assertEqual(top["model_config"], {"a": [1, None, 0.5, "b"]})
        self.assertIsInstance(top["model"], collections.OrderedDict)
        self.check_tensors(top["model"])

    def test_torch_legacy(self):
        with open(self.path("legacy.pth"), "rb") as file:
            magic, protocol, system = (pickle.load(file) for _ in range(3))
            self.assertEqual((magic, protocol, system["little_endian"]), (0x1950A86A20F9469CFC6C, 1001, True))
            pending = []
            state = Unpickler(file, lambda *request: pending.append(request) or len(pending) - 1).load()
            raw = {}
            sizes = {key: dtype.itemsize for key, dtype, *_ in pending}
            for key in pickle.load(file):
                (count,) = struct.unpack("<q", file.read(8))
                raw[key] = file.read(count * sizes[key])
            self.assertEqual(file.read(), b"")
        self.check_tensors({name: view(raw[pending[i][0]], *pending[i][1:]) for name, i in state.items()})


if __name__ == "__main__":
    WRITE_SAMPLES = sys.argv.pop(1)
    unittest.main()
