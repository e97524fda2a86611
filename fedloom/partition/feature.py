"""Feature skew by noise: how much each client's inputs get."""

import math
import warnings
from numbers import Real

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import checks

NOISE_RULES = ("niid_code", "paper", "summary")


def noise_std(rule: str, sigma: float, num_clients: int) -> np.ndarray:
    """Standard deviation of each client's Gaussian noise, float64 [N], in units of the inputs.

    Three definitions are in use, for client i = 0 .. N - 1:

    - `niid_code`: std = sigma * i / (N - 1), behind every published number;
    - `paper`: variance = sigma * (i + 1) / N;
    - `summary`: variance = sigma^2 * (i + 1) / N.

    One client alone divides by zero under `niid_code`: its noise is 0, with a warning.
    Source: Li et al., ICDE 2022, arXiv:2102.02079: its code, its text, and a summary of it.

    >>> noise_std("niid_code", 0.1, 3).tolist()
    [0.0, 0.05, 0.1]
    """
    checks.choice("noise rule", rule, NOISE_RULES)
    count = checks.whole("the number of clients", num_clients, 1)
    if isinstance(sigma, bool) or not isinstance(sigma, Real) or not 0 <= sigma < math.inf:
        raise PartitionError(f"noise sigma must be a finite number of at least 0, not {sigma!r}")
    position = np.arange(count, dtype=np.float64)
    if rule == "paper":
        return np.sqrt(sigma * (position + 1) / count)
    if rule == "summary":
        return sigma * np.sqrt((position + 1) / count)
    if count == 1:
        if sigma > 0:
            warnings.warn(
                "niid_code noise grows from client 0 to the last, so a single client gets none; "
                "use two clients or more, or another noise rule",
                stacklevel=2,
            )
        return np.zeros(1)
    return sigma * position / (count - 1)
