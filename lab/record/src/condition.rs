//! The condition that ends a flight recorder, such as `zone_wait_us > 500`.

use std::{fmt, str::FromStr};

use pageset_trace::{Caller, Event, EventKind, LockWaits};
use thiserror::Error;

/// A condition: a kind of duration, and a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    quantity: Quantity,
    /// The condition is met by a duration above this number of microseconds.
    above_us: u64,
}

/// The kind of duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    /// A wait for a zone lock. The call chain of the wait shows whether the lock is a zone lock.
    ZoneWait,
    /// A wait for any spinning lock.
    SpinWait,
    /// Direct reclaim by a task.
    DirectReclaim,
}

impl Quantity {
    const ALL: [Self; 3] = [Self::ZoneWait, Self::SpinWait, Self::DirectReclaim];

    const fn name(self) -> &'static str {
        match self {
            Self::ZoneWait => "zone_wait_us",
            Self::SpinWait => "spin_wait_us",
            Self::DirectReclaim => "reclaim_us",
        }
    }

    const fn events(self) -> &'static [EventKind] {
        match self {
            Self::ZoneWait | Self::SpinWait => &[EventKind::ContentionBegin, EventKind::ContentionEnd],
            Self::DirectReclaim => &[EventKind::DirectReclaimBegin, EventKind::DirectReclaimEnd],
        }
    }
}

impl Condition {
    /// The kinds of events that show durations of the condition's kind.
    pub(crate) const fn events(self) -> &'static [EventKind] {
        self.quantity.events()
    }

    /// Whether call chains are needed to recognise durations of the condition's kind.
    pub(crate) fn needs_call_chains(self) -> bool {
        self.quantity == Quantity::ZoneWait
    }
}

/// A text that is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{text:?} is not a condition; write one like 'zone_wait_us > 500', 'spin_wait_us > 500' or 'reclaim_us > 10000'"
)]
pub struct NoCondition {
    text: String,
}

impl FromStr for Condition {
    type Err = NoCondition;

    fn from_str(text: &str) -> Result<Self, NoCondition> {
        let parse = || {
            let (name, number) = text.split_once('>')?;
            let quantity = Quantity::ALL.into_iter().find(|quantity| quantity.name() == name.trim())?;
            let number = number.trim();
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            let above_us = number.parse().ok().filter(|_| is_number)?;
            Some(Self { quantity, above_us })
        };
        parse().ok_or_else(|| NoCondition { text: text.to_owned() })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.quantity.name(), self.above_us)
    }
}

/// An occurrence that met the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The condition.
    pub condition: Condition,
    /// The duration of the occurrence.
    pub took_us: u64,
    /// The part of the kernel that waited for a lock, if known.
    pub caller: Option<Caller>,
    /// CPU where the occurrence ended.
    pub cpu: u16,
    /// The task that waited or reclaimed.
    pub pid: u32,
    /// Time when the occurrence ended, by the trace's clock.
    pub at_ns: u64,
}

/// Searches events, in order of time, for an occurrence that meets a condition.
#[derive(Debug)]
pub(crate) struct Lookout {
    condition: Condition,
    waits: LockWaits,
    /// Tasks that reclaim now, each with the time when its reclaim began. In a kernel, only few tasks reclaim
    /// at the same time.
    reclaiming: Vec<(u32, u64)>,
}

/// Maximum number of tasks that reclaim at once.
const RECLAIMING_MAX: usize = 4096;

impl Lookout {
    pub(crate) fn new(condition: Condition) -> Self {
        Self { condition, waits: LockWaits::default(), reclaiming: Vec::new() }
    }

    /// Takes an event. Returns `Some` if a duration that ends with this event meets the condition.
    pub(crate) fn see(&mut self, event: &Event) -> Option<Met> {
        let (took_ns, caller) = match event.kind {
            EventKind::ContentionBegin => {
                self.waits.begin(event);
                return None;
            }
            EventKind::ContentionEnd => {
                let wait = self.waits.end(event).filter(|wait| wait.is_spin)?;
                let is_of_zone = wait.caller.is_some_and(Caller::is_of_zone);
                if self.condition.quantity == Quantity::ZoneWait && !is_of_zone {
                    return None;
                }
                (wait.wait_ns, wait.caller)
            }
            EventKind::DirectReclaimBegin => {
                self.reclaiming.truncate(RECLAIMING_MAX - 1);
                self.reclaiming.push((event.pid, event.ts_ns));
                return None;
            }
            EventKind::DirectReclaimEnd => {
                let at = self.reclaiming.iter().rposition(|(pid, _)| *pid == event.pid)?;
                (event.ts_ns.saturating_sub(self.reclaiming.swap_remove(at).1), None)
            }
            _ => return None,
        };
        let took_us = took_ns / 1000;
        (took_us > self.condition.above_us).then_some(Met {
            condition: self.condition,
            took_us,
            caller,
            cpu: event.cpu,
            pid: event.pid,
            at_ns: event.ts_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_written_alike() {
        for text in ["zone_wait_us > 500", "spin_wait_us > 0", "reclaim_us > 18446744073709551615"] {
            assert_eq!(text.parse::<Condition>().unwrap().to_string(), text);
        }
        assert_eq!("zone_wait_us>5".parse(), "zone_wait_us > 5".parse::<Condition>());
        for text in [
            "",
            ">",
            "zone_wait_us",
            "zone_wait_us > ",
            "zone_wait_us > -1",
            "x > 1",
            "zone_wait_us > 1 > 2",
            "zone_wait_us > +5",
            "reclaim_us > 18446744073709551616",
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains("spin_wait_us > 500"), "{text}: {error}");
        }
    }

    fn wait(lookout: &mut Lookout, us: u64, caller: Option<Caller>) -> Option<Met> {
        let order = caller.map_or(0, Caller::code);
        let begin = Event { order, gfp: 1, pid: 9, ..Event::new(EventKind::ContentionBegin, 1000, 3) };
        assert_eq!(lookout.see(&begin), None);
        lookout.see(&Event { pid: 9, ..Event::new(EventKind::ContentionEnd, 1000 + us * 1000, 3) })
    }

    #[test]
    fn only_long_waits_for_the_locks_that_are_meant_count() {
        let mut zone = Lookout::new("zone_wait_us > 500".parse().unwrap());
        assert_eq!(wait(&mut zone, 500, Some(Caller::Drain)), None);
        assert_eq!(wait(&mut zone, 501, Some(Caller::Elsewhere)), None);
        assert_eq!(wait(&mut zone, 501, None), None);
        let met = wait(&mut zone, 501, Some(Caller::Drain)).unwrap();
        assert_eq!(
            (met.took_us, met.caller, met.cpu, met.pid, met.at_ns),
            (501, Some(Caller::Drain), 3, 9, 502_000)
        );
        let mut spin = Lookout::new("spin_wait_us > 500".parse().unwrap());
        assert!(
            wait(&mut spin, 501, None).is_some() && wait(&mut spin, 501, Some(Caller::Elsewhere)).is_some()
        );
    }

    #[test]
    fn reclaim_is_timed_by_task() {
        let mut lookout = Lookout::new("reclaim_us > 10".parse().unwrap());
        let event = |kind, us: u64, pid| Event { pid, ..Event::new(kind, us * 1000, 0) };
        assert_eq!(lookout.see(&event(EventKind::DirectReclaimEnd, 5, 1)), None, "begun before");
        assert_eq!(lookout.see(&event(EventKind::DirectReclaimBegin, 10, 1)), None);
        assert_eq!(lookout.see(&event(EventKind::DirectReclaimBegin, 15, 2)), None);
        assert_eq!(lookout.see(&event(EventKind::DirectReclaimEnd, 20, 1)), None);
        assert_eq!(lookout.see(&event(EventKind::DirectReclaimEnd, 30, 2)).map(|met| met.took_us), Some(15));
    }
}
