"""theo depth on a tiny network of formula weights: what it writes, and what it refuses."""
import json
import math
import os

import numpy as np
from PIL import Image

from harness import CliTest, main

STACK = {"dim_res_blocks": [64, 32, 16, 16, 16], "num_res_blocks": [0, 1, 1, 1, 0], "res_block_in_norm": "none",
         "res_block_hidden_norm": "none", "resamplers": ["conv_transpose"] * 3 + ["bilinear"]}


def head(channels):
    return {**STACK, "dim_in": STACK["dim_res_blocks"], "dim_out": [None] * 4 + [channels]}


CONFIG = {"dim": 64, "depth": 2, "mlp": 128, "table": 37, "model_config": {
    "encoder": {"backbone": "test", "intermediate_layers": [0, 1], "dim_out": 64},
    "neck": {**STACK, "dim_in": [66, 2, 2, 2, 2], "dim_out": None},
    "points_head": head(3), "normal_head": head(3), "mask_head": head(1),
    "scale_head": {"dims": [64, 64, 64, 1]}, "remap_output": "exp"}}


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
        self.assertEqual(names, ["photo.depth.png", "photo.json", "photo.mask.png", "photo.normal.png", "photo.npz"])
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

    def test_refusals(self):
        photo, small = self.image("photo.png"), self.image("small.png", 7, 20)
        self.check(1, "depth", "--model", self.model, small, says="at least 8x8")
        self.check(2, "depth", "--model", "superpoint-open", photo, says="not for depth")
        self.check(2, "keypoints", "--model", self.model, photo, says="not for keypoints")
        self.check(2, "depth", "--tokens", "100", "--fit", "pad", photo, says=["tokens", "fit"])
        self.check(2, "depth", "--fov-x", "60", "--focal-px", "100", photo, says=["fov-x", "focal-px"])
        self.check(2, "depth", "--fov-x", "180", photo, says="fov-x")


if __name__ == "__main__":
    main()
