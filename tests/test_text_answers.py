"""Canonical answers, boxes, extraction and symbolic equality."""

import json
import os
import signal
import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorl.errors import ConfigError
from explorl.text import math_equality
from explorl.text.answers import MAX_ANSWER_CHARS, canonical, extract, last_boxed, math_equal, same
from explorl.text.math_equality import tractable

VECTORS = json.loads((Path(__file__).parent / "vectors" / "sde2.json").read_text(encoding="utf-8"))["N"]


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: f"{row['x']} ~ {row['y']}")
def test_canonical_vectors(row):
    assert same(row["x"], row["y"]) is row["equal"]
    assert repr(canonical(row["x"])) == row["Nx"]
    assert repr(canonical(row["y"])) == row["Ny"]


def num(value: str) -> tuple[str, Fraction]:
    return "num", Fraction(value)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (r"\dfrac{-7}{2}", num("-7/2")),
        (r"-\frac{1}{2}", num("-1/2")),
        (r"\boxed{\text{18 dollars}}", num("18")),
        ("1{,}018", num("1018")),
        ("2,500,000.25", num("10000001/4")),
        ("1,2,3", num("3")),
        (".5", num("1/2")),
        ("10-4", num("4")),
        ("x = -4", num("-4")),
        ("2 + 3 = five", ("txt", "five")),
        ("1e3", num("1000")),
        ("1E-2", num("1/100")),
        ("x2", ("txt", "x2")),
        ("Monday.", ("txt", "monday")),
        (r"\text{Evelyn}", ("txt", "evelyn")),
        ("?!", None),
        ("$", None),
        (None, None),
        (True, None),
        (float("nan"), None),
        (18, num("18")),
        (2.5, num("5/2")),
        (Fraction(1, 3), num("1/3")),
    ],
)
def test_canonical_numeric(text, form):
    assert canonical(text) == form


def test_num_pick():
    assert canonical("18 out of 20", num_pick="single") == ("txt", "18 out of 20")
    assert canonical("18 eggs", num_pick="single") == num("18")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("B", "b"),
        ("(c)", "c"),
        (r"\boxed{\text{D}}", "d"),
        ("**A**", "a"),
        ("B. Aspirin", "b"),
        ("(B) Aspirin", "b"),
        ("b) aspirin", "b"),
        ("D - none of these", "d"),
        ("The answer is C.", "c"),
        ("Option: A", "a"),
        ("the answer is b.", "b"),
        ("Aspirin (B)", "b"),
        ("Hepatitis B", "hepatitis b"),
        ("Vitamin D", "vitamin d"),
        ("the answer is a drug", "the answer is a drug"),
        ("A, B, C, D", "a, b, c, d"),
        ("(A) or (B)?", "a"),
        ("It is (A) or (B)", "it is (a) or (b"),
        ("Aspirin, 18 mg", "aspirin, 18 mg"),
        ("E", "e"),
    ],
)
def test_canonical_choice(text, form):
    assert canonical(text, mode="choice") == ("txt", form)


def test_choice_needs_an_answer():
    assert canonical("", mode="choice") is None
    assert canonical(3, mode="choice") is None
    assert same("B", "(b) Aspirin", mode="choice")
    assert not same("A, B, C, D", "B", mode="choice")


def test_bad_settings():
    with pytest.raises(ConfigError, match="mode"):
        canonical("1", mode="number")
    with pytest.raises(ConfigError, match="num_pick"):
        same("1", "1", num_pick="first")


@pytest.mark.parametrize(
    "text",
    ["9" * 1_000_000, "9**9**9", "1e999999", "1e-999999", "1e" + "9" * 5000, "{" * 9_000, "1/" + "9" * 9_000]
    + ["1" + ",111" * 2_000 + "1", "-" * 9_999, r"\frac{" * 1_500, "\0" * 9_999, "\ud800", "٣" * 50, "²"],
    ids=lambda text: text[:12].encode("ascii", "backslashreplace").decode(),
)
def test_hostile_answers_do_not_hang(text):
    start = time.monotonic()
    for mode in ("numeric", "choice"):
        form = canonical(text, mode=mode)
        assert form is None or form == canonical(text, mode=mode)
    assert time.monotonic() - start < 2


def test_numbers_too_large_are_text():
    assert canonical("9" * 401)[0] == "txt"
    assert canonical("1e999999") == ("txt", "1e999999")
    assert canonical("9" * 400)[0] == "num"
    assert canonical("7" * (MAX_ANSWER_CHARS + 1)) is None


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["numeric", "choice"]))
def test_same_is_symmetric_and_never_raises(x, y, mode):
    assert same(x, y, mode) == same(y, x, mode)
    assert same(x, x, mode) == (canonical(x, mode) is not None)


@given(st.fractions(), st.sampled_from(["{}", "${}.", r"\boxed{{{}}}", "x = {}", "it is {} dollars"]))
def test_a_written_number_is_read_back(value, frame):
    assert canonical(frame.format(value)) == ("num", value)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"first \boxed{1} then \boxed{2}", "2"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{x=\boxed{5}}", "5"),
        (r"\boxed{4} and later \boxed{\frac{1}{2}", "4"),
        (r"\boxed{\left\{ 1, 2 \right.}", r"\left\{ 1, 2 \right."),
        (r"\boxed {6}}", "6"),
        (r"\boxed{ }", None),
        (r"\boxed{\frac{a}{b}", None),
        (r"\boxed 7", None),
        (r"\fbox{7}", None),
        ("no box", None),
        (None, None),
    ],
)
def test_last_boxed(text, content):
    assert last_boxed(text) == content


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<answer>3</answer> A: 5", ("3", "ANS")),
        ("<final_answer>4</final_answer><answer>3</answer>", ("4", "FA")),
        ("\\boxed{7}\n#### 8", ("7", "BOX")),
        ("work 1\n#### 8\n", ("8", "HASH")),
        ("2 + 3 = 5\nA: 5 eggs\n", ("5 eggs", "CUE")),
        ("The answer is 3.5. We used 2 steps.", ("3.5", "CUE")),
        ("So 3 and then 1,018 remain", ("1,018", "NUM")),
        ("I give up.", ("", "NONE")),
        (None, ("", "NONE")),
    ],
)
def test_extract(text, found):
    assert extract(text) == found


ENDLESS = ["\n" * 300_000, "A:\n" * 100_000, "answer is" * 50_000, r"\boxed{" * 100_000, "{" * 10**6]


@pytest.mark.parametrize("text", ENDLESS, ids=lambda text: ascii(text[:9]))
def test_extract_does_not_hang(text):
    start = time.monotonic()
    extract(text)
    assert time.monotonic() - start < 2


EQUAL = [("1/2", "0.5"), (r"\frac{1}{2}", "0.50"), ("1000", "1{,}000"), (r"2\sqrt{2}", r"\sqrt{8}"), ("007", "7")]
EQUAL += [("x=5", "5"), (r"\text{Paris}", "paris"), (r"50\%", "50"), ("(x+1)^2", "x^2+2x+1")]
EQUAL += [("e^{-x^2}", r"\frac{1}{e^{x^2}}")]
UNEQUAL = [("1/3", "0.333"), ("2024", "2025"), ("1<x<2", "(1,2)"), (r"\{2,1\}", "(1,2)"), ("x=5", "y=5")]
UNEQUAL += [(r"1\leq x\leq 2", "[1,2]")]
UNEQUAL += [("7", ""), ("", ""), (" ", " "), (None, "1"), (None, None), ("0.5", "50"), (r"\pi", "3.14")]
VERDICTS = [(*pair, True) for pair in EQUAL] + [(*pair, False) for pair in UNEQUAL]


@pytest.mark.parametrize(("a", "b", "verdict"), VERDICTS)
def test_math_equal(a, b, verdict):
    assert math_equal(a, b) is verdict
    assert math_equal(b, a) is verdict


FORMULAS = ["1/2", "0.5", r"50\%", "50", "x=5", "5", "5=x"]
FORMULAS += ["(1,2)", r"\{1,2\}", "1,2", "(2,1)", r"x\in(1,2)", "1<x<2"]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FORMULAS) | st.text(max_size=12), st.sampled_from(FORMULAS) | st.text(max_size=12))
def test_math_equal_is_symmetric_and_never_raises(a, b):
    assert math_equal(a, b) == math_equal(b, a)
    assert math_equal(a, a) == bool(a.strip())


DEEP = r"\frac{1}{" * 500 + "1" + "}" * 500
BOMBS = ["9**9**9", "10^{10^{10}}", DEEP, "9" * 1_000_000, "1+" * 500_000 + "1", "99999999!", "9!!!", "2^{-9999999}"]
BOMBS += ["}{", r"1} or \boxed{2", "{"]
SURVIVABLE = [r"\sum", r"\binom{9999999}{4999999}", "(x+y+z)^{9999}", "\0\0", "\ud800", "1e999999"]
SURVIVABLE += [r"\begin{pmatrix}a&b\\c&d\end{pmatrix}"]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda text: text[:14])
def test_bombs_are_turned_away_at_once(bomb):
    assert not tractable(bomb)
    start = time.monotonic()
    assert not math_equal(bomb, "3")
    assert math_equal(bomb, bomb)
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("answer", SURVIVABLE, ids=lambda text: ascii(text[:14]))
def test_odd_answers_end_and_harm_no_later_one(answer):
    assert tractable(answer)
    start = time.monotonic()
    assert not math_equal(answer, "x + 3")
    assert time.monotonic() - start < 20  # processor time is limited, the wall clock of a busy machine is not
    assert math_equal("3/4", "0.75")


def test_small_powers_and_factorials_are_tractable():
    small = ["x^2y^2", r"2^3 \cdot 3^2", "2^{2^3}", "e^{x^2}", "100!", "n!!", r"\frac{2^{10}}{3^{5}}"]
    for answer in [*small, r"\left\{ 1 \right.", "(1,2]"]:
        assert tractable(answer)


def test_math_equal_works_in_threads():
    verdicts: dict[int, bool] = {}

    def compare(number: int) -> None:
        verdicts[number] = math_equal(rf"\frac{{{number}}}{{7}}", rf"\frac{{{2 * number}}}{{14}}")

    threads = [threading.Thread(target=compare, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == dict.fromkeys(range(1, 9), True)


def test_math_equal_survives_the_end_of_its_helper():
    assert math_equal("1/8", "0.125")
    helper = math_equality._WORKER._process
    helper.kill()
    helper.wait()
    assert math_equal("3/8", "0.375")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_math_equal_in_a_forked_process():
    assert math_equal("5/8", "0.625")
    child = os.fork()
    if child == 0:
        verdict = math_equal("7/8", "0.875") and not math_equal("7/9", "0.875")
        math_equality._WORKER._end()
        os._exit(0 if verdict else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert math_equal("9/8", "1.125")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_math_equal_in_a_process_forked_while_another_thread_asks():
    asking = threading.Thread(target=lambda: [math_equal(rf"x+{i}", rf"{i}+x") for i in range(20)])
    asking.start()
    child = os.fork()
    if child == 0:
        verdict = math_equal("y+3", "3+y")
        math_equality._WORKER._end()
        os._exit(0 if verdict else 1)
    end = time.monotonic() + 60
    done, status = 0, None
    while not done and time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.02)
    if not done:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    asking.join()
    assert done and os.waitstatus_to_exitcode(status) == 0
