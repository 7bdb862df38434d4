"""Files, folders, stdin; images that are broken, cut, too large, or no images."""
import os
import stat

from harness import SMALL, CliTest, Image, main, np, picture


class Inputs(CliTest):
    def images_of(self, *words, code=0):
        lines = self.check(code, "keypoints", *SMALL, "--json", *words).json()
        return [os.path.relpath(line["image"], self.dir) for line in lines]

    def test_folder(self):
        for name in ("d/b.png", "d/a.JPG", "d/c.jpeg", "d/sub/x.png", "d/sub/deep/y.jpg", "d/.hidden.png"):
            self.image(name, format="JPEG" if "j" in name.lower().split(".")[-1] else "PNG")
        self.write("d/notes.txt", "no image")
        self.assertEqual(self.images_of(self.path("d")), ["d/a.JPG", "d/b.png", "d/c.jpeg"])
        self.assertEqual(self.images_of(self.path("d") + "/"), ["d/a.JPG", "d/b.png", "d/c.jpeg"])
        everything = ["d/a.JPG", "d/b.png", "d/c.jpeg", "d/sub/deep/y.jpg", "d/sub/x.png"]
        self.assertEqual(self.images_of(self.path("d"), "--recursive"), everything)
        self.check(0, "keypoints", *SMALL, "--recursive", "-o", "out", "d")
        self.assertIn("sub/deep/y.keypoints.npz", self.files(self.path("out")))
        self.assertEqual(len(self.files(self.path("out"))), 15)
        self.check(0, "keypoints", *SMALL, "out", says=["warning", ".keypoints.png"])

    def test_links(self):
        self.image("d/sub/x.png")
        os.symlink(self.path("d"), self.path("d/sub/loop"))
        os.symlink(self.path("d/sub/x.png"), self.path("d/link.png"))
        os.symlink(self.path("d/sub"), self.path("d/folder.png"))
        self.assertEqual(self.images_of(self.path("d"), "--recursive"), ["d/link.png", "d/sub/x.png"])

    def test_empty_folder(self):
        os.mkdir(self.path("d"))
        self.check(2, "keypoints", self.path("d"), says="no JPEG or PNG")
        self.image("d/sub/x.png")
        self.check(2, "keypoints", self.path("d"), says="--recursive")
        self.check(2, "keypoints", "", says="empty")

    def test_stdin(self):
        data = self.read(self.image("a.png"))
        line = self.answer("keypoints", *SMALL, "-o", "out", "-", input=data)
        self.assertEqual((line["image"], line["width"]), ("-", 160))
        self.assertEqual(self.files(self.path("out")), ["stdin.keypoints.json", "stdin.keypoints.npz", "stdin.keypoints.png"])
        b = self.image("b.png", seed=1)
        self.assertEqual(len(self.check(0, "keypoints", *SMALL, "--json", b, "-", input=data).json()), 2)
        self.check(0, "match", *SMALL, "-o", "out", "-", b, input=data)
        self.assertIn("stdin_b.matches.png", self.files(self.path("out")))
        self.check(2, "keypoints", "-", "-", input=data, says="twice")
        self.check(2, "match", "-", "-", input=data, says="twice")
        self.check(1, "keypoints", "-", input=b"", says="stdin")
        self.check(1, "keypoints", "-", input=b"not an image", says="stdin")

    def test_missing_unreadable_and_not_images(self):
        os.mkdir(self.path("folder.jpg"))
        self.check(2, "keypoints", self.path("folder.jpg"), says="no JPEG or PNG")
        self.check(2, "match", self.path("folder.jpg"), self.image("a.png"), says="folder")
        self.write("text.jpg", "hello")
        self.write("empty.png", b"")
        for name in ("text.jpg", "empty.png", "missing.png", "a.png/b.png"):
            r = self.check(1, "keypoints", "--json", self.path(name), says=name)
            self.assertEqual(r.json()[0]["image"], self.path(name))
            self.assertTrue(r.json()[0]["error"])
        self.check(1, "keypoints", "/dev/null", says="/dev/null")
        if os.geteuid() != 0:
            os.chmod(self.path("a.png"), 0)
            self.check(1, "keypoints", self.path("a.png"), says="ermission")
            os.mkdir(self.path("closed"), 0)
            self.check(1, "keypoints", self.path("closed"), says="ermission")
            os.chmod(self.path("closed"), stat.S_IRWXU)

    def test_truncated_jpeg(self):
        data = self.read(self.image("a.jpg", 320, 240, quality=90))
        self.write("cut.jpg", data[:len(data) // 2])
        self.check(1, "keypoints", *SMALL, self.path("cut.jpg"), says=["cut.jpg", "allow-truncated"])
        r = self.check(0, "keypoints", *SMALL, "--json", "--allow-truncated", self.path("cut.jpg"), says="warning")
        self.assertEqual(len(r.json()[0]["warnings"]), 1)
        self.assertIn("cut.jpg", r.json()[0]["warnings"][0])
        self.write("head.jpg", data[:40])
        self.check(1, "keypoints", "--allow-truncated", self.path("head.jpg"), says="head.jpg")

    def test_max_pixels(self):
        a = self.image("a.png")
        self.check(0, "keypoints", *SMALL, "--max-pixels", "19200", a)
        self.check(1, "keypoints", *SMALL, "--max-pixels", "19199", a, says="a.png")

    def test_orientation(self):
        exif = picture(160, 120).getexif()
        exif[0x0112] = 6
        a = self.image("a.jpg", exif=exif)
        line = self.answer("keypoints", *SMALL, a)
        self.assertEqual((line["width"], line["height"], line["orientation"]), (160, 120, {"exif": 6, "applied": False}))
        line = self.answer("keypoints", *SMALL, "--orientation", "apply", a)
        self.assertEqual((line["width"], line["height"], line["orientation"]), (120, 160, {"exif": 6, "applied": True}))

    def test_sizes_of_images(self):
        for width, height in ((1, 1), (1, 500), (500, 1), (9, 7)):
            Image.fromarray(np.zeros((height, width, 3), np.uint8)).save(self.path("s.png"))
            line = self.answer("keypoints", *SMALL, self.path("s.png"))
            self.assertEqual((line["width"], line["height"]), (width, height))
        self.check(1, "keypoints", "--size", "native", self.path("s.png"), says="s.png")

    def test_gray_and_odd_kinds(self):
        base = picture(160, 120)
        for mode in ("L", "1", "P", "RGBA", "LA", "CMYK"):
            path = self.path(f"{mode}.{'jpg' if mode == 'CMYK' else 'png'}")
            base.convert(mode).save(path)
            self.assertEqual(self.answer("keypoints", *SMALL, path)["width"], 160)
        Image.fromarray(np.arange(160 * 120, dtype=np.uint16).reshape(120, 160)).save(self.path("16.png"))
        self.check(0, "keypoints", *SMALL, self.path("16.png"))


if __name__ == "__main__":
    main()
