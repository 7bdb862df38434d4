"""Pairs: single ones and lists, geometry, hloc files."""
import os
import unittest

from harness import SMALL, SOURCE, CliTest, Image, main, np, picture

try:
    import h5py
except ImportError:
    h5py = None


class Match(CliTest):
    def shifted(self, dx=32, dy=24):
        """Two views of a plane, shifted against each other by multiples of 8 pixels: b(x, y) = a(x + dx, y + dy)."""
        big = picture(320 + dx, 240 + dy, seed=5)
        big.crop((0, 0, 320, 240)).save(self.path("a.png"))
        big.crop((dx, dy, 320 + dx, 240 + dy)).save(self.path("b.png"))
        return self.path("a.png"), self.path("b.png")

    def test_what_is_read_is_not_replaced(self):
        a, b = self.shifted()
        weights = os.path.join(SOURCE, "models", "superpoint-open.safetensors")
        model = self.write("own.safetensors", self.read(weights))
        drawn = self.image("a_b.matches.png")
        before = self.read(drawn)
        pairs = self.write("pairs.txt", "a.png b.png\na.png a_b.matches.png\n")
        listed = ["match", *SMALL, "--model", model, "--pairs", pairs, "--images", self.dir]
        self.check(1, *listed, "-o", self.dir, says=[drawn, "overwrite"])
        if h5py:
            self.check(2, *listed, "--h5", model, says=["--h5", "overwrite", model])
        self.assertEqual((self.read(drawn), self.read(model)), (before, self.read(weights)))

    def test_homography(self):
        a, b = self.shifted()
        r = self.check(0, "match", "--size", "native", "--json", "--time", "-o", "out", a, b)
        line = r.json()[0]
        m = np.array(line["model"])
        self.assertEqual(m[2, 2], 1)
        for x, y in ((100, 60), (300, 200), (40, 220)):
            p = m @ [x, y, 1]
            np.testing.assert_allclose(p[:2] / p[2], [x - 32, y - 24], atol=1)
        count = len(line["matches"])
        self.assertEqual((count, count), (len(line["similarity"]), len(line["inliers"])))
        self.assertEqual(line["num_inliers"], sum(line["inliers"]))
        self.assertGreater(line["num_inliers"], 20)
        self.assertEqual((line["model_fit"], line["network"], line["pixel_center"]), ("homography", "superpoint-open", 0))
        self.assertEqual([i["path"] for i in line["images"]], [a, b])
        self.assertEqual((line["image0"], line["image1"]), (a, b))
        self.assertIn("match", line["timing_ms"])
        self.assertNotIn("reason", line)
        self.assertEqual(self.files(self.path("out")), [f"a_b.matches.{e}" for e in ("json", "npz", "png")])
        with np.load(self.path("out/a_b.matches.npz")) as f:
            self.assertEqual({k: f[k].dtype.str for k in f}, {"keypoints0": "<f4", "keypoints1": "<f4", "matches": "<i4", "similarity": "<f4",
                                                              "inliers": "|u1", "model": "<f8"})
            self.assertEqual(f["matches"].tolist(), line["matches"])
            np.testing.assert_array_equal(f["model"], m)
            self.assertLess(f["matches"][:, 0].max(), len(f["keypoints0"]))
        with Image.open(self.path("out/a_b.matches.png")) as drawn:
            self.assertEqual(drawn.size[1], 240)
        words = self.check(0, "match", "--size", "native", a, b).out
        self.assertRegex(words, r"^\S+ \S+: \d+ and \d+ keypoints, \d+ matches, homography with \d+ inliers\n$")
        self.assertEqual(self.answer("match", "--size", "native", "--threads", "1", a, b)["model"], line["model"])

    def test_other_fits(self):
        a, b = self.shifted()
        base = ["match", "--size", "native", a, b]
        line = self.answer(*base, "--model-fit", "none")
        self.assertEqual((line["model"], line["inliers"], line["num_inliers"]), (None, None, None))
        self.assertTrue(line["reason"])
        self.write("k.txt", "300 300 160 120\n")
        self.write("k.json", '{"intrinsics_pixels": [[300, 0, 160.5], [0, 300, 120.5], [0, 0, 1]], "pixel_center": 0.5}')
        essential = [*base, "--model-fit", "essential", "--intrinsics"]
        lines = [self.answer(*essential, k) for k in ("300,300,160,120", "k.txt", "k.json")]
        self.assertEqual(lines[0], lines[1])
        self.assertEqual(lines[0], lines[2])
        for key in ("R", "t"):
            self.assertIn(key, lines[0])
        if lines[0]["model"]:
            self.assertAlmostEqual(np.linalg.norm(lines[0]["model"]), 2 ** 0.5, places=6)
            self.assertAlmostEqual(np.linalg.norm(lines[0]["t"]), 1, places=6)
            self.assertAlmostEqual(np.linalg.det(lines[0]["R"]), 1, places=6)
        other = self.answer(*essential, "300,300,160,120", "--intrinsics2", "500,500,160,120")
        self.assertNotEqual(other["model"], lines[0]["model"])
        for bad in ("1,2,3", "missing.txt", "0,0,0,0", self.dir):
            self.check(2, *essential, bad, says="--intrinsics")

    def test_no_model_is_no_failure(self):
        Image.fromarray(np.full((120, 160, 3), 128, np.uint8)).save(self.path("flat.png"))
        for fit in (["homography"], ["essential", "--intrinsics", "100,100,80,60"]):
            line = self.answer("match", *SMALL, "--threshold", "0.9", "--model-fit", *fit, "flat.png", "flat.png")
            self.assertEqual((line["model"], line["num_inliers"]), (None, 0))
            self.assertTrue(line["reason"])

    def test_tests_of_matches(self):
        a, b = self.shifted()
        count = [len(self.answer("match", "--size", "native", *words, a, b)["matches"])
                 for words in ([], ["--ratio", "0"], ["--ratio", "0.7"], ["--min-similarity", "0.9"], ["--min-similarity", "1"])]
        self.assertEqual(count[0], count[1])
        self.assertLess(count[2], count[0])
        self.assertLess(count[3], count[0])
        self.assertLess(count[4], count[3])

    def pairs(self, text, *words, code=0, says=None):
        os.makedirs(self.path("lists"), exist_ok=True)
        self.write("lists/pairs.txt", text)
        return self.check(code, "match", *SMALL, "--json", "--pairs", "lists/pairs.txt", *words, says=says)

    def test_pairs(self):
        for name in ("i/0.png", "i/1.png", "i/sub/0.png", "lists/x.png", "lists/y.png"):
            self.image(name, seed=len(name))
        text = "# a comment\n\n0.png 1.png\n1.png\tsub/0.png # and why\n0.png sub/0.png\r\n1.png 0.png\n./0.png 0.png\n"
        lines = self.pairs(text, "--images", "i", "-o", "out").json()
        self.assertEqual([(line["image0"], line["image1"]) for line in lines],
                         [(f"i/{a}.png", f"i/{b}.png") for a, b in (("0", "1"), ("1", "sub/0"), ("0", "sub/0"), ("1", "0"),
                                                                    ("0", "0"))])
        self.assertEqual([n for n in self.files(self.path("out")) if n.endswith("npz")],
                         [f"{n}.matches.npz" for n in ("0_0", "0_1", "0_sub-0", "1_0", "1_sub-0")])
        single = self.answer("match", *SMALL, self.path("i/0.png"), self.path("i/1.png"))
        for key in ("matches", "similarity", "model", "inliers", "num_keypoints"):
            self.assertEqual(single[key], lines[0][key])
        self.assertEqual(self.pairs("x.png y.png").json()[0]["image0"], "lists/x.png")
        self.assertEqual(self.pairs(f"{self.path('i/0.png')} y.png").json()[0]["image0"], self.path("i/0.png"))

    def test_pairs_that_fail(self):
        for i in range(3):
            self.image(f"lists/{i}.png", seed=i)
        self.write("lists/bad.jpg", "no")
        r = self.pairs("0.png 1.png\n0.png bad.jpg\nmissing.png 1.png\n1.png 2.png\n", code=1, says=["bad.jpg", "missing.png"])
        self.assertEqual(["error" in line for line in r.json()], [False, True, True, False])
        self.assertEqual(len(r.err.splitlines()), 2)
        a = self.path("lists/0.png")
        self.pairs("", code=2, says="no pair")
        self.pairs("0.png\n", code=2, says=["line 1", "two paths"])
        self.pairs("# x\n0.png 1.png 2.png\n", code=2, says="line 2")
        self.pairs("0.png 1.png\n0.png 1.png\n", "-o", "out", code=2, says="both write")
        self.pairs("0.png 1.png\n", a, code=2, says="--pairs")
        self.check(2, "match", "--pairs", "none.txt", says="none.txt")
        self.check(2, "match", "--pairs", self.dir, says="--pairs")

    @unittest.skipUnless(h5py, "h5py is not here")
    def test_h5(self):
        for i in range(3):
            self.image(f"lists/{i}.png", seed=0)
        self.image("lists/sub/0.png")
        lines = self.pairs("0.png 1.png\n0.png sub/0.png\n", "--h5", "m.h5").json()
        with h5py.File(self.path("m.h5")) as f:
            group = f["0.png"]["1.png"]
            self.assertIn("sub-0.png", f["0.png"])
            matches = group["matches0"][()]
            self.assertEqual(len(matches), lines[0]["num_keypoints"][0])
            self.assertEqual([[i, int(j)] for i, j in enumerate(matches) if j >= 0], lines[0]["matches"])
            self.assertEqual(group["matching_scores0"].shape, matches.shape)

    def test_detector_only_weights(self):
        weights = os.path.join(os.environ.get("THEO_WEIGHTS", "../shared/weights"), "mg_coco_s2.pth")
        if not os.path.exists(weights):
            self.skipTest("no MagicPoint weights here")
        weights = os.path.abspath(weights)
        a = self.image("a.png")
        self.check(2, "match", *SMALL, "--model", weights, a, a, says="descriptor")
        line = self.answer("keypoints", *SMALL, "--model", weights, "-o", "out", a)
        self.assertIn("no descriptor head", line["warnings"][0])
        with np.load(self.path("out/a.keypoints.npz")) as f:
            self.assertNotIn("descriptors", f)
        self.check(0, "keypoints", *SMALL, "--model", weights, "--bn-eps", "1e-3", a)


if __name__ == "__main__":
    main()
