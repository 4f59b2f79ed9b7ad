"""Arithmetic expressions as token lists: into postfix order, and from there to a value. Nothing is run as code.

One grammar with a switch for the power sign, two arithmetics: exact fractions here, and Python's own in
:mod:`explorl.text.countdown_tinyzero`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

BINARY = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "**": 4}
"""How tightly an operator binds; a sign lies between ``*`` and ``**``."""
NEGATE = "neg"
_SIGN = 3

EXACT: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, NEGATE: operator.neg,
}


class ExpressionError(ValueError):
    """An expression is none, or has no value: says why.

    Attributes:
        reason: a code: ``operand`` (a number or ``(`` is missing), ``trailing`` (something follows that does not
            belong to the expression), ``parenthesis``, ``nesting``, ``unary``, ``division_by_zero``; readers of
            text add theirs.
        detail: the token it happened at, or "".
    """

    def __init__(self, reason: str, detail: str = ""):
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason} {detail}".strip())


def postfix(tokens: Sequence, *, max_depth: int, allow_unary: bool = True) -> list:
    """The tokens in postfix order, by Dijkstra's shunting yard: no recursion, time linear in their number.

    Binary operators group to the left, ``**`` to the right; any run of signs may stand before a number, a
    parenthesis or, behind ``**``, an exponent. A plus sign that is no sum is dropped.

    Args:
        tokens: numbers (of any type but str), the operators of :data:`BINARY`, ``(`` and ``)``.
        max_depth: parentheses that may be open at once.
        allow_unary: whether signs may stand before an operand.

    Returns:
        numbers, operators and :data:`NEGATE`, operands before their operator.

    Raises:
        ExpressionError: not an expression.

    >>> postfix([2, "*", "(", 3, "-", "-", 4, ")"], max_depth=9)
    [2, 3, 4, 'neg', '-', '*']
    """
    out: list = []
    waiting: list[str] = []
    depth, operand_next = 0, True
    for token in tokens:
        if not isinstance(token, str):
            if not operand_next:
                raise ExpressionError("trailing", str(token)[:20])
            out.append(token)
            operand_next = False
        elif token == "(":
            if not operand_next:
                raise ExpressionError("trailing", token)
            depth += 1
            if depth > max_depth:
                raise ExpressionError("nesting")
            waiting.append(token)
        elif operand_next:
            _sign(token, waiting, allow_unary)
        elif token == ")":
            _close(out, waiting)
            depth -= 1
        else:
            _reduce(out, waiting, BINARY[token] + (token == "**"))
            waiting.append(token)
            operand_next = True
    if operand_next:
        raise ExpressionError("operand", "end")
    _reduce(out, waiting, 0)
    if waiting:
        raise ExpressionError("parenthesis", "(")
    return out


def _sign(token: str, waiting: list[str], allow_unary: bool) -> None:
    if token not in ("+", "-"):
        raise ExpressionError("operand", token)
    if not allow_unary:
        raise ExpressionError("unary", token)
    if token == "-":
        waiting.append(NEGATE)


def _close(out: list, waiting: list[str]) -> None:
    _reduce(out, waiting, 0)
    if not waiting:
        raise ExpressionError("parenthesis", ")")
    waiting.pop()


def _reduce(out: list, waiting: list[str], at_least: int) -> None:
    """Move the operators that bind at least so tightly from the stack to the output, down to a parenthesis."""
    while waiting and waiting[-1] != "(" and BINARY.get(waiting[-1], _SIGN) >= at_least:
        out.append(waiting.pop())


def evaluate(program: Sequence, operators: Mapping[str, Callable] = EXACT):
    """The value of a postfix list.

    Args:
        program: from :func:`postfix`; for exact values its numbers must be ``Fraction``.
        operators: what each operator does.

    Raises:
        ExpressionError: ``division_by_zero``; whatever else ``operators`` raise passes.

    >>> evaluate(postfix([Fraction(8), "/", "(", Fraction(3), "-", Fraction(1), ")"], max_depth=9))
    Fraction(4, 1)
    """
    stack: list = []
    for item in program:
        if not isinstance(item, str):
            stack.append(item)
        elif item == NEGATE:
            stack.append(operators[item](stack.pop()))
        else:
            right, left = stack.pop(), stack.pop()
            try:
                stack.append(operators[item](left, right))
            except ZeroDivisionError as error:
                raise ExpressionError("division_by_zero") from error
    return stack[0]
