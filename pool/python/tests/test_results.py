"""Tests that results equal the results of the command."""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import pageset


def test_a_replay_has_a_row_for_each_policy(recording: pageset.Recording) -> None:
    replay = pageset.replay(recording, ["linux-6.1", "linux-6.12"])
    assert [outcome.policy for outcome in replay.outcomes] == ["linux-6.1", "linux-6.12"]
    assert replay.events == recording.event_count
    interval = replay.outcomes[0].interval
    assert interval is not None
    low, high = interval.visits
    assert low <= replay.outcomes[0].visits <= high
    assert replay.own is not None and replay.own.is_recorded_kernel
    assert "linux-6.12" in repr(replay) and "<td>linux-6.12</td>" in replay._repr_html_()


def test_settings_make_a_row_for_each_combination(traces: Path) -> None:
    recording = pageset.open(traces / "k612_2c_tcp.pgtrace")
    settings: dict[str, int | Sequence[int]] = {"batch": [31, 63], "vm.percpu_pagelist_high_fraction": 8}
    replay = pageset.replay(recording, "linux-6.12", settings)
    names = [outcome.policy for outcome in replay.outcomes]
    assert names == [
        "linux-6.12 batch=31 vm.percpu_pagelist_high_fraction=8",
        "linux-6.12 batch=63 vm.percpu_pagelist_high_fraction=8",
    ]


def test_a_verification_counts_what_is_the_same(traces: Path) -> None:
    verification = pageset.verify(pageset.open(traces / "k612_2c_tcp.pgtrace"))
    assert verification.policy == "linux-6.12"
    assert 0 < verification.refills.exact <= verification.refills.observed
    assert "refills" in repr(verification) and "<table>" in verification._repr_html_()


def test_advice_is_said_in_sentences(traces: Path) -> None:
    advice = pageset.advise(pageset.open(traces / "k612_2c_tcp.pgtrace"))
    assert advice.sentences and advice.forecasts
    assert advice.sentences[0] in repr(advice)
    assert advice.verdict["verdict"] in {"leave_alone", "set", "change_kernel", "nothing_helps", "unknown"}


def test_what_was_not_recorded_is_none_and_is_named(traces: Path) -> None:
    recording = pageset.open(traces.parent / "formats" / "allocs-only.txt")
    advice = pageset.advise(recording)
    assert advice.verdict == {"verdict": "unknown", "why": "not_recorded"}
    assert advice.findings["visits"] is None and advice.findings["waiting"] is None
    assert "mm_page_pcpu_drain" in advice.findings["not_recorded"]
    assert advice.sentences[0].startswith("This recording does not say. It has no mm_page_free")
    assert advice.forecasts == () and len(advice.table) == 0
    with pytest.raises(pageset.Error, match="This recording does not say. It has no mm_page_free events"):
        pageset.replay(recording, "linux-6.12")


def test_equal_simulations_give_equal_results() -> None:
    spec = pageset.RunSpec("epyc-2", "page_fault1", "linux-6.6", duration_ms=5)
    alone = pageset.simulate(spec)
    assert alone.score_per_s > 0 and alone.shared.visits > 0
    assert pageset.simulate_all([spec, spec]).results == (alone, alone)


def test_a_simulated_recording_says_what_was_played(traces: Path) -> None:
    workload = f"trace:{traces / 'k612_2c_tcp.pgtrace'}"
    result = pageset.simulate(pageset.RunSpec("epyc-2", workload, "linux-6.12", warmup_ms=1, duration_ms=5))
    assert result.played is not None


def test_unknown_names_are_errors_that_say_what_there_is(recording: pageset.Recording) -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: pageset.replay(recording, ["pdp-11"]), "unknown policy `pdp-11`; `pageset policies` names all"),
        (lambda: pageset.replay(recording, settings={"speed": 1}), "unknown setting `speed`; choose from: batch"),
        (lambda: pageset.replay(recording, settings={"vm.stat_interval": 0}), "is not a number from 1 to"),
        (lambda: pageset.replay(recording, "linux-6.12", cpus=1), "the machine has 2 CPUs"),
        (lambda: pageset.verify(recording, mode="auto"), "unknown mode `auto`; choose one of: step, blind, free"),
        (lambda: pageset.simulate(pageset.RunSpec("pdp-11", "a", "b")), "`pdp-11` is not a file"),
        (lambda: pageset.simulate(pageset.RunSpec("epyc-2", "doom", "linux-6.12")), "unknown workload `doom`"),
    ]
    for call, words in calls:
        with pytest.raises(pageset.Error) as raised:
            call()
        assert words in str(raised.value)


def test_results_travel_between_processes(recording: pageset.Recording) -> None:
    replay = pageset.replay(recording, ["linux-6.1", "linux-6.12"])
    copy = pickle.loads(pickle.dumps(replay))
    assert copy == replay and repr(copy) == repr(replay)
    assert (len(copy.table), copy.table.column_names) == (2, replay.table.column_names)
    again = pickle.loads(pickle.dumps(recording))
    assert again.info == recording.info


def test_the_names_that_functions_take_are_listed_with_a_line_each() -> None:
    lists = (pageset.policies(), pageset.machines(), pageset.workloads())
    for names in lists:
        assert len(names) > 15
        assert all(line and "\n" not in line for line in names.values())
    policies, machines, workloads = map(list, lists)
    assert "linux-6.18" in policies and "epyc-2" in machines
    spec = pageset.RunSpec(machines[0], workloads[0], "linux-6.12", duration_ms=1)
    assert pageset.simulate(spec).score_per_s > 0
