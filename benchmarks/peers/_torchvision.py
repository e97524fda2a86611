"""Makes torchvision importable beside a torch without CUDA; import it before what needs it.

The registry's torchvision has operators built for a torch with CUDA. Beside a torch for the
processor alone they can't be loaded, and the import ends at the first one that it describes. No
benchmark calls them, so declaring them is enough.
"""

import torch

DESCRIBED = ("nms", "qnms")

try:
    import torchvision
except RuntimeError as problem:
    if "operator torchvision::" not in str(problem):
        raise
    for name in DESCRIBED:
        torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")
    import torchvision

__all__ = ["torchvision"]
