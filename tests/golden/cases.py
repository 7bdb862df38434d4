"""Golden cases as objects: from index.json to inputs, settings, expected results and verdicts. NumPy only.

The format is described in data/README.md. A test program asks for the cases of a folder and takes everything else from them:

    for case in cases.read(folder, images=..., weights=...):
        for item in case.expected:
            passed, words = item.verdict(result)
"""
import fnmatch
import functools
import json
import math
import os
import struct
import zlib

import numpy as np

U64 = 0xFFFFFFFFFFFFFFFF
GOLDEN_RATIO = 0x9E3779B97F4A7C15
TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}


class Absent(Exception):
    """A photo or a weight file that this machine does not have."""


# ------------------------------------------------------------------ files


@functools.lru_cache(maxsize=64)
def read_json(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


@functools.lru_cache(maxsize=256)
def tensor_table(path):
    """Header of a safetensors file and where its data starts."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        table = json.loads(f.read(length))
    table.pop("__metadata__", None)
    return table, 8 + length


def read_tensor(path, name):
    table, start = tensor_table(path)
    entry = table[name]
    first, end = entry["data_offsets"]
    with open(path, "rb") as f:
        f.seek(start + first)
        raw = f.read(end - first)
    if entry["dtype"] == "BF16":
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").reshape(entry["shape"])
    return np.frombuffer(raw, TYPES[entry["dtype"]]).reshape(entry["shape"])


def replace_tensors(path, other):
    """Overwrites tensors of a safetensors file with those of the same name, type and shape of another one."""
    table, start = tensor_table(path)
    with open(path, "r+b") as f:
        for name, entry in tensor_table(other)[0].items():
            if (entry["dtype"], entry["shape"]) != (table[name]["dtype"], table[name]["shape"]):
                raise ValueError(f"{other}: {name} does not fit {path}")
            f.seek(start + table[name]["data_offsets"][0])
            f.write(read_tensor(other, name).tobytes())


def member(tree, path):
    """Follows a path such as "cases/3/pose" through lists and objects."""
    for key in filter(None, path.split("/")):
        tree = tree[int(key)] if isinstance(tree, list) else tree[key]
    return tree


def part_of(array, axes):
    """Along each axis: None everything, a number that element, [from, to] a range, {"at": [...]} those elements."""
    for axis in range(len(axes) - 1, -1, -1):
        want = axes[axis]
        if isinstance(want, dict):
            array = array.take(want["at"], axis=axis)
        elif isinstance(want, list):
            array = array.take(range(*want), axis=axis)
        elif want is not None:
            array = array.take(want, axis=axis)
    return array


# ------------------------------------------------------------------ formulas


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & U64
    return value


def splitmix(name, count):
    """64-bit numbers z of the elements 0 .. count - 1."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN_RATIO) + np.uint64(fnv1a(name))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(31))


def crc_mix(name, count):
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint32) * np.uint32(GOLDEN_RATIO >> 32) + np.uint32(zlib.crc32(name.encode()))
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x ^ (x >> np.uint32(16))


def unit(formula, name, count):
    """v of each element, between -1 and 1, as float64."""
    if formula == "fnv1a":
        return (splitmix(name, count) >> np.uint64(40)).astype(float) / 2**23 - 1
    if formula == "crc32":
        return (crc_mix(name, count).astype(float) + 0.5) / 2**31 - 1
    raise ValueError(f"unknown formula {formula!r}")


def formula_weight(rules, formula, name, shape, prefix="", suffix=""):
    """A weight by the first rule that fits its name and rank."""
    rule = next(r for r in rules if fnmatch.fnmatchcase(name, r["match"]) and r.get("rank", len(shape)) == len(shape))
    if "values" in rule:
        return np.array(rule["values"], np.float32).reshape(shape)
    v = unit(formula, prefix + name + suffix, math.prod(shape))
    fan = math.prod(shape[1:]) if rule.get("fan") == "dims1" else shape[0] if shape else 1
    if "div_sqrt_fan" in rule:
        v = v * rule["div_sqrt_fan"] / math.sqrt(fan)
    elif "sqrt_over_fan" in rule:
        v = v * math.sqrt(rule["sqrt_over_fan"] / fan)
    else:
        v = rule.get("add", 0.0) + rule["mul"] * np.abs(v) if rule.get("signed") else rule.get("add", 0.0) + rule["mul"] * v
        if rule.get("signed"):
            v = np.where(unit(formula, prefix + name + suffix, math.prod(shape)) < 0, -v, v)
    return v.astype(np.float32).reshape(shape)


def formula_input(spec):
    height, width, bytes_wanted = spec["height"], spec["width"], spec.get("dtype") == "U8"
    channels = spec.get("channels", 1 if bytes_wanted else 3)
    if spec["formula"] == "pixels":
        c, y, x = np.ogrid[:channels, :height, :width]
        return ((7 * x + 13 * y + 50 * c + 3 * (x * y % 31)) % 256).astype(np.uint8)
    name, count = spec.get("prefix", "") + spec["of"] + spec.get("suffix", ""), channels * height * width
    if bytes_wanted:
        v = (splitmix(name, count) >> np.uint64(56)).astype(np.uint8)
    else:
        v = unit(spec["formula"], name, count).astype(np.float32)
    if spec.get("layout") == "hwc":
        return v.reshape(height, width, channels)
    return v.reshape(height, width) if channels == 1 else v.reshape(channels, height, width)


# ------------------------------------------------------------------ comparison


def compare(name, got, want, tolerance):
    """(passed, words): |got - want| <= abs + rel |want| + rms rms(want) + max max|want|, and what else the tolerance asks for."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    if got.shape != want.shape:
        return False, f"{name}: shape {got.shape}, expected {want.shape}"
    finite = np.isfinite(want)
    largest = float(np.abs(want[finite]).max(initial=0))
    rms = math.sqrt(float(np.mean(want[finite] ** 2))) if finite.any() else 0.0
    with np.errstate(invalid="ignore"):
        usable = finite & np.isfinite(got)
        equal = (got == want) | (np.isnan(got) & np.isnan(want))
        error, size = np.where(usable, np.abs(got - want), 0), np.where(usable, np.abs(want), 0)
    if tolerance.get("vector"):
        usable, equal = usable.all(-1), equal.all(-1)
        error, size = np.linalg.norm(error, axis=-1), np.linalg.norm(size, axis=-1)
    limit = tolerance.get("abs", 0) + tolerance.get("rel", 0) * size + tolerance.get("rms", 0) * rms + tolerance.get("max", 0) * largest
    if "ulp" in tolerance:
        limit = limit + tolerance["ulp"] * np.spacing(size.astype(np.float32)).astype(float)
    if not set(tolerance) & {"abs", "rel", "rms", "max", "ulp"} and set(tolerance) & {"rel_l2", "pcc"}:
        limit = np.inf  # compared as a whole alone; what is not finite on one side is still off
    off = int(np.count_nonzero(~(equal | (usable & (error <= limit)))))
    allowed = max(tolerance.get("outliers", 0), int(tolerance.get("outlier_share", 0) * error.size))
    passed = off <= allowed
    words = f"{name}: {off} of {error.size} off (allowed {allowed}), largest error {error.max(initial=0):.3g}, rms {rms:.3g}"
    if "not_equal_share" in tolerance and got.size:
        share = float(np.mean(got != want))
        passed &= share <= tolerance["not_equal_share"]
        words += f", {share:.2%} not equal"
    both = np.isfinite(got) & finite
    if "rel_l2" in tolerance:
        value = float(np.linalg.norm((got - want)[both]) / max(float(np.linalg.norm(want[both])), 1e-300))
        passed &= value <= tolerance["rel_l2"]
        words += f", rel_l2 {value:.3g}"
    if "pcc" in tolerance:
        value = float(np.corrcoef(got[both], want[both])[0, 1])
        passed &= value >= tolerance["pcc"]
        words += f", pcc {value:.6f}"
    return passed, words


# ------------------------------------------------------------------ cases


class Item:
    """One input, or one expected result, of a case."""

    def __init__(self, case, spec):
        self.case, self.spec, self.name = case, spec, spec["name"]

    def path(self):
        if "image" in self.spec:
            return self.case.find(self.case.images, self.spec["image"], "photo")
        root = self.case.weights_root if self.spec.get("root") == "weights" else self.case.root
        return self.case.find(root, self.spec["file"], "file")

    def value(self):
        """The array, or the number, text or list, that the item stands for."""
        spec = self.spec
        if "key" in spec:
            return member(self.case.data, spec["key"])
        if "value" in spec:
            return spec["value"]
        if "constant" in spec:
            shape = [spec["height"], spec["width"]] + ([spec["channels"]] if spec.get("layout") == "hwc" else [])
            return np.full(shape, spec["constant"], TYPES[spec.get("dtype", "U8")])
        if "formula" in spec:
            return formula_input(spec)
        path = self.path()
        if path.endswith(".json"):
            return member(read_json(path), spec["at"])
        if not path.endswith((".safetensors", ".npy")):
            return path  # a file of another kind, for the program to read
        array = read_tensor(path, spec["tensor"]) if path.endswith(".safetensors") else np.load(path)
        if spec.get("first_row", -1) >= 0:
            array = array[spec["first_row"]:spec["first_row"] + spec["count"]]
        return part_of(array, spec["part"]) if "part" in spec else array

    @property
    def is_stored(self):
        """False for a long list of which only count and checksum are kept."""
        return self.spec.get("first_row", 0) >= 0

    def tolerance(self, suffix=""):
        name = self.spec.get("tolerance", self.name) + suffix
        return self.case.tolerance.get(name, self.case.tolerance.get("*", {}))

    def kept(self, full):
        """Those elements of a full result that the expected array holds."""
        spec, full = self.spec, np.asarray(full)
        if "full_shape" in spec:
            if list(full.shape) != list(spec["full_shape"]):
                raise ValueError(f"{self.name}: shape {list(full.shape)}, expected {spec['full_shape']}")
            if spec.get("bits"):
                return np.packbits(full.astype(bool).ravel())
            if "flat_step" in spec:
                return full.ravel()[:: spec["flat_step"]]
            if "step" in spec:
                return full[tuple(slice(None, None, step) for step in spec["step"])]
        return part_of(full, spec["kept"]) if "kept" in spec else full

    def verdict(self, got):
        want = self.value()
        if want is None or isinstance(want, (str, bool)):
            return got == want, f"{self.name}: {got!r}, expected {want!r}"
        want = np.asarray(want)
        try:
            got = self.kept(got)
        except ValueError as problem:
            return False, str(problem)
        if "except_rows" in self.spec and got.shape == want.shape:
            got, want = (np.delete(a, self.spec["except_rows"], axis=0) for a in (got, want))
        if "window" in self.spec:
            y0, x0, y1, x1 = self.spec["window"]
            got, want = got[y0:y1, x0:x1], want[y0:y1, x0:x1]
        return compare(self.name, got, want, self.tolerance())


class Case:
    def __init__(self, roots, where, data, test, formulas):
        self.root, self.images, self.weights_root = roots
        self.where, self.data, self.formulas = where, data, formulas
        self.kind, self.network, self.weights = test["kind"], test["network"], test["weights"]
        self.options, self.tolerance = test["options"], test["tolerance"]
        self.inputs = [Item(self, spec) for spec in test["inputs"]]
        self.expected = [Item(self, spec) for spec in test["expected"]]

    @staticmethod
    def find(root, name, what):
        path = os.path.join(root or "", name)
        if not os.path.isfile(path):
            raise Absent(f"{what} {name}")
        return path

    def input(self, name):
        """Data of the input of that name, in the form that is not a photo; None without one."""
        return next((i.value() for i in self.inputs if i.name == name and "image" not in i.spec), None)

    def photo(self):
        """Path of the photo; None without one."""
        return next((i.path() for i in self.inputs if "image" in i.spec), None)

    def weight_files(self):
        """The checkpoints that must all give the expected results; none for formula weights."""
        if not self.weights or "file" not in self.weights:
            return []
        return [self.find(self.weights_root if w.get("root") == "weights" else self.root, w["file"], "weights")
                for w in [self.weights] + self.weights.get("also", [])]


def merged(objects):
    """The `test` members from the outside in: options and tolerance join, anything else is replaced."""
    test = {}
    for thing in objects:
        for key, value in (thing.get("test", {}) if isinstance(thing, dict) else {}).items():
            test[key] = {**test.get(key, {}), **value} if key in ("options", "tolerance") else value
    return test


def matches(document, path):
    """(objects on the way and the case itself) for each match of a path in which * stands for every member but `test`."""
    found = [[document]]
    for key in path.split("/")[1:]:
        deeper = []
        for way in found:
            last = way[-1]
            if key != "*":
                deeper.append(way + [last[int(key)] if isinstance(last, list) else last[key]])
            elif isinstance(last, list):
                deeper += [way + [value] for value in last]
            else:
                deeper += [way + [value] for name, value in last.items() if name != "test"]
        found = deeper
    return found


def fill_columns(test, row):
    """Puts the values of a row case into the places that `columns` names."""
    test = json.loads(json.dumps(test))
    for places, value in zip(test["columns"], row):
        for place in [places] if isinstance(places, str) else places:
            way, _, last = place.rpartition("/")
            holder = member(test, way)
            holder[int(last) if isinstance(holder, list) else last] = value
    return test


def read(root, images=None, weights=None):
    """Every case of one network's folder, in the order of its index.json."""
    index = read_json(os.path.join(root, "index.json"))
    for entry in index["files"]:
        document = read_json(os.path.join(root, entry["file"]))
        for path in entry["cases"]:
            for number, way in enumerate(matches(document, path)):
                data = way[-1]
                test = merged(way)
                if isinstance(data, list):
                    test = fill_columns(test, data)
                yield Case((root, images, weights), f"{entry['file']}{path}#{number}", data, test, index.get("formulas", {}))


def check_formulas(root):
    """Problems with the index's own check values of its formulas; none is good."""
    problems = []
    for name, formula in read_json(os.path.join(root, "index.json")).get("formulas", {}).items():
        for check in formula["check"]:
            if "first" in check:
                got = formula_weight(formula["rules"], formula["formula"], check["tensor"], check["shape"]).ravel()
                if not np.allclose(got[:len(check["first"])], check["first"], rtol=2e-6, atol=1e-9):
                    problems.append(f"formula {name}: {check['tensor']} begins with {got[:4]}, expected {check['first']}")
    return problems
