//! Sockets: the memory of a message, and a sender and a receiver with a socket between them (spec fault.md
//! §4.3).
//!
//! Files: `skbs` (the memory of a message), `end` (one end of a flow), `turns` (when a CPU is sender and when
//! receiver) and `stream` (a flow of messages that are sent one by one). Each benchmark of sockets has one
//! more file.

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
