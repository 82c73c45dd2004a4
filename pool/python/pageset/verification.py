"""Compares a policy's decisions with the decisions of the recorded kernel."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from . import _native
from .document import Progress, html_table, parse, settings_list, text_table
from .recording import Recording


@dataclass(frozen=True)
class Refills:
    """How well the policy predicts fetches of blocks from the zone: their times and numbers."""

    observed: int
    predicted: int
    exact: int
    cold: int
    of_one: int


@dataclass(frozen=True)
class Drains:
    """How well the policy predicts drains of pages to the zone: their times, the numbers of pages, and the
    pages."""

    observed: int
    predicted: int
    exact: int
    ended_early: int
    identity_pages: int
    identity_exact: int


@dataclass(frozen=True)
class Decays:
    """How well the policy predicts the pages that each tick drains."""

    observed: int
    exact: int


@dataclass(frozen=True)
class Samples:
    """How well the policy predicts ``count`` and ``high`` of a page set when its own CPU printed them."""

    n: int
    count_exact: int
    high_exact: int


@dataclass(frozen=True)
class Undetermined:
    """The number of decisions that depend on a count of which only bounds are known. These decisions are
    neither exact nor differences."""

    drains: int
    frees: int
    samples: int


@dataclass(frozen=True)
class PassedOver:
    """The number of events that the comparison skipped, by reason."""

    impossible: int
    diverted_allocs: int
    diverted_frees: int
    orphan_refills: int
    demand_pages: int


@dataclass(frozen=True, repr=False)
class Verification:
    """The comparison of a recording with a policy."""

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
    """The number of differences, by reason."""
    undetermined: Undetermined
    passed_over: PassedOver
    warnings: tuple[str, ...]
    """The compared part of the recording, if a setting changed during the recording."""

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
    """Compares each decision of the recorded kernel with the decision of a policy. By default, the policy is
    the recorded kernel's own policy.

    ``mode`` is ``step``, ``blind`` or ``free``. In mode ``step``, the comparison predicts each decision, and
    then carries the kernel's decision out. In mode ``blind``, samples do not correct the state. In mode
    ``free``, the comparison carries the policy's own decisions out.
    """
    text = _native.verify(
        recording._native, policy, mode=mode, settings=settings_list(settings), layout=layout, progress=progress
    )
    return parse(Verification, text)
