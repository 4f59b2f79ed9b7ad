"""Whether two answers in words mean the same, judged by a model (EMPO's Algorithm 3).

============  =================================================================================================
name          who judges
============  =================================================================================================
``verifier``  TIGER-Lab/general-verifier: a language model reads question and answers, and decides Yes or No
``nli``       microsoft/deberta-v2-xlarge-mnli: a classifier says entailment, neutral or contradiction
any other     the text back end of that name (:mod:`explorl.text.equivalence`)
============  =================================================================================================

The two models are read from the hub's cache when they are asked for, and never downloaded here.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from explorl.errors import ConfigError
from explorl.text import equivalence
from explorl.text.clusters import is_blank

NAMES = (*equivalence.NAMES, "verifier", "nli")
READS = ("logits", "text")
YES, NEUTRAL, NO = "entailment", "neutral", "contradiction"
DIRECTIONS: dict[str, Callable[[str, str], bool]] = {
    "both": lambda forth, back: forth == back == YES,
    "forward": lambda forth, back: forth == YES,
    "loose": lambda forth, back: NO not in (forth, back) and not forth == back == NEUTRAL,
}
"""How the two labels make an equality; the published verifier code asks ``forward`` only, against the paper."""

MODELS = {"verifier": "TIGER-Lab/general-verifier", "nli": "microsoft/deberta-v2-xlarge-mnli"}
SIZES = {
    "verifier": "1.5 billion parameters, about 3.1 GB in 16 bits",
    "nli": "0.9 billion parameters, about 1.8 GB in 16 bits",
}
MAX_CHARS = 2_000
"""A longer answer equals only itself; of a question, as many characters are read twice over."""
MAX_NEW_TOKENS = 256
REMEMBERED = 20_000

Case = tuple[str, str, str]
"""(question, earlier answer, later answer)."""
Ask = Callable[[Sequence[Case]], list[str]]

_DECISION = re.compile(r"final\s+decision\W{0,6}(yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Judge:
    """An equivalence that asks a model for the label of each direction; remembers what it was told.

    Args:
        name: shown in records and errors.
        ask: cases → one label each, ``entailment``, ``neutral`` or ``contradiction``.
        directions: one of ``DIRECTIONS``.
        question: what the answers answer; see :meth:`about`.

    >>> judge = Judge("one_way", lambda cases: [YES if len(a) < len(b) else NO for _, a, b in cases])
    >>> judge("Paris", "Paris, France"), judge("Paris", "Paris")
    (False, True)
    """

    name: str
    ask: Ask
    directions: str = "both"
    question: str = ""
    memory: dict[Case, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.directions not in DIRECTIONS:
            raise ConfigError("directions", self.directions, "one of " + ", ".join(DIRECTIONS))

    def __call__(self, a: str, b: str) -> bool:
        """Whether b, the later answer, means what a does. Equal strings do; blanks and overlong ones do not."""
        return self.many([(a, b)])[0]

    def many(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """The same for several pairs, in as few passes of the model as its batches allow."""
        asked = [(a, b) for a, b in pairs if self._needs_the_model(a, b)]
        cases = [case for a, b in asked for case in self._cases(a, b)]
        self._learn([case for case in dict.fromkeys(cases) if case not in self.memory])
        return [self._verdict(a, b) for a, b in pairs]

    def about(self, question: str) -> Judge:
        """The same judge with this question at hand."""
        return replace(self, question=question if isinstance(question, str) else "")

    def bucket(self, answer: str) -> None:
        """No answer has one: every pair of different strings is the model's to judge."""

    def group(self) -> Judge:
        return self

    def reason(self, answer: str) -> str:
        """``ok``, ``blank``, ``no_text``, or ``too_long``."""
        if is_blank(answer):
            return "blank"
        if not isinstance(answer, str):
            return "no_text"
        return "ok" if len(answer) <= MAX_CHARS else "too_long"

    def _needs_the_model(self, a: str, b: str) -> bool:
        return self.reason(a) == self.reason(b) == "ok" and a.strip() != b.strip()

    def _cases(self, a: str, b: str) -> list[Case]:
        forth, back = (self.question, a.strip(), b.strip()), (self.question, b.strip(), a.strip())
        return [forth] if self.directions == "forward" else [forth, back]

    def _learn(self, cases: list[Case]) -> None:
        if len(self.memory) + len(cases) > REMEMBERED:
            self.memory.clear()
        self.memory.update(zip(cases, self.ask(cases) if cases else [], strict=True))

    def _verdict(self, a: str, b: str) -> bool:
        if not self._needs_the_model(a, b):
            return isinstance(a, str) and isinstance(b, str) and a.strip() == b.strip() != ""
        labels = [self.memory[case] for case in self._cases(a, b)]
        return DIRECTIONS[self.directions](labels[0], labels[-1])


def load(
    name: str,
    *,
    question: str = "",
    model: str = "",
    directions: str = "both",
    read: str = "logits",
    device: str = "",
    batch_size: int = 8,
) -> equivalence.Equivalence:
    """The judge of that name.

    Args:
        name: one of ``NAMES``.
        question: what the answers answer, for the two models; ``about`` sets another one.
        model: a hub id or a folder, instead of the one in ``MODELS``.
        directions: ``both`` (paper); ``forward``: the earlier answer as the true one only (published verifier
            code); ``loose``: neither direction contradicts and not both are neutral (for ``nli``).
        read: how the verifier decides: ``logits``, is " Yes" or " No" the likelier next token (published code);
            ``text``, what its written rationale ends in (the model's own template).
        device: for torch; by default a GPU if there is one.
        batch_size: cases in one pass, ≥ 1.

    Raises:
        ConfigError: a setting is wrong, or the model is not on this machine.

    Source: ``semantic_uncertainty.py:18-83`` of QingyangZhang/EMPO at c5eccd4 and 59e5726. Deviations: both
    directions; our wording of the instructions; the group's own question, not the batch's first; the prompt ends
    without the space that " Yes" begins with; the classifier reads the question before each answer.

    >>> load("math").name, load("math")("1/2", "0.5")
    ('math', True)
    """
    if name not in NAMES:
        raise ConfigError("equality", name, "one of " + ", ".join(NAMES))
    if name in equivalence.NAMES:
        return equivalence.load(name)
    if read not in READS:
        raise ConfigError("read", read, "one of " + ", ".join(READS))
    if directions not in DIRECTIONS:
        raise ConfigError("directions", directions, "one of " + ", ".join(DIRECTIONS))
    if batch_size < 1:
        raise ConfigError("batch_size", batch_size, "at least 1")
    hub = model or MODELS[name]
    allowed = (
        f"a model on this machine: {hub} ({SIZES[name]}) can be fetched once, where there is a network, with "
        f"`python -m explorl fetch {name if not model else hub}`"
    )
    if not _is_here(hub):  # said before torch is imported
        raise ConfigError("equality", name, allowed)
    from explorl import judge_models

    try:
        if name == "verifier":
            ask = judge_models.verifier(hub, read, device)
        else:
            ask = judge_models.classifier(hub, device)
    except (OSError, ImportError) as error:
        raise ConfigError("equality", name, allowed) from error
    return Judge(name, _in_batches(ask, batch_size), directions, question)


def _is_here(hub: str) -> bool:
    """Whether a folder or the hub's cache holds the model's configuration."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(hub).is_dir() or isinstance(try_to_load_from_cache(hub, "config.json"), str)
    except HFValidationError:  # no hub id, and no folder that is there
        return False


def prompt(question: str, truth: str, student: str, *, read: str = "logits") -> str:
    r"""What the verifier reads: question, one answer as the true one, the other as a student's, and what to do.

    Line breaks inside a part become spaces, so that no answer can open a block of its own.

    >>> prompt("Capital of France?", "Paris", "Lyon").splitlines()[4]
    '### Student Answer: Lyon'
    """
    parts = (" ".join(part.split()) for part in (question[: 2 * MAX_CHARS], truth, student))
    blocks = "User: ### Question: {}\n\n### Ground Truth Answer: {}\n\n### Student Answer: {}\n\n".format(*parts)
    task = (
        "Judge whether the student's answer above means the same as the ground truth answer. "
        "Only compare the two; do not work the question out.\n"
        'End with "Final Decision: Yes" if they are equivalent and with "Final Decision: No" if they are not.\n'
    )
    return blocks + task + ("Assistant: Final Decision:" if read == "logits" else "Assistant:")


def decision(text: str) -> str:
    """The label that a verifier's rationale ends in; ``neutral`` if it comes to no decision.

    >>> decision("Both name the same city. Final Decision: Yes"), decision("Hard to say.")
    ('entailment', 'neutral')
    """
    found = _DECISION.findall(text)
    return NEUTRAL if not found else YES if found[-1].lower() == "yes" else NO


def _in_batches(ask: Ask, batch_size: int) -> Ask:
    """Ask about at most so many cases at once, those of like length together, one thread at a time."""
    lock = threading.Lock()

    def batched(cases: Sequence[Case]) -> list[str]:
        order = sorted(range(len(cases)), key=lambda i: sum(map(len, cases[i])))
        labels = [NEUTRAL] * len(cases)
        with lock:
            for start in range(0, len(order), batch_size):
                rows = order[start : start + batch_size]
                for row, label in zip(rows, ask([cases[i] for i in rows]), strict=True):
                    labels[row] = label
        return labels

    return batched
