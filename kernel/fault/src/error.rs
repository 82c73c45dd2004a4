//! Errors of faults and of changes to address spaces.

use core::fmt;

/// The reason why an access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultError {
    /// The address belongs to no area: a segmentation fault.
    NoArea(u64),
    /// The area does not allow this access: a segmentation fault.
    NotAllowed(u64),
    /// No frame or page table is left for a fault at this address. The fault mapped no page, but may have
    /// added page tables or split a huge page.
    OutOfMemory(u64),
    /// The task and the address space belong to different engines. The fault changed nothing.
    OtherMachine(u64),
}

impl fmt::Display for FaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoArea(va) => write!(f, "address {va:#x} belongs to no area; map it first"),
            Self::NotAllowed(va) => write!(f, "the area of address {va:#x} does not allow this access"),
            Self::OutOfMemory(va) => write!(f, "no frame or page table is left for address {va:#x}"),
            Self::OtherMachine(va) => {
                write!(
                    f,
                    "the address space of address {va:#x} is on another engine; use a task of that engine"
                )
            }
        }
    }
}

impl core::error::Error for FaultError {}

/// The reason why an operation on an address space failed, or why an address space or a task could not be
/// made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpaceError {
    /// The range is empty, does not begin and end at page boundaries, or leaves the address space.
    BadRange,
    /// A part of the range already belongs to an area.
    Occupied,
    /// A part of the range belongs to no area.
    NoArea,
    /// No frame or page table is left. An operation with this error has changed no area and no page's
    /// contents. But a failed fork may have made pages read-only. The next store to a page that became
    /// read-only copies the page, or makes the page writable again. A failed unmap or protect may have split
    /// a huge page.
    OutOfMemory,
    /// All tasks that the engine was built for exist already.
    TooManyTasks,
    /// The engine has no such CPU.
    BadCpu,
    /// The page cannot be reclaimed or collapsed. For example, the page is not mapped, is shared, or is part
    /// of a larger block, or no single area covers the range of the huge page.
    NotEligible,
    /// The host cannot keep the contents of reclaimed pages.
    NoSwap,
    /// The geometry has no huge pages, because a leaf table covers more than the allocator's largest block.
    NoHugePages,
}

impl fmt::Display for SpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadRange => {
                "a range must begin and end at page boundaries inside the address space, and not be empty"
            }
            Self::Occupied => "a part of the range is mapped already; unmap it first",
            Self::NoArea => "a part of the range is not mapped",
            Self::OutOfMemory => "no frame or page table is left",
            Self::TooManyTasks => "all tasks that the engine was built for are in use; build it for more",
            Self::BadCpu => "the engine was built for fewer CPUs",
            Self::NotEligible => {
                "the page is not mapped, is shared, is part of a larger block, or is being moved"
            }
            Self::NoSwap => "the host keeps no contents of reclaimed pages",
            Self::NoHugePages => {
                "a leaf table of this geometry covers more than the largest block; use small pages or gangs"
            }
        })
    }
}

impl core::error::Error for SpaceError {}
