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
"""An 80 % interval, with both ends. In measurements, the interval held 83 % of the runs of loads with repeats
within 25 %, and 85 % of the runs of other loads. In trials of settings, the interval held 87 % of the runs on
a quiet machine. On a busy machine, an interval of an earlier rule held 55 %."""


@dataclass(frozen=True)
class Intervals:
    """The intervals of a row's main values."""

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
    """``None`` if the recording does not show the decisions of its kernel. Without these decisions, nothing
    tells the accuracy of a replay."""

    @property
    def visits(self) -> int:
        """The number of refills and drains: how often page sets went to their zones."""
        return self.refills + self.drains

    @property
    def hit_percent(self) -> float | None:
        """The percentage of allocations that a page set served without its zone."""
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
    """The number of events that the replay read."""
    lost: dict[str, int]
    """The gaps of the recording."""
    unreplayed: dict[str, int]
    """The number of events that the replay skipped, by reason."""
    unseen: dict[str, int]
    """The number of missing events, as far as other events show them."""
    tick_interval_s: int | None
    """Seconds between ticks, if the recording has no ticks."""
    window: dict[str, Any]
    """The part of the recording that the figures count."""
    kernel_itself: dict[str, int | None]
    """The recorded kernel's figures, from its events. ``None`` for figures that the recording lacks."""
    own: Outcome | None
    """The forecast of the recorded kernel's own policy."""
    outcomes: tuple[Outcome, ...]
    """The rows, in the order of the requested policies."""
    warnings: tuple[str, ...]
    """Missing facts, the replayed part, and whether the replay is inaccurate."""
    table: _native.Table = field(compare=False)
    """The rows, as a table."""

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
    """Replays a recording under the named policies. Without names, replays it under all policies that a
    replay supports.

    ``settings`` are constants of the policies (``batch``, ``high``, ``scale-max``) and settings of the kernel
    (``vm.`` and the name). If keys have several values, the result has a row for each combination. ``layout``
    is a machine that replaces the recorded machine. ``cpus`` is the number of CPUs that share its memory. If
    the recording has no allocations or no frees, the function raises an ``Error`` with the names of the
    missing events.
    """
    names = [policies] if isinstance(policies, str) else listed("policies", policies)
    asked = (names, settings_list(settings))
    text, table = _native.replay(recording._native, *asked, layout=layout, cpus=cpus, progress=progress)
    return parse(Replay, text, table=table)
