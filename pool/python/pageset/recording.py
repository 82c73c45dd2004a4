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
    """A task of a recording that was made with names."""

    tid: int
    """Its number, as the column ``pid`` of the events has it."""
    process: int
    """The number of its process."""
    since_ns: int
    """When it began; 0 if it was there before. Numbers are used again."""
    name: str | None
    """What it calls itself: any characters."""
    cgroup: str | None
    """Its control group, where that is known."""


class Recording:
    """A recording: what it says about itself. Its file is read again by whatever uses it."""

    def __init__(self, native: _native.Recording, arguments: dict[str, Any]) -> None:
        self._native = native
        self._arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is its file's name: who unpickles it reads the file."""
        return _reopened, (self._arguments,)

    @property
    def path(self) -> str:
        """The file; for the bundled recording, its name."""
        return os.fspath(self._native.path)

    @cached_property
    def info(self) -> dict[str, Any]:
        """Everything that the recording says about itself. Times are nanoseconds of the events' clock."""
        info: dict[str, Any] = json.loads(self._native.info())
        return info

    @property
    def name(self) -> str | None:
        """The name of the load."""
        name: str | None = self.info["name"]
        return name

    @property
    def kernel(self) -> str | None:
        """Release of the recorded kernel, as ``uname -r``."""
        kernel: str | None = self.info["kernel"]
        return kernel

    @property
    def command(self) -> list[str]:
        """The recorded command and its arguments; empty if that is not known."""
        command: list[str] = self.info["command"]
        return command

    @property
    def event_count(self) -> int | None:
        """Events in it, if that is known without reading them."""
        count: int | None = self.info["events"]
        return count

    @property
    def machine(self) -> dict[str, Any] | None:
        """The machine: CPUs, caches, nodes, zones, settings. ``None`` if the recording does not say."""
        machine: dict[str, Any] | None = self.info["machine"]
        return machine

    @property
    def before(self) -> dict[str, Any] | None:
        """What ``/proc`` said before the first event: zones, page sets, free blocks, counters."""
        before: dict[str, Any] | None = self.info["before"]
        return before

    @property
    def after(self) -> dict[str, Any] | None:
        """What ``/proc`` said after the last event."""
        after: dict[str, Any] | None = self.info["after"]
        return after

    @property
    def samples(self) -> list[dict[str, Any]]:
        """Page sets as their own CPUs saw them while recording."""
        samples: list[dict[str, Any]] = self.info["samples"]
        return samples

    @property
    def tasks(self) -> list[Task] | None:
        """Tasks with their names. ``None`` if the recording was made without names."""
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
        """What is known to be missing, by reason."""
        lost: dict[str, int] = self.info["lost"]
        return lost

    def events(self) -> _native.Events:
        """The events as a table: give it to ``polars.DataFrame``, ``pyarrow.table``, DuckDB or whoever else knows Arrow.

        It is read each time that somebody uses it, batch by batch.
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
    """Opens a recording of any known format; the bundled one if no path is given.

    ``layout`` is a machine to use instead. ``lenient`` skips and counts lines that make no sense, ``recover`` reads a
    damaged file up to its first damage.
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
    """A recording may be unpickled in another directory."""
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
    """Records what this machine's kernel allocates and frees into a new file. Needs the right to use the kernel's tracing.

    It ends with ``command``, after ``seconds``, or at an interrupt, whichever is first; the file is whole after each of them.
    ``cpus`` are those to record, as in ``0-3,8``; ``buffer_bytes`` the kernel's buffer for each. ``faults`` records page faults
    of user mode too, ``call_chains`` who waits for zone locks, ``names`` keeps names of tasks. ``flight_recorder`` keeps what was
    last only; ``until`` ends such a recording at a condition, as ``zone_wait_us > 500``. ``force`` replaces a file that is there.
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
