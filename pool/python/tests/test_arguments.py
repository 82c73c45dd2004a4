"""Tests that a wrong argument raises a TypeError, a ValueError, or the exception that Python has for such an
argument."""

import importlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import pageset

Call = Callable[[], object]


def refuses(kind: type[Exception], words: str, call: Call) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert words in str(raised.value)


def test_without_policies_a_replay_has_all_that_it_can_play(traces: Path, tmp_path: Path) -> None:
    path = traces / "k61_2c_tcp.pgtrace"
    replay = pageset.replay(pageset.open(path))
    assert len(replay.outcomes) > 20
    assert len(pageset.replay_many([path], into=tmp_path / "all")) == 1


def test_text_is_neither_a_number_nor_a_list(traces: Path, tmp_path: Path) -> None:
    path = traces / "k61_2c_tcp.pgtrace"
    recording, text = pageset.open(path), os.fspath(path)
    values: Any = {"batch": "31"}
    name: Any = "linux-6.1"
    refuses(TypeError, "batch is a whole number, not '31'", lambda: pageset.replay(recording, name, values))
    listed: Any = {"batch": ["31", "63"]}
    refuses(TypeError, "batch is a whole number, not '31'", lambda: pageset.replay(recording, name, listed))
    into = tmp_path / "none"
    refuses(TypeError, "policies is a list: write ['linux-6.1']", lambda: pageset.replay_many([path], name, into=into))
    paths: Any = text
    refuses(TypeError, "recordings is a list", lambda: pageset.replay_many(paths, [name], into=into))
    paths = path
    refuses(TypeError, "recordings is a list", lambda: pageset.replay_many(paths, [name], into=into))
    command: Any = "true"
    refuses(TypeError, "command is a list: write ['true']", lambda: pageset.record(into, command))
    assert not into.exists()


def test_a_simulation_names_the_argument_that_is_wrong() -> None:
    def spec(**wrong: Any) -> Call:
        return lambda: pageset.RunSpec(**({"machine": "epyc-2", "workload": "malloc1", "policy": "linux-6.1"} | wrong))

    refuses(TypeError, "cpus is a whole number, not '2'", spec(cpus="2"))
    refuses(TypeError, "seed is a whole number, not 1.5", spec(seed=1.5))
    refuses(TypeError, "machine is a name, not 2", spec(machine=2))
    refuses(TypeError, "vm.stat_interval is a whole number, not '1'", spec(settings={"vm.stat_interval": "1"}))
    refuses(ValueError, "duration_ms is -1: it cannot be negative", spec(duration_ms=-1))
    counted: Any = spec(cpus=numpy.int64(2))()
    assert counted.cpus == 2 and type(counted.cpus) is int


def test_negative_numbers_are_no_overflow(traces: Path, tmp_path: Path) -> None:
    recording = pageset.open(traces / "k61_2c_tcp.pgtrace")
    spec = pageset.RunSpec("epyc-2", "malloc1", "linux-6.1")
    words = "is not a number from 0 to"
    refuses(ValueError, words, lambda: pageset.replay(recording, "linux-6.1", cpus=-1))
    refuses(ValueError, words, lambda: pageset.simulate_all([spec], jobs=-1))
    refuses(ValueError, words, lambda: pageset.record(tmp_path / "r", ["true"], buffer_bytes=-1))
    refuses(ValueError, "seconds is -1", lambda: pageset.record(tmp_path / "r", ["true"], seconds=-1))


def test_an_error_of_the_system_is_the_one_that_python_has_for_it(tmp_path: Path) -> None:
    missing = os.fspath(tmp_path / "missing.pgtrace")
    calls: list[Call] = [
        lambda: pageset.open(missing),
        lambda: pageset.open(layout=missing),
        lambda: pageset.sweep(missing),
        lambda: pageset.replay(pageset.open(), "linux-6.12", layout=missing),
    ]
    for call in calls:
        with pytest.raises(FileNotFoundError) as raised:
            call()
        error = raised.value
        assert isinstance(error, pageset.FileError)
        assert (error.errno, error.filename) == (2, missing), str(error)
        assert str(error).startswith(missing)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.errno) == (type(error), str(error), 2)


def test_recovery_is_advised_only_where_it_recovers(traces: Path, tmp_path: Path) -> None:
    whole = (traces / "k612_2c_tcp.pgtrace").read_bytes()
    assert not is_recovery_advised(tmp_path, whole, len(whole) // 2), "one block is all there is"
    whole = (traces / "k618_2c_make_lua_j4.pgtrace").read_bytes()
    assert is_recovery_advised(tmp_path, whole, len(whole) // 2), "it has several"


def is_recovery_advised(directory: Path, recording: bytes, at: int) -> bool:
    pyarrow = importlib.import_module("pyarrow")
    damaged = bytearray(recording)
    damaged[at] ^= 0x40
    path = directory / "damaged.pgtrace"
    path.write_bytes(damaged)
    with pytest.raises(pageset.Error) as raised:
        pageset.replay(pageset.open(path), "linux-6.12")
    is_advised = "recover=True" in str(raised.value)
    events = pageset.open(path, recover=True).events()
    if is_advised:
        assert pyarrow.table(events).num_rows > 0
    else:
        with pytest.raises(pyarrow.ArrowInvalid, match="no event before this can be read"):
            pyarrow.table(events)
    return is_advised
