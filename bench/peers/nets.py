"""The networks of the comparison by name. Each has INPUTS, OUTPUTS, GFLOP, ENGINES, weights(), graph(), example_inputs() and __doc__."""
import importlib

NAMES = ["superpoint", "moge2-vitl", "moge2-vits", "dust3r"]


def load(name):
    module, _, size = name.partition("-")
    module = importlib.import_module(module)
    if not hasattr(module, "Network"):
        return module
    return module.Network(size) if size else module.Network()
