"""Every chapter's parameters by its name; :mod:`explorl.params` reads them from files and notebooks."""

from __future__ import annotations

from typing import get_args

from explorl.params_empo import EMPOParams
from explorl.params_imagine import ImagineParams
from explorl.params_rules import UNTRAINED, together
from explorl.params_run import NOT_TRAINING, RunParams
from explorl.params_sde2 import SDE2Params

__all__ = ["CHAPTERS", "NOT_TRAINING", "UNTRAINED", "EMPOParams", "ImagineParams", "RunParams", "SDE2Params",
           "together", "trained_arms"]

CHAPTERS: dict[str, type[RunParams]] = {"sde2": SDE2Params, "empo": EMPOParams, "imagine": ImagineParams}
"""Chapter → its parameters."""


def trained_arms(chapter: str) -> tuple[str, ...]:
    """The arms of a chapter that are trained.

    >>> trained_arms("empo")
    ('empo', 'empo_log', 'vote', 'supervised', 'random', 'sft')
    """
    of_list = get_args(CHAPTERS[chapter].model_fields["arms"].annotation)[0]
    return tuple(arm for arm in get_args(of_list) if arm not in UNTRAINED)
