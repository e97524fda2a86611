"""Keep freed memory in the process.

By default the C library gives large blocks back to the system as soon as they are freed, and each
training step then pays for about a thousand page faults to get them again: a quarter to a third of
a small CNN's step.
"""

import ctypes
import sys

MMAP_THRESHOLD, TRIM_THRESHOLD, TOP_PAD = -3, -1, -2  # names of glibc's malloc.h

LARGEST_KEPT = 64 << 20  # bytes; data sets and the like still go back when they are freed


def keep_freed_memory() -> bool:
    """Whether this system's C library could be told; the process then keeps up to 1 GiB unused."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt") or not hasattr(libc, "gnu_get_libc_version"):
        return False
    options = {MMAP_THRESHOLD: LARGEST_KEPT, TRIM_THRESHOLD: 1 << 30, TOP_PAD: LARGEST_KEPT}
    taken = [libc.mallopt(name, value) == 1 for name, value in options.items()]
    return all(taken)
