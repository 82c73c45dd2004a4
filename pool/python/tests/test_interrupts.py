"""Tests that Python handles progress, threads and interrupts during long work."""

import io
import signal
import subprocess
import sys
import threading

import pytest

import pageset

# This program simulates for minutes, and prints a line when the simulation has begun.
ENDLESS = """
import os, time, pageset
spec = pageset.RunSpec("sapphire-rapids", "page_fault1", "linux-6.12", duration_ms=600_000)
try:
    pageset.simulate(spec, progress=lambda *told: print("begun", flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
while len(os.listdir("/proc/self/task")) > 1:
    time.sleep(0.01)
print("over", flush=True)
"""


def test_progress_is_told_from_the_beginning_to_the_end(recording: pageset.Recording) -> None:
    told: list[tuple[str, int, int | None]] = []
    pageset.replay(recording, ["linux-6.12"], progress=lambda *now: told.append(now))
    what, done, total = told[-1]
    assert what == "replaying" and done == total and done > 1
    assert ("reading", recording.event_count, recording.event_count) in told


def test_tqdm_shows_progress(recording: pageset.Recording) -> None:
    pytest.importorskip("tqdm")
    shown = io.StringIO()
    with pageset.Bar(file=shown, mininterval=0) as bar:
        pageset.replay(recording, ["linux-6.12"], progress=bar)
    assert "replaying: 100%" in shown.getvalue()


def test_what_progress_raises_ends_the_work(recording: pageset.Recording) -> None:
    def stop(what: str, done: int, total: int | None) -> None:
        raise LookupError(what)

    with pytest.raises(LookupError):
        pageset.replay(recording, progress=stop)


def test_other_threads_go_on_meanwhile(recording: pageset.Recording) -> None:
    counted = 0
    is_over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not is_over.wait(0.001):
            counted += 1

    other = threading.Thread(target=count)
    other.start()
    pageset.verify(recording)
    is_over.set()
    other.join()
    assert counted > 0


def test_an_interrupt_ends_work_that_would_take_minutes() -> None:
    with subprocess.Popen([sys.executable, "-P", "-c", ENDLESS], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        program.send_signal(signal.SIGINT)
        # The interrupt must also end the work itself.
        assert program.stdout.read().endswith("interrupted\nover\n")
    assert program.returncode == 0
