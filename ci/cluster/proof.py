"""Sweeps on a Dask cluster whose parts are killed, beside one process that does the same: nothing is lost, nothing is
there twice, and the results are the same to the byte. Prints what it costs."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import duckdb
from distributed import Client

import pageset

WORKERS = 4
PORT = 18786
ADDRESS = f"dask://127.0.0.1:{PORT}"
SECONDS = 300

PLAN = """
title = "Proof"
[[grid]]
machine = "epyc-2"
workload = "malloc1"
policy = ["linux-6.1", "linux-6.12"]
seed = [{seeds}]
warmup_ms = 1
duration_ms = 1
"""


def plan(path: pathlib.Path, seeds: range) -> pathlib.Path:
    path.write_text(PLAN.format(seeds=", ".join(map(str, seeds))))
    return path


def start(module: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """A process of the cluster, without its talk."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | environment,
    )


def worker(scratch: pathlib.Path) -> subprocess.Popen[bytes]:
    """One worker of one thread, without the nanny that would start it again."""
    return start(
        "distributed.cli.dask_worker", f"tcp://127.0.0.1:{PORT}", "--no-nanny", "--nthreads=1",
        f"--local-directory={scratch}", "--death-timeout=60", TMPDIR=str(scratch),
    )


@contextmanager
def cluster(scratch: pathlib.Path) -> Iterator[tuple[subprocess.Popen[bytes], list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers, each a process."""
    scheduler = start("distributed.cli.dask_scheduler", "--host=127.0.0.1", f"--port={PORT}", "--no-dashboard")
    workers = [worker(scratch) for _ in range(WORKERS)]
    try:
        with Client(f"tcp://127.0.0.1:{PORT}", set_as_default=False, timeout=SECONDS) as client:
            client.wait_for_workers(WORKERS, timeout=SECONDS)
        yield scheduler, workers
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()


def command(path: pathlib.Path, into: pathlib.Path) -> subprocess.Popen[str]:
    """The sweep as the command starts it."""
    arguments = ["-P", "-m", "pageset.engines", str(path), "--on", ADDRESS, "--into", str(into)]
    return subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, text=True)


def finished(into: pathlib.Path) -> int:
    return len(list(into.glob("*/*.parquet")))


def wait_for(count: int, into: pathlib.Path) -> None:
    deadline = time.monotonic() + SECONDS
    while finished(into) < count:
        assert time.monotonic() < deadline, f"{finished(into)} of {count} results in {SECONDS} s"
        time.sleep(0.02)


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=SECONDS)
    return process.returncode, said


def fill(path: pathlib.Path) -> None:
    """Takes all room that there is."""
    with open(path, "wb", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(4096)):
            pass


@contextmanager
def small_disk(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """A small file system."""
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def cost(sizes: list[int]) -> None:
    """What a run costs more on the cluster than the CPUs' share of one process's time, at several sizes."""
    cpus = min(WORKERS, os.cpu_count() or 1)
    print("    runs  alone_s  cluster_s  overhead_ms_a_run")
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name)
        for runs in sizes:
            path = plan(here / f"{runs}.toml", range(1, runs // 2 + 1))
            begun = time.monotonic()
            pageset.sweep(path, into=here / f"alone-{runs}")
            alone_s = time.monotonic() - begun
            with cluster(here):
                begun = time.monotonic()
                status, said = end(command(path, here / f"cluster-{runs}"))
                cluster_s = time.monotonic() - begun
            assert status == 0, said
            overhead_ms = 1e3 * (cluster_s - alone_s / cpus) / runs
            print(f"{runs:8}  {alone_s:7.1f}  {cluster_s:9.1f}  {overhead_ms:17.2f}", flush=True)


def proof(runs: int) -> None:
    """All that can go wrong."""
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name)
        whole = plan(here / "whole.toml", range(1, runs // 2 + 1))

        alone = pageset.sweep(whole, into=here / "alone")
        digest, count = alone.digest(), len(alone)
        assert count == finished(here / "alone") == runs // 2 * 2
        print(f"one process: {count} results")

        def same(into: pathlib.Path, what: str) -> None:
            results = pageset.Results(into, alone.keys)
            assert results.digest() == digest, what
            rows = duckdb.sql(f"select count(*), count(distinct key) from '{into}/*/*.parquet'").fetchall()
            assert rows == [(count, count)], (what, rows)
            assert not list(into.glob("*/.*")), what
            print(f"{what}: {count} results, the same to the byte")

        with cluster(here) as (_, workers):
            status, said = end(command(whole, here / "calm"))
            assert status == 0, said
            same(here / "calm", f"a cluster of {WORKERS}")

            sweep = command(whole, here / "killed")
            wait_for(count // 4, here / "killed")
            workers[0].send_signal(signal.SIGKILL)
            status, said = end(sweep)
            assert status == 0, said
            same(here / "killed", "a worker killed in the middle")

        with cluster(here) as (scheduler, _):
            sweep = command(whole, here / "headless")
            wait_for(count // 4, here / "headless")
            scheduler.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            status, said = end(sweep)
            assert status == 1 and "goes on" in said, (status, said)
            print(f"the scheduler killed: said so after {time.monotonic() - killed:.1f} s, {finished(here / 'headless')} results stay")
        with cluster(here):
            before = finished(here / "headless")
            assert 0 < before < count
            status, said = end(command(whole, here / "headless"))
            assert status == 0, said
            same(here / "headless", f"started again for the missing {count - before}")

        if os.geteuid() == 0:
            with small_disk(here / "full") as scratch, cluster(scratch):
                fill(scratch / "filler")
                status, said = end(command(whole, here / "cramped"))
                assert status == 0, said
                same(here / "cramped", "the workers' disk is full")
        else:
            print("the workers' disk is full: left out, needs root")

        with cluster(here), ThreadPoolExecutor(2) as two:
            half = runs // 4
            plans = [plan(here / "first.toml", range(1, 3 * half // 2 + 1)), plan(here / "second.toml", range(half // 2 + 1, runs // 2 + 1))]
            for status, said in two.map(end, [command(path, here / "shared") for path in plans]):
                assert status == 0, said
            same(here / "shared", "two sweeps of overlapping plans at once")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["cost", *sizes]:
            cost([int(size) for size in sizes])
        case [runs]:
            proof(int(runs))
