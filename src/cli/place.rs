//! `where` and `check`: the shape of a job from flags, a script or a job, and the questions about it.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::failure::{Exit, Failure};
use super::{Printer, usage};
use crate::answer::place::{self, Wanted};
use crate::answer::{World, snapshot};
use crate::host::{Recording, Replay};
use crate::model::{Ability, Bytes, Known, Notice, Shape, Span};
use crate::sched::survey::BUDGET;
use crate::text;

/// What a job asks for.
#[derive(Debug, Args)]
#[command(next_help_heading = "The job")]
pub(super) struct ShapeArgs {
    /// Take what this batch script asks for; flags win over it
    #[arg(long, value_name = "FILE", conflicts_with = "job")]
    script: Option<PathBuf>,

    /// Take what this job asks for, waiting or past; flags win over it
    #[arg(long, value_name = "JOB")]
    job: Option<String>,

    /// Nodes: N or MIN-MAX
    #[arg(short = 'N', long, value_name = "N")]
    nodes: Option<String>,

    /// Tasks
    #[arg(short = 'n', long, value_name = "N")]
    ntasks: Option<String>,

    /// Tasks on each node
    #[arg(long, value_name = "N", visible_alias = "ntasks-per-node")]
    tasks_per_node: Option<String>,

    /// CPUs of each task
    #[arg(short, long, value_name = "N", visible_alias = "cpus-per-task")]
    cpus: Option<String>,

    /// GPUs on each node: 2, or a100:2 of one type
    #[arg(short, long, value_name = "[TYPE:]N", visible_alias = "gpus-per-node")]
    gpus: Option<String>,

    /// GPUs of each task
    #[arg(long, value_name = "[TYPE:]N")]
    gpus_per_task: Option<String>,

    /// Memory that each GPU must have: 80G, a bare number is GiB
    #[arg(long, value_name = "SIZE")]
    gpu_mem: Option<String>,

    /// What each GPU must be able to do: bf16, fp8, fp4, tf32, fp64, flash, cuda, rocm, nvlink, xgmi, mig
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    needs: Vec<String>,

    /// Memory on each node: 64G, a bare number is GiB
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["mem_per_cpu", "mem_per_gpu"])]
    mem: Option<String>,

    /// Memory for each CPU
    #[arg(long, value_name = "SIZE", conflicts_with = "mem_per_gpu")]
    mem_per_cpu: Option<String>,

    /// Memory for each GPU
    #[arg(long, value_name = "SIZE")]
    mem_per_gpu: Option<String>,

    /// Time limit as sbatch takes it, or 90m, 36h, 1d12h [default: 01:00:00]
    #[arg(short, long, value_name = "TIME")]
    time: Option<String>,

    /// Features of nodes, as sbatch takes them
    #[arg(short = 'C', long, value_name = "EXPR")]
    constraint: Option<String>,

    /// Licences: NAME or NAME:N, with commas between
    #[arg(short = 'L', long, value_name = "LIST")]
    licenses: Option<String>,

    /// Hosts to keep away from
    #[arg(short = 'x', long, value_name = "HOSTS", value_parser = NonEmptyStringValueParser::new())]
    exclude: Option<String>,

    /// Hosts that it must have
    #[arg(short = 'w', long, value_name = "HOSTS", value_parser = NonEmptyStringValueParser::new())]
    nodelist: Option<String>,

    /// The reservation to run in
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    reservation: Option<String>,

    /// Nodes for itself alone
    #[arg(long)]
    exclusive: bool,

    /// The account to charge
    #[arg(short = 'A', long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    account: Option<String>,

    /// Try only these accounts [default: all of yours]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new(), conflicts_with = "account")]
    accounts: Vec<String>,

    /// The quality of service
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    qos: Option<String>,

    /// Only these partitions
    #[arg(
        short,
        long,
        visible_short_alias = 'q',
        visible_alias = "queue",
        value_name = "LIST",
        value_parser = NonEmptyStringValueParser::new()
    )]
    partition: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = dry_runs("--declared makes none."))]
pub(super) struct Where {
    #[command(flatten)]
    shape: ShapeArgs,

    /// Judge by rules and nodes alone; ask the scheduler nothing
    #[arg(long)]
    declared: bool,

    /// Show also the partitions that cannot take it, and hidden ones
    #[arg(long)]
    all: bool,

    /// Look for the one change that would let it run now
    #[arg(long)]
    what_if: bool,
}

#[derive(Debug, Args)]
#[command(after_help = dry_runs("jobwise where --declared judges without."))]
pub(super) struct Check {
    #[command(flatten)]
    shape: ShapeArgs,

    /// Ask about hidden partitions, too
    #[arg(long)]
    all: bool,

    /// As its relatives have it; here it is refused with what to run instead
    #[arg(long, hide = true)]
    declared: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Snapshot {
    #[command(subcommand)]
    pub(super) diff: Option<SnapshotCommand>,

    /// Where to: a folder, or one file where the name ends in .json; what is there is replaced
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Replace users, accounts, groups and hosts by other names, the same ones throughout
    #[arg(long)]
    pub(super) redact: bool,

    #[command(flatten)]
    shape: ShapeArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum SnapshotCommand {
    /// Say what differs between two snapshots
    Diff {
        /// The earlier one
        before: PathBuf,
        /// The later one
        after: PathBuf,
    },
}

/// That the scheduler is asked, what that costs, and how to do without.
pub(super) fn dry_runs(without: &str) -> String {
    format!(
        "Dry runs: the scheduler is asked by sbatch --test-only, once for each partition and way to \
         charge it, at most {BUDGET} times and 3 at a time. Each takes a job id, and starts nothing. \
         {without}"
    )
}

/// Takes a snapshot.
pub(super) fn snapshot(
    world: World<'_>,
    recording: &Recording<'_>,
    (args, path): (&Snapshot, &Path),
    printer: &Printer,
) -> Result<Exit, Failure> {
    let (wanted, _) = wanted(world, &args.shape)?;
    let taken = snapshot::take(world, recording, path, &wanted, args.redact)?;
    printer.print(&taken)?;
    Ok(Exit::Answered)
}

/// Compares two snapshots; a difference is no failure.
pub(super) fn compare(
    world: World<'_>,
    (before, after): (&Path, &Path),
    printer: &Printer,
) -> Result<Exit, Failure> {
    let (before, after) = (Replay::load(before)?, Replay::load(after)?);
    printer.print(&snapshot::compare(world, &before, &after)?)?;
    Ok(Exit::Answered)
}

/// Answers `where`.
pub(super) fn where_to(world: World<'_>, args: &Where, printer: &Printer) -> Result<Exit, Failure> {
    let (wanted, notices) = wanted(world, &args.shape)?;
    let wanted = Wanted { declared: args.declared, all: args.all, what_if: args.what_if, ..wanted };
    let mut places = place::places(world, wanted)?;
    places.notices.splice(0..0, notices);
    printer.print(&places)?;
    Ok(if places.somewhere { Exit::Answered } else { Exit::No })
}

/// Answers `check`.
pub(super) fn check(world: World<'_>, args: &Check, printer: &Printer) -> Result<Exit, Failure> {
    if args.declared {
        let text = "check is what the scheduler says: --declared would leave it unasked";
        return Err(usage(text.to_owned(), "jobwise where --declared judges by rules and nodes"));
    }
    let (wanted, notices) = wanted(world, &args.shape)?;
    let wanted = Wanted { all: args.all, ..wanted };
    let mut checked = place::check(world, &wanted)?;
    checked.notices.splice(0..0, notices);
    printer.print(&checked)?;
    Ok(match checked.accepted {
        0 if checked.asked > 0 && checked.unanswered == checked.queues.len() => Exit::QueryFailed,
        0 => Exit::No,
        _ => Exit::Answered,
    })
}

/// The shape: that of the script or the job, with the flags over it.
fn wanted(world: World<'_>, args: &ShapeArgs) -> Result<(Wanted, Vec<Notice>), Failure> {
    let (mut shape, mut notices) = if let Some(path) = &args.script {
        place::shape_of_script(world, path)?
    } else if let Some(id) = &args.job {
        let id = id.parse().map_err(crate::answer::AnswerError::from)?;
        place::shape_of_job(world, &id)?
    } else {
        // As the users of other tools know it.
        let hour = Shape {
            nodes: Some((1, None)),
            time: Known::Value(Span::seconds(3600)),
            ..Shape::default()
        };
        let packed = args.ntasks.is_some() && args.nodes.is_none();
        (Shape { nodes: hour.nodes.filter(|_| !packed), ..hour }, Vec::new())
    };
    let mut given: Vec<(&str, String)> = Vec::new();
    let mut say = |option: &'static str, value: &Option<String>| {
        given.extend(value.iter().map(|value| (option, value.clone())));
    };
    say("nodes", &args.nodes);
    say("ntasks", &args.ntasks);
    say("ntasks-per-node", &args.tasks_per_node);
    say("cpus-per-task", &args.cpus);
    // As `--gres` spells them.
    let bare = |gpus: &Option<String>| {
        gpus.as_ref().map(|gpus| gpus.strip_prefix("gpu:").unwrap_or(gpus).to_owned())
    };
    say("gpus-per-node", &bare(&args.gpus));
    say("gpus-per-task", &bare(&args.gpus_per_task));
    say("constraint", &args.constraint);
    say("licenses", &args.licenses);
    say("exclude", &args.exclude);
    say("nodelist", &args.nodelist);
    say("reservation", &args.reservation);
    say("account", &args.account);
    say("qos", &args.qos);
    say("partition", &args.partition);
    let sizes = [
        ("mem", &args.mem),
        ("mem-per-cpu", &args.mem_per_cpu),
        ("mem-per-gpu", &args.mem_per_gpu),
    ];
    for (option, size) in sizes {
        if let Some(size) = size {
            given.push((option, gibibytes(option, size)?.to_option()));
        }
    }
    if let Some(time) = &args.time {
        given.push(("time", in_words(time).map_or_else(|| time.clone(), |span| span.to_string())));
    }
    for (option, value) in &given {
        shape.apply(option, Some(value)).map_err(|error| {
            usage(
                format!("--{}: '{}' is not understood", error.option, error.value),
                error.expected,
            )
        })?;
    }
    shape.exclusive |= args.exclusive;
    if let Some(size) = &args.gpu_mem {
        shape.gpu_memory = Some(gibibytes("gpu-mem", size)?);
    }
    for word in &args.needs {
        let need = Ability::parse(word).ok_or_else(|| {
            let known: Vec<&str> = Ability::all().map(Ability::word).collect();
            usage(
                format!("'{word}' is nothing that --needs knows"),
                &format!("it is {}", text::join(&known, "or")),
            )
        })?;
        shape.needs.push(need);
    }
    // What a GPU must be asks for one.
    if (shape.gpu_memory.is_some() || !shape.needs.is_empty()) && shape.gpus().next().is_none() {
        let one = shape.apply("gpus-per-node", Some("1"));
        one.map_err(|error| usage(error.to_string(), error.expected))?;
    }
    notices.extend(other_meanings(args, &shape));
    let wanted = Wanted {
        script: args.script.as_ref().map(|path| path.display().to_string()),
        named_by: match (&args.partition, &args.script) {
            (Some(_), _) => "-p",
            (None, Some(_)) => "the script",
            (None, None) => "the job",
        },
        accounts: args.accounts.clone(),
        shape,
        ..Wanted::default()
    };
    Ok((wanted, notices))
}

/// Options that look like those of `sbatch` and are read otherwise.
fn other_meanings(args: &ShapeArgs, shape: &Shape) -> Vec<Notice> {
    let mut told = Vec::new();
    let nodes = shape.least_nodes();
    if args.gpus.is_some() && nodes > 1 {
        let each = shape.gpus_on_node();
        let all = each.saturating_mul(nodes);
        told.push(format!(
            "--gpus is read as on each node: {each} on each of {nodes}, {all} in all; that of sbatch counts all"
        ));
    }
    let sizes = [
        ("mem", &args.mem),
        ("mem-per-cpu", &args.mem_per_cpu),
        ("mem-per-gpu", &args.mem_per_gpu),
    ];
    for (option, size) in sizes {
        let bare = size.as_ref().filter(|size| size.bytes().all(|byte| byte.is_ascii_digit()));
        told.extend(bare.map(|size| {
            format!("--{option} {size} is read as {size}G; sbatch reads a bare number as MiB")
        }));
    }
    told.into_iter().map(|text| Notice::info("other-meaning", text)).collect()
}

fn gibibytes(option: &str, text: &str) -> Result<Bytes, Failure> {
    Bytes::parse(text, Bytes::GIB).map_err(|_| {
        usage(format!("--{option}: '{text}' is no amount of memory"), "it is 64, 64G or 65536M")
    })
}

/// `90m`, `36h`, `1d12h`; what is none of these is read as `sbatch` reads it.
fn in_words(text: &str) -> Option<Span> {
    let mut seconds: u64 = 0;
    let mut number = String::new();
    for c in text.chars() {
        if c.is_ascii_digit() {
            number.push(c);
            continue;
        }
        let unit = match c.to_ascii_lowercase() {
            'd' => 86_400,
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        seconds = seconds.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        number.clear();
    }
    (number.is_empty() && seconds > 0).then(|| Span::seconds(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_words_are_read_and_others_left_to_sbatch() {
        let seconds = |text: &str| in_words(text).map(Span::as_seconds);
        assert_eq!(seconds("90m"), Some(5400));
        assert_eq!(seconds("1d12h"), Some(129_600));
        assert_eq!(seconds("36h30m"), Some(131_400));
        for text in ["90", "1:00:00", "1-12", "h", "1w", "1h30", "", "99999999999999999999d"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
