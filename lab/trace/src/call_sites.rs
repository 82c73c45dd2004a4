//! Names of the kernel's functions and locks. Names are looked up while recording, because addresses mean
//! nothing on another machine.

use serde::{Deserialize, Serialize};

/// Names of functions and locks that the events of a recording refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSites {
    /// Functions. [`Event::call_site`](crate::Event::call_site) is an index into this list.
    pub functions: Vec<String>,
    /// Locks that are variables of the kernel, by address.
    #[serde(default)]
    pub locks: Vec<NamedLock>,
}

/// A lock that is a variable of the kernel, or a part of such a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedLock {
    /// The lock's address, as in events.
    pub address: u64,
    /// Name of the variable.
    pub name: String,
}

/// What is known about the name of a lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockName {
    /// The lock is this variable of the kernel, or a part of this variable.
    Variable(String),
    /// The lock has no name. A CPU waited for the lock in this function.
    TakenIn(String),
    /// Nothing is known, because the wait has no call chain.
    Unknown,
}

impl CallSites {
    /// The name of the function with index `site`.
    #[must_use]
    pub fn function(&self, site: u16) -> Option<&str> {
        self.functions.get(usize::from(site)).map(String::as_str)
    }

    /// The name of the lock at this address, for a wait at call site `site`.
    #[must_use]
    pub fn lock(&self, address: u64, site: Option<u16>) -> LockName {
        if let Some(lock) = self.locks.iter().find(|lock| lock.address == address) {
            return LockName::Variable(lock.name.clone());
        }
        match site.and_then(|site| self.function(site)) {
            Some(function) => LockName::TakenIn(function.to_owned()),
            None => LockName::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_named_after_itself_before_its_caller() {
        let lock = NamedLock { address: 7, name: "tasklist_lock".to_owned() };
        let sites = CallSites { functions: vec!["fork".to_owned()], locks: vec![lock] };
        assert_eq!(sites.lock(7, Some(0)), LockName::Variable("tasklist_lock".to_owned()));
        assert_eq!(sites.lock(8, Some(0)), LockName::TakenIn("fork".to_owned()));
        assert_eq!((sites.lock(8, Some(1)), sites.lock(8, None)), (LockName::Unknown, LockName::Unknown));
    }
}
