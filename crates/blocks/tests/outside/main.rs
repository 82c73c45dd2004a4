//! The allocator as its users see it.

mod add;
mod arrays;
mod bad;
mod budget;
mod cpus;
mod errors;
mod isolation;
mod machine;
mod model;
mod reviewers;
mod settings;
mod split;
mod threads;
mod word;
