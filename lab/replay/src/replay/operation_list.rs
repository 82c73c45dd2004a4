//! The operations of a recording in order, in bounded memory.

use std::io;

use pageset_core::{MigrateType, Order, ZoneKind};

use super::portions::{Portions, Stored};
use crate::operations::{BlockName, Operation, What};

/// A list of operations. At most 60 MiB of a long list are in memory. The other operations are in a nameless
/// file below `$TMPDIR`, with 32 bytes for each operation.
#[derive(Debug, Default)]
pub struct OperationList {
    operations: Portions<Operation, 32>,
    first_ns: u64,
    last_ns: u64,
}

impl OperationList {
    /// Appends an operation.
    pub fn push(&mut self, operation: Operation) {
        if self.operations.len() == 0 {
            self.first_ns = operation.ts_ns;
        }
        self.last_ns = operation.ts_ns;
        self.operations.push(operation);
    }

    /// Checks that no operation was lost.
    ///
    /// # Errors
    /// The first error of the memory or of the file.
    pub fn check(&mut self) -> io::Result<()> {
        self.operations.check()
    }

    /// Number of operations.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether the list has no operation.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The times of the first and the last operation. Both are 0 if the list is empty.
    #[must_use]
    pub const fn times_ns(&self) -> (u64, u64) {
        (self.first_ns, self.last_ns)
    }

    /// Passes all operations to `each`, one by one.
    ///
    /// # Errors
    /// An error if the file cannot be read, or if there is no memory to read it.
    pub fn each(&self, each: impl FnMut(&Operation)) -> io::Result<()> {
        self.operations.each_one(each)
    }
}

impl FromIterator<Operation> for OperationList {
    fn from_iter<I: IntoIterator<Item = Operation>>(operations: I) -> Self {
        let mut list = Self::default();
        operations.into_iter().for_each(|operation| list.push(operation));
        list
    }
}

/// In a file, a byte for the kind of request, and another bit if the block is a page of a bulk allocation.
const ALLOC: u8 = 0;
const FREE: u8 = 1;
const BULK: u8 = 2;
const IS_OF_BULK: u8 = 4;

impl Stored<32> for Operation {
    /// 40 portions of operations take 60 MiB.
    const IN_MEMORY_MAX: usize = 40;

    fn to_bytes(self) -> [u8; 32] {
        let name = |block| match block {
            BlockName::Alone(number) => (number, 0),
            BlockName::Bulk(number) => (number, IS_OF_BULK),
        };
        let (kind, number, pages, details) = match self.what {
            What::Alloc { block, order, migratetype, highest } => {
                let (number, of_bulk) = name(block);
                (ALLOC | of_bulk, number, 0, [order.get(), migratetype as u8, highest as u8])
            }
            What::Free { block } => {
                let (number, of_bulk) = name(block);
                (FREE | of_bulk, number, 0, [0; 3])
            }
            What::Bulk { first, pages } => (BULK, first, pages, [0; 3]),
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.ts_ns.to_le_bytes());
        bytes[8..12].copy_from_slice(&number.to_le_bytes());
        bytes[12..16].copy_from_slice(&pages.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.cpu.to_le_bytes());
        bytes[18] = kind;
        bytes[19..22].copy_from_slice(&details);
        bytes
    }

    fn from_bytes(bytes: [u8; 32]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7, n0, n1, n2, n3, p0, p1, p2, p3, rest @ ..] = bytes;
        let [c0, c1, kind, order, migratetype, highest, ..] = rest;
        let number = u32::from_le_bytes([n0, n1, n2, n3]);
        let block = match kind & IS_OF_BULK {
            0 => BlockName::Alone(number),
            _ => BlockName::Bulk(number),
        };
        let what = match kind & !IS_OF_BULK {
            ALLOC => What::Alloc {
                block,
                order: Order::new(order).unwrap_or_default(),
                migratetype: MigrateType::ALL[usize::from(migratetype) % MigrateType::COUNT],
                highest: ZoneKind::ALL[usize::from(highest) % ZoneKind::ALL.len()],
            },
            BULK => What::Bulk { first: number, pages: u32::from_le_bytes([p0, p1, p2, p3]) },
            _ => What::Free { block },
        };
        let ts_ns = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        Self { ts_ns, cpu: u16::from_le_bytes([c0, c1]), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_survive_the_file() {
        let names = [BlockName::Alone(u32::MAX - 5), BlockName::Bulk(7)];
        let allocations = names.into_iter().flat_map(|block| {
            (0..ZoneKind::ALL.len().max(MigrateType::ALL.len()).max(11)).map(move |at| What::Alloc {
                block,
                order: Order::new(at as u8 % 11).unwrap(),
                migratetype: MigrateType::ALL[at % MigrateType::ALL.len()],
                highest: ZoneKind::ALL[at % ZoneKind::ALL.len()],
            })
        });
        let frees = names.map(|block| What::Free { block });
        let bulk = What::Bulk { first: 5, pages: 1 << 16 };
        for (what, at) in allocations.chain(frees).chain([bulk]).zip(0..) {
            let operation = Operation { ts_ns: u64::MAX / 3 - at, cpu: u16::MAX - at as u16, what };
            assert_eq!(Operation::from_bytes(operation.to_bytes()), operation);
        }
    }

    #[test]
    fn a_list_knows_its_times() {
        let free = |ts_ns| Operation { ts_ns, cpu: 1, what: What::Free { block: BlockName::Alone(1) } };
        assert_eq!(OperationList::default().times_ns(), (0, 0));
        let mut list: OperationList = [5, 9, 7].map(free).into_iter().collect();
        list.check().unwrap();
        assert_eq!((list.len(), list.times_ns()), (3, (5, 7)));
        let mut times_ns = Vec::new();
        list.each(|operation| times_ns.push(operation.ts_ns)).unwrap();
        assert_eq!(times_ns, [5, 9, 7]);
    }
}
