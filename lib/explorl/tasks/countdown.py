"""Countdown: reach a target with the given numbers, each used exactly once, by ``+ - * /`` and parentheses.

:func:`generate` makes solvable problems by rejection, as such data is usually made: numbers from 1 to 99 and a target
from 10 to 100, drawn until a search finds a solution whose every step is a whole number of at least 0. Each problem
carries that solution. Three and four numbers take equal shares, which is our choice.

:func:`load` reads the two published sets, ``Jiayi-Pan/Countdown-Tasks-3to4`` and ``Jiayi-Pan/Countdown-Tasks-4`` (at
``main``: their commits could not be established), from the hub or from ``countdown_3to4.jsonl`` and
``countdown_4.jsonl`` with the hub's fields ``target`` and ``nums``. IMAGINE trains on rows 0 to 32,767 and tests on the
1,024 after them (``examples/data_preprocess/countdown.py`` of Gaojingtong/IMAGINE at 44d1632) without looking for
copies; here a training row whose numbers and target are among the tested ones is left out.

``meta`` of a problem: ``task``, ``numbers``, ``target``, ``witness`` (a solution; generated problems alone) and
``needs_times_or_divide``: plus and minus alone do not reach the target. A policy that never multiplies solves most
problems of three numbers, so accuracy on these is to be reported apart. Grade with
:func:`explorl.text.countdown.score`: many expressions are right, and ``gold`` is only the target.
"""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, split_by_key
from explorl.tasks.source import Row, Source, each
from explorl.text.countdown import TEMPLATES, needs_times_or_divide, solve
from explorl.text.countdown_search import MAX_NUMBERS

GRADER = "countdown"
"""No equality of :mod:`explorl.text.equivalence`: there is no one answer to be equal to."""
SOURCES = {
    "3to4": Source("countdown", "countdown_3to4.jsonl", "Jiayi-Pan/Countdown-Tasks-3to4", "main", "train"),
    "4": Source("countdown", "countdown_4.jsonl", "Jiayi-Pan/Countdown-Tasks-4", "main", "train"),
}
TRAIN_ROWS, TEST_ROWS = 32_768, 1_024
PATIENCE = 5_000
"""After so many draws in a row without a new problem, there are taken to be none left."""


@dataclass(frozen=True)
class World:
    """What is drawn from.

    Attributes:
        sizes: how many numbers a problem has; problem i has ``sizes[i % len(sizes)]``. 1 to 6 each.
        numbers: the smallest and the largest number, ≥ 0.
        targets: the smallest and the largest target, ≥ 0.
        integer_steps: whether a solution must do without fractions on the way.
    """

    sizes: tuple[int, ...] = (3, 4)
    numbers: tuple[int, int] = (1, 99)
    targets: tuple[int, int] = (10, 100)
    integer_steps: bool = True

    def __post_init__(self):
        if not self.sizes or not all(1 <= size <= MAX_NUMBERS for size in self.sizes):
            raise ConfigError("sizes", self.sizes, f"one or more counts from 1 to {MAX_NUMBERS}")
        for name in ("numbers", "targets"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise ConfigError(name, (low, high), "a smallest and a largest whole number of at least 0")

    def problems_at_most(self, size: int) -> int:
        """Multisets of numbers times targets, solvable or not."""
        span = self.numbers[1] - self.numbers[0] + 1
        return math.comb(span + size - 1, size) * (self.targets[1] - self.targets[0] + 1)


def generate(count: int, *, seed: int, world: World | None = None) -> list[Problem]:
    """``count`` different solvable problems, the same ones for the same seed and world.

    Two problems differ if their targets do or their numbers do, in whatever order; see :func:`key_of`.

    Args:
        count: ≥ 0.
        seed: any integer.
        world: None for :class:`World`'s defaults.

    Raises:
        ConfigError: ``count`` is negative, or there are not so many problems: at once where counting shows it, else
            after :data:`PATIENCE` draws without a new one.

    >>> p = generate(1, seed=0)[0]
    >>> p.prompt, p.gold, p.meta["witness"]
    ('Numbers: [20, 5, 11]. Target: 26.', '26', '(20 - 5) + 11')
    """
    world = world or World()
    if count < 0:
        raise ConfigError("count", count, "at least 0")
    for position, size in enumerate(world.sizes):
        share = len(range(position, count, len(world.sizes)))
        if share > world.problems_at_most(size):
            raise ConfigError("count", count, f"at most {world.problems_at_most(size)} per entry {size} of sizes")
    generator, seen, found = random.Random(seed), set(), []
    for size in itertools.islice(itertools.cycle(world.sizes), count):
        problem = _draw(generator, size, world, seen)
        if problem is None:
            raise ConfigError("count", count, f"at most {len(found)}: {PATIENCE} draws in a row of {size} numbers "
                                              f"and a target gave no new solvable problem of {world}")
        seen.add(problem.key)
        found.append(problem)
    return found


def key_of(numbers: Sequence[int], target: int) -> str:
    """The same for two problems that differ only in the order of their numbers.

    >>> key_of([44, 19, 35], 98)
    '19,35,44=98'
    """
    return ",".join(map(str, sorted(numbers))) + f"={target}"


def load(source: str = "3to4", *, rows: int | None = TRAIN_ROWS + TEST_ROWS,
         data_dir: str | os.PathLike | None = None) -> list[Problem]:
    """The first ``rows`` problems of a published set, in their order, copies included; None reads them all.

    Args:
        source: ``3to4`` or ``4``.
        rows: None, or at least 1.
        data_dir: folder with local files; wins over ``EXPLORL_DATA`` and the hub.

    Raises:
        ConfigError: unknown source, wrong ``rows``, data not available, or a malformed row (with its number).
    """
    if source not in SOURCES:
        raise ConfigError("source", source, f"one of {', '.join(SOURCES)}")
    if rows is not None and rows < 1:
        raise ConfigError("rows", rows, "None or at least 1")
    read = itertools.islice(each(SOURCES[source], data_dir), rows)
    return [_from_row(row, f"{SOURCES[source].file}, row {number}") for number, row in enumerate(read, start=1)]


def splits(*, source: str = "generated", train: int = TRAIN_ROWS, test: int = TEST_ROWS, select: float = 0.02,
           seed: int = 0, world: World | None = None, data_dir: str | os.PathLike | None = None) -> Split:
    """Train, select and test, with no problem in two of them.

    Args:
        source: ``generated``, or a published set: then the first ``train`` rows train and the next ``test`` test.
        train: problems to train on and to choose settings with, ≥ 1.
        test: problems to test on, ≥ 1.
        select: share of ``train`` set aside for choosing settings, in [0, 1).
        seed: of the problems, where they are generated, and of the deal.
        world: of the generated problems.
        data_dir: as in :func:`load`.

    Raises:
        ConfigError: a wrong size, or fewer problems than asked for; and those of :func:`generate` and :func:`load`.
    """
    for name, value in (("train", train), ("test", test)):
        if value < 1:
            raise ConfigError(name, value, "at least 1")
    if not 0 <= select < 1:
        raise ConfigError("select", select, "in [0, 1)")
    if source == "generated":
        every = generate(train + test, seed=seed, world=world)
        share = train / (train + test)
        return split_by_key(every, (share * (1 - select), share * select, 1 - share), seed)
    every = load(source, rows=train + test, data_dir=data_dir)
    if len(every) < train + test:
        raise ConfigError("train", train, f"with test at most {len(every)}, the rows of {SOURCES[source].file}")
    tested = {problem.key for problem in every[train:]}
    kept = [problem for problem in every[:train] if problem.key not in tested]
    return split_by_key(kept, (1 - select, select, 0.0), seed).tested_on(every[train:])


_TASK = """\
The numbers are {numbers} and the target is {target}. Combine all the numbers with + - * / and parentheses so that the \
result is the target. Every number has to be used exactly once. Do your work inside <think> </think>, then give only \
the expression inside <answer> </answer>, like this: <answer> (9 - 4) * 3 </answer>."""
_CAST = "You are a careful assistant who reasons step by step before giving an answer."
_PRIMER = "Let me work this out one step at a time.\n<think>"
_FORMS = {
    "base": "Below, a user asks and an assistant, who thinks before answering, replies.\n"
            "User: {task}\nAssistant: {primer}",
    "qwen-instruct": "<|im_start|>system\n{cast}<|im_end|>\n<|im_start|>user\n{task}<|im_end|>\n"
                     "<|im_start|>assistant\n{primer}",
}


def render(problem: Problem, template: str = "base") -> str:
    """The text that the policy continues, with the thinking tag open; it needs no chat template on top.

    In our own words with TinyZero's slots, but for one: all numbers have to be used, as its scorer wants and its prompt
    does not say. ``Assistant:`` and ``<|im_start|>assistant`` stand where its scorer cuts.

    Args:
        problem: of this task.
        template: ``base`` or ``qwen-instruct``.

    Raises:
        ConfigError: unknown template.

    >>> render(generate(1, seed=0)[0])[-59:]
    'Assistant: Let me work this out one step at a time.\\n<think>'
    """
    if template not in TEMPLATES:
        raise ConfigError("template", template, "one of " + ", ".join(TEMPLATES))
    task = _TASK.format(numbers=list(problem.meta["numbers"]), target=problem.meta["target"])
    return _FORMS[template].format(task=task, cast=_CAST, primer=_PRIMER)


def asked(parts: Split, template: str = "base") -> Split:
    """The same split, each prompt as :func:`render` has it."""
    return Split(*(tuple(replace(p, prompt=render(p, template)) for p in part)
                   for part in (parts.train, parts.select, parts.test)))


def _draw(generator: random.Random, size: int, world: World, seen: set[str]) -> Problem | None:
    for _ in range(PATIENCE):
        target = generator.randint(*world.targets)
        numbers = [generator.randint(*world.numbers) for _ in range(size)]
        if key_of(numbers, target) in seen:
            continue
        witness = solve(numbers, target, integer_steps=world.integer_steps)
        if witness is not None:
            return _problem(numbers, target, {"witness": witness})
    return None


def _problem(numbers: Sequence[int], target: int, more: dict) -> Problem:
    meta = {"task": "countdown", "numbers": tuple(numbers), "target": target,
            "needs_times_or_divide": needs_times_or_divide(numbers, target)}
    return Problem(f"Numbers: {list(numbers)}. Target: {target}.", str(target), key_of(numbers, target), meta | more)


def _from_row(row: Row, where: str) -> Problem:
    numbers, target = row.get("nums"), row.get("target")
    whole = isinstance(numbers, list) and numbers and all(type(n) is int and n >= 0 for n in numbers)
    if not whole or len(numbers) > MAX_NUMBERS:
        raise ConfigError(f"{where}, nums", numbers, f"1 to {MAX_NUMBERS} whole numbers of at least 0")
    if type(target) is not int:
        raise ConfigError(f"{where}, target", target, "a whole number")
    return _problem(numbers, target, {})
