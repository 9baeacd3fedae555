//! Nodes for people.

use std::io;

use super::Report;
use super::figures::{figure, percent};
use super::overview::head;
use super::page::{Cell, Column, Label, Page, WHOLE};
use crate::answer::reliability::Nodes;
use crate::text;

impl Report for Nodes {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        head(page, &self.scope)?;
        page.entry("", 0, Label::Plain, &sentence(self))?;
        if !self.node_failures.is_empty() {
            let lost = ended_by_nodes(self);
            page.entry("node failures  ", 15, Label::Bad, &lost)?;
        }
        if !self.nodes.is_empty() {
            page.gap()?;
            table(page, self)?;
            let what = if self.metric == "hang" { "hung" } else { "failed" };
            let said = format!(
                "{}/RATE: of the jobs on the node, with the interval that holds the true rate in 95 \
                 of 100 cases; COMPARED: jobs of work that also ran on other nodes; EXPECTED: how \
                 many of those would have {what} there; CHANCE: how likely so many are by chance",
                what.to_uppercase()
            );
            page.entry("", 0, Label::Dim, &said)?;
        }
        if let Some(exclude) = &self.exclude {
            page.gap()?;
            page.line(&[(Label::Added, &format!("#SBATCH --exclude={exclude}"))])?;
            let mut said =
                "work for work these nodes are worse than the others, beyond chance".to_owned();
            if self.not_excluded > 0 {
                said.push_str(&format!("; so are {} more", self.not_excluded));
            }
            page.entry("", 0, Label::Plain, &said)?;
        }
        page.notices_apart(&self.notices)
    }
}

/// "n013 10 runs", of so many nodes.
fn ended_by_nodes(nodes: &Nodes) -> String {
    const TOLD: usize = 8;
    let told = nodes.node_failures.iter().take(TOLD);
    let told = told.map(|row| format!("{} {}", row.node, text::count(row.runs, "run")));
    let mut told = told.collect::<Vec<_>>().join(", ");
    let more = nodes.node_failures.len().saturating_sub(TOLD);
    if more > 0 {
        told.push_str(&format!(", and {}", text::count(more as u64, "more node")));
    }
    told
}

fn sentence(nodes: &Nodes) -> String {
    let what = if nodes.metric == "hang" { "hung" } else { "failed" };
    let mut said = format!(
        "{} of {} on {} {what}",
        nodes.hits,
        text::count(nodes.trials, "job"),
        text::count(nodes.judged as u64 + nodes.too_few_trials, "node"),
    );
    if nodes.array_tasks > 0 {
        let tasks = text::count(nodes.array_tasks, "task");
        said.push_str(&format!(
            " (the tasks of an array count as one job on each node, failed if half of them did: \
             {tasks} here)"
        ));
    }
    if nodes.at_limits > 0 {
        let runs = text::count(nodes.at_limits, "run");
        said.push_str(&format!("; {runs} ended at a limit of their own: not counted"));
    }
    if nodes.too_few_trials > 0 {
        let few = text::count(nodes.too_few_trials, "node");
        said.push_str(&format!("; {few} with too few jobs to judge"));
    }
    if nodes.ambiguous > 0 {
        let runs = text::count(nodes.ambiguous, "failed run");
        said.push_str(&format!("; {runs} on several nodes left out, none of them named"));
    }
    if nodes.judged > 0 && nodes.exclude.is_none() {
        said.push_str("; no node is worse than the others beyond chance");
    }
    said
}

fn table(page: &mut Page<'_>, nodes: &Nodes) -> io::Result<()> {
    let right = |heading| Column { heading, right: true, least: WHOLE };
    let bad = if nodes.metric == "hang" { "HUNG" } else { "FAILED" };
    let mut columns = vec![Column { heading: "NODE", right: false, least: 8 }];
    columns.extend([bad, "RATE", "95 %", "COMPARED", "EXPECTED", "CHANCE"].map(right));
    columns.push(Column { heading: "VERDICT", right: false, least: WHOLE });
    let rows = nodes.nodes.iter().map(|row| {
        let worse = row.verdict == "worse";
        let label = if worse { Label::Bad } else { Label::Plain };
        let chance = match row.chance {
            Some(chance) if chance < 0.0001 => "<0.0001".to_owned(),
            Some(chance) => figure(chance, 2),
            None => "n/a".to_owned(),
        };
        let cells: Vec<Cell> = vec![
            (label, row.node.clone()),
            (label, format!("{}/{}", row.hits, row.trials)),
            (Label::Plain, format!("{} %", percent(row.rate))),
            (Label::Plain, format!("{}-{} %", percent(row.low), percent(row.high))),
            (label, format!("{}/{}", row.compared_hits, row.compared_trials)),
            (Label::Plain, row.expected.map_or_else(|| "n/a".to_owned(), |n| format!("{n:.1}"))),
            (Label::Plain, chance),
            (label, if worse { "worse" } else { "-" }.to_owned()),
        ];
        cells
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    page.table(&columns, &rows)
}
