//! Tests that the parameters of the simulated day agree with the recordings that they name, and that two
//! simulated days with the same seed are equal.

use std::path::Path;

use pageset_core::MigrateType;
use pageset_replay::{Survey, SurveyOptions, survey};
use pageset_study::ageing::{Compaction, Parameters, play, summary};
use pageset_study::contest::AllocatorKind;
use pageset_trace::open;

fn recorded(name: &str) -> Survey {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces").join(name);
    let mut reader = open(&path.with_extension("pgtrace")).unwrap();
    survey(reader.as_mut(), &SurveyOptions::default(), |_| {}).unwrap()
}

/// Returns the share that `part` is of `all`, in thousandths.
fn permille(part: u64, all: u64) -> u32 {
    (part * 1000 / all) as u32
}

fn blocks(survey: &Survey, order: usize, migratetype: MigrateType) -> u64 {
    let blocks = survey.orders.by_order.iter().find(|blocks| blocks.order == order);
    blocks.map_or(0, |blocks| blocks.allocated.unwrap()[migratetype.index()])
}

#[track_caller]
fn is_about(value: u32, recorded: u32) {
    assert!(value.abs_diff(recorded) <= 1 + recorded / 50, "{value} here, {recorded} in the recording");
}

#[test]
fn values_that_name_a_recording_are_those_of_the_recording() {
    use MigrateType::{Movable, Reclaimable, Unmovable};
    let day = Parameters::default();
    let lua = recorded("k618_2c_make_lua_j4");
    is_about(
        day.builds.unmovable_permille,
        permille(blocks(&lua, 0, Unmovable), lua.orders.allocated_blocks.unwrap()),
    );
    let openssl = recorded("k618_2c_make_openssl_j4");
    is_about(
        day.builds.unmovable_permille,
        permille(blocks(&openssl, 0, Unmovable), openssl.orders.allocated_blocks.unwrap()),
    );
    let stay = openssl.lifetimes.as_ref().unwrap().alive_pages_at_end;
    is_about(day.files.folio_permille, permille(4 * blocks(&openssl, 2, Movable), stay));
    let inodes = blocks(&openssl, 0, Reclaimable) + 4 * blocks(&openssl, 2, Reclaimable);
    let mean_file_pages = f64::from(day.files.pages_max - 1) / f64::from(day.files.pages_max).ln();
    let of_thousand = 1000.0 * 4.0 / (mean_file_pages * f64::from(day.files.inodes_in_slab));
    is_about(of_thousand.round() as u32, permille(inodes, stay));
    let sockets = recorded("k618_2c_hackbench_sock");
    is_about(
        day.slabs.pairs_permille,
        permille(blocks(&sockets, 1, Unmovable), sockets.orders.allocated_blocks.unwrap()),
    );
    let tcp = recorded("k612_2c_tcp");
    let unmovable = (0..11).map(|order| blocks(&tcp, order, Unmovable)).sum();
    assert!(permille(blocks(&tcp, 3, Unmovable), unmovable) > 980);
    assert!(blocks(&sockets, 3, Unmovable) < 100);
}

fn short() -> Parameters {
    let mut short = Parameters::quick();
    (short.memory_gib, short.cpus, short.steps) = (2, 2, 40);
    short
}

#[test]
fn a_day_is_the_same_each_time_and_another_with_another_seed() {
    let first = summary(&short(), 1);
    assert_eq!(first, summary(&short(), 1));
    assert_ne!(first.digest, summary(&short(), 2).digest);
    let frames = short().frames();
    assert!(first.live_peak < frames && first.live_peak > frames / 3, "{first:?}");
}

#[test]
fn every_allocator_is_asked_for_the_same() {
    let day = short();
    let entrants = ["linux-6.18", "pcp-buddy-rfc", "owned-blocks"];
    let mut asked = Vec::new();
    for entrant in entrants.map(|name| AllocatorKind::named(name).unwrap()) {
        for compaction in [Compaction::None, Compaction::Linux, Compaction::Rfc] {
            let course = play(&day, 1, &entrant, compaction, 4, &mut || true).unwrap();
            let end = course.end();
            assert_eq!((course.moments.len(), end.step), (4, day.steps), "{entrant:?}");
            // Some requests may fail, because the small machine of this test does not always have a free
            // block of eight pages.
            assert!(end.work.failures * 100 < end.work.requests, "{entrant:?}: {:?}", end.work);
            asked.push(end.work.requests);
        }
    }
    asked.dedup();
    assert_eq!(asked.len(), 1, "{asked:?}");
}
