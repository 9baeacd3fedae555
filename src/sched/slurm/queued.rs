//! The jobs of `squeue`: those that run, and those that wait.
//!
//! `--Format` gives each field whole when it has a text to end it instead of a width, and knows what
//! a job has of everything (`tres-alloc`), which the one-letter form does not. Nothing is escaped, so
//! the end is three characters that nobody types, and the name stands last.

use crate::model::{JobId, Known, QueuedJob, State, Tres};
use crate::text;

use super::controller::{self, Clock};
use super::rows::DELIMITER;
use super::values;

/// The fields, in their order.
pub(super) const FIELDS: [&str; 20] = [
    "JobArrayID",
    "UserName",
    "Account",
    "Partition",
    "QOS",
    "State",
    "NodeList",
    "NumNodes",
    "NumCPUs",
    "tres-alloc",
    "StartTime",
    "EndTime",
    "TimeLimit",
    "Reason",
    "PriorityLong",
    "Licenses",
    "OverSubscribe",
    "Reservation",
    "ReqNodes",
    "Name",
];

/// The argument that asks for them.
pub(super) fn format() -> String {
    let fields = FIELDS.map(|field| format!("{field}:{DELIMITER}"));
    format!("--Format={}", fields.join(","))
}

/// The jobs of an output, and how many records could not be read.
pub(super) fn jobs(output: &[u8], clock: &Clock) -> (Vec<QueuedJob>, usize) {
    let text = text::lossy(output);
    let mut jobs = Vec::new();
    let mut unreadable = 0;
    let mut cells: Vec<&str> = Vec::with_capacity(FIELDS.len());
    let mut rest: &str = &text;
    // Records are told by the number of their cells: a name may hold a newline.
    while let Some((cell, after)) = rest.split_once(DELIMITER) {
        cells.push(cell);
        rest = after;
        if cells.len() == FIELDS.len() {
            match job(&cells, clock) {
                Some(job) => jobs.push(job),
                None => unreadable += 1,
            }
            cells.clear();
            rest = rest.split_once('\n').map_or("", |(_, next)| next);
        }
    }
    unreadable += usize::from(!(cells.is_empty() && rest.trim().is_empty()));
    (jobs, unreadable)
}

fn job(cells: &[&str], clock: &Clock) -> Option<QueuedJob> {
    let get = |field: &str| {
        let position = FIELDS.iter().position(|known| *known == field);
        position.and_then(|position| cells.get(position)).copied().unwrap_or_default()
    };
    Some(QueuedJob {
        id: get("JobArrayID").trim().parse::<JobId>().ok()?,
        name: get("Name").to_owned(),
        user: values::text(get("UserName")),
        account: values::text(get("Account")),
        partition: values::text(get("Partition")),
        qos: values::text(get("QOS")),
        state: State::parse(get("State")),
        node_list: values::word(get("NodeList")),
        nodes: values::count(get("NumNodes")),
        cpus: values::count(get("NumCPUs")),
        tres: Tres::parse(get("tres-alloc")),
        start: values::moment(get("StartTime"), &clock.0),
        end: values::moment(get("EndTime"), &clock.0),
        limit: match values::span(get("TimeLimit")) {
            // `squeue` knows no other form of "none".
            Known::Unreadable(text) if *text == "NOT_SET" => Known::NotGathered,
            known => known,
        },
        reason: values::word(get("Reason")),
        priority: values::count(get("PriorityLong")),
        licences: controller::counted(get("Licenses")),
        // Empty in a recording that was made without it.
        reservation: match get("Reservation") {
            "" => Known::NotGathered,
            name => Known::Value(values::word(name).unwrap_or_default()),
        },
        wanted_nodes: values::word(get("ReqNodes")),
        sharing: values::word(get("OverSubscribe")),
    })
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn jobs_of_slurm_22_05_are_read_whatever_their_names() {
        // `SLURM_TIME_FORMAT=%s squeue --all --noheader --Format=...` of the lab; the second name
        // holds a newline.
        let text = "660@~@alice@~@physics@~@gpu@~@normal@~@RUNNING@~@g01@~@1@~@4@~@\
            cpu=4,mem=8000M,node=1,billing=25,gres/gpu=2,gres/gpu:a100=2@~@1796046949@~@1796047549@~@\
            10:00@~@None@~@2933@~@(null)@~@OK@~@training@~@@~@wrap@~@\n\
            662_[2-3%1]@~@alice@~@physics@~@short@~@normal@~@PENDING@~@@~@2@~@2@~@\
            cpu=2,mem=200M,node=2,billing=2,license/matlab=1@~@N/A@~@N/A@~@4:00@~@\
            JobArrayTaskLimit@~@2557@~@matlab:1@~@OK@~@(null)@~@g[01-02]@~@we ird|na\nme@~@\n\
            7@~@alice@~@cut";
        let (jobs, unreadable) = jobs(text.as_bytes(), &Clock(TimeZone::UTC));
        assert_eq!((jobs.len(), unreadable), (2, 1));
        assert_eq!(jobs[0].tres.gpus(), Some(2));
        assert_eq!(jobs[0].node_list.as_deref(), Some("g01"));
        assert_eq!(jobs[0].reason, None);
        assert_eq!(
            (jobs[0].reservation.value().map(String::as_str), &jobs[0].wanted_nodes),
            (Some("training"), &None)
        );
        assert_eq!(jobs[0].end.get().map(jiff::Timestamp::as_second), Some(1_796_047_549));
        assert_eq!(jobs[1].id.to_string(), "662_[2-3%1]");
        assert_eq!(
            (jobs[1].reservation.clone(), jobs[1].wanted_nodes.as_deref()),
            (Known::Value(String::new()), Some("g[01-02]"))
        );
        assert_eq!(jobs[1].name, "we ird|na\nme");
        assert_eq!(jobs[1].licences, [("matlab".to_owned(), 1)]);
        assert_eq!((jobs[1].end.clone(), jobs[1].node_list.clone()), (Known::NotGathered, None));
    }

    proptest! {
        #[test]
        fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..300), ends in 0..40_usize) {
            let text = [bytes.as_slice(), &DELIMITER.repeat(ends).into_bytes(), &bytes].concat();
            let _ = jobs(&text, &Clock(TimeZone::UTC));
        }
    }
}
