//! Counts the instructions and cycles of a thread. Virtual machines often lack these counters.

#[cfg(not(feature = "perf"))]
mod absent;
#[cfg(feature = "perf")]
mod perf;

#[cfg(not(feature = "perf"))]
pub(super) use absent::Counters;
#[cfg(feature = "perf")]
pub(super) use perf::Counters;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_or_say_why_not() {
        match Counters::of_this_thread() {
            Ok(counters) => {
                let (instructions, cycles) = counters.read().unwrap();
                assert!(instructions > 0 && cycles > 0);
            }
            Err(reason) => assert!(!reason.is_empty()),
        }
    }
}
