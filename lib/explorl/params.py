"""One run = one set of parameters: read strictly, checked whole, before anything starts.

``load`` reads a file of ``params/<chapter>/``; ``from_notebook`` takes what papermill or a reader put into a
chapter's parameters cell. Both give a frozen model of :mod:`explorl.params_model`, or one
:class:`ParamsError` with every problem.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from inspect import isclass, ismodule, isroutine
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import ValidationError

from explorl import places, strict_yaml
from explorl.errors import ConfigError
from explorl.params_model import (
    CHAPTERS, UNTRAINED, EMPOParams, ImagineParams, RunParams, SDE2Params, together, trained_arms,
)

__all__ = ["CHAPTERS", "UNTRAINED", "EMPOParams", "ImagineParams", "ParamsError", "RunParams", "SDE2Params", "available",
           "check_values", "from_notebook", "load", "sources", "trained_arms"]


class ParamsError(ConfigError):
    """Everything that is wrong with a set of parameters.

    Attributes:
        problems: one ConfigError per problem.
        field, value, allowed: those of the first problem.
    """

    def __init__(self, problems: list[ConfigError], source: str):
        first = problems[0]
        super().__init__(first.field, first.value, first.allowed)
        self.problems = problems
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        self.args = (f"{source}: {count}" + "".join(f"\n  {problem}" for problem in problems),)


def load(chapter: str | None, scale_or_path: str | os.PathLike, /, **changes: object) -> RunParams:
    """The parameters of a file, with changes.

    Args:
        chapter: such as ``sde2``; None takes the file's own word (for a path).
        scale_or_path: the name of a file of ``params/<chapter>/`` without its suffix, or a path ending in
            ``.yaml``; one that is not under the current folder may also be the book's, ``params/…``.
        changes: values that replace the file's; None means "as the file has it".

    Raises:
        ParamsError: unknown file, or any wrong name or value: all of them at once.

    >>> load("sde2", "smoke", steps=3).steps
    3
    """
    path = _file(chapter, scale_or_path)
    try:
        values = strict_yaml.read(path)
    except ConfigError as problem:
        raise ParamsError([problem], path.name) from problem
    changed = {name: value for name, value in changes.items() if value is not None}
    run = None if "run" in changed else path.stem
    return check_values(values | changed, source=path.name, chapter=chapter, run=run)


def from_notebook(chapter: str, namespace: Mapping[str, object]) -> RunParams:
    """The parameters of a chapter's run, from its notebook's variables.

    The file named by the variable ``run`` (papermill sets it, with all others, from a params file), else by
    the environment's ``EXPLORL_SCALE``, else by ``scale``, gives the values; every variable that carries a
    field's name and is not None replaces one.

    Args:
        chapter: such as ``sde2``.
        namespace: ``globals()`` of the notebook. Modules, functions and classes are not taken for values.

    Raises:
        ParamsError: as :func:`load`; or a params file was given and an import has taken the name ``run``.

    >>> from_notebook("sde2", {"scale": "smoke", "steps": None, "delta": 0.75}).delta
    0.75
    """
    given = {name: namespace[name] for name in _model(chapter).model_fields if _is_value(namespace.get(name))}
    if "run" in given:
        path = places.params_dir() / chapter / f"{given['run']}.yaml"
        base = strict_yaml.read(path) if path.is_file() else {}
        return check_values(base | given, source="the notebook's parameters", chapter=chapter)
    if "chapter" in given and namespace.get("run") is not None:
        problem = ConfigError("run", namespace["run"], "still the params file's: in the notebook, write "
                              "`from explorl.run import …` so that no import takes its name")
        raise ParamsError([problem], "the notebook")
    scale = os.environ.get("EXPLORL_SCALE") or given.get("scale") or "toy"
    given.pop("scale", None)
    return load(chapter, str(scale), **given)


def check_values(values: Mapping[str, object], *, source: str, chapter: str | None = None,
                 run: str | None = None) -> RunParams:
    """Plain values → a model, or all their problems.

    Args:
        values: name → value, ``chapter`` among them.
        source: what to call them in an error.
        chapter: the chapter that is meant, where it is known.
        run: the run that the file's name says, where there is a file.

    Raises:
        ParamsError: at least one problem.
    """
    values = ({"chapter": chapter} if chapter else {}) | dict(values)
    problems = []
    if chapter and values["chapter"] != chapter:
        problems.append(ConfigError("chapter", values["chapter"], f"{chapter!r} here"))
    if run is not None and values.get("run", run) != run:
        allowed_run = f"the file's name, {run!r}: records are filed under it"
        problems.append(ConfigError("run", values["run"], allowed_run))
    model = _model(chapter or values.get("chapter"), source)
    try:
        built = model(**{name: value for name, value in values.items() if name in model.model_fields})
        wrong = set()
    except ValidationError as error:
        single = [e for e in error.errors() if e["loc"]]
        problems += [_problem(model, e) for e in single]
        wrong = {str(e["loc"][0]) for e in single}
        problems += together({n: v for n, v in (_defaults(model) | dict(values)).items() if n not in wrong})
    problems += [_unknown(model, name, values[name]) for name in values if name not in model.model_fields]
    if problems:
        raise ParamsError(problems, source)
    return built


def available(chapter: str) -> list[str]:
    """The names of the parameter files of a chapter."""
    return sorted(path.stem for path in (places.params_dir() / chapter).glob("*.yaml"))


def sources(path: str | os.PathLike) -> dict[str, str]:
    """Field → the comment behind its value in a params file: where the value comes from.

    Args:
        path: of the file, or a pair chapter/name such as ``sde2/toy``.
    """
    file = Path(path) if str(path).endswith(".yaml") else places.params_dir() / f"{path}.yaml"
    return strict_yaml.comments(file.read_text(encoding="utf-8"))


def _model(chapter: object, source: str = "parameters") -> type[RunParams]:
    if not isinstance(chapter, str) or chapter not in CHAPTERS:
        raise ParamsError([ConfigError("chapter", chapter, f"one of {', '.join(CHAPTERS)}")], source)
    return CHAPTERS[chapter]


def _file(chapter: str | None, scale_or_path: str | os.PathLike) -> Path:
    if str(scale_or_path).endswith((".yaml", ".yml")):
        path = Path(scale_or_path)
        if not path.is_file() and not path.is_absolute():  # in Colab params/ lies in the package
            path = places.params_dir().parent / path
        allowed = "a file"
    elif chapter is None:
        raise ParamsError([ConfigError("params", str(scale_or_path), "a path to a .yaml file")], "params")
    else:
        _model(chapter)
        path = places.params_dir() / str(chapter) / f"{scale_or_path}.yaml"
        allowed = f"a path to a .yaml file, or one of {', '.join(available(str(chapter)))}"
    if not path.is_file():
        raise ParamsError([ConfigError("params", str(scale_or_path), allowed)], "params")
    return path


def _is_value(value: object) -> bool:
    return value is not None and not (ismodule(value) or isroutine(value) or isclass(value))


def _defaults(model: type[RunParams]) -> dict[str, object]:
    return {name: field.default for name, field in model.model_fields.items() if not field.is_required()}


def _unknown(model: type[RunParams], name: str, value: object) -> ConfigError:
    near = get_close_matches(name, model.model_fields, n=1)
    return ConfigError(name, value, f"a known name{f' (did you mean {near[0]}?)' if near else ''}")


def _problem(model: type[RunParams], error: Mapping) -> ConfigError:
    """One of pydantic's errors, in our words."""
    name = str(error["loc"][0])
    place = name + "".join(f"[{i}]" for i in error["loc"][1:] if isinstance(i, int))
    if error["type"] == "missing":
        return ConfigError(name, None, f"given: {allowed(model, name)}")
    value = error["input"]
    text = allowed(model, name)
    if isinstance(value, str) and strict_yaml.NUMBER_AS_TEXT.fullmatch(value):
        number = strict_yaml.with_point(value)
        text += f"; YAML reads this as text, write {number}"
    return ConfigError(place, value, text)


def allowed(model: type[RunParams], name: str) -> str:
    """What a field may hold, in words.

    >>> allowed(SDE2Params, "delta"), allowed(SDE2Params, "steps")
    ('a number > 0, < 1', 'a whole number ≥ 1')
    """
    return _describe(model.model_fields[name].annotation, model.model_fields[name].metadata)


def _describe(annotation: object, metadata: list) -> str:
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(map(str, arguments)) if len(arguments) > 1 else repr(arguments[0])
    if annotation in (int, float, str, bool):
        noun = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}[annotation]
        return " ".join([noun, ", ".join(_bounds(metadata))]).strip()
    inner = arguments[0]
    bounded = hasattr(inner, "__metadata__")
    parts = _describe(get_args(inner)[0], get_args(inner)[1:]) if bounded else _describe(inner, [])
    if get_origin(annotation) is list:
        least = "a list of at least one" if any(hasattr(item, "min_length") for item in metadata) else "a list"
        return f"{least}, each {parts}"
    return f"null or {parts}"


def _bounds(metadata) -> list[str]:
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    found = []
    for item in metadata:
        for piece in getattr(item, "metadata", [item]):
            limits = {sign: getattr(piece, name, None) for name, sign in signs.items()}
            found += [f"{sign} {limit}" for sign, limit in limits.items() if limit is not None]
            if getattr(piece, "pattern", None):
                found.append("of letters, digits, dot, dash and underscore")
    return found
