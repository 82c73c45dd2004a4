"""Tests that children of a fork do the work of the laboratory, whatever their parent has done before or does
meanwhile."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import pageset

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def small(traces: Path) -> pageset.Recording:
    return pageset.open(traces / "k61_2c_tcp.pgtrace")


def works_in_a_child(work: Callable[[], object]) -> bool:
    """Whether a child does the work. An alarm ends a child that hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_replays_and_advises_after_its_parent_did(small: pageset.Recording) -> None:
    pageset.replay(small, "linux-6.12")
    pageset.advise(small)
    assert works_in_a_child(lambda: pageset.replay(small, ["linux-6.1", "linux-6.12"]))
    assert works_in_a_child(lambda: pageset.advise(small))
    spec = pageset.RunSpec("epyc-2", "page_fault1", "linux-6.12", duration_ms=1)
    assert works_in_a_child(lambda: pageset.simulate_all([spec, spec]))


def test_a_child_replays_while_its_parent_does(small: pageset.Recording) -> None:
    is_over = threading.Event()

    def replay_on() -> None:
        while not is_over.is_set():
            pageset.replay(small, ["linux-6.1", "linux-6.12"])

    parent = threading.Thread(target=replay_on)
    parent.start()
    try:
        assert all(works_in_a_child(lambda: pageset.replay(small, "linux-6.12")) for _ in range(8))
    finally:
        is_over.set()
        parent.join()


def test_forked_processes_are_an_executor(traces: Path, tmp_path: Path, small: pageset.Recording) -> None:
    recordings = [traces / "k61_2c_tcp.pgtrace", traces / "k612_2c_sctp.pgtrace"]
    pageset.replay(small, "linux-6.12")
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as forked:
        apart = pageset.replay_many(recordings, ["linux-6.1"], forked, into=tmp_path / "apart")
    alone = pageset.replay_many(recordings, ["linux-6.1"], into=tmp_path / "alone")
    assert apart.digest() == alone.digest()
