"""The one error that a wrong setting raises, and how settings are checked."""

import math


class ConfigError(ValueError):
    """A setting is wrong: says which field, the value it had, and what is allowed.

    >>> raise ConfigError("delta", 1.5, "a number between 0 and 1")
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: delta = 1.5: must be a number between 0 and 1
    """

    def __init__(self, field: str, value: object, allowed: str):
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field} = {value!r}: must be {allowed}")


def require(holds: bool, field: str, value: object, allowed: str) -> None:
    """Raise ConfigError(field, value, allowed) unless the condition holds."""
    if not holds:
        raise ConfigError(field, value, allowed)


def require_amount(field: str, value: object, *, above_zero: bool = False) -> None:
    """Raise ConfigError unless the value is a finite number ≥ 0 (> 0 with ``above_zero``)."""
    holds = is_between(value, 0, math.inf) and value < math.inf and (value > 0 or not above_zero)
    require(holds, field, value, "a finite number above 0" if above_zero else "a finite number from 0 up")


def is_between(value: object, low: float, high: float) -> bool:
    """Whether a value is a real number in [low, high]; NaN and booleans are in no interval."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
