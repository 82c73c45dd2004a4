//! Tests formats and plots through the crate's public interface.

mod formats;
mod plots;
