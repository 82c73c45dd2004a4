"""Tests sweeps and the evaluation of many recordings on executors of several kinds."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pageset
from pageset import engines

PLAN = """
title = "t"
[[grid]]
machine = "epyc-2"
workload = "malloc1"
policy = ["linux-6.1", "linux-6.12"]
seed = [1, 2, 3]
warmup_ms = 1
duration_ms = 1
"""
RUNS = 6


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


class Unlucky(Executor):
    """Loses tasks: those whose number is in ``lost``."""

    def __init__(self, lost: Callable[[int], bool]) -> None:
        self.lost, self.given = lost, 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.given += 1
        if self.lost(self.given):
            future.set_exception(BrokenExecutor("a worker was killed"))
        else:
            future.set_result(function(*args, **kwargs))
        return future


def test_results_do_not_depend_on_who_works(plan: Path, tmp_path: Path) -> None:
    alone = pageset.sweep(plan)
    assert len(alone) == RUNS
    assert alone.directory == tmp_path / "plan.results"
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver")) as processes:
        apart = pageset.sweep(plan, processes, into=tmp_path / "apart")
    assert apart.digest() == alone.digest()


def test_what_is_finished_is_not_done_again(plan: Path) -> None:
    results = pageset.sweep(plan)
    first, second = list(results.paths())[:2]
    first.unlink()
    second.write_bytes(b"")
    told = []
    again = pageset.sweep(plan, progress=lambda *step: told.append(step))
    assert told == [("working", 0, 2), ("working", 1, 2), ("working", 2, 2)]
    assert again.digest() == results.digest()


def test_plans_may_share_a_directory(plan: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(PLAN.replace("[1, 2, 3]", "[3, 4]"))
    shared = tmp_path / "shared"
    with ThreadPoolExecutor(2) as both:
        sweeps = [both.submit(pageset.sweep, path, into=shared) for path in (plan, other)]
        results = [sweep.result() for sweep in sweeps]
    assert len(list(shared.glob("*/*.parquet"))) == 8
    assert results[0].digest() == pageset.sweep(plan).digest()
    assert not list(shared.glob("*/.*"))


def test_a_lost_worker_loses_nothing(plan: Path, tmp_path: Path) -> None:
    unlucky = Unlucky(lambda given: given % 3 == 1)
    results = pageset.sweep(plan, unlucky, into=tmp_path / "unlucky")
    assert unlucky.given > RUNS
    assert results.digest() == pageset.sweep(plan).digest()


def test_a_dead_executor_is_an_error_that_says_how_to_go_on(plan: Path, tmp_path: Path) -> None:
    into = tmp_path / "dead"
    with pytest.raises(pageset.Error, match="a worker was killed.*the same call goes on"):
        pageset.sweep(plan, Unlucky(lambda given: given > 3), into=into)
    assert 0 < len(list(into.glob("*/*.parquet"))) < RUNS
    assert len(pageset.sweep(plan, into=into)) == RUNS


def test_an_impossible_run_ends_the_sweep_with_the_words_of_the_command(plan: Path) -> None:
    plan.write_text(PLAN.replace("linux-6.1\"", "linux-9.9\""))
    with pytest.raises(pageset.Error, match="unknown policy `linux-9.9`"):
        pageset.sweep(plan)


def test_another_version_elsewhere_is_noticed(plan: Path) -> None:
    key, spec = pageset._native.sweep_tasks(plan)[0]
    with pytest.raises(pageset.Error, match="another version of pageset"):
        pageset._native.sweep_task("0" * 32, spec)
    assert pageset._native.sweep_task(key, spec)[:4] == b"PAR1"


def test_recordings_are_tasks_too(traces: Path, tmp_path: Path) -> None:
    trace, policies = min(traces.glob("*.pgtrace")), ["linux-6.1", "linux-6.12"]
    results = pageset.replay_many([trace, trace], policies, into=tmp_path / "replays")
    assert len(results) == 1
    import polars

    rows = polars.read_parquet(next(results.paths())).to_dicts()
    assert [row["policy"] for row in rows] == policies
    assert rows[0]["recording"] == os.fspath(trace)
    outcome = pageset.replay(pageset.open(trace), policies).outcomes[1]
    assert rows[1]["refilled_pages"] == outcome.refilled_pages


def test_a_fleet_is_a_folder_and_a_broken_recording_has_its_line(traces: Path, tmp_path: Path) -> None:
    import polars

    fleet = tmp_path / "fleet"
    fleet.mkdir()
    (fleet / "notes.txt").write_text("no recording")
    (fleet / "a.pgtrace").write_bytes((traces / "k612_2c_tcp.pgtrace").read_bytes())
    (fleet / "b.pgtrace").write_text("broken")
    named = pageset.recordings(fleet)
    assert named == [fleet / "a.pgtrace", fleet / "b.pgtrace"]
    results = pageset.advise_many(named, into=tmp_path / "advice")
    good, broken = (polars.read_parquet(path).to_dicts()[0] for path in results.paths())
    assert (good["answer"], good["error"]) == ("unknown", None) and good["visits_per_s"] > 0
    assert broken["answer"] is None and "no known format" in broken["error"]


def test_a_fleet_has_a_summary_and_lines_the_worst_first(traces: Path, tmp_path: Path) -> None:
    import polars

    for name, source in [("a", "k612_2c_sctp"), ("c", "k612_2c_tcp")]:
        (tmp_path / f"{name}.pgtrace").write_bytes((traces / f"{source}.pgtrace").read_bytes())
    (tmp_path / "b.pgtrace").write_text("broken")
    told: list[tuple[str, int, int | None]] = []
    fleet = pageset.fleet(tmp_path, progress=lambda *now: told.append(now))
    assert told[-1] == ("reading", 3, 3)
    assert (len(fleet), fleet.unread, len(fleet.yes) + fleet.no + fleet.unknown) == (3, 1, 2)
    for line in fleet.lines[:2]:
        alone = pageset.advise(pageset.open(line.recording))
        assert alone.sentences[0].startswith({"unknown": "This recording does not say", "No": "No"}.get(line.answer or "", "Yes")), line
    assert "no known format" in (fleet.lines[2].error or "") and fleet.lines[2].answer is None
    assert fleet.sentences[0] == f"{len(fleet.yes)} of 3 recordings say Yes, {fleet.no} say No."
    assert "1 could not be read." in repr(fleet) and "b.pgtrace" in fleet._repr_html_()
    rows = polars.DataFrame(fleet).to_dicts()
    assert [row["recording"] for row in rows] == [line.recording for line in fleet.lines]
    assert rows[0]["visits_per_s"] == fleet.lines[0].visits_per_s


def test_a_fleet_without_recordings_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(pageset.Error, match="no file in this folder ends in .pgtrace"):
        pageset.fleet(tmp_path)


def test_a_recording_without_its_machine_is_replayed_as_alone(traces: Path, tmp_path: Path) -> None:
    import polars

    trace = traces.parent / "formats" / "ftrace-old.txt"
    results = pageset.replay_many([trace], ["linux-6.12"], into=tmp_path / "replays")
    (row,) = polars.read_parquet(next(results.paths())).to_dicts()
    (outcome,) = pageset.replay(pageset.open(trace), ["linux-6.12"]).outcomes
    assert (row["allocs"], row["refilled_pages"]) == (outcome.allocs, outcome.refilled_pages)


def test_engines_read_the_dataset_as_it_is(plan: Path) -> None:
    import duckdb
    import polars

    files = f"{pageset.sweep(plan).directory}/*/*.parquet"
    counts = duckdb.sql(f"select count(*), count(distinct key) from '{files}'")
    assert counts is not None and counts.fetchall() == [(RUNS, RUNS)]
    assert polars.scan_parquet(files).select("policy").unique().collect().height == 2


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "pageset.engines", *map(str, arguments)],
        capture_output=True, text=True, env=os.environ | environment,
    )


def test_parts_make_the_whole(plan: Path, tmp_path: Path) -> None:
    into = tmp_path / "parts"
    for index in (1, 2, 3, 4):
        assert command(plan, "--into", into, "--part", f"{index}/4").returncode == 0
    assert len(list(into.glob("*/*.parquet"))) == RUNS
    for wrong in ("0/4", "5/4", "x", "1/"):
        assert "write I/N" in command(plan, "--into", into, "--part", wrong).stderr


def test_processes_are_an_engine(plan: Path, tmp_path: Path) -> None:
    assert command(plan, "--into", tmp_path / "p", "--on", "processes", "--jobs", 2).returncode == 0
    assert len(list((tmp_path / "p").glob("*/*.parquet"))) == RUNS


def test_slurm_runs_an_array_of_parts(plan: Path, tmp_path: Path) -> None:
    """A stand-in for Slurm runs the script once for each job of the array, as sbatch --wait does."""
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text(
        "#!/bin/sh\n"
        "test \"$1\" = --wait || exit 9\n"
        "last=$(sed -n 's/^#SBATCH --array=1-//p' \"$2\")\n"
        "for task in $(seq \"$last\"); do SLURM_ARRAY_TASK_ID=$task sh \"$2\" || exit; done\n"
    )
    sbatch.chmod(0o755)
    path = f"{sbatch.parent}:{os.environ['PATH']}"
    done = command(plan, "--into", tmp_path / "s", "--on", "slurm", "--jobs", 4, PATH=path)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "s").glob("*/*.parquet"))) == RUNS


def test_without_slurm_the_script_is_left_to_be_handed_in(plan: Path, tmp_path: Path) -> None:
    refused = command(plan, "--into", tmp_path / "s", "--on", "slurm", PATH="/nowhere")
    assert refused.returncode == 1
    assert "there is no sbatch here; hand in" in refused.stderr
    assert (tmp_path / "s" / "sweep.sbatch").is_file()


def test_unknown_engines_are_refused(plan: Path, tmp_path: Path) -> None:
    refused = command(plan, "--into", tmp_path / "x", "--on", "spark://host:1")
    assert (refused.returncode, refused.stderr) == (
        1, "error: unknown engine `spark://host:1`: write processes, slurm or dask://HOST:PORT\n"
    )


def test_a_directory_name_is_quoted_in_the_script(tmp_path: Path) -> None:
    script = engines.array_script(tmp_path / "a plan.toml", tmp_path / "it's", 3)
    assert "'" in script and script.startswith("#!/bin/sh\n#SBATCH")
