"""MoGe-2 for the comparison: its weights by formula, its ONNX graph, its input, and what both sides must return.

Boundary: normalised picture [1, 3, 448, 798] in (1800 tokens of a 1920x1080 photo); raw points [1, 3, 512, 912], normals [1, 3, 512, 912],
mask [1, 1, 512, 912] and the metric scale [1] out, contiguous float32. No resizing before or after on either side.
"""
import math
import zlib

import numpy as np

import graph as graphs
import safetensors

ROWS, COLUMNS, PATCH, TABLE, HEAD = 32, 57, 14, 37, 64
ASPECT = 1920 / 1080
LEVELS = range(5)
HEADS = {"points": 3, "normal": 3, "mask": 1}
SIZES = {"vits": (384, 12, [5, 11], 1), "vitl": (1024, 24, [5, 11, 17, 23], 2)}  # width, depth, taps, residual blocks of the neck
GFLOPS = {"vits": 555, "vitl": 1935}  # by the layers as written, docs/models/moge2.md


def formula(name, shape):
    """The generator's value of a tensor: src/models/moge_synth.c."""
    count = math.prod(shape)
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(zlib.crc32(name.encode()))
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
        x ^= x >> np.uint32(16)
    v = (x.astype(float) + 0.5) / 2**31 - 1
    if name.endswith("image_mean"):
        v = np.array([0.485, 0.456, 0.406])
    elif name.endswith("image_std"):
        v = np.array([0.229, 0.224, 0.225])
    elif name.endswith(".gamma"):
        v = 0.5 + 0.25 * v
    elif name.endswith(("cls_token", "pos_embed", "mask_token")):
        v = 0.3 * v
    elif len(shape) == 1:
        v = 1 + 0.1 * v if name.endswith(".weight") else 0.1 * v
    else:
        transposed = ".resamplers." in name and name.endswith(".0.weight")
        v = v * math.sqrt(3 / (shape[0] if transposed else math.prod(shape[1:])))
    return v.astype(np.float32).reshape(shape)


def axis_weights(n):
    """[n, TABLE] weights of the table's resampling along one axis."""
    w = np.zeros((n, TABLE))
    for o in range(n):
        x = TABLE / (n + 0.1) * (o + 0.5) - 0.5
        first = math.floor(x)
        for k in range(first - 1, first + 3):
            d, a = abs(x - k), -0.75
            w[o, min(max(k, 0), TABLE - 1)] += ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return w


class Network:
    INPUTS, OUTPUTS = ["picture"], ["points", "normal", "mask", "metric_scale"]
    ENGINES = ["onnxruntime", "openvino"]
    __doc__ = __doc__

    def __init__(self, size):
        self.width, self.depth, self.taps, self.neck_blocks = SIZES[size]
        self.GFLOP = GFLOPS[size]
        self.widths = [self.width, 256, 128, 64, 32]

    # -------------------------------------------------------------- weights

    def shapes(self):
        c, d, e = self.width, self.widths, "encoder.backbone."
        yield from {"encoder.image_mean": (1, 3, 1, 1), "encoder.image_std": (1, 3, 1, 1), e + "cls_token": (1, 1, c),
                    e + "pos_embed": (1, 1 + TABLE * TABLE, c), e + "patch_embed.proj.weight": (c, 3, PATCH, PATCH),
                    e + "patch_embed.proj.bias": (c,), e + "norm.weight": (c,), e + "norm.bias": (c,)}.items()
        for i in range(self.depth):
            for name, shape in (("attn.qkv", (3 * c, c)), ("attn.proj", (c, c)), ("mlp.fc1", (4 * c, c)), ("mlp.fc2", (c, 4 * c)),
                                ("norm1", (c,)), ("norm2", (c,))):
                yield f"{e}blocks.{i}.{name}.weight", shape
                yield f"{e}blocks.{i}.{name}.bias", shape[:1]
            yield f"{e}blocks.{i}.ls1.gamma", (c,)
            yield f"{e}blocks.{i}.ls2.gamma", (c,)
        layers = {f"encoder.output_projections.{k}": (c, c, 1, 1) for k in range(len(self.taps))}
        layers |= {f"scale_head.{2 * i}": (c if i < 2 else 1, c) for i in range(3)}
        for stack in ["neck", *(f"{head}_head" for head in HEADS)]:
            for level in LEVELS:
                inputs = (c + 2 if level == 0 else 2) if stack == "neck" else d[level]
                layers[f"{stack}.input_blocks.{level}"] = (d[level], inputs, 1, 1)
                for j in range(0 if level in (0, 4) else self.neck_blocks if stack == "neck" else 1):
                    for part in (2, 5):
                        layers[f"{stack}.res_blocks.{level}.{j}.layers.{part}"] = (d[level], d[level], 3, 3)
                if level < 3:
                    yield f"{stack}.resamplers.{level}.0.weight", (d[level], d[level + 1], 2, 2)
                    yield f"{stack}.resamplers.{level}.0.bias", (d[level + 1],)
                if level < 4:
                    layers[f"{stack}.resamplers.{level}.1"] = (d[level + 1], d[level + 1] if level < 3 else d[level], 3, 3)
        layers |= {f"{head}_head.output_blocks.4": (channels, d[4], 1, 1) for head, channels in HEADS.items()}
        for name, shape in layers.items():
            yield f"{name}.weight", shape
            yield f"{name}.bias", shape[:1]

    def weights(self, path):
        return safetensors.read(path) if path else {name: formula(name, shape) for name, shape in self.shapes()}

    def example_inputs(self):
        shape = 1, 3, PATCH * ROWS, PATCH * COLUMNS
        return [(np.arange(math.prod(shape), dtype=np.float32).reshape(shape) * np.float32(0.37)) % np.float32(1) * np.float32(4) - np.float32(2)]

    # -------------------------------------------------------------- graph

    def graph(self, tensors):
        """The ONNX model: opset 17, constant shapes, what is exact to fold folded (LayerScale)."""
        g = graphs.Graph(tensors)
        taps, cls = self.encoder(g)
        neck = self.stack(g, "neck", [g.add("Concat", [taps, uv(g, 0)], axis=1), *(uv(g, level) for level in LEVELS[1:])])
        for head in HEADS:
            g.conv(self.stack(g, f"{head}_head", neck)[4], f"{head}_head.output_blocks.4", output=head)
        y = cls
        for i in range(3):
            y = g.linear(y, f"scale_head.{2 * i}")
            y = g.add("Relu", [y]) if i < 2 else y
        g.add("Exp", [g.reshape(y, [1])], output="metric_scale")
        h, w = 16 * ROWS, 16 * COLUMNS
        return g.model("moge2", [(self.INPUTS[0], [1, 3, PATCH * ROWS, PATCH * COLUMNS])],
                       [*((head, [1, channels, h, w]) for head, channels in HEADS.items()), ("metric_scale", [1])])

    def encoder(self, g):
        c, t, tokens, e = self.width, g.tensors, 1 + ROWS * COLUMNS, "encoder.backbone."
        table = t[e + "pos_embed"][0, 1:].reshape(TABLE, TABLE, c).astype(float)
        grid = np.einsum("yi,xj,ijc->yxc", axis_weights(ROWS), axis_weights(COLUMNS), table).reshape(ROWS * COLUMNS, c)
        x = g.add("Conv", [self.INPUTS[0], g.tensor(e + "patch_embed.proj.weight"), g.tensor(e + "patch_embed.proj.bias")], strides=[PATCH, PATCH])
        x = g.add("Transpose", [g.reshape(x, [c, ROWS * COLUMNS])], perm=[1, 0])
        x = g.add("Add", [x, g.constant(grid.astype(np.float32))])
        x = g.add("Concat", [g.constant(t[e + "cls_token"][0] + t[e + "pos_embed"][0, :1]), x], axis=0)
        features = None
        for i in range(self.depth):
            b = f"{e}blocks.{i}."
            qkv = g.reshape(g.linear(g.norm(x, b + "norm1"), b + "attn.qkv"), [tokens, 3, c // HEAD, HEAD])
            q, k, v = (g.add("Squeeze", [part, g.constant(np.array([1]))]) for part in g.split(qkv, 3, axis=1))
            q, v = (g.add("Transpose", [part], perm=[1, 0, 2]) for part in (q, v))
            k = g.add("Transpose", [k], perm=[1, 2, 0])
            scores = g.add("Mul", [g.add("MatMul", [q, k]), g.constant(np.float32(1 / 8))])
            y = g.add("MatMul", [g.add("Softmax", [scores], axis=-1), v])
            y = g.reshape(g.add("Transpose", [y], perm=[1, 0, 2]), [tokens, c])
            x = g.add("Add", [x, g.linear(y, b + "attn.proj", b + "ls1.gamma")])
            y = g.linear(g.norm(x, b + "norm2"), b + "mlp.fc1")
            x = g.add("Add", [x, g.linear(g.gelu(y), b + "mlp.fc2", b + "ls2.gamma")])
            if i in self.taps:
                y = g.norm(x, e + "norm")
                cls = g.slice(y, 0, 1)
                y = g.add("Transpose", [g.slice(y, 1, tokens)], perm=[1, 0])
                y = g.conv(g.reshape(y, [1, c, ROWS, COLUMNS]), f"encoder.output_projections.{self.taps.index(i)}")
                features = g.add("Add", [features, y]) if features else y
        return features, cls

    def stack(self, g, name, inputs):
        outputs, x = [], None
        for level in LEVELS:
            y = g.conv(inputs[level], f"{name}.input_blocks.{level}")
            x = g.add("Add", [x, y]) if x else y
            for j in range(0 if level in (0, 4) else self.neck_blocks if name == "neck" else 1):
                block = f"{name}.res_blocks.{level}.{j}.layers."
                y = g.conv_replicate(g.add("Relu", [x]), block + "2")
                x = g.add("Add", [x, g.conv_replicate(g.add("Relu", [y]), block + "5")])
            outputs.append(x)
            up = f"{name}.resamplers.{level}"
            if level < 3:
                x = g.add("ConvTranspose", [x, g.tensor(up + ".0.weight"), g.tensor(up + ".0.bias")], strides=[2, 2])
            elif level == 3:
                x = g.add("Resize", [x, "", g.constant(np.array([1, 1, 2, 2], np.float32))], mode="linear",
                          coordinate_transformation_mode="half_pixel")
            if level < 4:
                x = g.conv_replicate(x, up + ".1")
        return outputs


def uv(g, level):
    """View-plane coordinates [1, 2, h, w] of a level."""
    h, w, r = ROWS << level, COLUMNS << level, math.sqrt(1 + ASPECT * ASPECT)
    u, v = ASPECT / r * (2 * np.arange(w) + 1 - w) / w, (2 * np.arange(h) + 1 - h) / h / r
    return g.constant(np.stack(np.broadcast_arrays(u[None, :], v[:, None]))[None].astype(np.float32))
