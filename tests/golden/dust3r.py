"""Golden cases of DUSt3R: the network stage by stage and as a session runs it, and what follows the network."""
import ctypes as c
import json

import numpy as np

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


KINDS = {"tiny": run_tiny, "loader": run_loader, "activation": run_activation}
