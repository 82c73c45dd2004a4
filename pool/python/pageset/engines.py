"""Finds engines by name. The command ``pageset sweep --on`` calls ``python -m pageset.engines PLAN --on
ENGINE``."""

import argparse
import multiprocessing
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

from . import _native, many, tasks
from .errors import Error

DASK = "dask://"
ARRAY_MAX = 1000
"""The most jobs of an array. This is Slurm's default limit."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Does the unfinished runs of a plan. Returns the process's exit status."""
    parser = argparse.ArgumentParser(prog="python -m pageset.engines", description="Finish the runs of a sweep.")
    parser.add_argument("plan", type=pathlib.Path, help="plan of the sweep")
    parser.add_argument("--into", type=pathlib.Path, required=True, help="directory of finished runs")
    parser.add_argument("--jobs", type=int, help="processes, or jobs of Slurm's array")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--on", metavar="ENGINE", help="processes, slurm or dask://HOST:PORT")
    who.add_argument("--part", type=part, metavar="I/N", help="do the I-th of N parts in this process")
    args = parser.parse_args(arguments)
    try:
        if args.part is not None:
            do_part(args.plan, args.into, *args.part)
        elif args.on == "slurm":
            submit(args.plan, args.into, args.jobs)
        else:
            with executor(args.on, args.jobs) as engine:
                many.sweep(args.plan, engine, into=args.into, progress=show)
    except (Error, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what is finished is stored, and the same command goes on", file=sys.stderr)
        return 130
    return 0


def part(text: str) -> tuple[int, int]:
    """Parses ``I/N``, with I from 1 to N."""
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"`{text}` is no part of a whole: write I/N with I from 1 to N, e.g. 1/4")
    return int(index), int(count)


@contextmanager
def executor(name: str, jobs: int | None) -> Iterator[Executor]:
    """Makes the executor with this name."""
    if name == "processes":
        # A forked child would have the threads' locks without the threads.
        context = multiprocessing.get_context("forkserver")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            yield pool
    elif name.startswith(DASK):
        try:
            from distributed import Client
        except ImportError:
            raise Error("Dask is not installed: pip install distributed") from None
        with Client("tcp://" + name.removeprefix(DASK), set_as_default=False) as client:
            yield client.get_executor()
    else:
        raise Error(f"unknown engine `{name}`: write processes, slurm or dask://HOST:PORT")


def do_part(plan: pathlib.Path, into: pathlib.Path, index: int, count: int) -> None:
    """Does every ``count``-th unfinished run, beginning with run number ``index``."""
    tasks.finish(tasks.of_plan(plan)[index - 1 :: count], _native.Dataset(into), None, show)


def submit(plan: pathlib.Path, into: pathlib.Path, jobs: int | None) -> None:
    """Runs an array of Slurm jobs, one for each part, and waits for its end."""
    present = _native.Dataset(into).keys()
    missing = sum(task.key not in present for task in tasks.of_plan(plan))
    if missing == 0:
        return
    script = into / "sweep.sbatch"
    script.write_text(array_script(plan.resolve(), into.resolve(), min(missing, jobs or ARRAY_MAX)))
    try:
        subprocess.run(["sbatch", "--wait", str(script)], check=True)
    except FileNotFoundError:
        raise Error(f"there is no sbatch here; hand in {script} where there is one") from None
    except subprocess.CalledProcessError as failed:
        raise Error(f"sbatch has ended with status {failed.returncode}; the same command does what is missing") from None


def array_script(plan: pathlib.Path, into: pathlib.Path, jobs: int) -> str:
    """Returns a script for ``sbatch``. Each job of the array runs this module with its own part."""
    command = [sys.executable, "-P", "-m", "pageset.engines", str(plan), "--into", str(into)]
    return (
        "#!/bin/sh\n"
        "#SBATCH --job-name=pageset-sweep\n"
        f"#SBATCH --array=1-{jobs}\n"
        f'exec {shlex.join(command)} --part "$SLURM_ARRAY_TASK_ID/{jobs}"\n'
    )


def show(what: str, done: int, total: int | None) -> None:
    """Prints progress to standard error, if it is a terminal."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{what}: {done} of {total} runs", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
