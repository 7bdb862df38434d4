"""Golden cases of DUSt3R: the network stage by stage and as a session runs it, and what follows the network."""
import ctypes as c
import hashlib
import json

import numpy as np

import cases
import library as lib

DEPTH = {"exp": 0, "linear": 1, "square": 2}
CONF = {"exp": 0, "sigmoid": 1}
THREADS = 2


class View(c.Structure):
    _fields_ = [("rows", c.c_int), ("columns", c.c_int), ("planes", lib.f32p)]


# ------------------------------------------------------------------ the network


def call_network(machine, path, images, traced):
    """Maps by name, [h, w, C]: every stage with nothing left out, or what a session gives."""
    found = {}

    def each(name, data, height, width, channels, pitch):
        rows = np.lib.stride_tricks.as_strided(np.ctypeslib.as_array(data, (1,)), (height * width, channels), (4 * pitch, 4))
        found[name.decode()] = rows.reshape(height, width, channels).copy()

    images = [np.ascontiguousarray(image, np.float32) for image in images]
    views = [View(image.shape[1] // 16, image.shape[2] // 16, lib.pointer(image)) for image in images]
    machine.library.call(machine.library.stages.stage_dust3r, path.encode(), THREADS, c.byref(views[0]), c.byref(views[1]),
                         int(traced), lib.LAYER_FN(each))
    return found


def stages_of(machine, path, images):
    """Every stage under the name, and in the layout, of the golden files."""
    stages = {}
    for name, x in call_network(machine, path, images, True).items():
        is_map = name.startswith("h")
        stages[name] = x.transpose(2, 0, 1) if is_map else x.reshape(-1, x.shape[2])
    return {**stages, **session_of(machine, path, images)}


def session_of(machine, path, images):
    stages = {}
    for name, x in call_network(machine, path, images, False).items():
        stages[f"h{name[-1]}.raw" if name.startswith("raw") else name] = x[0] if name.startswith("conf") else x
    return stages


def swapped(machine, path, images):
    """Points and confidences of both orders, by view and frame."""
    names = {}
    for order, frame in (((0, 1), "i"), ((1, 0), "j")):
        made = session_of(machine, path, [images[k] for k in order])
        for view, letter in ((1, "i" if frame == "i" else "j"), (2, "j" if frame == "i" else "i")):
            names[f"pts_{letter}{frame}"], names[f"conf_{letter}{frame}"] = made[f"pts{view}"], made[f"conf{view}"]
    return names



def run_tiny(machine, case):
    images = [case.input("image1"), case.input("image2")]
    for path in machine.weight_files(case):
        got = swapped(machine, path, images) if case.options.get("symmetric") else stages_of(machine, path, images)
        for item in case.expected:
            if item.name in ("outcome", "config"):
                continue
            yield item.verdict(got[item.name]) if item.name in got else (False, f"{item.name}: not made")


def run_loader(machine, case):
    wanted = {item.name: item.value() for item in case.expected if item.name in ("outcome", "config")}
    for path in machine.weight_files(case):
        text = c.create_string_buffer(4096)
        machine.library.call(machine.library.stages.stage_dust3r_config, path.encode(), text, len(text))
        got = json.loads(text.value)
        wrong = {key: (got.get(key), value) for key, value in wanted["config"].items() if got.get(key) != value}
        yield not wrong, f"config: {wrong}"
    yield from run_tiny(machine, case)


# ------------------------------------------------------------------ from raw to points


def activate(machine, raw, depth=("exp", 0, 0), conf=("exp", 1, "inf")):
    """raw [n, 4] to points [n, 3] and confidences [n]."""
    raw = np.ascontiguousarray(raw, np.float32)
    points, confidence = np.zeros((len(raw), 3), np.float32), np.zeros(len(raw), np.float32)
    machine.library.stages.stage_dust3r_activate(DEPTH[depth[0]], CONF[conf[0]], c.c_double(conf[1]), c.c_double(float(conf[2])),
                                                 lib.pointer(raw), len(raw), lib.pointer(points), lib.pointer(confidence))
    return points, confidence


def run_activation(machine, case):
    o = case.options
    if o["output"] == "pts":
        xyz = case.input("xyz")
        got = {"pts": activate(machine, np.c_[xyz, np.zeros(len(xyz))], (o["mode"], 0, 0))[0]}
    elif o["output"] == "conf":
        raw = case.input("raw")
        flat = np.c_[np.zeros((raw.size, 3)), raw.ravel()]
        got = {"conf": activate(machine, flat, conf=(o["mode"], o["vmin"], o["vmax"]))[1].reshape(raw.shape)}
    else:
        raw = case.input("raw")
        points, confidence = activate(machine, raw.reshape(4, -1).T, o["depth_mode"], o["conf_mode"])
        got = {"pts": points.reshape(*raw.shape[1:], 3), "conf": confidence.reshape(raw.shape[1:])}
    below = o.get("finite_below", case.tolerance.get("finite_below"))
    for item in case.expected:
        if item.spec.get("optional"):
            continue
        x, want = got[item.name], item.value()
        if below is not None:  # beyond it, single precision overflows one way or another
            x = np.where(np.isfinite(want) & (np.abs(want) < below), x, want)
        yield item.verdict(x)


# ------------------------------------------------------------------ before the network

FIT = {"pad": 0, "crop": 1, "native": 2}
FILTERS = ["bilinear", "bicubic", "lanczos"]
OUT = ("net_width", "net_height", "filter", "offset_x", "offset_y", "square", "resized_width", "resized_height", "crop_x", "crop_y")


class Frame(c.Structure):
    _fields_ = [(name, c.c_int) for name in ("fit", "size", "patch", "square_ok", *OUT)]


def frame_of(machine, options, width, height):
    frame = Frame(FIT[options["preprocess"]], options["size"], options.get("patch_size") or 16, bool(options.get("square_ok")))
    machine.library.call(machine.library.stages.stage_dust3r_frame, c.byref(frame), width, height)
    return frame


def network_image(machine, options, image):
    """(frame, bytes [h, w, 3], mask [h, w]) of a photo."""
    frame = frame_of(machine, options, image.width, image.height)
    rgb = np.zeros((frame.net_height, frame.net_width, 3), np.uint8)
    mask = np.zeros(rgb.shape[:2], np.uint8)
    machine.library.call(machine.library.stages.stage_dust3r_input, c.byref(frame), c.byref(image), lib.pointer(rgb, c.c_uint8),
                         lib.pointer(mask, c.c_uint8))
    return frame, rgb, mask


def frame_facts(o, frame, rgb, mask, image):
    h, w = mask.shape
    facts = {"outcome": "ok", "h": h, "w": w, "hw": [h, w], "u8": rgb, "u8_mean": rgb.mean(),
             "u8_sha256": hashlib.sha256(rgb.tobytes()).hexdigest(), "mask_true": int(mask.sum()),
             "mask_sha256": hashlib.sha256(mask.tobytes()).hexdigest(), "true_shape": [[h, w]], "filter": FILTERS[frame.filter],
             "resized_w": frame.resized_width, "resized_h": frame.resized_height,
             "crop_box": [frame.crop_x, frame.crop_y, frame.crop_x + w, frame.crop_y + h]}
    facts["u8_grid6x6"] = rgb[[(2 * k + 1) * h // 12 for k in range(6)]][:, [(2 * k + 1) * w // 12 for k in range(6)]]
    facts["record"] = {"mode": o["preprocess"], "orig_w": image.width, "orig_h": image.height, "offx": frame.offset_x,
                       "offy": frame.offset_y, "pad_side": frame.square, "out_size": o["size"]}
    return facts


def png_pixels(machine, path):
    with machine.library.loaded(path) as image:
        return machine.library.pixels(image)


def run_preprocess(machine, case):
    o, photo = case.options, case.inputs[0].path()
    is_jpeg = photo.lower().endswith((".jpg", ".jpeg"))
    try:
        with machine.library.loaded(photo, orientation=o["orientation"]) as image:
            facts = frame_facts(o, *network_image(machine, o, image), image)
    except lib.Failure as failure:
        facts = {"outcome": "error", "error": str(failure)}
    for item in case.expected:
        if item.name == "u8_sha256" and is_jpeg and item.spec.get("optional"):
            continue
        if item.name not in facts:
            yield False, f"{item.name}: {facts}"
        elif item.name == "record":
            yield facts["record"] == item.value(), f"record: {facts['record']}"
        elif item.name == "u8":
            yield cases.compare("u8", facts["u8"], png_pixels(machine, item.path()), item.tolerance())
        else:
            yield item.verdict(facts[item.name])


def mapped(machine, options, camera, xy):
    """(fx, fy, cx, cy) and a point of the photo, in the network's pixels."""
    frame = frame_of(machine, options, options["width"], options["height"])
    camera, xy = np.array(camera, float), np.array(xy, float)
    to = np.zeros(4), np.zeros(2)
    machine.library.call(machine.library.stages.stage_dust3r_map, c.byref(frame), options["width"], options["height"],
                         *(lib.pointer(x, c.c_double) for x in (camera, xy, *to)))
    return to


def run_k_mapping(machine, case):
    K = np.array(case.input("K"), float)
    for item in case.expected:
        (fx, fy, cx, cy), _ = mapped(machine, {**case.options, **item.spec["options"]}, [K[0, 0], K[1, 1], K[0, 2], K[1, 2]], [0, 0])
        yield item.verdict(np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]))


def run_pixel_map(machine, case):
    _, xy = mapped(machine, case.options, [1, 1, 0, 0], case.input("xy"))
    for item in case.expected:
        yield item.verdict(xy)


def run_norm_lut(machine, case):
    table = np.zeros(case.options["bytes"], np.float32)
    machine.library.stages.stage_dust3r_bytes(lib.pointer(table))
    for item in case.expected:
        yield item.verdict(table)


# ------------------------------------------------------------------ networks of their real size


def network_inputs(machine, case):
    """Float planes of both views, and what the case may ask about the bytes they were made from."""
    o, images, facts = case.options, [], {"u8_sha256": [], "hw": []}
    table = np.zeros(256, np.float32)
    machine.library.stages.stage_dust3r_bytes(lib.pointer(table))
    for name in ("image1", "image2"):
        if case.input(name) is not None:
            images.append(case.input(name))
            continue
        photo = next(i.path() for i in case.inputs if i.name == name)
        with machine.library.loaded(photo, orientation=o["orientation"]) as image:
            _, rgb, _ = network_image(machine, o, image)
        images.append(table[rgb].transpose(2, 0, 1))
        facts["u8_sha256"].append(hashlib.sha256(rgb.tobytes()).hexdigest())
        facts["hw"].append(list(rgb.shape[:2]))
    return images, facts


def token_rows(stages, names):
    """mean, rms, and the first four channels of the first and the last token of each."""
    rows = []
    for name in names:
        x = stages[name].astype(float)
        rows.append([x.mean(), np.sqrt(np.mean(x * x)), *x[0, :4], *x[-1, :4]])
    return np.array(rows)


def map_rows(stages, names):
    """mean, rms, min, max, and the corners of the first and the last channel of each."""
    rows = []
    for name in names:
        x = stages[name].astype(float)
        rows.append([x.mean(), np.sqrt(np.mean(x * x)), x.min(), x.max(), x[0, 0, 0], x[0, -1, -1], x[-1, 0, 0], x[-1, -1, -1]])
    return np.array(rows)


HEAD_STAGES = ("act0", "act1", "act2", "act3", "rn0", "rn1", "rn2", "rn3", "p4_uncropped", "p3", "p2", "p1", "head0")


def statistics(stages, item):
    which, kind = item.name.split(".")
    if kind == "enc_stats":
        return token_rows(stages, [f"{which}.{x}" for x in ["patch_embed", *(f"enc.{i}" for i in range(24)), "enc_norm"]])
    if kind == "dec_stats":
        return token_rows(stages, [f"v{which[1]}.decoder_embed", *(f"{which}.dec.{i}" for i in range(12)), f"{which}.dec_norm"])
    return map_rows(stages, [f"{which}.{x}" for x in HEAD_STAGES])


def rows_verdict(item, got):
    """Each row against its own rms, the second column."""
    want = np.asarray(item.value(), float)
    share = np.abs(got - want) / want[:, 1:2]
    allowed = item.tolerance()["rms"]
    return bool((share <= allowed).all()), f"{item.name}: up to {share.max():.3g} of a row's rms (allowed {allowed})"


def whole_map_verdicts(item, stages):
    """mean, rms, min and max of every channel of the full maps."""
    for name, channels in item.value().items():
        x = stages[name].astype(float)
        planes = x if name.startswith("raw") else x.transpose(2, 0, 1) if x.ndim == 3 else x[None]
        for plane, (key, want) in zip(planes, channels.items() if isinstance(channels, dict) else enumerate([channels])):
            got = [plane.mean(), np.sqrt(np.mean(plane * plane)), plane.min(), plane.max()]
            off = max(abs(a - b) for a, b in zip(got, want)) / want[1]
            yield off <= item.tolerance()["rms"], f"{name} {key}: off by {off:.3g} of its rms"


def run_full(machine, case):
    (path,) = machine.weight_files(case)
    images, facts = network_inputs(machine, case)
    stages = stages_of(machine, path, images)
    for view in "12":
        stages[f"raw{view}"] = stages[f"h{view}.raw"]
    for item in case.expected:
        if item.name.endswith("stats"):
            yield rows_verdict(item, statistics(stages, item))
        elif item.name == "maps":
            yield from whole_map_verdicts(item, stages)
        elif item.name == "u8_sha256":
            yield facts[item.name] == item.value(), f"u8_sha256: {facts[item.name]}"
        else:
            yield item.verdict({**stages, **facts}[item.name])


# ------------------------------------------------------------------ poses

MAPS = ("pts_ii", "pts_ji", "pts_jj", "pts_ij", "conf_ii", "conf_ji", "conf_jj", "conf_ij")


class PairMaps(c.Structure):
    _fields_ = [("width", c.c_int * 2), ("height", c.c_int * 2)] + [(name, lib.f32p) for name in MAPS]


class Pose(c.Structure):
    _fields_ = [("found", c.c_int), ("R", c.c_double * 9), ("t", c.c_double * 3), ("focal", c.c_double * 2), ("inlier_count", c.c_int),
                ("inlier_rms", c.c_double), ("is_swapped", c.c_int), ("used", c.c_int), ("threshold", c.c_double), ("reason", c.c_char_p)]


class Viewer(c.Structure):
    _fields_ = [("scores", c.c_double * 2), ("used", c.c_int * 2), ("reference", c.c_int), ("found", c.c_int * 2),
                ("R", (c.c_double * 9) * 2), ("t", (c.c_double * 3) * 2)]


def solve_pose(machine, case, viewer):
    """(Pose, Viewer) by the port's recipe or PairViewer's."""
    o = case.options
    arrays = {name: np.ascontiguousarray(case.input(name), np.float32) for name in MAPS}
    sizes = o["size1"], o["size2"]
    maps = PairMaps((c.c_int * 2)(*(s[1] for s in sizes)), (c.c_int * 2)(*(s[0] for s in sizes)), *(lib.pointer(a) for a in arrays.values()))
    K = o["K_view2"]
    camera = None if K is None or viewer else (c.c_double * 4)(K[0][0], K[1][1], K[0][2], K[1][2])
    pose, facts = Pose(), Viewer()
    machine.library.call(machine.library.stages.stage_dust3r_pose, c.byref(maps), c.c_double(o["conf_pct"]), camera, int(viewer),
                         c.byref(pose), c.byref(facts))
    return pose, facts


def angle(a, b):
    """Degrees between two rotations."""
    a, b = np.reshape(a, (3, 3)), np.reshape(b, (3, 3))
    return float(np.degrees(2 * np.arcsin(min(np.linalg.norm(a - b) / np.sqrt(8), 1))))


def direction(a, b):
    a, b = (np.asarray(x, float) / max(np.linalg.norm(x), 1e-300) for x in (a, b))
    return float(np.degrees(2 * np.arcsin(min(np.linalg.norm(a - b) / 2, 1))))


def pose_verdict(case, pose):
    """Near one of the stored poses, or no further from the truth than the better of them, and a little."""
    tolerance, above = case.tolerance["pose"], case.tolerance["pose_truth"]
    stored = [i.value() for i in case.expected if i.name == "pose" and i.value()]
    truth = next(i.value() for i in case.expected if i.name == "pose_truth")
    R, t = list(pose.R), list(pose.t)
    spread = case.data["port"].get("spread_rot_deg", 0)
    rotations, directions = [angle(R, p["R"]) for p in stored], [direction(t, p["t"]) for p in stored]
    rotation = min(rotations) <= max(tolerance["rot_deg"], 3 * spread) or \
        angle(R, truth["R"]) <= min(angle(p["R"], truth["R"]) for p in stored) + above["rot_deg_above_best"]
    toward = min(directions) <= tolerance["t_dir_deg"] or \
        direction(t, truth["t"]) <= min(direction(p["t"], truth["t"]) for p in stored) + above["t_dir_deg_above_best"]
    return rotation and toward, f"pose: {min(rotations):.3g} and {min(directions):.3g} degrees off (truth {angle(R, truth['R']):.3g}, {direction(t, truth['t']):.3g})"


def camera_verdicts(case, item, viewer):
    """Each camera near the stored one, or no further from the truth than that, and a little: the rule of the data's README."""
    tolerance, truth = item.tolerance(), case.data["truth"]
    R, t = np.array(truth["R"]), np.array(truth["t"])
    truths = (R.T, -R.T @ t), (R, t)
    for v, want in enumerate(item.value()):
        if want is None:
            yield not viewer.found[v], f"camera {v}: found, expected none"
            continue
        got_R, got_t = list(viewer.R[v]), list(viewer.t[v])
        rotation, toward = angle(got_R, want["R"]), direction(got_t, want["t"])
        limit = max(tolerance["rot_deg"], tolerance.get("rot_spreads", 0) * want.get("spread_rot_deg", 0))
        far, far_stored = angle(got_R, truths[v][0]), angle(want["R"], truths[v][0])
        off, off_stored = direction(got_t, truths[v][1]), direction(want["t"], truths[v][1])
        yield bool(viewer.found[v]) and (rotation <= limit or far <= far_stored + tolerance["rot_deg"]) and \
            (toward <= tolerance["t_dir_deg"] or off <= off_stored + tolerance["t_dir_deg"]), \
            f"camera {v}: {rotation:.3g} (allowed {limit:.3g}) and {toward:.3g} degrees off; from the truth {far:.3g} (stored {far_stored:.3g}), {off:.3g} ({off_stored:.3g})"


def run_pose(machine, case):
    port, _ = solve_pose(machine, case, False)
    seen, viewer = solve_pose(machine, case, True)
    focals = iter(port.focal)
    got = {"n_keep": port.used, "conf_threshold": port.threshold, "n_inliers": port.inlier_count, "weiszfeld_focals": list(seen.focal),
           "edge_scores": list(viewer.scores), "n_mask": list(viewer.used), "reference_view": viewer.reference}
    outcome = next(i.value() for i in case.expected if i.name == "outcome")
    if outcome != "any":
        yield bool(port.found) == (outcome == "pose"), f"outcome: {port.found} ({port.reason}), expected {outcome}"
        yield bool(port.found) == (port.reason is None), f"reason: {port.reason}"
    if any(i.name == "pose" for i in case.expected):
        yield pose_verdict(case, port)
    for item in case.expected:
        if item.name == "focal":
            yield item.verdict(next(focals))
        elif item.name == "pnp_world_to_cam":
            yield from camera_verdicts(case, item, viewer)
        elif item.name in got:
            yield item.verdict(got[item.name])


KINDS = {
    "full": run_full, "pose": run_pose, "tiny": run_tiny, "loader": run_loader, "activation": run_activation, "preprocess": run_preprocess,
    "k-mapping": run_k_mapping, "pixel-map": run_pixel_map, "norm-lut": run_norm_lut,
}
