"""A policy's decisions against those of the recorded kernel."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from . import _native
from .document import Progress, html_table, parse, settings_list, text_table
from .recording import Recording


@dataclass(frozen=True)
class Refills:
    """Fetches of blocks from the zone: moment and number."""

    observed: int
    predicted: int
    exact: int
    cold: int
    of_one: int


@dataclass(frozen=True)
class Drains:
    """Returns of pages to the zone: moment, number, which pages."""

    observed: int
    predicted: int
    exact: int
    ended_early: int
    identity_pages: int
    identity_exact: int


@dataclass(frozen=True)
class Decays:
    """Ticks: the pages that each drains."""

    observed: int
    exact: int


@dataclass(frozen=True)
class Samples:
    """``count`` and ``high`` of a page set when its own CPU printed them."""

    n: int
    count_exact: int
    high_exact: int


@dataclass(frozen=True)
class PassedOver:
    """Events that were not compared, by reason."""

    impossible: int
    diverted_allocs: int
    diverted_frees: int
    orphan_refills: int
    demand_pages: int


@dataclass(frozen=True, repr=False)
class Verification:
    """One recording compared with one policy."""

    trace: str
    kernel: str
    policy: str
    mode: str
    events: int
    refills: Refills
    drains: Drains
    decay: Decays
    samples: Samples
    mismatches: dict[str, int]
    """What differs, by reason."""
    passed_over: PassedOver
    warnings: tuple[str, ...]
    """Which part of the recording is compared, if a setting changed."""

    def _rows(self) -> list[tuple[str, int, int]]:
        return [
            ("refills", self.refills.observed, self.refills.exact),
            ("drains", self.drains.observed, self.drains.exact),
            ("same pages", self.drains.identity_pages, self.drains.identity_exact),
            ("ticks", self.decay.observed, self.decay.exact),
            ("count", self.samples.n, self.samples.count_exact),
            ("high", self.samples.n, self.samples.high_exact),
        ]

    def _title(self) -> str:
        return f"{self.policy} against Linux {self.kernel}, {self.events} events"

    def __repr__(self) -> str:
        table = text_table(["decisions", "the kernel's", "the same"], self._rows())
        return "\n".join([self._title(), *self.warnings, table])

    def _repr_html_(self) -> str:
        return html_table(["decisions", "the kernel's", "the same"], self._rows(), self._title())


def verify(
    recording: Recording,
    policy: str | None = None,
    *,
    mode: str = "step",
    settings: Mapping[str, int] | None = None,
    layout: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Compares each decision of the recorded kernel with a policy's; with that of its own kernel if none is named.

    ``mode`` is ``step`` (each decision is predicted, then the kernel's is carried out), ``blind`` (samples do not correct)
    or ``free`` (the policy's own decisions are carried out).
    """
    text = _native.verify(
        recording._native, policy, mode=mode, settings=settings_list(settings), layout=layout, progress=progress
    )
    return parse(Verification, text)
