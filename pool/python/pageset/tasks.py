"""Gives the unfinished tasks of a dataset to an executor in parcels, and stores their results."""

import pathlib
import queue
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from itertools import islice
from typing import Any, NamedTuple

from . import _native
from .document import Progress
from .errors import Error

PARCEL_S = 0.25
"""The intended time to work on a parcel, in seconds. The time is long compared with the time to send a
parcel, and so short that a lost worker loses little work."""
PARCEL_TASKS = 100
"""The most tasks in a parcel."""
PARCELS_FIRST, PARCELS_MAX = 64, 4096
"""The number of parcels that an executor has at once: at the start, and at most. Each finished parcel raises
the number by one."""
ATTEMPTS = 3
"""The most attempts to do a parcel."""
LOOK_S = 1.0
"""The seconds between two checks of the executor while no result arrives."""


class Task(NamedTuple):
    """A piece of work, which any process with this package can do."""

    key: str
    """A hash of all inputs that decide the result."""
    function: Callable[..., bytes]
    """A function that computes the bytes of the result's file."""
    arguments: tuple[Any, ...]

    def run(self) -> bytes:
        return self.function(*self.arguments)


def of_plan(plan: pathlib.Path) -> list[Task]:
    """Returns the runs of a plan, in the plan's order."""
    return [Task(key, _native.sweep_task, (key, spec)) for key, spec in _native.sweep_tasks(plan)]


Parcel = Sequence[Task]
"""Tasks that an executor gets together."""


def finish(
    tasks: Sequence[Task], dataset: _native.Dataset, executor: Executor | None, progress: Progress | None
) -> None:
    """Does the tasks without a result in the dataset."""
    present = dataset.keys()
    todo = [task for task in tasks if task.key not in present]
    tell = progress or (lambda *_: None)
    tell("working", 0, len(todo))
    results = ((task, task.run()) for task in todo) if executor is None else _given_out(todo, executor)
    for done, (task, result) in enumerate(results, start=1):
        dataset.store(task.key, result)
        tell("working", done, len(todo))


def _given_out(todo: Sequence[Task], executor: Executor) -> Iterator[tuple[Task, bytes]]:
    """Yields results as they arrive. If the caller ends this generator early, the generator cancels the
    remaining parcels."""
    back: queue.SimpleQueue[Future[Done]] = queue.SimpleQueue()
    out: dict[Future[Done], tuple[Parcel, int]] = {}
    size, limit, done, work_s = 1, PARCELS_FIRST, 0, 0.0
    waiting = iter(todo)

    def give(parcel: Parcel, attempt: int) -> None:
        future = executor.submit(_run, parcel)
        out[future] = (parcel, attempt)
        future.add_done_callback(back.put)

    def keep_busy() -> None:
        while len(out) < limit and (parcel := tuple(islice(waiting, size))):
            give(parcel, 1)

    try:
        keep_busy()
        while out:
            future = _next(back, executor)
            parcel, attempt = out.pop(future)
            try:
                results, took_s = future.result()
            except Error:
                # No worker can do this task: another worker would raise the same exception.
                raise
            except (Exception, CancelledError):
                if attempt == ATTEMPTS:
                    raise
                give(parcel, attempt + 1)
                continue
            done, work_s = done + len(parcel), work_s + took_s
            size = max(1, min(PARCEL_TASKS, int(PARCEL_S * done / max(work_s, 1e-6))))
            limit = min(limit + 1, PARCELS_MAX)
            keep_busy()
            yield from zip(parcel, results, strict=True)
    except Error:
        raise
    except (Exception, CancelledError) as lost:
        raise Error(
            f"the executor has failed ({type(lost).__name__}: {lost}); what is finished is stored, and the same call goes on"
        ) from lost
    finally:
        for future in out:
            future.cancel()


Done = tuple[list[bytes], float]
"""The results of a parcel, and the seconds that the work took."""


def _run(parcel: Parcel) -> Done:
    begun = time.perf_counter()
    results = [task.run() for task in parcel]
    return results, time.perf_counter() - begun


def _next(back: "queue.SimpleQueue[Future[Done]]", executor: Executor) -> "Future[Done]":
    while True:
        try:
            return back.get(timeout=LOOK_S)
        except queue.Empty:
            # Dask's futures wait for ever for a scheduler that is gone.
            client = getattr(executor, "_client", None)
            if getattr(client, "status", "running") not in ("running", "connecting"):
                raise Error("the cluster is gone; what is finished is stored, and the same call goes on") from None
