"""Compare our forward pass with ONNX Runtime, OpenVINO and MNN: same network, same weights, same input, same run.

    ./dev bench peers [NET] [--threads 2,1] [--rounds 9] [--runs 5] [--weights FILE] [--engines a,b]

Every round starts each engine once, in a process of its own, in turn (ours, peer, peer, peer, ours, ...), so that drift of a
shared machine hits all alike. A process loads, warms up three times and times `--runs` passes. The figure of a round is the
median of its passes; what is printed is the median and the minimum over the rounds, and the ratio of the medians.
"""
import argparse
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import nets

PROTOBUF_LIMIT = 1 << 30  # a message may have twice that; beyond, the weights get a file of their own
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "mnn": "MNN"}


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown CPU")


def run_json(command, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        sys.exit(f"{command[0]}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(lines[-1])


def prepare(net, weights, folder):
    """Model files of all engines from one set of weights: (onnx, mnn, file for ours)."""
    tensors = net.weights(weights)
    path = os.path.join(folder, "net.onnx")
    onnx.save(net.graph(tensors), path, save_as_external_data=sum(a.nbytes for a in tensors.values()) > PROTOBUF_LIMIT, location="weights.bin")
    ours = weights or os.path.join(folder, "net.safetensors")
    if not weights:
        write_safetensors(ours, tensors)
    mnn_path = os.path.join(folder, "net.mnn")
    if "mnn" not in net.ENGINES:
        return path, mnn_path, ours
    convert = os.path.join(os.path.dirname(sys.executable), "mnnconvert")
    done = subprocess.run([convert, "-f", "ONNX", "--modelFile", path, "--MNNModel", mnn_path, "--bizCode", "theo"],
                          capture_output=True, text=True, check=False)
    if not os.path.exists(mnn_path):
        sys.exit(f"mnnconvert failed:\n{done.stdout}{done.stderr}")
    return path, mnn_path, ours


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, a in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
        offset += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for a in tensors.values():
            f.write(a.tobytes())


def agree(net, reference, other):
    """Largest difference of each output between two engines, relative to the output's largest value."""
    words = []
    for name in net.OUTPUTS:
        a, b = reference[name], other[name]
        if a.shape != b.shape:
            sys.exit(f"{name}: shapes differ, {a.shape} and {b.shape}")
        words.append(f"{name} {np.abs(a - b).max() / np.abs(a).max():.1e}")
    return ", ".join(words)


def compare(net_name, net, engines, options, threads, files, folder):
    onnx_path, mnn_path, ours_path = files
    commands = {"theodolite": [options.ours, net_name, ours_path, str(threads), str(options.runs)]}
    for peer in engines:
        model = mnn_path if peer == "mnn" else onnx_path
        commands[peer] = [sys.executable, os.path.join(HERE, "engines.py"), peer, model, net_name, str(threads), str(options.runs)]

    outputs = {}
    for engine, command in commands.items():  # the first pass also proves that all compute the same
        path = os.path.join(folder, f"{engine}-{threads}.npz")
        run_json([*command, path], threads)
        outputs[engine] = np.load(path)
    for peer in engines:
        print(f"  largest difference to {peer}, relative to the maximum: {agree(net, outputs[peer], outputs['theodolite'])}")

    rounds = {engine: [] for engine in commands}
    facts = {}
    for index in range(options.rounds):
        order = list(commands) if index % 2 == 0 else list(commands)[::-1]
        for engine in order:
            facts[engine] = run_json(commands[engine], threads)
            rounds[engine].append(facts[engine]["ms"])
    medians = {e: statistics.median(statistics.median(r) for r in rs) for e, rs in rounds.items()}
    minima = {e: min(min(r) for r in rs) for e, rs in rounds.items()}
    print(f"  {'engine':<12} {'median ms':>10} {'min ms':>9} {'GFLOP/s':>9} {'RSS MiB':>9}")
    for engine in commands:
        print(f"  {engine:<12} {medians[engine]:10.2f} {minima[engine]:9.2f} {net.GFLOP / medians[engine] * 1e3:9.0f} {facts[engine]['rss_mib']:9.0f}")
    print(f"  FMA peak measured: {facts['theodolite']['peak_gflops']:.0f} GFLOP/s on {threads} threads, level {facts['theodolite']['isa']}; "
          f"load average {os.getloadavg()[0]:.2f}")
    return medians, minima


def measure(name, options):
    net = nets.load(name)
    engines = options.engines.split(",") if options.engines else net.ENGINES
    print(f"{cpu_name()}, {os.cpu_count()} cores; {options.rounds} rounds of {options.runs} passes, engines in turn")
    print("versions: " + ", ".join(f"{p} {importlib.metadata.version(PACKAGES[p])}" for p in engines))
    print("weights: " + (os.path.basename(options.weights) if options.weights else "by formula"))
    print(net.__doc__.split("Boundary: ")[1].replace("\n", " ").strip())
    summary = []
    with tempfile.TemporaryDirectory() as folder:
        files = prepare(net, options.weights, folder)
        for threads in (int(t) for t in options.threads.split(",")):
            print(f"{name}, fp32, {threads} threads")
            medians, minima = compare(name, net, engines, options, threads, files, folder)
            for peer in engines:
                summary.append((medians["theodolite"] / medians[peer], minima["theodolite"] / minima[peer], threads, peer))
    print("of the minima: " + ", ".join(f"{of_minima:.2f} vs {peer} ({threads} threads)" for _, of_minima, threads, peer in summary))
    for ratio, _, threads, peer in summary:
        print(f"ratio {name} fp32 {threads} threads {ratio:.2f} vs {peer}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("net", nargs="?", default="superpoint", help=" ".join(nets.NAMES) + ", or moge2 for both of its sizes (default superpoint)")
    parser.add_argument("--threads", default="2,1", help="thread counts, comma-separated (default 2,1)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--runs", type=int, default=5, help="timed passes of one process (default 5)")
    parser.add_argument("--weights", help="safetensors file with the original tensor names (default: formula weights)")
    parser.add_argument("--engines", help="peers, comma-separated (default: all that can run the network)")
    parser.add_argument("--ours", required=True, help="the bench_forward program")
    options = parser.parse_args()
    names = nets.named(options.net)
    if not names:
        parser.error(f"no network {options.net}; there are: {' '.join(nets.NAMES)}, moge2")
    for name in names:
        measure(name, options)


if __name__ == "__main__":
    main()
