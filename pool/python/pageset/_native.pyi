"""The part in Rust. Results are JSON; the modules beside make values of them."""

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, final

from typing_extensions import CapsuleType

__all__ = [
    "Dataset",
    "Events",
    "Pages",
    "Pool",
    "PoolStats",
    "Recording",
    "ReturnPolicy",
    "Table",
    "advise",
    "advise_task",
    "advise_tasks",
    "command",
    "fleet",
    "machines",
    "policies",
    "record",
    "recordings",
    "replay",
    "replay_task",
    "replay_tasks",
    "simulate",
    "sweep_task",
    "sweep_tasks",
    "verify",
    "workloads",
]

_Path = str | os.PathLike[str]
_Progress = Callable[[str, int, int | None], object]

@final
class Recording:
    def __new__(
        cls,
        path: _Path | None,
        *,
        layout: _Path | None,
        lenient: bool,
        recover: bool,
    ) -> Recording: ...
    @property
    def path(self) -> Path: ...
    def events(self) -> Events: ...
    def info(self) -> str: ...

@final
class Events:
    """The events of a recording: a table that is read from the file, batch by batch, each time that somebody uses it."""

    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...

@final
class Table:
    """A table in memory, for Polars, pandas, DuckDB, pyarrow and all others that know Arrow's interface."""

    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[bytes], Table], tuple[bytes]]: ...
    @staticmethod
    def _of_stream(bytes: bytes) -> Table: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...

@final
class Pool:
    """A pool of 4 KiB to 4 MiB pages: per-CPU cached, huge-page backed, returned to the system when idle unless ``pinned``.

    It lives as long as the last of its pages. In a child of a fork its pages may be read; every other call is an error.
    """

    def __new__(
        cls,
        size: int = 1 << 30,
        *,
        capacity: int | None = None,
        backing: Literal["thp", "plain", "memfd", "hugetlb-2m", "hugetlb-1g", "hugetlb-2m-or-thp", "hugetlb-1g-or-thp"] = "thp",
        node: int | None = None,
        interleave: list[int] | None = None,
        fork: Literal["copy", "hide", "hand-over"] | None = None,
        locked: bool = False,
        pinned: bool = False,
        returns: ReturnPolicy | None = None,
    ) -> Pool: ...
    @property
    def size(self) -> int:
        """Bytes of the pool."""
    @property
    def page_count(self) -> int:
        """Pages of 4 KiB in it."""
    @property
    def uses_rseq(self) -> bool:
        """Whether its fast path uses restartable sequences."""
    def fileno(self) -> int:
        """The file descriptor of a pool whose backing is ``memfd`` or hugetlb, which is closed with the pool.

        Another process that has it maps pages by their ``offset``, of hugetlb whole huge pages only, and does not change free pages.
        """
    @property
    def start(self) -> int:
        """Address of the first byte; a page's ``offset`` is its distance from here. For a registration with a device."""
    def alloc(self, order: int = 0, *, zeroed: bool = False, timeout: float | None = None) -> Pages:
        """Allocates a block of ``2**order`` pages, aligned to its size; order 0 to 10.

        What is in it is unspecified, or all zero. If there is none, garbage is collected: cycles may hold pages. Then it waits for
        ``timeout`` seconds until another thread frees some.
        """
    def alloc_exact(self, count: int, *, timeout: float | None = None) -> Pages:
        """Allocates exactly ``count`` pages that lie side by side, up to all of the pool."""
    def alloc_run(self, nbytes: int, *, align: int = 4096, zeroed: bool = False, timeout: float | None = None) -> Pages:
        """Allocates ``nbytes`` that lie side by side, rounded up to pages, up to all of the pool.

        Their address is a multiple of ``align`` bytes, a power of two.
        """
    def alloc_gib(self, *, timeout: float | None = None) -> Pages:
        """Allocates 1 GiB that begins at a multiple of 1 GiB from the pool's start. ``backing()`` tells its page size, and how
        much of the pool is in huge pages; ``collapse()`` asks for transparent ones.
        """
    def alloc_at(self, page: int, order: int = 0) -> Pages:
        """Allocates the block of ``2**order`` pages that begins ``page`` pages after the pool's start, if all of it is free.

        Empties all caches first.
        """
    def alloc_bulk(self, count: int, *, timeout: float | None = None) -> list[Pages]:
        """Allocates ``count`` single pages; fewer if there are no more."""
    def stats(self) -> PoolStats:
        """What happened, and where the pages are."""
    def backing(self) -> dict[str, Any]:
        """The memory as the kernel accounts for it, in bytes, with what is resident by NUMA node."""
    def trim(self) -> int:
        """Gives all free memory back to the system now. Bytes that went back."""
    def collapse(self) -> int:
        """Asks the system for huge pages in place of the pool's small pages, also for ``memfd``. Contents do not change.

        Bytes that are now in huge pages: 0 before Linux 6.1, and for a pinned pool.
        """
    def populate(self, size: int | None = None, *, threads: int | None = None, progress: _Progress | None = None) -> int:
        """Makes the first ``size`` bytes resident, or all of the pool, until ``trim``.

        By so many threads, or as many as there are CPUs. What is in the pages does not change. Bytes that are resident then.
        """
    def tick(self) -> int:
        """One look at idle memory, as the pool's own thread takes it ten times a second. Bytes that went back to the system."""
    def resize(self, size: int) -> int:
        """Takes free memory out of service until at most ``size`` bytes are in service, or puts some back.

        Never beyond the size that the pool was built with. Bytes in service then: more than ``size`` if not enough is free.
        """
    def set_capacity(self, size: int) -> None:
        """At most ``size`` bytes are handed out from now on, caches included. A pool that was built larger grows so."""
    def set_returns(self, returns: ReturnPolicy) -> None:
        """Idle memory goes back as ``returns`` says, from the next look on. Whether there is a thread stays as it is."""
    def set_pinned(self, pinned: bool) -> None:
        """From the return of this call on, every address keeps the page that is behind it, or not any more."""
    def take_over(self, *, timeout: float = 1.0) -> None:
        """Makes a child of ``os.fork()`` the owner of its parent's pool, when the parent has ended.

        For a pool with ``fork="hand-over"`` in a program that becomes a daemon. Waits up to ``timeout`` seconds for that end.
        """
    def validate(self) -> None:
        """Checks everything that can be checked by looking, while nobody else uses the pool."""

@final
class Pages:
    """Pages of a pool. ``memoryview(pages)`` and ``numpy.frombuffer(pages, ...)`` are their bytes without a copy.

    They are free again when the last of these and the object itself are gone, at ``free()``, or behind a ``with`` block.
    """

    @property
    def page_count(self) -> int:
        """How many pages of 4 KiB these are."""
    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
    @property
    def offset(self) -> int:
        """Bytes from the pool's start to these pages."""
    @property
    def is_free(self) -> bool:
        """Whether they were given back, by ``free()`` or behind a ``with`` block."""
    def free(self) -> None:
        """Gives them back now. A ``BufferError`` while there are views of their bytes; nothing if they are free already."""
    def discard(self) -> int:
        """Gives them back now, and their memory to the system at once; the pool knows then that they are zero.

        Bytes that went back.
        """
    def give_back(self, first: int, count: int) -> int:
        """Returns the memory of ``count`` of these pages to the system, from page ``first`` on, and keeps the pages.

        They read as zeros then, also through views of their bytes. Returns the number of returned bytes.
        """
    def split(self, count: int) -> tuple[Pages, Pages]:
        """Makes two of these pages: the first ``count``, and the rest.

        Each part is freed by itself; this object has none of them any more.
        """
    def fileno(self) -> int:
        """The descriptor of the pool's file, if the pool's backing is ``memfd`` or hugetlb.

        With ``offset``, it says where another process finds these pages.
        """
    def __len__(self) -> int: ...
    def __enter__(self) -> Pages: ...
    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class ReturnPolicy:
    """How idle memory goes back to the system.

    Every ``interval`` seconds, a look gives pageblocks of 2 MiB back that were free at two looks; at most ``bytes_per_second``, all but
    ``keep_bytes`` (``None`` for a fiftieth of the pool, 32 MiB at most). Of pageblocks in part use, free parts of ``part_bytes`` go back, too,
    unless that is 0. A look clears up to ``prezero_blocks`` pageblocks. Without ``thread``, the program calls ``Pool.tick``.
    """

    def __new__(
        cls,
        *,
        interval: float = 0.1,
        bytes_per_second: int = 4 << 30,
        keep_bytes: int | None = None,
        part_bytes: int = 0,
        prezero_blocks: int = 0,
        thread: bool = True,
    ) -> ReturnPolicy: ...

@final
class PoolStats:
    """A pool at one moment, under the kernel's names where it has one. ``nr_`` are pages of 4 KiB."""

    @property
    def pgalloc(self) -> int: ...
    @property
    def pgfree(self) -> int: ...
    @property
    def nr_free_pages(self) -> int: ...
    @property
    def nr_array(self) -> int: ...
    @property
    def nr_used(self) -> int: ...
    @property
    def nr_retired(self) -> int: ...
    @property
    def capacity_pages(self) -> int: ...
    @property
    def largest_free_order(self) -> int | None: ...
    @property
    def array_refills(self) -> int: ...
    @property
    def array_flushes(self) -> int: ...
    @property
    def array_drains(self) -> int: ...
    @property
    def array_drains_refused(self) -> int: ...
    @property
    def rseq_restarts(self) -> int: ...
    @property
    def bad_frees(self) -> int: ...
    @property
    def cleared_bytes(self) -> int: ...
    @property
    def prezeroed_bytes(self) -> int: ...
    @property
    def returned_bytes(self) -> int: ...
    @property
    def refaulted_bytes(self) -> int: ...
    @property
    def return_time_ns(self) -> int: ...
    @property
    def metadata_bytes(self) -> int: ...
    @property
    def base(self) -> dict[str, int]:
        """The counters of the allocator of pageblocks, by name."""

def policies() -> dict[str, str]:
    """All policies by name, oldest first, each with its description."""

def machines() -> dict[str, str]:
    """All machines that ``simulate`` knows by name, each with its description."""

def workloads() -> dict[str, str]:
    """All workloads that ``simulate`` knows by name, each with its description."""

def command(arguments: list[str]) -> int: ...
def record(
    path: _Path,
    command: list[str],
    *,
    seconds: float | None,
    cpus: str | None,
    buffer_bytes: int | None,
    faults: bool,
    call_chains: bool,
    names: bool,
    flight_recorder: bool,
    until: str | None,
    force: bool,
    progress: _Progress | None,
) -> list[str]: ...
def replay(
    recording: Recording,
    policies: list[str],
    settings: list[str],
    *,
    layout: _Path | None,
    cpus: int | None,
    progress: _Progress | None,
) -> tuple[str, Table]: ...
def verify(
    recording: Recording,
    policy: str | None,
    *,
    mode: str,
    settings: list[str],
    layout: _Path | None,
    progress: _Progress | None,
) -> str: ...
def advise(recording: Recording, *, progress: _Progress | None) -> tuple[str, Table]: ...
def simulate(specs: str, *, jobs: int | None, progress: _Progress | None) -> tuple[str, Table]: ...
def sweep_tasks(plan: _Path) -> list[tuple[str, str]]: ...
def sweep_task(key: str, spec: str) -> bytes: ...
def fleet(paths: list[str], *, progress: _Progress | None) -> tuple[str, Table]: ...
def recordings(paths: list[_Path]) -> list[str]: ...
def advise_tasks(recordings: list[str]) -> list[str]: ...
def advise_task(key: str, recording: _Path) -> bytes: ...
def replay_tasks(recordings: list[str], policies: list[str], settings: list[str]) -> list[str]: ...
def replay_task(key: str, recording: _Path, policies: list[str], settings: list[str]) -> bytes: ...

@final
class Dataset:
    def __new__(cls, directory: _Path) -> Dataset: ...
    def keys(self) -> set[str]: ...
    def path(self, key: str) -> Path: ...
    def store(self, key: str, parquet: bytes) -> bool: ...
