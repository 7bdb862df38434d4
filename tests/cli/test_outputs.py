"""The files: contents, names, collisions, errors while writing; what the options of the detector do to the numbers."""
import os
import resource
import signal
import subprocess
import unittest

from harness import SMALL, SOURCE, THEO, CliTest, Image, environment, main, np

try:
    import h5py
except ImportError:
    h5py = None


class Outputs(CliTest):
    def npz(self, *words, name="a"):
        """Arrays of one image."""
        self.check(0, "keypoints", *SMALL, "-o", "npz", *words, self.path(name + ".png"))
        with np.load(self.path(f"npz/{name}.keypoints.npz")) as f:
            return dict(f)

    def test_npz(self):
        self.image("a.png")
        a = self.npz()
        n = len(a["keypoints"])
        self.assertGreater(n, 10)
        self.assertEqual({k: (v.dtype.str, v.shape) for k, v in a.items() if k != "model"}, {
            "keypoints": ("<f4", (n, 2)), "scores": ("<f4", (n,)), "descriptors": ("<f4", (n, 256)), "image_size": ("<i4", (2,))})
        self.assertEqual(str(a["model"]), "superpoint-open")
        self.assertEqual(a["image_size"].tolist(), [120, 160])
        np.testing.assert_allclose(np.linalg.norm(a["descriptors"], axis=1), 1, atol=1e-5)
        self.assertTrue((a["keypoints"] >= 0).all() and (a["keypoints"] < [160, 120]).all())
        stored = self.npz("--store")
        for key in a:
            np.testing.assert_array_equal(a[key], stored[key])
        line = self.answer("keypoints", *SMALL, self.path("a.png"))
        np.testing.assert_array_equal(np.array(line["keypoints"], np.float32), a["keypoints"])
        np.testing.assert_array_equal(np.array(line["scores"], np.float32), a["scores"])

    def test_none_and_one(self):
        self.image("a.png")
        for limit in (0, 1):
            a = self.npz("--max-keypoints", str(limit))
            self.assertEqual([a[k].shape for k in ("keypoints", "scores", "descriptors")], [(limit, 2), (limit,), (limit, 256)])
        self.check(0, "match", *SMALL, "--max-keypoints", "0", "-o", "none", self.path("a.png"), self.path("a.png"))
        with np.load(self.path("none/a_a.matches.npz")) as f:
            self.assertEqual(f["matches"].shape, (0, 2))
            self.assertNotIn("model", f)

    def test_picture(self):
        a = self.image("a.png")
        self.check(0, "keypoints", *SMALL, "-o", "out", a)
        drawn = Image.open(self.path("out/a.keypoints.png"))
        self.assertEqual((drawn.size, drawn.mode), ((160, 120), "RGB"))
        self.assertFalse(np.array_equal(np.array(drawn), np.array(Image.open(a))))

    def test_files_are_named_in_the_json_and_in_words(self):
        a = self.image("a.png")
        line = self.answer("keypoints", *SMALL, "-o", "deep/er/out/", a)
        self.assertEqual(sorted(line["files"]), [f"deep/er/out/a.keypoints.{e}" for e in ("json", "npz", "png")])
        for name in line["files"]:
            self.assertTrue(os.path.exists(self.path(name)))
        words = self.check(0, "keypoints", *SMALL, "-o", "out", a).out
        self.assertRegex(words, r"^\S+a\.png: 160x120, \d+ keypoints -> out/a\.keypoints\.\{npz,png,json\}\n$")
        self.assertEqual(self.answer("keypoints", *SMALL, a)["files"], [])

    def test_detector_options(self):
        self.image("a.png", 320, 240)
        base = self.npz()
        hf = self.npz("--hf")
        order = np.lexsort((hf["keypoints"][:, 0], hf["keypoints"][:, 1]))
        np.testing.assert_array_equal(order, np.arange(len(order)))
        cut = self.npz("--hf", "--max-keypoints", "7")
        self.assertEqual(len(cut["scores"]), 7)
        overridden = self.npz("--max-keypoints", "7", "--hf")  # by the --hf behind it
        self.assertEqual(len(overridden["scores"]), len(hf["scores"]))
        self.assertGreater(len(self.npz("--threshold", "0", "--max-keypoints", "-1")["scores"]), len(base["scores"]))
        self.assertNotIn("descriptors", self.npz("--no-descriptors"))
        centers = self.npz("--pixel-centers")
        np.testing.assert_allclose(centers["keypoints"], base["keypoints"] + 0.5 * 320 / 128 - 0.5, atol=1e-4)
        self.assertFalse(np.array_equal(self.npz("--sampling", "c")["descriptors"], base["descriptors"]))
        native = self.npz("--size", "native")
        np.testing.assert_array_equal(native["keypoints"], np.round(native["keypoints"]))
        for threads in ("1", "2", "3"):
            other = self.npz("--threads", threads)
            for key in base:
                np.testing.assert_array_equal(base[key], other[key])

    def test_collisions_are_found_before_any_work(self):
        os.makedirs(self.path("x"))
        a = self.image("a.png")
        pairs = [(a, self.image("a.jpg")), (a, self.image("x/a.png")), (a, a)]
        for first, second in pairs:
            r = self.check(2, "keypoints", *SMALL, "-o", "out", first, second, says=[first, second])
            self.assertFalse(os.path.exists(self.path("out")))
            self.assertEqual(len(self.check(0, "keypoints", *SMALL, "--json", first, second).json()), 2)  # no files, no collision
        self.image("d/a.png")
        self.image("d/a.jpg")
        self.check(2, "keypoints", *SMALL, "-o", "out", "d")
        self.assertEqual(r.out, "")

    def test_output_that_is_no_folder(self):
        a = self.image("a.png")
        self.check(2, "keypoints", *SMALL, "-o", a, a, says=["--output", "not a folder"])
        self.check(2, "keypoints", *SMALL, "-o", a + "/below", a, says="not a folder")
        os.makedirs(self.path("out/a.keypoints.png"))
        line = self.check(1, "keypoints", *SMALL, "--json", "-o", "out", a, says="a.keypoints.png").json()[0]
        self.assertEqual(set(line), {"image", "error"})
        self.write("out/sub", "a file")
        self.image("d/sub/b.png")
        self.check(1, "keypoints", *SMALL, "--recursive", "-o", "out", "d", says="sub")

    def test_existing_files_are_replaced(self):
        a = self.image("a.png")
        self.check(0, "keypoints", *SMALL, "-o", "out", a)
        self.write("out/a.keypoints.npz", b"old")
        self.check(0, "keypoints", *SMALL, "-o", "out", a)
        with np.load(self.path("out/a.keypoints.npz")) as f:
            self.assertIn("keypoints", f)
        self.assertEqual(len(self.files(self.path("out"))), 3)

    def test_write_errors(self):
        """A limit on the size of files acts like a full disk: the input fails, the message names the file, no half-written one stays."""
        a, b = self.image("a.png", 640, 480), self.image("b.png", 16, 16)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        r = self.theo("keypoints", *SMALL, "--json", "-o", "out", a, b, preexec_fn=limit)
        self.assertEqual(r.code, 1, r.err)
        self.assertIn("a.keypoints.npz", r.err)
        self.assertEqual([("error" in line) for line in r.json()], [True, "error" in r.json()[1]])
        for name in self.files(self.path("out")):
            self.assertNotIn("a.keypoints.npz", name)
        r = self.theo("keypoints", *SMALL, "--dump", "x.safetensors", a, preexec_fn=limit)
        self.assertEqual(r.code, 1)
        self.assertFalse(os.path.exists(self.path("x.safetensors")))
        self.check(1, "keypoints", *SMALL, "--dump", "no/such/folder/x.safetensors", a, says="x.safetensors")
        self.check(1, "keypoints", *SMALL, "-o", "/proc/nothing", a, says="/proc/nothing")

    def test_full_disk(self):
        """A small file system of its own, where this machine lets us mount one."""
        a = self.image("a.png", 640, 480)
        os.mkdir(self.path("small"))
        script = ("mount -t tmpfs -o size=64k none small || exit 77; "
                  f"'{THEO}' keypoints --size 96x128 -o small {a}; code=$?; ls -A small; exit $code")
        r = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, cwd=self.dir, env=environment())
        if r.returncode == 77 or b"unshare" in r.stderr:
            self.skipTest("no file system can be mounted here")
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"No space left", r.stderr)
        self.assertEqual(r.stdout, b"")

    @unittest.skipUnless(h5py, "h5py is not here")
    def test_h5(self):
        self.image("d/a.png", 320, 240)
        self.image("d/sub/b.png", seed=1)
        self.check(0, "keypoints", *SMALL, "--recursive", "--h5", "full.h5", "d")
        self.check(0, "keypoints", *SMALL, "--recursive", "--h5", "half.h5", "--half", "--pixel-centers", "d")
        centers = self.answer("keypoints", *SMALL, "--pixel-centers", self.path("d/a.png"))
        with h5py.File(self.path("full.h5")) as full, h5py.File(self.path("half.h5")) as half:
            group = full["a.png"]
            n = centers["num_keypoints"]
            self.assertEqual(group["descriptors"].shape, (256, n))
            self.assertEqual(group["keypoints"].dtype, np.float32)
            self.assertEqual(group["image_size"][()].tolist(), [320, 240])
            np.testing.assert_array_equal(group["keypoints"][()], np.array(centers["keypoints"], np.float32))
            self.assertEqual(half["sub/b.png"]["descriptors"].dtype, np.float16)
            np.testing.assert_allclose(half["a.png"]["keypoints"][()], group["keypoints"][()], atol=0.2)

    def test_h5_without_reading(self):
        a, b = self.image("a.png"), self.image("x/a.png")
        r = self.theo("keypoints", *SMALL, "--h5", "f.h5", a)
        if r.code == 2 and "no HDF5" in r.err:
            self.skipTest("this build has no HDF5")
        self.assertEqual(self.read("f.h5")[:4], b"\x89HDF")
        self.check(2, "keypoints", *SMALL, "--h5", "f.h5", a, b, says=[a, b])
        self.check(2, "keypoints", *SMALL, "--h5", a, a, says="overwrite the input")
        self.check(1, "keypoints", *SMALL, "--h5", "no/such/f.h5", a, says="f.h5")
        self.check(1, "keypoints", *SMALL, "--h5", "g.h5", self.path("missing.png"))
        self.assertFalse(os.path.exists(self.path("g.h5")))
        self.assertEqual([name for name in self.files(self.dir) if not name.endswith(".png")], ["f.h5"])

    def test_what_is_read_is_not_replaced(self):
        """Neither the model nor an image that the command line names; a folder may hold what an earlier run wrote."""
        a = self.image("a.png")
        weights = os.path.join(SOURCE, "models", "superpoint-open.safetensors")
        model = self.write("own.safetensors", self.read(weights))
        self.check(2, "keypoints", *SMALL, "--model", model, a, "--dump", model, says=["--dump", "overwrite", model])
        self.check(0, "keypoints", *SMALL, a, "-o", self.dir)
        drawn, before = self.path("a.keypoints.png"), self.read("a.keypoints.png")
        r = self.check(1, "keypoints", *SMALL, a, drawn, "-o", self.dir, says=[drawn, "overwrite"])
        self.assertIn("a.keypoints.png", r.out)
        self.assertEqual((self.read("a.keypoints.png"), self.read("own.safetensors")), (before, self.read(weights)))
        self.check(0, "keypoints", *SMALL, self.dir, "-o", self.dir)
        if h5py:
            self.check(2, "keypoints", *SMALL, "--model", model, a, "--h5", model, says=["--h5", "overwrite", model])
            self.check(2, "keypoints", *SMALL, a, "--dump", "f.h5", "--h5", self.path("f.h5"), says=["--h5", "--dump writes"])
            self.check(1, "keypoints", *SMALL, a, "-o", "new", "--h5", "new/../new/a.keypoints.npz", says="--h5 writes")
            self.assertFalse(os.path.exists(self.path("new/a.keypoints.npz")))
        os.makedirs(self.path("out"))
        os.symlink("out", self.path("link"))
        self.check(1, "keypoints", *SMALL, a, "-o", "link", "--dump", "out/a.keypoints.npz", says=["a.keypoints.npz", "--dump writes"])
        self.assertEqual(self.read("out/a.keypoints.npz")[8:10], b'{"')


if __name__ == "__main__":
    main()
