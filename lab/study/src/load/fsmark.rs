//! fsmark with files of no bytes: each new file takes a slab object for its inode and a slab object for its
//! name.

use std::sync::Arc;

use pageset_core::MigrateType;

use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::slab::{LIST_NS, Object, Slabs};

const FILE_NS: Parameter = Parameter {
    key: "file_ns",
    default: 20_000,
    min: 1,
    meaning: "work to create a file outside the allocator, in ns",
    source: "guess: 50 000 files per second and CPU",
};
const FILES: Parameter = Parameter {
    key: "files",
    default: 1_000_000,
    min: 1,
    meaning: "files that a process has when it removes all of them and begins again",
    source: "guess: more than a run creates, because the text of the 2016 series says that fsmark only allocates",
};
/// Size of an inode of a file system. Guess: near the sizes in ext4 and XFS.
const INODE_BYTES: u32 = 1024;
/// Size of the structure that has a file's name in memory (dentry). Source: general knowledge of x86-64.
const NAME_BYTES: u32 = 192;

/// Each CPU runs a process that creates files.
pub(super) const FSMARK: Workload = Workload {
    name: "fsmark",
    summary: "fsmark with files of no bytes: objects of slabs that are allocated and kept",
    source: "the 2016 series: fsmark with zero-sized files, to allocate slab objects continually",
    unit: "files",
    duration_ms: (50, 200),
    parameters: &[FILE_NS, FILES, LIST_NS],
    build,
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let mut slabs = Slabs::new(setup);
    let caches =
        [INODE_BYTES, NAME_BYTES].map(|bytes| slabs.cache(&mut plan, bytes, MigrateType::Reclaimable));
    let slabs = Arc::new(slabs.used_by(setup.cpus as usize));
    let (file_ns, files) = (setup.get(&FILE_NS), setup.get(&FILES));
    for cpu in setup.each_cpu() {
        let slabs = Arc::clone(&slabs);
        plan.work(cpu, move |target| {
            let mut objects: Vec<Object> = Vec::new();
            while target.running() {
                target.compute(file_ns);
                let is_created = caches.iter().all(|cache| {
                    let object = slabs.take(target, *cache);
                    objects.extend(object.as_ref().ok());
                    object.is_ok()
                });
                if is_created {
                    target.score(1);
                }
                // The process removes its files when it has made all files, or when no memory is left for
                // another file.
                if !is_created || objects.len() as u64 >= files * caches.len() as u64 {
                    objects.drain(..).for_each(|object| slabs.give(target, object));
                }
            }
            objects.into_iter().for_each(|object| slabs.give(target, object));
            slabs.leave(target);
        });
    }
    Ok(plan)
}
