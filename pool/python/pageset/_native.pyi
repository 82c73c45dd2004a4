"""The part in Rust. The functions of this part return results as JSON. The Python modules next to this file
turn the JSON into values.
"""

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
    """The events of a recording, as a table. Each use reads the table from the file again, batch by batch."""

    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...

@final
class Table:
    """A table in memory. Polars, pandas, DuckDB, pyarrow and all other libraries with Arrow's interface can read it.
    """

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
    """A pool that hands out pages of 4 KiB to 4 MiB. Each CPU has a cache of pages, huge pages back the pool, and
    idle memory goes back to the system unless the pool is ``pinned``.

    The memory stays until neither the pool nor any of its pages exist any more. A child of a fork may read the
    pages, but in the child most calls on the pool and its pages raise an exception.
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
        """The size of the pool, in bytes."""
    @property
    def page_count(self) -> int:
        """The number of pages of 4 KiB in the pool."""
    @property
    def uses_rseq(self) -> bool:
        """Whether the pool's fast path uses restartable sequences."""
    def fileno(self) -> int:
        """The file descriptor of a pool with the backing ``memfd`` or hugetlb. The pool closes the descriptor
        at the pool's end.

        Another process can map pages of the file by their ``offset``, but must map whole huge pages of a hugetlb
        file. The other process must not change free pages.
        """
    @property
    def start(self) -> int:
        """The address of the pool's first byte, for a registration with a device. A page's ``offset`` is its distance
        from this address.
        """
    def alloc(self, order: int = 0, *, zeroed: bool = False, timeout: float | None = None) -> Pages:
        """Allocates a block of ``2**order`` pages, aligned to its size. The order is 0 to 10.

        With ``zeroed``, all bytes are zero. Without ``zeroed``, the contents are unspecified. If no block
        of this order is free, the call collects garbage, because reference cycles may hold pages. After the
        collection, the call waits up to ``timeout`` seconds until another thread frees enough pages.
        """
    def alloc_exact(self, count: int, *, timeout: float | None = None) -> Pages:
        """Allocates exactly ``count`` pages that lie side by side, up to the whole pool."""
    def alloc_run(self, nbytes: int, *, align: int = 4096, zeroed: bool = False, timeout: float | None = None) -> Pages:
        """Allocates ``nbytes`` that lie side by side, rounded up to pages, up to the whole pool. The address
        of the pages is a multiple of ``align`` bytes, a power of two.
        """
    def alloc_gib(self, *, timeout: float | None = None) -> Pages:
        """Allocates 1 GiB that begins at a multiple of 1 GiB from the pool's start.

        ``backing()`` tells the page size, and how many bytes of the pool are in huge pages. ``collapse()`` asks the
        system for transparent huge pages.
        """
    def alloc_at(self, page: int, order: int = 0) -> Pages:
        """Allocates the block of ``2**order`` pages that begins ``page`` pages after the pool's start, if all its
        pages are free.

        If some pages are not free, the call empties all caches and tries again.
        """
    def alloc_bulk(self, count: int, *, timeout: float | None = None) -> list[Pages]:
        """Allocates ``count`` single pages, and returns them in a list.

        The list is shorter if no more pages are free, even after the call has collected garbage. The call waits up to
        ``timeout`` seconds for the first page.
        """
    def stats(self) -> PoolStats:
        """Reads the counters and gauges of the pool."""
    def backing(self) -> dict[str, Any]:
        """Reports the pool's memory as the kernel accounts for it, in bytes. ``nodes`` has the resident bytes of each
        NUMA node.
        """
    def trim(self) -> int:
        """Gives free memory back to the system now: whole pageblocks, and free parts of 64 KiB or more.

        Returns the number of bytes that the call gave back.
        """
    def collapse(self) -> int:
        """Asks the system to replace the pool's small pages by huge pages, also for ``memfd``. The contents do not
        change.

        Returns the number of bytes that are now in huge pages. Before Linux 6.1, and for a pinned pool of small
        pages, the result is 0.
        """
    def populate(self, size: int | None = None, *, threads: int | None = None, progress: _Progress | None = None) -> int:
        """Makes the first ``size`` bytes of the pool resident until the next ``trim``. Without ``size``, makes the
        whole pool resident.

        Uses ``threads`` threads, or by default one for each CPU that the process may use. The contents do not change.
        Returns the number of bytes that this call made resident.
        """
    def tick(self) -> int:
        """Scans once for idle memory, as the pool's own thread does ten times a second by default.

        Gives pageblocks that two scans in a row found free back to the system. Returns the number of bytes that the
        call gave back.
        """
    def resize(self, size: int) -> int:
        """Takes free memory out of service until at most ``size`` bytes are in service. With a larger ``size``,
        puts memory back into service.

        The size cannot exceed the size that the pool was built with. Returns the number of bytes in service.
        The result is more than ``size`` if too little memory is free.
        """
    def set_capacity(self, size: int) -> None:
        """Limits the bytes that users and the pool's caches may have together.

        For a pool that can grow, build a larger pool with a smaller capacity, and raise the capacity later.
        """
    def set_returns(self, returns: ReturnPolicy) -> None:
        """Sets the policy for idle memory. The new policy applies from the next scan on.

        With ``thread``, the call starts the pool's thread if the pool has none and there is work for it.
        Without ``thread``, the call ends the thread.
        """
    def set_pinned(self, pinned: bool) -> None:
        """Pins or unpins the pool. When this call has returned, a pinned pool keeps the page behind every address."""
    def take_over(self, *, timeout: float = 1.0) -> None:
        """Makes a child of ``os.fork()`` the owner of its parent's pool, when the parent has ended.

        The call waits up to ``timeout`` seconds for the end of the parent. Use this call in a program that
        becomes a daemon, for a pool with ``fork="hand-over"``.
        """
    def validate(self) -> None:
        """Checks the pool's tables, and raises an exception if the tables are inconsistent.

        The result is exact only while no other thread uses the pool.
        """

@final
class Pages:
    """Pages of a pool. ``memoryview(pages)`` and ``numpy.frombuffer(pages, ...)`` show their bytes without a copy.

    ``free()`` and the end of a ``with`` block free the pages. Otherwise the pool gets the pages when neither this
    object nor a view of the object exists any more.
    """

    @property
    def page_count(self) -> int:
        """The number of pages of 4 KiB."""
    @property
    def nbytes(self) -> int:
        """The number of bytes in all pages."""
    @property
    def offset(self) -> int:
        """The number of bytes from the pool's start to these pages."""
    @property
    def is_free(self) -> bool:
        """Whether this object has no pages any more, because the program freed, discarded or split them."""
    def free(self) -> None:
        """Frees the pages now. Raises ``BufferError`` if there are views of the pages' bytes. Does nothing if
        the pages are free already.
        """
    def discard(self) -> int:
        """Frees the pages now, and gives their memory back to the system at once. The pool knows that pages
        that went back are zero.

        Returns the number of bytes that the call gave back.
        """
    def give_back(self, first: int, count: int) -> int:
        """Gives the memory of ``count`` of these pages back to the system, from page ``first`` on. This object keeps
        the pages.

        The pages that went back read as zeros, also through views of their bytes. Returns the number of bytes
        that the call gave back.
        """
    def split(self, count: int) -> tuple[Pages, Pages]:
        """Splits these pages into two objects: the first ``count`` pages and the other pages.

        Each part is freed separately. After the call, this object has no pages.
        """
    def join(self, next: Pages) -> Pages:
        """Joins these pages with the pages ``next``, which must begin where these pages end, as the opposite
        of ``split``. Returns all pages as one object. After the call, the two joined objects have no pages.
        """
    def fileno(self) -> int:
        """The descriptor of the pool's file, if the pool's backing is ``memfd`` or hugetlb.

        Another process finds these pages in the file by their ``offset``.
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
    """How a pool gives idle memory back to the system.

    A scan runs every ``interval`` seconds. A scan gives back the pageblocks of 2 MiB that two scans in a row
    found free. All scans together give back at most ``bytes_per_second``, but each scan may give back one
    pageblock. The scans leave ``keep_bytes`` of whole free pageblocks resident. (``None`` stands for 2 % of
    the pool, at most 32 MiB.) In pageblocks with pages in use, a scan also gives back free parts of
    ``part_bytes`` or more, unless ``part_bytes`` is 0. Each scan clears up to ``prezero_blocks`` free
    pageblocks. Without ``thread``, the program calls ``Pool.tick``.
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
    """The state of a pool at one moment. If the kernel has the same counter, the field has the kernel's name.

    Fields that begin with ``nr_`` count pages of 4 KiB.
    """

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
        """The counters of the allocator behind the arrays, by name."""

def policies() -> dict[str, str]:
    """Returns all policies by name, from the oldest to the newest, each with its description."""

def machines() -> dict[str, str]:
    """Returns all machines that ``simulate`` knows, by name, each with its description."""

def workloads() -> dict[str, str]:
    """Returns all workloads that ``simulate`` knows, by name, each with its description."""

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
