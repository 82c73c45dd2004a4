"""The part in Rust. Results are JSON; the modules beside make values of them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import final

__all__ = [
    "Dataset",
    "Recording",
    "advise",
    "replay",
    "replay_task",
    "replay_tasks",
    "simulate",
    "sweep_task",
    "sweep_tasks",
    "verify",
]

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
def sweep_tasks(plan: _Path) -> list[tuple[str, str]]: ...
def sweep_task(key: str, spec: str) -> bytes: ...
def replay_tasks(recordings: list[str], policies: list[str], settings: list[str]) -> list[str]: ...
def replay_task(key: str, recording: _Path, policies: list[str], settings: list[str]) -> bytes: ...
@final
class Dataset:
    def __new__(cls, directory: _Path) -> Dataset: ...
    def keys(self) -> set[str]: ...
    def path(self, key: str) -> Path: ...
    def store(self, key: str, parquet: bytes) -> bool: ...
