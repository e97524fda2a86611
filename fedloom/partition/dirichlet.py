"""Dirichlet draws that stay exact and finite however small alpha is."""

import numpy as np


def log_gammas(
    rng: np.random.RandomState, alpha: float | np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """Logarithms of independent Gamma(alpha) draws, float64 `shape`; alpha fits the last axis.

    log Gamma(alpha) = log Gamma(alpha + 1) + log(U) / alpha in law, which never underflows.
    """
    large = np.log(rng.standard_gamma(np.add(alpha, 1.0), shape))
    return large + np.log1p(-rng.random_sample(shape)) / alpha


def softmax(logs: np.ndarray) -> np.ndarray:
    """Proportions over the last axis; an entry of -inf gets exactly 0."""
    top = logs.max(axis=-1, keepdims=True)
    powers = np.exp(logs - top)
    return powers / powers.sum(axis=-1, keepdims=True)
