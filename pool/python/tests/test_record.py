"""Tests recordings of the running kernel, if the user has the right to trace the kernel."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pageset

CAN_RECORD = subprocess.run(
    [sys.executable, "-P", "-m", "pageset", "record", "--check"], capture_output=True, check=False
).returncode == 0
with_rights = pytest.mark.skipif(not CAN_RECORD, reason="this machine does not let us record")


@with_rights
def test_a_command_is_recorded(tmp_path: Path) -> None:
    told: list[str] = []
    recording = pageset.record(
        tmp_path / "true.pgtrace", ["true"], progress=lambda what, done, total: told.append(what)
    )
    assert recording.command == ["true"]
    assert recording.machine is not None and recording.machine["cpus"] == os.cpu_count()
    with pytest.raises(pageset.Error, match="exists already"):
        pageset.record(tmp_path / "true.pgtrace", ["true"])
    assert pageset.record(tmp_path / "true.pgtrace", seconds=0.01, force=True).command == []


@with_rights
def test_names_are_kept_if_they_are_asked_for(tmp_path: Path) -> None:
    recording = pageset.record(tmp_path / "named.pgtrace", ["sleep", "0.5"], names=True)
    assert recording.tasks is not None
    # Other programs of the machine may sleep, too. The program of this test began while the recorder ran.
    sleep = next(task for task in recording.tasks if task.name == "sleep" and task.since_ns > 0)
    assert sleep.process == sleep.tid
    assert pageset.record(tmp_path / "bare.pgtrace", ["true"]).tasks is None


@with_rights
def test_a_command_that_is_missing_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(pageset.Error, match="cannot start /missing/command: .*; check its name"):
        pageset.record(tmp_path / "none.pgtrace", ["/missing/command"])
    assert not list(tmp_path.iterdir())


@with_rights
def test_an_interrupt_ends_a_recording_whose_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "interrupted.pgtrace"
    program = "import pageset, sys; pageset.record(sys.argv[1], progress=lambda *_: print(flush=True))"
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as recorder:
        assert recorder.stdout is not None and recorder.stderr is not None
        assert recorder.stdout.readline() == "\n"
        recorder.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in recorder.stderr.read()
    recording = pageset.open(path)
    assert recording.after is not None


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.pgtrace"
    with pytest.raises(ValueError, match="seconds is -1"):
        pageset.record(path, seconds=-1)
    with pytest.raises(pageset.Error):
        pageset.record(path, until="tea_time")
    with pytest.raises(pageset.Error):
        pageset.record(path, cpus="all of them")
    assert not list(tmp_path.iterdir())
