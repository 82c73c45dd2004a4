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
    /// The name of the decision that the rule makes.
    pub(super) name: &'static str,
    /// The rule in words, with its constants.
    pub(super) value: String,
}

/// Describes each rule of a policy in words, but not the policy's name, kernel, summary and source. A test
/// checks that no field is forgotten.
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
        None => rule("owners of pageblocks", "none: pageblocks belong to the zone".to_owned()),
        Some(ownership) => {
            rule("owners of pageblocks", claim_rule(ownership.claims).to_owned());
            rule("pages that other CPUs free go to", remote_rule(ownership.remote).to_owned());
            rule("owner's page set is busy", busy_owner_rule(ownership.busy_owner).to_owned());
            let looks = ownership.recovery_looks_max;
            rule("fragments are taken back", format!("from the first {looks} pageblocks of the CPU's list"));
        }
    }
    rules
}

fn list_scheme(lists: ListScheme) -> String {
    let what = match lists {
        ListScheme::OrderZero => "one list of order 0 for each type",
        ListScheme::HighOrderV5 => "one list of order 0 for each type; one list for each order from 1 to 3",
        ListScheme::HighOrderToFive => {
            "one list of order 0 for each type; one list for each order from 1 to 5"
        }
        ListScheme::LowOrders => "one list for each type and each order from 0 to 3",
        ListScheme::OneHugeList => {
            "one list for each type and each order from 0 to 3; one list for huge pages"
        }
        ListScheme::TwoHugeLists => {
            "one list for each type and each order from 0 to 3; one list for movable huge pages, one list for other huge pages"
        }
        ListScheme::EveryOrder => "one list for each type and each order from 0 to 9",
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
        HighRule::ShareToEighth => "from the CPU's share of the low watermark to its share of an eighth of the zone; if \
                                    percpu_pagelist_high_fraction is set, the CPU's share of managed / percpu_pagelist_high_fraction"
            .to_owned(),
        HighRule::Batches(batches) => format!("{batches} batches; 0 in a zone that is too small for a batch"),
        HighRule::Fixed(pages) => format!("{pages} pages, or batch if this is more"),
    }
}

fn refill_rule(refill: RefillRule, scale_max: u8) -> String {
    match refill {
        RefillRule::BatchOfBlocks => "a number of blocks that equals batch, for every order".to_owned(),
        RefillRule::Batch => "max(batch >> order, 2) blocks".to_owned(),
        RefillRule::Doubling => format!(
            "max(batch >> order, 2) blocks; for order 0, each refill doubles this number until a page is freed; the number is at \
             most batch << {scale_max}, and at most the room below high"
        ),
    }
}

fn raise_rule(raise: RaiseHigh) -> &'static str {
    match raise {
        RaiseHigh::UnlessReclaimActive => {
            "by the number of pages of each refill, unless the zone is being reclaimed"
        }
        RaiseHigh::UnlessBelowHigh => {
            "by the number of pages of each refill, unless the zone is below its high watermark"
        }
    }
}

fn decay_rule(decay: Decay) -> String {
    let unused = if decay.unused_only {
        ", at most by the number of pages that stayed unused since the last tick"
    } else {
        ""
    };
    format!("by {}{unused}", part_words(decay.part))
}

/// Returns a fraction in words if there is a short expression, and otherwise in digits.
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
        BelowHigh::CheckAlways => "the zone gets a mark; each allocation checks the watermark",
        BelowHigh::CheckOnce => {
            "the zone gets a mark; an allocation checks the watermark only if the zone has no mark"
        }
    }
}

fn free_history_rule(history: FreeHistory, scale_max: u8) -> String {
    match history {
        FreeHistory::None => "none: each drain takes batch pages".to_owned(),
        FreeHistory::Factor { cap, grows } => {
            let cap = match cap {
                FactorCap::Room => String::new(),
                FactorCap::ScaleMax => format!(", up to {scale_max}"),
            };
            let grows = match grows {
                FactorGrows::Below => "smaller than the room",
                FactorGrows::UpTo => "no larger than the room",
            };
            format!(
                "a drain takes batch << factor pages, at most the room (the limit minus batch); a drain that is \
                 {grows} raises the factor by 1{cap}; an allocation halves the factor"
            )
        }
        FreeHistory::Count { step } => {
            let step = match step {
                PressureStep::Count => "by the number of pages freed",
                PressureStep::CountOrBatch => "by the number of pages freed, or by batch if batch is more",
            };
            format!(
                "the number of pages freed, at most about batch << {scale_max}; an allocation halves this number; if memory is short, a free lowers high {step}"
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
        (1, (1, 2)) => ", if at least batch + high_min / 2 pages were freed".to_owned(),
        (batches, (numerator, denominator)) => {
            format!(
                ", if at least {batches} batches + {numerator}/{denominator} of high_min pages were freed"
            )
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
                "; up to batch pages stay if a CPU's share {caches} holds more than {} batches",
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
        Counting::Pages => "the number of pages in the page set",
        Counting::Blocks => "the number of blocks of any order in the page set",
        Counting::PagesOfClass => {
            "the number of pages in the freed block's class: order 0, or all higher orders"
        }
    }
}

fn drain_order_rule(order: DrainOrder) -> &'static str {
    match order {
        DrainOrder::ListByList => "begins with the freed block's list, and empties each list before the next",
        DrainOrder::RoundRobin(FirstList::Zero) => {
            "takes from each list in turn, from list 0 on, each time one block more"
        }
        DrainOrder::RoundRobin(FirstList::One) => {
            "takes from each list in turn, from list 1 on, each time one block more"
        }
        DrainOrder::RoundRobin(FirstList::AfterLast) => {
            "takes from each list in turn, from behind the list where the last drain stopped, each time one block more"
        }
        DrainOrder::ClassFirst => {
            "empties the lists of the freed block's class (order 0, or all higher orders), then the other lists"
        }
        DrainOrder::ExcessFirst => {
            "begins with lists that hold more than an equal share of high, then empties list by list"
        }
    }
}

fn drain_picks_rule(picks: DrainPicks) -> &'static str {
    match picks {
        DrainPicks::UnderLock => "one by one, while it holds the zone's lock",
        DrainPicks::BeforeLock { prefetches_buddies: false } => "before it takes the zone's lock",
        DrainPicks::BeforeLock { prefetches_buddies: true } => {
            "before it takes the zone's lock, and prefetches the metadata of the blocks' buddies"
        }
    }
}

fn split_frees_rule(frees: SplitFrees) -> &'static str {
    match frees {
        SplitFrees::Singly => "enter the page set one by one",
        SplitFrees::Joined => "enter the page set as the block that was split",
    }
}

fn free_drain_rule(drain: FreeDrain) -> &'static str {
    match drain {
        FreeDrain::Whole => "drains all under one hold of the page set's lock",
        FreeDrain::Slices(NextSlice::WhileDue) => {
            "drains a batch under each hold of the page set's lock; the rest stays if another CPU has the lock"
        }
        FreeDrain::Slices(NextSlice::WhileAtLimit) => {
            "drains a batch under each hold of the page set's lock, while the page set is at its limit"
        }
    }
}

fn decay_drain_rule(drain: DecayDrain) -> &'static str {
    match drain {
        DecayDrain::Whole => "drains all under one hold of the page set's lock",
        DecayDrain::Slices => "drains a batch under each hold of the page set's lock",
    }
}

fn demand_drain_rule(drain: DemandDrain, scale_max: u8) -> String {
    match drain {
        DemandDrain::Whole => "drains all under one hold of the page set's lock".to_owned(),
        DemandDrain::Chunks => {
            format!("drains batch << {scale_max} pages under each hold of the page set's lock")
        }
    }
}

fn fallback_rule(fallback: Fallback) -> &'static str {
    match fallback {
        Fallback::StealAndRetry => {
            "a request moves free blocks to the wanted type's lists, then searches these lists again"
        }
        Fallback::ClaimOrTakeOne => {
            "a request claims a whole pageblock, or takes one block and leaves the rest"
        }
    }
}

fn drain_type_rule(drain_type: DrainType) -> &'static str {
    match drain_type {
        DrainType::Remembered => "the type that was stored when the block was freed or fetched",
        DrainType::Reread => "the type that its pageblock has at the time of the drain",
    }
}

fn boost_rule(consumer: BoostConsumer) -> &'static str {
    match consumer {
        BoostConsumer::AnyRequest => "the next request in the zone",
        BoostConsumer::KswapdRequest => "the next request in the zone that may wake the reclaimer",
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
            "CPUs, which claim whole pageblocks, up to the upper limit of high; a freed page returns to the owner's page set"
        }
        ClaimLimit::High => {
            "CPUs, which claim whole pageblocks, up to high; a freed page returns to the owner's page set"
        }
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
        BusyOwner::FreeingCpu => "the page goes to the page set of the freeing CPU",
    }
}

fn highatomic_rule(rule: HighAtomicRule) -> &'static str {
    match rule {
        HighAtomicRule::WholeBlocks => {
            "up to 1 % of the zone and a pageblock; watermark checks subtract whole pageblocks"
        }
        HighAtomicRule::FreeFrames => {
            "up to 1 % of the zone, none in small zones; watermark checks subtract the reserve's free frames"
        }
    }
}

fn steering_rule(rule: UnitSteering) -> String {
    let UnitSteering { looks_max, fragments_above_units, .. } = rule;
    format!(
        "memory that cannot be moved goes to a tainted unit if one of the first {looks_max} blocks of a list lies there; in a zone of \
         more than {fragments_above_units} units, parts of pageblocks in tainted units are used before a clean unit"
    )
}

#[cfg(test)]
mod tests {
    use pageset_core::POLICIES;

    use super::*;

    /// Tests that `rules` forgets no field of `Policy`. The compiler cannot check that `rules` has all
    /// fields, because `Policy` belongs to another crate, so the pattern in `rules` must end in `..`.
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
