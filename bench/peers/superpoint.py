"""SuperPoint for the comparison: its weights, its ONNX graph, its input, and what both sides must return.

Boundary: gray [1, 1, 480, 640] in; scores after softmax and unfolding [1, 480, 640] and L2-normalised descriptors
[1, 256, 60, 80] out, both contiguous float32. No suppression of neighbours on either side.
"""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import safetensors

HEIGHT, WIDTH = 480, 640
INPUTS, OUTPUTS = ["image"], ["scores", "descriptors"]
ENGINES = ["onnxruntime", "openvino", "mnn"]
GFLOP = 52.10  # of the direct form, docs/models/superpoint.md

ENCODER = ["conv1a", "conv1b", "conv2a", "conv2b", "conv3a", "conv3b", "conv4a", "conv4b"]
CHANNELS = {"conv1a": (1, 64), "conv1b": (64, 64), "conv2a": (64, 64), "conv2b": (64, 64), "conv3a": (64, 128),
            "conv3b": (128, 128), "conv4a": (128, 128), "conv4b": (128, 128), "convPa": (128, 256), "convPb": (256, 65),
            "convDa": (128, 256), "convDb": (256, 256)}


def weights(path):
    """Tensors by their original names, from a safetensors file or (path None) by formula."""
    if path:
        return safetensors.read(path)
    out = {}
    for name, (cin, cout) in CHANNELS.items():
        k = 1 if name in ("convPb", "convDb") else 3
        fan = cin * k * k
        w = safetensors.fnv1a_values(name + ".weight", cout * fan) * 2.0 / math.sqrt(fan)
        out[name + ".weight"] = w.astype(np.float32).reshape(cout, cin, k, k)
        out[name + ".bias"] = (safetensors.fnv1a_values(name + ".bias", cout) * 0.05).astype(np.float32)
    return out


def example_inputs():
    return [(np.arange(HEIGHT * WIDTH, dtype=np.float32).reshape(1, 1, HEIGHT, WIDTH) * np.float32(0.37)) % np.float32(1.0)]


def graph(tensors):
    """The ONNX model: opset 13, constant shapes."""
    nodes, constants = [], []

    def constant(name, array):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def conv(x, layer, relu):
        w = constant(layer + ".weight", tensors[layer + ".weight"])
        b = constant(layer + ".bias", tensors[layer + ".bias"])
        k = tensors[layer + ".weight"].shape[-1]
        y = add("Conv", [x, w, b], layer, kernel_shape=[k, k], pads=[k // 2] * 4)
        return add("Relu", [y], layer + "_relu") if relu else y

    x = INPUTS[0]
    for layer in ENCODER:
        x = conv(x, layer, True)
        if layer in ("conv1b", "conv2b", "conv3b"):
            x = add("MaxPool", [x], layer + "_pool", kernel_shape=[2, 2], strides=[2, 2])

    hc, wc = HEIGHT // 8, WIDTH // 8
    logits = conv(conv(x, "convPa", True), "convPb", False)
    p = add("Softmax", [logits], "softmax", axis=1)
    p = add("Slice", [p, constant("from", np.array([0], np.int64)), constant("to", np.array([64], np.int64)),
                      constant("axes", np.array([1], np.int64))], "no_dustbin")
    p = add("DepthToSpace", [p], "unfolded", blocksize=8, mode="DCR")
    add("Reshape", [p, constant("scores_shape", np.array([1, HEIGHT, WIDTH], np.int64))], "scores")

    raw = conv(conv(x, "convDa", True), "convDb", False)
    norm = add("ReduceL2", [raw], "norm", axes=[1], keepdims=1)
    norm = add("Max", [norm, constant("floor", np.array(1e-12, np.float32))], "norm_floor")
    add("Div", [raw, norm], "descriptors")

    info = helper.make_tensor_value_info
    g = helper.make_graph(nodes, "superpoint", [info(INPUTS[0], TensorProto.FLOAT, [1, 1, HEIGHT, WIDTH])],
                          [info("scores", TensorProto.FLOAT, [1, HEIGHT, WIDTH]),
                           info("descriptors", TensorProto.FLOAT, [1, 256, hc, wc])], constants)
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="theodolite")
