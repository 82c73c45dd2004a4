//! A test on all CPUs, and its line of JSON.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ostd::boot::{boot_info, memory_region::MemoryRegionType};
use ostd::cpu::num_cpus;
use ostd::prelude::*;

use crate::tests::Test;
use crate::{crew, frames};

/// Runs a test on this CPU, at the same time as on all other CPUs. CPU 0 then checks the allocator and prints
/// the line.
pub(crate) fn run(test: &Test, cpu: usize) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static FREE: AtomicU64 = AtomicU64::new(0);
    crew::wait_for_frees();
    if cpu == 0 {
        COUNT.store(0, Relaxed);
        FREE.store(frames::free(), Relaxed);
        (test.prepare)();
    }
    crew::meet();
    COUNT.fetch_add((test.run)(cpu), Relaxed);
    crew::wait_for_frees();
    if cpu == 0 {
        (test.finish)();
        // The allocator must not change while it is checked.
        crew::keep_still(true);
    }
    crew::wait_for_frees();
    if cpu == 0 {
        let census = frames::validate().unwrap_or_else(|violation| panic!("{}: {violation}", test.name));
        print!(r#"{{"test":"{}","allocator":"{}","cpus":{},"#, test.name, frames::NAME, num_cpus());
        print!(r#""memory_mib":{},"table_frames":{},"#, memory_mib(), frames::table_frames());
        print!(r#""{}":{},"#, test.counts, COUNT.load(Relaxed));
        print!(r#""frames_not_back":{}"#, FREE.load(Relaxed) as i64 - frames::free() as i64);
        if let Some(census) = census {
            print!(r#","free":{},"cached":{},"allocated":{}"#, census.free, census.cached, census.allocated);
        }
        println!("}}");
        crew::keep_still(false);
    }
    crew::meet();
}

fn memory_mib() -> usize {
    let usable = boot_info().memory_regions.iter().filter(|region| region.typ() == MemoryRegionType::Usable);
    usable.map(|region| region.len()).sum::<usize>() >> 20
}
