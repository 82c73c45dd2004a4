//! Compares visit orders with the golden vectors, and checks the invariants of visit orders.

use pageset_pageops::{GIGANTIC_PAGES, RANGES_RADIUS_PAGES, Step, Store, VisitOrder};
use proptest::prelude::*;

fn visits(steps: impl Iterator<Item = Step>) -> Vec<usize> {
    steps.flat_map(|step| step.pages).collect()
}

/// Formats visits like a column of the golden vectors: all base pages, or the first eight and the last eight
/// with dots between them.
fn as_written(visits: &[usize]) -> String {
    let words: Vec<_> = visits.iter().map(ToString::to_string).collect();
    if words.len() <= 16 {
        return words.join(" ");
    }
    format!("{} ... {}", words[..8].join(" "), words[words.len() - 8..].join(" "))
}

#[test]
fn the_order_of_2018_equals_the_vectors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/vectors/huge_page_subpage_order.csv");
    let mut vectors = csv::Reader::from_path(path).unwrap();
    let mut rows = 0;
    for row in vectors.deserialize() {
        let (pages, target, expected): (usize, usize, String) = row.unwrap();
        let visited = visits(VisitOrder::Converge2018.steps(pages, Some(target), 0));
        assert_eq!(as_written(&visited), expected, "{pages} base pages, target {target}");
        rows += 1;
    }
    assert_eq!(rows, 28);
}

#[test]
fn the_order_of_2018_equals_its_rule_for_all_targets_and_sizes() {
    for pages in [1, 2, 4, 8, 16, 31, 512, GIGANTIC_PAGES] {
        for target in 0..pages {
            let visited = visits(VisitOrder::Converge2018.steps(pages, Some(target), 0));
            assert_eq!(visited, rule_2018(pages, target), "{pages} base pages, target {target}");
        }
    }
}

/// Follows the rule in docs/spec/pcp.md, appendix A, step by step.
fn rule_2018(pages: usize, target: usize) -> Vec<usize> {
    let mut visited = Vec::new();
    if 2 * target <= pages {
        visited.extend((2 * target..pages).rev());
        for index in 0..target {
            visited.extend([index, 2 * target - 1 - index]);
        }
    } else {
        let pairs = pages - target;
        let base = pages - 2 * pairs;
        visited.extend(0..base);
        for index in 0..pairs {
            visited.extend([base + index, base + 2 * pairs - 1 - index]);
        }
    }
    visited
}

#[test]
fn the_order_of_2018_comes_ever_nearer() {
    for target in 0..512 {
        let visited = visits(VisitOrder::Converge2018.steps(512, Some(target), 0));
        // Visits alternate between left and right, so a visit may be farther from the target than the visit
        // before by one base page.
        assert!(
            visited.is_sorted_by(|one, next| one.abs_diff(target) + 1 >= next.abs_diff(target)),
            "{target}"
        );
    }
}

proptest! {
    #[test]
    fn every_order_visits_every_base_page_once(
        pages in 1..3000_usize,
        target in prop::option::of(0..3000_usize),
        radius in 0..600_usize,
    ) {
        for order in VisitOrder::ALL {
            let mut visited = visits(order.steps(pages, target, radius));
            visited.sort_unstable();
            prop_assert!(visited.into_iter().eq(0..pages), "{}", order.name());
        }
    }

    #[test]
    fn the_target_is_last(pages in 1..=GIGANTIC_PAGES, target in any::<prop::sample::Index>(), radius in 0..600_usize) {
        let target = target.index(pages);
        for order in [VisitOrder::Converge2018, VisitOrder::StreamTargetLast] {
            let last = visits(order.steps(pages, Some(target), radius)).last().copied();
            prop_assert_eq!(last, Some(target), "{}", order.name());
        }
        let last = VisitOrder::RangesTargetLast.steps(pages, Some(target), radius).last().unwrap();
        prop_assert!(last.pages.contains(&target));
        prop_assert!(last.pages.len() <= 2 * RANGES_RADIUS_PAGES + 1);
    }

    #[test]
    fn what_is_streamed_is_outside_the_radius_and_comes_first(
        pages in 1..3000_usize,
        target in any::<prop::sample::Index>(),
        radius in 0..600_usize,
    ) {
        let target = target.index(pages);
        let steps: Vec<_> = VisitOrder::StreamTargetLast.steps(pages, Some(target), radius).collect();
        prop_assert!(steps.is_sorted_by_key(|step| step.store == Store::Cached));
        let near = || steps.iter().filter(|step| step.store == Store::Cached).flat_map(|step| step.pages.clone());
        prop_assert_eq!(near().count(), pages.min(2 * radius + 1));
        let reach = near().max().unwrap_or(0) - near().min().unwrap_or(0);
        prop_assert_eq!(reach + 1, near().count(), "the neighbourhood is in one piece");
        for page in 0..pages {
            prop_assert!(page.abs_diff(target) > radius || near().any(|near| near == page), "{} is near", page);
        }
    }

    #[test]
    fn only_ours_streams(pages in 1..3000_usize, target in prop::option::of(0..3000_usize)) {
        for order in VisitOrder::ALL.into_iter().filter(|order| *order != VisitOrder::StreamTargetLast) {
            prop_assert!(order.steps(pages, target, 8).all(|step| step.store == Store::Cached));
        }
    }
}
