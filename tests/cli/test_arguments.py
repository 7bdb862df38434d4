"""Every option with good and bad values, contradictions, misspellings, commands of later versions, help."""
import re

from harness import SMALL, CliTest, command_names, environment, main, option_table

# option: (good values, bad values). Flags are tried on their own below.
DETECTOR = {
    "max-keypoints": (["-1", "0", "1", "100", "1K", "0x10"], ["-2", "x", "1.5", "", "4G"]),
    "threshold": (["0", "1", "0.005", "5e-3"], ["-0.1", "1.01", "nan", "inf", "low", "0,5"]),
    "nms": (["iterative", "single", "greedy"], ["none", "Iterative", ""]),
    "nms-radius": (["0", "4", "64"], ["-1", "65", "2.5"]),
    "border": (["0", "4", "16", "100000"], ["-1", "four"]),
    "border-mode": (["four", "hf"], ["two"]),
    "gray": (["red", "rgb601", "luma"], ["blue"]),
    "size": (["96x128", "native", "long:64", "8x8", "61x83"], ["7x8", "96", "96x", "long:", "long:4", "0x0", "x", "-1x-1"]),
    "order": (["score", "raster"], ["random"]),
    "sampling": (["a", "b", "b-old", "c"], ["d", "A"]),
}
SHARED = {
    "orientation": (["ignore", "apply"], ["rotate"]),
    "max-pixels": (["1M", "100M", "19200"], ["0", "-1", "many"]),
    "device": (["cpu"], ["cuda", "gpu"]),
    "threads": (["1", "2", "3"], ["0", "257", "-1", "two"]),
    "precision": (["fp32"], ["fp64", "bf16", "int8"]),
    "model": (["superpoint-open"], ["no-such-model", "./no/such.safetensors"]),
}
KEYPOINTS_FLAGS = ["pixel-centers", "hf", "no-descriptors", "allow-truncated", "json", "time", "quiet", "no-checksum"]


class Arguments(CliTest):
    def try_values(self, command, operands, table, base):
        for name, (good, bad) in table.items():
            for value in good:
                with self.subTest(option=name, value=value):
                    self.check(0, command, *base, f"--{name}", value, *operands)
            for value in bad:
                with self.subTest(option=name, value=value):
                    r = self.check(2, command, *base, f"--{name}={value}", *operands)
                    if name != "model":
                        self.assertIn(f"--{name}", r.err)

    def test_keypoints_values(self):
        self.try_values("keypoints", [self.image("a.png")], {**DETECTOR, **SHARED}, SMALL)

    def test_keypoints_flags(self):
        a = self.image("a.png")
        for name in KEYPOINTS_FLAGS:
            with self.subTest(flag=name):
                self.check(0, "keypoints", *SMALL, f"--{name}", a)
                self.check(2, "keypoints", *SMALL, f"--{name}=1", a, says=f"--{name} takes no value")

    def test_match_values(self):
        pair = [self.image("a.png"), self.image("b.png", seed=1)]
        table = {
            "ratio": (["0", "0.8", "1"], ["-0.1", "1.1"]),
            "min-similarity": (["-1", "0.9", "1"], ["-1.1", "2"]),
            "model-fit": (["none", "homography"], ["affine"]),
            "ransac-threshold": (["0.5", "3"], ["0", "-1"]),
        }
        self.try_values("match", pair, table, SMALL)
        self.check(0, "match", *SMALL, "--model-fit", "essential", "--intrinsics", "100,100,80,60", *pair)

    def test_every_option_is_tried_here_or_has_a_test_of_its_own(self):
        elsewhere = {"help", "output", "store", "h5", "half", "dump", "recursive", "bn-eps"}
        known = set(DETECTOR) | set(SHARED) | set(KEYPOINTS_FLAGS) | elsewhere
        self.assertEqual({row["name"][2:] for row in option_table("keypoints")}, known)

    def test_value_forms(self):
        a = self.image("a.png")
        for words in (["--max-keypoints", "5"], ["--max-keypoints=5"]):
            self.assertEqual(self.answer("keypoints", *SMALL, *words, a)["num_keypoints"], 5)
            self.check(0, "keypoints", a, *SMALL, *words)
        self.assertEqual(self.answer("keypoints", *SMALL, "--max-keypoints", "5", a, "--max-keypoints", "3")["num_keypoints"], 3)
        self.check(2, "keypoints", a, "--max-keypoints", says="needs a value")
        self.check(2, "keypoints", a, "--model", "--json", says="needs a value")
        self.check(0, "keypoints", *SMALL, "-q", "-o", self.path("out"), a)
        self.check(0, "keypoints", *SMALL, "-o" + self.path("out2"), a)
        self.assertEqual(len(self.files(self.path("out2"))), 3)

    def test_double_dash_ends_the_options(self):
        self.image("--odd.png")
        self.check(2, "keypoints", "--odd.png", says="unknown option")
        self.check(0, "keypoints", *SMALL, "--", "--odd.png")

    def test_contradictions_and_options_without_effect_name_both(self):
        a, b = self.image("a.png"), self.image("b.png", seed=1)
        cases = [
            (["keypoints", a, "--half"], ["--half", "--h5"]),
            (["keypoints", a, "--store"], ["--store", "--output"]),
            (["keypoints", a, "--no-descriptors", "--sampling", "b"], ["--no-descriptors", "--sampling"]),
            (["keypoints", a, "--recursive"], ["--recursive", "folder"]),
            (["keypoints", a, "--bn-eps", "1e-3"], ["--bn-eps", "batch norm"]),
            (["keypoints", a, b, "--dump", "x.safetensors"], ["--dump", "2"]),
            (["match", a, b, "--images", self.dir], ["--images", "--pairs"]),
            (["match", a, b, "--h5", "x.h5"], ["--h5", "--pairs"]),
            (["match", a, b, "--model-fit", "none", "--ransac-threshold", "2"], ["--ransac-threshold", "--model-fit none"]),
            (["match", a, b, "--intrinsics", "1,1,0,0"], ["--intrinsics", "--model-fit essential"]),
            (["match", a, b, "--intrinsics2", "1,1,0,0"], ["--intrinsics2", "--model-fit essential"]),
            (["match", a, b, "--model-fit", "essential"], ["--model-fit essential", "--intrinsics"]),
            (["match", a, b, "--model-fit", "essential", "--intrinsics2", "1,1,0,0"], ["--intrinsics", "--intrinsics2"]),
            (["info", "superpoint-open", "--size", "480x640"], ["--size", "--plan"]),
            (["info", "superpoint-open", "--plan", "--size", "native"], ["--size", "--plan"]),
            (["bench", "superpoint-open", "--tokens", "1800"], ["--tokens"]),
            (["bench", "superpoint-open", "--pose"], ["--pose"]),
            (["match", a, b, "--no-descriptors"], ["--no-descriptors"]),
        ]
        for words, says in cases:
            with self.subTest(words=words):
                self.check(2, *words, says=says)

    def test_number_of_operands(self):
        a = self.image("a.png")
        for words in (["keypoints"], ["match"], ["match", a], ["match", a, a, a], ["info"], ["info", "x", "y"], ["models", "x"],
                      ["bench"], ["verify"], ["verify", "superpoint-open"], ["synth"], ["synth", "superpoint"],
                      ["synth", "a", "b", "c"], ["help", "a", "b"], []):
            with self.subTest(words=words):
                self.check(2, *words)

    def test_commands_of_later_versions_say_so(self):
        listed = self.check(0, "help").out
        for name in ("align", "pull", "serve"):
            self.check(2, name, "x.jpg", says=[name, "later version"])
            self.check(2, "help", name, says="later version")
            self.assertNotIn(f"  {name} ", listed)

    def test_misspellings(self):
        self.check(2, "keypoints", "--treshold", "1", says="did you mean --threshold?")
        self.check(2, "keypoints", "--max-keypoint", "1", says="did you mean --max-keypoints?")
        self.check(2, "keypoint", says="did you mean keypoints?")
        self.check(2, "mtach", says="did you mean match?")
        self.check(2, "frobnicate", says="unknown command")
        self.check(2, "--jsno", says="unknown option")

    def test_help_and_version(self):
        self.assertRegex(self.check(0, "--version").out, r"^theo \d+\.\d+\.\d+\n$")
        texts = {self.check(0, *words).out for words in (["help"], ["--help"], ["-h"], ["help", "help"])}
        self.assertEqual(len(texts), 1)
        for name in command_names():
            text = self.check(0, "help", name).out
            self.assertEqual(text, self.check(0, name, "-h").out)
            self.assertEqual(text, self.check(0, name, "x", "--help").out)
            for row in option_table(name):
                self.assertRegex(text, r"(?m)^ .*" + re.escape(row["name"]) + r"\b")
            self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_model_that_cannot_be_loaded(self):
        a = self.image("a.png")
        self.write("junk.safetensors", b"junk" * 100)
        self.check(2, "keypoints", a, "--model", "junk.safetensors", says="junk.safetensors")
        self.check(2, "keypoints", a, "--model", a, says="a.png")
        self.check(2, "keypoints", a, "--model", "dust3r")
        nowhere = environment(THEO_MODELS="", HF_HUB_CACHE=self.dir)
        self.check(2, "keypoints", a, "--model", "superpoint", says="superpoint", env=nowhere)
        self.assertFalse(self.theo("keypoints", a, "--model", "junk.safetensors", "--json").out)


if __name__ == "__main__":
    main()
