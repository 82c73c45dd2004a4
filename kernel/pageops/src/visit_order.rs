//! The orders of visits to the base pages of a larger page. Each visit order is a pure iterator over steps. A
//! step has base pages and the kind of stores.
//!
//! A visit order does not touch memory. The inputs of a visit order are the number of base pages, the base
//! page that the program will touch, and the size of the neighbourhood around that base page. The output of a
//! visit order is its steps in sequence. Each order visits every base page exactly once.

use core::iter::FusedIterator;
use core::ops::Range;

/// For a page with more base pages than `GIGANTIC_PAGES`, the order [`VisitOrder::Converge2018`] is
/// ascending. `GIGANTIC_PAGES` is the number of base pages in the buddy allocator's largest block on x86-64
/// (4 MiB). Source: docs/spec/pcp.md, appendix A, which excludes "gigantic" pages.
pub const GIGANTIC_PAGES: usize = 1024;

/// The number of base pages on each side of the target in [`VisitOrder::RangesTargetLast`]. Source: the
/// series that was merged in 2026 (commit 93552c9a3350, as posted).
pub const RANGES_RADIUS_PAGES: usize = 2;

/// The kind of stores of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    /// Stores through the cache. After such a store, the cache contains the bytes.
    Cached,
    /// Stores past the cache, if the kernel (set of loops) has stores past the cache. Stores past the cache
    /// evict no other data, and do not read memory first.
    Stream,
}

/// One step of a visit order. A step stores its base pages in ascending order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The indices of base pages.
    pub pages: Range<usize>,
    /// The kind of stores.
    pub store: Store,
}

/// The order of an operation's visits to the base pages of a larger page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VisitOrder {
    /// Visits base pages in ascending order, one base page at a time. Linux used this order before 2017, and
    /// still uses this order for gigantic pages. The order ignores the hint. The figures of the 2018 series
    /// compare with this order.
    PageByPage,
    /// The order of the 2018 series (docs/spec/pcp.md, appendix A). This order visits base pages one by one.
    /// The visits begin at the page's end that is farther from the target, then alternate between both sides
    /// of the target, and end with the target. Without a hint, the target is the first base page, so the
    /// order is descending. If there are more base pages than [`GIGANTIC_PAGES`], the visits ascend from the
    /// first base page.
    Converge2018,
    /// Stores the page as one ascending range, through the cache. The first commit of the series merged in
    /// 2026 uses this order. The order ignores the hint.
    Sequential,
    /// The order of the series merged in 2026: three ranges, all stored through the cache. The first range is
    /// right of the target's neighbourhood, the second range is left of the neighbourhood, and the third
    /// range is the neighbourhood. Without a hint, the target is the first base page.
    RangesTargetLast,
    /// This project's order. One ascending pass stores all base pages outside the target's neighbourhood with
    /// streamed stores, which go past the cache. After this pass, the order stores the neighbourhood through
    /// the cache, and the target comes last. Without a hint, the order streams the whole page. A page that is
    /// no larger than a neighbourhood is stored through the cache.
    StreamTargetLast,
}

impl VisitOrder {
    /// All orders, from the oldest Linux version to the newest. This project's own order comes last.
    pub const ALL: [Self; 5] = [
        Self::PageByPage,
        Self::Converge2018,
        Self::Sequential,
        Self::RangesTargetLast,
        Self::StreamTargetLast,
    ];

    /// The name in results and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::PageByPage => "page-by-page",
            Self::Converge2018 => "converge-2018",
            Self::RangesTargetLast => "ranges-target-last",
            Self::StreamTargetLast => "stream-target-last",
        }
    }

    /// The order with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    /// The steps for a page of `pages` base pages. `target` is the base page that the program will touch
    /// next.
    ///
    /// `radius` is half the neighbourhood that [`VisitOrder::StreamTargetLast`] keeps in the cache: the
    /// number of base pages on each side of the target. Near an end of the page, the neighbourhood has more
    /// base pages on the target's side that is farther from this end. All other visit orders ignore `radius`.
    /// A target outside the page counts as no target. The returned iterator takes constant memory, and
    /// constant time per step.
    #[must_use]
    pub fn steps(self, pages: usize, target: Option<usize>, radius: usize) -> Steps {
        let target = target.filter(|target| *target < pages);
        let plan = match self {
            Self::Sequential => Plan::Few(Few::new([cached(0..pages)])),
            Self::PageByPage => Plan::Ascend(0..pages),
            Self::Converge2018 if pages > GIGANTIC_PAGES => Plan::Ascend(0..pages),
            Self::Converge2018 => Plan::Converge(Converge { pages, target: target.unwrap_or(0), visited: 0 }),
            Self::RangesTargetLast => {
                let near = neighbourhood(pages, target.unwrap_or(0), RANGES_RADIUS_PAGES);
                Plan::Few(Few::new([cached(near.end..pages), cached(0..near.start), cached(near)]))
            }
            Self::StreamTargetLast => Plan::Few(stream_target_last(pages, target, radius)),
        };
        Steps { plan }
    }
}

fn stream_target_last(pages: usize, target: Option<usize>, radius: usize) -> Few {
    let kept = radius.saturating_mul(2).saturating_add(1);
    let Some(target) = target else {
        return Few::new([if pages <= kept { cached(0..pages) } else { stream(0..pages) }]);
    };
    // Near an end of the page, the neighbourhood is as large as in the middle of the page.
    let start = target.saturating_sub(radius).min(pages.saturating_sub(kept));
    let end = start.saturating_add(kept).min(pages);
    Few::new([
        stream(0..start),
        stream(end..pages),
        cached(target + 1..end),
        cached(start..target),
        cached(target..target + 1),
    ])
}

/// The target and up to `radius` base pages on each side of the target.
fn neighbourhood(pages: usize, target: usize, radius: usize) -> Range<usize> {
    target.saturating_sub(radius)..target.saturating_add(radius).saturating_add(1).min(pages)
}

fn cached(pages: Range<usize>) -> Step {
    Step { pages, store: Store::Cached }
}

fn stream(pages: Range<usize>) -> Step {
    Step { pages, store: Store::Stream }
}

/// The steps of a visit order. See [`VisitOrder::steps`].
#[derive(Clone, Debug)]
pub struct Steps {
    plan: Plan,
}

#[derive(Clone, Debug)]
enum Plan {
    Few(Few),
    Ascend(Range<usize>),
    Converge(Converge),
}

impl Iterator for Steps {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        match &mut self.plan {
            Plan::Few(few) => few.next(),
            Plan::Ascend(pages) => pages.next().map(|page| cached(page..page + 1)),
            Plan::Converge(converge) => converge.next(),
        }
    }
}

impl FusedIterator for Steps {}

/// Steps of at most five ranges. Empty ranges are skipped.
#[derive(Clone, Debug)]
struct Few {
    steps: [Step; 5],
    at: usize,
}

impl Few {
    fn new<const N: usize>(steps: [Step; N]) -> Self {
        let mut all = [const { Step { pages: 0..0, store: Store::Cached } }; 5];
        for (place, step) in all.iter_mut().zip(steps) {
            *place = step;
        }
        Self { steps: all, at: 0 }
    }

    fn next(&mut self) -> Option<Step> {
        loop {
            let step = self.steps.get(self.at)?;
            self.at += 1;
            if !step.pages.is_empty() {
                return Some(step.clone());
            }
        }
    }
}

/// Steps of single base pages that converge on the target.
#[derive(Clone, Debug)]
struct Converge {
    pages: usize,
    target: usize,
    visited: usize,
}

impl Converge {
    fn next(&mut self) -> Option<Step> {
        if self.visited == self.pages {
            return None;
        }
        let page = converge_2018(self.pages, self.target, self.visited);
        self.visited += 1;
        Some(cached(page..page + 1))
    }
}

/// The base page of the `nth` visit: a closed form of the rule in docs/spec/pcp.md, appendix A.
fn converge_2018(pages: usize, target: usize, nth: usize) -> usize {
    let (far, near_start, pairs) = if 2 * target <= pages {
        (pages - 2 * target, 0, target)
    } else {
        let pairs = pages - target;
        (pages - 2 * pairs, pages - 2 * pairs, pairs)
    };
    if nth < far {
        return if near_start == 0 { pages - 1 - nth } else { nth };
    }
    let (pair, is_right) = ((nth - far) / 2, (nth - far) % 2 == 1);
    if is_right { near_start + 2 * pairs - 1 - pair } else { near_start + pair }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn visits(order: VisitOrder, pages: usize, target: Option<usize>, radius: usize) -> Vec<usize> {
        order.steps(pages, target, radius).flat_map(|step| step.pages).collect()
    }

    #[test]
    fn eight_base_pages_are_visited_as_the_series_says() {
        let expected =
            ["76543210", "76543201", "76540312", "76051423", "07162534", "01273645", "01234756", "01234567"];
        for (target, expected) in expected.into_iter().enumerate() {
            let digits = visits(VisitOrder::Converge2018, 8, Some(target), 0);
            let digits: Vec<_> = digits.into_iter().map(|page| b'0' + u8::try_from(page).unwrap()).collect();
            assert_eq!(digits, expected.as_bytes(), "target {target}");
        }
    }

    #[test]
    fn without_a_hint_2018_descends() {
        let mut visited = visits(VisitOrder::Converge2018, 512, None, 0);
        visited.reverse();
        assert!(visited.into_iter().eq(0..512));
    }

    #[test]
    fn gigantic_pages_are_visited_in_ascending_order_by_2018() {
        let steps = |order: VisitOrder, pages| order.steps(pages, Some(7), 0);
        let gigantic = GIGANTIC_PAGES + 1;
        assert!(steps(VisitOrder::Converge2018, gigantic).eq(steps(VisitOrder::PageByPage, gigantic)));
        assert!(
            !steps(VisitOrder::Converge2018, GIGANTIC_PAGES)
                .eq(steps(VisitOrder::PageByPage, GIGANTIC_PAGES))
        );
        assert!(visits(VisitOrder::PageByPage, gigantic, None, 0).into_iter().eq(0..gigantic));
    }

    #[test]
    fn the_ranges_of_2026_end_with_five_base_pages() {
        let steps: Vec<_> = VisitOrder::RangesTargetLast.steps(512, Some(100), 40).collect();
        assert_eq!(steps, [cached(103..512), cached(0..98), cached(98..103)]);
        let steps: Vec<_> = VisitOrder::RangesTargetLast.steps(512, Some(511), 40).collect();
        assert_eq!(steps, [cached(0..509), cached(509..512)]);
    }

    #[test]
    fn ours_streams_what_is_far_and_ends_with_the_target() {
        let steps: Vec<_> = VisitOrder::StreamTargetLast.steps(512, Some(100), 8).collect();
        assert_eq!(
            steps,
            [stream(0..92), stream(109..512), cached(101..109), cached(92..100), cached(100..101)]
        );
        let steps: Vec<_> = VisitOrder::StreamTargetLast.steps(512, None, 8).collect();
        assert_eq!(steps, [stream(0..512)]);
    }

    #[test]
    fn our_neighbourhood_has_its_size_at_the_edges_too() {
        let steps: Vec<_> = VisitOrder::StreamTargetLast.steps(512, Some(0), 8).collect();
        assert_eq!(steps, [stream(17..512), cached(1..17), cached(0..1)]);
        let steps: Vec<_> = VisitOrder::StreamTargetLast.steps(512, Some(510), 8).collect();
        assert_eq!(steps, [stream(0..495), cached(511..512), cached(495..510), cached(510..511)]);
    }

    #[test]
    fn what_is_no_larger_than_the_neighbourhood_is_not_streamed() {
        let steps: Vec<_> = VisitOrder::StreamTargetLast.steps(17, None, 8).collect();
        assert_eq!(steps, [cached(0..17)]);
        let steps: Vec<_> = VisitOrder::StreamTargetLast.steps(17, Some(0), 8).collect();
        assert_eq!(steps, [cached(1..17), cached(0..1)]);
        let steps: Vec<_> = VisitOrder::StreamTargetLast.steps(18, None, 8).collect();
        assert_eq!(steps, [stream(0..18)]);
    }

    #[test]
    fn a_radius_without_bound_is_the_whole_page() {
        let steps: Vec<_> = VisitOrder::StreamTargetLast.steps(4, Some(2), usize::MAX).collect();
        assert_eq!(steps, [cached(3..4), cached(0..2), cached(2..3)]);
    }

    #[test]
    fn a_target_outside_counts_as_none() {
        assert_eq!(
            visits(VisitOrder::Converge2018, 8, Some(8), 0),
            visits(VisitOrder::Converge2018, 8, None, 0)
        );
    }

    #[test]
    fn names_are_found_again() {
        for order in VisitOrder::ALL {
            assert_eq!(VisitOrder::named(order.name()), Some(order));
        }
        assert_eq!(VisitOrder::named("random"), None);
    }
}
