//! Describes how many requests of a recording a simulation played or left out, how many frees the simulation
//! inserted, and how many events the recording lacks.

use pageset_study::load::Played;

/// Returns the key in JSON and CSV, the value and the description of each count.
fn table(played: &Played) -> [(&'static str, u64, &'static str); 7] {
    // The pattern lists all fields, so that the compiler reports a count that is forgotten here.
    let Played {
        events,
        bulk_pages,
        unmatched_frees,
        failed_in_recording,
        impossible,
        made_up_frees,
        lost_events,
    } = *played;
    [
        ("played_events", events, "allocations and frees are played"),
        (
            "played_bulk_pages",
            bulk_pages,
            "of these allocations are pages of bulk allocations, which are played one by one",
        ),
        ("unmatched_frees", unmatched_frees, "frees of pages whose allocation was not recorded are left out"),
        (
            "failed_in_recording",
            failed_in_recording,
            "allocations that failed when they were recorded are left out",
        ),
        ("impossible", impossible, "allocations of an impossible size are left out"),
        (
            "made_up_frees",
            made_up_frees,
            "frees that are missing in the recording are inserted when the page is allocated again",
        ),
        ("lost_events", lost_events, "events are missing from the recording"),
    ]
}

/// Returns each count with its key in JSON and CSV.
pub(super) fn counts(played: &Played) -> Vec<(&'static str, u64)> {
    table(played).map(|(key, count, _)| (key, count)).to_vec()
}

/// A sentence with the counts that are not 0.
pub(super) fn note(played: &Played) -> String {
    let occurred = table(played).into_iter().enumerate().filter(|(at, (_, count, _))| *at == 0 || *count > 0);
    let parts: Vec<_> = occurred.map(|(_, (_, count, what))| format!("{count} {what}")).collect();
    format!("From the recording: {}.", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_only_what_occurred() {
        let played = Played { events: 9, unmatched_frees: 2, ..Played::default() };
        assert_eq!(
            note(&played),
            "From the recording: 9 allocations and frees are played; 2 frees of pages whose allocation was not recorded are left out."
        );
        let all = Played {
            events: 1,
            bulk_pages: 2,
            unmatched_frees: 3,
            failed_in_recording: 4,
            impossible: 5,
            made_up_frees: 6,
            lost_events: 7,
        };
        assert_eq!(counts(&all).iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
        for count in 2..=7 {
            assert!(note(&all).contains(&format!(" {count} ")), "{count}");
        }
    }
}
