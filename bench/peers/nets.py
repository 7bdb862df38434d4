"""The networks of the comparison by name. Each has INPUTS, OUTPUTS, GFLOP, ENGINES, weights(), graph(), example_inputs() and __doc__."""
import importlib

NAMES = ["superpoint", "moge2-vitl", "moge2-vits", "dust3r"]


def named(name):
    """The networks that `name` stands for: one, or all sizes of a family (moge2)."""
    return [each for each in NAMES if name in (each, each.partition("-")[0])]


def load(name):
    module, _, size = name.partition("-")
    module = importlib.import_module(module)
    if not hasattr(module, "Network"):
        return module
    return module.Network(size) if size else module.Network()
