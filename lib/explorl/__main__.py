"""The command line: ``python -m explorl run | check | score | notebooks | fetch``.

Exit codes: 0 all well; 1 something failed while running (a run, a line of input, a notebook out of date);
2 wrong usage or configuration, found before anything ran; 130 interrupted.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from explorl.errors import ConfigError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        return options.command(options)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has gone: Python shall not try to flush into it again
        _drop_output()
        return 1
    except OSError as error:  # a full disk, say
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(prog="python -m explorl",
                                  description="Rewarding Exploration, from the command line.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="execute runs and write their records; resumable")
    run.add_argument("files", nargs="+", metavar="PARAMS", help="such as params/sde2/toy.yaml")
    run.add_argument("--out", metavar="DIR", help="records go to DIR/<chapter>/<run>/ (default: results)")
    run.add_argument("--force", action="store_true", help="also where a record from the same inputs is there")
    run.add_argument("--list", action="store_true", help="say what would run, and run nothing")
    run.set_defaults(command=_run)

    check = commands.add_parser("check", help="check names, types, memory and time of runs; runs nothing")
    check.add_argument("files", nargs="+", metavar="PARAMS")
    check.set_defaults(command=_check)

    score = commands.add_parser("score", help='score JSON lines on stdin: {"completion", "gold", "group", "id"}',
                               description="sde2 needs completion and gold. empo needs completion and group: "
                                           "consecutive lines with the same group are one group; gold and prompt "
                                           "are optional. imagine needs completion, group, gold (the target) and "
                                           "numbers, a list; with --set form=hash it needs no numbers.")
    score.add_argument("paper", choices=["sde2", "empo", "imagine"])
    score.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                       help="a setting, such as delta=0.7 or equality=math; may be repeated")
    score.add_argument("--batch", type=int, metavar="N", help="lines scored together (sde2 32, imagine 64)")
    score.set_defaults(command=_score)

    notebooks = commands.add_parser("notebooks", help="generate the Colab notebooks from the chapters")
    notebooks.add_argument("--check", action="store_true", help="only say which are out of date")
    notebooks.set_defaults(command=_notebooks)

    fetch = commands.add_parser("fetch", help="download models and data sets for offline use")
    fetch.add_argument("names", nargs="*", metavar="NAME", help="without a name: list them")
    fetch.set_defaults(command=_fetch)

    arm = commands.add_parser("arm")  # one arm of a run, in its own process; started by run
    for name in ("--params", "--arm", "--out"):
        arm.add_argument(name, required=True)
    arm.add_argument("--seed", type=int, required=True)
    arm.add_argument("--parent", type=int)
    arm.set_defaults(command=_arm)
    return top


def _run(options: argparse.Namespace) -> int:
    from explorl import places, run

    runs, wrong = _load_all(options.files)  # all are checked before the first one starts
    if wrong:
        return 2
    out = Path(options.out) if options.out else places.results_dir()
    failed = 0
    for number, one in enumerate(runs, start=1):
        label = f"[{number}/{len(runs)}] {one.chapter}/{one.run}"
        if options.list:
            print(f"{label}: {'done' if run.is_done(one, out) else 'to do'}")
            continue
        print(f"{label}: {len(one.arms)} arms, {len(one.seeds)} seeds", file=sys.stderr)
        try:
            record, new = run.execute(one, out, force=options.force)
        except run.RunFailed as error:
            print(f"{label}: failed\n{error}", file=sys.stderr)
            failed += 1
            continue
        print(f"{label}: {f'done in {record.seconds:.0f} arm-seconds' if new else 'already done'}, "
              f"{run.record_folder(one, out) / 'result.json'}")
    return int(failed > 0)


def _load_all(files: Sequence[str]) -> tuple[list, int]:
    """The parameters of all files that are right, and how many are wrong; those are reported."""
    from explorl import params

    runs, wrong = [], 0
    for file in files:
        try:
            runs.append(params.load(None, file))
        except ConfigError as error:
            print(error, file=sys.stderr)
            wrong += 1
    return runs, wrong


def _check(options: argparse.Namespace) -> int:
    runs, wrong = _load_all(options.files)
    for one in runs:
        try:
            size = f"{len(one.arms)} arms × {len(one.seeds)} seeds"
            print(f"{one.chapter}/{one.run}: ok, {size}; {_needs(one)}")
        except ConfigError as error:
            print(f"{one.chapter}/{one.run}: {error}", file=sys.stderr)
            wrong += 1
    return 2 if wrong else 0


def _needs(one) -> str:
    from explorl.train import preflight

    if one.backbone in preflight.CPU_BACKBONES:
        return "needs no GPU"
    need = preflight.require_fit(one)
    low, high = (minutes / 60 for minutes in need.minutes)
    memory = f"{need.need_gib:.1f} of {preflight.LIMIT_GIB} GiB (± 20 %)"
    return f"on a T4 {memory}, {low:.1f} to {high:.1f} h in all (estimated)"


def _score(options: argparse.Namespace) -> int:
    from explorl import score

    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # of reading the encoder's weights
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it misses an optional kernel, unused here
    values = score.settings(options.set)
    bad = score.run(options.paper, values, sys.stdin.buffer, sys.stdout, batch=options.batch)
    if bad:
        print(f"{bad} line{'s' if bad > 1 else ''} could not be scored", file=sys.stderr)
    return int(bad > 0)


def _notebooks(options: argparse.Namespace) -> int:
    from explorl import notebooks

    changed = notebooks.check() if options.check else notebooks.generate()
    for path in changed:
        print(f"{'out of date' if options.check else 'written'}: {path.name}")
    if not changed:
        print("all up to date")
    return int(options.check and bool(changed))


def _fetch(options: argparse.Namespace) -> int:
    from explorl import fetch

    if not options.names:
        print("\n".join(fetch.names()))
    for name in options.names:
        print(fetch.fetch(name))
    return 0


def _arm(options: argparse.Namespace) -> int:
    import json

    from explorl import one_arm, params

    if options.parent:
        one_arm.end_with_parent(options.parent)
    values = json.loads(Path(options.params).read_text(encoding="utf-8"))
    one = params.check_values(values, source="params")
    one_arm.run_arm(one, options.arm, options.seed, Path(options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
