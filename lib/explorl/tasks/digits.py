"""Digits: a small world in which no single strategy covers the problems.

A problem gives three numbers and the *last digit* of the answer. Which of six stories produced the answer is
hidden, so a solver must try stories, compute each one's outcome, and keep the outcome whose last digit fits::

    Numbers: 7, 4, 9. The answer ends in 7.

    <strategy id="1"><reasoning>…the sum of all three is the total.</reasoning>
    <strategy_outcome>7 + 4 = 11, 11 + 9 = 20</strategy_outcome></strategy>
    <strategy id="2"><reasoning>…see a rectangle's area, side times side, and add an extra strip.</reasoning>
    <strategy_outcome>7 * 4 = 28, 28 + 9 = 37</strategy_outcome></strategy>
    <final_answer>37</final_answer>

No story covers more than 30 % of the problems; trying different ones covers more; repeating one in other words
covers nothing new. That is the world SD-E² speaks about, at a size where a policy learns in two minutes on a CPU.

Each story has four wordings, so that a sentence encoder sees paraphrases (cosine about 0.9) as well as other
stories (about 0.5), and there are sentences that have nothing to do with the problem (about 0.0).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from explorl.tasks.problem import Problem, Split, split_by_key
from explorl.text.answers import same
from explorl.text.strategies import parse

LOW, HIGH = 2, 9
FRAME = "To find the missing answer from the three numbers, "


@dataclass(frozen=True)
class Rule:
    """One story: two operations on the numbers (a, b, c), and the ways in which it is told.

    Attributes:
        name: how figures call it.
        order: positions (0, 1, 2) of the numbers: the first operation joins the first two, the second adds the last.
        signs: the two operations, of ``+ - *``.
        wordings: four sentences that say the same.
    """

    name: str
    order: tuple[int, int, int]
    signs: tuple[str, str]
    wordings: tuple[str, str, str, str]

    def work(self, numbers: Sequence[int]) -> tuple[str, int]:
        """The written calculation and its value.

        >>> RULES[1].work((7, 4, 9))
        ('7 * 4 = 28, 28 + 9 = 37', 37)
        """
        x, y, z = (numbers[i] for i in self.order)
        between = _apply(x, self.signs[0], y)
        value = _apply(between, self.signs[1], z)
        return f"{x} {self.signs[0]} {y} = {between}, {between} {self.signs[1]} {z} = {value}", value


def _apply(x: int, sign: str, y: int) -> int:
    return x + y if sign == "+" else x - y if sign == "-" else x * y


RULES: tuple[Rule, ...] = (
    Rule("total", (0, 1, 2), ("+", "+"), (
        "add all three of them to get one total.",
        "sum everything up into one total.",
        "put all three together into one sum.",
        "the sum of all three is the total.",
    )),
    Rule("area", (0, 1, 2), ("*", "+"), (
        "multiply two as the sides of a rectangle, then add the third as an extra strip of area.",
        "see a rectangle's area, side times side, and add an extra strip.",
        "the area of a rectangle comes from two sides, then add a strip.",
        "find the area of a rectangle and add the extra strip of area.",
    )),
    Rule("tickets", (0, 1, 2), ("+", "*"), (
        "join two families first, then pay one ticket price for each person.",
        "count the people of both families, then pay each person's ticket.",
        "two families together, times the price of a ticket per person.",
        "add the people of two families, then multiply by the ticket price.",
    )),
    Rule("discount", (0, 1, 2), ("*", "-"), (
        "pay for the items at one price, then take a coupon off the bill.",
        "work out the shopping bill, then subtract the coupon.",
        "items times price makes the bill, and a coupon makes it cheaper.",
        "multiply items by price for the bill, then use the coupon.",
    )),
    Rule("travel", (1, 2, 0), ("*", "+"), (
        "start with a head start on the road, then add speed times hours.",
        "the distance is the head start plus speed times hours driven.",
        "drive at some speed for hours, after a head start on the road.",
        "add the head start to the distance driven, speed times hours.",
    )),
    Rule("orchard", (1, 2, 0), ("*", "-"), (
        "multiply the rows of trees, then leave out those lost to frost.",
        "count the trees in rows and remove the trees lost to frost.",
        "rows of trees were planted, but subtract the trees killed by frost.",
        "trees stand in rows, and the frost takes some of the trees away.",
    )),
)

OFF_TOPIC: tuple[str, ...] = (
    "The queen moved to the balcony and waved at the crowd.",
    "Whales sing to one another across the cold ocean.",
    "My grandmother's soup tastes best with fresh bread.",
    "The orchestra tuned its violins before the concert.",
    "Volcanoes shape the islands of the Pacific.",
    "He painted the old bicycle bright red.",
)

STORY_OF: dict[str, str] = {
    **{FRAME + wording: rule.name for rule in RULES for wording in rule.wordings},
    **dict.fromkeys(OFF_TOPIC, "off_topic"),
}
"""Reasoning sentence → the story that it tells, or ``off_topic``."""


def prompt_text(numbers: Sequence[int], last_digit: int) -> str:
    """The problem as the policy reads it."""
    return f"Numbers: {numbers[0]}, {numbers[1]}, {numbers[2]}. The answer ends in {last_digit}."


def block(index: int, sentence: str, outcome: str) -> str:
    """One strategy block of the schema, ``index`` counted from 1."""
    return (f'<strategy id="{index}"><reasoning>{sentence}</reasoning>'
            f"<strategy_outcome>{outcome}</strategy_outcome></strategy>")


def problems() -> list[Problem]:
    """All problems, in a fixed order: every ordered triple of numbers 2–9 under every story, kept where all
    outcomes are ≥ 0 and no other story's outcome ends in the same digit.

    >>> p = problems()[0]
    >>> p.prompt, p.gold
    ('Numbers: 2, 2, 2. The answer ends in 8.', '8')
    """
    found = []
    for numbers in itertools.product(range(LOW, HIGH + 1), repeat=3):
        values = {rule.name: rule.work(numbers)[1] for rule in RULES}
        digits = [value % 10 for value in values.values()]
        if min(values.values()) < 0:
            continue
        for name, value in values.items():
            if digits.count(value % 10) > 1:
                continue
            key = ",".join(map(str, numbers))
            found.append(Problem(prompt=prompt_text(numbers, value % 10), gold=str(value), key=key,
                                 meta={"numbers": numbers, "story": name}))
    return found


def load(*, seed: int = 0, fractions: tuple[float, float, float] = (0.6, 0.15, 0.25)) -> Split:
    """The three-way split: train, select (to choose among settings), test (read once, for the report).

    All problems on one triple of numbers stay on one side. The default seed is the one the packaged policy was
    warm-started with; another seed leaks its training triples into the test side.
    """
    return split_by_key(problems(), fractions, seed=seed)


def demonstration(problem: Problem, generator: random.Random, *, habit: Sequence[float], blocks: int,
                  stay: float = 0.0, off_topic: float = 0.0) -> str:
    """One supervised trace: correct arithmetic and a checked final answer, but a habit-bound choice of stories.

    The final answer is the first outcome whose last digit fits, or the last outcome where none fits.

    Args:
        problem: of this world.
        generator: the only source of randomness.
        habit: six weights, how often a fresh strategy tells each story of :data:`RULES`.
        blocks: how many strategies to write, ≥ 1.
        stay: probability that the next strategy repeats the last story in other words.
        off_topic: probability that a strategy's sentence has nothing to do with the problem.
    """
    numbers, text, outcomes, rule = problem.meta["numbers"], "", [], None
    for index in range(1, 1 + blocks):
        if rule is None or generator.random() >= stay:
            rule = generator.choices(RULES, habit)[0]
        sentence = FRAME + generator.choice(rule.wordings)
        if generator.random() < off_topic:
            sentence = generator.choice(OFF_TOPIC)
        outcome, value = rule.work(numbers)
        outcomes.append(value)
        text += block(index, sentence, outcome)
    fits = [v for v in outcomes if v % 10 == int(problem.gold) % 10]
    return f"{text}<final_answer>{(fits or outcomes[-1:])[0]}</final_answer>"


def solution(problem: Problem, generator: random.Random, *, tries: int = 50) -> str:
    """A trace that ends in the right answer: the first that does among random ones that know all stories.

    Args:
        problem: of this world.
        generator: the only source of randomness.
        tries: after so many, the hidden story is told at once.

    >>> p = problems()[0]
    >>> parse(solution(p, random.Random(0))).final == p.gold
    True
    """
    for _ in range(tries):
        text = demonstration(problem, generator, habit=[1.0] * len(RULES), blocks=generator.randint(1, 5))
        if same(parse(text).final, problem.gold):
            return text
    rule = next(r for r in RULES if r.name == problem.meta["story"])
    story = block(1, FRAME + generator.choice(rule.wordings), rule.work(problem.meta["numbers"])[0])
    return f"{story}<final_answer>{problem.gold}</final_answer>"


def describe(completions: Sequence[str], problems: Sequence[Problem]) -> dict[str, float]:
    """What the completions do in this world, as means over completions or strategies.

    Returns:
        ``stories`` distinct stories per completion (0 to 6); ``off_topic`` share of strategies off topic;
        ``arithmetic`` share of on-topic strategies whose outcome is what their story gives; ``covered`` share of
        completions in which the hidden story was told; ``share_<story>`` share of strategies per story.
    """
    told, distinct, right, covered = [], [], [], []
    for text, problem in zip(completions, problems, strict=True):
        here = []
        for sentence, outcome in parse(text, dup_key="none").strategies:
            name = STORY_OF.get(sentence, "other")
            here.append(name)
            rule = next((r for r in RULES if r.name == name), None)
            if rule:
                right.append(same(outcome, str(rule.work(problem.meta["numbers"])[1])))
        told += here
        distinct.append(len({n for n in here if n not in ("off_topic", "other")}))
        covered.append(problem.meta["story"] in here)
    share = {f"share_{r.name}": told.count(r.name) / max(len(told), 1) for r in RULES}
    return {
        "stories": sum(distinct) / max(len(distinct), 1),
        "off_topic": told.count("off_topic") / max(len(told), 1),
        "arithmetic": sum(right) / max(len(right), 1),
        "covered": sum(covered) / max(len(covered), 1),
    } | share
