//! A long history, run by run, while `sacct` still prints it.
//!
//! `sacct` and its database hold a whole answer in memory before they print it, so everybody's
//! history is asked for in pieces, one after the other; the jobs of one user are few and take one
//! query. A run that crosses a border is printed for both pieces and belongs to the one it ended in.

use jiff::{SignedDuration, Timestamp};

use crate::model::{Job, JobId, Notice};

use super::fields::Field;
use super::records::{self, Reading};
use super::rows::{Reader, Row};
use super::{Filter, Jobs, SchedError, Users, refusal, unreadable_rows};

impl Jobs<'_> {
    /// Passes on every run that ended in the window (`until` not included), and every record that
    /// is still open, as they come: those of requeued jobs one by one, without name, steps and
    /// usage. After an error what was passed on is incomplete.
    pub fn each(
        &self,
        filter: &Filter,
        sink: &mut dyn FnMut(Job),
    ) -> Result<Vec<Notice>, SchedError> {
        let layout = self.fields()?.summed();
        let reading = Reading { folded: self.is_folded(), cpu_time_lost: false };
        let days = if filter.users == Users::All { self.list_days } else { 0 };
        let mut unreadable = 0;
        for (since, until) in pieces(filter.since, filter.until, days) {
            let last = until == filter.until;
            let cmd = self.selection(filter, (since, until), &layout).arg("--duplicates");
            // A fold holds no row, so nothing needs a cap.
            let cmd = cmd.cap(u64::MAX);
            let mut reader = Reader::new(&layout);
            let mut take = |row: Row<'_>| {
                let Ok((id, None)) = JobId::parse_with_step(row.get(Field::Id)) else { return };
                let job = records::job(&row, id, reading);
                let belongs = job.ended.get().map_or(last, |end| {
                    // Both are known to the second.
                    (since.as_second()..until.as_second()).contains(&end.as_second())
                });
                if belongs {
                    sink(job);
                }
            };
            let mut silent = true;
            let ended = self.runner.stream(&cmd, &mut |piece| {
                silent &= piece.is_empty();
                reader.feed(piece, &mut take);
            });
            unreadable += reader.finish(&mut take);
            if let Some(error) = refusal(&cmd, ended, silent) {
                return Err(error);
            }
        }
        Ok(if unreadable > 0 { vec![unreadable_rows(unreadable)] } else { Vec::new() })
    }
}

/// A window in pieces of at most so many days, in order; in one where `days` is zero.
fn pieces(since: Timestamp, until: Timestamp, days: u64) -> Vec<(Timestamp, Timestamp)> {
    let step = i64::try_from(days).ok().filter(|days| (1..=36_500).contains(days));
    let step = step.map(|days| SignedDuration::from_hours(24 * days));
    let mut pieces = Vec::new();
    let mut begin = since;
    while let Some(end) = step.and_then(|step| begin.checked_add(step).ok())
        && end < until
    {
        pieces.push((begin, end));
        begin = end;
    }
    pieces.push((begin, until));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_touch_and_cover_the_window() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let days = |days: i64| at(days * 86_400);
        assert_eq!(pieces(days(0), days(30), 0), [(days(0), days(30))]);
        let month = pieces(days(0), days(30), 7);
        assert_eq!(month.len(), 5);
        assert_eq!((month[0].0, month[4]), (days(0), (days(28), days(30))));
        assert!(month.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(pieces(days(0), days(7), 7), [(days(0), days(7))]);
        // A window that ends before it begins is sacct's to refuse.
        assert_eq!(pieces(days(7), days(0), 7), [(days(7), days(0))]);
    }
}
