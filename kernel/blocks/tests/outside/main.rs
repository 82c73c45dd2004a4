//! The allocator through its public functions.

mod add;
mod arrays;
mod bad;
mod contiguous;
mod cpus;
mod errors;
mod every_cpu;
#[expect(dead_code, reason = "some operations are the core's only")]
#[path = "../../../core/tests/family/mod.rs"]
mod family;
mod fit;
mod highatomic;
mod isolation;
#[path = "../../examples/kernel.rs"]
mod kernel;
mod lent;
mod machine;
mod marks;
mod misuse;
mod model;
mod of_row;
mod reviewers;
mod settings;
mod shapes;
mod split;
mod stock;
mod threads;
mod units;
mod unsettled;
mod whole_use;
mod zones;
