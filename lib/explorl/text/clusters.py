"""Clusters of answers that mean the same: EMPO's Algorithm 1, the published variants, and a faster exact scheme.

Algorithm 1 (Section 3.2) takes the answers in sampling order and compares each with one representative, the
first member, of every cluster so far. "Equal" is anything that says whether two answers mean the same. It need
not be transitive (1/2 ~ 50% ~ 50), so order and rule matter, and union-find is no substitute.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from explorl.errors import ConfigError

RULES = ("first_match", "last_match", "connected")
"""What to do with an answer that equals several representatives: see :func:`greedy`."""

EQUALS_NOTHING = math.nan
"""The bucket of an answer that equals nothing, not even itself."""

Equal = Callable[[str, str], bool]


def greedy(items: Sequence[str | None], equal: Equal, *, rule: str = "first_match") -> list[int]:
    r"""Cluster answers by comparing each with the representatives before it (Algorithm 1).

    A blank (``None``, empty, only spaces) opens a cluster of its own and is never a representative.

    Args:
        items: G answers in sampling order.
        equal: called as ``equal(representative, answer)``, the representative being the earlier one; not asked
            about equal strings.
        rule: ``first_match``: the first representative that equals the answer (the paper; verl code);
            ``last_match``: the last one (TRL code); ``connected``: everything that a chain of equal pairs joins
            (what union-find would give; for comparison only).

    Returns:
        G cluster numbers, counted from 0 in order of first appearance.

    Raises:
        ConfigError: unknown rule.

    Source: ``semantic_uncertainty.py:87-133`` and ``compute_metrics.py:85-127`` of QingyangZhang/EMPO at
    c5eccd4. Deviations: none for the first two rules; ``connected`` is in neither code.

    >>> greedy(["0.5", "1/2", "", "7", "0.5"], lambda a, b: {a, b} <= {"0.5", "1/2"} or a == b)
    [0, 0, 1, 2, 0]
    """
    _check(rule)
    if hasattr(equal, "group"):
        equal = equal.group()
    if rule == "connected":
        return _connected(items, equal)
    ids: list[int] = []
    representatives: list[tuple[int, str]] = []
    for item in items:
        known = [] if is_blank(item) else representatives if rule == "first_match" else reversed(representatives)
        found = next((number for number, first in known if first == item or equal(first, item)), None)
        if found is None:
            found = max(ids, default=-1) + 1
            if not is_blank(item):
                representatives.append((found, item))
        ids.append(found)
    return ids


def fast(items: Sequence[str | None], equivalence: Equal, *, rule: str = "first_match") -> list[int]:
    r"""The partition of :func:`greedy`, from fewer comparisons; a bare callable gets :func:`greedy` itself.

    Two answers that both have a bucket (:class:`explorl.text.equivalence.Equivalence`), such as plain integers,
    are compared by their buckets; no pair of strings is compared twice.

    Args:
        items: G answers in sampling order.
        equivalence: as in :func:`greedy`; its ``group()`` is asked, so that a budget holds for these answers
            together. Pass that view itself to ask it for :meth:`reason` afterwards.
        rule: as in :func:`greedy`.

    Returns:
        G cluster numbers, counted from 0 in order of first appearance.

    Raises:
        ConfigError: unknown rule.

    >>> from explorl.text.equivalence import load
    >>> fast(["1/2", "50", r"50\%", "0.5", "50"], load("math"))
    [0, 1, 0, 0, 1]
    """
    if not hasattr(equivalence, "bucket"):
        return greedy(items, equivalence, rule=rule)
    view = equivalence.group()
    keys = {item: EQUALS_NOTHING if is_blank(item) else view.bucket(item) for item in set(items)}
    if None not in keys.values():
        _check(rule)
        return _by_key([keys[item] for item in items])
    verdicts: dict[tuple[str, str], bool] = {}

    def equal(first: str, item: str) -> bool:
        one, other = keys[first], keys[item]
        if one is not None and other is not None:
            return one == other
        if (first, item) not in verdicts:
            verdicts[first, item] = view(first, item)
        return verdicts[first, item]

    return greedy(items, equal, rule=rule)


def sizes(ids: Sequence[int]) -> list[int]:
    """How many answers each cluster holds, in order of first appearance.

    >>> sizes([0, 0, 1, 2, 0])
    [3, 1, 1]
    """
    return list(Counter(ids).values())


def entropy_nats(ids: Sequence[int]) -> float:
    """Semantic entropy H = -Σ p(c) log p(c), with p(c) = count / G (Eqs. 3 and 4); 0 for no answers.

    >>> round(entropy_nats([0, 0, 0, 1]), 6), entropy_nats([0, 0])
    (0.562335, 0.0)
    """
    shares = [count / len(ids) for count in sizes(ids)]
    return sum((-share * math.log(share) for share in shares if share < 1), start=0.0)


def is_blank(item: object) -> bool:
    """Whether there is no answer: ``None``, an empty string, or only spaces."""
    return item is None or (isinstance(item, str) and not item.strip())


def _check(rule: str) -> None:
    if rule not in RULES:
        raise ConfigError("rule", rule, "one of " + ", ".join(RULES))


def _by_key(keys: Sequence[Hashable]) -> list[int]:
    """Clusters of equal keys, which every rule agrees on."""
    numbers: dict[Hashable, int] = {}
    ids: list[int] = []
    clusters = 0
    for key in keys:
        number = clusters if key is EQUALS_NOTHING else numbers.setdefault(key, clusters)
        clusters += number == clusters
        ids.append(number)
    return ids


def _connected(items: Sequence[str | None], equal: Equal) -> list[int]:
    """Components of the graph of equal pairs, each pair asked at most once, the earlier answer first."""
    group = list(range(len(items)))
    for late, item in enumerate(items):
        for early in range(late):
            if group[early] == group[late] or is_blank(items[early]) or is_blank(item):
                continue
            if items[early] == item or equal(items[early], item):
                joined, kept = group[late], group[early]
                group = [kept if member == joined else member for member in group]
    numbers: dict[int, int] = {}
    return [numbers.setdefault(member, len(numbers)) for member in group]
