"""Is it the page sets, and what would help?"""

import html
from dataclasses import dataclass, field
from typing import Any

from . import _native
from .document import Progress, Tabular, html_table, parse, text_table
from .recording import Recording


@dataclass(frozen=True)
class Range:
    """From and to, both included."""

    low: int
    high: int


@dataclass(frozen=True)
class Forecast:
    """What one setting or kernel would have made of the recording. `visits_range` is an 80 % interval."""

    kernel: str | None
    """The kernel's policy, if it is another one than the recorded."""
    settings: str
    """The settings that are not the recorded ones, as ``sysctl`` takes them."""
    visits: int
    """Refills and drains."""
    visits_range: Range
    visits_percent: tuple[float, float] | None
    """The range in percent of the recorded kernel's visits."""
    saved_percent: tuple[float, float] | None
    """What it would save of the CPU time, in percent, if what a visit costs is in the recording."""
    held_pages_peak: int
    held_pages_idle: int
    ends_tuning: bool
    """Whether the kernel would no longer tune the limits of its page sets."""


_COLUMNS = ["setting or kernel", "visits", "from", "to", "pages, peak", "pages, idle"]


@dataclass(frozen=True, repr=False)
class Advice(Tabular):
    """What is said about a machine."""

    recording: str
    kernel: str | None
    policy: str | None
    command: list[str]
    findings: dict[str, Any]
    """What the recording shows; ``None`` where it does not say. ``not_recorded`` names the events that it lacks."""
    forecasts: tuple[Forecast, ...]
    """What other settings and kernels would have made of it: settings first."""
    verdict: dict[str, Any]
    """What follows."""
    latency: dict[str, Any] | None
    """What allocations would take, where something is advised."""
    who: dict[str, Any] | None
    """Who it was: ``by_party`` (the command and the rest), ``by_process`` and ``by_cgroup`` (with names). A name may hold any
    characters. ``None`` if the recording tells no task from another."""
    sites: dict[str, Any] | None
    """Where it was: visits and waits by the kernel's function, and the other locks that CPUs waited for. ``None`` if the
    recording has no call chains."""
    sentences: tuple[str, ...]
    """The verdict in words."""
    warnings: tuple[str, ...]
    """What the recording does not say, and what is easily overlooked when the advice is followed."""
    table: _native.Table = field(compare=False)
    """The forecasts as a table."""

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (
                forecast.kernel or forecast.settings,
                forecast.visits,
                forecast.visits_range.low,
                forecast.visits_range.high,
                forecast.held_pages_peak,
                forecast.held_pages_idle,
            )
            for forecast in self.forecasts
        ]

    def _said(self) -> list[str]:
        return [*self.sentences, *(f"Note: {warning}" for warning in self.warnings)]

    def __repr__(self) -> str:
        return "\n".join([*self._said(), "", text_table(_COLUMNS, self._rows())])

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self._said())
        return f"<ul>{said}</ul>" + html_table(_COLUMNS, self._rows(), self.recording)


def advise(recording: Recording, *, progress: Progress | None = None) -> Advice:
    """Says what to do about the recorded machine: mostly nothing. Each sentence names the figures it rests on."""
    text, table = _native.advise(recording._native, progress=progress)
    return parse(Advice, text, table=table)
