//! The ways that are compared. A way is libc, or an order of visits together with instructions.

use pageset_pageops::{Isa, Kernel, Method, VisitOrder};

/// The operation on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writes zeros.
    Clear,
    /// Writes the contents of another page.
    Copy,
}

impl Operation {
    /// Both operations.
    pub const ALL: [Self; 2] = [Self::Clear, Self::Copy];

    /// Name of the operation in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Copy => "copy",
        }
    }
}

/// One way to clear or copy a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// `memset` and `memcpy` of this system's libc.
    Libc,
    /// A method of `pageset-pageops`.
    Method(Method),
}

impl Way {
    /// Returns libc, and all orders with all instructions of this machine. If two combinations run the same
    /// code, only one of the two is included.
    pub(crate) fn all(operation: Operation) -> Vec<Self> {
        let mut all = vec![Self::Libc];
        for order in VisitOrder::ALL {
            for kernel in Kernel::available() {
                if !is_same_as_another(operation, order, kernel.isa()) {
                    all.push(Self::of(order, kernel));
                }
            }
        }
        all
    }

    /// Makes the way of this order and these instructions, with the library's default neighbourhood on this
    /// machine.
    pub(crate) fn of(order: VisitOrder, kernel: Kernel) -> Self {
        let neighbourhood_bytes = Method::chosen().radius_pages() * 2 * pageset_pageops::BASE_PAGE_BYTES;
        Self::Method(Method::new(order, kernel, neighbourhood_bytes))
    }

    /// The method of `pageset-pageops`. `None` for libc.
    pub(crate) fn method(self) -> Option<Method> {
        match self {
            Self::Libc => None,
            Self::Method(method) => Some(method),
        }
    }

    /// Name of the order in results.
    pub(crate) fn order(self) -> &'static str {
        match self {
            Self::Libc => VisitOrder::Sequential.name(),
            Self::Method(method) => method.order().name(),
        }
    }

    /// Name of the instructions in results.
    pub(crate) fn kernel(self) -> &'static str {
        match self {
            Self::Libc => "libc",
            Self::Method(method) => method.kernel().isa().name(),
        }
    }

    /// Does the operation.
    #[inline]
    pub(crate) fn run(self, operation: Operation, page: &mut [u8], source: &[u8], hint: usize) {
        let done = match (self, operation) {
            (Self::Libc, Operation::Clear) => {
                page.fill(0);
                Ok(())
            }
            (Self::Libc, Operation::Copy) => {
                page.copy_from_slice(source);
                Ok(())
            }
            (Self::Method(method), Operation::Clear) => method.clear(page, Some(hint)),
            (Self::Method(method), Operation::Copy) => method.copy(page, source, Some(hint)),
        };
        done.expect("pages and targets are right");
    }
}

/// Whether another way runs the same code as the way of this order and these instructions. `portable` in
/// sequential order runs the code of `libc`, and `portable` cannot stream. `clzero` differs from `rep` only
/// in the streamed part of a clear.
fn is_same_as_another(operation: Operation, order: VisitOrder, isa: Isa) -> bool {
    match isa {
        Isa::Portable => matches!(order, VisitOrder::Sequential | VisitOrder::StreamTargetLast),
        Isa::Clzero => order != VisitOrder::StreamTargetLast || operation == Operation::Copy,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_there_and_nothing_twice() {
        for operation in Operation::ALL {
            let all = Way::all(operation);
            let names: Vec<_> = all.iter().map(|way| (way.order(), way.kernel())).collect();
            for (index, name) in names.iter().enumerate() {
                assert!(!names[..index].contains(name), "{name:?}");
            }
            assert!(names.contains(&("sequential", "libc")));
            assert!(names.contains(&("converge-2018", "portable")));
        }
    }

    #[test]
    fn contenders_do_what_they_are_called() {
        let memory = |value| {
            let mut memory = super::super::memory::HugeMemory::new(1).unwrap();
            memory.all_mut().fill(value);
            memory
        };
        let (mut page, source) = (memory(1), memory(2));
        for operation in Operation::ALL {
            for way in Way::all(operation) {
                page.all_mut().fill(1);
                way.run(operation, page.page_mut(0), source.page(0), 4096);
                let expected = if operation == Operation::Clear { 0 } else { 2 };
                assert!(page.all().iter().all(|byte| *byte == expected), "{way:?}");
            }
        }
    }
}
