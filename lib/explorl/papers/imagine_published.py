"""Where Gaojingtong/IMAGINE at 44d1632 gives something else than :mod:`explorl.papers.imagine`; for teaching.

Its networks, mask, decay and order are ours with :data:`~explorl.papers.imagine_config.OFFICIAL`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def minmax(errors: Sequence[float], alpha: float = 0.5) -> np.ndarray:
    """α(r − min)/(max − min) with no guard: NaN where all errors are equal (``main_iMENTOR.py:53-56``).

    >>> minmax([0.2, 0.2]).tolist(), minmax([0.1, 0.3]).tolist()
    ([nan, nan], [0.0, 0.5])
    """
    errors = np.asarray(errors, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return alpha * (errors - errors.min()) / (errors.max() - errors.min())


def group_advantages(scores: Sequence[float], *, eps: float = 1e-10) -> np.ndarray:
    """One group's advantages in float32 with no guard (``core_algos.py:147-157``); a lone score is its advantage.

    A group of equal scores is not always 0: rounding of the mean is divided by a deviation of about the same size.

    >>> group_advantages([0.1]).round(3).tolist(), group_advantages([0.5, 0.5]).tolist()
    ([0.10000000149011612], [0.0, 0.0])
    """
    import torch

    values = torch.tensor(list(scores), dtype=torch.float32)
    if len(values) == 1:
        return values.numpy()
    return ((values - values.mean()) / (values.std() + eps)).numpy()
