"""YAML without its surprises: one mapping of names to plain values, read so that a slip is an error.

PyYAML follows YAML 1.1, where ``no`` is false, ``010`` is eight, ``1:30`` is ninety, ``3e-4`` is text. Here
only ``true`` and ``false`` are flags, only decimal numbers are numbers, and a name may stand once.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from explorl.errors import ConfigError

NUMBER_AS_TEXT = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)[eE][-+]?\d+")


class _Loader(yaml.SafeLoader):
    """SafeLoader with its own, shorter list of what a bare word may mean."""

    yaml_implicit_resolvers: dict = {}

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise ConfigError(f"line {key_node.start_mark.line + 1}", key, "a name, as text")
            if key in seen:
                raise ConfigError(key, f"given again in line {key_node.start_mark.line + 1}", "given once")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


for _tag, _pattern, _first in (
    ("bool", r"(true|false)$", "tf"),
    ("int", r"[-+]?(0|[1-9][0-9_]*)$", "-+0123456789"),
    ("float", r"[-+]?([0-9][0-9_]*\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|[-+]?\.inf$|\.nan$", "-+.0123456789"),
    ("null", r"(~|null|)$", ["~", "n", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def loads(text: str, *, name: str = "the parameters") -> dict[str, object]:
    """Read one YAML mapping.

    Args:
        text: the file's content.
        name: what to call it in an error.

    Raises:
        ConfigError: not YAML, not a mapping, a name given twice, or a name that is not text.

    >>> loads("steps: 300\\nlearning_rate: 3.0e-4\\nanswer: no")
    {'steps': 300, 'learning_rate': 0.0003, 'answer': 'no'}
    """
    try:
        values = yaml.load(text, Loader=_Loader)  # noqa: S506  (a SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "unreadable"
        detail = getattr(error, "problem", None) or type(error).__name__
        raise ConfigError(name, where, f"YAML ({detail})") from error
    if not isinstance(values, dict):
        raise ConfigError(name, type(values).__name__, "lines of the form 'name: value'")
    return values


def read(path: Path) -> dict[str, object]:
    """Read a parameter file; see :func:`loads`.

    Raises:
        ConfigError: as :func:`loads`, or the file can't be read as text.
    """
    try:
        return loads(path.read_text(encoding="utf-8"), name=path.name)
    except (OSError, UnicodeDecodeError) as error:
        allowed = f"a readable UTF-8 file ({type(error).__name__})"
        raise ConfigError("params file", path.name, allowed) from error


def comments(text: str) -> dict[str, str]:
    """What stands behind each value as a comment: in our files, where the value comes from.

    >>> comments('delta: 0.8   # SD-E2, section 4.2')
    {'delta': 'SD-E2, section 4.2'}
    """
    root, lines, found = yaml.compose(text, Loader=_Loader), text.splitlines(), {}
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        end = value.end_mark
        rest = lines[end.line][end.column:] if end.line < len(lines) else ""
        if "#" in rest:
            found[key.value] = rest.split("#", 1)[1].strip()
    return found


def with_point(number: str) -> str:
    """A number that YAML takes for text, written so that every YAML reader takes it for a number.

    >>> with_point("3e-4"), with_point("2E6")
    ('3.0e-4', '2.0e+6')
    """
    mantissa, exponent = number.lower().split("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{exponent if exponent[0] in '+-' else '+' + exponent}"
