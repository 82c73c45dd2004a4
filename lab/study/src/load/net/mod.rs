//! Benchmarks of sockets: senders, receivers, and the memory of the messages between them (spec fault.md
//! §4.3).
//!
//! Four files are parts of several benchmarks: `skbs` (the memory of a message), `end` (one end of a flow),
//! `turns` (exchanging the roles of sender and receiver) and `stream` (a flow of single messages). Each file
//! except these four files has one benchmark, or two similar benchmarks.

mod end;
mod sctp;
mod skbs;
mod sockperf;
mod stream;
mod tcp;
mod turns;
mod udp;
mod unix;

pub(super) use sctp::SCTP_STREAM;
pub(super) use skbs::Skbs;
pub(super) use sockperf::{SOCKPERF_TCP, SOCKPERF_UDP};
pub(super) use tcp::TCP_STREAM;
pub(super) use udp::UDP_STREAM;
pub(super) use unix::UNIX_STREAM;
