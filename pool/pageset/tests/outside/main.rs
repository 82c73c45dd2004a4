//! The pool through its public interface. What forks, or has limits of its own, is a test target of its own.

mod changed;
mod cpus;
mod giveback;
mod owned;
mod pool;
mod raw;
mod registered;
mod run;
mod shortage;
