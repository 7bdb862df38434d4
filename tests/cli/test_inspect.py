"""info, models, bench, verify with --dump, synth."""
import json
import struct

from harness import SMALL, CliTest, environment, main, np


def read_safetensors(data):
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, facts in header.items():
        start, end = facts["data_offsets"]
        arrays[name] = np.frombuffer(data[8 + size + start:8 + size + end], "<f4").reshape(facts["shape"])
    return arrays, metadata


def write_safetensors(arrays, metadata):
    header, offset = {"__metadata__": metadata}, 0
    for key, a in arrays.items():
        header[key] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [offset, offset + 4 * a.size]}
        offset += 4 * a.size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(np.ascontiguousarray(a, "<f4").tobytes() for a in arrays.values())


class Inspect(CliTest):
    def test_info(self):
        r = self.answer("info", "superpoint-open", "--threads", "2")
        for key in ("name", "kind", "file", "bytes", "parameters", "config", "precision", "isa", "threads", "licence"):
            self.assertIn(key, r)
        self.assertEqual([r[key] for key in ("name", "kind", "parameters", "threads", "precision")],
                         ["superpoint-open", "superpoint", 1300865, 2, "fp32"])
        self.assertIsInstance(r["config"], dict)
        plan = self.answer("info", "superpoint-open", "--plan")["plan"]
        self.assertAlmostEqual(plan["flops"] / 52.1e9, 1, places=2)
        self.assertGreater(len(plan["ops"]), 8)
        words = self.check(0, "info", "superpoint-open").out
        for text in ("1300865", "MIT", "superpoint-open"):
            self.assertIn(text, words)
        self.assertIn("120x160", self.check(0, "info", "superpoint-open", "--plan", "--size", "480x640").out)
        self.assertIn("30x40", self.check(0, "info", "superpoint-open", "--plan", "--size", "120x160").out)
        self.check(2, "info", "no-such-model", says="no-such-model")
        for level in ("c", "avx2"):
            isa = self.answer("info", "superpoint-open", env=environment(THEO_CPU=level))["isa"]
            self.assertIn(isa, ("c", level))
        r = self.check(0, "info", "superpoint-open", env=environment(THEO_CPU="AVX2"))
        self.assertIn("THEO_CPU=AVX2", r.err)
        self.assertEqual(self.check(0, "info", "superpoint-open", env=environment(THEO_CPU="c")).err, "")

    def test_models(self):
        rows = self.answer("models")
        by_name = {row["name"]: row for row in rows}
        for name in ("superpoint", "superpoint-open", "moge-2-vitl-normal", "dust3r"):
            for key in ("name", "task", "repo", "revision", "file", "bytes", "licence", "present", "path"):
                self.assertIn(key, by_name[name])
        self.assertTrue(by_name["superpoint-open"]["present"])
        self.assertTrue(by_name["superpoint-open"]["path"].endswith("superpoint-open.safetensors"))
        words = self.check(0, "models").out
        for row in rows:
            self.assertIn(row["name"], words)
            self.assertIn(row["licence"], words)

    def test_bench(self):
        r = self.answer("bench", "superpoint-open", "--runs", "3", "--warmup", "1", *SMALL, "--ops", "--threads", "1")
        for key in ("model", "size", "stages", "gflops", "peak_gflops", "rss_mib", "threads", "isa", "cpu"):
            self.assertIn(key, r)
        self.assertEqual(set(r["stages"]), {"load", "decode", "preprocess", "forward", "postprocess", "encode", "total"})
        for stage in r["stages"].values():
            self.assertLessEqual(stage["min"], stage["median"])
            self.assertLessEqual(stage["median"], stage["p90"])
        self.assertEqual((r["size"], r["threads"]), ([96, 128], 1))
        self.assertGreater(r["gflops"], 0)
        self.assertGreater(r["peak_gflops"], 1)
        self.assertTrue(r["plan"]["ops"])
        a = self.image("a.jpg", 200, 100)
        r = self.answer("bench", "superpoint", "--synthetic", "--runs", "2", "--warmup", "0", "--size", "native", a)
        self.assertEqual((r["model"], r["size"], r["synthetic"]), ("superpoint", [100, 200], True))
        words = self.check(0, "bench", "superpoint-open", "--runs", "1", "--warmup", "0", *SMALL).out
        for text in ("forward", "median", "GFLOP/s", "peak memory"):
            self.assertIn(text, words)
        self.check(1, "bench", "superpoint-open", "--runs", "1", self.path("missing.png"), says="missing.png")
        self.check(2, "bench", "superpoint-open", "--runs", "0", says="--runs")
        self.check(2, "bench", "superpoint-open", "--warmup", "-1", says="--warmup")
        self.check(2, "bench", "no-such-model", "--synthetic", says="no-such-model")

    def test_dump_and_verify(self):
        a = self.image("a.png")
        self.check(0, "keypoints", *SMALL, "--gray", "rgb601", "--dump", "ref.safetensors", a)
        arrays, metadata = read_safetensors(self.read("ref.safetensors"))
        self.assertEqual({k: v.shape for k, v in arrays.items()}, {
            "plane": (96, 128), "logits": (65, 12, 16), "scores": (96, 128), "raw": (256, 12, 16), "descriptors": (256, 12, 16)})
        self.assertEqual((metadata["gray"], metadata["size"], metadata["precision"]), ("rgb601", "96x128", "fp32"))
        np.testing.assert_allclose(np.linalg.norm(arrays["descriptors"], axis=0), 1, atol=1e-5)

        r = self.answer("verify", "superpoint-open", "ref.safetensors")
        self.assertTrue(r["ok"])
        self.assertEqual({t["name"] for t in r["tensors"]}, {"logits", "scores", "raw", "descriptors"})
        for t in r["tensors"]:
            self.assertEqual(set(t), {"name", "max_error", "rms_error", "rms", "pcc", "gate", "ok"})
            self.assertEqual(t["max_error"], 0)
        r = self.answer("verify", "superpoint-open", "ref.safetensors", a)
        self.assertIn("plane", {t["name"] for t in r["tensors"]})
        self.assertIn("ok", self.check(0, "verify", "superpoint-open", "ref.safetensors").out)
        self.check(1, "verify", "superpoint-open", "ref.safetensors", a, "--gray", "red")

        arrays["logits"] = arrays["logits"] + 0.1
        self.write("off.safetensors", write_safetensors(arrays, metadata))
        r = self.theo("verify", "superpoint-open", "off.safetensors", "--json")
        self.assertEqual((r.code, r.json()[0]["ok"]), (1, False))
        self.assertEqual([t["name"] for t in r.json()[0]["tensors"] if not t["ok"]], ["logits"])
        self.assertIn("FAIL", self.theo("verify", "superpoint-open", "off.safetensors").out)
        self.check(0, "verify", "superpoint-open", "off.safetensors", "--max-rel", "1")
        self.check(0, "verify", "superpoint-open", "off.safetensors", "--pcc", "0.999")
        self.write("gates.safetensors", write_safetensors(arrays, dict(metadata, **{"max-rel.logits": "0.5", "pcc": "0.99"})))
        self.check(0, "verify", "superpoint-open", "gates.safetensors")
        arrays["logits"][0, 0, 0] = np.nan
        self.write("nan.safetensors", write_safetensors(arrays, metadata))
        r = self.theo("verify", "superpoint-open", "nan.safetensors", "--json", "--pcc", "0")
        self.assertEqual((r.code, r.json()[0]["tensors"][0]["max_error"]), (1, None))

    def test_verify_refuses(self):
        a = self.image("a.png")
        self.write("junk.safetensors", "junk")
        self.write("other.safetensors", write_safetensors({"x": np.zeros(3)}, {}))
        self.write("shape.safetensors", write_safetensors({"scores": np.zeros((3, 3))}, {}))
        self.check(2, "verify", "superpoint-open", "missing.safetensors", says="missing.safetensors")
        self.check(2, "verify", "superpoint-open", "junk.safetensors", says="junk.safetensors")
        self.check(2, "verify", "superpoint-open", "other.safetensors", says="plane")
        self.check(2, "verify", "superpoint-open", "other.safetensors", a, says="none of the outputs")
        self.assertEqual(self.theo("verify", "superpoint-open", "shape.safetensors", a).code, 1)
        self.check(2, "verify", "superpoint-open", "other.safetensors", a, a)
        self.check(0, "keypoints", *SMALL, "--dump", "ref.safetensors", a)
        self.check(2, "verify", "superpoint-open", "ref.safetensors", "--gray", "red", says=["--gray", "IMAGE"])
        self.check(1, "verify", "superpoint-open", "ref.safetensors", self.path("missing.png"), says="missing.png")

    def test_synth(self):
        a = self.image("a.png")
        points = []
        for ending in ("safetensors", "pth", "pt"):
            self.check(0, "synth", "superpoint", f"s.{ending}")
            line = self.answer("keypoints", *SMALL, "--model", self.path(f"s.{ending}"), a)
            points.append(line["keypoints"])
        self.assertEqual(points, [points[0]] * 3)
        plan = {"encoder": [16, 16, 32, 32], "decoder": 64, "keypoint_dim": 65, "descriptor_dim": 64}
        self.write("config.json", json.dumps(plan))
        self.check(0, "synth", "superpoint", "small.safetensors", "--config", "config.json")
        self.assertEqual(self.answer("info", self.path("small.safetensors"))["descriptor_dim"], 64)
        self.write("batch_norm.json", json.dumps({"names": "rpautrat", **plan}))
        self.check(0, "synth", "superpoint", "bn.pth", "--config", "batch_norm.json")
        self.assertEqual(self.answer("info", self.path("bn.pth"))["kind"], "superpoint-bn")
        scores = [self.answer("keypoints", *SMALL, "--model", "bn.pth", *words, a)["scores"]
                  for words in ([], ["--bn-eps", "1e-3"], ["--bn-eps", "0.1"])]
        self.assertEqual(scores[0], scores[1])
        self.assertNotEqual(scores[0], scores[2])
        self.check(2, "synth", "superpoint", "x.safetensors", "--config", "missing.json", says="missing.json")
        self.write("bad.json", "{")
        self.check(2, "synth", "superpoint", "x.safetensors", "--config", "bad.json")
        self.check(2, "synth", "no-such-model", "x.safetensors", says="no-such-model")
        self.check(2, "synth", "superpoint", "x.txt", says="x.txt")
        self.check(1, "synth", "superpoint", "no/such/x.safetensors", says="x.safetensors")


if __name__ == "__main__":
    main()
