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
        if !self.nodes.is_empty() {
            page.gap()?;
            table(page, self)?;
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
        if !self.notices.is_empty() {
            page.gap()?;
        }
        page.notices(&self.notices)
    }
}

fn sentence(nodes: &Nodes) -> String {
    let what = if nodes.metric == "hang" { "hung" } else { "failed" };
    let mut said = format!(
        "{} of {} on {} {what}",
        nodes.hits,
        text::count(nodes.trials, "job"),
        text::count(nodes.judged as u64 + nodes.too_few_trials, "node"),
    );
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
    columns.extend(["JOBS", bad, "EXPECTED", "RATE", "95 % INTERVAL", "ODDS", "CHANCE"].map(right));
    columns.push(Column { heading: "VERDICT", right: false, least: WHOLE });
    let rows = nodes.nodes.iter().map(|row| {
        let worse = row.verdict == "worse";
        let label = if worse { Label::Bad } else { Label::Plain };
        let odds = match row.odds_ratio {
            Some(odds) => format!("x{}", figure(odds, 2)),
            None if row.hits > 0 => "only here".to_owned(),
            None => "-".to_owned(),
        };
        let chance = match row.chance {
            Some(chance) if chance < 0.0001 => "<0.0001".to_owned(),
            Some(chance) => figure(chance, 2),
            None => "n/a".to_owned(),
        };
        let cells: Vec<Cell> = vec![
            (label, row.node.clone()),
            (Label::Plain, row.trials.to_string()),
            (label, row.hits.to_string()),
            (Label::Plain, format!("{:.1}", row.expected)),
            (Label::Plain, format!("{} %", percent(row.rate))),
            (Label::Plain, format!("{}-{} %", percent(row.low), percent(row.high))),
            (Label::Plain, odds),
            (Label::Plain, chance),
            (label, if worse { "worse" } else { "-" }.to_owned()),
        ];
        cells
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    page.table(&columns, &rows)
}
