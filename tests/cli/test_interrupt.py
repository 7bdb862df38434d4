"""Ctrl-C and SIGTERM in the middle of a batch: exit code, and only whole files."""
import json
import os
import signal
import subprocess
import time

from harness import CliTest, Image, main, np


class Interrupt(CliTest):
    def interrupt(self, number, *words, after, stdin=subprocess.DEVNULL):
        """Sends the signal as soon as `after` exists (or at once); gives exit code, stdout and stderr."""
        p = self.start(*words, stdin=stdin)
        for _ in range(3000):
            if after is None or os.path.exists(self.path(after)) or p.poll() is not None:
                break
            time.sleep(0.01)
        if after is None:
            time.sleep(0.5)
        p.send_signal(number)
        out, err = p.communicate(timeout=60)
        return p.returncode, out.decode(), err.decode()

    def check_whole(self, folder):
        names = self.files(folder)
        self.assertGreaterEqual(len(names), 1)
        for name in names:
            path = os.path.join(folder, name)
            self.assertRegex(name, r"^\d+(_\d+)?\.(keypoints|matches)\.(npz|json|png)$")  # nothing temporary
            if name.endswith(".npz"):
                with np.load(path) as f:
                    self.assertTrue(len(f.files) >= 4)
            elif name.endswith(".json"):
                with open(path) as f:
                    json.load(f)
            else:
                Image.open(path).load()

    def test_keypoints(self):
        names = [self.image(f"{i}.png", 640, 480, seed=i) for i in range(60)]
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            folder = f"out{code}"
            got, out, err = self.interrupt(number, "keypoints", "-o", folder, "--json", "--h5", f"{folder}.h5", *names,
                                           after=f"{folder}/0.keypoints.npz")
            self.assertEqual(got, code, err)
            self.assertLess(len(out.splitlines()), len(names))
            for line in out.splitlines():
                json.loads(line)
            self.check_whole(self.path(folder))
            self.assertFalse([name for name in os.listdir(self.dir) if ".h5" in name])

    def test_match(self):
        for i in range(40):
            self.image(f"{i}.png", 640, 480, seed=i)
        self.write("pairs.txt", "".join(f"{i}.png {i + 1}.png\n" for i in range(39)))
        code, _, err = self.interrupt(signal.SIGINT, "match", "--pairs", "pairs.txt", "-o", "out", after="out/0_1.matches.npz")
        self.assertEqual(code, 130, err)
        self.check_whole(self.path("out"))

    def test_waiting_for_stdin(self):
        code, out, _ = self.interrupt(signal.SIGINT, "keypoints", "-", after=None, stdin=subprocess.PIPE)
        self.assertEqual((code, out), (130, ""))

    def test_bench(self):
        code, out, _ = self.interrupt(signal.SIGTERM, "bench", "superpoint-open", "--runs", "10000", after=None)
        self.assertEqual((code, out), (143, ""))


if __name__ == "__main__":
    main()
