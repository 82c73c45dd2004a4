//! Tests pools of hugetlb pages. The machine has four huge pages (`nr_hugepages`). The kernel may allocate
//! four more (`nr_overcommit_hugepages`). A test that needs huge pages sets these two numbers and restores
//! them, so only one such test runs at a time.
#![cfg(not(miri))]

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pageset::{Backing, BuildError, Builder, Fork, HugePageSize, Numa, Order, Pages, Pool, Prezero};
use pageset::{ReturnPolicy, Worker};

const HUGE: usize = 2 << 20;
/// The number of huge pages that the machine has, and the number of huge pages that the kernel may allocate
/// in addition.
const KEYS: [&str; 2] = ["/proc/sys/vm/nr_hugepages", "/proc/sys/vm/nr_overcommit_hugepages"];

fn read(path: &str) -> usize {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Sets the numbers of `KEYS` to 4. Dropping a `FourAndFour` gives the numbers their earlier values.
struct FourAndFour {
    before: [usize; 2],
    _one_at_a_time: MutexGuard<'static, ()>,
}

impl FourAndFour {
    fn set_up() -> Self {
        static MACHINE: Mutex<()> = Mutex::new(());
        let one_at_a_time = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let four = Self { before: KEYS.map(read), _one_at_a_time: one_at_a_time };
        KEYS.iter().for_each(|key| fs::write(key, "4").expect("needs root"));
        assert_eq!((free(), reserved()), (4, 0), "the machine has four free huge pages");
        four
    }
}

impl Drop for FourAndFour {
    fn drop(&mut self) {
        for (key, before) in KEYS.iter().zip(self.before) {
            let _ = fs::write(key, before.to_string());
        }
    }
}

fn meminfo(key: &str) -> usize {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_start_matches(':').trim().parse().unwrap()
}

fn free() -> usize {
    meminfo("HugePages_Free")
}

fn reserved() -> usize {
    meminfo("HugePages_Rsvd")
}

fn builder(pages: usize) -> Builder {
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    let huge = Backing::Hugetlb(HugePageSize::Mib2);
    Pool::builder().size(pages * HUGE).backing(huge).returns(returns)
}

/// Allocates all blocks of 2 MiB, and fills each block with `byte`.
fn fill(pool: &Pool, byte: u8) -> Vec<Pages<'_>> {
    let mut blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::THP).ok()).collect();
    blocks.iter_mut().for_each(|block| block.fill(byte));
    blocks
}

#[test]
#[ignore = "needs root and huge pages"]
fn fault_03_no_huge_page_of_a_pool_is_lost_to_others_whatever_is_called() {
    let _machine = FourAndFour::set_up();
    // Build a pool that needs only the four pages of the machine, and then a pool that also needs pages that
    // the kernel allocates.
    for pages in [4, 8] {
        let pool = builder(pages).build().unwrap();
        assert_eq!(fill(&pool, 1).len(), pages);
        let outcome = pool.populate(pages * HUGE, NonZeroUsize::MIN, |_| ControlFlow::Continue(()));
        outcome.expect("it is resident");
        assert_eq!(pool.trim().returned_bytes, 0);
        while pool.tick().more {}
        assert_eq!((pool.resize(HUGE), pool.resize(pages * HUGE)), (HUGE, pages * HUGE));
        // Other pools take as many huge pages as possible, and use the huge pages.
        let mut others: Vec<_> = (1..=8).rev().filter_map(|count| builder(count).build().ok()).collect();
        others.iter_mut().for_each(|other| drop(fill(other, 2)));
        let error = builder(1).build().unwrap_err();
        assert!(matches!(error, BuildError::HugetlbShortage { wanted: 1, free: Some(0), .. }), "{error:?}");
        // Touching the pages of `pool` causes no SIGBUS, and other pools do not change the bytes of these
        // pages.
        let blocks = fill(&pool, 3);
        assert_eq!(blocks.len(), pages);
        assert!(blocks.iter().all(|block| block.iter().all(|byte| *byte == 3)));
        drop(blocks);
        assert_eq!(pool.stats().returned_bytes, 0);
        pool.validate().unwrap();
    }
    assert_eq!((free(), reserved()), (4, 0), "all came back");
}

#[test]
#[ignore = "needs root and huge pages"]
fn a_pool_that_clears_in_idle_time_and_has_a_thread_keeps_its_huge_pages_too() {
    let _machine = FourAndFour::set_up();
    let mut returns = ReturnPolicy::default();
    returns.interval = std::time::Duration::from_millis(1);
    returns.prezero = Prezero::Blocks(8);
    let pool = builder(8).returns(returns).build().unwrap();
    drop(fill(&pool, 1));
    while pool.stats().prezeroed_bytes < 8 * HUGE as u64 {
        std::thread::yield_now();
    }
    assert!(builder(1).build().is_err());
    assert_eq!(fill(&pool, 3).len(), 8);
    let zeros: Vec<_> = std::iter::from_fn(|| pool.alloc_zeroed(Order::THP).ok()).collect();
    assert!(zeros.len() == 8 && zeros.iter().all(|block| block.iter().all(|byte| *byte == 0)));
}

/// Forks a child. After the fork, the parent writes to each block, and then the child reads a byte of each
/// block. Returns the sum of the bytes that the child read. Fails if a signal ended the child.
fn sum_in_child(pool: &Pool) -> u8 {
    let mut blocks = fill(pool, 7);
    let mut channel = [0; 2];
    // SAFETY: the array has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(channel.as_mut_ptr()) }, 0);
    let [reader, writer] = channel;
    // SAFETY: the child has only this thread, reads memory, and exits by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut byte = 0_u8;
        // SAFETY: the call reads one byte from the parent, and `byte` has room for it.
        unsafe { libc::read(reader, (&raw mut byte).cast(), 1) };
        let sum = blocks.iter().map(|block| block[0]).sum::<u8>();
        // SAFETY: the call ends the process without running the parent's destructors or exit handlers.
        unsafe { libc::_exit(i32::from(sum)) };
    }
    blocks.iter_mut().for_each(|block| block.fill(9));
    // SAFETY: the byte outlives the call.
    assert_eq!(unsafe { libc::write(writer, [1_u8].as_ptr().cast(), 1) }, 1);
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    channel.iter().for_each(|end| {
        // SAFETY: the descriptor was made above, and is closed only here.
        unsafe { libc::close(*end) };
    });
    assert!(blocks.iter().all(|block| block.iter().all(|byte| *byte == 9)));
    assert!(libc::WIFEXITED(status), "killed by signal {}", libc::WTERMSIG(status));
    libc::WEXITSTATUS(status) as u8
}

#[test]
#[ignore = "needs root and huge pages"]
fn fault_04_a_child_that_reads_huge_pages_is_not_killed_when_none_is_left_for_a_copy() {
    let _machine = FourAndFour::set_up();
    let pool = builder(8).build().unwrap();
    assert_eq!(sum_in_child(&pool), 8 * 9, "the parent's memory itself");
    drop(pool);
    let error = builder(8).fork(Fork::Copy).build().unwrap_err();
    assert!(matches!(error, BuildError::CopyOfHugetlb), "{error:?}");
    // The failed attempts to build a pool must keep no huge page.
    assert_eq!((free(), reserved()), (4, 0));
    assert_eq!(fill(&builder(8).fork(Fork::Hide).build().unwrap(), 1).len(), 8);
}

/// Tests a pool that uses a huge page of 1 GiB. After the end of the pool, the system must have the huge page
/// of 1 GiB again.
#[test]
#[ignore = "needs root and 1 GiB of memory that lies together"]
fn a_pool_takes_pages_of_a_gib_where_there_are_some_and_is_made_of_small_ones_elsewhere() {
    const KEY: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    let _machine = FourAndFour::set_up();
    let before = read(KEY);
    fs::write(KEY, (before + 1).to_string()).expect("needs root");
    let got = read(KEY);
    let tell = || {
        let backing = Backing::HugetlbOrThp(HugePageSize::Gib1);
        let pool = Pool::builder().size(1 << 30).backing(backing).build().unwrap();
        let mut gib = pool.alloc_gib().unwrap();
        gib.chunks_exact_mut(HUGE).for_each(|page| page[0] = 1);
        let collapsed = pool.collapse();
        let report = pool.backing().unwrap();
        println!("{report:?}, {collapsed} bytes collapsed");
        (report, collapsed)
    };
    let (with, collapsed) = tell();
    fs::write(KEY, before.to_string()).expect("it was written before");
    let (without, _) = tell();
    assert_eq!(got, before + 1, "the system found no GiB that lies together");
    assert_eq!((with.page_bytes, with.huge_bytes, collapsed), (1 << 30, 1 << 30, 1 << 30));
    if before == 0 {
        assert_eq!(without.page_bytes, 4096);
        assert_eq!(without.huge_bytes + without.small_bytes, without.resident_bytes);
    }
    let copied =
        Pool::builder().size(HUGE).backing(Backing::HugetlbOrThp(HugePageSize::Mib2)).fork(Fork::Copy);
    assert_eq!(copied.build().unwrap().backing().unwrap().page_bytes, 4096, "a copy is private memory");
    assert_eq!(
        builder(2)
            .backing(Backing::HugetlbOrThp(HugePageSize::Mib2))
            .build()
            .unwrap()
            .backing()
            .unwrap()
            .page_bytes,
        HUGE as u64
    );
}

#[test]
fn fault_04_a_copy_of_huge_pages_is_refused_wherever_it_is_asked_for() {
    for size in [HugePageSize::Mib2, HugePageSize::Gib1] {
        let builder = Pool::builder().size(1 << 30).backing(Backing::Hugetlb(size)).fork(Fork::Copy);
        let error = builder.build().unwrap_err();
        assert!(matches!(error, BuildError::CopyOfHugetlb), "{error:?}");
        assert_eq!(
            error.to_string(),
            "huge pages are not copied for children: use Fork::Hide, or leave fork unset to share them"
        );
    }
}

#[test]
#[ignore = "needs root and huge pages"]
fn huge_pages_are_taken_from_the_nodes_that_were_asked_for_when_the_pool_is_built() {
    let _machine = FourAndFour::set_up();
    for numa in [Numa::FirstTouch, Numa::Bind(0), Numa::Interleave(1)] {
        let pool = builder(8).numa(numa).build().unwrap();
        let report = pool.backing().unwrap();
        assert_eq!(
            (report.resident_bytes, report.huge_bytes),
            (8 * HUGE as u64, 8 * HUGE as u64),
            "{numa:?}"
        );
        assert_eq!(report.nodes, [(0, 8 * HUGE as u64)]);
        assert_eq!((free(), reserved()), (0, 0), "none is only reserved");
        assert_eq!(fill(&pool, 1).len(), 8);
    }
}

/// Tests a second mapping of a whole huge page of a pool's file in this process.
#[test]
#[ignore = "needs root and huge pages"]
fn another_mapping_of_the_file_of_a_pool_of_huge_pages_shows_its_bytes() {
    let _machine = FourAndFour::set_up();
    let pool = builder(8).build().unwrap();
    let mut page = pool.alloc_at(HUGE / 4096 + 3, Order::ZERO).unwrap();
    page.fill(7);
    let huge_page = page.offset() / HUGE * HUGE;
    // SAFETY: the file is only mapped and read, while the page's owner does nothing.
    let file = unsafe { pool.memfd() }.expect("a pool of huge pages has a file").as_raw_fd();
    let (prot, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let other =
        unsafe { libc::mmap(std::ptr::null_mut(), HUGE, prot, flags, file, huge_page as libc::off_t) };
    assert_ne!(other, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    let there = other.cast::<u8>().wrapping_add(page.offset() - huge_page);
    // SAFETY: the address lies inside the mapping, and no thread writes to this byte.
    assert_eq!(unsafe { there.read() }, 7);
    // SAFETY: the memory was mapped above, and is not in use any more.
    assert_eq!(unsafe { libc::munmap(other, HUGE) }, 0);
    drop(page);
    drop(pool);
    assert_eq!((free(), reserved()), (4, 0), "all came back");
}

#[test]
#[ignore = "needs root and huge pages"]
fn what_is_short_of_huge_pages_is_said() {
    let _machine = FourAndFour::set_up();
    let error = builder(9).build().unwrap_err();
    assert_eq!(error.to_string(), "cannot get 9 huge pages: 4 are free (see /proc/sys/vm/nr_hugepages)");
    // Another mapping reserves the free huge pages without using them.
    let bytes = 4 * HUGE;
    let (prot, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let other = unsafe { libc::mmap(std::ptr::null_mut(), bytes, prot, flags, -1, 0) };
    assert_ne!(other, libc::MAP_FAILED);
    let error = builder(5).build().unwrap_err();
    assert!(matches!(error, BuildError::HugetlbShortage { wanted: 5, free: Some(0), .. }), "{error:?}");
    // SAFETY: the memory was mapped above, and is not in use any more.
    assert_eq!(unsafe { libc::munmap(other, bytes) }, 0);
}
