"""The benchmark's data sets by name: what is known of each, and the check that a copy is whole."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
CIFAR10 = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile
cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp
lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom
oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine
possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake
spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor
train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
DIGITS = tuple(map(str, range(10)))


@dataclass(frozen=True)
class Known:
    """Facts about one data set: shape of an example, rows, class counts, where it comes from.

    `rows` is (training, test); with `share` the file is one part of `rows[0]` rows that is cut at
    random, the seed deciding. `counts_train` and `counts_test` are rows per class, () when unknown.
    """

    shape: tuple[int, ...]
    rows: tuple[int, int]
    classes: tuple[str, ...]
    counts_train: tuple[int, ...]
    counts_test: tuple[int, ...]
    source: str
    share: float | None = None
    writers: bool = False
    labels: Callable[[np.ndarray], np.ndarray] | None = None
    notes: tuple[str, ...] = ()

    @property
    def arrays(self) -> str:
        """In words, the arrays that NAME.npz has to hold."""
        if self.share is not None and self.shape == (47_236,):
            return (
                "data, indices, indptr (a CSR matrix, float32, 47,236 columns) and y "
                f"(int, {self.rows[0]:,} labels -1/1 or 0/1)"
            )
        if self.share is not None:
            return f"x (float, [{self.rows[0]}, {self.shape[0]}]) and y (int, [{self.rows[0]}])"
        train, test = self.rows
        size = [*self.shape[1:], *([3] if self.shape[0] == 3 else [])] or [self.shape[0]]
        dtype = "float32" if len(self.shape) == 1 else "uint8"
        text = (
            f"x_train ({dtype}, {[train, *size]}), y_train (int, [{train}]), "
            f"x_test ({dtype}, {[test, *size]}) and y_test (int, [{test}])"
        )
        return text + ("; writer_train and writer_test (int) give the clients" * self.writers)


def _svhn(y: np.ndarray) -> np.ndarray:
    return y % 10  # the original files write digit 0 as 10


def _signs(y: np.ndarray) -> np.ndarray:
    return (y > 0).astype(np.int64)


def _covtype(y: np.ndarray) -> np.ndarray:
    return y if y.min() == 0 else (y == 2).astype(np.int64)


SETS: dict[str, Known] = {
    "mnist": Known(
        (1, 28, 28), (60_000, 10_000), DIGITS,
        (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
        (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        "LeCun et al., 1998; 28x28 grey digits", writers=True,
    ),
    "fashion_mnist": Known(
        (1, 28, 28), (60_000, 10_000), FASHION, (6000,) * 10, (1000,) * 10,
        "Xiao et al., 2017; 28x28 grey pieces of clothing",
    ),
    "cifar10": Known(
        (3, 32, 32), (50_000, 10_000), CIFAR10, (5000,) * 10, (1000,) * 10,
        "Krizhevsky, 2009; 32x32 colour photographs, 10 classes",
    ),
    "cifar100": Known(
        (3, 32, 32), (50_000, 10_000), tuple(CIFAR100.split()), (500,) * 100, (100,) * 100,
        "Krizhevsky, 2009; 32x32 colour photographs, 100 classes",
    ),
    "svhn": Known(
        (3, 32, 32), (73_257, 26_032), DIGITS,
        (4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659),
        (1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595),
        "Netzer et al., 2011; 32x32 colour house numbers, cropped, without the extra part",
        labels=_svhn,
    ),
    "femnist": Known(
        (1, 28, 28), (341_873, 40_832), DIGITS, (), (),
        "Caldas et al. (LEAF), 2018; 28x28 grey digits of 3,383 writers", writers=True,
        notes=("digits only: 10 of the 62 classes of FEMNIST; white background, dark strokes",),
    ),
    "adult": Known(
        (123,), (32_561, 16_281), ("<=50K", ">50K"), (24_720, 7_841), (12_435, 3_846),
        "Kohavi, 1996, as LIBSVM a9a; 123 binary features", labels=_signs,
    ),
    "rcv1": Known(
        (47_236,), (20_242, 0), ("-1", "1"), (9_751, 10_491), (),
        "Lewis et al., 2004, as LIBSVM rcv1.binary; 47,236 sparse features",
        share=0.75, labels=_signs,
    ),
    "covtype": Known(
        (54,), (581_012, 0), ("other", "lodgepole pine"), (297_711, 283_301), (),
        "Blackard and Dean, 1999, as LIBSVM covtype.binary; 54 features",
        share=0.75, labels=_covtype,
        notes=("features are scaled to 0 to 1 by the range of the training rows",),
    ),
}  # fmt: skip
