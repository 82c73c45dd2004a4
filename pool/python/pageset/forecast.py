"""Forecasts a recording under other kernels and settings."""

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _native
from .document import Progress, Tabular, html_table, listed, parse, settings_list, text_table
from .recording import Recording

Interval = tuple[int, int]
"""An 80 % interval, both ends included. Measured, it held 83 % of the runs of loads whose repeats agree within
25 %, and 85 % of those of other loads. In trials of settings it held 87 % on a quiet machine, and 55 % on a
busy one, where an earlier rule computed it."""


@dataclass(frozen=True)
class Intervals:
    """Intervals of a row's main values."""

    visits: Interval
    zone_lock_acquisitions: Interval
    refilled_pages: Interval
    drained_pages: Interval


@dataclass(frozen=True)
class Outcome:
    """The forecast of one policy."""

    policy: str
    is_recorded_kernel: bool
    allocs: int
    frees: int
    pcp_hits: int
    refills: int
    refilled_pages: int
    drains: int
    drained_pages: int
    free_high_drains: int
    direct_pages: int
    zone_lock_acquisitions: int
    pcp_pages_peak: int
    pcp_pages_end: int
    pcp_pages_idle: int
    interval: Intervals | None
    """``None`` if the recording does not show its kernel's decisions, and so not the accuracy of a replay."""

    @property
    def visits(self) -> int:
        """Refills and drains: how often page sets went to their zones."""
        return self.refills + self.drains

    @property
    def hit_percent(self) -> float | None:
        """Allocations that a page set served without its zone, in percent."""
        return 100 * self.pcp_hits / self.allocs if self.allocs else None


_COLUMNS = {
    "policy": "policy",
    "allocs": "allocations",
    "hit_percent": "PCP hits %",
    "refills": "refills",
    "drains": "drains",
    "zone_lock_acquisitions": "zone locks",
    "pcp_pages_peak": "PCP pages, peak",
    "pcp_pages_idle": "PCP pages, idle",
}


@dataclass(frozen=True, repr=False)
class Replay(Tabular):
    """A finished replay: a row for each policy."""

    machine: dict[str, Any]
    """The machine of the replay."""
    events: int
    """Events read."""
    lost: dict[str, int]
    """Gaps of the recording."""
    unreplayed: dict[str, int]
    """Events that could not be replayed, by reason."""
    unseen: dict[str, int]
    """Missing events, as far as other events show them."""
    tick_interval_s: int | None
    """Seconds between ticks, if the recording has no ticks."""
    window: dict[str, Any]
    """The part of the recording that is counted."""
    kernel_itself: dict[str, int | None]
    """The recorded kernel's figures, from its events; ``None`` where they were not recorded."""
    own: Outcome | None
    """The forecast of the recorded kernel's own policy."""
    outcomes: tuple[Outcome, ...]
    """The rows, in the order asked for."""
    warnings: tuple[str, ...]
    """Missing facts, the replayed part, and whether the replay is inaccurate."""
    table: _native.Table = field(compare=False)
    """The rows as a table."""

    def _rows(self) -> list[list[object]]:
        return [[getattr(outcome, key) for key in _COLUMNS] for outcome in self.outcomes]

    def __repr__(self) -> str:
        return "\n".join([*self.warnings, text_table(list(_COLUMNS.values()), self._rows())])

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{html.escape(warning)}</p>" for warning in self.warnings)
        return said + html_table(list(_COLUMNS.values()), self._rows(), f"Replay of {self.events} events")


def replay(
    recording: Recording,
    policies: str | Sequence[str] = (),
    settings: Mapping[str, int | Sequence[int]] | None = None,
    *,
    layout: str | os.PathLike[str] | None = None,
    cpus: int | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Replays a recording under each policy, or under the one that is named; under all that a replay can play if none is.

    ``settings`` are constants of the policies (``batch``, ``high``, ``scale-max``) and settings of the kernel (``vm.``
    and the name); a key with several values gives a row for each combination. ``layout`` is a machine to replay on
    instead of the recorded one, ``cpus`` a number of CPUs that share its memory. A recording without allocations or without
    frees is an ``Error``, which names the events that it lacks.
    """
    names = [policies] if isinstance(policies, str) else listed("policies", policies)
    asked = (names, settings_list(settings))
    text, table = _native.replay(recording._native, *asked, layout=layout, cpus=cpus, progress=progress)
    return parse(Replay, text, table=table)
