//! Maps the pool's memory as the builder's settings ask, and finds the cause if the system refuses.

use std::io;

use super::{BYTES_MAX, Builder, Source};
use crate::error::BuildError;
use crate::options::{Backing, Fork, HugePageSize, Numa, Residency};
use crate::sys::node::{Binding, NodeSet};
use crate::sys::{MapError, MapStep, Mapping, PAGE_BYTES, POOL_ALIGN, advice, hugetlb, node};

impl Builder {
    /// Maps the pool's memory. Returns the mapping and its backing. The backing is `Hugetlb` or `Thp` if the
    /// settings ask for `HugetlbOrThp`, and otherwise the requested backing.
    pub(super) fn map(&self) -> Result<(Mapping, Backing), BuildError> {
        let Backing::HugetlbOrThp(size) = self.backing else {
            return Ok((self.map_as_asked()?, self.backing));
        };
        self.check_size(size.bytes())?;
        let of = |backing| Ok((self.clone().backing(backing).map_as_asked()?, backing));
        of(Backing::Hugetlb(size)).or_else(|_: BuildError| of(Backing::Thp))
    }

    fn check_size(&self, multiple_of: usize) -> Result<(), BuildError> {
        if self.bytes == 0 || !self.bytes.is_multiple_of(multiple_of) || self.bytes > BYTES_MAX {
            return Err(BuildError::BadSize { bytes: self.bytes, multiple_of });
        }
        Ok(())
    }

    fn map_as_asked(&self) -> Result<Mapping, BuildError> {
        let multiple_of = match self.backing {
            Backing::Hugetlb(size) => size.bytes(),
            _ => PAGE_BYTES,
        };
        self.check_size(multiple_of)?;
        if let (Backing::Hugetlb(_), Some(Fork::Copy)) = (self.backing, self.fork) {
            return Err(BuildError::CopyOfHugetlb);
        }
        let is_copied = matches!(self.source, Source::System)
            && matches!(self.backing, Backing::Thp | Backing::Plain)
            && self.residency == Residency::Pageable;
        if self.fork == Some(Fork::HandOver) && !is_copied {
            return Err(BuildError::HandOverOfShared);
        }
        let mut memory = match self.source {
            Source::Caller(start) if start.addr().get().is_multiple_of(POOL_ALIGN) => {
                Mapping::lent(start, self.bytes)
            }
            Source::Caller(_) => return Err(BuildError::UnalignedRegion),
            Source::System => {
                Mapping::new(self.bytes, self.backing).map_err(|error| self.map_error(error))?
            }
        };
        self.place(&mut memory)?;
        if let (Backing::Hugetlb(_), Source::System) = (self.backing, self.source) {
            self.claim(&memory)?;
        }
        if self.residency == Residency::Locked {
            advice::lock(&mut memory)
                .map_err(|source| BuildError::LockLimit { bytes: self.bytes, source })?;
        }
        if self.fork == Some(Fork::Hide) {
            advice::hide_from_children(&mut memory)
                .map_err(|source| refused("madvise", "hide the pool from children", source))?;
        }
        Ok(memory)
    }

    /// Binds the memory to the NUMA nodes of the settings.
    fn place(&self, memory: &mut Mapping) -> Result<(), BuildError> {
        let outcome = match self.numa {
            Numa::FirstTouch => return Ok(()),
            Numa::Bind(node) => NodeSet::of(node)
                .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
                .and_then(|nodes| node::bind(memory, &nodes, Binding::Bind)),
            Numa::Interleave(nodes) => node::bind(memory, &NodeSet::of_bits(nodes), Binding::Interleave),
        };
        outcome.map_err(|source| match source.raw_os_error() {
            Some(libc::EINVAL) => BuildError::BadNodes { numa: self.numa, source },
            _ => refused("mbind", "choose the nodes of the pool's memory", source),
        })
    }

    /// Makes every huge page of the pool resident now. Without `claim`, a thread could later touch a reserved
    /// page and get SIGBUS, because its node, its cpuset or its cgroup has too few huge pages.
    fn claim(&self, memory: &Mapping) -> Result<(), BuildError> {
        match advice::populate(memory, 0..self.bytes) {
            // A kernel before 5.14 cannot populate memory. On a kernel before 5.14, rely on the reservation
            // of huge pages.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && self.numa == Numa::FirstTouch => {
                Ok(())
            }
            outcome => outcome.map_err(|source| BuildError::HugetlbOutOfReach {
                bytes: self.bytes,
                numa: self.numa,
                source,
            }),
        }
    }

    /// The reason why the memory could not be mapped.
    fn map_error(&self, error: MapError) -> BuildError {
        let MapError { step, source } = error;
        match (step, self.backing, source.raw_os_error()) {
            (MapStep::File, Backing::Hugetlb(size), Some(libc::ENODEV | libc::EINVAL)) => {
                BuildError::NoSuchHugePages { bytes: size.bytes(), source }
            }
            (MapStep::File, ..) => match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
                    BuildError::Denied { call: "memfd_create", source }
                }
                _ => BuildError::Memfd { bytes: self.bytes, source },
            },
            (MapStep::Map, Backing::Hugetlb(size), Some(libc::ENOMEM)) => BuildError::HugetlbShortage {
                wanted: self.bytes / size.bytes(),
                free: free_huge_pages(size),
                source,
            },
            (_, _, Some(libc::EPERM | libc::EACCES | libc::ENOSYS)) => {
                BuildError::Denied { call: "mmap", source }
            }
            _ => BuildError::AddressSpace { bytes: self.bytes, source },
        }
    }
}

/// Turns a refused system call into an error. The error is `Denied` if the process may not make the call at
/// all, and `System` if the call failed for another reason.
pub(super) fn refused(call: &'static str, what: &'static str, source: io::Error) -> BuildError {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => BuildError::Denied { call, source },
        _ => BuildError::System { what, source },
    }
}

/// Huge pages that are free and not reserved. `None` where the kernel does not tell.
fn free_huge_pages(size: HugePageSize) -> Option<usize> {
    let counts = match size {
        HugePageSize::Mib2 => hugetlb::MIB_2,
        HugePageSize::Gib1 => hugetlb::GIB_1,
    };
    Some(hugetlb::read(counts.free)?.saturating_sub(hugetlb::read(counts.reserved)?))
}
