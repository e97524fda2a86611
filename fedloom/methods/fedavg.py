"""FedAvg."""

from fedloom.method import Method


class FedAvg(Method):
    """FedAvg: the weighted mean of what the clients' local training arrives at.

        w <- w + server_lr * sum_i p_i (w_i - w),    p_i = n_i / sum_j n_j

    Source: McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized
    Data, AISTATS 2017, arXiv:1602.05629, Alg. 1.
    Departs: nothing; `weighting="uniform"` counts every client alike.

    >>> FedAvg().weighting
    'examples'
    """
