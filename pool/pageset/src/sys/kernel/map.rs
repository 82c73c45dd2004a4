//! Maps the memory of pools and tables. To make a mapping, this module reserves address space, and then maps
//! memory into this address space.

use std::ffi::c_void;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::{calls, file_size};
use crate::sys::{Change, MapError, MapStep, POOL_ALIGN};
use crate::{Backing, HugePageSize};

/// A mapping that the pool made, or a caller's region. Dropping the value unmaps a mapping of the pool, but
/// not a caller's region.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    memfd: Option<OwnedFd>,
    is_ours: bool,
    /// Whether each change of [`Change::ALL`] was made.
    changed: [bool; Change::ALL.len()],
}

// SAFETY: a mapping is an address and a length. The owners of its pages decide how threads use the memory.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`, and no method changes the mapping through a shared reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps exactly `bytes` of `backing`. The start is aligned to the largest block.
    pub(crate) fn new(bytes: usize, backing: Backing) -> Result<Self, MapError> {
        let of_file = match backing {
            Backing::Memfd => Some(MemfdFlags::empty()),
            Backing::Hugetlb(HugePageSize::Mib2) => Some(MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB),
            Backing::Hugetlb(HugePageSize::Gib1) => Some(MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB),
            Backing::Thp | Backing::HugetlbOrThp(_) | Backing::Plain => None,
        };
        let memfd = of_file.map(|flags| file_of(bytes, flags)).transpose();
        let memfd = memfd.map_err(|error| MapStep::File.refused(error))?;
        let start = reserve_aligned(bytes).map_err(|error| MapStep::Reserve.refused(error))?;
        let mapping = Self { start, bytes, memfd, is_ours: true, changed: [false; _] };
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let address = start.as_ptr().cast::<c_void>();
        let refused = |error| MapStep::Map.refused(error);
        match &mapping.memfd {
            Some(memfd) => {
                // Share the mapping with children. With private huge pages, the system could take a child's
                // page away when the parent writes.
                let flags = MapFlags::SHARED | MapFlags::FIXED;
                // SAFETY: the range was reserved above, and no other code knows of it.
                unsafe { mmap(address, bytes, prot, flags, memfd, 0) }.map_err(refused)?;
                // The system gives huge pages for this advice if its `shmem_enabled` is `advise`. A file of
                // hugetlb refuses the advice, because the file has huge pages already. SAFETY: the range is
                // mapped, and this advice changes no contents.
                let _ = unsafe { madvise(address, bytes, Advice::LinuxHugepage) };
            }
            None => {
                let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
                // SAFETY: the range was reserved above, and no other code knows of it.
                unsafe { mmap_anonymous(address, bytes, prot, flags) }.map_err(refused)?;
                let advice = match backing {
                    Backing::Thp => Advice::LinuxHugepage,
                    _ => Advice::LinuxNoHugepage,
                };
                // A kernel without transparent huge pages refuses the advice. `Pool::backing` tells how many
                // huge pages the pool got. SAFETY: the range is mapped, and this advice changes no contents.
                let _ = unsafe { madvise(address, bytes, advice) };
                name(start, bytes);
            }
        }
        Ok(mapping)
    }

    /// A region that the caller lent and takes back.
    pub(crate) fn lent(start: NonNull<u8>, bytes: usize) -> Self {
        Self { start, bytes, memfd: None, is_ours: false, changed: [false; _] }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Whether dropping this value unmaps the memory.
    pub(crate) fn is_ours(&self) -> bool {
        self.is_ours
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes a change of the mapping before the change is made.
    pub(in crate::sys) fn note(&mut self, change: Change) {
        self.changed[change as usize] = true;
    }

    pub(crate) fn memfd(&self) -> Option<BorrowedFd<'_>> {
        self.memfd.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.is_ours {
            // SAFETY: the pool made the mapping, and the pages have no owner any more. Owners of pages, and
            // slices of a table, borrow from the value that is dropped here.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
            return;
        }
        // Undo the changes, because the caller may use the region again, and may fork or lock other memory.
        let changes = Change::ALL.into_iter().zip(self.changed).filter(|(_, is_made)| *is_made);
        for (change, _) in changes {
            let _ = match change {
                Change::Hidden => calls::advise(self, 0..self.bytes, Advice::LinuxDoFork),
                Change::Locked => calls::unlock(self),
                Change::Bound => calls::bind_to(self, libc::MPOL_DEFAULT, &[]),
            };
        }
    }
}

/// Makes a memory file (`memfd`) of this size. `flags` choose the size of its pages.
fn file_of(bytes: usize, flags: MemfdFlags) -> io::Result<OwnedFd> {
    let memfd = memfd_create(c"pageset", flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    file_size::set(&memfd, bytes as u64)?;
    // Seal the file's size, so that no process can shrink the file while pages are mapped. The system could
    // seal writes and holes only while no process has the file mapped.
    fcntl_add_seals(&memfd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(memfd)
}

/// Names private memory, so that `/proc/self/smaps` shows its name, and the kernel never merges it with an
/// adjacent mapping. A kernel that cannot name memory refuses the call, and the refusal does no harm.
fn name(start: NonNull<u8>, bytes: usize) {
    // Room for a name with 16 digits and its terminating zero.
    let mut name = [0; 32];
    if write!(&mut name[..31], "pageset-{:x}", start.addr()).is_err() {
        return;
    }
    // SAFETY: the range is mapped, the name ends with zero, and naming changes no contents.
    unsafe {
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, start.as_ptr(), bytes, name.as_ptr());
    }
}

/// Reserves `bytes` of address space at a multiple of [`POOL_ALIGN`]. To align the range, reserves more than
/// `bytes` first, and then unmaps the rest.
fn reserve_aligned(bytes: usize) -> io::Result<NonNull<u8>> {
    let small = || reserve_aligned_to(bytes, POOL_ALIGN);
    // A pool of 1 GiB or more begins at a multiple of 1 GiB if there is room, so that huge pages of 1 GiB
    // fit.
    if bytes >= 1 << 30 { reserve_aligned_to(bytes, 1 << 30).or_else(|_| small()) } else { small() }
}

fn reserve_aligned_to(bytes: usize, align: usize) -> io::Result<NonNull<u8>> {
    let length = bytes.checked_add(align).ok_or(io::ErrorKind::OutOfMemory)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
    let reserved = unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), flags) }?;
    let head = reserved.addr().next_multiple_of(align) - reserved.addr();
    let start = reserved.wrapping_byte_add(head);
    if head > 0 {
        // SAFETY: the part before the aligned address belongs to the reservation and is not used.
        unsafe { munmap(reserved, head) }?;
    }
    let end = start.wrapping_byte_add(bytes);
    // SAFETY: the part behind the aligned range belongs to the reservation and is not used.
    unsafe { munmap(end, align - head) }?;
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}
