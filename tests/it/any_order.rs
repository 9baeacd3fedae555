//! Rows that are damaged, odd or told twice, in any order and in any files: nothing lost or doubled.

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use jobwise::history::Summary;
use jobwise::history::breakdown::{Dimension, breakdown};
use jobwise::history::workloads::{Workload, workloads};
use jobwise::model::{History, Idle, Run};
use jobwise::sched::{Filter, Saved, Users};
use proptest::prelude::*;

use crate::run::{Test, fixture};

const MESSY: &str = "JobID|User|Account|State|ExitCode|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|\
                     NNodes|AllocTRES|NodeList|TotalCPU|MaxRSS|JobName";

/// A record of the kinds that are seen to break readers: names of any bytes, cut rows, numbers of no
/// sense, ids that come round again, clocks that go back, requeues, tasks that wait.
fn messy_record() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec![
        &b"plain"[..],
        b"a|b|c",
        b"two\nlines",
        b"x\n2nd line",
        b"tab\there",
        b"caf\xe9 \xff\xfe",
        b"unit\x1fsep@~@",
        b"\xe2\x80\xae|\n",
        b"",
    ]);
    let id =
        prop::sample::select(vec!["1", "2", "3_7", "3_8", "4+0", "4+1", "67108863", "4294967295"]);
    let amount = prop::sample::select(vec![
        "00:08:10|02:00:00|8|1",
        "1-00:00:00|UNLIMITED|64|2",
        "99999-99:99:99|Partition_Limit|4294967295|4294967295",
        "INVALID|0|99999999999999999999|-3",
        "00:00:00||0|0",
    ]);
    let state =
        prop::sample::select(vec!["COMPLETED", "FAILED", "CANCELLED by 7", "NODE_FAIL", "X_Y"]);
    (id, 0_u32..3, 0_u32..4, amount, state, name, 0_usize..8).prop_map(
        |(id, again, step, amount, state, name, kind)| {
            // At once, requeued, and years later.
            let submit = [1_500_000_000, 1_500_000_700, 1_796_000_000][again as usize];
            let (start, end) = (submit + 10, if kind == 1 { submit - 50 } else { submit + 500 });
            let (id, times) = match (kind, step) {
                (2, _) => (format!("9_[1-{}]", again + 2), format!("{submit}|Unknown|Unknown")),
                (_, 0) => (id.to_owned(), format!("{submit}|{start}|{end}")),
                _ => (format!("{id}.{step}"), format!("{submit}|{}|{end}", start + step)),
            };
            let tres = "cpu=8,gres/gpu:a=2,gres/gpu=2,mem=4G,node=1";
            let text = format!(
                "{id}|ann|acc{again}|{state}|{step}:0|{times}|{amount}|{tres}|n[1-2]|00:0{step}:07|{step}G|"
            );
            // A row that broke off lacks its last column at least.
            let mut record = text.into_bytes();
            if kind == 3 {
                record.truncate(record.len() - 1 - again as usize);
            } else {
                record.extend_from_slice(name);
            }
            record
        },
    )
}

/// The history of files that are read together.
fn load(files: &[Vec<u8>]) -> History {
    let mut saved = Saved::new(TimeZone::UTC, Vec::new());
    for file in files {
        saved.read(Path::new("saved"), file).expect("a history");
    }
    saved.finish(&Filter {
        users: Users::All,
        states: Vec::new(),
        accounts: Vec::new(),
        partitions: Vec::new(),
        qos: Vec::new(),
        clusters: Vec::new(),
        names: Vec::new(),
        since: Timestamp::MIN,
        until: Timestamp::MAX,
    })
}

/// What is exported of it.
fn told(history: &History) -> Vec<String> {
    let flat = |run: &Run| {
        let values = run.flat(&history.names).map(|(name, value)| format!("{name}={value}"));
        format!("{} earlier={}", values.collect::<Vec<_>>().join(" "), run.earlier)
    };
    history.runs.iter().map(flat).collect()
}

/// The sums that `stats` and `overview` tell.
fn sums(history: &History) -> String {
    let idle = Idle { least_seconds: 300, most_busy_permille: 10, most_bytes_per_second: 1 };
    let by = |dimension| breakdown(history, dimension, (0, i64::MAX), &TimeZone::UTC, &idle);
    let of = |workload: Workload| {
        let mut summary = Summary::default();
        workload.runs(history).for_each(|run| summary.add(run, &idle));
        (workload.label, workload.names, summary)
    };
    let workloads: Vec<_> = workloads(history).into_iter().map(of).collect();
    format!("{:?} {:?} {workloads:?}", by(Dimension::Account), by(Dimension::Week))
}

fn file_of(records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = MESSY.as_bytes().to_vec();
    for record in records {
        file.push(b'\n');
        file.extend_from_slice(record);
    }
    file.push(b'\n');
    file
}

proptest! {
    /// Bad input too: each record is read or counted, whatever its order and its file; what is told
    /// of it, and every sum, stay the same.
    #[test]
    fn bad_rows_are_counted_and_change_no_sum(
        (records, shuffled) in prop::collection::vec(messy_record(), 0..40)
            .prop_flat_map(|records| (Just(records.clone()), Just(records).prop_shuffle())),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let whole = load(&[file_of(&records)]);
        let broken = |record: &&Vec<u8>| memchr::memchr_iter(b'|', record).count() < 16;
        let unreadable = records.iter().filter(broken).count() as u64;
        prop_assert_eq!(whole.rows.unreadable, unreadable);
        prop_assert_eq!(whole.rows.read + unreadable, records.len() as u64);
        // Nothing is lost: what was read is a run, told again by another row, or a step of a job.
        let is_step = |record: &&Vec<u8>| {
            let id = record.split(|byte| *byte == b'|').next().unwrap_or_default();
            id.contains(&b'.') && !broken(record)
        };
        let steps = records.iter().filter(is_step).count() as u64;
        let runs = whole.rows.read - steps;
        prop_assert!(whole.runs.len() as u64 <= runs);
        prop_assert!(runs - whole.runs.len() as u64 <= whole.rows.repeated);
        // Any order, any files.
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(shuffled.len() + 1)).collect();
        cuts.sort_unstable();
        let mut files = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([shuffled.len()]) {
            files.push(file_of(&shuffled[from..cut]));
            from = cut;
        }
        let other = load(&files);
        prop_assert_eq!(told(&other), told(&whole));
        prop_assert_eq!(other.rows, whole.rows);
        prop_assert_eq!(sums(&other), sums(&whole));
        // Twice is once.
        files.extend(files.clone());
        let twice = load(&files);
        prop_assert_eq!(told(&twice), told(&whole));
        prop_assert_eq!(sums(&twice), sums(&whole));
        prop_assert_eq!(twice.rows.unreadable, 2 * unreadable);
    }
}

/// Rows of a history that has some of everything, by a seed.
fn shuffled(mut records: Vec<Vec<u8>>, seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed | 1;
    for index in (1..records.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        records.swap(index, (state >> 33) as usize % (index + 1));
    }
    records
}

/// Tells the first line that differs, of answers of thousands.
#[track_caller]
fn same(answers: &[String], expected: &[String]) {
    for (answer, expected) in answers.iter().zip(expected) {
        for (line, other) in answer.lines().zip(expected.lines()) {
            assert_eq!(line, other);
        }
        assert_eq!(answer, expected);
    }
}

#[test]
fn any_order_and_any_files_give_the_same_bytes() {
    // What `sacct -a -D -P -o ALL` of 22.05 printed, with names of several lines.
    let test = Test::new("any-order");
    let fixture = fixture("slurm-22.05/sacct-all-fields.psv");
    let (heading, rows) = fixture.split_once('\n').expect("a heading");
    // A record may have several lines: it is whole when its columns are all there.
    let columns = heading.matches('|').count();
    let mut records: Vec<Vec<u8>> = Vec::new();
    for line in rows.lines() {
        match records.last_mut() {
            Some(last) if memchr::memchr_iter(b'|', last).count() < columns => {
                last.push(b'\n');
                last.extend_from_slice(line.as_bytes());
            }
            _ => records.push(line.as_bytes().to_vec()),
        }
    }
    assert!(records.len() > 40, "{}", records.len());
    let write = |name: &str, records: &[Vec<u8>]| {
        let mut file = heading.as_bytes().to_vec();
        for record in records {
            file.push(b'\n');
            file.extend_from_slice(record);
        }
        file.push(b'\n');
        test.file(&format!("work/{name}"), &file);
    };
    let commands: [&[&str]; 5] = [
        &["stats", "--by", "user", "--json"],
        &["stats", "--by", "week", "--format", "csv"],
        &["overview", "--json"],
        &["export"],
        &["export", "--format", "csv"],
    ];
    write("whole", &records);
    let answers = |files: &[&str]| {
        commands
            .map(|command| test.run(&[command, &["--from"], files].concat()).ends(0).stdout.clone())
    };
    let expected = answers(&["whole"]);
    for seed in 1..4 {
        let records = shuffled(records.clone(), seed);
        let third = records.len() / 3;
        write("a", &records[..third]);
        write("b", &records[third..2 * third]);
        write("c", &records[2 * third..]);
        same(&answers(&["c", "a", "b"]), &expected);
        // Twice is once.
        same(&answers(&["b", "a", "whole", "c", "a"]), &expected);
    }
    // An export of the parts is the export of the whole, read back from either form.
    test.file("work/lines.ndjson", expected[3].as_bytes());
    test.file("work/table.csv", expected[4].as_bytes());
    for files in [&["lines.ndjson"][..], &["table.csv"], &["table.csv", "lines.ndjson"]] {
        // What has a moment is not local any more, so nothing is noted of that.
        let mut answers = answers(files);
        answers[0].clone_from(&expected[0]);
        answers[2].clone_from(&expected[2]);
        same(&answers, &expected);
    }
}
