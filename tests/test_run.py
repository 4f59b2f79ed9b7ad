"""Runs: arms in their own processes, records written whole or not at all, notebooks executed to a record."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from explorl import arms, one_arm, params, places, run
from explorl.errors import ConfigError
from explorl.report import provenance, records

STAND_IN = textwrap.dedent("""
    import json, os, pathlib, sys
    arm, seed, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    (folder / "train").mkdir(exist_ok=True)
    starts = folder / "starts"
    starts.write_text(starts.read_text() + "x" if starts.exists() else "x")
    print("working on", arm, os.environ.get("OMP_NUM_THREADS"))
    if arm == "cfl" and os.environ.get("FAIL"):
        raise ValueError("no such thing")
    (folder / "train" / "curve.jsonl").write_text('{"kind": "train", "step": 1}\\n')
    (folder / "items.jsonl").write_text(json.dumps({"key": "a", "n": 1, "acc_strict": seed % 2}) + "\\n")
    accuracy = {"base": 0.2, "cfl": 0.4, "sde2": 0.6}[arm] + seed / 10
    (folder / "result.json").write_text(json.dumps({
        "arm": arm, "seed": seed, "steps": 3, "problems": 10, "policy": {}, "seconds": 1.5, "peak_memory_mb": 100.0 + seed,
        "metrics": {"acc_strict": {"value": accuracy, "k": round(10 * accuracy), "n": 10}, "tokens": {"value": 30.0},
                    "rr": {"value": float("nan") if arm == "base" else 0.1}}}))
""")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLORL_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("EXPLORL_SCALE", raising=False)
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    return tmp_path


def stand_in(folder):
    def command(params_, job, params_file):
        return [sys.executable, str(folder / "stand_in.py"), job.arm, str(job.seed), str(job.folder)]
    return command


def small(**changes):
    return params.load("sde2", "smoke", **{"arms": ["base", "cfl", "sde2"], "seeds": [0, 1]} | changes)


def test_results_come_in_the_order_of_arms_and_seeds(here):
    results = arms.train_arms(small(), jobs=2, progress=False, command=stand_in(here))
    assert [(r["arm"], r["seed"]) for r in results] == [(a, s) for a in ("base", "cfl", "sde2") for s in (0, 1)]
    assert results[0]["curve"] == [{"kind": "train", "step": 1}]
    assert results[1]["items"] == [{"key": "a", "n": 1, "acc_strict": 1}]


def test_a_finished_arm_is_not_started_again_and_another_seed_is(here):
    arms.train_arms(small(seeds=[0]), progress=False, command=stand_in(here))
    results = arms.train_arms(small(run="other", seeds=[1, 0]), progress=False, command=stand_in(here))
    assert [Path(r["folder"], "starts").read_text() for r in results] == ["x"] * 6
    changed = arms.train_arms(small(seeds=[0], steps=4), progress=False, command=stand_in(here))
    assert Path(changed[0]["folder"]).parent != Path(results[0]["folder"]).parent


def test_a_failed_arm_shows_its_log_and_keeps_the_finished(here, monkeypatch):
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(arms.ArmFailed, match=r"cfl \(seed 0\) ended with exit code 1") as caught:
        arms.train_arms(small(), jobs=1, progress=False, command=stand_in(here))
    assert "ValueError: no such thing" in str(caught.value)
    root = arms.group_folder(small())
    assert (root / "base-s0" / "result.json").is_file() and not (root / "sde2-s0").exists()
    monkeypatch.delenv("FAIL")
    results = arms.train_arms(small(), jobs=1, progress=False, command=stand_in(here))
    assert [Path(r["folder"], "starts").read_text() for r in results] == ["x", "x", "xx", "x", "x", "x"]


def test_an_arm_that_ends_well_without_a_result_has_failed(here):
    with pytest.raises(arms.ArmFailed, match="exit code 0 and no result"):
        arms.train_arms(small(), progress=False, command=lambda *_: [sys.executable, "-c", "print('hello')"])


def test_one_line_per_finished_arm(here, capsys):
    arms.train_arms(small(seeds=[0]), jobs=1, command=stand_in(here))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"[arm {i}/3] {a} (seed 0)" for i, a in
                                                      ((1, "base"), (2, "cfl"), (3, "sde2"))]
    arms.train_arms(small(seeds=[0]), progress=False, command=stand_in(here))
    assert capsys.readouterr().out == ""


def test_no_more_jobs_at_a_time_than_asked_for(here):
    script = "import pathlib, sys, time; f = pathlib.Path(sys.argv[1]); g = f.parent / f'busy-{f.name}'; g.touch();" \
             "(f.parent / f'saw-{f.name}').write_text(str(len(list(f.parent.glob('busy-*')))));" \
             "time.sleep(0.3); g.unlink(); (f / 'result.json').write_text('{}')"
    one = small(arms=["base"], seeds=list(range(5)))
    arms.train_arms(one, jobs=2, progress=False, command=lambda p, job, f: [sys.executable, "-c", script, str(job.folder)])
    assert max(int(f.read_text()) for f in arms.group_folder(one).glob("saw-*")) <= 2


@pytest.mark.parametrize("jobs", [0, -1])
def test_jobs_out_of_range(here, jobs):
    with pytest.raises(ConfigError, match="jobs"):
        arms.train_arms(small(), jobs=jobs)


def test_one_thread_each_on_a_cpu(here, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    results = arms.train_arms(small(arms=["base"], seeds=[0]), progress=False, command=stand_in(here))
    assert Path(results[0]["folder"], "log.txt").read_text() == "working on base 1\n"


SLEEPER = ("import pathlib, sys, time; from explorl import one_arm; one_arm.end_with_parent(int(sys.argv[2])); "
           "import os; pathlib.Path(sys.argv[1], 'pid').write_text(str(os.getpid())); time.sleep(60)")


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] if Path("/proc/self").exists() else "R"
        os.kill(pid, 0)
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_arm_outlives_its_parent(here, how):
    parent_code = textwrap.dedent(f"""
        import os, signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from explorl import arms, params
        one = params.load("sde2", "smoke", arms=["base"], seeds=[0, 1])
        command = lambda p, job, f: [sys.executable, "-c", {SLEEPER!r}, str(job.folder), str(os.getpid())]
        arms.train_arms(one, jobs=2, progress=False, command=command)
    """)
    parent = subprocess.Popen([sys.executable, "-c", parent_code], stderr=subprocess.DEVNULL)
    def pids():
        return [int(f.read_text()) for f in (here / "runs").glob("*/base-s*/pid") if f.read_text()]

    until(lambda: len(pids()) == 2, 60)
    children = pids()
    assert all(map(alive, children))
    parent.send_signal(how)
    parent.wait(20)
    until(lambda: not any(map(alive, children)), 15)


def test_two_processes_do_not_work_in_one_folder(tmp_path):
    code = ("import sys, time, pathlib; from explorl import one_arm\n"
            "with one_arm.only_here(pathlib.Path(sys.argv[1])):\n"
            "    log = pathlib.Path(sys.argv[1], 'log'); log.open('a').write('in '); time.sleep(0.5)\n"
            "    log.open('a').write('out ')")
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(2)]
    assert [p.wait(30) for p in both] == [0, 0]
    assert (tmp_path / "log").read_text() == "in out in out "


def test_the_source_hash_follows_imports_and_leaves_the_rest_alone(tmp_path, monkeypatch):
    package = tmp_path / "explorl"
    monkeypatch.setattr(places, "PACKAGE", package)
    sources = {"one_arm.py": "import importlib\nfrom explorl.report import tables\n",
               "arms_sde2.py": "from explorl.papers import sde2\n\ndef f():\n    from explorl.encoders import load\n",
               "papers/sde2.py": "from explorl.text.a import x\n", "text/a.py": "import explorl.text.b\n",
               "text/b.py": "x = 1\n", "encoders.py": "x = 1\n", "tasks/digits.py": "x = 1\n",
               "tasks/aime.py": "x = 1\n", "papers/rose.py": "x = 1\n", "report/tables.py": "x = 1\n"}
    for name, text in sources.items():
        (package / name).parent.mkdir(exist_ok=True, parents=True)
        (package / name).write_text(text)
    before = provenance.source_hash("sde2", ["tasks.digits"])
    for name in ("papers/rose.py", "report/tables.py", "tasks/aime.py"):
        (package / name).write_text("x = 2\n")
        assert provenance.source_hash("sde2", ["tasks.digits"]) == before, name
    for name in ("text/b.py", "encoders.py", "tasks/digits.py", "one_arm.py"):
        (package / name).write_text(sources[name] + "y = 2\n")
        after = provenance.source_hash("sde2", ["tasks.digits"])
        assert after != before, name
        before = after


@pytest.mark.parametrize("chapter, module", [("sde2", "papers/sde2_diversity.py"), ("empo", "text/clusters.py")])
def test_the_source_hash_of_a_chapter_reaches_its_mathematics(chapter, module):
    files = {p.relative_to(places.PACKAGE).as_posix() for p in provenance._closure(
        ["one_arm", f"arms_{chapter}", "tasks.digits", *provenance.STARTED])}
    assert {module, "one_arm.py", f"arms_{chapter}.py", "text/math_worker.py", "train/trainer.py",
            "tasks/digits.py"} <= files
    assert not any(name.startswith("report/") for name in files)


def test_metrics_table_by_hand(here):
    results = arms.train_arms(small(), progress=False, command=stand_in(here))
    rows = {(row.arm, row.metric): row for row in run.metrics_table(results)}
    row = rows["sde2", "acc_strict"]  # 0.6 and 0.7: mean 0.65, s = 0.0707, t(0.975, 1) = 12.706
    assert row.value == pytest.approx(0.65)
    assert (row.low, row.high) == (pytest.approx(0.65 - 12.7062 * 0.05, abs=1e-4), pytest.approx(0.65 + 0.63531, abs=1e-4))
    assert (row.interval, row.n, row.pooled.k, row.pooled.n) == ("t", 10, 13, 20)
    assert [(s.seed, s.value) for s in row.seeds] == [(0, pytest.approx(0.6)), (1, pytest.approx(0.7))]
    assert rows["base", "rr"].value is None and rows["base", "rr"].interval == "none"
    assert rows["sde2", "tokens"].pooled is None
    single = run.metrics_table([r for r in results if r["seed"] == 0])
    row = next(r for r in single if (r.arm, r.metric) == ("base", "acc_strict"))
    assert row.interval == "wilson" and row.low == pytest.approx(0.0567, abs=1e-4)  # Wilson of 2 in 10


@pytest.fixture
def record(here):
    results = arms.train_arms(small(), progress=False, command=stand_in(here))
    return run.finish(small(), results)


def test_a_record_goes_to_disk_and_back(record, tmp_path):
    path = records.save(record, tmp_path / "out" / "sde2" / "smoke")
    assert records.read_all(tmp_path / "out") == [record] == records.read_all(tmp_path / "out", "sde2")
    assert records.read_all(tmp_path / "out", "rose") == []
    assert path.read_bytes() == records.save(record, tmp_path / "again").read_bytes()
    values = json.loads(path.read_text(encoding="utf-8"))
    assert values["schema_version"] == 1 and values["seconds"] == 9.0 and values["peak_memory_mb"] == 101.0
    assert values["params"]["steps"] == 3 and "python" in values["versions"]
    assert record.value("sde2", "acc_strict").value == pytest.approx(0.65)
    with pytest.raises(ConfigError, match="sde2/acc_strict"):
        record.value("sde2", "nothing")


def test_a_record_holds_no_path_and_no_host_name(record, here):
    import socket

    text = record.model_dump_json()
    assert str(here) not in text and str(Path.home()) + "/" not in text and str(places.PACKAGE) not in text
    assert socket.gethostname() not in text
    with pytest.raises(ConfigError, match="path of this machine"):
        records.validate(record.model_dump() | {"versions": {"torch": "/opt/torch"}})
    local = run.finish(small(encoder="/data/models/my-encoder"), [{"arm": "base", "seed": 0, "metrics": {}, "problems": 1,
                                                                  "seconds": 1.0, "peak_memory_mb": 1.0}])
    assert local.params["encoder"] == "my-encoder"


@pytest.mark.parametrize("change", [
    {"schema_version": 2}, {"seconds": float("nan")}, {"seconds": -1.0}, {"metrics": None}, {"extra": 1},
    {"metrics": [{"arm": "x"}]}, {"hardware": [1]}, {"git_dirty": "maybe"},
])
def test_what_is_no_record_is_refused(record, change):
    with pytest.raises(ConfigError, match=next(iter(change)) if "extra" not in change else "extra"):
        records.validate(record.model_dump() | change)


def test_a_broken_file_is_an_error_that_names_it(tmp_path):
    (tmp_path / "sde2" / "toy").mkdir(parents=True)
    (tmp_path / "sde2" / "toy" / "result.json").write_text('{"schema_version": 1, ')
    with pytest.raises(ConfigError, match="sde2/toy/result.json"):
        records.read_all(tmp_path)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_half_written_record_never_appears(tmp_path, monkeypatch, failing):
    path = tmp_path / "result.json"
    records.write_atomic(path, "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="disk full"):
        records.write_atomic(path, "new" * 1000)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]


def test_a_writer_killed_at_any_moment_leaves_the_old_or_the_new(tmp_path):
    path = tmp_path / "result.json"
    code = ("import sys, pathlib, itertools; from explorl.report.records import write_atomic\n"
            "for i in itertools.count(): write_atomic(pathlib.Path(sys.argv[1]), str(i % 10) * 200_000)")
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)])
        until(path.is_file)
        time.sleep(0.2)
        writer.kill()
        writer.wait()
        text = path.read_text()
        assert len(text) == 200_000 and len(set(text)) == 1


def test_finish_needs_results():
    with pytest.raises(ConfigError, match="results"):
        run.finish(small(), [])


CHAPTER = """---
kernelspec: {{name: python3, display_name: Python 3}}
---

# A stand-in chapter

```{{code-cell}}
:tags: [parameters]
scale = "toy"
steps = None
out_dir = None
```

```{{code-cell}}
import json, pathlib
from explorl import params
from explorl.run import finish
p = params.from_notebook("sde2", globals())
pathlib.Path({marks!r}).open("a").write(json.dumps([p.run, p.steps, str(pathlib.Path.cwd().name)]) + "\\n")
print("chatter")
print("[arm 1/1] base (seed 0): 1 s")
{extra}
results = [{{"arm": "base", "seed": 0, "problems": 4, "seconds": 1.0, "peak_memory_mb": 5.0,
            "metrics": {{"acc_strict": {{"value": 0.5, "k": 2, "n": 4}}}}}}]
record = finish(p, results, out_dir{broken})
```
"""


@pytest.fixture
def chapter(here, monkeypatch):
    """Puts a stand-in for the chapter's notebook in place; calling it changes its code."""
    folder = here / "chapters"
    folder.mkdir()
    marks = here / "marks.jsonl"

    def put(extra="", broken=""):
        text = CHAPTER.format(marks=str(marks), extra=extra, broken=broken)
        (folder / "sde2.md").write_text(text, encoding="utf-8")

    monkeypatch.setattr(places, "chapter_notebook", lambda name: folder / f"{name}.md")
    put()
    put.marks = lambda: [json.loads(line) for line in marks.read_text().splitlines()]
    return put


def test_a_run_executes_the_chapter_once_and_writes_its_record(chapter, here, capsys, monkeypatch):
    monkeypatch.setenv("EXPLORL_SCALE", "toy")  # of no concern to a run with its own file
    record, new = run.execute(small(steps=5), here / "results", progress=True)
    assert new and chapter.marks() == [["smoke", 5, "chapters"]]
    assert record == records.read(here / "results" / "sde2" / "smoke" / "result.json")
    assert record.inputs_hash == run.inputs_hash(small(steps=5))
    shown = capsys.readouterr().err
    assert "[arm 1/1] base" in shown and "chatter" not in shown
    again, new = run.execute(small(steps=5), here / "results", progress=False)
    assert not new and again == record and len(chapter.marks()) == 1
    assert (here / "results" / "sde2" / "smoke" / "run.ipynb").is_file()


def test_arms_train_under_the_callers_folder_not_beside_the_notebook(chapter, here, monkeypatch):
    one = small()
    monkeypatch.delenv("EXPLORL_RUNS")
    monkeypatch.setattr(places, "checkout", lambda: None)  # as pip installs it, in Colab
    monkeypatch.chdir(here)
    chapter(extra=f"import os; pathlib.Path({str(here / 'seen')!r}).write_text(os.environ['EXPLORL_RUNS'])")
    run.execute(one, here / "results", progress=False)
    assert (here / "seen").read_text() == str(here / "runs")
    assert "EXPLORL_RUNS" not in os.environ


def test_a_run_is_made_again_when_asked_or_when_its_inputs_changed(chapter, here):
    run.execute(small(), here / "results", progress=False)
    assert run.execute(small(), here / "results", progress=False, force=True)[1]
    assert run.execute(small(steps=8), here / "results", progress=False)[1]
    chapter(extra="changed = True")
    assert not run.is_done(small(steps=8), here / "results")
    (here / "results" / "sde2" / "smoke" / "result.json").write_text("{")
    assert not run.is_done(small(), here / "results")


def test_an_unreadable_record_is_set_aside_before_the_chapter_reads_it(chapter, here):
    folder = here / "results" / "sde2" / "smoke"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text("<<<<<<< ours", encoding="utf-8")
    chapter(extra=f"from explorl.report import records; records.read_all({str(here / 'results')!r})")
    record, new = run.execute(small(), here / "results", progress=False)
    assert new and records.read(folder / "result.json") == record
    assert (folder / "result.unreadable").read_text(encoding="utf-8") == "<<<<<<< ours"


def test_an_output_folder_that_cannot_be_written_is_found_before_the_run(chapter, here):
    (here / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="out = .*a folder that can be written"):
        run.execute(small(), here / "file", progress=False)
    assert not (here / "marks.jsonl").exists()


def test_a_failing_cell_is_reported_and_the_partial_notebook_kept(chapter, here):
    chapter(extra="1 / 0")
    with pytest.raises(run.RunFailed, match="ZeroDivisionError") as caught:
        run.execute(small(), here / "results", progress=False)
    partial = here / "results" / "sde2" / "smoke" / "run.ipynb"
    assert str(partial) in str(caught.value) and "chatter" in partial.read_text()
    assert not partial.with_name("result.json").exists()


def test_a_notebook_that_writes_no_record_has_failed_even_beside_an_old_one(chapter, here):
    run.execute(small(), here / "results", progress=False)
    chapter(broken=" and None")
    with pytest.raises(run.RunFailed, match="wrote no record"):
        run.execute(small(), here / "results", progress=False)


def test_a_chapter_without_a_notebook_says_so(here, monkeypatch):
    monkeypatch.setattr(places, "chapter_notebook", lambda name: None)
    with pytest.raises(ConfigError, match="checkout"):
        run.execute(small(), here, progress=False)


def test_places_without_a_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "checkout", lambda: None)
    monkeypatch.delenv("EXPLORL_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert places.runs_dir() == tmp_path / "runs" and places.results_dir() == tmp_path / "results"
    assert places.params_dir() == places.PACKAGE / "_data" / "params"
