//! A history reads the same in a row as the record of one job does.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::Value;

use super::super::fields::{Fields, Layout};
use super::super::{records, rows};
use super::*;
use crate::model::Job;

/// Answers to a query by id, as far as a release's were recorded.
const NAMES: [&str; 10] = [
    "sacct-array",
    "sacct-gpu",
    "sacct-het",
    "sacct-names",
    "sacct-node-fail",
    "sacct-oom",
    "sacct-oom-step",
    "sacct-pending",
    "sacct-requeue",
    "sacct-segv",
];

type Flat = Vec<Vec<(&'static str, Value)>>;

fn flat(runs: &[Run], names: &Names) -> Flat {
    runs.iter().map(|run| run.flat(names).collect()).collect()
}

/// The runs of rows as a history reads them, and as the records of jobs.
fn both(rows: &[Row<'_>], reading: Reading) -> (Flat, Flat) {
    let mut loader = Loader::new(reading, Clock::new(TimeZone::UTC));
    for row in rows {
        loader.add(row);
    }
    let history = loader.finish(0);
    let (jobs, _) = records::jobs(rows, reading);
    let mut recorded = History::default();
    let with_earlier = |job: &Job| [job.earlier.clone(), vec![job.clone()]].concat();
    for job in jobs.iter().flat_map(with_earlier) {
        let run = Run::of(&job, &mut recorded.names);
        recorded.runs.push(run);
    }
    recorded.settle();
    (flat(&history.runs, &history.names), flat(&recorded.runs, &recorded.names))
}

#[test]
fn the_rows_of_four_releases_are_the_same_runs_on_both_ways() {
    let mut compared = 0;
    for version in ["20.11", "22.05", "24.11", "26.05"] {
        let folder = format!("{}/fixtures/slurm-{version}", env!("CARGO_MANIFEST_DIR"));
        #[expect(clippy::disallowed_methods, reason = "a test reads its fixtures")]
        let read = |name: &str| std::fs::read(format!("{folder}/{name}.txt"));
        let fields = Fields::from_help(&read("sacct-helpformat").expect("there")).expect("fields");
        let layout = fields.layout(true);
        for name in NAMES {
            let Ok(text) = read(name) else { continue };
            let text = crate::sched::slurm::tests::widened(&layout.format(), &text);
            let (rows, _) = rows::read(&text, &layout);
            let (history, recorded) = both(&rows, Reading::default());
            assert_eq!(history, recorded, "{version} {name}");
            compared += history.len();
        }
    }
    assert!(compared > 10, "{compared}");
}

/// A job with two steps: each column one of what Slurm prints there.
fn columns() -> Vec<(&'static str, Vec<&'static str>)> {
    let moments = || vec!["1795000000", "1795003600", "Unknown"];
    vec![
        ("State", vec!["COMPLETED", "FAILED", "CANCELLED by 7", "RUNNING", "OUT_OF_MEMORY"]),
        ("ExitCode", vec!["0:0", "1:0", "0:125", ""]),
        ("User", vec!["alice", ""]),
        ("UID", vec!["1001", ""]),
        ("Reason", vec!["None", "Priority", ""]),
        ("Submit", vec!["1795000000"]),
        ("Start", moments()),
        ("End", moments()),
        ("Elapsed", vec!["00:10:00", "1-00:00:00", "00:00:00"]),
        ("Suspended", vec!["00:00:00", "00:01:00"]),
        ("Timelimit", vec!["02:00:00", "UNLIMITED", "Partition_Limit", ""]),
        ("ReqMem", vec!["4G", "2000Mc", "8Gn", "0"]),
        ("NNodes", vec!["1", "2", "0"]),
        ("AllocCPUS", vec!["8", "0"]),
        ("AllocTRES", vec!["", "cpu=8,mem=4G,node=1", "cpu=8,gres/gpu:a=2,gres/gpu=2,mem=1.5G"]),
        ("NodeList", vec!["n[1-2]", "None assigned"]),
        ("Restarts", vec!["", "0", "2"]),
        ("TotalCPU", vec!["00:05:00", "00:00.116", "00:00:00"]),
        ("NTasks", vec!["", "1", "3"]),
        ("MaxRSS", vec!["", "0", "1956K", "1.5G"]),
        ("ConsumedEnergyRaw", vec!["", "0", "5000"]),
        (
            "TRESUsageInTot",
            vec!["", "cpu=00:04:00,fs/disk=77,mem=2G,gres/gpuutil=50,gres/gpumem=1G"],
        ),
        ("TRESUsageOutTot", vec!["", "fs/disk=9"]),
        ("JobName", vec!["a", "None"]),
    ]
}

fn cells(id: &'static str) -> impl Strategy<Value = BTreeMap<String, String>> {
    let columns: Vec<_> = columns()
        .into_iter()
        .map(|(name, values)| (Just(name.to_owned()), prop::sample::select(values)))
        .collect();
    columns.prop_map(move |cells| {
        let id = ("JobID".to_owned(), id.to_owned());
        cells.into_iter().map(|(name, cell)| (name, cell.to_owned())).chain([id]).collect()
    })
}

proptest! {
    #[test]
    fn any_row_is_the_same_run_on_both_ways(
        (job, batch, step) in (cells("7"), cells("7.batch"), cells("7.0")),
        (folded, cpu_time_lost, sums_gpus) in any::<(bool, bool, bool)>(),
    ) {
        let layout = Layout::whole();
        let rows = [job, batch, step];
        let rows: Vec<Row<'_>> = rows.iter().map(|row| Row::from_fields(&layout, row)).collect();
        let (history, recorded) = both(&rows, Reading { folded, cpu_time_lost, sums_gpus });
        prop_assert_eq!(history, recorded);
    }
}
