"""theo pair on a tiny network of formula weights: what it writes, and what it refuses."""
import json
import os
import shutil
import subprocess
import sys

import numpy as np
from PIL import Image

from harness import SOURCE, THEO, CliTest, main

sys.path.insert(0, os.path.join(SOURCE, "tests"))
import readers  # noqa: E402

CONFIG = """{"enc_embed_dim": 64, "enc_depth": 2, "enc_num_heads": 4, "dec_embed_dim": 48, "dec_depth": 12, "dec_num_heads": 3, "mlp_ratio": 2,
"head_type": "dpt", "output_mode": "pts3d", "img_size": [64, 64], "pos_embed": "RoPE100", "depth_mode": ["exp", -Infinity, Infinity],
"conf_mode": ["exp", 1, Infinity], "dpt_layer_dims": [8, 8, 16, 16], "dpt_feature_dim": 16, "dpt_last_dims": [8, 8]}"""
FILES = ["conf1.png", "conf2.png", "depth1.png", "depth2.png", "pair.json", "pair.npz", "points.ply"]


class Pair(CliTest):
    def setUp(self):
        super().setUp()
        self.write("config.json", CONFIG)
        self.model = self.path("tiny")
        self.check(0, "synth", "dust3r", self.model, "--config", self.path("config.json"))
        self.a, self.b = self.image("a.png", 80, 60), self.image("b.png", 50, 90, seed=1)

    def pair(self, *words):
        return self.answer("pair", "--model", self.model, *words)

    def test_files(self):
        told = self.pair(self.a, self.b, "-o", self.path("out"), "--min-conf", "1.2", "--time")
        self.assertEqual(self.files(self.path("out")), FILES)
        self.assertEqual(sorted(told["files"]), [self.path("out", name) for name in FILES])
        with open(self.path("out", "pair.json")) as f:
            self.assertEqual(json.load(f), told)
        self.assertEqual([(i["path"], i["width"], i["height"]) for i in told["images"]], [(self.a, 80, 60), (self.b, 50, 90)])
        self.assertEqual((told["unit"], told["model"], told["pose"], told["pixel_center"]), ("relative", "tiny", None, 0))
        self.assertIn("no pose was asked for", told["reason"])
        stages = told["timing_ms"]
        self.assertEqual(list(stages), ["decode", "preprocess", "forward", "activation", "pose", "postprocess", "encode", "total"])
        self.assertAlmostEqual(stages["total"], sum(v for k, v in stages.items() if k not in ("total", "postprocess")))

        z = np.load(self.path("out", "pair.npz"))
        self.assertEqual(set(z.files), {"pts3d1", "pts3d2", "conf1", "conf2", "rgb1", "rgb2", "mask1", "mask2"})
        clouds, colors = [], []
        for k, view in enumerate("12"):
            points, conf, rgb, mask = (z[name + view] for name in ("pts3d", "conf", "rgb", "mask"))
            self.assertEqual([x.shape for x in (points, conf, rgb, mask)], [(64, 64, 3), (64, 64), (64, 64, 3), (64, 64)])
            self.assertEqual([x.dtype for x in (points, conf, rgb, mask)], [np.float32, np.float32, np.uint8, np.uint8])
            summary, photo = told["summary"][k], mask > 0
            self.assertAlmostEqual(summary["photo_fraction"], photo.mean())
            self.assertEqual(summary["conf"]["min"], conf[photo].min())
            self.assertEqual(summary["conf"]["max"], conf[photo].max())
            self.assertAlmostEqual(summary["conf"]["median"], np.median(conf[photo].astype(float)))
            self.assertAlmostEqual(summary["conf"]["mean"], conf[photo].mean(dtype=float))
            depth = points[..., 2].astype(float)
            self.assertAlmostEqual(summary["depth_median"], np.median(depth[photo]))
            low, high = (told["depth_png"][k][name] for name in ("zmin", "zmax"))
            self.assertEqual((low, high), (depth[photo].min(), depth[photo].max()))
            value = np.array(Image.open(self.path("out", f"depth{view}.png")))
            self.assertTrue(np.array_equal(value, np.where(photo, 1 + np.rint(65534 * (depth - low) / (high - low)), 0)))
            value = np.array(Image.open(self.path("out", f"conf{view}.png")))
            self.assertTrue(np.array_equal(value, np.rint(255 * (1 - 1 / conf.astype(float)))))
            keep = photo & (conf >= 1.2)
            clouds.append(points[keep])
            colors.append(rgb[keep])
        ply = readers.read_ply(self.path("out", "points.ply"))["vertex"]
        self.assertTrue(np.array_equal(readers.columns(ply, "x", "y", "z"), np.concatenate(clouds)))
        self.assertTrue(np.array_equal(readers.columns(ply, "red", "green", "blue"), np.concatenate(colors)))
        self.assertEqual(told["num_points"], len(ply))
        self.assertGreater(len(ply), 100)

    def test_preprocessing(self):
        """The record and what the network saw, against Pillow."""
        for mode, size, offset, scale in (("pad", (64, 64), (0, 10), 0.8), ("crop", (64, 64), (-10, 0), 64 / 60),
                                          ("native", (48, 64), (0, 0), 0.8)):
            told = self.pair(self.a, self.b, "--preprocess", mode, "-o", self.path(mode))["preprocess"]
            view, z = told["views"][0], np.load(self.path(mode, "pair.npz"))
            self.assertEqual((told["mode"], tuple(view["size"])), (mode, size))
            self.assertTrue(np.allclose(view["scale"], scale) and np.allclose(view["offset"], offset, atol=0.2))
            photo = Image.open(self.a).convert("RGB")
            if mode == "pad":
                self.assertEqual(view["offset"], list(offset))
                square = Image.new("RGB", (80, 80), (128, 128, 128))
                square.paste(photo, (0, 10))
                seen = np.array(square.resize((64, 64), Image.BICUBIC))
                self.assertEqual((z["mask1"] > 0).sum(), 64 * 48)
            elif mode == "crop":
                seen = np.array(photo.crop((10, 0, 70, 60)).resize((64, 64), Image.BICUBIC))
            else:
                seen = np.array(photo.resize((64, 48), Image.LANCZOS))
            self.assertTrue(np.array_equal(z["rgb1"], seen), mode)
        square = self.image("square.png", 70, 70)
        sizes = [self.pair(square, self.b, "--preprocess", "native", *words)["preprocess"]["views"][0]["size"]
                 for words in ([], ["--square-ok"])]
        self.assertEqual(sizes, [[48, 64], [64, 64]])

    def test_pose(self):
        for method in ("port", "pairviewer"):
            told = self.pair(self.a, self.b, "--pose-method", method, "-o", self.path(method), "--time")
            z = np.load(self.path(method, "pair.npz"))
            self.assertGreater(told["timing_ms"]["forward_sym"], 0)
            pose = told["pose"]
            if pose is None:
                self.assertGreater(len(told["reason"]), 10)
                self.assertNotIn("R", z.files)
                continue
            R = np.array(pose["R"])
            self.assertTrue(np.allclose(R @ R.T, np.eye(3), atol=1e-9) and np.linalg.det(R) > 0)
            self.assertTrue(np.array_equal(z["R"], R) and np.array_equal(z["t"], pose["t"]))
            self.assertEqual(list(z["focals"]), [pose["focal_1"], pose["focal_2"]])
            self.assertEqual("edge" in pose, method == "pairviewer")
        told = self.pair(self.a, self.b, "--pose", "--intrinsics", "70,70,39.5,29.5", "--intrinsics2", "60,66,24,44")
        k1, k2 = (np.array(k) for k in told["intrinsics_original_pixels"])
        self.assertTrue(np.allclose(k1, [[70, 0, 39.5], [0, 70, 29.5], [0, 0, 1]]))
        self.assertTrue(np.allclose(k2, [[60, 0, 24], [0, 66, 44], [0, 0, 1]]))
        grid, scale = np.array(told["intrinsics"][1]), 64 / 90
        self.assertTrue(np.allclose(grid, [[60 * scale, 0, (24 + 20) * scale], [0, 66 * scale, 44 * scale], [0, 0, 1]]))

    def test_intrinsics_without_pose(self):
        told = self.pair(self.a, self.b)
        for key in ("intrinsics", "intrinsics_original_pixels"):
            self.assertEqual([k is None for k in told[key]], [False, True], key)
        f, c = told["intrinsics"][0][0][0], told["intrinsics"][0][0][2]
        self.assertEqual(c, 32)
        self.assertAlmostEqual(told["intrinsics_original_pixels"][0][0][0], f / 0.8)

    def test_one_photo(self):
        alone = self.pair(self.a, "-o", self.path("one"))
        self.pair(self.a, self.a, "-o", self.path("two"))
        self.assertEqual(len(alone["images"]), 1)
        one, two = (np.load(self.path(name, "pair.npz")) for name in ("one", "two"))
        for name in one.files:
            self.assertEqual(one[name].tobytes(), two[name].tobytes(), name)

    def test_orientation(self):
        exif = Image.Exif()
        exif[274] = 6
        turned = self.image("turned.jpg", 80, 60, exif=exif)
        (photo,) = self.pair(turned)["images"]
        self.assertEqual((photo["width"], photo["height"], photo["orientation"]), (60, 80, {"exif": 6, "applied": True}))
        (photo,) = self.pair(turned, "--orientation", "ignore")["images"]
        self.assertEqual((photo["width"], photo["height"]), (80, 60))

    def test_glb(self):
        told = self.pair(self.a, self.b, "-o", self.path("out"), "--glb", "--pose", "--min-conf", "1.3")
        self.assertIn(self.path("out", "pair.glb"), told["files"])
        glb, z = readers.Glb(self.path("out", "pair.glb")), np.load(self.path("out", "pair.npz"))
        names = [node.get("name") for node in glb.json["nodes"]]
        self.assertTrue({"view1", "view2"} <= set(names), names)
        for view in "12":
            keep = (z["mask" + view] > 0) & (z["conf" + view] >= 1.3)
            upper = keep[:-1, :-1] & keep[:-1, 1:] & keep[1:, :-1]
            lower = keep[:-1, 1:] & keep[1:, :-1] & keep[1:, 1:]
            used = np.zeros_like(keep)
            for mask, corners in ((upper, ((0, 0), (0, 1), (1, 0))), (lower, ((0, 1), (1, 0), (1, 1)))):
                for y, x in corners:
                    used[y:63 + y, x:63 + x] |= mask
            mesh = glb.primitive(int(view) - 1)
            self.assertEqual(len(mesh["indices"]), 6 * (upper.sum() + lower.sum()))
            self.assertTrue(np.array_equal(mesh["POSITION"], z["pts3d" + view][used] * [-1, -1, 1]))
        cameras = 1 + (told["pose"] is not None)
        self.assertEqual(sum((name or "").startswith("camera ") for name in names), cameras, names)

    def test_no_point(self):
        told = self.pair(self.a, self.b, "-o", self.path("out"), "--glb", "--min-conf", "1e30")
        self.assertEqual(told["num_points"], 0)
        self.assertEqual(len(readers.read_ply(self.path("out", "points.ply"))["vertex"]), 0)
        self.assertEqual([any(word in text for text in told["warnings"]) for word in ("min-conf", "no surface")], [True, True])
        readers.Glb(self.path("out", "pair.glb"))

    def test_thread_counts_give_the_same_bytes(self):
        for threads in ("1", "2", "3"):
            self.pair(self.a, self.b, "--threads", threads, "-o", self.path(threads), "--pose", "--glb", "--preprocess", "native")
        for name in self.files(self.path("1")):
            if name != "pair.json":
                for other in "23":
                    self.assertEqual(self.read(os.path.join("1", name)), self.read(os.path.join(other, name)), name)

    def test_hostile_photos(self):
        dot, line = self.image("dot.png", 5, 5), self.path("line.png")
        Image.new("RGB", (1, 5000), (9, 9, 9)).save(line)
        Image.fromarray(np.arange(64 * 64, dtype=np.uint16).reshape(64, 64) * 16).save(self.path("deep.png"))
        Image.new("L", (64, 40), 77).save(self.path("gray.png"))
        Image.new("RGBA", (64, 40), (9, 200, 30, 0)).save(self.path("alpha.png"))
        for photo in (dot, line, self.path("deep.png"), self.path("gray.png"), self.path("alpha.png")):
            for first, second in ((photo, self.a), (self.a, photo), (photo, photo)):
                told = self.pair(first, second, "--pose")
                self.assertTrue(told["pose"] is not None or told["reason"])
        self.check(1, "pair", "--model", self.model, "--preprocess", "native", self.a, line, says=["line.png", "elongated"])
        (told,) = self.check(1, "pair", "--model", self.model, "--json", "--preprocess", "native", self.a, line).json()
        self.assertEqual((told["image0"], told["image1"]), (self.a, line))
        self.pair(self.path("alpha.png"), "-o", self.path("out"))
        self.assertEqual(list(np.load(self.path("out", "pair.npz"))["rgb1"][32, 32]), [9, 200, 30])

    def scaled(self, name, change):
        """A checkpoint whose heads end in other numbers: change(name of the tensor, its values) gives them."""
        shutil.copytree(self.model, self.path(name))
        data = bytearray(self.read(name + "/model.safetensors"))
        length = int.from_bytes(data[:8], "little")
        for key, tensor in json.loads(data[8:8 + length]).items():
            if ".head.4." in key:
                first, last = (8 + length + x for x in tensor["data_offsets"])
                values = np.frombuffer(data[first:last], np.float32)
                data[first:last] = np.asarray(change(key, values), np.float32).tobytes()
        return self.write(name + "/model.safetensors", bytes(data)) and self.path(name)

    def test_overflow(self):
        """Maps of infinities and of what is no number: files that others can read, JSON without such words, the same bytes."""
        for name, change in (("points", lambda key, x: 300 * x),
                             ("confidences", lambda key, x: x + [0, 0, 0, 200] if key.endswith("bias") else x),
                             ("all", lambda key, x: 1e30 * x), ("nothing", lambda key, x: 0 * x)):
            model, finite = self.scaled(name, change), []
            for words in ([], ["--pose"], ["--pose-method", "pairviewer"], ["--pose-method", "pairviewer", "--preprocess", "native"]):
                for threads in "13":
                    told = self.answer("pair", "--model", model, self.a, self.b, *words, "--glb", "--threads", threads, "-o",
                                       self.path("out" + threads))
                    self.assertTrue(told["pose"] or told["reason"])
                for file in self.files(self.path("out1")):
                    if file != "pair.json":
                        self.assertEqual(self.read("out1/" + file), self.read("out3/" + file), (name, words, file))
                z = np.load(self.path("out1", "pair.npz"))
                finite.append(all(np.isfinite(z[array]).all() for array in ("pts3d1", "pts3d2", "conf1", "conf2")))
                ply = readers.read_ply(self.path("out1", "points.ply"))["vertex"]
                self.assertTrue(np.isfinite(readers.columns(ply, "x", "y", "z")).all())
                glb = readers.Glb(self.path("out1", "pair.glb"))
                for accessor in glb.json.get("accessors", []):
                    self.assertTrue(np.isfinite(accessor.get("min", []) + accessor.get("max", [])).all())
            self.assertEqual(any(finite), name == "nothing")

    def test_absurd_cameras(self):
        for camera in ("1e300,1e300,0,0", "1e-300,1e-300,0,0", "70,70,1e30,-1e30"):
            for method in ("port", "pairviewer"):
                told = self.pair(self.a, self.b, "--pose-method", method, "--intrinsics", camera, "--glb", "-o", self.path("out"))
                self.assertTrue(told["pose"] or told["reason"])
                self.assertEqual(any("camera" in text for text in told["warnings"]), "1e300" in camera)
        for camera in ("nan,70,1,1", "70,inf,1,1", "70,-70,1,1", "0,0,0,0"):
            self.check(2, "pair", "--model", self.model, self.a, self.b, "--pose", "--intrinsics", camera, says=["--intrinsics", camera])

    def test_what_is_read_is_not_replaced(self):
        weights, own = self.path("tiny", "model.safetensors"), self.image("own/depth1.png", 64, 64)
        os.symlink(weights, self.path("link.safetensors"))
        os.mkdir(self.path("linked"))
        os.symlink(self.a, self.path("linked", "conf2.png"))
        before = [self.read(name) for name in (weights, own, self.a)]
        for target in (weights, self.path("link.safetensors")):
            self.check(2, "pair", "--model", self.model, self.a, self.b, "--dump", target, says=["--dump", "overwrite", weights])
        self.check(1, "pair", "--model", self.model, own, self.b, "-o", self.path("own"), says=["own/depth1.png", "overwrite"])
        self.check(1, "pair", "--model", self.model, self.a, self.b, "-o", self.path("linked"), says=["conf2.png", "overwrite", self.a])
        self.assertEqual(before, [self.read(name) for name in (weights, own, self.a)])

    def test_failures(self):
        bad = self.write("bad.jpg", b"no picture")
        (line,) = self.check(1, "pair", "--model", self.model, "--json", self.a, bad, says="bad.jpg").json()
        self.assertEqual((line["image0"], line["image1"]), (self.a, bad))
        (line,) = self.check(1, "pair", "--model", self.model, "--json", bad, says="bad.jpg").json()
        self.assertEqual(line["image"], bad)
        self.check(1, "pair", "--model", self.model, self.a, self.path("missing.png"), says="missing.png")

    def test_full_disk(self):
        os.makedirs(self.path("out"))
        self.write("out/pair.npz", "old")
        r = self.shell(f"ulimit -f 60; trap '' XFSZ; exec '{THEO}' pair --model '{self.model}' '{self.a}' '{self.b}' --min-conf 1e30 "
                       f"-o '{self.path('out')}' --store 2>&1", stdout=subprocess.PIPE)
        self.assertEqual(r.returncode, 1, r.stdout)
        self.assertIn(b"pair.npz: cannot be written", r.stdout)
        self.assertEqual(self.read("out/pair.npz"), b"old")
        self.assertFalse([name for name in os.listdir(self.path("out")) if name.endswith(".part")])

    def test_stdin(self):
        told = self.answer("pair", "--model", self.model, "-", self.b, input=self.read("a.png"))
        self.assertEqual([i["path"] for i in told["images"]], ["-", self.b])

    def test_dump_and_verify(self):
        model = ["--model", self.model]
        self.check(0, "pair", *model, self.a, self.b, "--preprocess", "native", "--dump", self.path("r.safetensors"))
        for photos in ([], [self.a, self.b]):
            told = self.answer("verify", self.model, self.path("r.safetensors"), *photos)
            names = {t["name"] for t in told["tensors"]}
            self.assertTrue({"raw1", "raw2", "pts3d1", "pts3d2", "conf1", "conf2"} <= names)
            self.assertEqual("image1" in names, bool(photos))
            self.assertTrue(told["ok"])
        self.check(1, "verify", self.model, self.path("r.safetensors"), self.b, self.a, says="gates")
        self.check(2, "verify", self.model, self.path("r.safetensors"), "--gray", "red", says=["gray", "dust3r"])
        self.check(2, "verify", self.model, self.path("r.safetensors"), "--preprocess", "pad", says=["preprocess", "IMAGE"])
        self.check(2, "verify", self.model, self.path("r.safetensors"), self.a, self.a, self.a, says="not 3")
        self.check(2, "pair", *model, self.a, self.b, "--dump", self.a, says=["dump", "overwrite"])
        self.check(0, "pair", *model, self.a, "--dump", self.path("one.safetensors"))
        self.assertTrue(self.answer("verify", self.model, self.path("one.safetensors"), self.a)["ok"])

    def test_info(self):
        told = self.answer("info", self.model, "--plan")
        self.assertEqual((told["kind"], told["config"]["head_type"], told["config"]["img_size"]), ("dust3r", "dpt", [64, 64]))
        self.assertIn("CC BY-NC-SA", told["licence"])
        self.assertEqual({op["runs"] for op in told["plan"]["ops"]}, {1, 2})
        self.assertIn("dec1.0", self.check(0, "info", self.model, "--plan", "--size", "48x64").out)
        self.check(2, "info", self.model, "--plan", "--size", "40x64", says="multiples of 16")
        models = {m["name"]: m for m in self.check(0, "models", "--json").json()[0]}
        for name in ("dust3r", "dust3r-512-linear", "dust3r-224-linear"):
            self.assertEqual((models[name]["task"], models[name]["supported"]), ("pair", True))
            self.assertIn("CC BY-NC-SA", models[name]["licence"])

    def test_bench(self):
        plain = ["load", "decode", "preprocess", "forward", "activation", "pose", "postprocess", "encode", "total"]
        few = ["--runs", "2", "--warmup", "1"]
        for words, stages in (([], plain), (["--symmetric"], plain[:4] + ["forward_sym"] + plain[4:]),
                              (["--pose", self.a, self.b], plain[:4] + ["forward_sym"] + plain[4:]), ([self.a], plain)):
            r = self.answer("bench", self.model, *few, *words)
            self.assertEqual((list(r["stages"]), r["runs"], r["size"]), (stages, 2, [64, 64]))
            self.assertGreater(r["gflops"], 0)
        r = self.answer("bench", self.model, *few, "--size", "48x96", "--ops")
        self.assertEqual(r["size"], [48, 96])
        self.assertTrue(all(op["min_ms"] > 0 for op in r["plan"]["ops"]))
        self.check(2, "bench", self.model, "--pose", "--symmetric", says=["--symmetric", "--pose"])
        self.check(2, "bench", self.model, "--pose", self.a, says=["--pose", "two images"])
        r = self.answer("bench", self.model, *few, "--pose", self.a, self.b, self.a)
        self.assertEqual((r["pairs"], list(r["stages"])), (3, plain[:4] + ["forward_sym"] + plain[4:]))
        self.check(1, "bench", self.model, self.a, self.b, self.path("missing.png"), says="missing.png")
        self.check(2, "bench", "superpoint-open", "--symmetric", says=["--symmetric", "superpoint-open"])

    def test_refusals(self):
        a, b, out = self.a, self.b, ["-o", self.path("out")]
        for words, says in (
                ([a, b, "--square-ok"], ["--square-ok", "--preprocess native"]),
                ([a, b, "--square-ok", "--preprocess", "crop"], ["--square-ok", "--preprocess native"]),
                ([a, "--pose"], ["--pose", "two images"]),
                ([a, "--pose-method", "port"], ["--pose-method", "two images"]),
                ([a, b, "--intrinsics", "1,1,1,1"], ["--intrinsics", "--pose"]),
                ([a, b, "--intrinsics2", "1,1,1,1"], ["--intrinsics2", "--pose"]),
                ([a, b, "--pose", "--intrinsics", "1,1,1"], ["--intrinsics"]),
                ([a, b, "--pose", "--intrinsics2", "0,1,1,1"], ["--intrinsics2", "above 0"]),
                ([a, b, "--conf-pct", "20"], ["--conf-pct", "--pose"]),
                ([a, b, "--conf-pct", "20", "--pose-method", "pairviewer"], ["--conf-pct", "pairviewer"]),
                ([a, b, "--pose", "--conf-pct", "101"], ["--conf-pct"]),
                ([a, b, "--pose-method", "other"], ["--pose-method"]),
                ([a, b, "--preprocess", "stretch"], ["--preprocess"]),
                ([a, b, "--min-conf", "-1"], ["--min-conf"]),
                ([a, b, "--glb"], ["--glb", "--output"]),
                ([a, b, "--store"], ["--store", "--output"]),
                ([a, b, a, *out], ["two images", "3"]),
                ([], ["two images"]),
                ([self.dir, b], ["folder"]),
                (["-", "-"], ["twice"])):
            self.check(2, "pair", "--model", self.model, *words, says=says)
        self.assertFalse(os.path.exists(self.path("out")))
        self.check(2, "pair", "--model", "superpoint-open", a, b, says="not for pairs")
        self.check(2, "depth", "--model", self.model, a, says="not for depth")
        self.check(2, "keypoints", "--model", self.model, a, says="not for keypoints")
        self.check(2, "pair", "--model", self.model, "--precision", "bf16", a, b, says="later version")
        self.check(2, "pair", a, b, env=dict(os.environ, THEO_MODELS=self.dir, HF_HUB_CACHE=self.dir),
                   says=["dust3r", "huggingface-cli download", "CC BY-NC-SA"])


if __name__ == "__main__":
    main()
