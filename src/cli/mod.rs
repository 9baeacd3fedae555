//! Arguments, dispatch and exit codes: the only part that knows of a terminal.

mod args;
mod failure;
mod place;
mod progress;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches};
use jiff::Timestamp;
use serde::Serialize;

use crate::answer::breakdown::{By, breakdown_by};
use crate::answer::cluster::{NodeFilter, Sort as NodeSort};
use crate::answer::diagnose::{Diagnoses, Given, Hints};
use crate::answer::evaluate::{self, SearchWanted, SuiteWanted, Wanted};
use crate::answer::export;
use crate::answer::overview::{self, Sort};
use crate::answer::past::Wanted as Past;
use crate::answer::sizing;
use crate::answer::stats::Question;
use crate::answer::{self, World};
use crate::config::Config;
use crate::eval::{Split, Thresholds};
use crate::history::reliability::Metric;
use crate::history::sizing::Basis;
use crate::history::{Carbon, Method};
use crate::host::{Recording, Replay, Runner, Store, System};
use crate::model::{self, BaseState, State};
use crate::render::{self, Format, Look, Report};
use crate::sched::{self, Depth, Filter, Users};
use crate::text;
use args::{
    Cli, Command, ConfigCommand, EnergyMethod, ExportFormat, Global, KbCommand, ModelCommand,
};
use failure::{Exit, Failure};

/// The demo cluster: a recording of a real one.
const DEMO: &[u8] = include_bytes!("../../fixtures/demo.json");
/// Its last 90 days, made by `fixtures/demo/make-history`, and the file in it that holds the runs.
const DEMO_HISTORY: &[u8] = include_bytes!("../../fixtures/demo/history.json.gz");
const DEMO_RUNS: &str = "history.txt";
/// Its nodes, partitions and queue, made by `fixtures/demo/make-cluster`.
const DEMO_CLUSTER: &[u8] = include_bytes!("../../fixtures/demo/cluster.json.gz");

/// Runs the program.
pub fn main() -> ExitCode {
    // What a command line that is wrong asks for all the same.
    let words: Vec<OsString> = std::env::args_os().take_while(|word| word != "--").collect();
    let given = |flag: &str| words.iter().any(|word| word == flag);
    let json = given("--json");
    let color = if given("--no-color") { ColorChoice::Never } else { ColorChoice::Auto };
    let matches = Cli::command().color(color).try_get_matches();
    let cli = match matches.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let code = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Answered,
                _ => Exit::Usage,
            };
            // A closed terminal is no reason to fail differently.
            let _ = error.print();
            if json && code == Exit::Usage {
                let text = error.to_string();
                let first = text.lines().next().and_then(|line| line.strip_prefix("error: "));
                refuse(first.unwrap_or("no command was given"), Some("see: jobwise --help"), code);
            }
            return code.into();
        }
    };
    let outcome = panic::catch_unwind(|| run(cli));
    let (message, hint, exit) = match outcome {
        Ok(Ok(exit)) => return exit.into(),
        Ok(Err(Failure::Output(error))) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Exit::Answered.into();
        }
        Ok(Err(failure)) => {
            let (exit, hint) = failure.verdict();
            (failure.to_string(), hint, exit)
        }
        // The panic hook has said where.
        Err(_) => {
            let hint = "run it again with --record DIR and report that".to_owned();
            ("this is a bug in jobwise".to_owned(), Some(hint), Exit::Bug)
        }
    };
    complain(&message, hint.as_deref());
    if json {
        refuse(&message, hint.as_deref(), exit);
    }
    exit.into()
}

/// Why there is no answer.
#[derive(Serialize)]
struct Refusal<'a> {
    schema: &'static str,
    error: &'a str,
    hint: Option<&'a str>,
    exit: u8,
}

/// Writes what went wrong as the one document that somebody who asked for JSON waits for.
fn refuse(error: &str, hint: Option<&str>, exit: Exit) {
    let document = Refusal { schema: "jobwise/error/1", error, hint, exit: exit as u8 };
    // Standard error has it too.
    let _ = render::write_json(&document, &mut io::stdout().lock());
}

/// Says something beside the answer.
fn note(message: &str) {
    let _ = writeln!(io::stderr(), "note: {message}");
}

fn complain(message: &str, hint: Option<&str>) {
    let mut stderr = io::stderr().lock();
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(stderr, "jobwise: {}", text::printable(message.as_bytes()));
    if let Some(hint) = hint {
        let _ = writeln!(stderr, "hint: {hint}");
    }
}

/// Chooses the cluster, asks, writes.
fn run(mut cli: Cli) -> Result<Exit, Failure> {
    let system = System::new(cli.global.verbose);
    let global = cli.global.clone();
    let settings = || {
        let config = Config::load(&system, global.config.as_deref())?;
        config.notices.iter().for_each(|notice| note(&notice.text));
        Ok::<_, Failure>(config)
    };
    if let Command::Snapshot(args) = &cli.command
        && args.diff.is_none()
        && global.replay.is_none()
        && !global.demo
    {
        let path = args.output.as_deref().ok_or_else(|| {
            usage("it was not said where to".to_owned(), "jobwise snapshot -o FILE")
        })?;
        let config = settings()?;
        let recording = Recording::anew(&system, path, config.kept());
        let exit = in_world(&cli, &system, &recording, &config, |world, printer| {
            place::snapshot(world, &recording, (args, path), printer)
        })?;
        recording.finish()?;
        return Ok(exit);
    }
    if let Some(path) = &global.record {
        let current = settings()?;
        let recording = Recording::start(&system, path, current.kept())?;
        let config = Config::recorded(recording.settings().as_ref())?;
        if config.settings != current.settings {
            note("the recording is continued with the settings that it was begun with");
        }
        let ask = || ask(&cli, &system, &recording, &config);
        let outcome = panic::catch_unwind(AssertUnwindSafe(ask));
        // Whatever came of it: a failure is what most needs to be reported.
        let finished = recording.finish();
        let exit = outcome.unwrap_or_else(|panic| panic::resume_unwind(panic))?;
        finished?;
        return Ok(exit);
    }
    let replay = match &global.replay {
        Some(path) => Some(Replay::load(path)?),
        None if global.demo => Some(Replay::demo(DEMO)?),
        None => None,
    };
    if replay.as_ref().is_some_and(Replay::is_foreign) {
        note("the snapshot names no time zone: its times are read as local to this machine");
    }
    let Some(mut replay) = replay else { return ask(&cli, &system, &system, &settings()?) };
    // Settings of this machine would change the answer; a file that is named is meant to.
    let config = match global.config {
        Some(_) => settings()?,
        None => Config::recorded(replay.settings())?,
    };
    // On the demo cluster nobody has an id at hand: show its first job.
    let first = replay.job_ids().into_iter().next();
    if let Command::Diagnose(args) = &mut cli.command
        && global.demo
        && args.ids.is_empty()
    {
        args.ids.extend(first);
        note("the demo cluster's other jobs: jobwise --demo jobs");
    }
    if global.demo
        && let Some(past) = demo_past(&mut cli.command)
    {
        replay.join(DEMO_HISTORY)?;
        past.from.push(PathBuf::from(DEMO_RUNS));
        // A file is everybody's.
        if past.whose.user.is_empty() && !past.whose.all_users {
            past.whose.user.extend(replay.caller().name);
        }
    }
    if global.demo && is_about_capacity(&cli.command) {
        replay.join(DEMO_CLUSTER)?;
    }
    ask(&cli, &system, &replay, &config)
}

/// The history that a command is about, where the demo cluster answers it with that of 90 days: its
/// plain statistics are of the recorded jobs, which have causes.
fn demo_past(command: &mut Command) -> Option<&mut args::Past> {
    let past = match command {
        Command::Overview(args) => &mut args.past,
        Command::Sizing(args) => &mut args.past,
        Command::Patterns(args) => &mut args.past,
        Command::Reliability(args) => &mut args.past,
        Command::Stats(args) if args.by.is_some_and(|by| by != args::By::Cause) => &mut args.past,
        _ => return None,
    };
    past.from.is_empty().then_some(past)
}

/// Whether a command asks about nodes and partitions.
fn is_about_capacity(command: &Command) -> bool {
    matches!(
        command,
        Command::Status(_)
            | Command::Queues(_)
            | Command::Zoom(_)
            | Command::Nodes(_)
            | Command::Gpus(_)
            | Command::Health
            | Command::Exclude(_)
            | Command::Where(_)
            | Command::Check(_)
            | Command::Backends
    )
}

fn ask(cli: &Cli, system: &System, cluster: &dyn Runner, config: &Config) -> Result<Exit, Failure> {
    in_world(cli, system, cluster, config, |world, printer| dispatch(cli, world, printer))
}

/// Gets the world ready in which a question is asked, and asks it.
fn in_world(
    cli: &Cli,
    system: &System,
    cluster: &dyn Runner,
    config: &Config,
    question: impl FnOnce(World<'_>, &Printer) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let chosen = cli.global.backend.as_ref().map(|name| config.clone().with_backend(name));
    let config = chosen.as_ref().unwrap_or(config);
    known_backend(&config.settings.scheduler.backend)?;
    let store = Store::locate(system);
    let global = &cli.global;
    let is_local = global.record.is_none() && global.replay.is_none() && !global.demo;
    let overlays = overlays(system, store.as_ref().filter(|_| is_local), &global.knowledge);
    let world = World {
        cluster,
        machine: system,
        // Notes are of the machine that answers, also in a replay: somebody works on them there.
        overlays: &overlays,
        config,
        store: store.as_ref(),
        fresh: match &cli.command {
            Command::Diagnose(args) => args.fresh,
            Command::Status(args) => args.asking.fresh,
            Command::Queues(args) => args.asking.fresh,
            _ => false,
        },
        live: is_local && !matches!(cli.command, Command::Snapshot(_)),
    };
    let printer = Printer {
        format: if cli.global.json { Format::Json } else { Format::Text },
        look: look(system, cluster, &cli.global),
    };
    question(world, &printer)
}

fn dispatch(cli: &Cli, world: World<'_>, printer: &Printer) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Diagnose(args) => diagnose(world, args, printer),
        Command::Job(args) => {
            let ids: Result<Vec<_>, _> = args.ids.iter().map(|id| id.parse()).collect();
            let ids = ids.map_err(answer::AnswerError::from)?;
            let view = answer::job::View { all: args.all, steps: args.steps };
            let records = answer::job::job(world, &ids, view)?;
            printer.print(&records)?;
            Ok(Exit::Answered)
        }
        Command::Jobs(args) => {
            let jobs = answer::jobs::jobs(
                world,
                &filter(world, args)?,
                (args.limit > 0).then_some(args.limit),
            )?;
            printer.print(&jobs)?;
            Ok(Exit::Answered)
        }
        Command::Stats(args) => {
            statistics(world, args, printer)?;
            Ok(Exit::Answered)
        }
        Command::Overview(args) => {
            let question = overview::Question {
                past: past(world, &args.past, Depth::Steps)?,
                sort: sort(args.sort),
                limit: limit(args.limit),
            };
            printer.print(&overview::overview(world, &question)?)?;
            Ok(Exit::Answered)
        }
        Command::Sizing(args) => {
            let question = sizing::Question {
                past: past(world, &args.past, Depth::Steps)?,
                workloads: args.workloads.clone(),
                risk: args.risk.unwrap_or(Basis::RISK),
                sort: sort(args.sort),
                limit: limit(args.limit),
                all: args.all,
            };
            let sized = sizing::sized(world, &question)?;
            printer.print(&sized)?;
            let unknown = sized.workload_count == 0 && !args.workloads.is_empty();
            Ok(if unknown { Exit::No } else { Exit::Answered })
        }
        Command::Patterns(args) => {
            let wanted = past(world, &args.past, Depth::Steps)?;
            printer.print(&answer::patterns::patterns_of(world, &wanted, limit(args.limit))?)?;
            Ok(Exit::Answered)
        }
        Command::Reliability(args) => {
            let metric = match args.metric {
                args::Metric::Failure => Metric::Failure,
                args::Metric::Hang => Metric::Hang,
            };
            // Only steps know whether something happened in a run.
            let steps = args.metric == args::Metric::Hang;
            let depth = if steps { Depth::Steps } else { Depth::Allocations };
            let wanted = past(world, &args.past, depth)?;
            let nodes = answer::reliability::nodes(world, &wanted, metric, limit(args.limit))?;
            printer.print(&nodes)?;
            Ok(Exit::Answered)
        }
        Command::Export(args) => {
            let depth = if args.no_steps { Depth::Allocations } else { Depth::Steps };
            let layout = match args.format {
                ExportFormat::Ndjson => export::Layout::Lines,
                ExportFormat::Csv => export::Layout::Table,
            };
            let export = export::export(world, &past(world, &args.past, depth)?, layout)?;
            // What is written is data alone.
            if printer.format == Format::Text {
                export.notices().iter().for_each(|notice| note(&notice.text));
            }
            printer.print(&export)?;
            Ok(Exit::Answered)
        }
        Command::Where(args) => place::where_to(world, args, printer),
        Command::Check(args) => place::check(world, args, printer),
        Command::Snapshot(args) => match &args.diff {
            Some(place::SnapshotCommand::Diff { before, after }) => {
                place::compare(world, (before, after), printer)
            }
            None => Err(usage(
                "a recording is a snapshot already".to_owned(),
                "without --replay your own cluster is asked",
            )),
        },
        Command::Status(args) => {
            let shown = (!args.all).then_some(STATUS_ROWS);
            printer.print(&answer::status::status(world, shown, args.asking.declared)?)?;
            Ok(Exit::Answered)
        }
        Command::Queues(args) => {
            let wanted = answer::queues::Wanted {
                names: args.of.partition.clone(),
                unusable_only: args.unusable_only,
                detail: args.detail,
                all: args.all,
                declared: args.asking.declared,
            };
            printer.print(&answer::queues::queues(world, &wanted)?)?;
            Ok(Exit::Answered)
        }
        Command::Zoom(args) => {
            let filter = node_filter(&args.which, &[]);
            printer.print(&answer::zoom::zoom(world, &args.names, &filter)?)?;
            Ok(Exit::Answered)
        }
        Command::Nodes(args) => {
            let filter = node_filter(&args.which, &args.of.partition);
            printer.print(&answer::nodes::nodes(world, &filter)?)?;
            Ok(Exit::Answered)
        }
        Command::Gpus(args) => {
            printer.print(&answer::gpus::gpus(world, &args.partition)?)?;
            Ok(Exit::Answered)
        }
        Command::Health => {
            printer.print(&answer::health::health(world)?)?;
            Ok(Exit::Answered)
        }
        Command::Exclude(args) => exclude(world, args, printer),
        Command::Backends => {
            printer.print(&answer::backends::backends(world))?;
            Ok(Exit::Answered)
        }
        Command::Kb(kb) => knowledge(world, &kb.command, printer),
        Command::Eval(args) => evaluate(world, args, printer),
        Command::Config(config) => match config.command {
            ConfigCommand::Show { origin } => {
                printer.print(&answer::settings::settings(world, origin))?;
                Ok(Exit::Answered)
            }
        },
    }
}

fn diagnose(world: World<'_>, args: &args::Diagnose, printer: &Printer) -> Result<Exit, Failure> {
    let diagnoses = if let Some(text) = &args.text {
        answer::diagnose::diagnose_text(world, &text_of(text)?)?
    } else if args.log.is_empty() {
        let hints = Hints { log_dirs: args.log_dir.clone() };
        answer::diagnose::diagnose(world, &args.ids, &hints)?
    } else {
        let given = Given {
            logs: args.log.clone(),
            script: args.script.clone(),
            state: args.state.as_deref().map(state_of).transpose()?,
            exit: args.exit_code.as_deref().map(exit_of).transpose()?,
        };
        answer::diagnose::diagnose_given(world, &given)?
    };
    // One id without an answer is told as an error; among several it stands beside the answers.
    if let ([], [_]) = (diagnoses.diagnoses.as_slice(), diagnoses.failures.as_slice())
        && printer.format == Format::Text
    {
        let mut failures = diagnoses.failures;
        if let Some(failure) = failures.pop() {
            return Err(failure.error.into());
        }
        return Ok(Exit::No);
    }
    if args.ticket && printer.format == Format::Text {
        printer.print_ticket(&diagnoses)?;
    } else {
        printer.print(&diagnoses)?;
    }
    let unknown = diagnoses.diagnoses.iter().any(|diagnosis| !diagnosis.is_answered());
    let worst = diagnoses.failures.iter().map(|failure| failure::of_answer(&failure.error).0).max();
    let worst = worst.unwrap_or(Exit::Answered);
    Ok(if unknown { worst.max(Exit::No) } else { worst })
}

/// Partitions that an overview shows unless all are wanted.
const STATUS_ROWS: usize = 12;

fn node_filter(which: &args::WhichNodes, queues: &[String]) -> NodeFilter {
    NodeFilter {
        queues: queues.to_vec(),
        gpu: which.gpu,
        cpu: which.cpu,
        free: which.free,
        sort: match which.sort {
            args::NodeOrder::Room => NodeSort::Room,
            args::NodeOrder::Name => NodeSort::Name,
            args::NodeOrder::Load => NodeSort::Load,
            args::NodeOrder::Memory => NodeSort::Memory,
            args::NodeOrder::State => NodeSort::State,
        },
        limit: (!which.all).then_some(which.limit),
    }
}

fn exclude(world: World<'_>, args: &args::Exclude, printer: &Printer) -> Result<Exit, Failure> {
    let wanted = answer::exclude::Wanted {
        gpu_nodes: args.gpu_nodes,
        unschedulable: args.unschedulable,
        degraded: args.degraded,
        queues: args.of.partition.clone(),
    };
    let list = answer::exclude::exclude(world, &wanted)?;
    printer.print(&list)?;
    // The list goes into another command line: what is to be said beside it is not part of it.
    if printer.format == Format::Text {
        list.notices.iter().for_each(|notice| note(&notice.text));
    }
    Ok(Exit::Answered)
}

/// The site's notes for everybody.
const SITE_NOTES: &str = "/etc/jobwise/knowledge";

/// Folders of notes: the site's and the user's where they are there, and those that were named. What
/// is recorded or replayed must not depend on notes that nobody named.
fn overlays(system: &System, store: Option<&Store>, named: &[PathBuf]) -> Vec<PathBuf> {
    let usual = store
        .into_iter()
        .flat_map(|store| [PathBuf::from(SITE_NOTES), answer::import::own_folder(store)]);
    let there = usual.filter(|folder| system.list(folder).is_ok());
    let set = system.env("JOBWISE_KNOWLEDGE").filter(|_| named.is_empty()).unwrap_or_default();
    let set = set.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from);
    there.chain(set).chain(named.iter().cloned()).collect()
}

/// The text itself, or what comes from standard input, of which a person pastes no more than this.
fn text_of(text: &str) -> Result<Vec<u8>, Failure> {
    const MOST: u64 = 64 << 20;
    if text != "-" {
        return Ok(text.as_bytes().to_vec());
    }
    let mut bytes = Vec::new();
    io::stdin().lock().take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn evaluate(world: World<'_>, args: &args::Eval, printer: &Printer) -> Result<Exit, Failure> {
    if let Some(suite) = args.suite {
        return measure_suite(world, suite, args, printer);
    }
    let split = match args.split {
        args::Split::Open => Split::Open,
        args::Split::Blind => Split::Blind,
        args::Split::All => Split::All,
    };
    let wanted = Wanted {
        files: args.files.clone(),
        split,
        results: args.results.clone(),
        calibrate: args.calibrate,
        baseline: args.baseline,
        leave_one_out: args.leave_one_out,
        thresholds: Thresholds {
            min_accuracy: args.min_accuracy,
            min_recall_at_1: args.min_recall_at_1,
            max_false_alarms: args.max_false_alarms,
        },
    };
    let evaluation = answer::evaluate::evaluate(world, &wanted)?;
    printer.print(&evaluation)?;
    Ok(if evaluation.is_passed() { Exit::Answered } else { Exit::No })
}

fn measure_suite(
    world: World<'_>,
    suite: args::Suite,
    args: &args::Eval,
    printer: &Printer,
) -> Result<Exit, Failure> {
    if let args::Suite::Retrieval = suite {
        return measure_search(world, args, printer);
    }
    let retrieval_only = args.results.is_some()
        || !args.queries.is_empty()
        || args.min_recall_at_1.or(args.min_hidden_at_1).or(args.min_gain).is_some();
    if retrieval_only {
        let message = "--results, --queries, --min-recall-at-1, --min-hidden-at-1 and --min-gain are \
                       of no suite but \"retrieval\"";
        return Err(usage(message.to_owned(), "see: jobwise eval --help"));
    }
    let wanted = SuiteWanted {
        suite: match suite {
            args::Suite::Negatives => evaluate::Suite::Negatives,
            args::Suite::Mutations => evaluate::Suite::Mutations,
            args::Suite::Cascades => evaluate::Suite::Cascades,
            args::Suite::Messages | args::Suite::Retrieval => evaluate::Suite::Messages,
        },
        files: args.files.clone(),
        seed: args.seed,
        jobs: args.jobs,
        padding: args.padding.saturating_mul(1_000_000),
        min_right: args.min_right,
        max_false_alarms: args.max_false_alarms,
    };
    let report = evaluate::suite(world, &wanted)?;
    printer.print(&report)?;
    Ok(if report.is_passed() { Exit::Answered } else { Exit::No })
}

fn measure_search(world: World<'_>, args: &args::Eval, printer: &Printer) -> Result<Exit, Failure> {
    let wanted = SearchWanted {
        files: args.files.iter().chain(&args.queries).cloned().collect(),
        results: args.results.clone(),
        min_known: args.min_recall_at_1,
        min_hidden: args.min_hidden_at_1,
        min_gain: args.min_gain,
    };
    let report = evaluate::retrieval(world, &wanted)?;
    printer.print(&report)?;
    Ok(if report.is_passed() { Exit::Answered } else { Exit::No })
}

/// `CODE` or `CODE:SIGNAL`, as the command line gives it: nothing was subtracted from it.
fn exit_of(text: &str) -> Result<model::Exit, Failure> {
    let (code, signal) = text.split_once(':').unwrap_or((text, "0"));
    match (code.parse(), signal.parse()) {
        (Ok(code), Ok(signal)) => Ok(model::Exit { code, signal, folded: false }),
        _ => Err(usage(format!("'{text}' is not an exit code"), "it is CODE or CODE:SIGNAL")),
    }
}

/// A state by any of its names; what is none would fit no job, without a word.
fn state_of(name: &str) -> Result<State, Failure> {
    let state = State::parse(name);
    if state.base != BaseState::Other {
        return Ok(state);
    }
    let nearest = text::did_you_mean(&name.to_ascii_uppercase(), BaseState::words());
    let hint = nearest.map_or_else(
        || format!("it is one of {}", BaseState::words().collect::<Vec<_>>().join(" ")),
        |nearest| format!("did you mean {nearest}?"),
    );
    Err(usage(format!("'{name}' is not a state"), &hint))
}

/// Refuses a scheduler that nobody knows: "none is installed" would be true and no help.
fn known_backend(name: &str) -> Result<(), Failure> {
    if sched::choices().any(|known| known == name) {
        return Ok(());
    }
    let known = text::join(&sched::choices().collect::<Vec<_>>(), "or");
    Err(usage(format!("jobwise knows no scheduler '{name}'"), &format!("it is {known}")))
}

fn usage(message: String, hint: &str) -> Failure {
    Failure::Usage { message, hint: Some(hint.to_owned()) }
}

fn filter(world: World<'_>, args: &args::Jobs) -> Result<Filter, Failure> {
    let (since, until) = window(world, &args.since, &args.until)?;
    let failed = ["FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"];
    let states = if args.failed {
        failed.map(str::to_owned).into()
    } else {
        let words = args.state.iter().map(|name| Ok(state_of(name)?.word().to_owned()));
        words.collect::<Result<_, Failure>>()?
    };
    Ok(Filter {
        users: users(&args.whose),
        states,
        accounts: args.whose.account.clone(),
        partitions: args.whose.partition.clone(),
        qos: Vec::new(),
        clusters: Vec::new(),
        names: args.name.clone(),
        since,
        until,
    })
}

/// The history that a command is about.
fn past(world: World<'_>, args: &args::Past, depth: Depth) -> Result<Past, Failure> {
    let (now, zone) = (world.cluster.now(), world.cluster.zone());
    let live = args.from.is_empty();
    let time = |text: &str| answer::parse_time(text, now, &zone).map_err(answer::AnswerError::from);
    // A file holds what somebody saved; the cluster holds years.
    let since = match args.since.as_deref() {
        Some(text) => time(text)?,
        None if live => time("30d")?,
        None => Timestamp::MIN,
    };
    let until = match args.until.as_deref() {
        Some(text) => time(text)?,
        None if live => now,
        None => Timestamp::MAX,
    };
    let states = args.state.iter().map(|name| Ok(state_of(name)?.word().to_owned()));
    let filter = Filter {
        users: users(&args.whose),
        states: states.collect::<Result<_, Failure>>()?,
        accounts: args.whose.account.clone(),
        partitions: args.whose.partition.clone(),
        qos: args.qos.clone(),
        clusters: args.clusters.clone(),
        names: args.name.clone(),
        since,
        until,
    };
    if since >= until {
        let (since, until) = (args.since.as_deref(), args.until.as_deref());
        let message = format!(
            "the window ends before it begins: {} is not before {}",
            since.unwrap_or("30d"),
            until.unwrap_or("now")
        );
        return Err(usage(message, "-S is its begin, -E its end"));
    }
    Ok(Past { filter, depth, files: args.from.clone(), columns: args.columns.clone() })
}

fn question(args: &args::Stats, filter: Filter) -> Question {
    Question {
        filter,
        method: match args.method {
            EnergyMethod::Estimate => Method::Estimate,
            EnergyMethod::Flat => Method::Flat,
            EnergyMethod::GreenAlgorithms => Method::GreenAlgorithms,
        },
        gpu_watts: args.gpu_watts,
        cpu_watts: args.cpu_watts,
        carbon: args
            .carbon_intensity
            .map(|grams_per_kwh| Carbon { grams_per_kwh, source: "--carbon-intensity".to_owned() }),
    }
}

fn sort(sort: args::Sort) -> Sort {
    match sort {
        args::Sort::Cost => Sort::Cost,
        args::Sort::Failures => Sort::Failures,
        args::Sort::Rate => Sort::Rate,
        args::Sort::Recent => Sort::Recent,
        args::Sort::Runs => Sort::Runs,
        args::Sort::Name => Sort::Name,
    }
}

fn dimension(by: args::By) -> By {
    match by {
        args::By::Cause => By::Cause,
        args::By::User => By::User,
        args::By::Account => By::Account,
        args::By::Qos => By::Qos,
        args::By::Partition => By::Partition,
        args::By::Gpu => By::Gpu,
        args::By::Week => By::Week,
    }
}

/// The plain statistics, or the sums apart.
fn statistics(world: World<'_>, args: &args::Stats, printer: &Printer) -> Result<(), Failure> {
    let wanted = past(world, &args.past, Depth::Steps)?;
    let question = question(args, wanted.filter.clone());
    // Files tell of runs and not of whole records, which the plain statistics judge.
    let apart = args.format.is_some() || !wanted.files.is_empty();
    let Some(by) = args.by.or_else(|| apart.then_some(args::By::Partition)) else {
        return printer.print(&answer::stats::stats(world, &question)?);
    };
    if by == args::By::Cause && !wanted.files.is_empty() {
        let message = "the cause of a failure is not in a file of runs".to_owned();
        return Err(usage(message, "--by user, account, qos, partition, gpu or week"));
    }
    let sums = breakdown_by(world, &wanted, &question, dimension(by))?;
    let Some(args::Table::Csv) = args.format else { return printer.print(&sums) };
    let mut out = io::BufWriter::new(io::stdout().lock());
    render::write_csv(&sums, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Zero is all.
fn limit(limit: usize) -> Option<usize> {
    (limit > 0).then_some(limit)
}

/// The window, with one "now" for both of its ends.
fn window(world: World<'_>, since: &str, until: &str) -> Result<(Timestamp, Timestamp), Failure> {
    let (now, zone) = (world.cluster.now(), world.cluster.zone());
    let time = |text| answer::parse_time(text, now, &zone).map_err(answer::AnswerError::from);
    let (begin, end) = (time(since)?, time(until)?);
    if begin >= end {
        let message = format!("the window ends before it begins: {since} is not before {until}");
        return Err(usage(message, "-S is its begin, -E its end"));
    }
    Ok((begin, end))
}

fn users(whose: &args::Whose) -> Users {
    if whose.all_users {
        Users::All
    } else if whose.user.is_empty() {
        Users::Me
    } else {
        Users::Named(whose.user.clone())
    }
}

fn knowledge(world: World<'_>, command: &KbCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        KbCommand::Build => {
            let built = progress::shown(world, |hear| answer::kb::build(world, hear))?;
            printer.print(&built)?;
        }
        KbCommand::Search { words, limit, scores } => {
            let hits = answer::kb::search(world, &words.join(" "), *limit, *scores)?;
            printer.print(&hits)?;
            if hits.matches.is_empty() {
                return Ok(Exit::No);
            }
        }
        KbCommand::Import { tickets, into } => {
            let imported = answer::import::import(world, tickets, into.as_deref())?;
            printer.print(&imported)?;
            if imported.tickets.is_empty() {
                return Ok(Exit::No);
            }
        }
        KbCommand::List { literals: true } => printer.print(&answer::kb::literals(world)?)?,
        KbCommand::List { literals: false } => printer.print(&answer::kb::list(world)?)?,
        KbCommand::Show { family } => printer.print(&answer::kb::show(world, family)?)?,
        KbCommand::Check => {
            let check = answer::kb::check(world)?;
            printer.print(&check)?;
            if !check.findings.is_empty() {
                return Ok(Exit::No);
            }
        }
        KbCommand::Model(model) => return models(world, &model.command, printer),
        KbCommand::Vectors { file } => {
            let made = progress::shown(world, |hear| answer::kb::vectors(world, file, hear))?;
            printer.print(&made)?;
        }
    }
    Ok(Exit::Answered)
}

fn models(world: World<'_>, command: &ModelCommand, printer: &Printer) -> Result<Exit, Failure> {
    use answer::models;
    match command {
        ModelCommand::List => printer.print(&models::list())?,
        ModelCommand::Install { from, to } => {
            let wanted = models::Wanted { from: from.clone(), to: to.clone() };
            printer.print(&models::install(world, &wanted)?)?;
        }
        ModelCommand::Remove { from } => {
            printer.print(&models::remove(world, from.as_deref())?)?;
        }
        ModelCommand::Where => {
            let found = models::whereabouts(world);
            printer.print(&found)?;
            if !found.works {
                return Ok(Exit::No);
            }
        }
    }
    Ok(Exit::Answered)
}

/// Writes reports to standard output.
struct Printer {
    format: Format,
    look: Look,
}

impl Printer {
    fn print_ticket(&self, diagnoses: &Diagnoses) -> Result<(), Failure> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        render::write_ticket(diagnoses, &self.look, &mut out)?;
        out.flush()?;
        Ok(())
    }

    fn print(&self, report: &impl Report) -> Result<(), Failure> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        render::write(report, self.format, &self.look, &mut out)?;
        out.flush()?;
        Ok(())
    }
}

/// How text looks here: painted only on a terminal that wants it, 80 columns where nobody says.
fn look(system: &System, cluster: &dyn Runner, global: &Global) -> Look {
    let set = |name: &str| system.env(name).filter(|value| !value.is_empty());
    let terminal = io::stdout().is_terminal();
    let dumb = set("TERM").is_some_and(|term| term == "dumb");
    let color = terminal && !dumb && !global.no_color && set("NO_COLOR").is_none();
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let unicode =
        locale.is_none_or(|name| name.to_ascii_lowercase().replace('-', "").contains("utf8"));
    let asked = set("COLUMNS").and_then(|columns| columns.parse().ok());
    let width = asked.or_else(|| if terminal { system.terminal_width() } else { None });
    Look {
        width: usize::clamp(width.unwrap_or(80), 40, 200),
        color,
        ascii: global.ascii || !unicode,
        year: cluster.now().to_zoned_datetime(cluster.zone()).year(),
        zone: cluster.zone(),
    }
}
