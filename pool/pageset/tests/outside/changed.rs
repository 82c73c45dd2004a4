//! Tests what a program's system calls on its pages mean for the next owner of the pages. The tests follow
//! the guide's page on this subject.
#![cfg(not(miri))]

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::{io, ptr, slice};

use pageset::{Backing, Order, Pages, Pool, ReturnPolicy, Worker};

const BYTES: usize = 16 << 20;
const BLOCK: usize = 4 << 20;
const PRIVATE_AND_SHARED: [Backing; 2] = [Backing::Plain, Backing::Memfd];

fn pool(backing: Backing) -> Pool {
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    Pool::builder().size(BYTES).backing(backing).returns(returns).build().unwrap()
}

/// The pool's second block of 4 MiB.
fn block(pool: &Pool) -> Pages<'_> {
    pool.alloc_at(1024, Order::MAX).unwrap()
}

fn start(pages: &Pages<'_>) -> *mut libc::c_void {
    pages.as_ptr().as_ptr().cast()
}

#[track_caller]
fn done(outcome: impl Into<i64>) {
    assert_eq!(outcome.into(), 0, "{}", io::Error::last_os_error());
}

/// Frees the block, lets the pool give memory back, and takes the block again.
fn next_owner<'p>(pool: &'p Pool, pages: Pages<'p>) -> Pages<'p> {
    drop(pages);
    while pool.tick().more {}
    let _ = pool.trim();
    block(pool)
}

/// The line of `/proc/self/smaps` that begins with `key`, for the mapping that contains an address. If `key`
/// is empty, returns the mapping's first line.
fn smaps(address: usize, key: &str) -> String {
    let text = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_inside = false;
    for line in text.lines() {
        let range = line.split(' ').next().and_then(|word| word.split_once('-'));
        let number = |digits: &str| usize::from_str_radix(digits, 16).ok();
        if let Some((start, end)) = range.and_then(|(start, end)| number(start).zip(number(end))) {
            is_inside = (start..end).contains(&address);
            if is_inside && key.is_empty() {
                return line.to_owned();
            }
        } else if is_inside && line.starts_with(key) {
            return line.to_owned();
        }
    }
    panic!("no {key} at {address:x}");
}

fn has_flag(pages: &Pages<'_>, flag: &str) -> bool {
    smaps(start(pages).addr(), "VmFlags:").split_whitespace().any(|word| word == flag)
}

/// The flag that asks for the policy at an address. Source: get_mempolicy(2).
const MPOL_F_ADDR: libc::c_int = 1 << 1;

fn policy_at(address: *mut libc::c_void) -> i32 {
    let mut mode = -1;
    // SAFETY: the kernel writes one number, and reads no mask.
    done(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, 0_usize, 0_usize, address, MPOL_F_ADDR)
    });
    mode
}

fn mbind(pages: &Pages<'_>, mode: i32, nodes: u64) {
    let (mask, bits) = if nodes == 0 { (ptr::null(), 0) } else { (&raw const nodes, 64) };
    // SAFETY: the caller owns the pages, and the mask outlives the call.
    done(unsafe { libc::syscall(libc::SYS_mbind, start(pages), BLOCK, mode, mask, bits, 0) });
}

#[test]
fn a_memory_policy_passes_to_the_next_owner_unless_it_is_undone() {
    for backing in PRIVATE_AND_SHARED {
        let pool = pool(backing);
        let mine = block(&pool);
        assert_eq!(policy_at(start(&mine)), libc::MPOL_DEFAULT);
        mbind(&mine, libc::MPOL_BIND, 1);
        let next = next_owner(&pool, mine);
        assert_eq!(policy_at(start(&next)), libc::MPOL_BIND, "{backing:?}");
        mbind(&next, libc::MPOL_DEFAULT, 0);
        let next = next_owner(&pool, next);
        assert_eq!(policy_at(start(&next)), libc::MPOL_DEFAULT);
    }
}

#[test]
fn a_protection_passes_to_the_next_owner_unless_it_is_undone() {
    for backing in PRIVATE_AND_SHARED {
        let pool = pool(backing);
        let mine = block(&pool);
        // SAFETY: this test owns the pages, and writes to them only when they are writable again.
        done(unsafe { libc::mprotect(start(&mine), BLOCK, libc::PROT_READ) });
        let next = next_owner(&pool, mine);
        let line = smaps(start(&next).addr(), "");
        assert!(line.contains(" r--"), "{backing:?}: {line}");
        // SAFETY: as above.
        done(unsafe { libc::mprotect(start(&next), BLOCK, libc::PROT_READ | libc::PROT_WRITE) });
        let mut next = next_owner(&pool, next);
        next.fill(1);
    }
}

#[test]
fn advice_passes_to_the_next_owner_unless_it_is_undone() {
    let pool = pool(Backing::Plain);
    let cases = [
        (libc::MADV_DONTFORK, libc::MADV_DOFORK, "dc"),
        (libc::MADV_WIPEONFORK, libc::MADV_KEEPONFORK, "wf"),
        (libc::MADV_DONTDUMP, libc::MADV_DODUMP, "dd"),
        (libc::MADV_SEQUENTIAL, libc::MADV_NORMAL, "sr"),
    ];
    for (advice, undo, flag) in cases {
        let mine = block(&pool);
        // SAFETY: this test owns the pages, and this advice changes no contents.
        done(unsafe { libc::madvise(start(&mine), BLOCK, advice) });
        let next = next_owner(&pool, mine);
        assert!(has_flag(&next, flag), "{flag}");
        // SAFETY: as above.
        done(unsafe { libc::madvise(start(&next), BLOCK, undo) });
        assert!(!has_flag(&next_owner(&pool, next), flag), "{flag}");
    }
}

#[test]
fn what_a_user_discards_reads_as_zero_and_the_next_owner_gets_what_was_asked_for() {
    for (backing, advice) in [
        (Backing::Plain, libc::MADV_DONTNEED),
        (Backing::Thp, libc::MADV_DONTNEED),
        (Backing::Memfd, libc::MADV_REMOVE),
        // After `MADV_FREE`, the kernel may take the pages until the program writes to the pages.
        (Backing::Plain, libc::MADV_FREE),
    ] {
        let pool = pool(backing);
        let mut mine = block(&pool);
        mine.fill(7);
        // SAFETY: this test owns the pages, and no reference to their bytes exists.
        done(unsafe { libc::madvise(start(&mine), BLOCK, advice) });
        if advice != libc::MADV_FREE {
            assert!(mine.iter().all(|byte| *byte == 0), "{backing:?}");
        }
        drop(mine);
        let all: Vec<_> = std::iter::from_fn(|| pool.alloc_zeroed(Order::MAX).ok()).collect();
        assert!(all.len() == 4 && all.iter().all(|pages| pages.iter().all(|byte| *byte == 0)));
        drop(all);
        pool.validate().unwrap();
    }
}

#[test]
fn locked_pages_do_not_go_back_until_they_are_unlocked_and_all_others_do() {
    for backing in PRIVATE_AND_SHARED {
        let pool = pool(backing);
        let mut blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::MAX).ok()).collect();
        blocks.iter_mut().for_each(|pages| pages.fill(7));
        blocks.sort_by_key(Pages::offset);
        let (middle, page) = (start(&blocks[1]), 4096);
        // SAFETY: this test owns the pages, and locking changes no contents.
        done(unsafe { libc::mlock(middle, page) });
        drop(blocks);
        while pool.tick().more {}
        let returned = pool.stats().returned_bytes;
        assert_eq!(returned, BYTES as u64 - (2 << 20), "{backing:?}: all but the pageblock with the page");
        // A trim gives back all parts of the pageblock except the 64 KiB around the locked page.
        assert_eq!(pool.trim().returned_bytes, (2 << 20) - (64 << 10));
        let zeros: Vec<_> = std::iter::from_fn(|| pool.alloc_zeroed(Order::MAX).ok()).collect();
        assert!(zeros.len() == 4 && zeros.iter().all(|pages| pages.iter().all(|byte| *byte == 0)));
        drop(zeros);
        // SAFETY: as above.
        done(unsafe { libc::munlock(middle, page) });
        let _ = pool.trim();
        assert_eq!(pool.backing().unwrap().resident_bytes, 0);
        pool.validate().unwrap();
    }
}

/// Calls of userfaultfd. Source: ioctl_userfaultfd(2).
mod userfault {
    use super::*;

    #[repr(C)]
    struct Api {
        api: u64,
        features: u64,
        calls: u64,
    }

    #[repr(C)]
    struct Register {
        start: u64,
        bytes: u64,
        mode: u64,
        calls: u64,
    }

    const API: libc::Ioctl = 0xc018_aa3f;
    const REGISTER: libc::Ioctl = 0xc020_aa00;
    const UNREGISTER: libc::Ioctl = 0x8010_aa01_u32 as libc::Ioctl;
    const USER_MODE_ONLY: i32 = 1;

    /// A descriptor, if the system lets this program have one.
    pub(super) fn open() -> io::Result<OwnedFd> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
        // SAFETY: `userfaultfd` takes a number only.
        let file = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(file as i32) };
        let mut api = Api { api: 0xaa, features: 0, calls: 0 };
        // SAFETY: `api` is the structure that the call `API` fills.
        done(unsafe { libc::ioctl(file.as_raw_fd(), API, &raw mut api) });
        Ok(file)
    }

    pub(super) fn register(file: &OwnedFd, pages: &Pages<'_>) {
        let mut request =
            Register { start: start(pages).addr() as u64, bytes: BLOCK as u64, mode: 1, calls: 0 };
        // SAFETY: the structure outlives the call, and the caller owns the pages.
        done(unsafe { libc::ioctl(file.as_raw_fd(), REGISTER, &raw mut request) });
    }

    pub(super) fn unregister(file: &OwnedFd, pages: &Pages<'_>) {
        let mut range = [start(pages).addr() as u64, BLOCK as u64];
        // SAFETY: as above.
        done(unsafe { libc::ioctl(file.as_raw_fd(), UNREGISTER, range.as_mut_ptr()) });
    }
}

#[test]
fn a_userfaultfd_passes_to_the_next_owner_unless_it_is_unregistered() {
    let file = match userfault::open() {
        Ok(file) => file,
        Err(error) => return eprintln!("NOT TESTED: no userfaultfd here: {error}"),
    };
    for backing in PRIVATE_AND_SHARED {
        let pool = pool(backing);
        let mine = block(&pool);
        userfault::register(&file, &mine);
        let next = next_owner(&pool, mine);
        assert!(has_flag(&next, "um"), "{backing:?}: who touches it waits for an answer");
        userfault::unregister(&file, &next);
        let mut next = next_owner(&pool, next);
        assert!(!has_flag(&next, "um"));
        next.fill(1);
    }
}

/// Tests that a process that has a pool's file can read the whole pool. If virtual machines must not read
/// each other's memory, each virtual machine therefore needs a pool of its own.
#[test]
fn the_file_of_a_pool_reaches_every_page_of_it_and_of_no_other() {
    let [pool, other] = [(); 2].map(|()| pool(Backing::Memfd));
    let _of_a = pool.alloc_zeroed(Order::MAX).unwrap();
    let mut of_b = pool.alloc_zeroed(Order::MAX).unwrap();
    of_b[..6].copy_from_slice(b"secret");
    let mut elsewhere = other.alloc_zeroed(Order::MAX).unwrap();
    elsewhere[..6].copy_from_slice(b"hidden");
    // SAFETY: the test writes through the file only to free memory, and expects that this memory is not zero
    // later.
    let file = unsafe { pool.memfd() }.unwrap();
    let flags = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapping = unsafe { libc::mmap(ptr::null_mut(), BYTES, flags.0, flags.1, file.as_raw_fd(), 0) };
    assert_ne!(mapping, libc::MAP_FAILED);
    // SAFETY: the memory was mapped above, and no code writes to it now.
    let seen = unsafe { slice::from_raw_parts(mapping.cast::<u8>(), BYTES) };
    assert_eq!(&seen[of_b.offset()..][..6], b"secret");
    assert!(!seen.windows(6).any(|bytes| bytes == b"hidden"));
    // SAFETY: the byte lies inside the mapping, and the pool has never handed out its page.
    unsafe { mapping.cast::<u8>().wrapping_add(BYTES - 1).write(0x66) };
    let zeroed: Vec<_> = std::iter::from_fn(|| pool.alloc_zeroed(Order::MAX).ok()).collect();
    let spoilt = zeroed.iter().filter(|pages| pages.iter().any(|byte| *byte != 0)).count();
    assert_eq!(spoilt, 1, "the pool knew it to be zero");
    // SAFETY: the memory was mapped above, and is not in use any more.
    done(unsafe { libc::munmap(mapping, BYTES) });
}
