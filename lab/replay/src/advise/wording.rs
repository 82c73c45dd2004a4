//! Writes the verdict as sentences that name the figures behind it.

use pageset_core::Policy;

use super::findings::{Evidence, Waiting};
use super::forecast::Forecast;
use super::latency::Latency;
use super::spending::Figure;
use super::verdict::{Matter, SAVED_PERCENT, Verdict, Why};
use crate::replay::RECORD_LONGER;

/// Converts a number of pages of 4 KiB to MiB.
fn mib(pages: u64) -> String {
    format!("{:.1} MiB", pages as f64 / 256.0)
}

pub(super) fn sentences(
    findings: &Evidence,
    forecasts: &[Forecast],
    verdict: &Verdict,
    latency: Option<&Latency>,
) -> Vec<String> {
    let mut all = Vec::new();
    match verdict {
        Verdict::LeaveAlone => {
            all.push("No: leave the settings alone.".to_owned());
            all.push(spent(findings));
            all.push(most(findings));
            all.push(held(findings));
        }
        Verdict::Set { matter, forecast } => {
            let forecast = &forecasts[*forecast];
            all.push(format!("Yes: {}", because(*matter, findings)));
            all.push(format!(
                "`sysctl {}` {}{}",
                forecast.settings,
                would_save(forecast, *matter),
                would(forecast, findings)
            ));
            all.push(price(forecast, findings));
        }
        Verdict::ChangeKernel { matter, forecast } => {
            let forecast = &forecasts[*forecast];
            let kernel = forecast.kernel.as_deref().unwrap_or_default();
            all.push(format!("Yes: {}", because(*matter, findings)));
            all.push(format!(
                "No setting certainly helps. The kernel {kernel} {}{}",
                would_save(forecast, *matter),
                would(forecast, findings)
            ));
            all.push(price(forecast, findings));
        }
        Verdict::NothingHelps { matter: Matter::CpuTime } => {
            all.push(format!("No: no setting certainly saves {SAVED_PERCENT} % of the CPU time."));
            all.push(spent(findings));
            all.push(most(findings));
            all.push(held(findings));
        }
        Verdict::NothingHelps { matter } => {
            all.push(format!("Yes, but no setting certainly helps: {}", because(*matter, findings)));
            all.push("Each forecast's range includes the present number of visits.".to_owned());
        }
        Verdict::Matters { matter } => {
            all.push(format!("Yes: {}", because(*matter, findings)));
            all.push(most(findings));
            all.push("Counts do not show which setting helps. Record events, without --counts.".to_owned());
        }
        Verdict::Unknown { why } => {
            all.push(format!("This recording does not say. {}", unknown(*why, findings)));
        }
    }
    all.extend(latency.map(|latency| {
        format!(
            "Simulated on {}: 99 % of the allocations take at most {:.0} ns, now {:.0}; 99.9 % at most {:.0} ns, now {:.0}.",
            latency.machine, latency.advised.p99_ns, latency.now.p99_ns, latency.advised.p999_ns, latency.now.p999_ns
        )
    }));
    all.push(if findings.is_counted { counted(findings) } else { reached(findings) });
    all.extend(counted_time(findings));
    if let Some(percent) = findings.remote_percent {
        all.push(format!(
            "{percent:.1} % of the pages were freed by another CPU than the one that allocated them."
        ));
    }
    if let (Some(all_percent), Some(longest)) = (findings.other_spin_percent, findings.other_longest_percent)
    {
        all.push(format!(
            "CPUs waited for other spinning locks for {} of their time, and for a single one of these locks for {}.",
            share(all_percent),
            share(longest)
        ));
    }
    all
}

fn because(matter: Matter, findings: &Evidence) -> String {
    match matter {
        Matter::CpuTime => lowered(spent(findings)),
        Matter::HeldMemory => format!("{} {}", lowered(held(findings)), shortage(findings)),
    }
}

/// Writes the share of the CPU time that waits and visits took.
fn spent(findings: &Evidence) -> String {
    let waited = waited(findings);
    let spending = &findings.spending;
    let Some(cost) = &spending.cost else {
        return format!(
            "{waited} The cost of a visit to a zone was not measured; run `pageset bench machine`, then record again."
        );
    };
    let Some(visits) = spending.visits_percent else { return waited };
    let of = if spending.is_busy_time { "the busy time of all CPUs" } else { "the time of all CPUs" };
    let unsure = if cost.visit_ns.is_wide() {
        " (the machine was busy then: `pageset bench machine` on a quiet one narrows this)"
    } else {
        ""
    };
    format!(
        "{waited} Visits to the zones took {} of {of}, at the cost measured there on {}{unsure}.",
        shares(visits.low, visits.high),
        cost.date
    )
}

/// Writes the most CPU time that a setting could save.
fn most(findings: &Evidence) -> String {
    match findings.spending.most_percent {
        Some(percent) if percent < SAVED_PERCENT => {
            format!(
                "A setting could save {} of the CPU time at most: nothing you would notice.",
                share(percent)
            )
        }
        Some(percent) => format!("A setting could save {} of the CPU time at most.", share(percent)),
        None => match findings.spending.most_percent_at_any_cost() {
            Some(percent) => format!(
                "Even visits of 100 us each would be {} of the CPU time: nothing you would notice.",
                share(percent)
            ),
            None => "The saving of a setting is not known.".to_owned(),
        },
    }
}

fn would_save(forecast: &Forecast, matter: Matter) -> String {
    match forecast.saved_percent {
        Some((least, most)) if matter == Matter::CpuTime => {
            format!("would save {least:.1} to {most:.1} % of the CPU time. It ")
        }
        _ => String::new(),
    }
}

fn waited(findings: &Evidence) -> String {
    match findings.waiting {
        None => "How long CPUs waited for zone locks is not recorded.".to_owned(),
        Some(Waiting::Measured { waits: 0, .. }) => "No CPU waited for a zone lock.".to_owned(),
        Some(Waiting::Measured { percent, waits }) => {
            format!("CPUs waited for zone locks for {} of their time ({waits} waits).", share(percent))
        }
        Some(Waiting::AtMost { percent }) => format!(
            "CPUs waited for zone locks for {} of their time, at most: no longer than the locks were held.",
            share(percent)
        ),
    }
}

fn held(findings: &Evidence) -> String {
    let most = findings.held_pages_peak.max(findings.held_pages_end);
    match (most, findings.held_percent()) {
        (Some(pages), Some(percent)) => format!(
            "Page sets held {} {pages} pages ({}), {} of the pages of all zones, {}.",
            if findings.is_counted { "at the end" } else { "at most" },
            mib(pages),
            share(percent),
            match findings.is_memory_short() {
                Some(true) => "and memory was short",
                Some(false) => "and memory was not short",
                None => "and whether memory was short is not recorded",
            },
        ),
        _ => "How much page sets held is not recorded.".to_owned(),
    }
}

fn shortage(findings: &Evidence) -> String {
    let times = |times: Option<u64>| {
        times.map_or_else(|| "an unknown number of".to_owned(), |times| times.to_string())
    };
    format!(
        "The background reclaimer was woken {} times, and tasks reclaimed for themselves {} times.",
        times(findings.kswapd_wakes),
        times(findings.direct_reclaims)
    )
}

fn reached(findings: &Evidence) -> String {
    let visits = findings.visits.map_or_else(
        || ". How often page sets went to the zones is not recorded.".to_owned(),
        |visits| {
            format!(", in {:.0} visits a second.", visits as f64 / findings.seconds.max(f64::MIN_POSITIVE))
        },
    );
    match (findings.zone_pages, findings.allocated_pages) {
        (_, Some(0)) => "No page was allocated.".to_owned(),
        (Some(pages), Some(allocated)) => {
            let percent = findings.zone_percent().unwrap_or(0.0);
            format!(
                "{pages} pages came from the zones for {allocated} that were allocated ({percent:.1} %){visits}"
            )
        }
        (Some(pages), None) => {
            format!("{pages} pages came from the zones. How many were allocated is not recorded.")
        }
        (None, Some(allocated)) => {
            format!("{allocated} pages were allocated. How many came from the zones is not recorded.")
        }
        (None, None) => "How many pages were allocated is not recorded.".to_owned(),
    }
}

/// Writes the counts of a recording of counts, each with its interval.
fn counted(findings: &Evidence) -> String {
    let load = &findings.spending.load;
    let of = |figure: Option<Figure>, what: &str| match figure {
        None => format!("an unknown number of {what}"),
        Some(Figure { low, high, .. }) if low == high => format!("{low:.0} {what}"),
        Some(Figure { low, high, .. }) => format!("{low:.0} to {high:.0} {what}"),
    };
    let allocated = findings.allocated_pages;
    let allocated = allocated.map_or_else(String::new, |pages| format!(" {pages} pages were allocated."));
    let is_estimate = [load.visits, load.moved_pages].iter().flatten().any(|figure| figure.low < figure.high);
    let estimate = if is_estimate { " The estimate's 95 % interval." } else { "" };
    format!(
        "{} moved {} between zones and page sets.{allocated}{estimate}",
        sentence(of(load.visits, "visits")),
        of(load.moved_pages, "blocks")
    )
}

/// Writes the parts of the time when events were counted.
fn counted_time(findings: &Evidence) -> Option<String> {
    let time = findings.counted_time?;
    let of = |what: &str, percent: Option<f64>| percent.map(|percent| format!("{what} in {percent:.1} %"));
    Some(match (of("visits", time.visits_percent), of("moved blocks", time.moved_percent)) {
        (Some(visits), Some(moved)) => format!("This was counted: {visits} of the time, {moved}."),
        (Some(one), None) | (None, Some(one)) => format!("This was counted: {one} of the time."),
        (None, None) => "This was counted: neither visits nor moved blocks.".to_owned(),
    })
}

/// Returns the text with "An" in place of "an" at its beginning.
fn sentence(text: String) -> String {
    match text.strip_prefix("an ") {
        Some(rest) => format!("An {rest}"),
        None => text,
    }
}

fn would(forecast: &Forecast, findings: &Evidence) -> String {
    let parts = match forecast.visits_percent {
        Some((low, high)) => format!("{low:.0} to {high:.0} % of the visits to the zones"),
        None => format!("{} visits to the zones", forecast.visits),
    };
    format!(
        "would leave {parts}: {} are predicted, now {}; the 80 % interval is {} to {}.",
        forecast.visits,
        findings.visits.unwrap_or(0),
        forecast.visits_range.low,
        forecast.visits_range.high
    )
}

fn price(forecast: &Forecast, findings: &Evidence) -> String {
    let now = findings.held_pages_peak.map_or_else(String::new, |pages| format!(", now {pages}"));
    format!(
        "Page sets would hold {} pages ({}) at most{now}, and {} after a minute without work.",
        forecast.held_pages_peak,
        mib(forecast.held_pages_peak),
        forecast.held_pages_idle
    )
}

fn unknown(why: Why, findings: &Evidence) -> String {
    let doubts = &findings.doubts;
    match why {
        Why::NotRecorded => doubts
            .not_recorded
            .as_ref()
            .or(doubts.shortage_not_recorded.as_ref())
            .cloned()
            .unwrap_or_default(),
        Why::SettingChanged => {
            let change = doubts.setting_changed.as_deref().unwrap_or("A setting changed");
            format!("It does not say when {change}. Record again while no setting changes.")
        }
        Why::PartOfMachine => doubts.part_of_machine.clone().unwrap_or_default(),
        Why::TooShort => format!(
            "It has only {} allocated pages in {:.2} s. Record the load for longer.",
            findings.allocated_pages.unwrap_or(0),
            findings.seconds
        ),
        Why::EventsLost => format!(
            "{} events are missing, and the recording has {}. Record with larger buffers, or fewer CPUs.",
            findings.lost_events, findings.events
        ),
        Why::OwnKernelMissed => format!(
            "The replay of the recorded kernel itself is {:+.0} % off. {}",
            findings.own_off_percent.unwrap_or(0.0),
            RECORD_LONGER[1]
        ),
        Why::UnknownKernel => {
            "No policy is known for its kernel. `pageset policies` names those that are.".to_owned()
        }
        Why::CostNotMeasured => format!(
            "Cost not measured: the recording has {:.0} visits to the zones a second, and the cost of a visit was not \
             measured on its machine. Run `pageset bench machine` there when it is quiet: a minute, as root, under two settings by turns. \
             Then record again.",
            findings.visits.unwrap_or(0) as f64 / findings.seconds.max(f64::MIN_POSITIVE)
        ),
        Why::EventsNeeded if findings.is_memory_short() == Some(true) => {
            format!(
                "{} Only events show whether page sets held much at that time: record without --counts.",
                shortage(findings)
            )
        }
        Why::EventsNeeded => format!(
            "{} Only a forecast from events shows whether a change is worth it: record without --counts.",
            spent(findings)
        ),
        Why::WaitsNotRecorded => format!(
            "The recording has no waits for locks, and these may take as much as {} of the CPUs' time. Record \
             lock:contention_begin and contention_end too.",
            share(findings.waiting.map_or(0.0, Waiting::percent))
        ),
    }
}

/// The warnings: first the notes about the recording in `said`, then consequences of the advice that a user
/// may overlook.
pub(super) fn warnings(
    findings: &Evidence,
    forecasts: &[Forecast],
    verdict: &Verdict,
    policy: Option<&Policy>,
    fraction: u32,
    said: &[String],
) -> Vec<String> {
    let mut all = said.to_vec();
    let tunes = policy.is_some_and(|policy| policy.tuning.is_some());
    if let Verdict::Set { forecast, .. } = verdict {
        let forecast = &forecasts[*forecast];
        if forecast.ends_tuning {
            all.push(
                "A vm.percpu_pagelist_high_fraction other than 0 switches off the kernel's own tuning of page sets, in \
                 every zone and for every load. Back: `sysctl vm.percpu_pagelist_high_fraction=0`."
                    .to_owned(),
            );
        }
        if !forecast.settings.contains("percpu_pagelist_high_fraction") {
            all.push("Higher watermarks keep more memory free, so the reclaimer begins sooner.".to_owned());
        }
        all.push("A sysctl lasts until the next boot. The forecast is for this load; record again after the change.".to_owned());
    }
    if tunes && fraction > 0 {
        all.push(format!(
            "vm.percpu_pagelist_high_fraction is {fraction} here, which stops this kernel from tuning page sets itself."
        ));
    }
    if findings.lost_events > 0 && !matches!(verdict, Verdict::Unknown { why: Why::EventsLost }) {
        all.push(format!("{} events are missing from the recording.", findings.lost_events));
    }
    if findings.is_cut {
        all.push("The file is damaged. All figures are from the part before the damage.".to_owned());
    }
    all
}

/// Writes a share in percent. A small share gets more digits.
fn share(percent: f64) -> String {
    if percent < 0.01 {
        "less than 0.01 %".to_owned()
    } else if percent < 1.0 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Writes a range of two numbers. If both numbers are written alike, writes one number. If the lower number
/// is very small, writes only the upper number, as a maximum.
fn shares(low: f64, high: f64) -> String {
    match (share(low), share(high)) {
        (low, high) if low == high => low,
        (low, high) if low.starts_with("less") => format!("at most {high}"),
        (low, high) => format!("{low} to {high}"),
    }
}

fn lowered(sentence: String) -> String {
    // A sentence that begins with "CPUs" must keep its capital letters.
    match sentence.strip_prefix("Page") {
        Some(rest) => format!("page{rest}"),
        None => sentence,
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Doubts;
    use super::super::verdict::find;
    use super::super::verdict::tests::{forecast, waiting};
    use super::*;
    use crate::fleet::Answer;

    #[test]
    fn advice_names_the_setting_its_range_and_its_price() {
        let findings = waiting(5.0);
        let tuned = Forecast {
            ends_tuning: true,
            ..forecast("vm.percpu_pagelist_high_fraction=8", 100, (80, 130), 9000)
        };
        let forecasts = [tuned];
        let verdict = find(&findings, &forecasts);
        let said = sentences(&findings, &forecasts, &verdict, None).join(" ");
        for part in [
            "Yes: CPUs waited for zone locks for 5.0 %",
            "took less than 0.01 % of the time of all CPUs",
            "=8` would save 4.4 to 4.6 % of the CPU time",
            "900 waits",
            "It would leave 8 to 13 %",
            "80 to 130",
            "9000 pages (35.2 MiB)",
            "now 2000",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let policy = Policy::named("linux-6.18");
        let warned = warnings(&findings, &forecasts, &verdict, policy, 64, &[]).join(" ");
        assert!(warned.contains("switches off") && warned.contains("is 64 here"), "{warned}");
    }

    #[test]
    fn the_sentences_of_each_verdict_begin_with_its_answer() {
        use Matter::{CpuTime, HeldMemory};
        let (findings, forecasts) = (waiting(5.0), [forecast("linux-6.18", 100, (80, 130), 9000)]);
        let mut verdicts = vec![Verdict::LeaveAlone, Verdict::Unknown { why: Why::EventsLost }];
        for matter in [CpuTime, HeldMemory] {
            verdicts.push(Verdict::Set { matter, forecast: 0 });
            verdicts.push(Verdict::ChangeKernel { matter, forecast: 0 });
            verdicts.push(Verdict::NothingHelps { matter });
            verdicts.push(Verdict::Matters { matter });
        }
        for verdict in verdicts {
            let said = sentences(&findings, &forecasts, &verdict, None).remove(0);
            let begins = ["Yes", "No"].map(|word| said.starts_with(word));
            let answer = Answer::of(&verdict);
            assert_eq!(begins, [answer == Answer::Yes, answer == Answer::No], "{verdict:?}: {said}");
        }
    }

    #[test]
    fn what_is_not_recorded_is_said_and_no_figure_is_made_up() {
        let not_recorded = Some("It has no mm_page_free events; record them with X.".to_owned());
        let findings = Evidence {
            waiting: None,
            visits: None,
            zone_pages: None,
            remote_percent: None,
            other_spin_percent: None,
            doubts: Doubts { not_recorded, ..Doubts::default() },
            ..waiting(0.0)
        };
        let said = sentences(&findings, &[], &find(&findings, &[]), None);
        assert_eq!(
            said,
            [
                "This recording does not say. It has no mm_page_free events; record them with X.",
                "40000 pages were allocated. How many came from the zones is not recorded.",
            ]
        );
        let visits_alone = Evidence { zone_pages: Some(10_000), ..findings };
        let said = sentences(&visits_alone, &[], &find(&visits_alone, &[]), None);
        assert!(
            said[1].ends_with("(25.0 %). How often page sets went to the zones is not recorded."),
            "{said:?}"
        );
    }

    #[test]
    fn no_is_said_with_the_figures() {
        let findings = waiting(0.001);
        let said = sentences(&findings, &[], &find(&findings, &[]), None).join(" ");
        for part in [
            "No: leave the settings alone.",
            "nothing you would notice",
            "less than 0.01 %",
            "(75.0 %)",
            "not short",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
