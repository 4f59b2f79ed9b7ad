"""Clusters of equal answers: the published partitions, the rules, and the fast scheme."""

import json
import math
import random
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorl.errors import ConfigError
from explorl.text import equivalence, math_budget
from explorl.text.clusters import RULES, entropy_nats, fast, greedy, sizes
from explorl.text.math_process import WORKER

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import clusters as benchmark  # noqa: E402

VECTORS = json.loads((Path(__file__).parent / "vectors" / "empo.json").read_text(encoding="utf-8"))
GROUPS = VECTORS["groups"]
MATH = equivalence.load("math")
PUBLISHED = {
    "reference": (lambda group: group["both"]["ids"], "math", "first_match"),
    "one way": (lambda group: group["forward_ids"], "math_one_way", "first_match"),
    "TRL, first release": (lambda group: group["official"]["trl_first_release_ids"], "math_one_way", "last_match"),
    "TRL": (lambda group: group["official"]["trl_head_ids"], "exact", "last_match"),
    "verl": (lambda group: group["official"]["verl_head_ids"], "loose", "first_match"),
}


@pytest.mark.parametrize("cluster", [greedy, fast])
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group["name"])
@pytest.mark.parametrize("version", PUBLISHED)
def test_partitions_of_every_published_version(version, group, cluster):
    expected, name, rule = PUBLISHED[version]
    assert cluster(group["answers"], equivalence.load(name), rule=rule) == expected(group)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group["name"])
def test_shares_and_entropy(group):
    ids = group["both"]["ids"]
    assert [count / len(ids) for count in sizes(ids)] == pytest.approx(group["both"]["p"], abs=1e-12)
    assert entropy_nats(ids) == pytest.approx(group["both"]["H"], abs=1e-12)


def test_entropy_of_common_partitions():
    assert entropy_nats([]) == entropy_nats([0, 0, 0]) == 0
    assert entropy_nats([0, 1, 2, 3]) == pytest.approx(math.log(4))
    assert entropy_nats([0, 0, 0, 1]) == pytest.approx(0.562335, abs=1e-6)
    assert entropy_nats([0] * 4 + [1] * 2 + [2, 3]) == pytest.approx(1.213008, abs=1e-6)
    assert sizes([]) == []
    assert sizes([0, 1, 0, 2]) == [2, 1, 1]


def bridge(a, b):
    """x equals any union that holds it: ab equals a and b, a and b differ. Not transitive."""
    return set(a) <= set(b) or set(b) <= set(a)


@pytest.mark.parametrize(
    ("items", "rule", "ids"),
    [
        (["a", "b", "ab", "a"], "first_match", [0, 1, 0, 0]),
        (["a", "b", "ab", "a"], "last_match", [0, 1, 1, 0]),
        (["a", "b", "ab", "a"], "connected", [0, 0, 0, 0]),
        (["ab", "b", "a"], "first_match", [0, 0, 0]),
        (["a", "b", "c", "ab", "bc"], "first_match", [0, 1, 2, 0, 1]),
        (["a", "b", "c", "ab", "bc"], "last_match", [0, 1, 2, 1, 2]),
        (["a", "b", "c", "ab", "bc", "d"], "connected", [0, 0, 0, 0, 0, 1]),
        (["", "a", " ", None, "a", ""], "first_match", [0, 1, 2, 3, 1, 4]),
        (["", "a", " ", None, "a", ""], "connected", [0, 1, 2, 3, 1, 4]),
        ([], "last_match", []),
    ],
)
def test_rules_by_hand(items, rule, ids):
    assert greedy(items, bridge, rule=rule) == ids
    assert fast(items, bridge, rule=rule) == ids  # a bare callable has no bucket


def test_the_representative_is_asked_first():
    asked = []

    def one_way(representative, answer):
        asked.append((representative, answer))
        return representative == "Paris" and answer == "Paris, France"

    assert greedy(["Paris", "Paris, France"], one_way) == [0, 0]
    assert greedy(["Paris, France", "Paris"], one_way) == [0, 1]
    assert asked == [("Paris", "Paris, France"), ("Paris, France", "Paris")]


@pytest.mark.parametrize("cluster", [greedy, fast])
def test_unknown_rule(cluster):
    for equal in (bridge, MATH):
        with pytest.raises(ConfigError, match="rule = 'nearest'"):
            cluster(["1", "2"], equal, rule="nearest")


@given(st.lists(st.sampled_from(["a", "b", "c", "ab", "bc", "abc", "", None]), max_size=12))
def test_partitions_are_well_formed(items):
    for rule in RULES:
        ids = greedy(items, bridge, rule=rule)
        assert len(ids) == len(items)
        assert list(dict.fromkeys(ids)) == list(range(len(set(ids))))
        blanks = [number for number, item in zip(ids, items, strict=True) if not item]
        assert all(ids.count(number) == 1 for number in blanks)
    finest = greedy(items, bridge)
    assert len(set(greedy(items, bridge, rule="connected"))) <= len(set(finest))
    assert len(set(greedy(items, bridge, rule="last_match"))) == len(set(finest))


def test_fast_is_greedy_on_made_up_groups():
    """The benchmark does this for 1,000 groups."""
    rng = random.Random(20250408)
    for number in range(60):
        group = (benchmark.mixed if number % 4 else benchmark.integers)(rng.choice((2, 8, 16)), rng)
        for name in ("math", "math_one_way", "numeric", "exact"):
            equal = equivalence.load(name)
            rule = RULES[number % 3]
            assert fast(group, equal, rule=rule) == greedy(group, lambda a, b, equal=equal: equal(a, b), rule=rule)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted({a for group in GROUPS for a in group["answers"]})), max_size=10),
       st.sampled_from(RULES))
def test_fast_is_greedy_on_the_answers_of_the_vectors(items, rule):
    assert fast(items, MATH, rule=rule) == greedy(items, lambda a, b: MATH(a, b), rule=rule)


@given(st.lists(st.integers(-20, 20).map(lambda n: f"{n * 1000:,}") | st.integers(-20, 20).map(str), max_size=16))
def test_plain_integers_are_never_compared(items):
    def refuse(*question, **settings):
        raise AssertionError(question)

    class Refusing(type(MATH)):
        __call__ = refuse

    counted = Refusing("math", refuse, MATH.key)
    values = [int(item.replace(",", "")) for item in items]
    assert fast(items, counted) == greedy(values, lambda a, b: a == b)


def test_no_pair_is_compared_twice():
    asked = []

    class Spy(type(MATH)):
        def __call__(self, a, b):
            asked.append((a, b))
            return a == b

    items = ["x", "y", "x", "x", "y", "z", "7", "7"]
    assert fast(items, Spy("spy", None, MATH.key)) == [0, 1, 0, 0, 1, 2, 3, 3]
    assert len(asked) == len(set(asked))
    assert ("7", "7") not in asked


# --- hostile answers ------------------------------------------------------------------------------------------------

HOSTILE = benchmark.HOSTILE
ALLOWANCE = 0.5
"""Seconds of processor time for everything but the questions themselves: forks, reading, this process."""


def cost_seconds(group, equal):
    before, start = WORKER.ask(1, "spent")[0], time.process_time()
    ids = fast(group, equal)
    return ids, WORKER.ask(1, "spent")[0] - before + time.process_time() - start


@pytest.mark.parametrize(("kind", "name"), [*((kind, "math") for kind in HOSTILE), ("of every kind", "loose")])
def test_a_hostile_group_has_bounded_cost(kind, name):
    """Processor time: a busy machine may take longer by the clock."""
    equivalence.load(name)("x", "1/2")  # starts the helper process
    ids, seconds = cost_seconds(HOSTILE[kind], equivalence.load(name))
    assert len(ids) == 16
    assert seconds < math_budget.GROUP_SECONDS + math_budget.PAIR_SECONDS + ALLOWANCE
    assert fast(["1/2", "0.5", r"\sqrt{8}", r"2\sqrt{2}"], equivalence.load(name)) == [0, 0, 1, 1]


@pytest.mark.parametrize("name", ["numeric", "choice", "exact"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_group_costs_the_keyed_back_ends_nothing(kind, name):
    start = time.process_time()
    assert len(fast(HOSTILE[kind], equivalence.load(name))) == 16
    assert time.process_time() - start < ALLOWANCE


def test_reasons_of_a_hostile_group():
    view = MATH.group()
    group = HOSTILE["of every kind"]
    ids = fast([*group, " ", "7", "7.0", *group[:5]], view)
    assert [view.reason(answer) for answer in group[:5]] == ["bomb", "too_long", "too_long", "unbalanced", "unbalanced"]
    assert view.reason(group[11]) == "too_long"
    assert view.reason(" ") == "blank"
    assert view.reason("7") in ("ok", "skipped")
    assert ids[17] == ids[18]  # told apart and together without math-verify
    assert ids[-5:] == ids[:5]  # equal strings are equal, whatever they are


def test_what_is_given_up_is_called_slow():
    view = MATH.group()
    powers = HOSTILE["powers"][:3]
    assert fast([*powers, "3", "4"], view) == [0, 1, 2, 3, 4]
    assert [view.reason(answer) for answer in powers] == ["slow"] * 3
    assert fast([r"\sqrt{8}", r"2\sqrt{2}"], view) == [0, 1]  # nothing is left for these
    assert view.reason(r"\sqrt{8}") == "skipped"
    assert fast([r"\sqrt{8}", r"2\sqrt{2}"], MATH) == [0, 0]
    assert MATH.reason(powers[0]) == "ok"  # the next group starts afresh


def test_hostile_groups_in_worker_threads():
    found: dict[str, list[int]] = {}

    def work(kind):
        found[kind] = fast(HOSTILE[kind][:6] + ["1/2", "0.5"], MATH)

    threads = [threading.Thread(target=work, args=(kind,)) for kind in HOSTILE]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == set(HOSTILE)
    assert all(ids[-1] == ids[-2] for ids in found.values())
