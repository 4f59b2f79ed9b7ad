"""Hand a number from a code cell to the prose around it, so that no number in prose is ever typed."""

from typing import Any

import numpy as np

PREFIX = "application/papermill.record/"


def bundle(name: str, value: object) -> tuple[dict[str, str], dict[str, Any]]:
    """The output that ``{glue:text}`` in the book reads, as data and metadata.

    Jupyter and Colab do not know the record's type and show the plain ``name = value`` instead; the book takes
    the output away and shows the value inside the sentence. The layout is scrapbook's, which myst-nb reads; myst-nb
    itself is not imported, so that a chapter runs where only this package is installed.

    Args:
        name: the key that the prose uses, ``{glue:text}`name:.3f```.
        value: a number or a text; a numpy scalar is turned into the plain number.

    Returns:
        The data by mime type, and the metadata.

    >>> data, metadata = bundle("accuracy", 0.5)
    >>> data["text/plain"], data["application/papermill.record/text/plain"]
    ('accuracy = 0.5', '0.5')
    """
    plain = value.item() if isinstance(value, np.generic) else value
    data = {PREFIX + "text/plain": repr(plain), "text/plain": f"{name} = {plain}"}
    return data, {"scrapbook": {"name": name, "mime_prefix": PREFIX}}


def glue(name: str, value: object) -> None:
    """Show ``value`` under ``name`` in the running notebook; does nothing outside one.

    >>> glue("accuracy", 0.5)
    """
    try:
        from IPython import get_ipython
    except ModuleNotFoundError:
        return
    if get_ipython() is not None:
        from IPython.display import display

        data, metadata = bundle(name, value)
        display(data, metadata=metadata, raw=True)
