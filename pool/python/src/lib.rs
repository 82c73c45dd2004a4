//! The Rust part of the Python package `pageset`, which calls functions of the crates in `lab` and of the
//! pool.
//!
//! | file | what it does |
//! |---|---|
//! | `recording` | a recording, which each reader opens again |
//! | `record` | records the running kernel |
//! | `replay`, `verify`, `advise`, `simulate` | one function of the laboratory each |
//! | `fleet` | advice for many recordings |
//! | `tasks` | pieces of work for any process on any computer, and the dataset of their results |
//! | `events`, `stream` | events and rows as Arrow |
//! | `command` | the command `pageset` |
//! | `names` | lists of policies, machines and workloads |
//! | `work` | runs work while Python goes on; progress, interrupts |
//! | `document` | results as text, which Python turns into values |
//! | `error` | errors become exceptions |
//! | `number` | whole numbers as arguments |
//! | `pool`, `pages` | the pool, and pages with the buffer protocol |
//!
//! The crate `pageset-python` itself computes nothing. The Python part of the package is
//! `pool/python/pageset`.
#![deny(unsafe_code)]

mod advise;
mod command;
mod document;
mod error;
mod events;
mod fleet;
mod names;
mod number;
#[expect(unsafe_code, reason = "the buffer protocol is C's")]
mod pages;
mod pool;
mod record;
mod recording;
mod replay;
mod simulate;
mod stream;
mod tasks;
mod verify;
mod work;

/// The native part of `pageset`: see the package's documentation.
#[pyo3::pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::advise::advise;
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::events::Events;
    #[pymodule_export]
    use crate::fleet::advise_fleet;
    #[pymodule_export]
    use crate::names::{machines, policies, workloads};
    #[pymodule_export]
    use crate::pages::Pages;
    #[pymodule_export]
    use crate::pool::{Pool, PoolStats, ReturnPolicy};
    #[pymodule_export]
    use crate::record::record;
    #[pymodule_export]
    use crate::recording::Recording;
    #[pymodule_export]
    use crate::replay::replay;
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::stream::Table;
    #[pymodule_export]
    use crate::tasks::{
        Results, advise_task, advise_tasks, recordings, replay_task, replay_tasks, sweep_task, sweep_tasks,
    };
    #[pymodule_export]
    use crate::verify::verify;
}
