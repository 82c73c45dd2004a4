"""Tells whether page sets cost the recorded machine time, and what would help."""

import html
from dataclasses import dataclass, field
from typing import Any

from . import _native
from .document import Progress, Tabular, html_table, parse, text_table
from .recording import Recording


@dataclass(frozen=True)
class Range:
    """A range from ``low`` to ``high``, with both ends."""

    low: int
    high: int


@dataclass(frozen=True)
class Forecast:
    """A forecast of the recording under one setting or one other kernel. `visits_range` is an 80 %
    interval."""

    kernel: str | None
    """The policy of the other kernel. ``None`` for the recorded kernel."""
    settings: str
    """The settings that differ from the recorded settings, as ``sysctl`` takes them."""
    visits: int
    """The number of refills and drains together."""
    visits_range: Range
    visits_percent: tuple[float, float] | None
    """The range, in percent of the recorded kernel's visits."""
    saved_percent: tuple[float, float] | None
    """The CPU time that this change would save, in percent. ``None`` if the recording does not tell the cost
    of a visit."""
    held_pages_peak: int
    held_pages_idle: int
    ends_tuning: bool
    """Whether this setting stops the kernel's own tuning of the limits of its page sets."""


_COLUMNS = ["setting or kernel", "visits", "from", "to", "pages, peak", "pages, idle"]


@dataclass(frozen=True, repr=False)
class Advice(Tabular):
    """The advice about a recorded machine."""

    recording: str
    kernel: str | None
    policy: str | None
    command: list[str]
    findings: dict[str, Any]
    """The facts that the recording shows, or ``None`` for a fact that the recording does not show.
    ``not_recorded`` names the missing kinds of events."""
    forecasts: tuple[Forecast, ...]
    """The forecasts for other settings, and then for other kernels."""
    verdict: dict[str, Any]
    """The conclusion from the facts and the forecasts."""
    latency: dict[str, Any] | None
    """The expected time of allocations, if the verdict advises a change."""
    who: dict[str, Any] | None
    """The tasks that caused the visits: ``by_party`` (the command and the rest), ``by_process`` and
    ``by_cgroup`` (with names). A name may have any characters. ``None`` if the recording does not distinguish
    tasks."""
    sites: dict[str, Any] | None
    """The places in the kernel: visits and waits by the kernel's function, and the other locks that CPUs
    waited for. ``None`` if the recording has no call chains."""
    sentences: tuple[str, ...]
    """The verdict, in words."""
    warnings: tuple[str, ...]
    """Facts that the recording lacks, and side effects of the advice."""
    table: _native.Table = field(compare=False)
    """The forecasts, as a table."""

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
    """Advises what to do about the recorded machine. Usually the advice is to change nothing. Each sentence
    names the figures behind it."""
    text, table = _native.advise(recording._native, progress=progress)
    return parse(Advice, text, table=table)
