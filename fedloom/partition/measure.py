"""How skewed a partition is, in numbers."""

from dataclasses import dataclass

import numpy as np

from fedloom.partition.partition import BLOCK, Partition


@dataclass(frozen=True, eq=False)
class Skew:
    """Measured skew; means leave empty clients out, and `num_empty` counts them."""

    counts: np.ndarray
    """int64 [N, C] rows of each class at each client."""
    sizes: np.ndarray
    """int64 [N] rows a client."""
    classes_per_client: np.ndarray
    """int64 [N] distinct labels a client."""
    tv_per_client: np.ndarray
    """float64 [N] total variation distance of a client's label shares from those of all rows, in
    0..1; NaN for an empty client."""
    entropy_per_client: np.ndarray
    """float64 [N] entropy of a client's label shares in nats; NaN for an empty client."""
    tv: float
    """Plain mean of `tv_per_client`; small clients raise it by chance."""
    tv_weighted: float
    """Mean of `tv_per_client` weighted by size: the one to judge label skew by."""
    size_imbalance: float
    """N times the sum of squared size shares: 1 for equal sizes, N when one client has all."""
    entropy: float
    """Mean of `entropy_per_client`, nats."""
    entropy_global: float
    """Entropy of the label shares of all rows, nats."""
    num_empty: int


def measure(partition: Partition) -> Skew:
    """Label and quantity skew of a partition."""
    counts, sizes = partition.count_matrix, partition.sizes
    full = sizes > 0
    whole = partition.class_counts / max(1, int(partition.class_counts.sum()))
    tv = np.full(len(sizes), np.nan)
    entropy = np.full(len(sizes), np.nan)
    step = max(1, BLOCK // partition.num_classes)
    for start in range(0, len(sizes), step):
        here = start + np.flatnonzero(full[start : start + step])
        shares = counts[here] / sizes[here, None]  # [N', C]
        tv[here] = np.abs(shares - whole).sum(1) / 2
        entropy[here] = _entropy(shares)
    weight = sizes[full] / sizes.sum()
    return Skew(
        counts=counts,
        sizes=sizes,
        classes_per_client=(counts > 0).sum(1),
        tv_per_client=tv,
        entropy_per_client=entropy,
        tv=float(tv[full].mean()),
        tv_weighted=float(weight @ tv[full]),
        size_imbalance=float(len(sizes) * (weight**2).sum()),
        entropy=float(entropy[full].mean()),
        entropy_global=float(_entropy(whole[None])[0]),
        num_empty=int((~full).sum()),
    )


def _entropy(shares: np.ndarray) -> np.ndarray:
    """Nats over the last axis; a share of 0 adds nothing."""
    logs = np.log(shares, where=shares > 0, out=np.zeros_like(shares))
    return np.maximum(0.0, -(shares * logs).sum(-1))
