//! A strategy has one value for each of its parts P, V and R, and a name such as `P2,V7,R3`.

use core::fmt;
use core::str::FromStr;

use crate::account::Account;
use crate::stabilise::Stabilise;
use crate::sync::TableSync;

/// A combination of locking and counting that keeps an address space consistent: a value for the page table,
/// a value for areas, and a value for counters.
///
/// ```
/// use pageset_fault::{Account, Stabilise, Strategy, TableSync};
///
/// let strategy: Strategy = "P2,V7,R3".parse()?;
/// assert_eq!(strategy, Strategy::new(TableSync::P2, Stabilise::V7, Account::R3)?);
/// assert_eq!(strategy.to_string(), "P2,V7,R3");
/// assert!("P2,V3,R1".parse::<Strategy>().is_err());
/// # Ok::<(), pageset_fault::StrategyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Strategy {
    sync: TableSync,
    stabilise: Stabilise,
    account: Account,
}

impl Strategy {
    /// Combines one value for each of the parts P, V and R. Returns an error if the values cannot work
    /// together.
    ///
    /// # Errors
    /// [`StrategyError::NeedsLock`] for V3 with P2. [`StrategyError::NeedsWholeLock`] for R0 without P0 or
    /// P0n.
    pub const fn new(sync: TableSync, stabilise: Stabilise, account: Account) -> Result<Self, StrategyError> {
        if matches!((sync, stabilise), (TableSync::P2, Stabilise::V3)) {
            return Err(StrategyError::NeedsLock);
        }
        if matches!(account, Account::R0) && !matches!(sync, TableSync::P0 | TableSync::P0n) {
            return Err(StrategyError::NeedsWholeLock);
        }
        Ok(Self { sync, stabilise, account })
    }

    /// All strategies: the combinations of values that can work together.
    pub fn all() -> impl Iterator<Item = Self> {
        TableSync::ALL.iter().flat_map(|sync| {
            Stabilise::ALL.iter().flat_map(move |stabilise| {
                Account::ALL.iter().filter_map(move |account| Self::new(*sync, *stabilise, *account).ok())
            })
        })
    }

    /// The value of part P, which says how a task changes a page-table word.
    #[must_use]
    pub const fn sync(self) -> TableSync {
        self.sync
    }

    /// The value of part V, which says how a fault keeps its area from changing.
    #[must_use]
    pub const fn stabilise(self) -> Stabilise {
        self.stabilise
    }

    /// The value of part R, which says how the engine counts resident pages.
    #[must_use]
    pub const fn account(self) -> Account {
        self.account
    }

    /// Whether areas may change while faults run. If areas may not change (V0 without P3), the caller must
    /// change areas only while no fault runs. If the caller changed areas during a fault, the fault could map
    /// a page into an area that a writer removes. Only `Engine::check` would find a page outside all areas.
    #[must_use]
    pub const fn areas_may_change(self) -> bool {
        !matches!(self.stabilise, Stabilise::V0) || matches!(self.sync, TableSync::P3)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.sync, self.stabilise, self.account)
    }
}

impl FromStr for Strategy {
    type Err = StrategyError;

    /// Reads a text like `P1,V1,R1`: one name for each part, in the order P, V, R, in upper or lower case.
    fn from_str(text: &str) -> Result<Self, StrategyError> {
        let mut names = text.split(',').map(str::trim);
        let mut next = || names.next().unwrap_or_default();
        let sync = TableSync::from_name(next()).ok_or(StrategyError::UnknownSync)?;
        let stabilise = Stabilise::from_name(next()).ok_or(StrategyError::UnknownStabilise)?;
        let account = Account::from_name(next()).ok_or(StrategyError::UnknownAccount)?;
        if names.next().is_some() {
            return Err(StrategyError::TooManyNames);
        }
        Self::new(sync, stabilise, account)
    }
}

/// The reason why a strategy is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StrategyError {
    /// The first name is not a value of part P, the page table.
    UnknownSync,
    /// The second name is not a value of part V, the areas.
    UnknownStabilise,
    /// The third name is not a value of part R, the counters.
    UnknownAccount,
    /// The text has more than three names. A strategy has three names, such as `P0,V1,R0`.
    TooManyNames,
    /// With V3, a fault must check its area again while it holds a table's lock. But with P2, a fault fills
    /// its word without a lock.
    NeedsLock,
    /// R0 counts in plain numbers, which the lock over the whole page table must protect. Only under P0 and
    /// P0n do all faults hold this lock when they count pages.
    NeedsWholeLock,
}

/// Writes `what` and the valid names.
fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, what: &str, names: &[T]) -> fmt::Result {
    f.write_str(what)?;
    names
        .iter()
        .enumerate()
        .try_for_each(|(index, name)| write!(f, "{}{name}", if index == 0 { " " } else { ", " }))
}

impl fmt::Display for StrategyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSync => list(f, "the first name of a strategy is one of", TableSync::ALL),
            Self::UnknownStabilise => list(f, "the second name of a strategy is one of", Stabilise::ALL),
            Self::UnknownAccount => list(f, "the third name of a strategy is one of", Account::ALL),
            Self::TooManyNames => f.write_str("a strategy has three names, as in P1,V1,R1"),
            Self::NeedsLock => f.write_str(
                "V3 checks an area again under a table's lock, and P2 fills a word without a lock: use V2 or V7 with P2",
            ),
            Self::NeedsWholeLock => f.write_str(
                "R0's plain numbers need the lock over the whole page table: use R0 with P0 or P0n",
            ),
        }
    }
}

impl core::error::Error for StrategyError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn every_combination_is_found_by_its_name() {
        let all: Vec<_> = Strategy::all().collect();
        // There are 24 pairs of P and V, because P2,V3 is invalid. Each pair of P and V works with six values
        // of R, and the ten pairs with P0 or P0n work with R0 too.
        assert_eq!(all.len(), 24 * 6 + 2 * 5);
        for strategy in all {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
            assert_eq!(strategy.to_string().to_lowercase().parse(), Ok(strategy));
        }
    }

    #[test]
    fn errors_list_the_names_there_are() {
        let error = |text: &str| text.parse::<Strategy>().expect_err("no strategy").to_string();
        assert_eq!(error("P9,V1,R1"), "the first name of a strategy is one of P0, P0n, P1, P2, P3");
        assert_eq!(error("P1,,R1"), "the second name of a strategy is one of V0, V1, V2, V3, V7");
        assert_eq!(error("P1,V1"), "the third name of a strategy is one of R0, R1, R1b, R1p, R2, R3, R4");
        assert_eq!(error("P1,V1,R1,x"), "a strategy has three names, as in P1,V1,R1");
        assert!(error("P2,V3,R1").contains("use V2 or V7"));
        assert!(error("P1,V1,R0").contains("P0 or P0n"));
    }
}
