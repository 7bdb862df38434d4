"""Runs golden cases through the library: python3 run.py LIBTHEO LIBTHEO_STAGES FOLDER... (see --help).

One function per kind of case; each yields (passed, words) for every expected result. Kinds and networks that have no function are
counted and reported as not covered. Exit status: 0 all passed, 1 some failed, 77 nothing to run.
"""
import argparse
import collections
import itertools
import json
import os
import sys
import tempfile
import zlib

import numpy as np

import cases
import dust3r
import export
import library as lib



def crc32(array, dtype):
    return f"{zlib.crc32(np.ascontiguousarray(array, dtype).tobytes()):08x}"


def to_bytes(plane):
    """The 8-bit samples that a float plane was made from."""
    return np.rint(plane * 255).astype(np.uint8)


class Machine:
    """The library, and models that stay open between cases."""

    KEPT = 4

    def __init__(self, library, stages, folder):
        self.library = lib.Library(library, stages)
        self.folder, self.numbers = folder, itertools.count()
        self.files, self.sessions = {}, collections.OrderedDict()

    def weight_files(self, case):
        """Checkpoints of a case; formula weights are written by the library itself."""
        if "file" in case.weights:
            return case.weight_files()
        config, model = dict(case.weights["config"]), "superpoint"
        if case.network.startswith("dust3r"):
            model = "dust3r"
        elif "file" in config:
            model = "moge-vitl" if case.network == "moge1" else "moge-2-vits-normal"
            config["model_config"] = cases.read_json(case.find(case.root, config.pop("file"), "file"))
        override = case.weights.get("override")
        key = json.dumps([config, override], sort_keys=True)
        if key not in self.files:
            path = os.path.join(self.folder, f"formula{next(self.numbers)}")
            if model == "dust3r":  # a folder: its configuration does not fit into the file
                self.library.synthesize(model, json.dumps(config), path)
                path = os.path.join(path, "model.safetensors")
            else:
                path += ".safetensors"
                self.library.synthesize(model, json.dumps(config), path)
            if override:
                cases.replace_tensors(path, case.find(case.root, override, "file"))
            self.files[key] = path
        return [self.files[key]]

    def session(self, path, options):
        key = path, options.get("bn_eps", 0.0)
        if key not in self.sessions:
            self.sessions[key] = self.library.open(*key)
            if len(self.sessions) > self.KEPT:
                self.sessions.popitem(last=False)[1].close()
        self.sessions.move_to_end(key)
        return self.sessions[key]


# ------------------------------------------------------------------ what a case's options mean to the library


def detect_options(library, case, size):
    o = case.options
    fields = {"net_height": size[0], "net_width": size[1], "gray": lib.GRAY[o.get("gray", "red")]}
    if "nms" in o:
        fields.update(nms=lib.NMS[o["nms"]], nms_radius=o["radius"], threshold=o["threshold"], border=o["border"],
                      border_mode=lib.BORDER[o["border_mode"]], max_keypoints=o["top_k"], order=lib.ORDER[o["order"]])
    if "sampling" in o:
        fields["sampling"] = lib.SAMPLING[o["sampling"]]
    return library.detect_options(**fields)


def with_input(machine, case, work):
    """Calls work(image, options): the case's stored plane if it has one (another decoder must not matter), else its photo."""
    stored = case.input("plane")
    if stored is not None:
        yield from work(machine.library.image(stored), detect_options(machine.library, case, stored.shape))
        return
    with machine.library.loaded(case.photo()) as image:
        yield from work(image, detect_options(machine.library, case, case.options["size"]))


def photo_plane(machine, case):
    """The plane that the library makes of the case's photo; None where there is no photo."""
    if case.photo() is None:
        return None
    with machine.library.loaded(case.photo()) as image:
        return machine.library.plane(image, detect_options(machine.library, case, case.options["size"]))


# ------------------------------------------------------------------ kinds


def run_resize(machine, case):
    plane = case.input("plane")
    height, width = case.options["size"]
    got = machine.library.resized(plane, width, height, case.options["filter"])
    for item in case.expected:
        yield item.verdict(crc32(got, "u1") if item.name == "crc32" else got)


def run_decode_resize(machine, case):
    with machine.library.loaded(case.photo()) as image:
        red = machine.library.pixels(image)[:, :, 0]
        resized = to_bytes(machine.library.plane(image, detect_options(machine.library, case, case.options["size"])))
    got = {"plane_crc32": crc32(red, "u1"), "plane_mean": red.mean(), "crc32": crc32(resized, "u1"), "mean": resized.mean()}
    for item in case.expected:
        if not item.spec.get("optional"):
            yield item.verdict(got[item.name])


def layer_verdicts(item, layers):
    bound = item.tolerance()["abs"]
    for name, want in item.value().items():
        x = layers[name].astype(float)
        facts = {"mean": x.mean(), "abs_mean": np.abs(x).mean(), "min": x.min(), "max": x.max()}
        worst = max(abs(value - want[key]) for key, value in facts.items())
        for channel, row, column, value in want["samples"]:
            worst = max(worst, abs(x[channel, row, column] - value))
        yield list(x.shape) == want["shape"] and worst <= bound, f"layer {name}: largest difference {worst:.3g}"


def first_points_verdict(item, xy, scores):
    """The expected points x, y, score stand at the head of the list."""
    want = np.asarray(item.value(), np.float32).reshape(-1, 3)
    same = len(xy) >= len(want) and np.array_equal(xy[:len(want)], want[:, :2])
    close, words = cases.compare(item.name, scores[:len(want)], want[:, 2], item.tolerance()) if same else (False, f"{item.name}: {xy[:len(want)]}")
    return same and close, words


def run_net_file(machine, case, path):
    session = machine.session(path, case.options)
    made = photo_plane(machine, case)

    def work(image, options):
        plane = machine.library.plane(image, options)
        got = session.raw(plane)
        got["S_max"], got["logit_abs_max"] = got["S"].max(), np.abs(got["logits"]).max()
        if made is not None:
            got["plane_crc32"], got["plane_f32_crc32"], got["plane_mean"] = crc32(to_bytes(made), "u1"), crc32(made, "<f4"), made.mean()
        if "nms" in case.options:
            xy, scores, descriptors = session.detect(image, options)
            got.update(n=len(xy), keypoints_xy=xy, descriptors=descriptors)
        for item in case.expected:
            if item.spec.get("optional"):
                continue
            if item.name == "layers":
                yield from layer_verdicts(item, machine.library.layers(path, session.bn_eps, plane))
            elif item.name == "points_first":
                yield first_points_verdict(item, xy, scores)
            else:
                yield item.verdict(got[item.name])

    yield from with_input(machine, case, work)


def run_net(machine, case):
    for path in machine.weight_files(case):
        yield from run_net_file(machine, case, path)


def run_post(machine, case):
    xy, scores = machine.library.select(case.input("S"), case.options)
    got = {"n": len(xy), "crc32_xy": crc32(xy, "<i4"), "points": xy}
    for item in case.expected:
        if item.name == "points_first":
            yield first_points_verdict(item, xy, scores)
        elif item.name == "points_last":
            count = len(item.value())
            yield first_points_verdict(item, xy[len(xy) - count:], scores[len(xy) - count:])
        elif item.is_stored:
            yield item.verdict(got[item.name])


def list_verdicts(case, item, xy, scores, suffix=""):
    """A list of points against the expected one, which may differ in a few, and in the order of nearly equal scores."""
    want = item.value()
    index = {(x, y): i for i, (x, y) in enumerate(want[:, :2].tolist())}
    found = [index.get((x, y), -1) for x, y in xy.tolist()]
    common = [(g, w) for g, w in enumerate(found) if w >= 0]
    odd = len(xy) + len(want) - 2 * len(common)
    yield odd <= item.tolerance(suffix)["not_in_both"], f"keypoints{suffix}: {odd} in one list only"
    got_scores = np.array([scores[g] for g, _ in common])
    want_scores = np.array([want[w, 2] for _, w in common])
    yield cases.compare(f"scores{suffix}", got_scores, want_scores, case.tolerance[f"scores{suffix}"])
    if case.options["order"] == "score" or 0 <= case.options["top_k"] < len(want):
        rise = float(np.diff(want_scores).max(initial=0))
        yield rise <= (0 if suffix else case.tolerance.get("swap", {}).get("abs", 0)), f"order{suffix}: a score rises by {rise:.3g}"
    else:
        keys = xy[:, 1].astype(int) * (1 << 20) + xy[:, 0].astype(int)
        yield bool((np.diff(keys) > 0).all()), f"order{suffix}: raster"


def at_points(values, xy, wanted):
    """Rows of `values`, which belong to points xy, at the wanted points that are among them: (rows, which)."""
    index = {(x, y): i for i, (x, y) in enumerate(xy.tolist())}
    which = [i for i, (x, y) in enumerate(wanted.tolist()) if (x, y) in index]
    return values[[index[tuple(wanted[i].tolist())] for i in which]], which


def run_e2e(machine, case):
    (path,) = machine.weight_files(case)
    session = machine.session(path, case.options)
    wanted = next((i for i in case.expected if i.name == "keypoints"), None)

    def work(image, options):
        original, scores, descriptors = session.detect(image, options)
        height, width = options.net_height, options.net_width
        scale = np.array([image.width / width, image.height / height])
        xy = np.rint(original / scale).astype(np.float32)
        for item in case.expected:
            if item.spec.get("optional"):
                continue
            if item.name == "n":
                yield item.verdict(len(xy))
            elif item.name == "keypoints":
                yield from list_verdicts(case, item, xy, scores)
            elif item.name == "descriptors":
                first = item.spec.get("first_row", 0)
                points = wanted.value()[max(first, 0):][:len(item.value()), :2]
                rows, which = at_points(descriptors, xy, points)
                yield len(which) >= len(points) - wanted.tolerance()["not_in_both"], f"descriptors: {len(which)} of {len(points)} points found"
                yield cases.compare("descriptors", rows, item.value()[which], item.tolerance())
            elif item.name == "keypoints_original_xy" and stored_photo_size(case, image):
                points = wanted.value()[:len(item.value()), :2]
                rows, which = at_points(original, xy, points)
                yield cases.compare(item.name, rows, np.asarray(item.value(), float)[which], item.tolerance())
            elif item.name == "shapes":
                got = {"keypoints": original.shape, "scores": scores.shape, "descriptors": descriptors.shape}
                got = {name: list(got[name]) for name in item.value() if name in got}
                yield got == {name: item.value()[name] for name in got} and bool(got), f"shapes: {got}"
            elif item.name in ("S", "S_max"):
                score_map = session.raw(machine.library.plane(image, options))["S"]
                yield item.verdict(score_map if item.name == "S" else score_map.max())

    yield from with_input(machine, case, work)
    yield from from_stored_maps(machine, case, wanted)


def stored_photo_size(case, image):
    """False where the plane stands in for a photo of another size."""
    return case.input("plane") is None or (image.height, image.width) != tuple(case.options["size"])


def from_stored_maps(machine, case, wanted):
    """Selection from the stored score map, and sampling from the stored descriptors, without the network."""
    score_map, descriptor_map = case.input("S"), case.input("D")
    if score_map is None:
        return
    xy, scores = machine.library.select(score_map, case.options)
    for item in case.expected:
        if item.name == "n":
            yield cases.compare("n_from_S", len(xy), item.value(), item.tolerance("_from_S"))
        elif item.name == "crc32_xy":
            yield crc32(xy, "<i4") == item.value(), "crc32_xy_from_S"
        elif item.name == "keypoints":
            yield from list_verdicts(case, item, xy.astype(np.float32), scores, "_from_S")
        elif item.name == "descriptors" and descriptor_map is not None:
            first = max(item.spec.get("first_row", 0), 0)
            points = wanted.value()[first:first + len(item.value()), :2]
            height, width = case.options["size"]
            got = machine.library.sample(descriptor_map, points, case.options["sampling"], width, height)
            yield cases.compare("descriptors_from_D", got, item.value(), item.tolerance())


def run_sampling(machine, case):
    cells, points = case.input("D"), case.input("points")
    cell = case.options["cell"]
    got = machine.library.sample(cells, points, case.options["sampling"], cell * cells.shape[2], cell * cells.shape[1])
    for item in case.expected:
        yield item.verdict(got)


def distance(similarity):
    return np.sqrt(np.maximum(2 - 2 * np.clip(similarity.astype(float), -1, 1), 0))


def two_nearest(machine, a, b):
    """Indices and distances [n, 2] of the best and the second best in b of every row of a, each found by matching one row."""
    index, near = np.zeros((len(a), 2), int), np.zeros((len(a), 2))
    for i, row in enumerate(a):
        left = np.arange(len(b))
        for k in range(2):
            pairs, similarity = machine.library.match(row[None], b[left])
            index[i, k], near[i, k] = left[pairs[0, 1]], distance(similarity)[0]
            left = np.delete(left, pairs[0, 1])
    return index, near


def run_matching(machine, case):
    a, b = (np.asarray(case.input(name), np.float32) for name in ("desc_a", "desc_b"))
    nearest = {"ab": lambda: two_nearest(machine, a, b), "ba": lambda: two_nearest(machine, b, a)}
    made = {}
    for item in case.expected:
        if item.spec.get("optional"):
            continue
        spec = item.spec
        if "direction" in spec:
            if spec["direction"] not in made:
                made[spec["direction"]] = nearest[spec["direction"]]()
            yield item.verdict(made[spec["direction"]][item.name == "dist"])
        elif "ratio" in spec and not spec["mutual"]:
            rows = [(i, machine.library.match(row[None], b, ratio=spec["ratio"])[0]) for i, row in enumerate(a)]
            yield item.verdict(np.array([(i, pairs[0, 1]) for i, pairs in rows if len(pairs)]))
        else:
            limit = spec.get("max_distance")
            pairs, similarity = machine.library.match(a, b, ratio=spec.get("ratio", 0.0), min_similarity=-2.0 if limit is None else 1 - limit**2 / 2)
            if item.name == "dist":
                yield item.verdict(distance(similarity))
            elif item.name == "matches_and_dist":
                yield item.verdict(np.column_stack([pairs, distance(similarity)]))
            else:
                yield item.verdict(pairs)


# What the golden files call the library's errors.
ERROR_KINDS = {3: ["container"], 4: ["pickle"], 5: ["security"], 6: ["bounds"], 7: ["unsupported"], 8: ["crc"], 9: ["structure"],
               10: ["shape"], 11: ["missing_tensor", "missing_storage"]}


def run_loader(machine, case):
    expected = {i.name: i.value() for i in case.expected if i.name in ("outcome", "error_kind", "also_acceptable")}
    for path in case.weight_files():
        kinds = []
        try:
            tensors, got = machine.library.tensors(path), "ok"
            if case.network == "moge2":  # a sound file may still be none of this network
                machine.library.open(path).close()
        except lib.Failure as failure:
            tensors, got, kinds = [], f"error: {failure}", ERROR_KINDS.get(failure.status, ["another"])
        yield got.split(":")[0] == expected["outcome"], f"outcome: {got}, expected {expected['outcome']}"
        if kinds and "error_kind" in expected:
            allowed = [expected["error_kind"], *expected["also_acceptable"]]
            yield bool({*kinds} & {*allowed}), f"error of the kind {kinds}, expected {allowed}: {got}"
        for item in case.expected:
            if item.name == "tensors_total":
                yield item.verdict(len(tensors))
            elif item.name == "float_numbers":
                yield item.verdict(sum(int(np.prod(shape)) for _, kind, shape, _, _ in tensors if "float" in kind))
            elif item.name == "tensors":
                yield from tensor_verdicts(case, item, {t[0]: t for t in tensors})


def tensor_verdicts(case, item, tensors):
    for want in item.value():
        if want["name"] not in tensors:
            yield False, f"{want['name']}: missing"
            continue
        name, kind, shape, stride, raw = tensors[want["name"]]
        values = np.frombuffer(raw, kind)
        facts = {"dtype": kind, "shape": shape, "stride": stride, "crc32": f"{zlib.crc32(raw):08x}"}
        wrong = {key: value for key, value in facts.items() if key in want and value != want[key]}
        yield not wrong, f"{name}: {wrong}"
        yield cases.compare(f"{name} sum", values.astype(float).sum(), want["sum"], case.tolerance.get("sum", {"abs": 0}))
        yield cases.compare(f"{name} first", np.float32(values[0]), np.float32(want["first"]), {"ulp": 1})


# ------------------------------------------------------------------ MoGe

FIT = {"native": 0, "pad": 1, "stretch": 2}


def nearest_to(pixels, size):
    """The photo brought to another size by taking the pixel at the same share of the way."""
    (height, width), (h, w) = pixels.shape[:2], size
    return pixels[np.arange(h) * height // h][:, np.arange(w) * width // w]


def moge_pixels(machine, case):
    """Bytes [height, width, 3] of the case's picture."""
    if case.photo() is None:
        return np.ascontiguousarray(case.input("image").transpose(1, 2, 0))
    with machine.library.loaded(case.photo()) as image:
        pixels = machine.library.pixels(image)[:, :, :3]
    wanted = case.options.get("nearest_to")
    return nearest_to(pixels, wanted) if wanted else pixels


def as_planes(x):
    return x.transpose(2, 0, 1)


def moge_stages(machine, case, path, image):
    """Every stage under the name, and in the layout, of the golden files."""
    o = case.options
    traced = machine.library.moge(path, image, FIT[o["fit"]], o["num_tokens"], True)
    made = machine.library.moge(path, image, FIT[o["fit"]], o["num_tokens"], False)
    rows, columns = traced["feat"].shape[:2]
    patches = traced["patches"][0, 1:].reshape(rows, columns, 3, 14, 14)
    stages = {"grid": [rows, columns], "image_norm": patches.transpose(2, 0, 3, 1, 4).reshape(3, 14 * rows, 14 * columns)}
    for name, x in traced.items():
        tokens = name.startswith(("tokens", "block", "tap"))
        stages[name] = x[0] if tokens else x[0, 0] if name in ("cls", "scale_raw") else as_planes(x)
    if case.network == "moge1":  # what the outputs read is never whole: made here by the library's own functions
        last, (height, width) = traced[max(name for name in traced if name.startswith("up") and name[-1].isdigit())], traced["mask_raw"].shape[:2]
        joined = [machine.library.bilinear(last, (height, width)), machine.library.view_plane(width / height, (height, width))]
        stages["up_resized_uv"] = as_planes(np.concatenate(joined, axis=2))
    for head in ("points", "normal", "mask"):
        if f"{head}_final" in made:
            final = made[f"{head}_final"]
            stages[f"{head}_raw_folded"] = made[f"{head}_raw_planes"]
            stages[f"{head}_resized"] = as_planes(made[f"{head}_resized"])
            stages[f"{head}_final"] = final[:, :, 0] if head == "mask" else final
    if "metric_scale" in made:
        stages["metric_scale"] = made["metric_scale"].ravel()
    return stages


def statistics_verdicts(case, item, stages):
    for name, want in item.value().items():
        if name not in stages:
            if not name.endswith("__formula_only"):
                yield False, f"{name}: not made"
            continue
        for form in filter(stages.__contains__, (name, f"{name}_folded")):
            x = np.asarray(stages[form], float)
            flat, tolerance = x.ravel(), case.tolerance.get(name, case.tolerance["*"])
            scale = np.full(1, want["rms"])
            for key, got in (("mean", x.mean()), ("rms", np.sqrt(np.mean(x * x)))):
                yield abs(got - want[key]) <= case.tolerance[key]["rms"] * want["rms"], f"{form}: {key} {got:.7g}, expected {want[key]:.7g}"
            if "rms" in tolerance:
                samples = np.r_[flat[:len(want["first4"])], flat[flat.size // 2], flat[-1]]
                wanted = np.r_[want["first4"], want["mid"], want["last"]]
                worst = float(np.abs(samples - wanted).max())
                yield worst <= tolerance["rms"] * float(scale[0]), f"{form}: samples off by {worst:.3g}, rms {want['rms']:.3g}"


def infer(session, image, case, entry):
    """infer() by the options of one entry, with its statistics."""
    got = session.geometry(image, fit=FIT[case.options["fit"]], tokens=case.options["num_tokens"], fov_x=entry["fov_x"] or 0.0,
                           force_projection=entry["force_projection"], apply_mask=entry["apply_mask"])
    valid = got["depth"][np.isfinite(got["depth"])]
    got["mask_count"], got["depth_finite"] = int(got["mask"].sum()), int(np.isfinite(got["depth"]).sum())
    if len(valid):
        got.update(depth_min=valid.min(), depth_median=np.median(valid), depth_max=valid.max(), depth_mean=valid.mean(dtype=float))
    return got


def infer_verdicts(case, session, image):
    members = next(i for i in case.expected if i.name == "infer").spec["members"]
    for entry in case.data["infer"]:
        got, tag = infer(session, image, case, entry), entry["tag"]
        for name, tolerance in members.items():
            if name in entry and name in got and entry[name] is not None:
                yield cases.compare(f"{tag} {name}", got[name], entry[name], case.tolerance[tolerance])
        for item in case.expected:
            if item.spec.get("infer", "").removeprefix("infer_") == tag.removeprefix("infer_") and item.name != "infer":
                passed, words = item.verdict(got[item.name.removeprefix("infer_")])
                yield passed, f"{tag} {words}"


def run_moge_network(machine, case):
    pixels = moge_pixels(machine, case)
    for path in machine.weight_files(case):
        image = machine.library.image(pixels)
        stages = moge_stages(machine, case, path, image)
        for item in case.expected:
            if item.spec.get("optional") or item.name.startswith("infer"):
                continue
            if item.name == "stages":
                yield from statistics_verdicts(case, item, stages)
            elif item.name in stages:
                yield item.verdict(stages[item.name])
                if f"{item.name}_folded" in stages:
                    yield item.verdict(stages[f"{item.name}_folded"])
        if "infer" in case.data:
            yield from infer_verdicts(case, machine.session(path, {}), image)


def run_canvas(machine, case):
    image = machine.library.image(moge_pixels(machine, case))
    for path in machine.weight_files(case):
        stages = moge_stages(machine, case, path, image)
        for head in ("points", "normal", "mask"):
            stages[f"{head}_sampled"] = stages[f"{head}_resized"]
            stages["points_affine" if head == "points" else head] = stages[f"{head}_final"]
        stages["metric_scale"] = stages["metric_scale"][0]
        for item in case.expected:
            if item.name in stages and not item.spec.get("optional"):
                yield item.verdict(stages[item.name])
        yield from infer_verdicts(case, machine.session(path, {}), image)


def run_solver(machine, case):
    focal, shift, evaluations = machine.library.focal(case.input("points"), case.input("mask"), case.options["focal"])
    got = {"focal": focal, "shift": shift, "nfev": evaluations}
    for item in case.expected:
        if item.name in got:
            yield item.verdict(got[item.name])


def resampled(library, o, x):
    """The map x [h, w, 3] by a case's operation."""
    op = o["op"]
    if op in ("bilinear_aa", "bicubic_aa"):
        return library.antialias(x, o["size"], op == "bicubic_aa")
    if op == "nearest":
        rows, columns = (library.nearest_index(n, size) for n, size in zip(x.shape, o["size"]))
        return x[rows][:, columns]
    return library.upsample2(x) if op == "upsample2x_bilinear" else library.bilinear(x, o["size"])


def run_resample(machine, case):
    o, library = case.options, machine.library
    if o["op"] == "nearest_index":
        got = {"index": library.nearest_index(o["in"], o["out"])}
    elif o["op"] == "uv":
        got = {"out": library.view_plane(o["aspect"], o["size"])}
    elif o["op"] == "pos_embed":
        table = case.input("table")
        out = library.positions(table.reshape(-1, table.shape[-1]), *o["grid"]).astype(float)
        got = {"out": out, "mean": out.mean(), "rms": np.sqrt(np.mean(out * out))}
    else:
        x = case.input("in")[:o["channels"]].transpose(1, 2, 0)
        got = {"out": as_planes(resampled(library, o, x.take(np.arange(3) % x.shape[2], axis=2)))[:o["channels"]]}
    for item in case.expected:
        yield item.verdict(got[item.name])


def run_grids(machine, case):
    height, width, tokens = (case.options[name] for name in ("height", "width", "num_tokens"))
    got = dict(zip(("v2_rows", "v2_cols", "v1_resized_h", "v1_resized_w"), machine.library.moge_grid(width, height, tokens)))
    for item in case.expected:
        if item.name in got:
            want = max(item.value(), 1)  # the original fails at a size of 0
            yield got[item.name] == want, f"{item.name}: {got[item.name]}, expected {want}"


def run_export(machine, case):
    return export.verdicts(machine.library, case, cases.compare)


KINDS = {
    "resize": run_resize, "decode-resize": run_decode_resize, "net": run_net, "post": run_post, "e2e": run_e2e,
    "sampling": run_sampling, "matching": run_matching, "loader": run_loader,
    "tiny": run_moge_network, "full": run_moge_network, "grids": run_grids,
    "solver": run_solver, "resample": run_resample, "canvas": run_canvas, "export": run_export,
}
# The kinds that run, of each network.
NETWORKS = {
    "superpoint": KINDS, "superpoint-bn": KINDS, "moge1": KINDS, "moge2": KINDS,
    "dust3r-dpt": {**dust3r.KINDS, "export": run_export}, "dust3r-linear": dust3r.KINDS,
}


# ------------------------------------------------------------------ all of it


def run_folder(machine, folder, arguments, tally):
    for problem in cases.check_formulas(folder):
        tally["failed"][problem] += 1
    for case in cases.read(folder, arguments.images, arguments.weights):
        name = f"{case.network} {case.kind}"
        if case.kind not in NETWORKS.get(case.network, ()):
            tally["not covered"][name] += 1  # a network or a kind that this program does not know
        elif case.kind not in arguments.kind if arguments.kind else case.kind == "full":
            continue
        else:
            run_case(machine, case, name, arguments, tally)


def run_case(machine, case, name, arguments, tally):
    try:
        verdicts = list(NETWORKS[case.network][case.kind](machine, case))
    except cases.Absent as absent:
        tally["absent"][str(absent)] += 1
        return
    except lib.Failure as failure:
        if failure.status == lib.UNSUPPORTED:
            tally["not covered"][f"{name} (refused: {failure})"] += 1
            return
        verdicts = [(False, str(failure))]
    bad = [words for passed, words in verdicts if not passed]
    if not verdicts:
        bad = ["nothing was compared"]
    tally["failed" if bad else "passed"][name] += 1
    for words in bad if sum(tally["failed"].values()) <= 40 else []:
        print(f"FAILED {case.where}: {words}")
    if arguments.verbose and not bad:
        print(f"passed {case.where}: {'; '.join(words for _, words in verdicts)}")


def report(what, counter):
    """One line for each network: its kinds with their counts."""
    for network, group in itertools.groupby(sorted(counter.items()), key=lambda entry: entry[0].split(" ")[0]):
        print(f"  {what}: {network}:", ", ".join(f"{name.partition(' ')[2]} {count}" for name, count in group))


def network_folders(roots):
    """Folders with an index.json: those given, or one below."""
    for root in roots:
        if os.path.isfile(os.path.join(root, "index.json")):
            yield root
            continue
        for name in sorted(os.listdir(root)) if os.path.isdir(root) else []:
            if os.path.isfile(os.path.join(root, name, "index.json")):
                yield os.path.join(root, name)


def main():
    parser = argparse.ArgumentParser(description="Runs golden cases through the library.")
    parser.add_argument("library", help="libtheo.so")
    parser.add_argument("stages", help="libtheo_stages.so")
    parser.add_argument("folders", nargs="*", help="folders of golden data, with an index.json in them or one below")
    parser.add_argument("--shared", action="store_true", help="the folder that THEO_GOLDEN names (default ../shared/golden)")
    parser.add_argument("--images", default=os.environ.get("THEO_IMAGES", "../shared/images"), help="folder of the photos")
    parser.add_argument("--weights", default=os.environ.get("THEO_WEIGHTS", "../shared/weights"), help="folder of the real weights")
    parser.add_argument("--kind", action="append", choices=sorted({kind for kinds in NETWORKS.values() for kind in kinds}), help="only this kind; may be repeated (default: all but full)")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()

    roots = arguments.folders + [os.environ.get("THEO_GOLDEN", "../shared/golden")] * arguments.shared
    folders = list(network_folders(roots))
    if not folders:
        print(f"skipped: no golden data in {', '.join(roots)}")
        return 77
    tally = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as scratch:
        machine = Machine(arguments.library, arguments.stages, scratch)
        asked = os.environ.get("THEO_CPU", machine.library.level)
        if asked != machine.library.level:
            print(f"skipped: level {asked} does not run here (in use: {machine.library.level})")
            return 77
        for folder in folders:
            run_folder(machine, folder, arguments, tally)

    passed, failed = sum(tally["passed"].values()), sum(tally["failed"].values())
    print(f"level {machine.library.level}: {passed} passed, {failed} failed")
    for what in ("passed", "failed", "absent", "not covered"):
        report(what, tally[what])
    return 1 if failed else 0 if passed else 77


if __name__ == "__main__":
    sys.exit(main())
