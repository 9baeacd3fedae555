//! `status`, `queues`, `zoom`, `nodes`, `gpus`, `health`, `exclude`, `backends`: the cluster at one
//! instant.

use super::args::{self, Command};
use super::failure::{Exit, Failure};
use super::{Printer, note, past, usage};
use crate::answer::cluster::{NodeFilter, Sort};
use crate::answer::{self, World};
use crate::render::Format;
use crate::sched::Depth;

/// Whether a command asks about nodes and partitions.
pub(super) fn is_asked(command: &Command) -> bool {
    matches!(
        command,
        Command::Status(_)
            | Command::Queues(_)
            | Command::Zoom(_)
            | Command::Nodes(_)
            | Command::Gpus(_)
            | Command::Health(_)
            | Command::Exclude(_)
            | Command::Where(_)
            | Command::Check(_)
            | Command::Backends
    )
}

/// Partitions that an overview shows unless all are wanted.
const STATUS_ROWS: usize = 12;

pub(super) fn status(
    world: World<'_>,
    args: &args::Status,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let shown = (!args.all).then_some(STATUS_ROWS);
    printer.print(&answer::status::status(world, shown, args.asking.declared)?)?;
    Ok(Exit::Answered)
}

pub(super) fn queues(
    world: World<'_>,
    args: &args::Queues,
    printer: &Printer,
) -> Result<Exit, Failure> {
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

pub(super) fn zoom(
    world: World<'_>,
    args: &args::Zoom,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let filter = node_filter(&args.which, &[]);
    printer.print(&answer::zoom::zoom(world, &args.names, &filter)?)?;
    Ok(Exit::Answered)
}

pub(super) fn nodes(
    world: World<'_>,
    args: &args::Nodes,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let filter = node_filter(&args.which, &args.of.partition);
    printer.print(&answer::nodes::nodes(world, &filter)?)?;
    Ok(Exit::Answered)
}

pub(super) fn gpus(
    world: World<'_>,
    args: &args::Partitions,
    printer: &Printer,
) -> Result<Exit, Failure> {
    printer.print(&answer::gpus::gpus(world, &args.partition)?)?;
    Ok(Exit::Answered)
}

pub(super) fn health(
    world: World<'_>,
    args: &args::Health,
    printer: &Printer,
) -> Result<Exit, Failure> {
    if !args.history && args.past != args::Past::default() {
        let message = "which jobs count was said, and that their history counts was not";
        return Err(usage(message.to_owned(), "add --history"));
    }
    let history = || past::wanted(world, &args.past, Depth::Allocations);
    let history = args.history.then(history).transpose()?;
    printer.print(&answer::health::health(world, history.as_ref())?)?;
    Ok(Exit::Answered)
}

pub(super) fn backends(world: World<'_>, printer: &Printer) -> Result<Exit, Failure> {
    printer.print(&answer::backends::backends(world))?;
    Ok(Exit::Answered)
}

fn node_filter(which: &args::WhichNodes, queues: &[String]) -> NodeFilter {
    NodeFilter {
        queues: queues.to_vec(),
        gpu: which.gpu,
        cpu: which.cpu,
        free: which.free,
        sort: match which.sort {
            args::NodeOrder::Room => Sort::Room,
            args::NodeOrder::Name => Sort::Name,
            args::NodeOrder::Load => Sort::Load,
            args::NodeOrder::Memory => Sort::Memory,
            args::NodeOrder::State => Sort::State,
        },
        limit: (!which.all).then_some(which.limit),
    }
}

pub(super) fn exclude(
    world: World<'_>,
    args: &args::Exclude,
    printer: &Printer,
) -> Result<Exit, Failure> {
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
