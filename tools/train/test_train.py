"""A few steps of the training on made-up photos and weights. Exit 77 (skipped) where PyTorch or OpenCV is absent."""
import os
import sys
import tempfile
import unittest

try:
    import cv2
    import numpy as np
    import torch
except ImportError as missing:
    print(f"train: skipped: {missing} (Debian: python3-torch python3-opencv)")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import networks
import train
import views

CHANNELS = {"conv1a": (1, 64), "conv1b": (64, 64), "conv2a": (64, 64), "conv2b": (64, 64), "conv3a": (64, 128), "conv3b": (128, 128),
            "conv4a": (128, 128), "conv4b": (128, 128), "convPa": (128, 256), "convPb": (256, 65)}


def random_layers():
    """A MagicPoint of random values: (folded tensors by original names, state dict with batch norms that do nothing)."""
    folded, state = {}, {}
    for name, (cin, cout) in CHANNELS.items():
        kernel = 1 if name == "convPb" else 3
        w, b = torch.randn(cout, cin, kernel, kernel) * (2 / (cin * kernel * kernel)) ** 0.5, torch.zeros(cout)
        folded[name + ".weight"], folded[name + ".bias"] = w, b
        if name.startswith("convP"):
            conv, norm = f"detector_head.{name}", f"detector_head.bn{name[4:]}"
        else:
            block = f"backbone.block{name[4]}_{'ab'.index(name[5]) + 1}"
            conv, norm = block + ".0", block + ".2"
        state[conv + ".weight"], state[conv + ".bias"] = w, b
        state.update({norm + ".weight": torch.ones(cout), norm + ".bias": torch.zeros(cout), norm + ".running_mean": torch.zeros(cout),
                      norm + ".running_var": torch.full((cout,), 1 - 1e-5)})
    return folded, state


class Training(unittest.TestCase):
    def test_teacher_equals_the_frozen_copy(self):
        torch.manual_seed(3)
        folded, state = random_layers()
        x = torch.rand(1, 1, 64, 96)
        scores = networks.MagicPoint(state)(x)
        _, descriptors, target = networks.Student(folded)(x)
        again = torch.pixel_shuffle(torch.softmax(target, 1)[:, :64], 8)
        self.assertLess(float((scores - again).abs().max()), 1e-5)
        self.assertLess(float((descriptors.norm(dim=1) - 1).abs().max()), 1e-5)

    def test_sampling_at_cell_centres_gives_the_cell(self):
        maps = torch.nn.functional.normalize(torch.randn(1, 8, 5, 7), dim=1)
        first_cell, last_cell = (3.5, 3.5), (8 * 7 - 1.0, 8 * 5 - 1.0)  # where rule a maps to the corners of the map
        got = networks.sample_descriptors(maps, torch.tensor([[first_cell, last_cell]], dtype=torch.float64))
        self.assertLess(float((got[0, :, 0] - maps[0, :, 0, 0]).abs().max()), 1e-5)
        self.assertLess(float((got[0, :, 1] - maps[0, :, 4, 6]).abs().max()), 1e-5)

    def test_points_follow_the_picture(self):
        gray = np.zeros((192, 256), np.uint8)
        gray[100:103, 120:123] = 255
        for _ in range(20):
            matrix = views.random_homography(192, 256, 0.1, 0.2, 0.05, 0.02)
            picture = cv2.warpPerspective(gray, matrix, (256, 192))
            x, y = views.warp_points(matrix, np.array([[121.0, 101.0]]))[0]
            ys, xs = np.nonzero(picture > 100)
            self.assertLess(abs(xs.mean() - x) + abs(ys.mean() - y), 1.0)

    def test_a_few_steps_change_the_descriptor_head_only_where_they_should(self):
        folded, state = random_layers()
        with tempfile.TemporaryDirectory() as folder:
            path = lambda name: os.path.join(folder, name)
            rng = np.random.default_rng(1)
            photo = cv2.resize(rng.integers(0, 256, (24, 32, 3), np.uint8), (512, 384), interpolation=cv2.INTER_NEAREST)
            cv2.imwrite(path("photo.png"), photo)
            with open(path("list.txt"), "w", encoding="utf-8") as f:
                f.write(path("photo.png") + "\n")
            torch.save(state, path("teacher.pth"))
            networks.save_safetensors(path("detector.safetensors"), folded, {})
            train.main(["--images", path("list.txt"), "--teacher", path("teacher.pth"), "--detector", path("detector.safetensors"), "--out", path("out"),
                        "--iterations", "3", "--crops", "2", "--adapt", "1", "--batch", "2", "--size", "64x96"])
            trained = networks.load_safetensors(path("out/final.safetensors"))
        self.assertEqual(len(trained), 24)
        for name in ("conv1a.weight", "conv3b.bias"):
            self.assertTrue(torch.equal(trained[name], folded[name]), name)
        self.assertFalse(torch.equal(trained["conv4a.weight"], folded["conv4a.weight"]))
        self.assertEqual(tuple(trained["convDb.weight"].shape), (256, 256, 1, 1))
        self.assertTrue(all(torch.isfinite(t).all() for t in trained.values()))


if __name__ == "__main__":
    unittest.main()
