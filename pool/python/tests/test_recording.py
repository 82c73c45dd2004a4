"""Tests the facts that a recording tells about itself."""

import os
from pathlib import Path

import pytest

import pageset


def test_the_bundled_recording_describes_its_machine(recording: pageset.Recording) -> None:
    assert recording.kernel == "6.18.44"
    assert recording.event_count == 1_114_888
    assert recording.command[0] == "make"
    assert recording.machine is not None and recording.machine["cpus"] == 2
    assert recording.before is not None and recording.before["zoneinfo"]["zones"]
    assert recording.after is not None and recording.samples
    assert sum(recording.lost.values()) == 0


def test_a_file_is_opened_by_its_path(traces: Path) -> None:
    recording = pageset.open(traces / "k612_2c_tcp.pgtrace")
    assert recording.path == os.fspath(traces / "k612_2c_tcp.pgtrace")
    assert "k612_2c_tcp.pgtrace" in repr(recording) and "6.12" in repr(recording)


def test_what_a_notebook_shows_is_escaped(traces: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "<script>.pgtrace"
    hostile.write_bytes((traces / "k61_2c_tcp.pgtrace").read_bytes())
    assert "<script>" not in pageset.open(hostile)._repr_html_()


def test_a_missing_file_is_an_error_of_the_system() -> None:
    with pytest.raises(pageset.FileError, match="^/missing: cannot open: .*; `pageset record") as raised:
        pageset.open("/missing")
    assert isinstance(raised.value, OSError) and isinstance(raised.value, pageset.Error)


def test_a_file_that_is_no_recording_says_what_would_be_one(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("hello\n")
    with pytest.raises(pageset.Error, match="is in no known format; name a .pgtrace"):
        pageset.open(other)
    with pytest.raises(pageset.Error, match="is no file"):
        pageset.open(tmp_path)


def test_a_damaged_file_is_read_up_to_the_damage_if_asked(traces: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.pgtrace"
    whole = (traces / "k618_2c_hackbench_sock.pgtrace").read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(pageset.Error, match="recover=True"):
        pageset.open(damaged)
    assert pageset.replay(pageset.open(damaged, recover=True), "linux-6.18").lost["damaged_blocks"] > 0
