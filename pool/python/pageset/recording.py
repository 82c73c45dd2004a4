"""Recordings of a kernel's page events."""

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import _native
from .document import Progress, html_table, listed


@dataclass(frozen=True)
class Task:
    """A task in a recording with names."""

    tid: int
    """The task's number, as in the column ``pid`` of the events."""
    process: int
    """The number of the task's process."""
    since_ns: int
    """The time of the task's start, or 0 if the task was there before the recording. The kernel uses numbers
    again."""
    name: str | None
    """The task's name, which may have any characters."""
    cgroup: str | None
    """The task's control group, if the recording tells it."""


class Recording:
    """A recording, with the facts that it tells about itself. Each use of the recording reads its file
    again."""

    def __init__(self, native: _native.Recording, arguments: dict[str, Any]) -> None:
        self._native = native
        self._arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles only the file's name. The reader of the pickle opens the file again."""
        return _reopened, (self._arguments,)

    @property
    def path(self) -> str:
        """The file, or for the bundled recording its name."""
        return os.fspath(self._native.path)

    @cached_property
    def info(self) -> dict[str, Any]:
        """All facts that the recording tells about itself. Times are nanoseconds of the events' clock."""
        info: dict[str, Any] = json.loads(self._native.info())
        return info

    @property
    def name(self) -> str | None:
        """The name of the load."""
        name: str | None = self.info["name"]
        return name

    @property
    def kernel(self) -> str | None:
        """The release of the recorded kernel, as ``uname -r`` prints it."""
        kernel: str | None = self.info["kernel"]
        return kernel

    @property
    def command(self) -> list[str]:
        """The recorded command and its arguments. Empty if the recording does not tell its command."""
        command: list[str] = self.info["command"]
        return command

    @property
    def event_count(self) -> int | None:
        """The number of events, or ``None`` if this package would have to read them to count them."""
        count: int | None = self.info["events"]
        return count

    @property
    def machine(self) -> dict[str, Any] | None:
        """The recorded machine: CPUs, caches, nodes, zones, settings. ``None`` if the recording does not tell
        it."""
        machine: dict[str, Any] | None = self.info["machine"]
        return machine

    @property
    def before(self) -> dict[str, Any] | None:
        """The contents of ``/proc`` before the first event: zones, page sets, free blocks, counters."""
        before: dict[str, Any] | None = self.info["before"]
        return before

    @property
    def after(self) -> dict[str, Any] | None:
        """The contents of ``/proc`` after the last event."""
        after: dict[str, Any] | None = self.info["after"]
        return after

    @property
    def samples(self) -> list[dict[str, Any]]:
        """The states of page sets that their own CPUs printed during the recording."""
        samples: list[dict[str, Any]] = self.info["samples"]
        return samples

    @property
    def tasks(self) -> list[Task] | None:
        """The tasks with their names. ``None`` if the recording has no names."""
        tasks = self.info.get("tasks")
        if tasks is None:
            return None

        def at(texts: list[str], index: int | None) -> str | None:
            return texts[index] if index is not None and index < len(texts) else None

        return [
            Task(tid, process, since_ns, at(tasks["names"], name), at(tasks.get("cgroups", []), cgroup))
            for tid, process, since_ns, name, cgroup in tasks["tasks"]
        ]

    @property
    def lost(self) -> dict[str, int]:
        """The known gaps of the recording, by reason."""
        lost: dict[str, int] = self.info["lost"]
        return lost

    def events(self) -> _native.Events:
        """Returns the events as a table for ``polars.DataFrame``, ``pyarrow.table``, DuckDB, or any other
        library with Arrow's interface.

        Each use reads the table from the file again, batch by batch.
        """
        return self._native.events()

    def _rows(self) -> list[tuple[str, object]]:
        machine = self.machine
        zones = ", ".join(zone["kind"] for zone in machine["zones"]) if machine else None
        return [
            ("kernel", self.kernel),
            ("command", " ".join(self.command) or None),
            ("events", self.event_count),
            ("CPUs", machine["cpus"] if machine else None),
            ("zones", zones),
            ("lost events", sum(self.lost.values())),
        ]

    def __repr__(self) -> str:
        count = "events" if self.event_count is None else f"{self.event_count} events"
        return f"<pageset.Recording {os.path.basename(self.path)!r}: {count}, Linux {self.kernel or 'unknown'}>"

    def _repr_html_(self) -> str:
        return html_table(["", ""], self._rows(), os.path.basename(self.path))


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    layout: str | os.PathLike[str] | None = None,
    lenient: bool = False,
    recover: bool = False,
) -> Recording:
    """Opens a recording of any known format. Without a path, opens the bundled recording.

    ``layout`` is a machine that replaces the recorded machine. With ``lenient``, a reader skips invalid lines
    and counts them. With ``recover``, a reader uses a damaged file up to its first damage.
    """
    arguments: dict[str, Any] = {
        "path": _absolute(path),
        "layout": _absolute(layout),
        "lenient": lenient,
        "recover": recover,
    }
    native = _native.Recording(path, layout=layout, lenient=lenient, recover=recover)
    return Recording(native, arguments)


def _absolute(path: str | os.PathLike[str] | None) -> str | None:
    """Makes the path absolute, because a program may unpickle the recording in another directory."""
    return None if path is None else os.path.abspath(path)


def _reopened(arguments: dict[str, Any]) -> Recording:
    return open(**arguments)


def record(
    path: str | os.PathLike[str],
    command: Sequence[str | os.PathLike[str]] = (),
    *,
    seconds: float | None = None,
    cpus: str | None = None,
    buffer_bytes: int | None = None,
    faults: bool = False,
    call_chains: bool = False,
    names: bool = False,
    flight_recorder: bool = False,
    until: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Recording:
    """Records the page events of this machine's kernel in a new file. The caller needs the right to use the
    kernel's tracing.

    The recording ends when ``command`` ends, after ``seconds``, or at an interrupt. The file is complete in
    each case. ``cpus`` are the recorded CPUs, such as ``0-3,8``, and ``buffer_bytes`` is the size of the
    kernel's buffer for each CPU. With ``faults``, the recording also has page faults of user mode. With
    ``call_chains``, the recording tells which kernel functions wait for zone locks. With ``names``, the
    recording has the names of tasks. With ``flight_recorder``, the recording keeps only the last events.
    ``until`` ends such a recording at a condition such as ``zone_wait_us > 500``. With ``force``, the file
    replaces an existing file.
    """
    removed = _native.record(
        path,
        [os.fspath(word) for word in listed("command", command)],
        seconds=seconds,
        cpus=cpus,
        buffer_bytes=buffer_bytes,
        faults=faults,
        call_chains=call_chains,
        names=names,
        flight_recorder=flight_recorder,
        until=until,
        force=force,
        progress=progress,
    )
    for name in removed:
        warnings.warn(
            f"Removed the tracing instance {name}, which was left by a recorder that was killed.", stacklevel=2
        )
    return open(path)
