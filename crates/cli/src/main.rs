//! The `pageset` command.
fn main() {}
