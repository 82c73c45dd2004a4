//! All targets: names, versions, builds.

use anyhow::bail;

use super::kernel::{Huge, Mapping, Populated, Small};
use super::recycled::{DontNeed, Free, Recycled};
use super::{
    Target, bitmap, buddy_alloc, buddy_system, floor, frame_alloc, free_list, glibc, gperftools, jemalloc,
    jemalloc_on_pool, mimalloc2, mimalloc3, pageset, pageset_blocks, pageset_core, rpmalloc, rusty_alloc,
    snmalloc, tcmalloc,
};

/// The role of a target in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Compared with the best peer.
    Pageset,
    /// A part of pageset, or another project's allocator over it: shown but not compared.
    Part,
    /// No allocator: the cost of the row itself. Shown but not compared, and not subtracted.
    Floor,
    /// Another project's allocator.
    Peer,
    /// The kernel: a peer that needs a system call for each block.
    Kernel,
}

impl Side {
    /// Whether it is another project's allocator, or the kernel.
    pub(crate) fn is_peer(self) -> bool {
        matches!(self, Self::Peer | Self::Kernel)
    }
}

/// The description of a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetInfo {
    /// Name on the command line and in results.
    pub(crate) name: &'static str,
    /// Version of the allocator, and its crate if that has a different version.
    pub(crate) version: &'static str,
    /// How it is built and called here.
    pub(crate) build: &'static str,
    /// Its role in a comparison.
    pub(crate) side: Side,
}

const fn peer(name: &'static str, version: &'static str, build: &'static str) -> TargetInfo {
    TargetInfo { name, version, build, side: Side::Peer }
}

const fn kernel(name: &'static str, build: &'static str) -> TargetInfo {
    TargetInfo { name, version: KERNEL, build, side: Side::Kernel }
}

const KERNEL: &str = "the running kernel";
const RUST: &str = "Rust, dist profile of this workspace (opt-level 3, thin LTO, debug 0)";
const LOCKED: &str = "Rust, dist profile of this workspace; under one test-and-set spin lock";

/// All targets, in the order of running and printing.
pub(crate) const TARGETS: &[TargetInfo] = &[
    TargetInfo {
        name: "pageset",
        version: env!("CARGO_PKG_VERSION"),
        build: "Rust, dist profile of this workspace (opt-level 3, thin LTO, debug 0); builder defaults",
        side: Side::Pageset,
    },
    TargetInfo {
        name: "pageset-blocks",
        version: env!("CARGO_PKG_VERSION"),
        build: "Rust, dist profile of this workspace; reserved pageblocks, called with a CPU number, no pool over it",
        side: Side::Part,
    },
    TargetInfo {
        name: "pageset-blocks-arrays",
        version: env!("CARGO_PKG_VERSION"),
        build: "Rust, dist profile of this workspace; reserved pageblocks below arrays that each thread has to itself",
        side: Side::Part,
    },
    TargetInfo {
        name: "pageset-core",
        version: env!("CARGO_PKG_VERSION"),
        build: "Rust, dist profile of this workspace; policy linux-6.18, a spin lock per CPU, no pool over it",
        side: Side::Part,
    },
    TargetInfo {
        name: "jemalloc-on-pool",
        version: "5.3.1",
        build: "as jemalloc, in an arena whose extents are blocks of a pool, by hooks in C over libpageset",
        side: Side::Part,
    },
    TargetInfo {
        name: "floor",
        version: env!("CARGO_PKG_VERSION"),
        build: "no allocator: gives the same number again and again; nothing is subtracted from the others",
        side: Side::Floor,
    },
    peer("glibc", "of the system", "shared library; aligned_alloc(4096, size), free"),
    peer("mimalloc2", "2.3.2", "cc -O3 -DMI_DEBUG=0 -DNDEBUG, initial-exec TLS; mi_malloc_aligned, mi_free"),
    peer(
        "mimalloc3",
        "3.3.2",
        "libmimalloc-sys 0.1.49: cc -O3, initial-exec TLS; mi_malloc_aligned, mi_free",
    ),
    peer("jemalloc", "5.3.1", "tikv-jemalloc-sys 0.7.1: configure, cc -O3, prefix _rjem_; mallocx, sdallocx"),
    peer(
        "snmalloc",
        "0.7.6",
        "snmalloc-sys 0.7.6 with build_cc: c++ -O3, C++20; sn_rust_alloc, sn_rust_dealloc",
    ),
    peer("rpmalloc", "1.4.3 (b097fd0)", "rpmalloc-sys 0.2.3: cc -O2; rpaligned_alloc, rpfree"),
    peer(
        "tcmalloc",
        "Google's, of libtcmalloc-sys 0.1.14",
        "c++ -O3, 8 KiB pages; aligned new, sized aligned delete",
    ),
    peer("gperftools", "of the system", "shared library libtcmalloc_minimal.so.4; tc_memalign, tc_free"),
    peer("rusty_alloc", "2.4.0", RUST),
    peer("buddy-alloc", "0.6.0", LOCKED),
    peer("buddy_system_allocator", "0.13.0", LOCKED),
    peer("frame-alloc", "0.1.0", RUST),
    peer("free-list", "0.3.4", LOCKED),
    peer("bitmap-allocator", "0.4.6", LOCKED),
    kernel("mmap", "mmap and munmap of each block, 4 KiB pages"),
    kernel("mmap-populate", "mmap with MAP_POPULATE and munmap of each block, 4 KiB pages"),
    kernel("mmap-thp", "mmap with MADV_HUGEPAGE and munmap of each block; 2 MiB pages from order 9 on"),
    kernel("madv-dontneed", "free list over mmap; MADV_DONTNEED of each freed block"),
    kernel("madv-free", "free list over mmap; MADV_FREE of each freed block"),
];

/// Work with a target whose type is known only here.
pub(crate) trait Visit {
    /// The result.
    type Output;
    /// Does the work.
    fn visit<T: Target>(self) -> Self::Output;
}

/// Calls `visit` with the target of this name; `None` if there is none.
pub(crate) fn visit<V: Visit>(name: &str, visit: V) -> Option<V::Output> {
    Some(match name {
        "pageset" => visit.visit::<pageset::Pageset>(),
        "pageset-blocks" => visit.visit::<pageset_blocks::Alone>(),
        "pageset-blocks-arrays" => visit.visit::<pageset_blocks::Arrays>(),
        "pageset-core" => visit.visit::<pageset_core::Core>(),
        "jemalloc-on-pool" => visit.visit::<jemalloc_on_pool::JemallocOnPool>(),
        "floor" => visit.visit::<floor::Floor>(),
        "glibc" => visit.visit::<glibc::Glibc>(),
        "mimalloc2" => visit.visit::<mimalloc2::Mimalloc2>(),
        "mimalloc3" => visit.visit::<mimalloc3::Mimalloc3>(),
        "jemalloc" => visit.visit::<jemalloc::Jemalloc>(),
        "snmalloc" => visit.visit::<snmalloc::Snmalloc>(),
        "rpmalloc" => visit.visit::<rpmalloc::Rpmalloc>(),
        "tcmalloc" => visit.visit::<tcmalloc::Tcmalloc>(),
        "gperftools" => visit.visit::<gperftools::Gperftools>(),
        "rusty_alloc" => visit.visit::<rusty_alloc::RustyAlloc>(),
        "buddy-alloc" => visit.visit::<buddy_alloc::Buddies>(),
        "buddy_system_allocator" => visit.visit::<buddy_system::BuddySystem>(),
        "frame-alloc" => visit.visit::<frame_alloc::FrameAlloc>(),
        "free-list" => visit.visit::<free_list::Ranges>(),
        "bitmap-allocator" => visit.visit::<bitmap::Bitmap>(),
        "mmap" => visit.visit::<Mapping<Small>>(),
        "mmap-populate" => visit.visit::<Mapping<Populated>>(),
        "mmap-thp" => visit.visit::<Mapping<Huge>>(),
        "madv-dontneed" => visit.visit::<Recycled<DontNeed>>(),
        "madv-free" => visit.visit::<Recycled<Free>>(),
        _ => return None,
    })
}

/// The targets of these names; all if there are none.
pub(crate) fn selected(names: &[String]) -> anyhow::Result<Vec<&'static TargetInfo>> {
    for name in names {
        if !TARGETS.iter().any(|target| target.name == name) {
            let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            bail!("no allocator `{name}`; there are: {}", known.join(", "));
        }
    }
    Ok(TARGETS
        .iter()
        .filter(|target| names.is_empty() || names.iter().any(|name| name == target.name))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Visit for Nothing {
        type Output = ();
        fn visit<T: Target>(self) {}
    }

    #[test]
    fn every_target_of_the_list_has_a_type() {
        for target in TARGETS {
            assert!(visit(target.name, Nothing).is_some(), "{}", target.name);
        }
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        let lock = std::fs::read_to_string(lock).expect("the workspace has a lock file");
        for name in [
            "rusty_alloc",
            "buddy-alloc",
            "buddy_system_allocator",
            "frame-alloc",
            "free-list",
            "bitmap-allocator",
        ] {
            let version = selected(&[name.to_owned()]).expect("it is in the list")[0].version;
            assert!(
                lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"")),
                "{name} {version}"
            );
        }
    }
}
