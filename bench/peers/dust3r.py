"""DUSt3R for the comparison: its weights by formula, its ONNX graph, its input, and what both sides must return.

Boundary: two images [1, 3, 512, 512] in [-1, 1] in; points [512, 512, 3] and confidences [512, 512] of both views out, after the output
activation, contiguous float32. No resizing before or after on either side.
"""
import math

import numpy as np

import graph as graphs
import safetensors

SIDE, PATCH, GRID = 512, 16, 32
TOKENS = GRID * GRID
ENC, DEC = 1024, 768  # widths
ENC_DEPTH, DEC_DEPTH, HEAD = 24, 12, 64
LAYERS, FEATURES, LAST = [96, 192, 384, 768], 256, 128
FNV, PRIME = 0xCBF29CE484222325, 0x100000001B3


def formula(name, shape):
    """The generator's value of a tensor: src/models/formula.h, src/models/dust3r_synth.c."""
    seed = FNV
    for byte in name.encode():
        seed = (seed ^ byte) * PRIME % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, math.prod(shape) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        z ^= z >> np.uint64(31)
    v = (z >> np.uint64(40)).astype(float) / 2**23 - 1
    if len(shape) == 1:
        v = v / 4 + (1 if name.endswith("weight") else 0)
    else:
        v *= 1.5 / math.sqrt(math.prod(shape[1:]))
    return v.astype(np.float32).reshape(shape)


def turn_order(rows):
    """Rows of q and k weights, whose heads (y, y', x, x') in quarters become (y, x, y', x'): rotation then works on halves."""
    order = np.arange(rows).reshape(-1, 4, HEAD // 4)
    return order[:, [0, 2, 1, 3]].ravel()


class Network:
    INPUTS, OUTPUTS = ["image1", "image2"], ["pts1", "conf1", "pts2", "conf2"]
    ENGINES = ["onnxruntime", "openvino"]
    GFLOP = 2566  # by the layers as written
    __doc__ = __doc__

    # -------------------------------------------------------------- weights

    def shapes(self):
        yield "patch_embed.proj.weight", (ENC, 3, PATCH, PATCH)
        yield "patch_embed.proj.bias", (ENC,)
        linear = {"decoder_embed": (DEC, ENC)}
        norms = {"enc_norm": ENC, "dec_norm": DEC}
        for i in range(ENC_DEPTH):
            self.block(linear, norms, f"enc_blocks.{i}", ENC, ["norm1", "norm2"])
        for stem in ("dec_blocks", "dec_blocks2"):
            for i in range(DEC_DEPTH):
                self.block(linear, norms, f"{stem}.{i}", DEC, ["norm1", "norm2", "norm3", "norm_y"])
                linear |= {f"{stem}.{i}.cross_attn.{part}": (DEC, DEC) for part in ("projq", "projk", "projv", "proj")}
        for name, shape in linear.items():
            yield f"{name}.weight", shape
            yield f"{name}.bias", shape[:1]
        for name, width in norms.items():
            yield f"{name}.weight", (width,)
            yield f"{name}.bias", (width,)
        for head in ("downstream_head1.dpt.", "downstream_head2.dpt."):
            yield from self.head_shapes(head)

    @staticmethod
    def block(linear, norms, stem, c, names):
        linear |= {f"{stem}.attn.qkv": (3 * c, c), f"{stem}.attn.proj": (c, c), f"{stem}.mlp.fc1": (4 * c, c), f"{stem}.mlp.fc2": (c, 4 * c)}
        norms |= {f"{stem}.{name}": c for name in names}

    @staticmethod
    def head_shapes(head):
        layers = {}
        for i, (width, side) in enumerate(zip(LAYERS, (4, 2, 0, 3))):
            layers[f"act_postprocess.{i}.0"] = (width, ENC if i == 0 else DEC, 1, 1)
            if side:
                layers[f"act_postprocess.{i}.1"] = (width, width, side, side)
            yield f"{head}scratch.layer{i + 1}_rn.weight", (FEATURES, width, 3, 3)
            fusion = f"scratch.refinenet{i + 1}"
            layers[f"{fusion}.out_conv"] = (FEATURES, FEATURES, 1, 1)
            layers |= {f"{fusion}.resConfUnit{unit}.conv{conv}": (FEATURES, FEATURES, 3, 3)
                       for unit in (1, 2) if (i, unit) != (3, 1) for conv in (1, 2)}
        layers |= {"head.0": (LAST, FEATURES, 3, 3), "head.2": (LAST, LAST, 3, 3), "head.4": (4, LAST, 1, 1)}
        for name, shape in layers.items():
            yield f"{head}{name}.weight", shape
            yield f"{head}{name}.bias", shape[:1]

    def weights(self, path):
        return safetensors.read(path) if path else {name: formula(name, shape) for name, shape in self.shapes()}

    def example_inputs(self):
        count = 3 * SIDE * SIDE
        made = [(np.arange(count, dtype=np.float32) * np.float32(step)) % np.float32(1) * np.float32(2) - np.float32(1) for step in (0.37, 0.41)]
        return [x.reshape(1, 3, SIDE, SIDE) for x in made]

    # -------------------------------------------------------------- graph

    def graph(self, tensors):
        """The ONNX model: opset 17, constant shapes; both images are encoded as one batch, and what is exact to fold is folded (the order
        of channels that rotary positions want, the 1x1 convolutions in front of the enlargements)."""
        g = graphs.Graph(tensors)
        self.turn = self.turns(g)
        features = self.encoder(g)
        views = [g.slice(features, v, v + 1) for v in range(2)]
        x = g.linear(features, "decoder_embed")
        x = [g.slice(x, v, v + 1) for v in range(2)]
        taps = [[view] for view in views]
        for i in range(DEC_DEPTH):
            x = [self.decoder_block(g, f"dec_blocks{'2' if v else ''}.{i}", x[v], x[1 - v]) for v in range(2)]
            if i + 1 in (DEC_DEPTH * 2 // 4, DEC_DEPTH * 3 // 4):
                for v in range(2):
                    taps[v].append(x[v])
        for v in range(2):
            taps[v].append(g.norm(x[v], "dec_norm"))
            self.head(g, v + 1, taps[v])
        outputs = [(f"{name}{v}", [SIDE, SIDE, 3] if name == "pts" else [SIDE, SIDE]) for v in (1, 2) for name in ("pts", "conf")]
        return g.model("dust3r", [(name, [1, 3, SIDE, SIDE]) for name in self.INPUTS], outputs)

    @staticmethod
    def turns(g):
        """Cosines and sines [TOKENS, HEAD / 2]: half of them of y, half of x."""
        quarter = HEAD // 4
        y, x = np.divmod(np.arange(TOKENS), GRID)
        angles = np.concatenate([p[:, None] * 100.0 ** (-np.arange(quarter) / quarter) for p in (y, x)], axis=1)
        return [g.constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin)]

    def turned(self, g, x):
        """Rotates the halves of [batch, heads, tokens, HEAD]."""
        cosine, sine = self.turn
        u, w = g.split(x, 2, axis=3)
        first = g.add("Sub", [g.add("Mul", [u, cosine]), g.add("Mul", [w, sine])])
        second = g.add("Add", [g.add("Mul", [w, cosine]), g.add("Mul", [u, sine])])
        return g.add("Concat", [first, second], axis=3)

    def attention(self, g, q, k, v, batch, c):
        """q, k, v [batch, tokens, c] -> [batch, tokens, c]."""
        q, k, v = (g.add("Transpose", [g.reshape(x, [batch, TOKENS, c // HEAD, HEAD])], perm=[0, 2, 1, 3]) for x in (q, k, v))
        k = g.add("Transpose", [self.turned(g, k)], perm=[0, 1, 3, 2])
        scores = g.add("Mul", [g.add("MatMul", [self.turned(g, q), k]), g.constant(np.float32(1 / 8))])
        y = g.add("MatMul", [g.add("Softmax", [scores], axis=-1), v])
        return g.reshape(g.add("Transpose", [y], perm=[0, 2, 1, 3]), [batch, TOKENS, c])

    def self_attention(self, g, x, block, batch, c):
        qkv = g.linear(g.norm(x, f"{block}.norm1"), f"{block}.attn.qkv", order=np.r_[turn_order(2 * c), 2 * c:3 * c])
        y = self.attention(g, *g.split(qkv, 3, axis=2), batch, c)
        return g.add("Add", [x, g.linear(y, f"{block}.attn.proj")])

    @staticmethod
    def mlp(g, x, block, norm):
        y = g.gelu(g.linear(g.norm(x, f"{block}.{norm}"), f"{block}.mlp.fc1"))
        return g.add("Add", [x, g.linear(y, f"{block}.mlp.fc2")])

    def encoder(self, g):
        """[2, TOKENS, ENC] of both images."""
        images = g.add("Concat", self.INPUTS, axis=0)
        x = g.add("Conv", [images, g.tensor("patch_embed.proj.weight"), g.tensor("patch_embed.proj.bias")], strides=[PATCH, PATCH])
        x = g.add("Transpose", [g.reshape(x, [2, ENC, TOKENS])], perm=[0, 2, 1])
        for i in range(ENC_DEPTH):
            x = self.mlp(g, self.self_attention(g, x, f"enc_blocks.{i}", 2, ENC), f"enc_blocks.{i}", "norm2")
        return g.norm(x, "enc_norm")

    def decoder_block(self, g, block, x, y):
        memory = g.norm(y, f"{block}.norm_y")
        x = self.self_attention(g, x, block, 1, DEC)
        q = g.linear(g.norm(x, f"{block}.norm2"), f"{block}.cross_attn.projq", order=turn_order(DEC))
        k = g.linear(memory, f"{block}.cross_attn.projk", order=turn_order(DEC))
        y = self.attention(g, q, k, g.linear(memory, f"{block}.cross_attn.projv"), 1, DEC)
        x = g.add("Add", [x, g.linear(y, f"{block}.cross_attn.proj")])
        return self.mlp(g, x, block, "norm3")

    # -------------------------------------------------------------- head

    @staticmethod
    def enlarge(g, x):
        return g.add("Resize", [x, "", g.constant(np.array([1, 1, 2, 2], np.float32))], mode="linear",
                     coordinate_transformation_mode="align_corners")

    @staticmethod
    def unit(g, x, name):
        y = g.conv(g.add("Relu", [x]), f"{name}.conv1", pad=1)
        return g.add("Add", [x, g.conv(g.add("Relu", [y]), f"{name}.conv2", pad=1)])

    def head(self, g, view, taps):
        head = f"downstream_head{view}.dpt."
        layers = []
        for i, tap in enumerate(taps):
            c = ENC if i == 0 else DEC
            x = g.reshape(g.add("Transpose", [tap], perm=[0, 2, 1]), [1, c, GRID, GRID])
            act = f"{head}act_postprocess.{i}"
            x = g.conv(x, f"{act}.0")
            if i < 2:
                x = g.add("ConvTranspose", [x, g.tensor(f"{act}.1.weight"), g.tensor(f"{act}.1.bias")], strides=[4 >> i, 4 >> i])
            elif i == 3:
                x = g.conv(x, f"{act}.1", pad=1, stride=2)
            layers.append(g.conv(x, f"{head}scratch.layer{i + 1}_rn", pad=1, bias=False))
        x = layers[3]
        for i in (3, 2, 1, 0):
            fusion = f"{head}scratch.refinenet{i + 1}"
            if i < 3:
                x = g.add("Add", [x, self.unit(g, layers[i], f"{fusion}.resConfUnit1")])
            x = self.enlarge(g, g.conv(self.unit(g, x, f"{fusion}.resConfUnit2"), f"{fusion}.out_conv"))
        x = self.enlarge(g, g.conv(x, f"{head}head.0", pad=1))
        x = g.conv(g.add("Relu", [g.conv(x, f"{head}head.2", pad=1)]), f"{head}head.4")
        self.activate(g, x, view)

    @staticmethod
    def activate(g, raw, view):
        """pts = xyz / d expm1(d), d = |xyz|; conf = 1 + exp."""
        x = g.add("Transpose", [g.reshape(raw, [4, SIDE, SIDE])], perm=[1, 2, 0])
        xyz, conf = g.slice(x, 0, 3, axis=2), g.slice(x, 3, 4, axis=2)
        d = g.add("Max", [g.add("ReduceL2", [xyz], axes=[2], keepdims=1), g.constant(np.float32(1e-8))])
        factor = g.add("Div", [g.add("Sub", [g.add("Exp", [d]), g.constant(np.float32(1))]), d])
        g.add("Mul", [xyz, factor], output=f"pts{view}")
        g.add("Add", [g.add("Exp", [g.reshape(conf, [SIDE, SIDE])]), g.constant(np.float32(1))], output=f"conf{view}")
