"""The command line: exit codes, hostile input, speed of --help; never a traceback."""

import io
import json
import os
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from explorl import __main__ as cli
from explorl import fetch, params, places, run, score
from explorl.errors import ConfigError
from explorl.papers import sde2


def explorl(*arguments, given=b"", **environment):
    return subprocess.run([sys.executable, "-m", "explorl", *map(str, arguments)], input=given, capture_output=True,
                          env=os.environ | environment, timeout=120, check=False)


def call(capsys, *arguments):
    code = cli.main(list(map(str, arguments)))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def good_file(folder, name="smoke", **changes):
    text = (places.params_dir() / "sde2" / "smoke.yaml").read_text(encoding="utf-8").replace("run: smoke", f"run: {name}")
    path = folder / f"{name}.yaml"
    path.write_text(text + "".join(f"{k}: {v}\n" for k, v in changes.items()), encoding="utf-8")
    return path


def test_help_imports_nothing_heavy():
    code = ("import sys; from explorl.__main__ import parser; parser().format_help(); "
            "print([m for m in ('numpy', 'pydantic', 'torch', 'scipy', 'yaml') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [[], ["runn"], ["run"], ["score", "sde3"], ["score", "sde2", "--batch", "x"]])
def test_wrong_usage_is_exit_code_2(arguments):
    done = explorl(*arguments)
    assert done.returncode == 2 and b"usage:" in done.stderr and b"Traceback" not in done.stderr


def test_check_reports_every_file_and_runs_nothing(capsys, tmp_path):
    good, bad = good_file(tmp_path), good_file(tmp_path, "bad", deltaa=1)
    code, out, err = call(capsys, "check", good, bad, tmp_path / "none.yaml")
    assert code == 2 and "sde2/smoke: ok, 2 arms × 1 seeds; needs no GPU" in out
    assert "did you mean delta?" in err and "none.yaml" in err
    assert call(capsys, "check", good)[0] == 0


def test_check_estimates_a_run_on_a_t4(capsys, tmp_path):
    t4 = {"run": "t4", "scale": "t4", "task": "gsm8k", "backbone": "unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit",
          "load_in_4bit": True, "lora_r": 64, "max_sequence_tokens": 2048, "max_completion_tokens": 1536, "group_size": 6,
          "micro_batch": 2, "prompts_per_step": 1}
    values = params.load("sde2", "smoke").model_dump() | t4
    path = tmp_path / "t4.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    code, out, _ = call(capsys, "check", path)
    assert code == 0 and "GiB" in out and " h in all" in out
    path.write_text(yaml.safe_dump(values | {"group_size": 64, "micro_batch": 64, "max_sequence_tokens": 8192}),
                    encoding="utf-8")
    code, _, err = call(capsys, "check", path)
    assert code == 2 and "memory" in err and "Next:" in err


def test_run_starts_nothing_when_one_file_is_wrong(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "execute", lambda *_, **__: pytest.fail("started"))
    code, _, err = call(capsys, "run", good_file(tmp_path), good_file(tmp_path, "bad", steps="many"))
    assert code == 2 and "a number" not in err and "given once" in err


def test_run_goes_on_after_a_failed_run(capsys, tmp_path, monkeypatch):
    def execute(one, out, force):
        if one.run == "first":
            raise run.RunFailed("sde2/first: ValueError in cell 3: x")
        return SimpleNamespace(seconds=12.0), True

    monkeypatch.setattr(run, "execute", execute)
    code, out, err = call(capsys, "run", good_file(tmp_path, "first"), good_file(tmp_path, "second"), "--out", tmp_path)
    assert code == 1 and "[1/2] sde2/first: failed" in err and "[2/2] sde2/second: done in 12 arm-seconds" in out


def test_run_list_runs_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "execute", lambda *_, **__: pytest.fail("started"))
    code, out, _ = call(capsys, "run", "--list", "--out", tmp_path, good_file(tmp_path))
    assert (code, out) == (0, "[1/1] sde2/smoke: to do\n")


def test_an_interrupt_is_exit_code_130(capsys, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "execute", interrupted)
    code, _, err = call(capsys, "run", good_file(tmp_path))
    assert code == 130 and "checkpoint" in err


# score

def lines(*rows):
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


BLOCK = ('<strategy id="1"><reasoning>add them</reasoning><strategy_outcome>18</strategy_outcome></strategy>'
         "<final_answer>18</final_answer>")
GOOD = {"id": "a", "completion": BLOCK, "gold": "18"}
HOSTILE = [
    (b"not json", "not JSON"),
    (b'{"completion": "x", "gold": ', "not JSON"),
    (b"[1, 2]", "not a JSON object"),
    (b"null", "not a JSON object"),
    (b'"text"', "not a JSON object"),
    (b"{}", "completion: missing"),
    (b'{"completion": "x"}', "gold: missing"),
    (b'{"completion": 5, "gold": "1", "id": 3}', "completion: must be text, not int"),
    (b'{"completion": "x", "gold": 18}', "gold: must be text, not int"),
    (b'{"completion": "x", "gold": null}', "gold: must be text"),
    (b'{"completion": "\xff", "gold": "1"}', "not UTF-8"),
    (b"[" * 100_000, "not JSON"),
    (b'{"id": ' + b"9" * 6000 + b', "completion": "x", "gold": "1"}', "not JSON that can be read"),
]


def echo(batch):
    return [{"length": len(line.completion), "gold": line.gold} for line in batch]


@pytest.mark.parametrize("raw, message", HOSTILE)
def test_a_bad_line_gives_an_error_line_and_the_rest_is_scored(raw, message):
    out = io.StringIO()
    assert score.score_lines(io.BytesIO(lines(GOOD, raw, GOOD)), out, echo) == 1
    first, second, third = map(json.loads, out.getvalue().splitlines())
    assert (first["line"], third["line"]) == (1, 3) and first["length"] == third["length"] == len(BLOCK)
    assert second["line"] == 2 and second["error"].startswith(message) and "length" not in second


def test_an_error_line_carries_the_id_where_there_is_one():
    assert score.parse_line(1, HOSTILE[7][0]).id == 3


def test_order_is_kept_across_batches_and_blank_lines_are_skipped():
    rows = [{"id": i, "completion": "x" * i, "gold": ""} if i % 3 else b"bad" for i in range(20)]
    out = io.StringIO()
    assert score.score_lines(io.BytesIO(b"\n  \n" + lines(*rows)), out, echo, batch=4) == 7
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [row["line"] for row in found] == list(range(3, 23))
    assert [row["id"] for row in found if "id" in row] == [i for i in range(20) if i % 3]


def test_half_a_surrogate_pair_and_a_byte_order_mark():
    line = score.parse_line(1, b'\xef\xbb\xbf{"completion": "a\\ud800b\\ud83d\\ude00", "gold": "1"}')
    assert line.error == "" and line.completion == "a\ufffdb\U0001f600"


def test_a_line_over_the_limit_is_skipped_without_being_held(monkeypatch):
    monkeypatch.setattr(score, "MAX_LINE_BYTES", 1000)
    out = io.StringIO()
    assert score.score_lines(io.BytesIO(lines({"completion": "x" * 50_000, "gold": "1"}, GOOD)), out, echo) == 1
    first, second = map(json.loads, out.getvalue().splitlines())
    assert "longer than 1000 bytes" in first["error"] and second["line"] == 2 and second["length"] == len(BLOCK)


class Endless(io.RawIOBase):
    """Two hundred lines of a megabyte, made as they are read."""

    def __init__(self):
        self.left = 200

    def readline(self, size=-1):
        self.left -= 1
        return lines({"completion": "y" * 2**20, "gold": "1"}) if self.left >= 0 else b""


def test_memory_does_not_grow_with_the_input():
    tracemalloc.start()
    score.score_lines(Endless(), SimpleNamespace(write=len, flush=int), echo, batch=4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20


def test_settings_are_read_like_parameters():
    assert score.settings(["delta=0.7", "re_mode=chi", "max_strategies=null"]) == {
        "delta": 0.7, "re_mode": "chi", "max_strategies": None}
    for wrong in ("delta", "=1", "a b=1", "delta=[1"):
        with pytest.raises(ConfigError):
            score.settings([wrong])
    with pytest.raises(ConfigError, match="eps = '3e-4': must be written as 3.0e-4"):
        score.settings(["eps=3e-4"])
    with pytest.raises(ConfigError, match="delta = '0.6': must be given once"):
        score.settings(["delta=0.5", "delta=0.6"])


def test_scores_are_those_of_the_library():
    texts = [BLOCK, "", "<final_answer>18</final_answer>", BLOCK.replace("18", "20")]
    rows = [{"id": i, "completion": text, "gold": "18"} for i, text in enumerate(texts)]
    out = io.StringIO()
    one = score.scorer("sde2", {"encoder": "random", "rho": 0.2})
    assert score.score_lines(io.BytesIO(lines(*rows)), out, one, batch=3) == 0
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    from explorl import encoders
    expected = sde2.components(texts, "18", encoders.load("random"), sde2.Config(rho=0.2))
    for name in ("oc", "re", "fa", "sd"):
        assert [row[name] for row in found] == pytest.approx(np.asarray(expected[name], dtype=float).tolist())
    assert [row["reason"] for row in found] == ["ok", "empty", "no_strategy", "ok"]


def test_a_reference_without_an_answer_is_an_error_line():
    out = io.StringIO()
    rows = lines({"completion": BLOCK, "gold": " "}, GOOD, {"completion": BLOCK, "gold": "**", "id": "x"})
    assert score.score_lines(io.BytesIO(rows), out, score.scorer("sde2", {"encoder": "random"})) == 2
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert ["error" in row for row in found] == [True, False, True] and found[2]["id"] == "x"


@pytest.mark.parametrize("pair, hint", [
    (["relevance_floor=0.2", "encoder=random"], b"no prompts"),
    (["dleta=0.7"], b"dleta"), (["delta=1.5"], b"delta = 1.5"), (["delta=3e-1"], b"delta"),
])
def test_wrong_settings_are_exit_code_2(pair, hint):
    done = explorl("score", "sde2", *[x for p in pair for x in ("--set", p)], given=lines(GOOD), HF_HUB_OFFLINE="1")
    assert done.returncode == 2 and hint in done.stderr and b"Traceback" not in done.stderr and done.stdout == b""


def test_score_end_to_end_with_hostile_lines():
    nasty = ["x" * 2**20, "<strategy>" * 20_000, BLOCK * 500, "\0\u202e9**9**9", "\\frac{" * 50_000, "\ud800"]
    given = lines(*[{"completion": text, "gold": "18"} for text in nasty], b"bad", GOOD)
    done = explorl("score", "sde2", "--set", "encoder=random", given=given)
    assert done.returncode == 1 and b"Traceback" not in done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 8 and [row["line"] for row in found if "error" in row] == [7]
    assert found[7]["id"] == "a" and found[7]["oc"] == 1.0
    assert explorl("score", "sde2", "--set", "encoder=random", given=lines(GOOD)).returncode == 0


def test_a_reader_that_goes_away_is_no_traceback():
    command = f"{sys.executable} -m explorl score sde2 --set encoder=random --batch 1 | head -c 1 > /dev/null"
    done = subprocess.run(["bash", "-c", command], input=lines(*[GOOD] * 3000), capture_output=True, timeout=120, check=False)
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


# fetch

@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_no_traceback():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "explorl", "score", "sde2", "--set", "encoder=random"],
                              input=lines(GOOD), stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.returncode == 1 and b"No space left" in done.stderr and b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_score_says_nothing_of_its_own_on_stderr():
    done = explorl("score", "sde2", given=lines(GOOD))
    assert done.returncode == 0 and done.stderr == b""


def test_fetch_without_a_name_lists_them(capsys):
    code, out, _ = call(capsys, "fetch")
    assert code == 0 and {"gsm8k", "minilm", "unsloth/Qwen2.5-3B-Instruct"} <= set(out.split())


def test_fetch_downloads_at_the_pinned_revision():
    asked = {}
    text = fetch.fetch("minilm", download=lambda hub, **options: asked.update(options, hub=hub))
    assert asked["hub"] == "sentence-transformers/all-MiniLM-L6-v2" and len(asked["revision"]) == 40
    assert asked["revision"] in text
    fetch.fetch("BAAI/bge-base-en-v1.5", download=lambda hub, **options: asked.update(options, hub=hub))
    assert (asked["hub"], asked["revision"]) == ("BAAI/bge-base-en-v1.5", "main")


def test_the_backbone_of_every_params_file_has_a_name_to_fetch():
    backbones = {params.load("sde2", name).backbone for name in params.available("sde2")}
    assert backbones - {"toy", "smollm2"} <= set(fetch.names())


@pytest.mark.parametrize("name", ["minilmm", "/etc/passwd", "../x", "a/b/c", ""])
def test_fetch_of_an_unknown_name(name):
    with pytest.raises(ConfigError, match="one of gsm8k"):
        fetch.fetch(name)


def test_fetch_offline_says_what_to_do(capsys, monkeypatch):
    def offline(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    code, _, err = call(capsys, "fetch", "Qwen/Qwen2.5-3B-Instruct")
    assert code == 2 and "Qwen/Qwen2.5-3B-Instruct could not be read" in err and "HF_HOME" in err
