"""ONNX graphs in the making: nodes over named weights. Opset 17, constant shapes."""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Every method gives the name of its result. tensors: weights by name."""

    def __init__(self, tensors):
        self.tensors, self.nodes, self.constants, self.named = tensors, [], [], {}

    def constant(self, array):
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array) if np.ndim(array) else np.array(array), name))
        return name

    def tensor(self, name):
        if name not in self.named:
            self.named[name] = self.constant(self.tensors[name])
        return self.named[name]

    def add(self, op, inputs, output=None, **attributes):
        output = output or f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def reshape(self, x, shape):
        return self.add("Reshape", [x, self.constant(np.array(shape))])

    def slice(self, x, first, end, axis=0):
        return self.add("Slice", [x, *(self.constant(np.array([n])) for n in (first, end, axis))])

    def split(self, x, count, axis):
        names = [f"part{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node("Split", [x], names, name=names[0], axis=axis))
        return names

    def norm(self, x, name):
        return self.add("LayerNormalization", [x, self.tensor(name + ".weight"), self.tensor(name + ".bias")], axis=-1, epsilon=1e-6)

    def linear(self, x, name, scale=None, order=None):
        """scale: name of a factor for each output; order: of the outputs."""
        factor = self.tensors[scale] if scale else np.float32(1)
        weight, bias = self.tensors[name + ".weight"], self.tensors[name + ".bias"]
        if order is not None:
            weight, bias = weight[order], bias[order]
        weight = self.constant((weight.T * factor).astype(np.float32))
        return self.add("Add", [self.add("MatMul", [x, weight]), self.constant(bias * factor)])

    def gelu(self, x):
        erf = self.add("Erf", [self.add("Div", [x, self.constant(np.float32(math.sqrt(2)))])])
        return self.add("Mul", [self.add("Mul", [x, self.add("Add", [erf, self.constant(np.float32(1))])]), self.constant(np.float32(0.5))])

    def conv(self, x, name, output=None, pad=0, stride=1, bias=True):
        weights = [self.tensor(name + part) for part in ((".weight", ".bias") if bias else (".weight",))]
        return self.add("Conv", [x, *weights], output=output, pads=[pad] * 4, strides=[stride] * 2)

    def conv_replicate(self, x, name):
        """3x3 with the edge repeated around the map."""
        return self.conv(self.add("Pad", [x, self.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1]))], mode="edge"), name)

    def model(self, name, inputs, outputs):
        inputs, outputs = ([helper.make_tensor_value_info(key, TensorProto.FLOAT, shape) for key, shape in part] for part in (inputs, outputs))
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="theodolite")
