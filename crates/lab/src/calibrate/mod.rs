//! What this machine costs.

pub mod machine;
pub mod pageops;
