"""What the tests of the command share: running it, and pictures to run it on."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    from PIL import Image
except ImportError:
    print("skipped: python3-numpy and python3-pil are needed")
    sys.exit(77)

THEO = os.path.abspath(os.environ.get("THEO", "build/cli/theo"))
SOURCE = os.path.abspath(os.environ.get("THEO_SOURCE", "."))
SMALL = ["--size", "96x128"]  # a small network input, to be quick


def environment(**more):
    env = dict(os.environ, THEO_MODELS=os.path.join(SOURCE, "models"))
    env.update(more)
    return env


def picture(width, height, seed=0):
    """Random rectangles: many corners."""
    rng = np.random.default_rng(seed)
    a = np.full((height, width, 3), 128, np.uint8)
    for _ in range(60):
        x, y = rng.integers(0, width - 4), rng.integers(0, height - 4)
        w, h = rng.integers(4, max(5, width // 4)), rng.integers(4, max(5, height // 4))
        a[y:y + h, x:x + w] = rng.integers(0, 256, 3)
    return Image.fromarray(a)


class Result:
    def __init__(self, process):
        self.code = process.returncode
        self.out = (process.stdout or b"").decode()
        self.err = process.stderr.decode()

    def json(self):
        """One object for each line of stdout; NaN and Infinity are no JSON."""
        def refuse(word):
            raise ValueError(f"{word} in JSON")
        return [json.loads(line, parse_constant=refuse) for line in self.out.splitlines()]


class CliTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="theo-test-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def image(self, name, width=160, height=120, seed=0, **options):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        picture(width, height, seed).save(path, **options)
        return path

    def write(self, name, data):
        """A file with these bytes or this text."""
        with open(self.path(name), "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def theo(self, *words, stdout=subprocess.PIPE, **options):
        """Runs the command; what goes to another stdout is not in the result."""
        options = {"env": environment(), "cwd": self.dir, **options}
        if "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        return Result(subprocess.run([THEO, *words], stdout=stdout, stderr=subprocess.PIPE, timeout=300, **options))

    def check(self, code, *words, says=None, **options):
        """Runs and checks the exit code; failures must say something on stderr, usage errors nothing on stdout."""
        r = self.theo(*words, **options)
        self.assertEqual(r.code, code, f"theo {' '.join(words)}\n{r.out[:500]}\n{r.err}")
        if code in (1, 2):
            self.assertTrue(r.err.startswith("theo"), r.err)
        if code == 2:
            self.assertEqual(r.out, "")
        for word in [says] if isinstance(says, str) else says or []:
            self.assertIn(word, r.err)
        return r

    def answer(self, *words, **options):
        """The only JSON object of a run that succeeds."""
        lines = self.check(0, *words, "--json", **options).json()
        self.assertEqual(len(lines), 1)
        return lines[0]

    def start(self, *words, **options):
        """A running command."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([THEO, *words], **{**pipes, "cwd": self.dir, "env": environment(), **options})

    def shell(self, script, **options):
        return subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.dir,
                              env=environment(), **options)

    def files(self, folder):
        """All files below a folder, relative, sorted."""
        return sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, names in os.walk(folder) for name in names)


def option_table(command):
    """Rows of dicts: the options of a command as the program itself lists them."""
    out = subprocess.run([THEO, "__options", command], stdout=subprocess.PIPE, check=True, env=environment()).stdout.decode()
    rows = [line.split("\t") for line in out.splitlines()]
    return [dict(zip(("name", "letter", "kind", "value", "initial"), row)) for row in rows]


def command_names():
    return subprocess.run([THEO, "__options"], stdout=subprocess.PIPE, check=True, env=environment()).stdout.decode().split()


main = unittest.main
