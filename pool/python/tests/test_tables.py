"""Tests that table engines read this package's tables without a copy. The package itself needs none of these
engines."""

import subprocess
import sys
from pathlib import Path

import pytest

import pageset


@pytest.fixture(scope="module")
def events(traces: Path) -> pageset.Events:
    return pageset.open(traces / "k612_2c_tcp.pgtrace").events()


def test_polars_takes_events(events: pageset.Events) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(events)
    assert frame.columns == events.column_names
    allocs = frame.filter(polars.col("kind") == "mm_page_alloc")
    assert 0 < allocs.height < frame.height
    # Each use of a table reads the events again.
    assert polars.DataFrame(events).equals(frame)


def test_pyarrow_takes_events_batch_by_batch(recording: pageset.Recording) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    reader = pyarrow.RecordBatchReader.from_stream(recording.events())
    assert reader.schema == pyarrow.schema(recording.events())
    assert sum(batch.num_rows for batch in reader) == recording.event_count


def test_duckdb_takes_events(events: pageset.Events) -> None:
    duckdb = pytest.importorskip("duckdb")
    counts = duckdb.sql("select kind, count(*) from events group by kind order by 2 desc").fetchall()
    assert len(counts) > 2


def test_pandas_takes_events(events: pageset.Events) -> None:
    pandas = pytest.importorskip("pandas")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("this pandas does not know Arrow's interface")
    frame = pandas.DataFrame.from_arrow(events)
    assert list(frame.columns) == events.column_names


def test_what_nobody_takes_is_freed(events: pageset.Events) -> None:
    for _ in range(100):
        events.__arrow_c_stream__()
        events.__arrow_c_schema__()


def test_damage_is_an_error_of_whoever_reads(traces: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    damaged = tmp_path / "damaged.pgtrace"
    whole = bytearray((traces / "k618_2c_hackbench_sock.pgtrace").read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    damaged.write_bytes(whole)
    with pytest.raises(Exception, match="damaged.pgtrace: byte"):
        pyarrow.table(pageset.open(damaged).events())


def test_the_package_needs_no_other() -> None:
    program = "import sys, pageset; pageset.open().events(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "polars", "pandas", "pyarrow", "duckdb"} & set(loaded.split())


def test_results_are_tables_too(traces: Path) -> None:
    polars = pytest.importorskip("polars")
    recording = pageset.open(traces / "k612_2c_tcp.pgtrace")
    replay = pageset.replay(recording, ["linux-6.1", "linux-6.12"])
    rows = polars.DataFrame(replay)
    assert rows["policy"].to_list() == ["linux-6.1", "linux-6.12"]
    assert rows["refills"].to_list() == [outcome.refills for outcome in replay.outcomes]
    advice = pageset.advise(recording)
    assert polars.DataFrame(advice)["visits"].to_list() == [forecast.visits for forecast in advice.forecasts]
    specs = [pageset.RunSpec("epyc-2", "page_fault1", "linux-6.12", seed=seed, duration_ms=2) for seed in (1, 2)]
    runs = pageset.simulate_all(specs)
    table = polars.DataFrame(runs)
    assert table["seed"].to_list() == [1, 2] and len(runs.table) == 2
    assert table["score_per_s"].to_list() == [run.score_per_s for run in runs.results]
    assert "score/s" in repr(runs) and "page_fault1" in runs._repr_html_()
