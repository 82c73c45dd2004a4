//! Balances a load that allocates more pages than it frees, or frees more pages than it allocates.
//!
//! In a recording, the numbers of freed and allocated pages may differ: some pages were allocated before the
//! recording, and some pages are freed after the recording. Between two repetitions of the load, the replay
//! allocates or frees the difference of freed and allocated pages. Without these acts, page sets would fill
//! or empty from one repetition to the next.

use std::collections::BTreeMap;
use std::io;

use crate::replay::act::{Act, ActKind, BlockKind};
use crate::replay::machine::Machine;
use crate::replay::portions::Acts;

/// Returns acts that allocate as many blocks as the load frees too much, or free as many blocks as the load
/// allocates too much. The surplus is counted for each zone and kind of block. The surplus is divided among
/// the CPUs that have a surplus of the same sign, in proportion to the CPUs' surpluses.
pub(super) fn remainder(machine: &Machine, acts: &Acts) -> io::Result<Vec<Act>> {
    let mut nets: BTreeMap<(usize, BlockKind), Vec<i64>> = BTreeMap::new();
    acts.each_one(|act| {
        let change = match act.kind {
            ActKind::Alloc | ActKind::BulkAlloc => -i64::from(act.count),
            // Under every policy, a block whose pages are freed one by one counts as one block, with its last
            // page.
            ActKind::Free | ActKind::FreeLastPart => i64::from(act.count),
            _ => return,
        };
        let (zone, cpu) = (act.at as usize / machine.cpus(), act.at as usize % machine.cpus());
        let kind = act.block.without_zone();
        nets.entry((zone, kind)).or_insert_with(|| vec![0; machine.cpus()])[cpu] += change;
    })?;
    let mut remainder = Vec::new();
    for ((zone, block), nets) in nets {
        let all: i64 = nets.iter().sum();
        let same_sign = |net: i64| if net.signum() == all.signum() { net.abs() } else { 0 };
        let sum: i64 = nets.iter().copied().map(same_sign).sum();
        for (net, cpu) in nets.into_iter().zip(0..) {
            let share = i128::from(all.abs()) * i128::from(same_sign(net)) / i128::from(sum.max(1));
            let at = machine.set(zone, cpu);
            let kind = if all > 0 { ActKind::BulkAlloc } else { ActKind::Free };
            let mut left = share;
            while left > 0 {
                let count = left.min(i128::from(u16::MAX)) as u16;
                remainder.push(Act { kind, block, count, at });
                left -= i128::from(count);
            }
        }
    }
    Ok(remainder)
}

#[cfg(test)]
mod tests {
    use pageset_core::{MigrateType, Order};

    use super::*;
    use crate::replay::tests::small_layout;

    fn acts(kind: ActKind, at: u32, count: usize) -> Vec<Act> {
        let block = BlockKind::new(Order::ZERO, MigrateType::Movable, 1);
        vec![Act { kind, block, count: 1, at }; count]
    }

    #[test]
    fn what_is_freed_too_much_is_allocated_again_where_it_was_freed() {
        let machine = Machine::new(small_layout()).unwrap();
        // CPU 0 allocates ten pages, and CPU 1 frees fourteen pages. The surplus is four pages, because CPU 1
        // may free the ten pages that CPU 0 allocates.
        let load = [acts(ActKind::Alloc, 2, 10), acts(ActKind::Free, 3, 14)].concat();
        let remainder = remainder(&machine, &load.into_iter().collect()).unwrap();
        let [act] = remainder[..] else { panic!("{remainder:?}") };
        assert_eq!((act.kind, act.at, act.count), (ActKind::BulkAlloc, 3, 4));
    }

    #[test]
    fn a_load_that_gives_all_back_leaves_nothing() {
        let machine = Machine::new(small_layout()).unwrap();
        let load = [acts(ActKind::Alloc, 2, 10), acts(ActKind::Free, 3, 10)].concat();
        assert_eq!(remainder(&machine, &load.into_iter().collect()).unwrap(), []);
        let block = BlockKind::new(Order::ZERO, MigrateType::Movable, 0);
        let frees = Act { kind: ActKind::Free, block, count: 3, at: 2 };
        let load = acts(ActKind::Alloc, 2, 3);
        assert_eq!(remainder(&machine, &load.into_iter().collect()).unwrap(), [frees]);
    }
}
