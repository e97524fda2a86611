"""Sets that need no file: `fcube` and `blobs` are computed, `digits` comes with scikit-learn."""

import numpy as np

from fedloom.data.dataset import Dataset
from fedloom.data.holdout import stratified
from fedloom.errors import ConfigError
from fedloom.rng import stream


def fcube(seed: int = 0, sign: int = 1) -> Dataset:
    """FCUBE: 4,000 points in the cube [-1, 1]^3, exactly 500 in each octant, labelled by x1.

    Label 1 where x1 >= 0 (sign=1) or where x1 < 0 (sign=-1). Zero counts as positive. The 1,000
    test points are uniform in the cube.

    Source: Li et al., Federated Learning on Non-IID Data Silos: An Experimental Study, ICDE 2022.
    Departs: octants are drawn one by one, so their sizes are exact; the original negates every
    second point instead and labels with sign=-1.
    """
    if sign not in (1, -1):
        raise ConfigError(f"fcube: sign={sign!r}; expected 1 or -1")
    draw = stream(seed, "data", "fcube")
    octants = np.arange(4000)[:, None] // 500 >> np.array([2, 1, 0]) & 1  # [4000, 3]
    size = draw.random_sample((4000, 3))
    x_train = np.where(octants == 1, size, size - 1.0)[draw.permutation(4000)].astype(np.float32)
    x_test = draw.uniform(-1, 1, (1000, 3)).astype(np.float32)

    def label(x: np.ndarray) -> np.ndarray:
        return (x[:, 0] >= 0 if sign == 1 else x[:, 0] < 0).astype(np.int64)

    return Dataset(
        name="fcube",
        x_train=x_train,
        y_train=label(x_train),
        x_test=x_test,
        y_test=label(x_test),
        classes=("0", "1"),
        kind="table",
        features=("x1", "x2", "x3"),
        test_rule="1,000 points, uniform in the cube",
        source=f"generated, seed {seed}, sign {sign}",
    )


def blobs(seed: int = 0, spread: float = 0.85) -> Dataset:
    """Ten classes of two Gaussian modes each in 20 dimensions; 10,000 training and 4,000 test rows.

    Centres are standard normal, rows lie around them with standard deviation `spread`; a small
    network reaches about 98 % at the default. Classes and modes are equally frequent.
    """
    if not spread > 0:
        raise ConfigError(f"blobs: spread={spread!r}; expected a number above 0")
    draw = stream(seed, "data", "blobs")
    centres = draw.standard_normal((20, 20))

    def part(rows: int) -> tuple[np.ndarray, np.ndarray]:
        mode = draw.permutation(np.arange(rows) % 20)
        x = centres[mode] + spread * draw.standard_normal((rows, 20))
        return x.astype(np.float32), (mode // 2).astype(np.int64)

    x_train, y_train = part(10_000)
    x_test, y_test = part(4_000)
    return Dataset(
        name="blobs",
        x_train=x_train,
        y_train=y_train,
        x_test=x_test,
        y_test=y_test,
        classes=tuple(map(str, range(10))),
        kind="table",
        features=tuple(f"x{i + 1}" for i in range(20)),
        test_rule="4,000 rows of the same mixture",
        source=f"generated, seed {seed}, spread {spread}",
    )


def digits(seed: int = 0) -> Dataset:
    """1,797 grey images of handwritten digits, uint8 [n, 1, 8, 8], from scikit-learn.

    The 17 grey levels 0 to 16 are stretched to 0 to 255. The split is fixed, whatever the seed.

    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998, test part.
    """
    from sklearn.datasets import load_digits

    raw = load_digits()
    x = np.rint(raw.images * (255 / 16)).astype(np.uint8)[:, None]
    y = raw.target.astype(np.int64)
    train, test = stratified(y, 0.2, seed=0)
    return Dataset(
        name="digits",
        x_train=x[train],
        y_train=y[train],
        x_test=x[test],
        y_test=y[test],
        classes=tuple(map(str, range(10))),
        kind="image",
        test_rule="20 % of the rows, stratified, fixed",
        source="scikit-learn",
    )


SETS = {"fcube": fcube, "blobs": blobs, "digits": digits}
