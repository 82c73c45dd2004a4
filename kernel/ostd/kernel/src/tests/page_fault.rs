//! Page faults on the machine's own page tables. All CPUs write to one address space that has no memory yet,
//! each to its own part. Then they free the memory.

use alloc::sync::Arc;
use core::ops::Range;

use ostd::arch::cpu::context::CpuException;
use ostd::mm::fault::inject_user_page_fault_handler;
use ostd::mm::{
    CachePolicy, FallibleVmWrite, FrameAllocOptions, PAGE_SIZE, PageFlags, PageProperty, VmReader, VmSpace,
};
use ostd::sync::SpinLock;
use ostd::task::disable_preempt;

use super::{Test, fault_engine};

pub(crate) const TEST: Test = Test { name: "page-fault", counts: "faults", prepare, run, finish };

const ROUNDS: usize = 8;
const PAGES: usize = 2048;
const START: usize = 1 << 30;

static SPACE: SpinLock<Option<Arc<VmSpace>>> = SpinLock::new(None);

fn prepare() {
    inject_user_page_fault_handler(on_fault);
    *SPACE.lock() = Some(Arc::new(VmSpace::new()));
}

fn space() -> Arc<VmSpace> {
    SPACE.lock().clone().expect("the test runs")
}

fn run(cpu: usize) -> u64 {
    let space = space();
    space.activate();
    let range = START + cpu * PAGES * PAGE_SIZE..START + (cpu + 1) * PAGES * PAGE_SIZE;
    for _ in 0..ROUNDS {
        for page in range.clone().step_by(PAGE_SIZE) {
            let mut writer = space.writer(page, size_of::<usize>()).expect("addresses of a user");
            let written =
                writer.write_fallible(&mut VmReader::from(page.to_ne_bytes().as_slice()).to_fallible());
            assert_eq!(written.expect("the fault is handled"), size_of::<usize>());
        }
        unmap(&space, &range);
    }
    // Activate another address space, so that no CPU uses this one after the test.
    Arc::new(VmSpace::new()).activate();
    (ROUNDS * PAGES) as u64
}

fn finish() {
    *SPACE.lock() = None;
}

/// The page-fault handler: gives a frame to a page without one.
pub(super) fn on_fault(exception: &CpuException) -> Result<(), ()> {
    let CpuException::PageFault(fault) = exception else { return Err(()) };
    if fault.addr >= fault_engine::START {
        return fault_engine::on_fault(fault.addr);
    }
    let page = fault.addr / PAGE_SIZE * PAGE_SIZE;
    let frame = FrameAllocOptions::new().alloc_frame().map_err(drop)?;
    let space = space();
    let guard = disable_preempt();
    let mut cursor = space.cursor_mut(&guard, &(page..page + PAGE_SIZE)).map_err(drop)?;
    cursor.map(frame.into(), PageProperty::new_user(PageFlags::RW, CachePolicy::Writeback));
    Ok(())
}

fn unmap(space: &VmSpace, range: &Range<usize>) {
    let guard = disable_preempt();
    let mut cursor = space.cursor_mut(&guard, range).expect("addresses of a user");
    assert_eq!(cursor.unmap(range.len()), PAGES);
    cursor.flusher().sync_tlb_flush();
}
