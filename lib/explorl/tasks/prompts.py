"""What a model is asked to write. The paper's prompts are not published: the wording here is ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split

STYLES = ("plain", "single_trace", "multi_strategy")

ANSWER_FORM = {
    "gsm8k": "the number alone, without a unit",
    "aime": "an integer from 0 to 999",
    "medmcqa": "one letter: A, B, C or D",
}

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

_INSTRUCTIONS = {"plain": "", "single_trace": _SINGLE_TRACE, "multi_strategy": _MULTI_STRATEGY}


def instruction(style: str, task: str = "") -> str:
    """The words put before a question.

    Args:
        style: ``plain`` (none), ``single_trace`` or ``multi_strategy`` (the schema of SD-E² App. E).
        task: decides how the answer's form is described; an unknown task gets a general wording.

    Raises:
        ConfigError: unknown style.

    >>> instruction("single_trace", "gsm8k").splitlines()[-1]
    'The answer is the number alone, without a unit.'
    """
    if style not in STYLES:
        raise ConfigError("style", style, f"one of {', '.join(STYLES)}")
    return _INSTRUCTIONS[style].format(form=ANSWER_FORM.get(task, "as short as it can be"))


def messages(problem: Problem, style: str) -> list[dict[str, str]]:
    """The chat that asks for a solution: one user turn, since some chat templates have no system turn.

    >>> messages(Problem("2 + 2?", "4", "k", {"task": "gsm8k"}), "plain")
    [{'role': 'user', 'content': '2 + 2?'}]
    """
    words = instruction(style, str(problem.meta.get("task", "")))
    content = f"{words}\n\nProblem: {problem.prompt}" if words else problem.prompt
    return [{"role": "user", "content": content}]


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
    return chat[0]["content"]


def asked(problems: Split, style: str) -> Split:
    """The same split, each prompt as the chat that asks for a solution in a style."""
    def put(part: Sequence[Problem]) -> tuple[Problem, ...]:
        return tuple(replace(problem, prompt=messages(problem, style)) for problem in part)

    return Split(put(problems.train), put(problems.select), put(problems.test))
