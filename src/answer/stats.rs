//! How much fails, why, and what does that waste?

use jiff::Timestamp;
use serde::Serialize;

use super::{AnswerError, World};
use crate::classify::{Facts, Rules, decide};
use crate::config::{Config, Origin};
use crate::history::{
    Assumption, Carbon, Energy, Held, Method, Outcome, Outcomes, Range, Site, Tally,
};
use crate::knowledge::Notes;
use crate::math::{self, Share};
use crate::model::{BaseState, Job, Notice, Outcome as Judged};
use crate::sched::{Filter, SchedError, Users};
use crate::text;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// Whose jobs, and which window.
    pub filter: Filter,
    /// How energy is worked out.
    pub method: Method,
    /// Watts of a GPU, over the settings.
    pub gpu_watts: Option<u32>,
    /// Watts of a core, over the settings.
    pub cpu_watts: Option<u32>,
    /// Carbon intensity, over the settings.
    pub carbon: Option<Carbon>,
}

/// The runs that ended in a window.
#[derive(Debug, Serialize)]
pub struct Stats {
    /// `jobwise/stats/1`.
    pub schema: &'static str,
    /// Begin of the window.
    pub since: Timestamp,
    /// End of the window, not included.
    pub until: Timestamp,
    /// Whose runs; `None` for everybody's.
    pub users: Option<Vec<String>>,
    /// How they ended.
    pub runs: Runs,
    /// Failed runs among those that completed or failed.
    pub failure_rate: Rate,
    /// What all ended runs held.
    pub used: Amount,
    /// What the failed ones of them held: the most that their failures can have wasted.
    pub wasted: Amount,
    /// Failed runs by cause, the most energy first.
    pub causes: Vec<CauseRow>,
    /// How the runs of no known cause exited, the most frequent first.
    pub unknown_exits: Vec<ExitRow>,
    /// By partition, the most wasted energy first.
    pub partitions: Vec<PartitionRow>,
    /// How energy was worked out.
    pub energy: EnergyNotes,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Runs by how they ended. Each run of a requeued job counts, and each task of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Runs {
    /// Held nodes and ended in the window: the sum of the next six.
    pub ended: u64,
    /// The last command of the script returned zero.
    pub completed: u64,
    /// Ended badly: failed, out of time or memory, or for a node.
    pub failed: u64,
    /// Cancelled by somebody.
    pub cancelled: u64,
    /// Made way for another job.
    pub preempted: u64,
    /// Put back into the queue.
    pub requeued: u64,
    /// Ended in a state that jobwise does not know.
    pub other: u64,
    /// Refused, or cancelled or overdue while waiting: no runs at all.
    pub never_started: u64,
    /// Has not ended.
    pub running: u64,
    /// Waits; those tasks of an array that wait are one record.
    pub pending: u64,
    /// Completed, but a step failed.
    pub completed_with_failed_step: u64,
}

/// A failure rate with its denominator and its 95 % (Wilson) interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// Failed runs.
    pub failed: u64,
    /// Runs that completed or failed.
    pub of: u64,
    /// The share; `None` where nothing completed or failed.
    pub rate: Option<f64>,
    /// The lower end of the interval.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
}

/// What runs held, for as long as they held it. `None` is not recorded, never zero.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Amount {
    /// The runs.
    pub runs: u64,
    /// Those whose record does not say what they held: they are in none of the sums.
    pub unrecorded: u64,
    /// Hours of GPUs.
    pub gpu_hours: Option<f64>,
    /// Hours of CPU cores as the scheduler counts them.
    pub core_hours: Option<f64>,
    /// Kilowatt-hours.
    pub kwh: Option<Estimate>,
    /// Kilograms of carbon dioxide, where the site's factor is known.
    pub co2_kg: Option<Estimate>,
}

/// An amount with its range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The amount.
    pub value: f64,
    /// The least that it may be; `None` where the method claims no range.
    pub low: Option<f64>,
    /// The most.
    pub high: Option<f64>,
}

/// A cause of failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseRow {
    /// A family, a state, or `unknown`: the record alone names none.
    pub cause: String,
    /// What its runs held.
    pub wasted: Amount,
}

/// A way to exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExitRow {
    /// In words.
    pub exit: String,
    /// The runs.
    pub runs: u64,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionRow {
    /// Its name; `None` where the record names none.
    pub partition: Option<String>,
    /// Its failure rate.
    pub failure_rate: Rate,
    /// What its ended runs held.
    pub used: Amount,
    /// What its failed runs held.
    pub wasted: Amount,
}

/// How energy was worked out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnergyNotes {
    /// `estimate` or `flat`; nothing is measured.
    pub method: &'static str,
    /// What it rests on.
    pub assumptions: Vec<AssumptionRow>,
    /// What it leaves out.
    pub missing: Vec<&'static str>,
    /// Grams of CO2 for a kilowatt-hour, where somebody has told.
    pub carbon_grams_per_kwh: Option<u32>,
    /// Who told.
    pub carbon_source: Option<String>,
}

/// A figure that the energy rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssumptionRow {
    /// Of what: a GPU type, a core, the PUE.
    pub what: String,
    /// How much.
    #[serde(flatten)]
    pub figure: Estimate,
    /// Its unit; `times` for a factor, empty for a ratio.
    pub unit: &'static str,
}

/// Sums over the runs of a window.
pub fn stats(world: World<'_>, question: &Question) -> Result<Stats, AnswerError> {
    let backend = world.backend();
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    let Notes { families, errors: broken, .. } = world.notes()?;
    let rules = Rules::new(families);
    let mut tally = Tally::default();
    // The scheduler keeps seconds.
    let second = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
    let mut notices = source.each(&question.filter, &mut |job| {
        tally.add(&job, |job| cause(&rules, job));
    })?;
    let users = match &question.filter.users {
        Users::All => None,
        Users::Named(names) => Some(names.clone()),
        Users::Me => {
            let caller = world.cluster.caller();
            Some(vec![caller.name.unwrap_or_else(|| caller.uid.to_string())])
        }
    };
    let meter = Meter::new(world.config, question, &tally);
    let mut report = report(&tally, &meter);
    report.since = second(question.filter.since);
    report.until = second(question.filter.until);
    report.users = users;
    notices.extend(broken.iter().map(super::left_out));
    report.notices.splice(0..0, notices);
    Ok(report)
}

/// The cause that the record alone names, by the rules of `diagnose`; where no family fits, a
/// state that says itself what happened.
fn cause(rules: &Rules, job: &Job) -> Option<String> {
    let facts = Facts { job: Some(job), logs: Vec::new(), logs_complete: false };
    let verdict = decide(rules, &facts);
    match verdict.causes.into_iter().next() {
        Some(first) if verdict.outcome == Judged::Cause => Some(first.family.0),
        _ if job.state.base == BaseState::Failed => None,
        _ => Some(job.state.word().to_ascii_lowercase()),
    }
}

/// Turns what was held into hours, energy and carbon.
struct Meter {
    method: Method,
    energy: Energy,
    carbon: Option<Carbon>,
    /// Whether GPUs are counted here at all.
    counts_gpus: bool,
}

impl Meter {
    fn new(config: &Config, question: &Question, tally: &Tally) -> Self {
        let flag = |watts: Option<u32>| watts.map(f64::from);
        let (gpu_watts, core_watts) = (flag(question.gpu_watts), flag(question.cpu_watts));
        let told = &config.settings.energy;
        let set = |number: u32| (number > 0).then(|| f64::from(number));
        let site = match question.method {
            Method::Estimate => Site {
                pue: set(told.pue_percent).map(|percent| percent / 100.0),
                gpu_watts: gpu_watts.or(set(told.gpu_watts)),
                core_watts: core_watts.or(set(told.cpu_watts)),
            },
            // Flat figures are for comparing: the same everywhere unless somebody asks for others.
            Method::Flat => Site { pue: None, gpu_watts, core_watts },
        };
        Self {
            method: question.method,
            energy: Energy::new(question.method, &site),
            carbon: question.carbon.clone().or_else(|| told_carbon(config)),
            counts_gpus: tally.names_gpus,
        }
    }

    fn amount(&self, held: &Held) -> Amount {
        #[expect(clippy::cast_precision_loss, reason = "hours are told to four decimals")]
        let hours = |seconds: u64| four_decimals(seconds as f64 / 3600.0);
        let energy = self.energy.of(held);
        let carbon = self.carbon.as_ref();
        Amount {
            runs: held.runs,
            unrecorded: held.unrecorded,
            gpu_hours: held.gpu_seconds().filter(|_| self.counts_gpus).map(hours),
            core_hours: held.core_seconds().map(hours),
            kwh: energy.map(Estimate::from),
            co2_kg: energy.and_then(|energy| Some(carbon?.kilograms(energy).into())),
        }
    }
}

/// The carbon intensity of the settings, with the layer that set it.
fn told_carbon(config: &Config) -> Option<Carbon> {
    let grams_per_kwh = config.settings.energy.carbon_grams_per_kwh;
    let (_, origin) = config.origins.get("energy.carbon_grams_per_kwh")?;
    (grams_per_kwh > 0 && *origin != Origin::Default)
        .then(|| Carbon { grams_per_kwh, source: origin.to_string() })
}

/// The report on a tally; whose it is and of when stands in the question.
fn report(tally: &Tally, meter: &Meter) -> Stats {
    let outcomes = tally.all();
    let all = outcomes.held(&Outcome::ENDED);
    let runs = runs(&outcomes, tally.failed_steps);
    let mut causes: Vec<CauseRow> = tally
        .causes
        .iter()
        .map(|(cause, held)| CauseRow {
            cause: cause.clone().unwrap_or_else(|| "unknown".to_owned()),
            wasted: meter.amount(held),
        })
        .collect();
    causes.sort_by(|a, b| by_waste(&a.wasted, &b.wasted).then_with(|| a.cause.cmp(&b.cause)));
    let mut partitions: Vec<PartitionRow> = tally
        .partitions
        .iter()
        .filter_map(|(name, outcomes)| partition(meter, name.as_deref(), outcomes))
        .collect();
    partitions
        .sort_by(|a, b| by_waste(&a.wasted, &b.wasted).then_with(|| a.partition.cmp(&b.partition)));
    let mut unknown_exits: Vec<ExitRow> = tally
        .exits
        .iter()
        .map(|(exit, runs)| ExitRow { exit: exit.clone(), runs: *runs })
        .collect();
    unknown_exits.sort_by(|a, b| b.runs.cmp(&a.runs).then_with(|| a.exit.cmp(&b.exit)));
    Stats {
        schema: "jobwise/stats/1",
        since: Timestamp::UNIX_EPOCH,
        until: Timestamp::UNIX_EPOCH,
        users: None,
        failure_rate: rate(runs.failed, runs.completed),
        used: meter.amount(&all),
        wasted: meter.amount(&outcomes.held(&[Outcome::Failed])),
        causes,
        unknown_exits,
        partitions,
        energy: EnergyNotes {
            method: match meter.method {
                Method::Estimate => "estimate",
                Method::Flat => "flat",
            },
            assumptions: meter.energy.assumptions(&all).into_iter().map(Into::into).collect(),
            missing: meter.energy.missing(),
            carbon_grams_per_kwh: meter.carbon.as_ref().map(|carbon| carbon.grams_per_kwh),
            carbon_source: meter.carbon.as_ref().map(|carbon| carbon.source.clone()),
        },
        notices: notices(&runs, &all, tally),
        runs,
    }
}

fn runs(outcomes: &Outcomes, failed_steps: u64) -> Runs {
    let count = |outcome| outcomes.runs(outcome);
    Runs {
        ended: outcomes.held(&Outcome::ENDED).runs,
        completed: count(Outcome::Completed),
        failed: count(Outcome::Failed),
        cancelled: count(Outcome::Cancelled),
        preempted: count(Outcome::Preempted),
        requeued: count(Outcome::Requeued),
        other: count(Outcome::Other),
        never_started: count(Outcome::NeverStarted),
        running: count(Outcome::Running),
        pending: count(Outcome::Pending),
        completed_with_failed_step: failed_steps,
    }
}

/// A partition in which something ended.
fn partition(meter: &Meter, name: Option<&str>, outcomes: &Outcomes) -> Option<PartitionRow> {
    let used = outcomes.held(&Outcome::ENDED);
    (used.runs > 0).then(|| PartitionRow {
        partition: name.map(str::to_owned),
        failure_rate: rate(outcomes.runs(Outcome::Failed), outcomes.runs(Outcome::Completed)),
        used: meter.amount(&used),
        wasted: meter.amount(&outcomes.held(&[Outcome::Failed])),
    })
}

fn rate(failed: u64, completed: u64) -> Rate {
    let of = failed + completed;
    let share = math::wilson(failed, of);
    let part = |part: fn(&Share) -> f64| share.as_ref().map(part).map(four_decimals);
    Rate {
        failed,
        of,
        rate: part(|share| share.value),
        low: part(|share| share.low),
        high: part(|share| share.high),
    }
}

fn by_waste(a: &Amount, b: &Amount) -> std::cmp::Ordering {
    let energy = |amount: &Amount| amount.kwh.map_or(-1.0, |kwh| kwh.value);
    energy(b).total_cmp(&energy(a)).then(b.runs.cmp(&a.runs))
}

fn notices(runs: &Runs, all: &Held, tally: &Tally) -> Vec<Notice> {
    let mut notices = Vec::new();
    if all.unrecorded > 0 {
        notices.push(Notice::warning(
            "unrecorded-allocation",
            format!(
                "{} not recorded with what it held or how long: in no sum of hours or energy",
                text::count(all.unrecorded, "ended run"),
            ),
        ));
    }
    if all.without_memory > 0 {
        notices.push(Notice::info(
            "unrecorded-memory",
            format!("the memory of {} is not recorded", text::count(all.without_memory, "run")),
        ));
    }
    if runs.other > 0 {
        notices.push(Notice::warning(
            "unknown-state",
            format!("{} in a state that jobwise does not know", text::count(runs.other, "run")),
        ));
    }
    if let Some(unknown) = tally.causes.get(&None) {
        let of = text::count(runs.failed, "failed run");
        let text = format!("the record alone names no cause for {} of {of}", unknown.runs);
        notices
            .push(Notice::info("cause-not-recorded", text).hint(
                "jobwise diagnose JOB also reads its logs; jobwise jobs --failed lists them",
            ));
    }
    if runs.completed_with_failed_step > 0 {
        let completed = text::count(runs.completed_with_failed_step, "completed run");
        notices.push(Notice::info(
            "failed-step",
            format!("{completed} had a step that failed, and count as completed"),
        ));
    }
    notices
}

impl From<Assumption> for AssumptionRow {
    fn from(assumption: Assumption) -> Self {
        let Assumption { what, figure, unit } = assumption;
        Self { what, figure: figure.into(), unit }
    }
}

impl From<Range> for Estimate {
    fn from(range: Range) -> Self {
        let (low, high) = range.bounds.unzip();
        Self {
            value: four_digits(range.value),
            low: low.map(four_digits),
            high: high.map(four_digits),
        }
    }
}

/// Four decimals: a third of a second of an hour.
fn four_decimals(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// Four significant digits: more than any estimate has.
fn four_digits(value: f64) -> f64 {
    // Through the decimal form, so that the printed number has no tail of binary noise.
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::host::Replay;

    /// What `sacct` of 22.05 printed of a small cluster with many deliberate failures.
    pub(crate) const HISTORY: &str = include_str!("../../fixtures/slurm-22.05/sacct-history.txt");
    const HELP: &str = include_str!("../../fixtures/slurm-22.05/sacct-helpformat.txt");
    const SINCE: i64 = 1_795_952_483;
    const UNTIL: i64 = 1_796_038_883;

    /// The answer on a cluster whose `sacct` prints these rows.
    pub(crate) fn answer(rows: &str, settings: &str, change: impl Fn(&mut Question)) -> Stats {
        let columns = "JobID,State,ExitCode,DerivedExitCode,Partition,Reason,Start,End,Elapsed,\
                       Timelimit,AllocCPUS,AllocTRES,NodeList";
        let argv = [
            "sacct",
            "--parsable2",
            "--noheader",
            "--allocations",
            "--delimiter=@~@",
            &format!("--format={columns}"),
            &format!("--starttime=uts{SINCE}"),
            &format!("--endtime=uts{UNTIL}"),
            "--allusers",
            "--duplicates",
        ];
        let ended = json!({"exit": {"status": 0, "stderr": "00"}});
        let recording = json!({
            "format": 1,
            "jobwise": "0.1.0",
            "clock": "2026-11-30T11:41:23Z",
            "zone": {"name": null, "offset_seconds": 0},
            "caller": {"uid": 1001, "name": "alice"},
            "environment": {},
            "commands": [
                {"argv": ["sacct", "--helpformat"], "stdout": "01", "end": ended},
                {"argv": argv, "stdout": "02", "end": ended},
            ],
            "files": [{"path": "site.toml", "outcome": {"content": {
                "size": settings.len(), "modified": null, "ranges": [{"offset": 0, "blob": "03"}],
            }}}],
            "directories": [],
            "blobs": {
                "00": {"text": ""}, "01": {"text": HELP}, "02": {"text": rows},
                "03": {"text": settings},
            },
        });
        let cluster = Replay::parse(Path::new("test"), recording.to_string().as_bytes())
            .expect("a recording");
        let config = Config::load(&cluster, Some(Path::new("site.toml"))).expect("settings");
        let at = |second| Timestamp::from_second(second).expect("a time");
        let filter = Filter {
            users: Users::All,
            states: Vec::new(),
            accounts: Vec::new(),
            partitions: Vec::new(),
            names: Vec::new(),
            since: at(SINCE),
            until: at(UNTIL),
        };
        let mut question = Question {
            filter,
            method: Method::Estimate,
            gpu_watts: None,
            cpu_watts: None,
            carbon: None,
        };
        change(&mut question);
        let world = World {
            cluster: &cluster,
            machine: &cluster,
            overlays: &[],
            config: &config,
            store: None,
            live: false,
            fresh: false,
        };
        stats(world, &question).expect("an answer")
    }

    /// To the four decimals or four digits that are told.
    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("recorded");
        assert!(
            (found - expected).abs() <= 5.1e-5_f64.min(expected * 5.1e-4),
            "{found}, {expected}"
        );
    }

    #[test]
    fn a_real_history_is_counted_as_awk_counts_it() {
        // The expected numbers are those of an awk script over the same rows: node list not
        // "None assigned", by state, elapsed x AllocCPUS, elapsed x the number after `gres/gpu=`.
        let stats = answer(HISTORY, "", |_| ());
        let expected = Runs {
            ended: 131,
            completed: 51,
            failed: 60 + 6 + 3 + 2,
            cancelled: 4,
            preempted: 2,
            requeued: 3,
            other: 0,
            never_started: 22,
            running: 7,
            pending: 30,
            completed_with_failed_step: 3,
        };
        assert_eq!(stats.runs, expected);
        near(stats.wasted.core_hours, 456.0 / 3600.0);
        near(stats.used.core_hours, 940.0 / 3600.0);
        assert_eq!(stats.wasted.gpu_hours, Some(0.0011), "4 s");
        assert_eq!(stats.used.gpu_hours, Some(0.0028), "10 s");
        let rate = stats.failure_rate;
        assert_eq!((rate.failed, rate.of), (71, 122));
        near(rate.rate, 71.0 / 122.0);
        let partitions: Vec<_> = stats
            .partitions
            .iter()
            .map(|row| {
                let name = row.partition.as_deref().expect("recorded");
                (name, row.failure_rate.failed, row.failure_rate.of)
            })
            .collect();
        let expected = [
            ("batch", 64, 105),
            ("gpu", 4, 10),
            ("flaky", 2, 3),
            ("cloud", 1, 1),
            ("exclusive", 0, 1),
            ("over", 0, 1),
            ("unlim", 0, 1),
        ];
        assert_eq!(partitions, expected);
        assert!(stats.notices.iter().all(|notice| notice.code != "unrecorded-allocation"));
    }

    #[test]
    fn energy_of_a_real_history_by_hand() {
        // Failed runs: 4 GPU-s of a100, beside them 8 core-s and 600 MiB-s; on CPUs only 448 core-s
        // and 44500 MiB-s. In joules:
        let gpu_runs = 4.0 * 400.0 * 0.6 + 8.0 * 5.0 + 600.0 * 1.048_576e-3 * 0.15;
        let cpu_runs = 448.0 * 5.0 + 44_500.0 * 1.048_576e-3 * 0.15;
        let joules = (gpu_runs * 1.3 + cpu_runs * 1.2) * 1.56;
        let stats = answer(HISTORY, "", |_| ());
        near(stats.wasted.kwh.map(|kwh| kwh.value), joules / 3.6e6);
        assert_eq!(stats.wasted.co2_kg, None);
        assert_eq!(stats.energy.carbon_grams_per_kwh, None);
    }

    #[test]
    fn causes_are_those_that_the_record_alone_names() {
        let stats = answer(HISTORY, "", |_| ());
        let runs = |cause: &str| {
            let row = stats.causes.iter().find(|row| row.cause == cause);
            row.map_or(0, |row| row.wasted.runs)
        };
        assert_eq!(runs("time_limit"), 2);
        assert_eq!(runs("node_fail"), 3);
        // Six in the state OUT_OF_MEMORY, and one FAILED whose step was 0:125.
        assert_eq!(runs("host_oom"), 7);
        assert_eq!(stats.causes.iter().map(|row| row.wasted.runs).sum::<u64>(), 71);
        let exits: u64 = stats.unknown_exits.iter().map(|row| row.runs).sum();
        assert_eq!(exits, runs("unknown"));
    }

    #[test]
    fn the_order_of_the_records_does_not_change_a_byte() {
        let told = |rows: &[&str]| {
            let stats = answer(&format!("{}\n", rows.join("\n")), "", |_| ());
            serde_json::to_string(&stats).expect("JSON")
        };
        let mut rows: Vec<&str> = HISTORY.lines().collect();
        let first = told(&rows);
        rows.reverse();
        assert_eq!(told(&rows), first);
        rows.sort_by_key(|row| row.len());
        assert_eq!(told(&rows), first);
    }

    #[test]
    fn the_site_s_word_counts_and_is_named() {
        // Failed runs as above: 4 GPU-s, 8 core-s and 600 MiB-s beside them, 448 core-s and
        // 44500 MiB-s on CPUs, as above.
        let joules = |gpu: f64, core: f64, pue: f64| {
            let memory = 1.048_576e-3 * 0.15;
            let gpu_runs = 4.0 * gpu * 0.6 + 8.0 * core + 600.0 * memory;
            (gpu_runs * 1.3 + (448.0 * core + 44_500.0 * memory) * 1.2) * pue
        };
        let settings = "[energy]\npue_percent = 110\ncpu_watts = 10\ncarbon_grams_per_kwh = 50\n";
        let stats = answer(HISTORY, settings, |_| ());
        let kwh = joules(400.0, 10.0, 1.1) / 3.6e6;
        near(stats.wasted.kwh.map(|kwh| kwh.value), kwh);
        near(stats.wasted.co2_kg.map(|kg| kg.value), kwh * 0.05);
        assert_eq!(stats.energy.carbon_source.as_deref(), Some("site.toml"));
        // The command line has the last word.
        let stats = answer(HISTORY, settings, |question| {
            question.cpu_watts = Some(15);
            question.gpu_watts = Some(300);
        });
        near(stats.wasted.kwh.map(|kwh| kwh.value), joules(300.0, 15.0, 1.1) / 3.6e6);
        // Flat figures heed the command line alone: 4 GPU-s x 400 W + 456 core-s x 20 W = 10720 J.
        let stats = answer(HISTORY, settings, |question| {
            question.method = Method::Flat;
            question.cpu_watts = Some(20);
        });
        near(stats.wasted.kwh.map(|kwh| kwh.value), 10_720.0 / 3.6e6);
    }

    #[test]
    fn a_state_that_no_family_covers_is_its_own_cause() {
        let row = "9@~@DEADLINE@~@0:0@~@0:0@~@batch@~@None@~@1796034865@~@1796034942@~@00:01:17@~@\
                   00:02:00@~@2@~@cpu=2,mem=200M,node=1@~@c01\n";
        let causes = answer(row, "", |_| ()).causes;
        assert_eq!(causes.len(), 1);
        assert_ne!(causes[0].cause, "unknown");
    }

    #[test]
    fn what_is_not_recorded_is_null() {
        // A record without AllocTRES, as of a Slurm that did not keep it.
        let row = "9@~@FAILED@~@1:0@~@0:0@~@batch@~@None@~@1796034865@~@1796034942@~@00:01:17@~@\
                   00:02:00@~@2@~@@~@c01\n";
        let stats = answer(row, "", |_| ());
        let told = serde_json::to_value(&stats).expect("JSON");
        for part in ["wasted", "used"] {
            assert_eq!(told[part]["runs"], 1);
            for amount in ["gpu_hours", "core_hours", "kwh", "co2_kg"] {
                assert!(told[part][amount].is_null(), "{part} {amount}");
            }
        }
        assert!(stats.notices.iter().any(|notice| notice.code == "unrecorded-allocation"));
        let nothing = answer("", "", |_| ());
        assert_eq!((nothing.runs.ended, nothing.failure_rate.rate), (0, None));
    }
}
