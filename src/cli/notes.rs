//! `kb`: the notes, their index, and the model that embeds them; and where notes are looked for.

use std::path::PathBuf;

use super::args::{KbCommand, ModelCommand};
use super::failure::{Exit, Failure};
use super::{Printer, progress};
use crate::answer::{self, World};
use crate::host::{Runner, System};

/// The site's notes for everybody.
const SITE_NOTES: &str = "/etc/jobwise/knowledge";

/// Folders of notes: the site's and the user's where they are there, and those that were named. What
/// is recorded or replayed must not depend on notes that nobody named.
pub(super) fn overlays(system: &System, live: bool, named: &[PathBuf]) -> Vec<PathBuf> {
    let own = answer::import::own_folder(system);
    let usual = std::iter::once(PathBuf::from(SITE_NOTES)).chain(own).filter(|_| live);
    let there = usual.filter(|folder| system.list(folder).is_ok());
    let set = system.env("JOBWISE_KNOWLEDGE").filter(|_| named.is_empty()).unwrap_or_default();
    let set = set.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from);
    there.chain(set).chain(named.iter().cloned()).collect()
}

pub(super) fn knowledge(
    world: World<'_>,
    command: &KbCommand,
    printer: &Printer,
) -> Result<Exit, Failure> {
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
