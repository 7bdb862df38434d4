"""Readers of the files that the library exports, written from the formats' specifications: PLY, GLB (with its rules checked), EXR.

They share no code with the writers and refuse what the formats forbid.
"""
import io
import json
import struct
import zlib

import numpy as np

PLY_TYPES = {"char": "i1", "uchar": "u1", "short": "<i2", "ushort": "<u2", "int": "<i4", "uint": "<u4", "float": "<f4", "double": "<f8"}


class Malformed(Exception):
    """A file breaks a rule of its format."""


def need(truth, words):
    if not truth:
        raise Malformed(words)


# ------------------------------------------------------------------ PLY


def ply_header(data):
    """(elements [(name, count, [(property, type or (count type, item type))])], where the data starts)."""
    end = data.index(b"end_header\n") + len(b"end_header\n")
    lines = data[:end].decode("ascii").split("\n")
    need(lines[:2] == ["ply", "format binary_little_endian 1.0"], f"PLY begins with {lines[:2]}")
    elements = []
    for line in lines[2:-2]:
        words = line.split()
        if words[0] == "element":
            elements.append((words[1], int(words[2]), []))
        elif words[:2] == ["property", "list"]:
            elements[-1][2].append((words[4], (PLY_TYPES[words[2]], PLY_TYPES[words[3]])))
        elif words[0] == "property":
            elements[-1][2].append((words[2], PLY_TYPES[words[1]]))
        else:
            need(words[0] == "comment", f"PLY header line {line!r}")
    return elements, end


def read_ply(path):
    """{element: structured array}; lists of three are fields of shape (3,)."""
    with open(path, "rb") as f:
        data = f.read()
    elements, at = ply_header(data)
    found = {}
    for name, count, properties in elements:
        fields = []
        for field, kind in properties:
            if isinstance(kind, tuple):
                fields += [(f"{field} count", kind[0]), (field, kind[1], (3,))]
            else:
                fields.append((field, kind))
        dtype = np.dtype(fields)
        need(len(data) - at >= count * dtype.itemsize, f"PLY ends in its {name}")
        found[name] = np.frombuffer(data, dtype, count, at)
        at += count * dtype.itemsize
        for field in (f for f in found[name].dtype.names if f.endswith(" count")):
            need((found[name][field] == 3).all(), "a face that is no triangle")
    need(at == len(data), f"PLY: {len(data) - at} bytes too many")
    return found


def columns(array, *names):
    return np.stack([array[name] for name in names], axis=-1) if len(array) else np.zeros((0, len(names)), np.float32)


# ------------------------------------------------------------------ GLB

COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
REQUIRED = {"asset": ("version",), "accessors": ("componentType", "count", "type"), "bufferViews": ("buffer", "byteLength"),
            "buffers": ("byteLength",), "meshes": ("primitives",), "images": (), "textures": (), "materials": (), "nodes": (),
            "samplers": (), "cameras": ("type",), "scenes": ()}


def refuse_constant(word):
    raise Malformed(f"{word} in JSON")


def unique_members(pairs):
    need(len({k for k, _ in pairs}) == len(pairs), "a JSON member twice")
    return dict(pairs)


def read_chunks(data):
    magic, version, length = struct.unpack_from("<4sII", data)
    need((magic, version, length) == (b"glTF", 2, len(data)), f"GLB header {magic} {version} {length} of {len(data)}")
    chunks, at = [], 12
    while at < len(data):
        size, kind = struct.unpack_from("<I4s", data, at)
        need(size % 4 == 0 and at + 8 + size <= len(data), f"chunk of {size} bytes at {at}")
        chunks.append((kind, data[at + 8:at + 8 + size]))
        at += 8 + size
    need([k for k, _ in chunks] in ([b"JSON"], [b"JSON", b"BIN\0"]), f"chunks {[k for k, _ in chunks]}")
    return chunks[0][1], chunks[1][1] if len(chunks) > 1 else b""


class Glb:
    """A GLB file whose structure has been checked: .json, .arrays (one for each accessor), .images (bytes)."""

    def __init__(self, path):
        with open(path, "rb") as f:
            text, self.binary = read_chunks(f.read())
        need(text[:1] == b"{" and text.rstrip(b" ")[-1:] == b"}", "the JSON chunk is not one object padded with spaces")
        self.json = json.loads(text.decode(), parse_constant=refuse_constant, object_pairs_hook=unique_members)
        self.check_lists()
        self.arrays = [self.accessor(i) for i in range(len(self.get("accessors")))]
        self.images = [self.image(i) for i in range(len(self.get("images")))]
        for mesh in self.get("meshes"):
            need(mesh["primitives"], "a mesh without primitives")
            for primitive in mesh["primitives"]:
                self.check_primitive(primitive)
        self.check_references()

    def get(self, name):
        return self.json.get(name, [])

    def check_lists(self):
        need(self.json["asset"]["version"] == "2.0", "another version")
        for name, value in self.json.items():
            if isinstance(value, list):
                need(value, f"{name} is empty")  # the schema wants at least one
            need(name in REQUIRED or name in ("scene", "extensionsUsed"), f"unknown member {name}")
            for entry in value if isinstance(value, list) and name in REQUIRED else []:
                for member in REQUIRED[name]:
                    need(member in entry, f"{name} without {member}")
        buffers = self.get("buffers")
        need(len(buffers) <= 1, "more than one buffer")
        size = buffers[0]["byteLength"] if buffers else 0
        need(0 <= len(self.binary) - size < 4, f"a buffer of {size} bytes in a chunk of {len(self.binary)}")
        used = set()
        for view in self.get("bufferViews"):
            first = view.get("byteOffset", 0)
            need(view["buffer"] == 0 and view["byteLength"] >= 1 and first + view["byteLength"] <= size, f"buffer view {view}")
            need(not any(a < first + view["byteLength"] and first < b for a, b in used), "buffer views overlap")
            used.add((first, first + view["byteLength"]))

    def view(self, index):
        view = self.get("bufferViews")[index]
        first = view.get("byteOffset", 0)
        return view, self.binary[first:first + view["byteLength"]]

    def accessor(self, index):
        entry = self.get("accessors")[index]
        view, raw = self.view(entry["bufferView"])
        dtype, width = np.dtype(COMPONENTS[entry["componentType"]]), WIDTHS[entry["type"]]
        start = entry.get("byteOffset", 0)
        element = dtype.itemsize * width
        need((view.get("byteOffset", 0) + start) % dtype.itemsize == 0, "an accessor that is not aligned")
        need("byteStride" not in view and entry["count"] >= 1, "a stride, or no element")
        need(view.get("target") != 34962 or element % 4 == 0, "vertex attributes are not at multiples of 4")
        need(start + element * entry["count"] == view["byteLength"], f"accessor {index} does not fill its view")
        array = np.frombuffer(raw, dtype, entry["count"] * width, start).reshape(-1, width) if width > 1 else np.frombuffer(raw, dtype)
        if dtype.kind == "f":
            need(np.isfinite(array).all(), f"accessor {index} is not finite")
        for bound, values in (("min", array.min(0)), ("max", array.max(0))):
            if bound in entry:
                need(np.array_equal(np.asarray(entry[bound], dtype), np.atleast_1d(values)), f"accessor {index}: {bound} {entry[bound]} of {values}")
        return array

    def image(self, index):
        entry = self.get("images")[index]
        view, raw = self.view(entry["bufferView"])
        magic = {"image/jpeg": b"\xff\xd8\xff", "image/png": b"\x89PNG\r\n\x1a\n"}[entry["mimeType"]]
        need("target" not in view and raw.startswith(magic), f"image {index} is no {entry['mimeType']}")
        return raw

    def check_primitive(self, primitive):
        attributes, mode = primitive["attributes"], primitive.get("mode", 4)
        accessors = self.get("accessors")
        need("POSITION" in attributes and {"min", "max"} <= set(accessors[attributes["POSITION"]]), "POSITION without bounds")
        count = accessors[attributes["POSITION"]]["count"]
        kinds = {"POSITION": {(5126, "VEC3")}, "NORMAL": {(5126, "VEC3")}, "TEXCOORD_0": {(5126, "VEC2")},
                 "COLOR_0": {(5121, "VEC4"), (5123, "VEC4"), (5126, "VEC3"), (5126, "VEC4")}}
        for name, index in attributes.items():
            entry = accessors[index]
            need((entry["componentType"], entry["type"]) in kinds[name] and entry["count"] == count, f"{name}: {entry}")
            need(self.get("bufferViews")[entry["bufferView"]].get("target") == 34962, f"{name}: target")
            need((entry["componentType"] == 5126) != entry.get("normalized", False), f"{name}: normalized")
        if "NORMAL" in attributes:
            need(np.allclose(np.linalg.norm(self.arrays[attributes["NORMAL"]], axis=1), 1, atol=5e-4), "normals of another length than 1")
        if "indices" in primitive:
            entry, indices = accessors[primitive["indices"]], self.arrays[primitive["indices"]]
            need(entry["componentType"] == 5125 and entry["type"] == "SCALAR", f"indices {entry}")
            need(self.get("bufferViews")[entry["bufferView"]].get("target") == 34963, "indices: target")
            need(indices.max() < count, f"index {indices.max()} of {count} vertices")
            count = len(indices)
        need(count % {0: 1, 1: 2, 4: 3}[mode] == 0, f"{count} vertices in mode {mode}")

    def check_references(self):
        def refers(value, name):
            need(0 <= value < len(self.get(name)), f"{name} {value} is not there")
        for scene in self.get("scenes"):
            for node in scene.get("nodes", []):
                refers(node, "nodes")
        need(0 <= self.json.get("scene", 0) < len(self.get("scenes")), "no such scene")
        for node in self.get("nodes"):
            for member, name in (("mesh", "meshes"), ("camera", "cameras")):
                if member in node:
                    refers(node[member], name)
            if "matrix" in node:
                m = np.array(node["matrix"]).reshape(4, 4).T
                need(np.allclose(m[:3, :3] @ m[:3, :3].T, np.eye(3), atol=1e-4) and np.array_equal(m[3], [0, 0, 0, 1]), "a node's matrix is not rigid")
        for mesh in self.get("meshes"):
            for primitive in mesh["primitives"]:
                if "material" in primitive:
                    refers(primitive["material"], "materials")
        for material in self.get("materials"):
            if "baseColorTexture" in material["pbrMetallicRoughness"]:
                refers(material["pbrMetallicRoughness"]["baseColorTexture"]["index"], "textures")
        for texture in self.get("textures"):
            refers(texture["source"], "images")
            refers(texture["sampler"], "samplers")
        used = {name for material in self.get("materials") for name in material.get("extensions", {})}
        need(used == set(self.get("extensionsUsed")), f"extensionsUsed is {self.get('extensionsUsed')}")

    def primitive(self, mesh):
        """Attributes and indices of a mesh with one primitive, by name."""
        (primitive,) = self.get("meshes")[mesh]["primitives"]
        found = {name: self.arrays[index] for name, index in primitive["attributes"].items()}
        found["mode"] = primitive.get("mode", 4)
        if "indices" in primitive:
            found["indices"] = self.arrays[primitive["indices"]]
        return found


def srgb_bytes(linear):
    """The 8-bit colours that linear ones of 16 bits were made from."""
    v = np.asarray(linear, float) / 65535
    return np.rint(255 * np.where(v <= 0.0031308, 12.92 * v, 1.055 * v ** (1 / 2.4) - 0.055)).astype(np.uint8)


# ------------------------------------------------------------------ EXR


def exr_text(f):
    found = b""
    while (byte := f.read(1)) != b"\0":
        need(byte, "EXR ends in a name")
        found += byte
    return found.decode("ascii")


def exr_header(f):
    need(f.read(8) == struct.pack("<II", 20000630, 2), "EXR: magic number, version or flags")
    header = {}
    while name := exr_text(f):
        kind = exr_text(f)
        (size,) = struct.unpack("<i", f.read(4))
        header[name] = kind, f.read(size)
    for name in ("channels", "compression", "dataWindow", "displayWindow", "lineOrder", "pixelAspectRatio", "screenWindowCenter", "screenWindowWidth"):
        need(name in header, f"EXR without {name}")
    return header


def exr_channels(raw):
    f, names = io.BytesIO(raw), []
    while name := exr_text(f):
        kind, _, x, y = struct.unpack("<iIii", f.read(16))
        need((kind, x, y) == (2, 1, 1), f"channel {name}: type {kind}, sampling {x}, {y}")
        names.append(name)
    need(names == sorted(names), "channels are not sorted")
    return names


def exr_unpack(raw, size):
    """The ZIP methods: inflate, sum up, join the halves."""
    if len(raw) == size:
        return raw
    halves = np.frombuffer(zlib.decompress(raw), np.uint8)
    need(len(halves) == size, f"a block of {len(halves)} bytes instead of {size}")
    steps = halves.astype(np.int64)
    steps[1:] -= 128
    summed = (np.cumsum(steps) % 256).astype(np.uint8)
    out, half = np.empty(size, np.uint8), (size + 1) // 2
    out[0::2], out[1::2] = summed[:half], summed[half:]
    return out.tobytes()


def read_exr(path):
    """{channel: float32 [height, width]} of a scanline file, uncompressed or by ZIPS or ZIP."""
    with open(path, "rb") as f:
        header = exr_header(f)
        x0, y0, x1, y1 = struct.unpack("<4i", header["dataWindow"][1])
        width, height, names = x1 - x0 + 1, y1 - y0 + 1, exr_channels(header["channels"][1])
        rows = {0: 1, 2: 1, 3: 16}[header["compression"][1][0]]
        count = (height + rows - 1) // rows
        offsets = struct.unpack(f"<{count}Q", f.read(8 * count))
        planes = {name: np.empty((height, width), np.float32) for name in names}
        for index, offset in enumerate(offsets):
            f.seek(offset)
            y, size = struct.unpack("<ii", f.read(8))
            need(y == y0 + index * rows, f"block {index} begins with row {y}")
            here = min(rows, height - index * rows)
            block = np.frombuffer(exr_unpack(f.read(size), here * width * 4 * len(names)), "<f4").reshape(here, len(names), width)
            for k, name in enumerate(names):
                planes[name][index * rows:index * rows + here] = block[:, k]
        need(not f.read(1), "bytes behind the last block")
    return planes
