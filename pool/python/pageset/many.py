"""Many simulations and many recordings, on this computer or on an executor's."""

import hashlib
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from . import _native, tasks
from .document import Progress, html_table, listed, settings_list, text_table

Path = str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class Results:
    """Finished work: a directory of Parquet files, one for each task. Any table engine can read them."""

    directory: pathlib.Path
    """The directory. ``f"{directory}/*/*.parquet"`` are all files that were ever stored there."""
    keys: tuple[str, ...]
    """Keys of this work's tasks, in order."""

    def paths(self) -> Iterator[pathlib.Path]:
        """This work's files, in order."""
        dataset = _native.Dataset(self.directory)
        return map(dataset.path, self.keys)

    def digest(self) -> str:
        """A hash of all results in order. Two computers with the same results have the same hash."""
        digest = hashlib.sha256()
        for path in self.paths():
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.keys)

    def _rows(self) -> list[tuple[str, object]]:
        return [("results", len(self)), ("directory", self.directory)]

    def __repr__(self) -> str:
        return text_table(["", ""], self._rows()).lstrip()

    def _repr_html_(self) -> str:
        return html_table(["", ""], self._rows())


def sweep(
    plan: Path,
    executor: Executor | None = None,
    *,
    into: Path | None = None,
    progress: Progress | None = None,
) -> Results:
    """Simulates all runs of a plan that are not finished yet, each a task.

    ``executor`` is any of ``concurrent.futures``: processes of this computer, Dask's ``Client.get_executor()``, those of
    ``mpi4py.futures``, Parsl, executorlib. Without one, this process works. Each result is a Parquet file in ``into``, the plan's
    name with ``.results`` if nothing is said, under a key of everything that decides it: whatever was ended goes on where
    it was, and several sweeps may share a directory, at once too.
    """
    plan = pathlib.Path(plan)
    return _finish(tasks.of_plan(plan), into or plan.with_suffix(".results"), executor, progress)


def replay_many(
    recordings: Sequence[Path],
    policies: Sequence[str] = (),
    executor: Executor | None = None,
    *,
    settings: Mapping[str, int | Sequence[int]] | None = None,
    into: Path,
    progress: Progress | None = None,
) -> Results:
    """Replays each recording under all policies, each recording a task; otherwise as :func:`sweep`.

    Each worker must find the recordings under the same names.
    """
    names = [os.fspath(path) for path in listed("recordings", recordings)]
    chosen, given = listed("policies", policies), settings_list(settings)
    keys = _native.replay_tasks(names, chosen, given)
    todo = {
        key: tasks.Task(key, _native.replay_task, (key, name, chosen, given))
        for key, name in zip(keys, names, strict=True)
    }
    return _finish(list(todo.values()), into, executor, progress)


def recordings(*paths: Path) -> list[pathlib.Path]:
    """The recordings that are named: files as they are, and of each folder the files that end in ``.pgtrace``, by name."""
    return [pathlib.Path(path) for path in _native.recordings([os.fspath(path) for path in paths])]


def advise_many(
    recordings: Sequence[Path],
    executor: Executor | None = None,
    *,
    into: Path,
    progress: Progress | None = None,
) -> Results:
    """Says what to do about each recording, each a task; otherwise as :func:`sweep`.

    A recording has one row: ``answer`` (Yes, No or unknown), what is ``advised`` and the CPU time that it saves, or the
    ``error`` of a recording that cannot be read. Each worker must find the recordings under the same names.
    """
    names = [os.fspath(path) for path in listed("recordings", recordings)]
    keys = _native.advise_tasks(names)
    todo = {key: tasks.Task(key, _native.advise_task, (key, name)) for key, name in zip(keys, names, strict=True)}
    return _finish(list(todo.values()), into, executor, progress)


def _finish(
    todo: Sequence[tasks.Task], into: Path, executor: Executor | None, progress: Progress | None
) -> Results:
    directory = pathlib.Path(into)
    tasks.finish(todo, _native.Dataset(directory), executor, progress)
    return Results(directory, tuple(task.key for task in todo))
