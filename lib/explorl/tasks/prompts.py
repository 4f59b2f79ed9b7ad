"""What a model is asked to write, in our own words: SD-E²'s prompts are not published, EMPO's are only followed in
what they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split

STYLES = ("plain", "single_trace", "multi_strategy", "boxed")

ANSWER_FORM = {
    "gsm8k": "the number alone, without a unit",
    "aime": "an integer from 0 to 999",
    "medmcqa": "one letter: A, B, C or D",
    "gpqa": "one letter: A, B, C or D",
    "mmlu_pro": "the letter of one option",
}
LABELLED = ("natural", "medmcqa", "gpqa", "mmlu_pro")
"""Tasks whose question stands behind a label in the style ``boxed``."""

_MULTI_STRATEGY = """\
Solve the problem below in several independent ways before you commit to an answer. Two ways count as
different when the idea differs, not when the same steps are reworded. Write each way as one block, numbered
from 1, and state in it the answer it leads to. Close with the answer you trust most. Use exactly this layout:

<strategy id="1">
<reasoning>the idea and its steps</reasoning>
<strategy_outcome>the answer this way gives</strategy_outcome>
</strategy>
<strategy id="2">
<reasoning>a different idea and its steps</reasoning>
<strategy_outcome>the answer this way gives</strategy_outcome>
</strategy>
<final_answer>the answer you trust most</final_answer>

Each answer is {form}."""

_SINGLE_TRACE = """\
Solve the problem below. Reason step by step in plain text, then close with one line of this form:

<final_answer>your answer</final_answer>

The answer is {form}."""

_BOXED_SYSTEM = r"You work problems out in steps and put the final answer in \boxed{}."
_BOXED = r"Work through it in steps. At the end, put {form} in \boxed{{}}."
_BOXED_FORM = {"natural": "the answer, as short as it can be,", "medmcqa": "the letter of the right option",
               "gpqa": "the letter of the right option", "mmlu_pro": "the letter of the right option"}

_INSTRUCTIONS = {"plain": "", "single_trace": _SINGLE_TRACE, "multi_strategy": _MULTI_STRATEGY, "boxed": _BOXED}


def instruction(style: str, task: str = "") -> str:
    """The words put before a question, or behind it in the style ``boxed``.

    Args:
        style: ``plain`` (none), ``single_trace`` or ``multi_strategy`` (the schema of SD-E² App. E), or ``boxed``
            (steps, then the answer in a box: EMPO App. A).
        task: decides how the answer's form is described; an unknown task gets a general wording.

    Raises:
        ConfigError: unknown style.

    >>> instruction("single_trace", "gsm8k").splitlines()[-1]
    'The answer is the number alone, without a unit.'
    """
    if style not in STYLES:
        raise ConfigError("style", style, f"one of {', '.join(STYLES)}")
    if style == "boxed":
        return _BOXED.format(form=_BOXED_FORM.get(task, "the final answer"))
    return _INSTRUCTIONS[style].format(form=ANSWER_FORM.get(task, "as short as it can be"))


def messages(problem: Problem, style: str) -> list[dict[str, str]]:
    """The chat that asks for a solution: one user turn, since some chat templates have no system turn; in the style
    ``boxed`` a system turn before it, as EMPO has it.

    >>> messages(Problem("2 + 2?", "4", "k", {"task": "gsm8k"}), "plain")
    [{'role': 'user', 'content': '2 + 2?'}]
    """
    words = instruction(style, str(problem.meta.get("task", "")))
    if style == "boxed":
        return [{"role": "system", "content": _BOXED_SYSTEM}, {"role": "user", "content": _question(problem, words)}]
    content = f"{words}\n\nProblem: {problem.prompt}" if words else problem.prompt
    return [{"role": "user", "content": content}]


def unmarked(problem: Problem) -> str:
    r"""The style ``boxed`` without chat markup, for a base model that has no template: EMPO's natural evaluations.

    >>> print(unmarked(Problem("2 + 2?\nA. 4\nB. 5", "A", "k", {"task": "gpqa"})))
    Question: 2 + 2?
    A. 4
    B. 5
    <BLANKLINE>
    Work through it in steps. At the end, put the letter of the right option in \boxed{}.
    <BLANKLINE>
    Answer:
    """
    task = str(problem.meta.get("task", ""))
    return f"Question: {problem.prompt}\n\n{instruction('boxed', task)}\n\nAnswer:"


def _question(problem: Problem, words: str) -> str:
    label = "Question: " if problem.meta.get("task") in LABELLED else ""
    return f"{label}{problem.prompt}\n\n{words}"


def render(tokenizer, problem: Problem, style: str) -> str:
    """The text that the policy continues, through the tokenizer's chat template where it has one.

    Args:
        tokenizer: a transformers tokenizer.
        problem: the question.
        style: as in :func:`instruction`.
    """
    chat = messages(problem, style)
    if getattr(tokenizer, "chat_template", None):
        return tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    return unmarked(problem) if style == "boxed" else chat[0]["content"]


def asked(problems: Split, style: str) -> Split:
    """The same split, each prompt as the chat that asks for a solution in a style."""
    def put(part: Sequence[Problem]) -> tuple[Problem, ...]:
        return tuple(replace(problem, prompt=messages(problem, style)) for problem in part)

    return Split(put(problems.train), put(problems.select), put(problems.test))
