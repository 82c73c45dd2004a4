"""Simulates workloads on machines, in virtual time."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import _native
from .document import Progress, Tabular, html_table, listed, parse, text_table, whole


@dataclass(frozen=True)
class RunSpec:
    """The specification of a simulation: all inputs that decide its result. For a field that is ``None``, the
    workload or the policy decides."""

    machine: str
    """The name of a bundled machine, or the path of a machine file."""
    workload: str
    """The name of a workload, or ``trace:`` and the path of a recording, or ``bundled:`` and a built-in
    recording's name."""
    policy: str
    """The name of a policy."""
    cpus: int | None = None
    """The number of CPUs that the workload uses. By default, the workload uses all CPUs."""
    batch: int | None = None
    """A fixed ``batch``, in pages."""
    high: int | None = None
    """A fixed ``high``, in pages."""
    kernel_of: str | None = None
    """A policy. The allocator runs inside this policy's kernel."""
    tick_phase: str | None = None
    """Whether all CPUs tick at the same time (``aligned``) or one after the other (``spread``)."""
    seed: int = 1
    """The seed of all random numbers."""
    warmup_ms: int | None = None
    """The virtual time before the measurement begins."""
    duration_ms: int | None = None
    """The virtual time of the measurement."""
    settings: Mapping[str, int] = field(default_factory=dict)
    """The parameters of the workload, and ``vm.*`` settings of the kernel."""

    def __post_init__(self) -> None:
        for name in _TEXTS:
            if not isinstance(value := getattr(self, name), str | None):
                raise TypeError(f"{name} is a name, not {value!r}")
        for name in _NUMBERS:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _not_negative(name, value))
        settings = {key: _not_negative(key, value) for key, value in self.settings.items()}
        object.__setattr__(self, "settings", settings)


_TEXTS = ("machine", "workload", "policy", "kernel_of", "tick_phase")
_NUMBERS = ("cpus", "batch", "high", "seed", "warmup_ms", "duration_ms")


def _not_negative(name: str, value: object) -> int:
    number = whole(name, value)
    if number < 0:
        raise ValueError(f"{name} is {number}: it cannot be negative")
    return number


@dataclass(frozen=True)
class SharedUse:
    """Figures that every allocator has: how often CPUs use shared data, and how much memory is in use."""

    visits: int
    """How often a CPU took a zone's lock. For allocators without locks: how often a CPU changed shared data
    of a zone, or a contended line."""
    line_transfers: int
    """For allocators without locks: how often a CPU changed a pageblock that another CPU had changed last, at
    any earlier time."""
    contended_lines: int
    """The number of such changes that came less than 10 us after the other CPU's change."""
    line_passes: dict[str, int]
    """For allocators without locks: the cache lines that CPUs got from other CPUs, by the kind of their
    data."""
    line_waits: int
    line_percent: float
    fallbacks: int
    held_mean: float
    used_peak: int
    """The most pages that were in use or kept by a CPU at one time. A system reports this as used memory."""
    held_after_two_ticks: int
    at_hand_mean: float
    whole_at_end: int
    apart_at_end: int
    whole_when_gone: int


@dataclass(frozen=True, repr=False)
class RunResult:
    """The figures of a simulation. Times are virtual. Counts cover only the measured time."""

    score_per_s: float
    unit: str
    zone_lock_percent: float
    zone_wait_percent: float
    lru_lock_percent: float
    lru_wait_percent: float
    mmap_wait_percent: float
    busy_ms: float
    user_ms: float
    drain_waits: int
    drain_wait_ns: int
    drain_wait_max_ns: int
    free_high: int
    alloc_zone: int
    allocated_pages: int
    failures: int
    zone_lock_acquisitions: int
    pcp_pages_peak: int
    pcp_pages_idle: int
    shared: SharedUse
    cache_miss_percent: float
    alloc_p50_ns: float
    alloc_p99_ns: float
    alloc_p999_ns: float
    alloc_max_ns: float
    alloc_mean_ns: float
    alloc_behind_drains_ns: float
    workers: int
    digest: str
    played: dict[str, int] | None = None

    def _rows(self) -> list[tuple[str, object]]:
        return [(key, value) for key, value in dataclasses.asdict(self).items() if key not in ("played", "shared")]

    def __repr__(self) -> str:
        return text_table(["", ""], self._rows()).lstrip()

    def _repr_html_(self) -> str:
        return html_table(["", ""], self._rows(), f"{self.score_per_s:.0f} {self.unit} a second")


@dataclass(frozen=True, repr=False)
class Runs(Tabular):
    """Simulations and their results, in the requested order."""

    specs: tuple[RunSpec, ...]
    results: tuple[RunResult, ...]
    table: _native.Table = field(compare=False)
    """A table with each specification and its result."""

    def _rows(self) -> list[list[object]]:
        return [
            [spec.machine, spec.workload, spec.policy, *(getattr(result, key) for key in _COLUMNS)]
            for spec, result in zip(self.specs, self.results, strict=True)
        ]

    def __repr__(self) -> str:
        return text_table(["machine", "workload", "policy", *_COLUMNS.values()], self._rows())

    def _repr_html_(self) -> str:
        return html_table(["machine", "workload", "policy", *_COLUMNS.values()], self._rows())


_COLUMNS = {
    "score_per_s": "score/s",
    "zone_lock_percent": "zone lock %",
    "pcp_pages_peak": "PCP pages, peak",
    "alloc_p50_ns": "alloc p50 ns",
    "alloc_p99_ns": "alloc p99 ns",
}


def simulate(spec: RunSpec, *, progress: Progress | None = None) -> RunResult:
    """Runs one simulation. Equal specifications give equal results."""
    return simulate_all([spec], jobs=1, progress=progress).results[0]


def simulate_all(
    specs: Sequence[RunSpec], *, jobs: int | None = None, progress: Progress | None = None
) -> Runs:
    """Runs all simulations, up to ``jobs`` at once, by default one for each CPU. The results have the order
    of the specifications."""
    specs = listed("specs", specs)
    asked = json.dumps([dataclasses.asdict(spec) for spec in specs])
    text, table = _native.simulate(asked, jobs=jobs, progress=progress)
    return Runs(tuple(specs), parse(tuple[RunResult, ...], text), table)
