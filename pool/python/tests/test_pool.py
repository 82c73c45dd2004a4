"""Tests pages of a pool as Python objects that give access to their bytes without a copy."""

import faulthandler
import gc
import inspect
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import pageset
from conftest import REPOSITORY

MIB = 1 << 20


@pytest.fixture
def pool() -> pageset.Pool:
    return pageset.Pool(64 * MIB)


def test_a_view_is_the_memory_itself(pool: pageset.Pool) -> None:
    pages = pool.alloc(2)
    assert (len(pages), pages.page_count, pages.nbytes) == (16384, 4, 16384)
    # The type hints of older versions of NumPy name a few classes instead of the buffer protocol.
    anything: Any = pages
    array = numpy.frombuffer(anything, dtype=numpy.uint64)
    array[0] = 0x0102030405060708
    assert memoryview(pages)[0] == 8
    view = memoryview(pages)
    assert (view.format, view.readonly, view.shape) == ("B", False, (16384,))


def test_a_gib_is_of_large_pages_or_of_small_ones_and_the_pool_tells_which() -> None:
    gib = 1 << 30
    pool = pageset.Pool(gib, backing="hugetlb-1g-or-thp")
    pages = pool.alloc_gib()
    assert (pages.nbytes, pages.offset) == (gib, 0)
    with pytest.raises(pageset.OutOfMemoryError):
        pool.alloc_gib()
    assert pool.backing()["page_bytes"] in (4096, gib)


def test_zeroed_pages_are_zero_even_if_somebody_had_them(pool: pageset.Pool) -> None:
    for _ in range(3):
        pages = pool.alloc(9, zeroed=True)
        array = numpy.frombuffer(memoryview(pages), dtype=numpy.uint8)
        assert not array.any()
        array[:] = 0xFF
        del pages, array


def test_pages_are_free_when_the_last_view_is_gone(pool: pageset.Pool) -> None:
    pages = pool.alloc(3)
    array = numpy.frombuffer(memoryview(pages), dtype=numpy.uint8)
    part = array[100:200]
    del pages, array
    gc.collect()
    assert pool.stats().nr_used == 8
    part[:] = 7
    assert part.sum() == 700
    del part
    gc.collect()
    assert pool.stats().nr_used == 0
    pool.validate()


def test_pages_outlive_the_name_of_their_pool() -> None:
    pages = pageset.Pool(16 * MIB).alloc()
    gc.collect()
    view = memoryview(pages)
    view[0] = 1
    assert bytes(pages)[:1] == b"\x01"


def test_viewed_pages_cannot_be_freed(pool: pageset.Pool) -> None:
    pages = pool.alloc()
    view = memoryview(pages)
    part = view[10:20]
    with pytest.raises(BufferError, match="the pages have 1 views"):
        pages.free()
    view.release()
    with pytest.raises(BufferError):
        pages.free()
    part.release()
    pages.free()
    assert pages.is_free and pool.stats().nr_used == 0
    pages.free()
    with pytest.raises(ValueError, match="the pages are free"):
        memoryview(pages)


def test_a_with_block_frees_at_its_end(pool: pageset.Pool) -> None:
    with pool.alloc(1) as pages, memoryview(pages) as view:
        view[0] = 1
        assert pool.stats().nr_used == 2
    assert pages.is_free and pool.stats().nr_used == 0


def test_a_with_block_frees_behind_the_last_view(pool: pageset.Pool) -> None:
    with pool.alloc(1) as pages:
        array = numpy.frombuffer(memoryview(pages), dtype=numpy.uint8)
    assert not pages.is_free and pool.stats().nr_used == 2
    with pytest.raises(ValueError, match="the pages are free"):
        memoryview(pages)
    array[:] = 1
    del array
    gc.collect()
    assert pages.is_free and pool.stats().nr_used == 0


def test_a_with_block_raises_what_the_program_raised(pool: pageset.Pool) -> None:
    with pytest.raises(LookupError, match="the program's own"):
        with pool.alloc(1) as pages:
            view = memoryview(pages)
            raise LookupError("the program's own")
    view.release()
    assert pages.is_free and pool.stats().nr_used == 0


def test_many_pages_are_had_at_once(pool: pageset.Pool) -> None:
    pages = pool.alloc_bulk(1000)
    assert len({page.offset for page in pages}) == 1000
    assert pool.stats().nr_used == 1000
    del pages
    assert pool.stats().nr_used == 0
    assert pool.alloc_exact(3).page_count == 3


def test_an_empty_pool_is_a_memory_error() -> None:
    pool = pageset.Pool(16 * MIB, capacity=8 * MIB)
    held = pool.alloc_bulk(1 << 40)
    assert len(held) == 2048
    with pytest.raises(pageset.OutOfMemoryError, match="exceed the pool's capacity") as raised:
        pool.alloc()
    assert isinstance(raised.value, MemoryError) and isinstance(raised.value, pageset.Error)


def test_what_a_pool_cannot_be_is_said() -> None:
    with pytest.raises(pageset.Error, match="it must be a multiple of 4096"):
        pageset.Pool(5)
    with pytest.raises(pageset.Error, match="unknown backing `gold`; choose one of: thp"):
        pageset.Pool(16 * MIB, backing="gold")  # type: ignore[arg-type]
    with pytest.raises(pageset.Error, match="order 11 is none: use 0 to 10"):
        pageset.Pool(16 * MIB).alloc(11)
    for size, capacity in ((-1, None), (16 * MIB, -1), (1 << 64, None)):
        with pytest.raises(ValueError, match="is not a number from 0 to"):
            pageset.Pool(size, capacity=capacity)
    with pytest.raises(TypeError):
        pageset.Pool("16")  # type: ignore[arg-type]
    for arguments, problem in (
        ({"fork": "share"}, "unknown fork `share`; choose one of: copy, hide, hand-over"),
        ({"fork": "copy", "backing": "hugetlb-2m"}, "huge pages are not copied for children"),
        ({"node": 0, "interleave": [0]}, "give one of them"),
        ({"interleave": []}, "cannot take memory from the nodes"),
    ):
        with pytest.raises(pageset.Error, match=problem):
            pageset.Pool(16 * MIB, **arguments)
    with pytest.raises(ValueError, match="node 64 of interleave"):
        pageset.Pool(16 * MIB, interleave=[64])
    pool = pageset.Pool(16 * MIB)
    calls: list[Callable[[int], object]] = [pool.alloc, pool.alloc_exact, pool.alloc_bulk]
    for call in calls:
        with pytest.raises(ValueError, match="-1 is not a number from 0 to"):
            call(-1)


def test_a_pinned_pool_keeps_its_memory() -> None:
    pool = pageset.Pool(16 * MIB, pinned=True)
    pages = pool.alloc(10, zeroed=True)
    numpy.frombuffer(memoryview(pages), dtype=numpy.uint8)[:] = 1
    pages.free()
    assert pool.trim() == 0
    backing = pool.backing()
    assert backing["resident_bytes"] >= 4 * MIB


def test_memory_is_accounted_for_and_given_back(pool: pageset.Pool) -> None:
    pages = pool.alloc(10)
    numpy.frombuffer(memoryview(pages), dtype=numpy.uint8)[:] = 1
    backing = pool.backing()
    assert backing["resident_bytes"] >= 4 * MIB
    pages.free()
    assert pool.trim() >= 4 * MIB
    after = pool.backing()
    assert after["resident_bytes"] < 4 * MIB


def test_small_pages_become_huge_ones() -> None:
    for backing in ("memfd", "thp"):
        pool = pageset.Pool(16 * MIB, backing=backing)
        page = pool.alloc()
        memoryview(page)[:] = b"7" * 4096
        collapsed = pool.collapse()
        assert collapsed in (0, 2 * MIB) and pool.backing()["huge_bytes"] >= collapsed
        assert bytes(page) == b"7" * 4096
        pool.set_pinned(True)
        assert pool.collapse() == 0


def test_a_block_is_allocated_where_it_is_wanted(pool: pageset.Pool) -> None:
    block = pool.alloc_at(512, 9)
    assert (block.offset, block.page_count) == (2 * MIB, 512)
    array = numpy.frombuffer(memoryview(block), dtype=numpy.uint8)
    assert pool.start + block.offset == array.ctypes.data
    with pytest.raises(pageset.Error, match="not all free"):
        pool.alloc_at(513)
    with pytest.raises(pageset.Error, match="no block of this order begins"):
        pool.alloc_at(1, 1)


def test_a_pool_of_interleaved_nodes_has_its_memory_there() -> None:
    pool = pageset.Pool(16 * MIB, interleave=[0])
    assert pool.populate() == 16 * MIB
    assert pool.backing()["nodes"] == {0: 16 * MIB}


def test_statistics_have_every_counter(pool: pageset.Pool) -> None:
    pages = pool.alloc_bulk(1000)
    stats = pool.stats()
    assert (stats.nr_used, stats.nr_retired, stats.array_drains_refused, stats.prezeroed_bytes) == (1000, 0, 0, 0)
    assert stats.base["claimed"] > 0 and stats.base["damaged"] == 0
    del pages
    pool.trim()
    assert pool.stats().return_time_ns > 0


def test_the_page_of_calls_names_every_call() -> None:
    page = (REPOSITORY / "docs/book/src/reference/pool-calls.md").read_text()
    arguments = inspect.signature(pageset.Pool).parameters
    for name in [*arguments, *vars(pageset.Pool), *vars(pageset.Pages)]:
        if not name.startswith("_"):
            assert re.search(rf"`{name}[`(]", page), f"the page does not name {name}"


def test_populated_memory_is_resident_until_it_is_trimmed(pool: pageset.Pool) -> None:
    told: list[tuple[str, int, int | None]] = []
    assert pool.populate(16 * MIB, threads=1, progress=lambda *stage: told.append(stage)) == 16 * MIB
    assert told[-1] == ("populating", 16 * MIB, 16 * MIB)
    assert pool.backing()["resident_bytes"] >= 16 * MIB
    assert pool.populate() == 64 * MIB
    assert pool.backing()["resident_bytes"] == 64 * MIB
    assert pool.tick() == 0
    assert pool.trim() == 64 * MIB
    with pytest.raises(pageset.Error, match="threads is 0: use 1 or more"):
        pool.populate(threads=0)


def test_a_run_begins_at_a_multiple_of_its_alignment(pool: pageset.Pool) -> None:
    for zeroed in (False, True):
        with pool.alloc_run(5 * MIB, align=16 * MIB, zeroed=zeroed) as run:
            assert (pool.start + run.offset) % (16 * MIB) == 0
            assert run.nbytes == 5 * MIB
            assert not zeroed or bytes(memoryview(run)[:: 1 << 12]) == bytes(5 * MIB >> 12)
            memoryview(run)[:: 1 << 12] = b"x" * (5 * MIB >> 12)
    with pytest.raises(pageset.Error, match="power of two"):
        pool.alloc_run(5 * MIB, align=3)


def test_a_pool_shrinks_and_grows_again(pool: pageset.Pool) -> None:
    assert pool.resize(32 * MIB) == 32 * MIB
    held = pool.alloc_bulk(1 << 20)
    assert len(held) == 32 * MIB // 4096
    # No page is free, so all memory stays in service.
    assert pool.resize(16 * MIB) == 32 * MIB
    del held
    assert pool.resize(128 * MIB) == 64 * MIB
    pool.validate()


def test_help_shows_what_may_be_given() -> None:
    shown = {
        "": "(size=1073741824, *, capacity=None, backing='thp', node=None, interleave=None, fork=None, locked=False, pinned=False, returns=None)",
        "alloc": "(self, /, order=0, *, zeroed=False, timeout=None)",
        "alloc_run": "(self, /, nbytes, *, align=4096, zeroed=False, timeout=None)",
        "alloc_gib": "(self, /, *, timeout=None)",
        "alloc_bulk": "(self, /, count, *, timeout=None)",
        "populate": "(self, /, size=None, *, threads=None, progress=None)",
        "resize": "(self, /, size)",
    }
    for name, signature in shown.items():
        of: Any = getattr(pageset.Pool, name) if name else pageset.Pool
        assert str(inspect.signature(of)) == signature


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_does_not_see_a_hidden_pool() -> None:
    pages = pageset.Pool(16 * MIB, fork="hide").alloc()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        os._exit(memoryview(pages)[0])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGSEGV


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_daemon_takes_the_pool_over() -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        pool = pageset.Pool(16 * MIB, fork="hand-over")
        pages = pool.alloc()
        memoryview(pages)[:5] = b"hello"
        if os.fork() == 0:
            try:
                pool.take_over(timeout=20)
                memoryview(pool.alloc(10))[:1] = b"1"
                pool.validate()
                os.write(writer, bytes(pages)[:5] + b" %d" % pool.stats().nr_used)
            finally:
                os._exit(0)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as done:
        assert done.read() == b"hello 1"
    assert os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_reads_pages_and_gets_none(pool: pageset.Pool) -> None:
    pages = pool.alloc()
    memoryview(pages)[0] = 42
    child = os.fork()
    if child == 0:
        try:
            is_right = memoryview(pages)[0] == 42
            for call in (
                pool.alloc, pool.stats, pool.trim, pool.backing, pool.validate, pages.free,
                lambda: pool.alloc_exact(3), lambda: pool.alloc_bulk(3), lambda: pool.alloc_at(0), pool.populate,
                pool.collapse, pool.tick, lambda: pool.resize(0),
            ):
                try:
                    call()
                    is_right = False
                except pageset.Error as error:
                    is_right = is_right and "a child cannot allocate from it" in str(error)
            is_right = is_right and not pages.is_free
            del pages, pool
            gc.collect()
            os._exit(0 if is_right else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert memoryview(pages)[0] == 42
    assert pool.stats().nr_used == 1


def test_a_run_is_any_size_and_its_parts_are_freed_by_themselves(pool: pageset.Pool) -> None:
    run = pool.alloc_run(40 * MIB - 5, zeroed=True)
    assert (run.nbytes, run.page_count) == (40 * MIB, 10240)
    array = numpy.frombuffer(memoryview(run), dtype=numpy.uint8)
    assert not array.any()
    array[:] = 3
    with pytest.raises(BufferError):
        run.split(1)
    del array
    assert run.give_back(2, 1) == 4096
    assert bytes(run)[2 * 4096 - 1 : 2 * 4096 + 1] == b"\x03\x00" and not run.is_free
    with pytest.raises(ValueError, match="beyond these 10240 pages"):
        run.give_back(10239, 2)
    first, rest = run.split(3)
    assert run.is_free and (first.page_count, rest.page_count, rest.offset) == (3, 10237, first.offset + 3 * 4096)
    assert bytes(rest)[:2] == b"\x03\x03"
    for wrong in [lambda: rest.join(first), lambda: first.join(first), lambda: first.join(run)]:
        with pytest.raises(ValueError, match="begin where these end|are free"):
            wrong()
    view = memoryview(rest)
    with pytest.raises(BufferError):
        first.join(rest)
    view.release()
    whole = first.join(rest)
    assert first.is_free and rest.is_free and whole.nbytes == 40 * MIB and whole.offset == first.offset
    first, rest = whole.split(3)
    assert rest.discard() == 10237 * 4096
    assert rest.is_free and rest.discard() == 0 and pool.stats().nr_used == 3
    for count in [0, 3, 4]:
        with pytest.raises(ValueError, match="no part"):
            first.split(count)
    first.free()
    with pytest.raises(ValueError, match="are free"):
        first.split(1)
    assert pool.alloc_exact(16384).page_count == 16384
    with pytest.raises(pageset.OutOfMemoryError, match="20480 contiguous free pages"):
        pool.alloc_run(80 * MIB)
    with pytest.raises(pageset.Error):
        pool.alloc_run(0)
    pool.validate()


def test_garbage_is_collected_before_an_allocation_fails(pool: pageset.Pool) -> None:
    gc.disable()
    try:
        for _ in range(40):
            cycle: list[Any] = [pool.alloc(10)]
            cycle.append(cycle)
            del cycle
    finally:
        gc.enable()


def test_a_bulk_collects_garbage_and_waits_for_its_first_page(pool: pageset.Pool) -> None:
    gc.disable()
    try:
        cycle: list[Any] = [pool.alloc_run(64 * MIB)]
        cycle.append(cycle)
        del cycle
        assert len(pool.alloc_bulk(1000)) == 1000
    finally:
        gc.enable()
    pages = [pool.alloc_run(64 * MIB)]
    with pytest.raises(pageset.OutOfMemoryError):
        pool.alloc_bulk(1000, timeout=0.01)
    timer = threading.Timer(0.05, pages.clear)
    timer.start()
    assert len(pool.alloc_bulk(1000, timeout=60)) == 1000
    timer.join()


def test_an_allocation_waits_for_another_thread(pool: pageset.Pool) -> None:
    pages = [pool.alloc_run(64 * MIB)]
    with pytest.raises(pageset.OutOfMemoryError):
        pool.alloc(timeout=0.01)
    timer = threading.Timer(0.05, pages.clear)
    timer.start()
    assert pool.alloc(3, timeout=60).page_count == 8
    timer.join()
    for timeout in [-1.0, float("nan")]:
        with pytest.raises(ValueError, match="timeout"):
            pool.alloc_exact(1, timeout=timeout)


def test_another_process_maps_pages_of_a_shared_pool() -> None:
    pool = pageset.Pool(16 * MIB, backing="memfd")
    pages = pool.alloc_run(5 * MIB)
    assert pages.fileno() == pool.fileno()
    view = memoryview(pages)
    view[:5] = b"hello"
    program = (
        "import mmap, sys; file, size, offset = map(int, sys.argv[1:]);"
        "memory = mmap.mmap(file, size, offset=offset); assert memory[:5] == b'hello'; memory[:3] = b'JEL'"
    )
    arguments = [str(pages.fileno()), str(pages.nbytes), str(pages.offset)]
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, pass_fds=[pages.fileno()])
    assert bytes(view[:5]) == b"JELlo"
    view.release()
    pages.free()
    with pytest.raises(pageset.Error, match="memfd"):
        pages.fileno()
    with pytest.raises(pageset.Error, match="memfd"):
        pageset.Pool(MIB).fileno()


def test_how_memory_goes_back_changes_while_the_pool_is_used() -> None:
    quiet = pageset.ReturnPolicy(thread=False, keep_bytes=1 << 62)
    pool = pageset.Pool(64 * MIB, capacity=8 * MIB, returns=quiet)
    with pytest.raises(pageset.OutOfMemoryError):
        pool.alloc_run(9 * MIB)
    pool.set_capacity(64 * MIB)
    memoryview(pool.alloc_run(9 * MIB))[:] = bytes(9 * MIB)
    gc.collect()
    assert sum(pool.tick() for _ in range(5)) == 0
    pool.set_pinned(True)
    assert pool.trim() == 0
    pool.set_pinned(False)
    pool.set_returns(pageset.ReturnPolicy(keep_bytes=0, part_bytes=4096, thread=False))
    assert sum(pool.tick() for _ in range(5)) >= 9 * MIB
    pool.set_returns(pageset.ReturnPolicy(keep_bytes=0, interval=0.01))
    memoryview(pool.alloc_run(9 * MIB))[:] = bytes(9 * MIB)
    gc.collect()
    while pool.stats().returned_bytes < 18 * MIB:
        time.sleep(0.01)  # the pool's thread gives the memory back
    pool.set_returns(quiet)
    assert "part_bytes: 4096" in repr(pageset.ReturnPolicy(part_bytes=4096))
    with pytest.raises(ValueError, match="interval"):
        pageset.ReturnPolicy(interval=-1.0)
