"""Linux's page allocation path: recordings, forecasts, simulations, and a pool of pages.

An example, with the built-in recording::

    import pageset

    recording = pageset.open()
    pageset.replay(recording, ["linux-6.1", "linux-6.12"])
    pageset.advise(recording)

During long work, other Python threads can run. Long work reports to ``progress``, and an interrupt ends the
work.
"""

from ._native import Events, Pages, Pool, PoolStats, ReturnPolicy, Table, machines, policies, workloads
from .advice import Advice, Forecast, Range, advise
from .errors import Error, FileError, OutOfMemoryError
from .fleets import Fleet, FleetLine, fleet
from .forecast import Intervals, Outcome, Replay, replay
from .many import Results, advise_many, recordings, replay_many, sweep
from .progress import Bar
from .recording import Recording, Task, open, record
from .simulation import RunResult, Runs, RunSpec, SharedUse, simulate, simulate_all
from .verification import Verification, verify

__all__ = [
    "Advice",
    "Bar",
    "Error",
    "Events",
    "FileError",
    "Fleet",
    "FleetLine",
    "Forecast",
    "Intervals",
    "OutOfMemoryError",
    "Outcome",
    "Pages",
    "Pool",
    "PoolStats",
    "Range",
    "Recording",
    "Replay",
    "Results",
    "ReturnPolicy",
    "RunResult",
    "RunSpec",
    "Runs",
    "SharedUse",
    "Table",
    "Task",
    "Verification",
    "advise",
    "advise_many",
    "fleet",
    "machines",
    "open",
    "policies",
    "record",
    "recordings",
    "replay",
    "replay_many",
    "simulate",
    "simulate_all",
    "sweep",
    "verify",
    "workloads",
]
