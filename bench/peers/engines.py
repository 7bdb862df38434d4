"""One engine in one process: load a model, warm up, time some runs, print a JSON line. Started by compare.py.

    python engines.py ENGINE MODEL NET THREADS RUNS [OUTPUT.npz]

Every engine gets the same contiguous float32 input and must hand out contiguous float32 outputs; that is inside the time.
"""
import json
import os
import sys
import time

import numpy as np

import nets


def onnxruntime(model, net, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda inputs: [np.ascontiguousarray(y) for y in session.run(net.OUTPUTS, dict(zip(net.INPUTS, inputs)))]


def openvino(model, net, threads):
    import openvino as ov
    core = ov.Core()
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32",
                                                 "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1})
    request = compiled.create_infer_request()

    def run(inputs):
        request.infer(dict(zip(net.INPUTS, inputs)), share_inputs=True)
        return [np.array(request.get_tensor(name).data, copy=True) for name in net.OUTPUTS]
    return run


def mnn(model, net, threads):
    import MNN.expr as expr
    import MNN.nn as nn
    runtime = nn.create_runtime_manager(({"backend": "CPU", "precision": "high", "numThread": threads},))
    module = nn.load_module_from_file(model, net.INPUTS, net.OUTPUTS, runtime_manager=runtime,
                                      backend=expr.Backend.CPU, dynamic=False, shape_mutable=False)

    def run(inputs):
        variables = [expr.const(x, list(x.shape), expr.NCHW) for x in inputs]
        return [np.ascontiguousarray(expr.convert(y, expr.NCHW).read()) for y in module.forward(variables)]
    return run


ENGINES = {"onnxruntime": onnxruntime, "openvino": openvino, "mnn": mnn}


def main(engine, model, net_name, threads, runs, output=None):
    net = nets.load(net_name)
    start = time.perf_counter()
    run = ENGINES[engine](model, net, int(threads))
    load = time.perf_counter() - start
    inputs = net.example_inputs()
    for _ in range(3 if net.GFLOP < 100 else 1):
        result = run(inputs)
    times = []
    for _ in range(int(runs)):
        start = time.perf_counter()
        result = run(inputs)
        times.append((time.perf_counter() - start) * 1e3)
    if output:
        np.savez(output, **dict(zip(net.OUTPUTS, result)))
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(json.dumps({"engine": engine, "ms": times, "load_ms": load * 1e3, "rss_mib": peak / 1024}))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", sys.argv[4])
    main(*sys.argv[1:])
