"""The one error that a wrong setting raises."""


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
