//! Arguments, dispatch and exit codes: the only part that knows of a terminal.

mod args;
mod capacity;
mod failure;
mod measuring;
mod notes;
mod past;
mod place;
mod progress;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches};
use serde::Serialize;

use crate::answer::breakdown::Breakdown;
use crate::answer::diagnose::{Diagnoses, Given, Hints};
use crate::answer::{self, World};
use crate::config::Config;
use crate::host::{Recording, Replay, Runner, Store, System};
use crate::model::{self, BaseState, State};
use crate::render::{self, Format, Look, Report};
use crate::sched::{self, Session};
use crate::text;
use args::{Cli, Command, ConfigCommand, Global};
use failure::{Exit, Failure};

/// The demo cluster: a recording of a real one.
const DEMO: &[u8] = include_bytes!("../../fixtures/demo.json");
/// Its last 90 days, made by `fixtures/demo/make-history`, and the file in it that holds the runs.
const DEMO_HISTORY: &[u8] = include_bytes!("../../fixtures/demo/history.json.gz");
const DEMO_RUNS: &str = "history.txt";
/// Its nodes, partitions and queue, made by `fixtures/demo/make-cluster`.
const DEMO_CLUSTER: &[u8] = include_bytes!("../../fixtures/demo/cluster.json.gz");

/// What the standard library says of a word that is no number.
const NO_DIGIT: &str = "invalid digit found in string";

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
            let text = error.to_string();
            let of_number = text.contains(NO_DIGIT);
            let text = text.replace(NO_DIGIT, "a whole number is expected");
            // A closed terminal is no reason to fail differently.
            let _ = if of_number { write!(io::stderr(), "{text}") } else { error.print() };
            if let Some(hint) = equals_sign(error.kind(), &words) {
                let _ = writeln!(io::stderr(), "{}", beside("hint", &hint, System::error_width()));
            }
            if json && code == Exit::Usage {
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
    let _ = writeln!(io::stderr(), "{}", beside("note", message, System::error_width()));
}

/// What is said beside an answer: broken at the width of a terminal, one line for a program.
fn beside(name: &str, message: &str, width: Option<usize>) -> String {
    let line = format!("{name}: {}", harmless(message));
    width.map_or_else(|| line.clone(), |width| text::wrap(&line, width, 0).join("\n"))
}

/// How an option that stands alone or takes its value behind a sign is given one.
fn equals_sign(kind: ErrorKind, words: &[OsString]) -> Option<String> {
    let given = |pair: &&[OsString]| {
        let number = pair[1].to_str().is_some_and(|value| value.parse::<u32>().is_ok());
        pair[0] == "--logs" && number
    };
    let pair = words.windows(2).find(given).filter(|_| kind == ErrorKind::UnknownArgument)?;
    Some(format!("a number of runs is given so: --logs={}", pair[1].to_str()?))
}

/// What is said beside an answer, which may quote anybody.
fn harmless(message: &str) -> String {
    text::masked(&text::printable(message.as_bytes()))
}

fn complain(message: &str, hint: Option<&str>) {
    let mut stderr = io::stderr().lock();
    // Nobody is left to tell when standard error is closed.
    let width = System::error_width();
    let _ = writeln!(stderr, "{}", beside("jobwise", message, width));
    if let Some(hint) = hint {
        let _ = writeln!(stderr, "{}", beside("hint", hint, width));
    }
}

/// Chooses the cluster, asks, writes.
fn run(mut cli: Cli) -> Result<Exit, Failure> {
    let system = System::new(cli.global.verbose);
    let global = cli.global.clone();
    // Before and behind the command each is taken; together they contradict each other.
    let sources = [global.demo, global.replay.is_some(), global.record.is_some()];
    if sources.into_iter().filter(|given| *given).count() > 1 {
        let message = "--demo, --replay and --record exclude each other".to_owned();
        return Err(usage(message, "each says where the answers come from"));
    }
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
        && let Some(past) = past::of_the_demo(&mut cli.command)
    {
        replay.join(DEMO_HISTORY)?;
        note(
            "these 90 days of the demo cluster are made up: the recorded jobs that 'jobwise --demo \
             jobs' lists are not in them",
        );
        past.from.push(PathBuf::from(DEMO_RUNS));
        // A file is everybody's.
        if past.whose.user.is_empty() && !past.whose.all_users {
            past.whose.user.extend(replay.caller().name);
        }
    }
    if global.demo
        && let Command::Stats(args) = &cli.command
        && args.logs.is_some()
    {
        note("the demo cluster has logs of its few recorded jobs only, not of its 90 days");
    }
    if global.demo && capacity::is_asked(&cli.command) {
        replay.join(DEMO_CLUSTER)?;
    }
    ask(&cli, &system, &replay, &config)
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
    let overlays = notes::overlays(system, is_local, &global.knowledge);
    let session = Session::default();
    let world = World {
        cluster,
        machine: system,
        // Notes are of the machine that answers, also in a replay: somebody works on them there.
        overlays: &overlays,
        config,
        store: store.as_ref(),
        fresh: match &cli.command {
            Command::Diagnose(args) => args.fresh,
            Command::Sizing(args) => args.fresh,
            Command::Patterns(args) => args.fresh,
            Command::Status(args) => args.asking.fresh,
            Command::Queues(args) => args.asking.fresh,
            _ => false,
        },
        live: is_local && !matches!(cli.command, Command::Snapshot(_)),
        session: &session,
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
            let records = answer::job::job(world, &ids, view).map_err(Failure::Job)?;
            let worst = complain_of(&records.failures);
            printer.print(&records)?;
            Ok(worst)
        }
        Command::Jobs(args) => past::jobs(world, args, printer),
        Command::Stats(args) => past::statistics(world, args, printer),
        Command::Overview(args) => past::overview(world, args, printer),
        Command::Sizing(args) => past::sizing(world, args, printer),
        Command::Patterns(args) => past::patterns(world, args, printer),
        Command::Reliability(args) => past::reliability(world, args, printer),
        Command::Export(args) => past::export(world, args, printer),
        Command::Where(args) => place::where_to(world, args, printer),
        Command::Check(args) => place::check(world, args, printer),
        Command::Snapshot(args) => match &args.diff {
            Some(place::SnapshotCommand::Diff { before, after }) => {
                place::compare(world, (before, after), printer)
            }
            None => Err(usage(
                "a recording is a snapshot already, and so is the demo cluster".to_owned(),
                "without --replay and --demo your own cluster is asked",
            )),
        },
        Command::Status(args) => capacity::status(world, args, printer),
        Command::Queues(args) => capacity::queues(world, args, printer),
        Command::Zoom(args) => capacity::zoom(world, args, printer),
        Command::Nodes(args) => capacity::nodes(world, args, printer),
        Command::Gpus(args) => capacity::gpus(world, args, printer),
        Command::Health(args) => capacity::health(world, args, printer),
        Command::Exclude(args) => capacity::exclude(world, args, printer),
        Command::Backends => capacity::backends(world, printer),
        Command::Kb(kb) => notes::knowledge(world, &kb.command, printer),
        Command::Eval(args) => measuring::evaluate(world, args, printer),
        Command::Config(config) => match config.command {
            ConfigCommand::Show { origin } => {
                printer.print(&answer::settings::settings(world, origin))?;
                Ok(Exit::Answered)
            }
        },
    }
}

fn diagnose(world: World<'_>, args: &args::Diagnose, printer: &Printer) -> Result<Exit, Failure> {
    if args.ids.is_empty() && args.log.is_empty() && args.text.is_none() {
        let message = "no job was named".to_owned();
        return Err(usage(message, "name its id, or give --log FILE or --text TEXT"));
    }
    let piped = args.ids.as_slice() == ["-"];
    let mut diagnoses = if let Some(text) = args.text.as_deref().or(piped.then_some("-")) {
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
    diagnoses.scores = args.scores;
    // One id without an answer is an error; among several it is told beside the answers.
    if let ([], [_]) = (diagnoses.diagnoses.as_slice(), diagnoses.failures.as_slice())
        && let Some(failure) = diagnoses.failures.pop()
    {
        return Err(Failure::Job(failure.error));
    }
    let worst = complain_of(&diagnoses.failures);
    if args.ticket && printer.format == Format::Text {
        printer.print_ticket(&diagnoses)?;
    } else {
        printer.print(&diagnoses)?;
    }
    let unknown = diagnoses.diagnoses.iter().any(|diagnosis| !diagnosis.is_answered());
    Ok(if unknown { worst.max(Exit::No) } else { worst })
}

/// Tells of the ids without an answer, beside the answers of others; the worst of them.
fn complain_of(failures: &[answer::diagnose::Failure]) -> Exit {
    for failure in failures {
        complain(&format!("{}: {}", failure.id, failure.error), None);
    }
    let worst = failures.iter().map(|failure| failure::of_job(&failure.error).0).max();
    worst.unwrap_or(Exit::Answered)
}

/// The text itself, or what comes from standard input, of which a person pastes no more than this.
fn text_of(text: &str) -> Result<Vec<u8>, Failure> {
    const MOST: u64 = 64 << 20;
    let nothing = |what: &str| {
        usage(format!("there is nothing to read: {what} is empty"), "paste what sbatch printed")
    };
    if text != "-" {
        let is_empty = text.trim().is_empty();
        return if is_empty { Err(nothing("the text")) } else { Ok(text.as_bytes().to_vec()) };
    }
    let mut bytes = Vec::new();
    io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        let message = "standard input holds more than 64 MiB".to_owned();
        return Err(usage(message, "a log of any size is read with --log - or --log FILE"));
    }
    if bytes.trim_ascii().is_empty() {
        return Err(nothing("standard input"));
    }
    Ok(bytes)
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

/// Writes sums as a table for other programs.
fn print_csv(sums: &Breakdown) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    render::write_csv(sums, &mut out)?;
    out.flush()?;
    Ok(())
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
        // A width that is asked for is meant.
        cut: terminal || asked.is_some(),
        width: usize::clamp(width.unwrap_or(80), 40, 200),
        color,
        ascii: global.ascii || !unicode,
        year: cluster.now().to_zoned_datetime(cluster.zone()).year(),
        zone: cluster.zone(),
    }
}

#[cfg(test)]
mod tests {
    use super::beside;

    #[test]
    fn what_stands_beside_an_answer_is_broken_for_a_terminal_alone() {
        let states = "it is one of PENDING RUNNING SUSPENDED COMPLETED";
        assert_eq!(beside("hint", states, None), format!("hint: {states}"));
        let broken = beside("hint", states, Some(30));
        assert_eq!(broken, "hint: it is one of PENDING\nRUNNING SUSPENDED COMPLETED");
    }
}
