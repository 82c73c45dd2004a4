//! Tests verifications of bundled recordings. Most of these tests require exact counts. Each mode has its own
//! list of recordings.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pageset_core::Policy;
use pageset_core::policy::{HighRule, LINUX_6_1, LINUX_6_12, LINUX_6_18, LINUX_6_19, LINUX_7_2};
use pageset_replay::{Class, ExplainRequest, Mode, Undetermined, Verification, VerifyOptions, verify};
use pageset_trace::{Event, EventKind, LostEvents, TraceError, TraceInfo, TraceReader};

fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces").join(name).with_extension("pgtrace")
}

fn run(name: &str, options: &VerifyOptions) -> Verification {
    let mut reader = pageset_trace::open(&bundled(name)).expect("a bundled recording");
    verify(reader.as_mut(), options, |_| ()).expect("a verification")
}

fn in_mode(name: &str, mode: Mode) -> Verification {
    run(name, &VerifyOptions { mode, ..VerifyOptions::default() })
}

/// The expected values of 15 counts of a [`Verification`]. Four counts are for refills: observed, predicted,
/// exact, cold. Three counts are for drains: observed, predicted, exact. Two counts are for drained pages:
/// checked, exact. Two counts are for ticks: observed, exact. Three counts are for samples: all, exact
/// `count`, exact `high`. The last count is the number of mismatches.
type Counts = [u64; 15];

fn counts(v: &Verification) -> Counts {
    [
        v.refills.observed,
        v.refills.predicted,
        v.refills.exact,
        v.refills.cold,
        v.drains.observed,
        v.drains.predicted,
        v.drains.exact,
        v.drains.identity_pages,
        v.drains.identity_exact,
        v.decay.observed,
        v.decay.exact,
        v.samples.n,
        v.samples.count_exact,
        v.samples.high_exact,
        v.mismatches.total(),
    ]
}

#[track_caller]
fn expect(name: &str, mode: Mode, expected: Counts) {
    let verification = in_mode(name, mode);
    assert_eq!(counts(&verification), expected, "{name}, {}: {verification:?}", mode.name());
    if !name.starts_with("k618") {
        assert_eq!(verification.mismatches.get(Class::Unexplained), 0);
    }
}

/// Tests at least two recordings of each of three kernels. Nearly every decision is predicted. The other
/// decisions depend on facts that recordings do not show: for example the state before the recording or, on
/// 6.18, bulk allocations.
#[test]
fn step_by_step_the_core_decides_as_the_kernels_did() {
    for (name, expected) in STEP {
        expect(name, Mode::Step, expected);
    }
}

/// Tests recordings in mode `blind`. For recordings of virtual machines (Linux 6.1 and 6.12), the counts are
/// the same as in mode `step`, because events account for every page.
#[test]
fn without_resets_guests_are_predicted_as_well() {
    for (name, expected) in STEP.into_iter().filter(|(name, _)| !name.starts_with("k618")) {
        expect(name, Mode::Blind, expected);
    }
    for (name, expected) in BLIND {
        expect(name, Mode::Blind, expected);
    }
}

#[test]
fn never_corrected_the_core_does_about_as_much_as_the_kernels() {
    for (name, expected) in FREE {
        expect(name, Mode::Free, expected);
    }
}

const STEP: [(&str, Counts); 11] = [
    ("k612_2c_pf1x1", [11, 11, 11, 2, 3, 3, 3, 0, 0, 2, 2, 77, 77, 77, 0]),
    ("k612_2c_sctp", [21, 21, 21, 8, 14, 14, 14, 416, 416, 30, 30, 1412, 1412, 1412, 0]),
    ("k612_2c_tcp", [881, 881, 881, 11, 608, 608, 608, 47_156, 47_156, 6, 6, 299, 299, 299, 0]),
    ("k612_2c_unix_stream", [38, 38, 38, 6, 42, 42, 42, 2720, 2720, 8, 8, 345, 345, 345, 0]),
    ("k612_4c_2node_numa_tcp", [1252, 1252, 1252, 16, 847, 847, 847, 29_544, 29_544, 8, 7, 482, 482, 482, 1]),
    (
        "k612_8c_unix_stream",
        [1946, 1946, 1946, 33, 1616, 1617, 1615, 96_263, 96_263, 30, 30, 1509, 1509, 1509, 2],
    ),
    ("k618_2c_hackbench_sock", [92, 92, 92, 6, 30, 28, 28, 4451, 4451, 10, 10, 1206, 1181, 1202, 27]),
    ("k618_2c_make_lua_j4", [36, 36, 36, 5, 0, 0, 0, 0, 0, 10, 10, 1497, 1474, 1496, 23]),
    ("k618_2c_make_openssl_j4", [145, 145, 145, 6, 0, 0, 0, 0, 0, 8, 8, 486, 470, 485, 16]),
    ("k61_2c_tcp", [18, 18, 18, 6, 0, 1, 0, 0, 0, 6, 6, 620, 620, 620, 1]),
    ("k61_2c_unix_stream", [77, 77, 77, 7, 1, 1, 1, 0, 0, 9, 9, 712, 712, 712, 0]),
];
const BLIND: [(&str, Counts); 2] = [
    ("k618_2c_hackbench_sock", [92, 92, 92, 6, 30, 27, 27, 4451, 4451, 10, 9, 1206, 991, 1031, 33]),
    ("k618_2c_make_lua_j4", [36, 36, 36, 5, 0, 0, 0, 0, 0, 10, 10, 1497, 1028, 1264, 28]),
];
const FREE: [(&str, Counts); 2] = [
    ("k612_2c_tcp", [892, 895, 890, 0, 608, 609, 607, 0, 0, 6, 6, 299, 293, 282, 16]),
    ("k61_2c_unix_stream", [84, 80, 78, 0, 1, 1, 1, 0, 0, 9, 9, 712, 535, 712, 11]),
];

/// Opens a recording of Linux 7.1 or later. On these kernels, a task may be stopped between taking a page and
/// reporting the allocation.
fn open_kernel_7(name: &str) -> Box<dyn TraceReader> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/kernels-7").join(name);
    pageset_trace::open(&path.with_extension("pgtrace")).expect("a bundled recording")
}

fn of_kernel_7(name: &str, policy: Option<Policy>) -> Verification {
    verify(open_kernel_7(name).as_mut(), &VerifyOptions { policy, ..VerifyOptions::default() }, |_| ())
        .expect("a verification")
}

/// Tests a recording with other tasks between two slices of a drain, and with allocations that are reported
/// late.
#[test]
fn a_stopped_task_goes_on_with_its_drain() {
    let found = of_kernel_7("k71_faults_f8", None);
    assert_eq!(found.policy, LINUX_6_19.name);
    assert_eq!((found.refills.observed, found.refills.exact), (68, 68), "{:?}", found.refills);
    assert_eq!((found.drains.observed, found.drains.exact), (9, 9), "{:?}", found.drains);
    let whole = of_kernel_7("k71_faults_f8", Some(LINUX_6_18));
    assert_eq!(
        whole.drains.exact, 1,
        "if a drain kept the lock throughout, no other task could have run in the middle of the drain"
    );
}

/// Tests a recording whose tasks free pages between two slices of a tick's drain. The tick has lowered `high`
/// already, so each of these frees drains a batch.
#[test]
fn other_tasks_free_pages_between_two_slices_of_a_tick() {
    let found = of_kernel_7("k73_guest", None);
    assert_eq!(found.policy, LINUX_7_2.name);
    assert_eq!((found.refills.observed, found.refills.exact), (72, 72), "{:?}", found.refills);
    assert_eq!((found.drains.observed, found.drains.exact), (74, 73), "{:?}", found.drains);
    assert_eq!(
        (found.drains.identity_pages, found.drains.identity_exact),
        (56_689, 56_689),
        "expected each page at its place: other pages would mean that the model drained a slice too early"
    );
    assert_eq!(found.mismatches.total(), 6, "{:?}", found.mismatches);
}

/// Tests that a decision is undetermined if it depends on a count with only known bounds. With a
/// wrong limit, many of the kernel's drains contradict the count.
#[test]
fn a_decision_that_depends_on_an_unknown_count_is_undetermined() {
    let mut policy = LINUX_6_12;
    policy.high = HighRule::Fixed(100);
    let found = run("k612_2c_tcp", &VerifyOptions { policy: Some(policy), ..VerifyOptions::default() });
    let Undetermined { drains, frees, samples } = found.undetermined;
    assert!(drains + frees > 0, "{:?}", found.undetermined);
    assert_eq!(found.undetermined.total(), drains + frees + samples);
    assert!(found.drains.exact + drains <= found.drains.observed, "an undetermined drain is not exact");
    let right = in_mode("k612_2c_tcp", Mode::Step);
    assert_eq!(right.undetermined.total(), 0, "{:?}", right.undetermined);
}

/// A recording with only the first slice of each drain.
struct FirstSlices {
    reader: Box<dyn TraceReader>,
    /// For each CPU and task, the number of blocks that the task's current drain has given back so far.
    given: HashMap<(u16, u32), u32>,
}

impl TraceReader for FirstSlices {
    fn info(&self) -> &TraceInfo {
        self.reader.info()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        // An empty block of events would mean the end of the recording. Read on until a block has events.
        while self.reader.read_block(events)? > 0 {
            events.retain(|event| {
                let given = self.given.entry((event.cpu, event.pid)).or_default();
                *given = if event.kind == EventKind::MmPagePcpuDrain { *given + 1 } else { 0 };
                *given <= 63
            });
            if !events.is_empty() {
                return Ok(events.len());
            }
        }
        Ok(0)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.reader.lost()
    }
}

/// Tests that a drain that ends after one slice is counted separately if another CPU visited the zone. The
/// policy predicts no such drain.
#[test]
fn a_drain_whose_last_slices_are_missing_ended_early() {
    assert_eq!(
        of_kernel_7("k71_faults_f8", None).drains.ended_early,
        0,
        "expected all slices of each drain in the recording"
    );
    let reader = open_kernel_7("k71_faults_f8");
    let mut cut = FirstSlices { reader, given: HashMap::new() };
    let found = verify(&mut cut, &VerifyOptions::default(), |_| ()).expect("a verification");
    assert!(found.drains.ended_early > 0 && found.drains.exact < 9, "{:?}", found.drains);
    assert_eq!(found.mismatches.get(Class::EndedEarly), found.drains.ended_early);
}

/// Tests that a split block is freed as one block: Linux 7.2 reports each page of an ended task's stack
/// separately.
#[test]
fn the_pages_of_a_split_block_are_freed_as_that_block_since_7_2() {
    let joined = of_kernel_7("k72_files_f64", None);
    assert_eq!(joined.policy, LINUX_7_2.name);
    assert_eq!((joined.drains.observed, joined.drains.exact), (11, 11), "{:?}", joined.drains);
    // In two cases, a task had taken a page before a sample, and reports the page only after the sample.
    assert_eq!((joined.samples.n, joined.samples.count_exact), (24, 22), "{:?}", joined.samples);
    assert_eq!(joined.undetermined.samples, 2, "{:?}", joined.undetermined);
    assert_eq!(joined.mismatches.total(), 0, "{:?}", joined.mismatches);
    let singly = of_kernel_7("k72_files_f64", Some(LINUX_6_19));
    assert_eq!((singly.samples.count_exact, singly.mismatches.total()), (15, 12), "{:?}", singly.mismatches);
}

#[test]
fn the_policy_of_another_kernel_does_not_fit() {
    let right = in_mode("k612_2c_tcp", Mode::Step);
    let wrong = run("k612_2c_tcp", &VerifyOptions { policy: Some(LINUX_6_1), ..VerifyOptions::default() });
    assert_eq!((right.policy.as_str(), wrong.policy.as_str()), (LINUX_6_12.name, LINUX_6_1.name));
    assert!(wrong.drains.exact < right.drains.exact / 2, "{:?}", wrong.drains);
    assert!(wrong.mismatches.get(Class::Unexplained) > 0, "{:?}", wrong.mismatches);
}

#[test]
fn limits_of_a_users_policy_are_its_own_and_not_the_kernels() {
    let in_mode = |high, mode| {
        let mut policy = LINUX_6_12;
        policy.high = high;
        run("k612_2c_tcp", &VerifyOptions { policy: Some(policy), mode, ..VerifyOptions::default() }).drains
    };
    let both = |mode| (in_mode(LINUX_6_12.high, mode), in_mode(HighRule::Fixed(100), mode));
    let (kernels, small) = both(Mode::Free);
    assert!(small.predicted > kernels.predicted, "{small:?} for {kernels:?}");
    // In mode `step`, most drains of a wrong limit are undetermined, and not predicted.
    let (kernels, small) = both(Mode::Step);
    assert!(small.exact < kernels.exact, "{small:?} for {kernels:?}");
}

#[test]
fn a_mismatch_is_shown_with_the_events_around_it() {
    let explain = |number, class| {
        let options =
            VerifyOptions { explain: Some(ExplainRequest { number, class }), ..VerifyOptions::default() };
        run("k618_2c_hackbench_sock", &options).explained
    };
    let first = explain(1, None).expect("expected at least one mismatch");
    assert_eq!(first.class, "unseen-traffic");
    assert!(first.what.contains("the model:") || first.what.contains("the policy:"), "{}", first.what);
    assert!(first.events.len() > 12, "{:?}", first.events);
    assert_eq!(first.events.iter().filter(|line| line.starts_with('>')).count(), 1);
    assert_ne!(explain(2, None), Some(first));
    assert_eq!(explain(1, Some(Class::Unexplained)), None);
    assert_eq!(explain(1_000_000, None), None);
}

#[test]
fn results_are_written_as_json() {
    let json = serde_json::to_value(in_mode("k61_2c_unix_stream", Mode::Step)).unwrap();
    assert_eq!(json["kernel"], "6.1.0-56-amd64");
    assert_eq!((&json["policy"], &json["mode"]), (&"linux-6.1".into(), &"step".into()));
    for (section, fields) in [
        ("refills", &["observed", "predicted", "exact", "cold"][..]),
        ("drains", &["observed", "predicted", "exact", "ended_early", "identity_pages", "identity_exact"]),
        ("decay", &["observed", "exact"]),
        ("samples", &["n", "count_exact", "high_exact"]),
    ] {
        for field in fields {
            assert!(json[section][field].is_u64(), "{section}.{field}");
        }
    }
    assert!(json["mismatches"].is_object());
    assert!(json.get("explained").is_none(), "nobody asked");
}

#[test]
fn what_cannot_be_verified_is_named_with_a_remedy() {
    let text = "          <idle>-0       [000] d.... 100.000001: mm_page_free: page=0x1 pfn=0x1 order=0\n";
    let mut reader = pageset_trace::OpenOptions::new()
        .open_bytes("nowhere.txt".as_ref(), format!("# tracer: nop\n#\n{text}").into_bytes())
        .expect("a text trace");
    let error = verify(reader.as_mut(), &VerifyOptions::default(), |_| ()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("nowhere.txt: This recording does not say how memory is laid out"),
        "{message}"
    );
    assert!(
        message.contains("`pageset convert nowhere.txt OUT.pgtrace --layout FILE` adds a layout"),
        "{message}"
    );
}
