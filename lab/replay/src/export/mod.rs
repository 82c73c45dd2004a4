//! Writes a recording in the formats of other programs.
//!
//! | format | read by |
//! |---|---|
//! | [`perfetto`](fn@perfetto) | <https://ui.perfetto.dev>, and the trace processor of the same project |

mod perfetto;

pub use perfetto::{FOLLOWED_ONE_IN, Followed, PerfettoOptions, PerfettoSummary, SampledSets, perfetto};
