"""The part in Rust. Results are JSON; the modules beside make values of them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import final

__all__ = ["Recording", "advise", "replay", "simulate", "verify"]

_Path = str | os.PathLike[str]
_Progress = Callable[[str, int, int | None], object]

@final
class Recording:
    def __new__(
        cls,
        path: _Path | None,
        *,
        sidecar: _Path | None,
        layout: _Path | None,
        lenient: bool,
        recover: bool,
    ) -> Recording: ...
    @property
    def path(self) -> Path: ...
    def info(self) -> str: ...

def replay(
    recording: Recording,
    policies: list[str],
    settings: list[str],
    *,
    layout: _Path | None,
    cpus: int | None,
    progress: _Progress | None,
) -> str: ...
def verify(
    recording: Recording,
    policy: str | None,
    *,
    mode: str,
    settings: list[str],
    layout: _Path | None,
    progress: _Progress | None,
) -> str: ...
def advise(recording: Recording, *, progress: _Progress | None) -> str: ...
def simulate(specs: str, *, jobs: int | None, progress: _Progress | None) -> str: ...
