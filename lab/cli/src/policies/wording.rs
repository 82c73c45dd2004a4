//! Describes the rules of a policy in words. If a new rule of the crate `pageset-core` has no words yet, a
//! test in this file fails.

use pageset_core::policy::{
    BatchRule, BelowHigh, BoostConsumer, BusyOwner, ClaimLimit, Counting, Decay, DecayDrain, DemandDrain,
    DivertedFrees, DrainOrder, DrainPicks, DrainType, FactorCap, FactorGrows, Fallback, FirstList, FreeDrain,
    FreeHighDrains, FreeHighRule, FreeHistory, HighAtomicRule, HighRule, NextSlice, Part, PressureStep,
    PreviousFree, RaiseHigh, ReclaimLimit, RefillRule, RemoteFrees, SliceCaches, SplitFrees, UnitSteering,
};
use pageset_core::{ListScheme, Policy};
use serde::Serialize;

/// A rule of a policy in words.
#[derive(Debug, Serialize)]
pub(super) struct Rule {
    /// The decision that the rule makes.
    pub(super) name: &'static str,
    /// The rule, with its constants.
    pub(super) value: String,
}

/// Every field of a policy, in words. A test has the list of the fields' names.
pub(super) fn rules(policy: &Policy) -> Vec<Rule> {
    let Policy {
        name: _,
        kernel: _,
        summary: _,
        source: _,
        lists,
        batch,
        high,
        refill,
        tuning,
        free_history,
        free_high,
        reclaim,
        counting,
        drain_order,
        drain_picks,
        free_drain,
        split_frees,
        scale_max,
        decay_drain,
        demand_drain,
        buddy,
        ownership,
        ..
    } = policy;
    let mut rules = Vec::new();
    let mut rule = |name, value: String| rules.push(Rule { name, value });
    rule("lists of a page set", list_scheme(*lists));
    rule("batch", batch_rule(*batch));
    rule("high", high_rule(*high));
    rule("refill", refill_rule(*refill, *scale_max));
    match tuning {
        None => rule("tuning of high", "none".to_owned()),
        Some(tuning) => {
            rule("high is raised", raise_rule(tuning.raise).to_owned());
            rule("high decays, each tick", decay_rule(tuning.decay));
            rule("zone below its high watermark", below_high_rule(tuning.below_high).to_owned());
        }
    }
    rule("history of frees", free_history_rule(*free_history, *scale_max));
    match free_high {
        None => rule("free_high", "never".to_owned()),
        Some(free_high) => {
            rule("free_high", free_high_rule(free_high));
            rule("free_high drains", free_high_drains(free_high.drains, *scale_max));
        }
    }
    rule("limit while the zone is reclaimed", reclaim_rule(*reclaim).to_owned());
    rule("compared with high", counting_rule(*counting).to_owned());
    rule("order of a drain", drain_order_rule(*drain_order).to_owned());
    rule("a drain takes its blocks", drain_picks_rule(*drain_picks).to_owned());
    rule("a free's drain", free_drain_rule(*free_drain).to_owned());
    rule("pages of a split block, freed at once", split_frees_rule(*split_frees).to_owned());
    rule(
        "scale_max",
        format!("{scale_max} (batch is scaled by at most 2^{scale_max} = {})", 1_u64 << scale_max),
    );
    rule("a tick's drain", decay_drain_rule(*decay_drain).to_owned());
    rule("a drain on demand", demand_drain_rule(*demand_drain, *scale_max));
    rule("memory of another type", fallback_rule(buddy.fallback).to_owned());
    rule("type of a drained block", drain_type_rule(buddy.drain_type).to_owned());
    rule("reclaimer woken after a boost by", boost_rule(buddy.boost_consumer).to_owned());
    rule("pgfree counts frees that bypass a set", diverted_rule(buddy.diverted_frees).to_owned());
    rule("reserve for atomic requests", highatomic_rule(buddy.highatomic).to_owned());
    rule("requests by units of 1 GiB", buddy.steering.map_or("not steered".to_owned(), steering_rule));
    match ownership {
        None => rule("owners of pageblocks", "none: they are the zone's".to_owned()),
        Some(ownership) => {
            rule("owners of pageblocks", claim_rule(ownership.claims).to_owned());
            rule("pages that other CPUs free go to", remote_rule(ownership.remote).to_owned());
            rule("owner's page set is busy", busy_owner_rule(ownership.busy_owner).to_owned());
            let looks = ownership.recovery_looks_max;
            rule("fragments are taken back", format!("of the first {looks} pageblocks on the CPU's list"));
        }
    }
    rules
}

fn list_scheme(lists: ListScheme) -> String {
    let what = match lists {
        ListScheme::OrderZero => "order 0, by type",
        ListScheme::HighOrderV5 => "order 0 by type, orders 1 to 3 one each",
        ListScheme::HighOrderToFive => "order 0 by type, orders 1 to 5 one each",
        ListScheme::LowOrders => "orders 0 to 3, by type",
        ListScheme::OneHugeList => "orders 0 to 3, by type; one for huge pages",
        ListScheme::TwoHugeLists => "orders 0 to 3, by type; huge pages, movable and other",
        ListScheme::EveryOrder => "orders 0 to 9, by type",
    };
    format!("{}: {what}", lists.lists())
}

fn batch_rule(batch: BatchRule) -> String {
    match batch {
        BatchRule::ZoneShare { cap_bytes } => {
            format!("a 4096th of the zone, at most {} KiB, as 2^n - 1", cap_bytes / 4 / 1024)
        }
        BatchRule::Fixed(pages) => format!("{pages} pages"),
    }
}

fn high_rule(high: HighRule) -> String {
    match high {
        HighRule::Share => {
            "the CPU's share of the low watermark, or of managed / percpu_pagelist_high_fraction".to_owned()
        }
        HighRule::ShareToEighth => "from the CPU's share of the low watermark to its share of an eighth of the zone; \
                                    fixed at its share of managed / percpu_pagelist_high_fraction if that is set"
            .to_owned(),
        HighRule::Batches(batches) => format!("{batches} batches; 0 in zones too small for a batch"),
        HighRule::Fixed(pages) => format!("{pages} pages, at least a batch"),
    }
}

fn refill_rule(refill: RefillRule, scale_max: u8) -> String {
    match refill {
        RefillRule::BatchOfBlocks => "batch blocks, whatever the order".to_owned(),
        RefillRule::Batch => "max(batch >> order, 2) blocks".to_owned(),
        RefillRule::Doubling => format!(
            "max(batch >> order, 2) blocks; order 0 doubles with each refill without a free between, up to batch << \
             {scale_max} and the room below high"
        ),
    }
}

fn raise_rule(raise: RaiseHigh) -> &'static str {
    match raise {
        RaiseHigh::UnlessReclaimActive => "by the pages of a refill, unless the zone is being reclaimed",
        RaiseHigh::UnlessBelowHigh => "by the pages of a refill, unless the zone is below its high watermark",
    }
}

fn decay_rule(decay: Decay) -> String {
    let unused = if decay.unused_only { ", at most the pages unused since the last tick" } else { "" };
    format!("by {}{unused}", part_words(decay.part))
}

/// A fraction: in words if there is a short expression, otherwise in digits.
fn part_words(part: Part) -> String {
    match part.parts() {
        (1, 2) => "a half".to_owned(),
        (1, 4) => "a quarter".to_owned(),
        (1, 5) => "a fifth".to_owned(),
        (1, 8) => "an eighth".to_owned(),
        (numerator, denominator) if numerator == denominator => "all of it".to_owned(),
        (numerator, denominator) => format!("{numerator}/{denominator}"),
    }
}

fn below_high_rule(below_high: BelowHigh) -> &'static str {
    match below_high {
        BelowHigh::Ignored => "ignored",
        BelowHigh::CheckAlways => "marked; the watermark is checked at each allocation",
        BelowHigh::CheckOnce => "marked; the watermark is checked only without the mark",
    }
}

fn free_history_rule(history: FreeHistory, scale_max: u8) -> String {
    match history {
        FreeHistory::None => "none: a drain is always batch pages".to_owned(),
        FreeHistory::Factor { cap, grows } => {
            let cap = match cap {
                FactorCap::Room => "the room left".to_owned(),
                FactorCap::ScaleMax => format!("the room left and {scale_max}"),
            };
            let grows = match grows {
                FactorGrows::Below => "fits with room to spare",
                FactorGrows::UpTo => "fits",
            };
            format!("a power of two, raised by each drain that {grows}, up to {cap}; halved by an allocation")
        }
        FreeHistory::Count { step } => {
            let step = match step {
                PressureStep::Count => "by the count",
                PressureStep::CountOrBatch => "by the count, at least batch",
            };
            format!(
                "pages freed, up to about batch << {scale_max}; halved by an allocation; under pressure high falls {step}"
            )
        }
    }
}

fn free_high_rule(rule: &FreeHighRule) -> String {
    let previous = match rule.previous {
        PreviousFree::Any => "a free of order 1 to 3 after a drain",
        PreviousFree::HighOrder => "two frees of order 1 to 3 in a row",
    };
    let threshold = match (rule.threshold.batches, rule.threshold.high_min_part.parts()) {
        (1, (0, _)) => String::new(),
        (1, (1, 2)) => "; from batch + high_min / 2 freed pages on".to_owned(),
        (batches, (numerator, denominator)) => {
            format!("; from {batches} batches + {numerator}/{denominator} of high_min freed pages on")
        }
    };
    let keep = match rule.keep_batch {
        None => String::new(),
        Some(slice) => {
            let caches = match slice.caches {
                SliceCaches::All => "of all data caches",
                SliceCaches::LastLevel => "of the last-level cache",
            };
            format!(
                "; keeps up to batch pages where a CPU's slice {caches} is above {} batches",
                slice.batches
            )
        }
    };
    format!("{previous}{threshold}{keep}")
}

fn free_high_drains(drains: FreeHighDrains, scale_max: u8) -> String {
    match (drains.part == Part::ALL, drains.capped) {
        (true, false) => "the whole page set".to_owned(),
        (true, true) => format!("at most batch << {scale_max} pages"),
        (false, false) => format!("{} of the page set", part_words(drains.part)),
        (false, true) => {
            format!("{} of the page set, at most batch << {scale_max} pages", part_words(drains.part))
        }
    }
}

fn reclaim_rule(rule: ReclaimLimit) -> &'static str {
    match rule {
        ReclaimLimit::Ignored => "as ever",
        ReclaimLimit::FourBatches => "at most four batches",
    }
}

fn counting_rule(counting: Counting) -> &'static str {
    match counting {
        Counting::Pages => "the page set's pages",
        Counting::Blocks => "the page set's blocks, whatever their order",
        Counting::PagesOfClass => "the pages of the freed block's class: order 0, or all higher orders",
    }
}

fn drain_order_rule(order: DrainOrder) -> &'static str {
    match order {
        DrainOrder::ListByList => "from the list freed to, each list until it is empty",
        DrainOrder::RoundRobin(FirstList::Zero) => "in turn from list 0, one block more at each list",
        DrainOrder::RoundRobin(FirstList::One) => "in turn from list 1, one block more at each list",
        DrainOrder::RoundRobin(FirstList::AfterLast) => {
            "in turn from behind the list where the last drain stopped, one block more at each list"
        }
        DrainOrder::ClassFirst => {
            "list by list in the class of the freed block, order 0 or all higher orders; then the other class"
        }
        DrainOrder::ExcessFirst => "lists with more than an equal share of high first, then list by list",
    }
}

fn drain_picks_rule(picks: DrainPicks) -> &'static str {
    match picks {
        DrainPicks::UnderLock => "one by one, under the zone's lock",
        DrainPicks::BeforeLock { prefetches_buddies: false } => "before it takes the zone's lock",
        DrainPicks::BeforeLock { prefetches_buddies: true } => {
            "before it takes the zone's lock, and fetches their buddies' metadata ahead"
        }
    }
}

fn split_frees_rule(frees: SplitFrees) -> &'static str {
    match frees {
        SplitFrees::Singly => "go one by one",
        SplitFrees::Joined => "go as the block that they were",
    }
}

fn free_drain_rule(drain: FreeDrain) -> &'static str {
    match drain {
        FreeDrain::Whole => "in one hold of the lock",
        FreeDrain::Slices(NextSlice::WhileDue) => {
            "a batch for each hold of the lock; the rest stays if another CPU has it"
        }
        FreeDrain::Slices(NextSlice::WhileAtLimit) => {
            "a batch for each hold of the lock, while the page set is at its limit"
        }
    }
}

fn decay_drain_rule(drain: DecayDrain) -> &'static str {
    match drain {
        DecayDrain::Whole => "in one hold of the lock",
        DecayDrain::Slices => "a batch for each hold of the lock",
    }
}

fn demand_drain_rule(drain: DemandDrain, scale_max: u8) -> String {
    match drain {
        DemandDrain::Whole => "in one hold of the lock".to_owned(),
        DemandDrain::Chunks => format!("batch << {scale_max} pages for each hold of the lock"),
    }
}

fn fallback_rule(fallback: Fallback) -> &'static str {
    match fallback {
        Fallback::StealAndRetry => {
            "free blocks move to the wanted type's lists, then those are searched again"
        }
        Fallback::ClaimOrTakeOne => "a pageblock is claimed whole, or one block is taken and the rest stays",
    }
}

fn drain_type_rule(drain_type: DrainType) -> &'static str {
    match drain_type {
        DrainType::Remembered => "as remembered when it was freed or fetched",
        DrainType::Reread => "its pageblock's, read at the drain",
    }
}

fn boost_rule(consumer: BoostConsumer) -> &'static str {
    match consumer {
        BoostConsumer::AnyRequest => "the next request in the zone",
        BoostConsumer::KswapdRequest => "the next request in the zone that may wake it",
    }
}

fn diverted_rule(diverted: DivertedFrees) -> &'static str {
    match diverted {
        DivertedFrees::Uncounted => "no",
        DivertedFrees::Counted => "yes",
    }
}

fn claim_rule(limit: ClaimLimit) -> &'static str {
    match limit {
        ClaimLimit::HighMax => {
            "CPUs, which claim them whole, up to the upper limit of high; a page goes back to the owner's set"
        }
        ClaimLimit::High => "CPUs, which claim them whole, up to high; a page goes back to the owner's set",
    }
}

fn remote_rule(rule: RemoteFrees) -> &'static str {
    match rule {
        RemoteFrees::PageSet => "the owner's page set",
        RemoteFrees::OwnersList => "the owner's list",
    }
}

fn busy_owner_rule(rule: BusyOwner) -> &'static str {
    match rule {
        BusyOwner::Zone => "the page goes to the zone",
        BusyOwner::FreeingCpu => "the page goes to the set of the CPU that frees it",
    }
}

fn highatomic_rule(rule: HighAtomicRule) -> &'static str {
    match rule {
        HighAtomicRule::WholeBlocks => "up to 1 % and a block; watermark checks subtract whole pageblocks",
        HighAtomicRule::FreeFrames => {
            "up to 1 %, none in small zones; watermark checks subtract its free frames"
        }
    }
}

fn steering_rule(rule: UnitSteering) -> String {
    let UnitSteering { looks_max, fragments_above_units, .. } = rule;
    format!(
        "what cannot be moved goes to tainted units, of the first {looks_max} blocks of a list; fragments there, where more than \
         {fragments_above_units} units are"
    )
}

#[cfg(test)]
mod tests {
    use pageset_core::POLICIES;

    use super::*;

    /// Tests that no field of `Policy` is forgotten. The compiler cannot find this: `Policy` belongs to
    /// another crate, so the pattern in `rules` must end in `..`.
    #[test]
    fn no_field_of_a_policy_is_forgotten() {
        let text = format!("{:#?}", POLICIES[0]);
        let own = text.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": "));
        let fields: Vec<_> = own.map(|(name, _)| name).filter(|name| !name.starts_with(' ')).collect();
        assert_eq!(
            fields.join(" "),
            "name kernel summary source lists batch high refill tuning free_history free_high reclaim drain_order \
             drain_picks free_drain split_frees scale_max decay_drain counting demand_drain buddy ownership"
        );
    }

    #[test]
    fn rules_of_every_policy_are_told_once() {
        for policy in POLICIES {
            let rules = rules(policy);
            for (index, rule) in rules.iter().enumerate() {
                assert!(!rule.value.is_empty());
                assert!(rules[..index].iter().all(|earlier| earlier.name != rule.name), "{}", rule.name);
            }
        }
    }

    #[test]
    fn rules_name_their_constants() {
        let policy = Policy::named("linux-6.12").unwrap();
        let rules = rules(policy);
        let value = |name: &str| rules.iter().find(|rule| rule.name == name).map(|rule| rule.value.as_str());
        assert_eq!(value("batch"), Some("a 4096th of the zone, at most 256 KiB, as 2^n - 1"));
        assert_eq!(value("scale_max"), Some("5 (batch is scaled by at most 2^5 = 32)"));
    }
}
