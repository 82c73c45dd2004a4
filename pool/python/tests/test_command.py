"""Tests that the command that the package installs is the command `pageset`."""

import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import pageset

SCRIPT = Path(sysconfig.get_path("scripts")) / "pageset"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *map(str, arguments)], capture_output=True, text=True)


def test_the_script_runs_the_command(traces: Path) -> None:
    done = run("replay", traces / "k612_2c_tcp.pgtrace", "-p", "linux-6.12", "--format", "csv")
    assert done.returncode == 0 and done.stdout.startswith("policy,")


def test_the_command_writes_columns(traces: Path, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = tmp_path / "rows.parquet"
    done = run("replay", traces / "k612_2c_tcp.pgtrace", "-p", "linux-6.12", "--format", "parquet", "-o", rows)
    assert done.returncode == 0, done.stderr
    assert polars.read_parquet(rows)["policy"].to_list() == ["linux-6.12"]


def test_statuses_are_the_commands() -> None:
    failed = run("replay", "/missing")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("error: /missing: cannot open")
    assert run("fly").returncode == 2
    assert run("--help").returncode == 0


def test_the_package_has_the_words_of_the_command() -> None:
    with pytest.raises(pageset.Error) as raised:
        pageset.open("/missing")
    assert run("replay", "/missing").stderr == f"error: {raised.value}\n"
    with pytest.raises(pageset.Error) as raised:
        pageset.replay(pageset.open(), settings={"speed": 1})
    assert str(raised.value) in run("replay", "--sweep", "speed=1").stderr


def test_the_module_is_the_command_too() -> None:
    done = subprocess.run([sys.executable, "-P", "-m", "pageset", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("pageset ")


def test_an_interrupt_ends_the_command() -> None:
    endless = ["simulate", "--machine", "sapphire-rapids", "-w", "page_fault1", "-p", "linux-6.12", "--duration-ms", "600000"]
    with subprocess.Popen([SCRIPT, *endless], stderr=subprocess.PIPE, stdout=subprocess.PIPE) as command:
        with pytest.raises(subprocess.TimeoutExpired):
            command.wait(2)
        command.send_signal(signal.SIGINT)
    assert command.returncode == -signal.SIGINT
