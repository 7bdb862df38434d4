"""The networks of the comparison by name. Each has INPUT, OUTPUTS, GFLOP, ENGINES, weights(), graph(), example_input() and __doc__."""
import importlib

NAMES = ["superpoint", "moge2-vitl", "moge2-vits"]


def load(name):
    module, _, size = name.partition("-")
    module = importlib.import_module(module)
    return module.Network(size) if size else module
