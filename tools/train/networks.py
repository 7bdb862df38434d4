"""The two networks of the training: MagicPoint as the teacher, and the SuperPoint that is trained from its layers."""
import json
import struct

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FROZEN = ("conv1", "conv2", "conv3")  # layers up to the third pool stay MagicPoint's


def load_safetensors(path):
    """All float32 tensors of a file, by name."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        body = f.read()
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            lo, hi = entry["data_offsets"]
            out[name] = torch.from_numpy(np.frombuffer(body[lo:hi], "<f4").reshape(entry["shape"]).copy())
    return out


def save_safetensors(path, tensors, metadata):
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        a = np.ascontiguousarray(tensors[name].detach().float().numpy())
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
        offset += a.nbytes
        blobs.append(a.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class MagicPoint(nn.Module):
    """Scores of the published MagicPoint: convolution, ReLU, batch norm (eps 1e-5), pool after the first three blocks."""

    def __init__(self, state):
        super().__init__()
        self.state = {name: value.float() for name, value in state.items() if value.is_floating_point()}

    def _norm(self, x, name):
        s = self.state
        return F.batch_norm(x, s[name + ".running_mean"], s[name + ".running_var"], s[name + ".weight"], s[name + ".bias"], eps=1e-5)

    def forward(self, x):
        """[B, 1, H, W] in [0, 1] -> scores [B, 1, H, W]."""
        s = self.state
        for block in (1, 2, 3, 4):
            for half in (1, 2):
                name = f"backbone.block{block}_{half}"
                x = F.relu(F.conv2d(x, s[name + ".0.weight"], s[name + ".0.bias"], padding=1))
                x = self._norm(x, name + ".2")
            if block < 4:
                x = F.max_pool2d(x, 2)
        head = "detector_head."
        x = F.relu(F.conv2d(x, s[head + "convPa.weight"], s[head + "convPa.bias"], padding=1))
        x = self._norm(x, head + "bnPa")
        x = self._norm(F.conv2d(x, s[head + "convPb.weight"], s[head + "convPb.bias"]), head + "bnPb")
        return F.pixel_shuffle(F.softmax(x, 1)[:, :64], 8)


class Student(nn.Module):
    """SuperPoint's layers and names. The trunk is frozen; conv4 and the detector head start from MagicPoint and are held to a
    frozen copy of themselves by distillation; the descriptor head starts from random values."""

    def __init__(self, detector, descriptor_dim=256):
        super().__init__()
        self.frozen = dict(detector)
        for name, (cin, cout, kernel) in {
            "conv4a": (128, 128, 3), "conv4b": (128, 128, 3), "convPa": (128, 256, 3), "convPb": (256, 65, 1),
            "convDa": (128, 256, 3), "convDb": (256, descriptor_dim, 1),
        }.items():
            layer = nn.Conv2d(cin, cout, kernel, padding=kernel // 2)
            if name + ".weight" in detector and not name.startswith("convD"):
                layer.weight.data.copy_(detector[name + ".weight"])
                layer.bias.data.copy_(detector[name + ".bias"])
            setattr(self, name, layer)
        nn.init.kaiming_normal_(self.convDa.weight, nonlinearity="relu")
        nn.init.zeros_(self.convDa.bias)
        nn.init.normal_(self.convDb.weight, std=0.05)
        nn.init.zeros_(self.convDb.bias)

    def _fixed(self, name, x):
        w = self.frozen[name + ".weight"]
        return F.conv2d(x, w, self.frozen[name + ".bias"], padding=w.shape[-1] // 2)

    def forward(self, x):
        """[B, 1, H, W] -> logits [B, 65, H/8, W/8], unit descriptors [B, 256, H/8, W/8], logits of the frozen copy."""
        with torch.no_grad():
            for block in (1, 2, 3):
                x = F.relu(self._fixed(f"conv{block}b", F.relu(self._fixed(f"conv{block}a", x))))
                x = F.max_pool2d(x, 2)
            t = F.relu(self._fixed("conv4b", F.relu(self._fixed("conv4a", x))))
            target = self._fixed("convPb", F.relu(self._fixed("convPa", t)))
        f = F.relu(self.conv4b(F.relu(self.conv4a(x))))
        logits = self.convPb(F.relu(self.convPa(f)))
        descriptors = F.normalize(self.convDb(F.relu(self.convDa(f))), dim=1)
        return logits, descriptors, target

    def all_tensors(self):
        """The 24 tensors of a SuperPoint checkpoint, by their original names."""
        return {**{k: v for k, v in self.frozen.items() if k.startswith(FROZEN)}, **self.state_dict()}

    def parameter_groups(self):
        """The descriptor head learns at the full rate, what came from MagicPoint at 0.3 of it."""
        new = [p for n, p in self.named_parameters() if n.startswith("convD")]
        old = [p for n, p in self.named_parameters() if not n.startswith("convD")]
        return [{"params": new, "factor": 1.0}, {"params": old, "factor": 0.3}]


def sample_descriptors(maps, points):
    """Unit descriptors [B, C, K] at pixel points [B, K, 2] by the field's default rule (docs/models/superpoint.md, sampling a)."""
    h, w = maps.shape[2:]
    x = (points[..., 0] - 3.5) / (w * 8 - 4.5)
    y = (points[..., 1] - 3.5) / (h * 8 - 4.5)
    grid = (torch.stack([x, y], -1) * 2 - 1).float()
    return F.normalize(F.grid_sample(maps, grid[:, None], mode="bilinear", align_corners=True)[:, :, 0], dim=1)
