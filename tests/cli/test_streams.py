"""stdout holds results only, every JSON line parses; closed, full and broken outputs; progress on terminals alone."""
import json
import os
import pty
import subprocess

from harness import SMALL, THEO, CliTest, main


class Streams(CliTest):
    def test_a_line_for_each_input_in_their_order(self):
        names = [self.image(f"{i}.png", seed=i) for i in range(4)]
        broken = self.write("broken.jpg", b"\xff\xd8\xff\xe0 no more")
        order = [names[0], broken, names[1], self.path("missing.png"), names[2], names[3]]
        r = self.check(1, "keypoints", *SMALL, "--json", *order, says=["broken.jpg", "missing.png"])
        lines = r.json()
        self.assertEqual([line["image"] for line in lines], order)
        self.assertEqual([("error" in line) for line in lines], [False, True, False, True, False, False])
        self.assertEqual(len(r.err.splitlines()), 2, r.err)

        words = self.check(1, "keypoints", *SMALL, *order)
        self.assertEqual(len(words.out.splitlines()), 4)
        self.assertEqual(len(words.err.splitlines()), 2)

    def test_json_members(self):
        a = self.image("a.jpg")
        line = self.answer("keypoints", *SMALL, "--time", "-o", "out", a)
        for key in ("image", "width", "height", "orientation", "model", "precision", "warnings", "files", "timing_ms", "network_size",
                    "num_keypoints", "keypoints", "scores"):
            self.assertIn(key, line)
        self.assertEqual((line["width"], line["height"], line["network_size"]), (160, 120, [96, 128]))
        self.assertEqual(set(line["timing_ms"]), {"decode", "preprocess", "forward", "postprocess", "encode", "total"})
        self.assertEqual(line["model"], "superpoint-open")
        self.assertEqual(len(line["keypoints"]), line["num_keypoints"])
        self.assertEqual(len(line["scores"]), line["num_keypoints"])
        self.assertEqual(line["scores"], sorted(line["scores"], reverse=True))
        self.assertEqual(json.loads(self.read("out/a.keypoints.json")), line)
        self.assertNotIn("timing_ms", self.answer("keypoints", *SMALL, a))

    def test_odd_file_names(self):
        a = self.image("plain.png")
        for name in (b"with space.png", b'quote"back\\slash.png', b"new\nline.png", "\u00e9\u20ac.png".encode(), b"\xff\xfe.png"):
            target = os.path.join(self.dir.encode(), name)
            os.rename(a, target)
            r = self.theo("keypoints", *SMALL, "--json", os.fsdecode(target))
            self.assertEqual(r.code, 0, r.err)
            self.assertEqual(r.json()[0]["width"], 160)
            a = target

    def test_full_and_closed_stdout(self):
        a = self.image("a.png")
        for words in (["keypoints", *SMALL, a, a], ["keypoints", *SMALL, "--json", a, a], ["match", *SMALL, a, a], ["models"],
                      ["info", "superpoint-open"], ["help"], ["--version"]):
            with self.subTest(words=words):
                with open("/dev/full", "wb") as full:
                    r = self.theo(*words, stdout=full)
                self.assertEqual(r.code, 1)
                self.assertEqual(r.err.count("\n"), 1)
                self.assertIn("No space left", r.err)
                quoted = " ".join(f"'{w}'" for w in [THEO, *words])
                r = self.shell(quoted + " >&-")
                self.assertEqual(r.returncode, 1)

    def test_closed_stdout_does_not_end_in_a_result_file(self):
        a = self.image("a.png")
        self.shell(f"'{THEO}' keypoints --size 96x128 --json -o out '{a}' >&- 2>&-")
        for name in self.files(self.path("out")):
            if name.endswith(".npz"):
                self.assertEqual(self.read(os.path.join("out", name))[:2], b"PK")

    def test_reader_that_goes_away(self):
        names = [self.image(f"{i}.png", seed=i) for i in range(20)]
        p = self.start("keypoints", *SMALL, "--json", *names)
        self.assertTrue(p.stdout.readline())
        p.stdout.close()
        self.assertEqual(p.stderr.read(), b"")
        p.stderr.close()
        self.assertEqual(p.wait(60), 1)

    def terminal(self, *words):
        """Runs with stderr on a terminal: exit code and what was shown there."""
        ours, theirs = pty.openpty()
        p = self.start(*words, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
        os.close(ours)
        return p.wait(), shown.decode()

    def test_progress_on_a_terminal_only(self):
        a = self.image("a.png", 640, 480)
        words = ["keypoints", "--json", *[a] * 20]
        code, shown = self.terminal(*words)
        self.assertEqual(code, 0)
        self.assertRegex(shown, r"\d+ of 20 images, \d+ %, \d+:\d\d left")
        self.assertTrue(shown.endswith("\r\x1b[K"), repr(shown[-40:]))  # the line is gone at the end
        self.assertEqual(self.terminal(*words[:5], "--quiet"), (0, ""))
        self.assertEqual(self.check(0, *words[:3]).err, "")


if __name__ == "__main__":
    main()
