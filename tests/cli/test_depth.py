"""theo depth on a tiny network of formula weights: what it writes, and what it refuses."""
import io
import json
import math
import os
import struct
import subprocess
import sys

import numpy as np
from PIL import Image

from harness import SOURCE, THEO, CliTest, main

sys.path.insert(0, os.path.join(SOURCE, "tests"))
import readers  # noqa: E402

STACK = {"dim_res_blocks": [64, 32, 16, 16, 16], "num_res_blocks": [0, 1, 1, 1, 0], "res_block_in_norm": "none",
         "res_block_hidden_norm": "none", "resamplers": ["conv_transpose"] * 3 + ["bilinear"]}


def head(channels):
    return {**STACK, "dim_in": STACK["dim_res_blocks"], "dim_out": [None] * 4 + [channels]}


CONFIG = {"dim": 64, "depth": 2, "mlp": 128, "table": 37, "model_config": {
    "encoder": {"backbone": "test", "intermediate_layers": [0, 1], "dim_out": 64},
    "neck": {**STACK, "dim_in": [66, 2, 2, 2, 2], "dim_out": None},
    "points_head": head(3), "normal_head": head(3), "mask_head": head(1),
    "scale_head": {"dims": [64, 64, 64, 1]}, "remap_output": "exp"}}


CONFIG_1 = {"dim": 64, "depth": 2, "mlp": 128, "table": 37, "model_config": {
    "encoder": "test", "intermediate_layers": 2, "dim_proj": 32, "dim_upsample": [32, 16, 16], "dim_times_res_block_hidden": 2,
    "num_res_blocks": 1, "remap_output": "exp", "trained_area_range": [250000, 500000], "split_head": True, "output_mask": True}}


class MoGe1(CliTest):
    """The first generation: no unit, no normals."""

    def setUp(self):
        super().setUp()
        with open(self.path("config.json"), "w") as f:
            json.dump(CONFIG_1, f)
        self.model = self.path("tiny.pt")
        self.check(0, "synth", "moge-vitl", self.model, "--config", self.path("config.json"))

    def depth(self, *arguments):
        return self.check(0, "depth", "--model", self.model, "--tokens", "40", *arguments)

    def test_no_unit_and_no_normals(self):
        photo = self.image("photo.png", 96, 64)
        (told,) = self.depth(photo, "-o", self.path("out"), "--json", "--ply").json()
        self.assertEqual((told["unit"], told["metric_scale"], told["network_metric_scale"]), ("relative", None, None))
        self.assertEqual(told["tokens"], [5, 7])  # 72x109 pixels, whole patches of 14
        self.assertEqual(self.files(self.path("out")), ["photo.depth.png", "photo.depth_vis.png", "photo.json", "photo.mask.png", "photo.npz", "photo.ply"])
        z = np.load(self.path("out", "photo.npz"))
        self.assertNotIn("normal", z)
        self.assertTrue(np.array_equal(np.isfinite(z["depth"]), z["mask"] > 0))
        self.assertNotIn(" m,", self.depth(photo, "--no-mask").out)
        self.assertIn("relative depth", self.depth(photo, "--no-mask").out)

    def test_a_given_scale_makes_metres(self):
        photo = self.image("photo.png", 96, 64)
        (plain,), (given,) = (self.depth(photo, "--json", "--no-mask", *more).json() for more in ([], ["--metric-scale", "2"]))
        self.assertEqual((given["unit"], given["metric_scale"], given["network_metric_scale"]), ("m", 2, None))
        self.check(2, "depth", "--model", self.model, photo, "--sequence", "ema", "--focal-px", "80", says=["--sequence", "--focal-px", "moge-1"])
        self.assertAlmostEqual(given["depth"]["max"], 2 * plain["depth"]["max"], delta=1e-5 * abs(given["depth"]["max"]))

    def test_canvas_and_threads(self):
        photo = self.image("photo.png", 60, 80)
        for fit in ("pad", "stretch"):
            told = [self.check(0, "depth", "--model", self.model, "--json", "--fit", fit, "--threads", n, photo).json()[0] for n in "13"]
            self.assertEqual(*({k: v for k, v in t.items() if k not in ("files", "timing")} for t in told))
            self.assertEqual(told[0]["tokens"], [31, 56])


class Depth(CliTest):
    def setUp(self):
        super().setUp()
        with open(self.path("config.json"), "w") as f:
            json.dump(CONFIG, f)
        self.model = self.path("tiny.pt")
        self.check(0, "synth", "moge-2-vits-normal", self.model, "--config", self.path("config.json"))

    def depth(self, *arguments):
        r = self.check(0, "depth", "--model", self.model, "--json", "--tokens", "40", *arguments)
        return r.json()

    def test_files_agree_with_the_json(self):
        photo = self.image("photo.png", 96, 64)
        (told,) = self.depth(photo, "-o", self.path("out"), "--time")
        names = sorted(os.listdir(self.path("out")))
        self.assertEqual(names, ["photo.depth.png", "photo.depth_vis.png", "photo.json", "photo.mask.png", "photo.normal.png", "photo.npz"])
        self.assertEqual(sorted(os.path.basename(n) for n in told["files"]), names)
        self.assertEqual((told["width"], told["height"], told["unit"], told["fit"]), (96, 64, "m", "native"))
        self.assertEqual(told["tokens"], [5, 8])
        z = np.load(self.path("out", "photo.npz"))
        self.assertEqual((z["points"].shape, z["depth"].shape, z["normal"].shape, z["mask"].shape), ((64, 96, 3), (64, 96), (64, 96, 3), (64, 96)))
        mask = z["mask"] > 0
        self.assertAlmostEqual(told["mask_coverage"], mask.mean(), places=6)
        self.assertTrue(np.array_equal(np.isfinite(z["depth"]), mask))
        self.assertTrue(np.array_equal(z["points"][..., 2], z["depth"]))
        self.assertTrue(np.array_equal(np.array(Image.open(self.path("out", "photo.mask.png"))) > 0, mask))
        picture = Image.open(self.path("out", "photo.depth.png"))
        value = np.array(picture).astype(float)
        self.assertEqual(float(picture.text["theo:depth_scale"]), told["depth_png_scale"])
        self.assertTrue(np.array_equal(value > 0, mask))
        if mask.any():
            self.assertLessEqual(np.abs(value * told["depth_png_scale"] - z["depth"])[mask].max(), 1.01 * told["depth_png_scale"])
            self.assertAlmostEqual(told["depth"]["median"], float(np.median(z["depth"][mask])), delta=1e-5 * told["depth"]["median"])

    def test_points_follow_the_field_of_view(self):
        photo = self.image("photo.png", 80, 60)
        (told,) = self.depth(photo, "--focal-px", "50", "--no-mask", "-o", self.path("out"))
        self.assertAlmostEqual(told["fov_x_deg"], math.degrees(2 * math.atan(0.8)), places=3)
        self.assertAlmostEqual(told["intrinsics_pixels"][0][0], 50, places=3)
        z = np.load(self.path("out", "photo.npz"))
        x = (np.arange(80) + 0.5 - 40) / 50
        self.assertTrue(np.allclose(z["points"][..., 0], x * z["depth"], rtol=1e-4, atol=1e-4 * np.abs(z["depth"]).max()))

    def use_sensible_weights(self):
        """Formula weights may see a camera from behind: those of the golden set have fitted output layers."""
        self.model = os.path.join(os.environ.get("THEO_GOLDEN", os.path.join(SOURCE, "..", "shared", "golden")), "moge2", "tiny", "v2", "model.pt")
        if not os.path.exists(self.model):
            self.skipTest(f"no golden weights: {self.model}")

    def test_frames_of_a_video_share_field_of_view_and_scale(self):
        self.use_sensible_weights()
        frames = [self.image(f"{i}.png", 96, 64, seed=i) for i in range(4)]
        alone = self.depth(*frames)
        first = self.depth(*frames, "--sequence", "first")
        ema = self.depth(*frames, "--sequence", "ema")
        self.assertEqual((first[0], ema[0]), (alone[0], alone[0]))
        self.assertGreater(len({told["fov_x_deg"] for told in alone}), 1)
        tangent = [math.log(math.tan(math.radians(told["fov_x_deg"] / 2))) for told in alone]
        scale = [math.log(told["network_metric_scale"]) for told in alone]
        for i in range(1, 4):
            self.assertAlmostEqual(first[i]["fov_x_deg"], alone[0]["fov_x_deg"], places=4)
            self.assertEqual(first[i]["metric_scale"], alone[0]["metric_scale"])
            self.assertEqual(first[i]["network_metric_scale"], alone[i]["network_metric_scale"])
            tangent[i] = 0.9 * tangent[i - 1] + 0.1 * tangent[i]
            scale[i] = 0.9 * scale[i - 1] + 0.1 * scale[i]
            self.assertAlmostEqual(ema[i]["fov_x_deg"], math.degrees(2 * math.atan(math.exp(tangent[i]))), places=3)
            self.assertAlmostEqual(ema[i]["metric_scale"] / math.exp(scale[i]), 1, places=5)
        given = self.depth(*frames, "--sequence", "first", "--fov-x", "60")
        self.assertEqual([round(told["fov_x_deg"], 3) for told in given], [60] * 4)
        self.assertEqual({told["metric_scale"] for told in given}, {alone[0]["metric_scale"]})

    def test_a_failed_frame_changes_nothing_and_another_aspect_is_an_error(self):
        self.use_sensible_weights()
        good, other = [self.image(f"{i}.png", 96, 64, seed=i) for i in range(2)], self.image("wide.png", 128, 64)
        with open(self.path("broken.png"), "wb") as f:
            f.write(b"no picture")
        both = self.depth(*good, "--sequence", "ema")
        r = self.check(1, "depth", "--model", self.model, "--json", "--tokens", "40", "--sequence", "ema", good[0], self.path("broken.png"),
                       other, good[1])
        told = r.json()
        self.assertEqual([told[0], told[3]], both)
        self.assertIn("error", told[1])
        self.assertIn("aspect", told[2]["error"])
        self.check(2, "depth", "--model", self.model, good[0], "--sequence", "first", "--fov-x", "60", "--metric-scale", "1")

    def test_verify_compares_what_dump_wrote(self):
        photo, dump = self.image("photo.png", 96, 64), self.path("dump.safetensors")
        self.depth(photo, "--dump", dump)
        (told,) = self.check(0, "verify", self.model, dump, photo, "--json").json()
        self.assertEqual([t["name"] for t in told["tensors"]], ["picture", "points", "normal", "mask", "metric_scale"])
        self.assertTrue(told["ok"] and all(t["max_error"] == 0 for t in told["tensors"]))
        (alone,) = self.check(0, "verify", self.model, dump, "--json").json()
        self.assertEqual([t["max_error"] for t in alone["tensors"]], [0] * 4)
        self.check(1, "verify", self.model, dump, self.image("other.png", 96, 64, seed=3))
        self.check(1, "verify", self.model, dump, photo, "--tokens", "60")
        self.check(2, "verify", self.model, dump, photo, "--gray", "red")
        self.check(2, "verify", self.model, dump, "--tokens", "60")
        self.check(2, "depth", "--model", self.model, photo, self.image("second.png"), "--dump", dump)

    def test_what_is_read_is_not_replaced(self):
        photo, model, before = self.image("photo.png", 96, 64), self.model, self.read(self.model)
        self.check(2, "depth", "--model", model, photo, "--dump", model, says=["--dump", "overwrite", model])
        self.depth(photo, "-o", self.dir)
        made = self.path("photo.normal.png")
        for name in ("photo.npz", "photo.json"):
            taken = self.path("out", name)
            self.check(1, "depth", "--model", model, "--tokens", "40", photo, "-o", self.path("out"), "--dump", taken, says=[taken, "--dump writes"])
            self.assertEqual(self.read(taken)[8:10], b'{"')
        normals = self.read(made)
        self.check(1, "depth", "--model", model, photo, made, "-o", self.dir, says=[made, "overwrite"])
        self.assertEqual((self.read(made), self.read(model)), (normals, before))

    def test_verify_refuses_settings_that_no_run_has(self):
        photo, dump, odd = self.image("photo.png", 96, 64), self.path("dump.safetensors"), self.path("odd.safetensors")
        self.depth(photo, "--dump", dump)
        with open(dump, "rb") as f:
            (length,) = struct.unpack("<Q", f.read(8))
            header, data = json.loads(f.read(length)), f.read()
        for key, value, operands in [
            ("tokens", "1e30", [photo]),
            ("tokens", "many", [photo]),
            ("resolution-level", "31", [photo]),
            ("aspect", "0", []),
        ]:
            text = json.dumps(header | {"__metadata__": header["__metadata__"] | {key: value}}).encode()
            with open(odd, "wb") as f:
                f.write(struct.pack("<Q", len(text)) + text + data)
            self.assertIn(f"{key} {value}", self.check(2, "verify", self.model, odd, *operands).err)

    def test_bench_and_plan(self):
        few = ["--runs", "2", "--warmup", "1", "--threads", "1", "--json"]
        os.mkdir(self.path("tmp"))
        os.environ["TMPDIR"] = self.path("tmp")
        self.addCleanup(os.environ.pop, "TMPDIR")
        photo = self.image("photo.png", 96, 64)
        (r,) = self.check(0, "bench", self.model, *few, "--tokens", "40", photo).json()
        self.assertEqual(set(r["stages"]), {"load", "decode", "preprocess", "forward", "postprocess", "encode", "total"})
        self.assertEqual((r["size"], r["runs"]), ([64, 96], 2))
        self.assertEqual(self.files(self.path("tmp")), [])
        flops = []
        for tokens in ("40", "160"):
            (r,) = self.check(0, "bench", self.model, *few, "--tokens", tokens, "--size", "64x96", "--ops").json()
            self.assertEqual(r["size"], [64, 96])
            flops.append(r["plan"]["flops"])
            (told,) = self.check(0, "info", self.model, "--plan", "--size", "64x96", "--tokens", tokens, "--json").json()
            self.assertEqual(told["plan"]["flops"], flops[-1])
        self.assertGreater(flops[1], 3 * flops[0])
        self.check(2, "bench", self.model, photo, "--size", "64x96", says="--size")
        self.check(2, "bench", self.model, "--size", "native", says="HxW")
        self.check(2, "bench", self.model, "--tokens", "15", says="16")
        self.check(2, "info", self.model, "--tokens", "40", says="--plan")
        self.check(2, "info", "superpoint-open", "--plan", "--tokens", "40", says="tokens")

    def test_scale_multiplies(self):
        photo = self.image("photo.png")
        (one,), (two,) = self.depth(photo, "--metric-scale", "2"), self.depth(photo, "--metric-scale", "2", "--scale", "1.5")
        self.assertEqual((one["metric_scale"], two["metric_scale"]), (2, 3))
        self.assertEqual(one["network_metric_scale"], two["network_metric_scale"])

    def test_thread_counts_give_the_same_bits(self):
        photo = self.image("photo.png")
        arrays = []
        for threads in ("1", "2", "3"):
            self.depth(photo, "--threads", threads, "-o", self.path(threads))
            arrays.append(np.load(self.path(threads, "photo.npz")))
        for other in arrays[1:]:
            for name in arrays[0].files:
                self.assertEqual(arrays[0][name].tobytes(), other[name].tobytes(), name)

    def test_canvas(self):
        photo = self.image("photo.png", 40, 60)
        for fit in ("pad", "stretch"):
            (told,) = self.check(0, "depth", "--model", self.model, "--json", "--fit", fit, photo).json()
            self.assertEqual((told["tokens"], told["fit"]), ([32, 57], fit))

    def test_gray_and_16_bit(self):
        Image.fromarray(np.arange(64 * 64, dtype=np.uint16).reshape(64, 64) * 16).save(self.path("deep.png"))
        (told,) = self.depth(self.path("deep.png"))
        self.assertEqual((told["width"], told["height"]), (64, 64))

    def tensor_file(self, name, tensor, values, shape):
        """A safetensors file with one tensor."""
        return self.tensors_file(name, {tensor: np.reshape(values, shape)})

    def tensors_file(self, name, tensors):
        header, data = {}, b""
        for tensor, values in tensors.items():
            raw = np.asarray(values, "<f4").tobytes()
            header[tensor] = {"dtype": "F32", "shape": np.shape(values), "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        return self.write(name, struct.pack("<Q", len(text)) + text + data)

    def wall(self, point, scale=0.0):
        """Weights that see the same raw point everywhere, valid, of that logarithm of the metric scale."""
        made = self.path("wall.safetensors")
        last, linear = "points_head.output_blocks.4", "scale_head.4"
        tensors = {f"{last}.weight": np.zeros((3, 16, 1, 1)), f"{last}.bias": point, "mask_head.output_blocks.4.bias": [50],
                   f"{linear}.weight": np.zeros((1, 64)), f"{linear}.bias": [scale]}
        self.check(0, "synth", "moge-2-vits-normal", made, "--config", self.path("config.json"), "--override",
                   self.tensors_file("override.safetensors", tensors))
        return made

    def test_override_of_formula_weights(self):
        photo, made = self.image("photo.png"), self.path("made.safetensors")
        synth = ["synth", "moge-2-vits-normal", made, "--config", self.path("config.json")]
        for bias, coverage in ((50, 1), (-50, 0)):
            self.check(0, *synth, "--override", self.tensor_file("o.safetensors", "mask_head.output_blocks.4.bias", [bias], [1]))
            told = self.answer("depth", "--model", made, "--tokens", "40", photo)
            self.assertAlmostEqual(told["mask_coverage"], coverage, delta=0.2)
        bad = self.tensor_file("bad.safetensors", "mask_head.output_blocks.4.bias", [1, 2], [2])
        before = self.read(made)
        self.check(2, *synth, "--override", bad, says=["bad.safetensors", "mask_head.output_blocks.4.bias"])
        self.assertEqual(self.read(made), before)
        os.remove(made)
        self.check(2, *synth, "--override", bad)
        self.assertFalse(os.path.exists(made))
        self.check(2, *synth, "--override", self.path("missing.safetensors"), says="missing.safetensors")
        self.check(2, "synth", "moge-2-vits-normal", self.path("made.pt"), "--override", bad, says=["--override", "made.pt"])

    def test_what_is_read_for_synth_is_not_replaced_and_a_failure_leaves_the_old_file(self):
        config, made = self.path("config.json"), self.path("made.safetensors")
        synth = ["synth", "moge-2-vits-normal", made, "--config", config]
        self.check(0, *synth)
        before = self.read(made)
        self.check(2, *synth, "--override", made, says=[made, "overwrite"])
        self.check(2, *synth, "--override", self.tensor_file("bad.safetensors", "nothing", [1], [1]), says="nothing")
        os.link(config, self.path("linked.pt"))
        self.check(2, "synth", "moge-2-vits-normal", self.path("linked.pt"), "--config", config, says=["linked.pt", "overwrite"])
        self.assertEqual(self.read(made), before)
        self.assertEqual(json.loads(self.read(config)), CONFIG)

    def test_points_beyond_single_precision_are_invalid(self):
        photo = self.image("photo.png", 40, 30)
        files = ["-o", self.path("out"), "--ply", "--ply-faces", "--glb", "--no-projection"]
        for point, scale, bad_scale, more in (((3e38, 3e38, 3), 0, False, []), ((0.1, 0.1, 90), 0, False, []), ((0, 0, 88.7), 2, False, []),
                                              ((0.1, 0.1, 3), 90, True, []), ((0.1, 0.1, 3), -1000, True, []),
                                              ((3e38, 0, 3), 0, False, ["--no-mask"]), ((0, 0, 90), 0, False, ["--no-mask"])):
            case = (point, scale, more)
            (told,) = self.check(0, "depth", "--model", self.wall(point, scale), "--json", "--tokens", "40", photo, *files, *more).json()
            self.assertEqual((told["mask_coverage"], told["depth"], told["depth_png_scale"]), (0, None, 0), case)
            z = np.load(self.path("out", "photo.npz"))
            self.assertTrue(np.isinf(z["depth"]).all() and np.isinf(z["points"]).all(), case)
            self.assertEqual(len(readers.read_ply(self.path("out", "photo.ply"))["vertex"]), 0, case)
            self.assertEqual(readers.Glb(self.path("out", "photo.glb")).json["scenes"], [{}], case)
            self.assertEqual(any("metric scale" in text for text in told["warnings"]), bad_scale, case)
        (told,) = self.check(0, "depth", "--model", self.wall((0.1, 0.1, 3)), "--json", "--tokens", "40", photo, *files).json()
        self.assertEqual(told["mask_coverage"], 1)
        self.assertAlmostEqual(told["depth"]["median"] - told["shift"], math.exp(3), places=3)

    def test_a_camera_from_behind_is_told(self):
        photo = self.image("photo.png", 40, 30)
        (told,) = self.check(0, "depth", "--model", self.wall((0.1, 0.1, 3)), "--json", "--tokens", "40", photo).json()
        self.assertEqual(told["fov_x_deg"] < 0, any("focal length found is negative" in text for text in told["warnings"]))
        (given,) = self.check(0, "depth", "--model", self.wall((0.1, 0.1, 3)), "--json", "--tokens", "40", "--fov-x", "50", photo).json()
        self.assertEqual((told["fov_x_deg"] < 0, given["warnings"]), (True, []))

    def test_own_pictures_in_the_folder_are_told(self):
        self.image("in/photo.png", 40, 30)
        again = ["depth", "--model", self.model, "--tokens", "40", self.path("in"), "-o", self.path("in")]
        self.assertNotIn("theo drew", self.check(0, *again).err)
        self.assertIn("holds 4 pictures that theo drew", self.check(0, *again).err)

    def surface(self, photo, *options):
        """(JSON, PLY, GLB, npz) of a photo with every file."""
        (told,) = self.depth(photo, "-o", self.path("out"), "--ply", "--glb", *options)
        return told, readers.read_ply(self.path("out", "photo.ply")), readers.Glb(self.path("out", "photo.glb")), np.load(self.path("out", "photo.npz"))

    def test_meshes(self):
        photo = self.image("photo.png", 96, 64)
        told, ply, glb, z = self.surface(photo, "--ply-faces", "--no-mask", "--edge-threshold", "1e9")
        self.assertTrue({self.path("out", "photo.ply"), self.path("out", "photo.glb")} <= set(told["files"]))
        self.assertEqual((len(ply["vertex"]), len(ply["face"])), (96 * 64, 2 * 95 * 63))
        positions = readers.columns(ply["vertex"], "x", "y", "z")
        self.assertTrue(np.array_equal(positions, z["points"].reshape(-1, 3)))
        self.assertTrue(np.array_equal(readers.columns(ply["vertex"], "nx", "ny", "nz"), z["normal"].reshape(-1, 3)))
        self.assertTrue(np.array_equal(readers.columns(ply["vertex"], "red", "green", "blue"), np.array(Image.open(photo)).reshape(-1, 3)))
        mesh = glb.primitive(0)
        self.assertTrue(np.array_equal(mesh["POSITION"], positions * [1, -1, -1]))
        self.assertTrue(np.array_equal(mesh["indices"].reshape(-1, 3), ply["face"]["vertex_indices"]))
        u, v = mesh["TEXCOORD_0"].reshape(64, 96, 2)[10, 20]
        self.assertAlmostEqual(u, 20.5 / 96, places=6)
        self.assertAlmostEqual(v, 10.5 / 64, places=6)
        texture = np.array(Image.open(io.BytesIO(glb.images[0])).convert("RGB")).astype(int)
        self.assertLess(np.abs(texture - np.array(Image.open(photo)).astype(int)).mean(), 6)
        self.assertEqual(glb.json["materials"][0]["pbrMetallicRoughness"]["metallicFactor"], 0.5)

    def test_surface_leaves_out_edges_but_depth_does_not(self):
        photo = self.image("photo.png", 96, 64)
        _, every, _, whole = self.surface(photo, "--no-mask", "--edge-threshold", "1e9")
        d = np.pad(whole["depth"], 1, mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(d, (3, 3)).reshape(64, 96, 9)
        change = (windows.max(-1) - windows.min(-1)) / whole["depth"]
        threshold = np.quantile(change, 0.9)
        _, some, glb, cut = self.surface(photo, "--no-mask", "--edge-threshold", repr(float(threshold)))
        self.assertLess(len(some["vertex"]), len(every["vertex"]))
        self.assertNotIn("face", some)
        self.assertTrue(np.array_equal(whole["depth"], cut["depth"]))
        self.assertEqual(len(glb.primitive(0)["POSITION"]), len(some["vertex"]))
        kept = ~(change > np.float32(threshold))
        quads = kept[1:, 1:] & kept[1:, :-1] & kept[:-1, 1:] & kept[:-1, :-1]
        used = np.zeros((64, 96), bool)
        for y, x in ((0, 0), (0, 1), (1, 0), (1, 1)):
            used[y:63 + y, x:95 + x] |= quads
        self.assertTrue(np.array_equal(readers.columns(some["vertex"], "x", "y", "z"), cut["points"][used]))

    def test_no_surface(self):
        """Nothing is valid: every file is there and valid, and the reason is said."""
        told, ply, glb, _ = self.surface(self.image("photo.png", 8, 8), "--mask-threshold", "1")
        self.assertEqual(told["mask_coverage"], 0)
        self.assertEqual((len(ply["vertex"]), glb.json["scenes"]), (0, [{}]))
        self.assertIn("PLY and GLB are empty", " ".join(told["warnings"]))
        picture = np.array(Image.open(self.path("out", "photo.depth_vis.png")))
        self.assertEqual((picture.shape, picture.max()), ((8, 8, 3), 0))

    def test_gray_and_deep_photos_colour_their_points(self):
        a = (np.arange(64 * 64, dtype=np.uint16) * 16).reshape(64, 64)
        Image.fromarray(a).save(self.path("photo.png"))
        _, ply, glb, _ = self.surface(self.path("photo.png"), "--no-mask", "--edge-threshold", "1e9")
        self.assertTrue(np.array_equal(ply["vertex"]["green"], (a >> 8).ravel()))
        self.assertTrue(glb.images[0].startswith(b"\xff\xd8"))

    def test_exr(self):
        photo = self.image("photo.png", 40, 60)
        r = self.theo("depth", "--model", self.model, "--tokens", "40", photo, "-o", self.path("out"), "--exr", "--json")
        if r.code == 2 and "without OpenEXR" in r.err:
            self.skipTest("this build cannot write EXR files")
        self.assertEqual(r.code, 0, r.err)
        z = np.load(self.path("out", "photo.npz"))
        self.assertEqual(readers.read_exr(self.path("out", "photo.depth.exr"))["Y"].tobytes(), z["depth"].tobytes())
        points = readers.read_exr(self.path("out", "photo.points.exr"))
        for k, name in enumerate("RGB"):
            self.assertEqual(points[name].tobytes(), z["points"][..., k].tobytes())

    def test_every_file_is_the_same_on_any_number_of_threads(self):
        photo = self.image("photo.png", 150, 130)
        for threads in ("1", "3"):
            self.depth(photo, "--threads", threads, "-o", self.path(threads), "--ply", "--ply-faces", "--glb")
        names = [name for name in self.files(self.path("1")) if not name.endswith(".json")]
        self.assertEqual(len(names), 7)
        for name in names:
            self.assertEqual(self.read(os.path.join("1", name)), self.read(os.path.join("3", name)), name)

    def test_full_disk(self):
        """The file that does not fit is named, what was there before stays, nothing half-written is left."""
        photo = self.image("photo.png", 96, 64)
        os.makedirs(self.path("out"))
        self.write("out/photo.npz", "old")
        r = self.shell(f"ulimit -f 100; trap '' XFSZ; exec '{THEO}' depth --model '{self.model}' --tokens 40 --no-mask '{photo}' "
                       f"-o '{self.path('out')}' --store 2>&1", stdout=subprocess.PIPE)
        self.assertEqual(r.returncode, 1, r.stdout)
        self.assertIn(b"photo.npz: cannot be written", r.stdout)
        self.assertEqual(self.read("out/photo.npz"), b"old")
        self.assertFalse([name for name in os.listdir(self.path("out")) if name.endswith(".part")])

    def test_refusals_of_files(self):
        photo = self.image("photo.png")
        out = ["-o", self.path("out")]
        for option in ("--ply", "--glb", "--exr", "--store"):
            self.check(2, "depth", option, photo, says=[option, "output"])
        self.check(2, "depth", "--ply-faces", photo, *out, says=["ply-faces", "--ply"])
        self.check(2, "depth", "--edge-threshold", "0.1", "--exr", photo, *out, says=["edge-threshold", "--ply", "--glb"])
        self.check(2, "depth", "--edge-threshold", "-1", "--ply", photo, *out, says="edge-threshold")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_refusals(self):
        photo, small = self.image("photo.png"), self.image("small.png", 7, 20)
        self.check(1, "depth", "--model", self.model, small, says="at least 8x8")
        self.check(2, "depth", "--model", "superpoint-open", photo, says="not for depth")
        self.check(2, "keypoints", "--model", self.model, photo, says="not for keypoints")
        self.check(2, "depth", "--tokens", "100", "--fit", "pad", photo, says=["tokens", "fit"])
        self.check(2, "depth", "--fov-x", "60", "--focal-px", "100", photo, says=["fov-x", "focal-px"])
        self.check(2, "depth", "--fov-x", "180", photo, says="fov-x")
        self.check(2, "info", self.model, "--plan", "--size", "8x65537", says=["65537x8", "65536"])


if __name__ == "__main__":
    main()
