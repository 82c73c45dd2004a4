//! Random programs of every operation, against a map of who has what.

mod reference;
mod step;

use pageset_blocks::RemoteFrees;
use proptest::prelude::*;

use step::{CPUS, Step};

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cpu = 0..CPUS;
    let step = prop_oneof![
        8 => (cpu.clone(), 0..=10_u8, 0..3_usize)
            .prop_map(|(cpu, order, migratetype)| Step::Alloc { cpu, order, migratetype }),
        4 => (cpu.clone(), 0..3_u8, 0..3_usize)
            .prop_map(|(cpu, order, migratetype)| Step::Alloc { cpu, order, migratetype }),
        3 => (cpu.clone(), 1..400_usize).prop_map(|(cpu, count)| Step::Bulk { cpu, count }),
        2 => (cpu.clone(), 1..=1024_u64).prop_map(|(cpu, frames)| Step::Exact { cpu, frames }),
        2 => (cpu.clone(), 0..8000_u64, 0..=10_u8)
            .prop_map(|(cpu, pfn, order)| Step::At { cpu, pfn: pfn >> order << order, order }),
        10 => (cpu.clone(), any::<usize>()).prop_map(|(cpu, which)| Step::Free { cpu, which }),
        3 => (cpu.clone(), any::<usize>(), 1..500_usize)
            .prop_map(|(cpu, which, count)| Step::FreeBatch { cpu, which, count }),
        3 => (cpu.clone(), any::<usize>(), 0..600_u64, 1..600_u64)
            .prop_map(|(cpu, which, start, len)| Step::FreePart { cpu, which, start, len }),
        3 => (cpu.clone(), any::<usize>(), 0..600_u64, 1..600_u64)
            .prop_map(|(cpu, which, start, len)| Step::Split { cpu, which, start, len }),
        2 => (cpu.clone(), 0..8000_u64, 0..=10_u8).prop_map(|(cpu, pfn, order)| Step::Misuse { cpu, pfn, order }),
        2 => (cpu.clone(), 0..8000_u64).prop_map(|(cpu, pfn)| Step::Isolate { cpu, pfn }),
        2 => (cpu.clone(), 0..8000_u64, 0..3_usize)
            .prop_map(|(cpu, pfn, migratetype)| Step::Unisolate { cpu, pfn, migratetype }),
        1 => (cpu.clone(), 0..8000_u64).prop_map(|(cpu, pfn)| Step::Bad { cpu, pfn }),
        1 => cpu.clone().prop_map(|cpu| Step::Offline { cpu }),
        1 => cpu.clone().prop_map(|cpu| Step::Online { cpu }),
        2 => cpu.clone().prop_map(|cpu| Step::Tick { cpu }),
        1 => cpu.prop_map(|cpu| Step::Drain { cpu }),
        1 => Just(Step::DrainAll),
        1 => (0..20_u32, 0..48_u32).prop_map(|(low, shift)| Step::MinFree { kbytes: u64::from(low) << shift }),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_program_agrees_with_the_model(steps in steps(), keeps: bool) {
        let rule = if keeps { RemoteFrees::Kept } else { RemoteFrees::AtOnce };
        reference::play(rule, steps, 1);
    }

    /// As the fuzz target plays them.
    #[test]
    fn any_bytes_are_a_program(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        reference::play(RemoteFrees::Kept, Step::program(&bytes), 8);
    }
}
