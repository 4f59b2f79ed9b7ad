"""Countdown's checker against its vectors, by hand, and on hostile text; the solver against brute force."""

import itertools
import json
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorl.errors import ConfigError
from explorl.text import countdown
from explorl.text.countdown import REASONS, extract, needs_times_or_divide, score, solve
from explorl.text.expression import ExpressionError, evaluate, postfix

VECTORS = json.loads((Path(__file__).parent / "vectors" / "imagine.json").read_text(encoding="utf-8"))["countdown"]
EVERY = pytest.mark.parametrize("row", VECTORS, ids=lambda row: row["id"])
CODES = {"ok": "ok", "numbers": "numbers", "trailing": "trailing", "** or //": "operator", "div0": "division_by_zero",
         "leading zero": "leading_zero", "empty": "empty", "paren": "parenthesis", "eof": "operand",
         "no answer": "no_answer", "too long": "too_long"}


def told(note: str) -> tuple[str, str | None]:
    """The reason code, and the detail where the vector has one."""
    word, _, rest = note.partition(" ")
    if word in ("char", "value"):
        return {"char": "character"}.get(word, word), rest[1:-1].replace("\\xa0", "\xa0") if word == "char" else rest
    return CODES[note], None


def test_there_are_85_vectors_of_which_13_split_the_scorers():
    assert len(VECTORS) == 85
    assert sum(str(row["tinyzero"]) != str(row["strict"]) for row in VECTORS) == 13


@EVERY
def test_strict_vectors_with_their_reasons(row):
    found = score(row["response"], row["nums"], row["target"])
    reason, detail = told(row["note"])
    assert (found.reward, found.reason) == (row["strict"], reason)
    assert detail is None or found.detail == detail


@EVERY
@pytest.mark.parametrize(("column", "options"), [
    ("lenient", {"rules": "lenient"}), ("no_unary", {"allow_unary": False}),
])
def test_vectors_of_the_switches(row, column, options):
    assert score(row["response"], row["nums"], row["target"], **options).reward == row[column]


@EVERY
def test_tinyzero_vectors(row):
    found = score(row["response"], row["nums"], row["target"], rules="tinyzero", template=row["template"])
    if isinstance(row["tinyzero"], str):
        assert row["tinyzero"].startswith("HANG") and (found.reward, found.reason) == (0.1, "hangs")
    else:
        assert found.reward == row["tinyzero"]


@pytest.mark.parametrize(("answer", "numbers", "target", "right"), [
    ("-2**2+9", [2, 2, 9], 5, True),  # a sign binds less than a power,
    ("2**-1*8", [2, 1, 8], 4, True),  # but an exponent may have one,
    ("2**3**2", [2, 3, 2], 512, True),  # and powers group to the right
    ("9-4-3", [9, 4, 3], 2, True),
    ("24/4/2", [24, 4, 2], 3, True),
    ("7//-2+9", [7, 2, 9], 5, True),  # floors downwards
    ("00+6", [0, 6], 6, True),
    ("06+4", [6, 4], 10, False),
    ("6.4.2+1", [6, 4, 2, 1], 7, False),
    ("(0-4)**.5+3", [0, 4, 5, 3], 3, False),  # complex
    ("1.5+8.5", [1, 5, 8, 5], 10, True),
    ("10+1/99", [10, 1, 99], 10, False),
    ("0**-1", [0, 1], 0, False),
    ("9.0**(9**9)", [9, 0, 9, 9], 1, False),  # too large a float
    ("((0-8)**(1/3))//2", [0, 8, 1, 3, 2], 1, False),  # no floor of a complex number
    ("6+...", [6], 6, False),
    ("(6)(4)", [6, 4], 10, False),
    ("6 + 4", [6, 4], 10, True),
    ("6\xa0+ 4", [6, 4], 10, False),
    ("(" * 200 + "6" + ")" * 200, [6], 6, True),
    ("(" * 201 + "6" + ")" * 201, [6], 6, False),
])
def test_tinyzero_reads_an_answer_as_python_would(answer, numbers, target, right):
    assert score(f"<answer>{answer}</answer>", numbers, target, rules="tinyzero").reward == (1.0 if right else 0.1)


@pytest.mark.parametrize(("text", "answer"), [
    ("<answer>1</answer> <answer></answer>", ""), ("<answer>1<answer>2</answer></answer>", "2"),
    ("</answer><answer>", None), ("<answer> 1\n+ 2 <|im_end|></answer>", "1\n+ 2"), ("<Answer>1</Answer>", None),
    ("", None), (None, None), (b"<answer>1</answer>", None), ("<answer>1</answer>" + " " * 200_000, None),
])
def test_extraction(text, answer):
    assert extract(text) == answer


def test_each_limit_has_its_reason():
    assert score("<answer>" + "(" * 100 + "6" + ")" * 100 + "</answer>", [6], 6).reward == 1.0
    assert score("<answer>" + "(" * 101 + "6" + ")" * 101 + "</answer>", [6], 6).reason == "nesting"
    assert score("<answer>" + "+" * 255 + "6</answer>", [6], 6).reward == 1.0
    assert score("<answer>" + "+" * 256 + "6</answer>", [6], 6).reason == "too_long"
    assert score("<answer>999999</answer>", [999_999], 999_999).reward == 1.0
    assert score("<answer>1000000</answer>", [1_000_000], 1_000_000).reason == "number_size"
    assert score("<answer>6 + * 4</answer>", [6, 4], 10).reason == "operand"
    assert score("<answer>6 + 4)</answer>", [6, 4], 10).reason == "parenthesis"
    assert score("<answer>6 - -4</answer>", [6, 4], 10, allow_unary=False).reason == "unary"


@pytest.mark.parametrize(("field", "settings_"), [
    ("numbers", {"numbers": []}), ("numbers", {"numbers": [1.5]}), ("numbers", {"numbers": [True]}),
    ("numbers", {"numbers": [-1]}), ("target", {"target": 2.0}), ("rules", {"rules": "python"}),
    ("template", {"template": "chat"}),
])
def test_wrong_settings_are_named(field, settings_):
    with pytest.raises(ConfigError) as error:
        score("6", **({"numbers": [6], "target": 6} | settings_))
    assert error.value.field == field


HOSTILE = {
    "100 kB of digits": "<answer>" + "9" * 100_000 + "</answer>", "power tower": "<answer>99**98**97</answer>",
    "import": "<answer>__import__('os').system('false')</answer>", "opening tags": "<answer>" * 15_000,
    "a closing tag, then opening ones": "</answer>" + "<answer>" * 15_000, "pairs": "<answer></answer>" * 7_000,
    "parentheses": "<answer>" + "(" * 50_000 + "</answer>", "signs": "<answer>" + "-" * 90_000 + "6</answer>",
    "numbers": "<answer>" + "6+" * 45_000 + "6</answer>", "lines": "<answer>6</answer>\n" * 5_000,
    "special tokens": "<|a" * 40_000, "null": "<answer>\0</answer>", "surrogate": "<answer>\ud800</answer>",
    "a megabyte": "word " * 200_000, "huge power": "<answer>9**(9**9)</answer>",
}


@pytest.mark.parametrize("rules", countdown.RULES)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_never_right_and_costs_10_ms_at_most(name, rules):
    spent = []
    for _ in range(5):
        began = time.process_time()
        found = score(HOSTILE[name], [9, 9, 9], 6, rules=rules)
        spent.append(time.process_time() - began)
    assert found.reward < 1 and found.reason in REASONS and found.reason != "ok"
    assert min(spent) < 0.01


PIECES = st.lists(st.sampled_from(["<answer>", "</answer>", *"0123456789+-*/(). =×\n\t", "**", "//", "٦", "６", "Assistant:",
                                   "<|im_end|>", "\x00", "e", "_", "$"]), max_size=40).map("".join)


@settings(max_examples=300, deadline=1000)
@given(text=st.one_of(st.text(max_size=80), PIECES, PIECES.map("<answer>{}</answer>".format)),
       numbers=st.lists(st.integers(0, 99), min_size=1, max_size=4), target=st.integers(0, 100),
       rules=st.sampled_from(countdown.RULES), template=st.sampled_from(countdown.TEMPLATES))
def test_any_text_gets_a_verdict(text, numbers, target, rules, template):
    found = score(text, numbers, target, rules=rules, template=template)
    assert found.reward in (0.0, 0.1, 1.0) and found.reason in REASONS
    assert (found.reward == 1.0) == (found.reason == "ok") and (found.reward == 0.0) == (found.answer is None)


def written(draw, depth: int) -> str:
    """An expression with random signs, spaces and parentheses."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["", "", "-", "+"])) + str(draw(st.integers(0, 20)))
    left, right = written(draw, depth - 1), written(draw, depth - 1)
    return f"({left}{draw(st.sampled_from(['+', ' - ', '*', '/']))}{right})"


@settings(max_examples=300, deadline=1000)
@given(st.data())
def test_what_strict_accepts_on_one_line_tinyzero_accepts(data):
    answer = written(data.draw, 3)
    numbers = [int(run) for run in "".join(c if c.isdigit() else " " for c in answer).split()]
    value = score(f"<answer>{answer}</answer>", numbers, 10**9)  # to learn the value from the verdict
    if value.reason == "value" and Fraction(value.detail).denominator == 1:
        target = int(value.detail)
        for rules in countdown.RULES:
            assert score(f"<answer>{answer}</answer>", numbers, target, rules=rules).reward == 1.0
        assert score(f"<answer>{answer}</answer>", numbers, target + 1, rules="tinyzero").reward == 0.1


def test_postfix_groups_to_the_left_and_powers_to_the_right():
    assert postfix([9, "-", 4, "-", 3], max_depth=0) == [9, 4, "-", 3, "-"]
    assert postfix([2, "**", "-", 3, "**", 2, "*", 5], max_depth=0) == [2, 3, 2, "**", "neg", "**", 5, "*"]
    with pytest.raises(ExpressionError, match="nesting"):
        postfix(["(", 1, ")"], max_depth=0)
    with pytest.raises(ExpressionError, match="division_by_zero"):
        evaluate([Fraction(1), Fraction(0), "/"])


def reachable(numbers: tuple[int, ...]) -> set[Fraction]:
    """Every value of every expression without signs, by splitting the numbers in two in all ways."""
    if len(numbers) == 1:
        return {Fraction(numbers[0])}
    found = set()
    for size in range(1, len(numbers)):
        for chosen in itertools.combinations(range(len(numbers)), size):
            rest = tuple(n for i, n in enumerate(numbers) if i not in chosen)
            for a, b in itertools.product(reachable(tuple(numbers[i] for i in chosen)), reachable(rest)):
                found |= {a + b, a - b, a * b} | ({a / b} if b else set())
    return found


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(st.integers(0, 12), min_size=1, max_size=4), targets=st.sets(st.integers(0, 150), min_size=5))
def test_solver_agrees_with_brute_force_and_its_witness_scores_1(numbers, targets):
    values = reachable(tuple(numbers))
    for target in targets | {int(v) for v in list(values)[:20] if v >= 0 and v.denominator == 1}:
        witness = solve(numbers, target)
        assert (witness is not None) == (target in values)
        if witness is not None:
            assert score(f"<answer>{witness}</answer>", numbers, target, allow_unary=False).reward == 1.0
        whole = solve(numbers, target, integer_steps=True)
        assert whole is None or score(f"<answer>{whole}</answer>", numbers, target, allow_unary=False).reward == 1.0
        assert whole is None or witness is not None


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(st.integers(1, 30), min_size=1, max_size=5), target=st.integers(1, 100))
def test_plus_and_minus_suffice_exactly_where_a_sum_of_signed_numbers_does(numbers, target):
    sums = {0}
    for n in numbers:
        sums = {s + n for s in sums} | {s - n for s in sums}
    assert needs_times_or_divide(numbers, target) == (target not in sums)


@pytest.mark.parametrize(("numbers", "target", "field"), [
    ([], 5, "numbers"), ([1] * 7, 5, "numbers"), ([1, -2], 5, "numbers"), ([1, 2], -1, "target"),
])
def test_the_solver_refuses_what_it_cannot_do(numbers, target, field):
    with pytest.raises(ConfigError) as error:
        solve(numbers, target)
    assert error.value.field == field
