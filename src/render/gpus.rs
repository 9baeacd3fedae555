//! The accelerators of a cluster, for people.

use std::io;

use super::Report;
use super::page::{Cell, Column, Label, Page, WHOLE};
use crate::answer::gpus::Gpus;
use crate::capacity::inventory::Stock;
use crate::model::{Ability, Bytes};
use crate::text;

/// The abilities that have a column.
const SHOWN: [Ability; 4] = [Ability::Bf16, Ability::Fp8, Ability::Fp4, Ability::Fp64];

impl Report for Gpus {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        const COLUMNS: [Column; 10] = [
            Column { heading: "MODEL", right: false, least: 8 },
            Column { heading: "MEMORY", right: true, least: WHOLE },
            Column { heading: "NODES", right: true, least: WHOLE },
            Column { heading: "YOURS", right: true, least: WHOLE },
            Column { heading: "FREE", right: true, least: WHOLE },
            Column { heading: "BF16", right: false, least: WHOLE },
            Column { heading: "FP8", right: false, least: WHOLE },
            Column { heading: "FP4", right: false, least: WHOLE },
            Column { heading: "FP64", right: false, least: WHOLE },
            Column { heading: "PARTITIONS", right: false, least: 10 },
        ];
        if self.models.is_empty() {
            page.entry("", 0, Label::Plain, "no GPU or other accelerator")?;
            return page.notices(&self.notices);
        }
        let line = format!(
            "{} of {} free, {} for you",
            self.free,
            text::count(self.installed, "accelerator"),
            self.yours
        );
        page.entry("", 0, Label::Strong, &line)?;
        page.gap()?;
        let rows: Vec<Vec<Cell>> = self.models.iter().map(row).collect();
        page.table(&COLUMNS, &rows)?;
        page.gap()?;
        let reaches = self.abilities.iter().filter(|(_, reach)| reach.installed > 0);
        let words: Vec<String> = reaches
            .map(|(ability, reach)| {
                format!("{} {}/{}", ability.word(), reach.free, reach.installed)
            })
            .collect();
        if !words.is_empty() {
            page.entry("able", 5, Label::Plain, &format!("{} (free/installed)", words.join(", ")))?;
        }
        let stranded: u64 = self.models.iter().map(|stock| stock.stranded).sum();
        if stranded > 0 {
            let text = format!(
                "{} that nobody has cannot be had: no core or no memory is left beside {}",
                text::count(stranded, "GPU"),
                if stranded == 1 { "it" } else { "them" },
            );
            page.entry("", 0, Label::Warn, &text)?;
        }
        let unknown: u64 = self.models.iter().map(|stock| stock.unknown).sum();
        if unknown > 0 {
            let text = format!(
                "of {} it is not known whether they are in use",
                text::count(unknown, "GPU")
            );
            page.entry("", 0, Label::Warn, &text)?;
        }
        if self.unidentified > 0 {
            let text = format!(
                "{} of a model that is not known here: counted for no ability, which is not to say \
                 that they have none; /etc/jobwise/accelerators.toml can name them",
                text::count(self.unidentified, "device"),
            );
            page.entry("", 0, Label::Warn, &text)?;
        }
        page.notices(&self.notices)
    }
}

fn row(stock: &Stock) -> Vec<Cell> {
    let gib = |bytes: Bytes| bytes.to_option();
    let memory = match stock.memory {
        None => "n/a".to_owned(),
        Some(memory) if memory.is_certain() => gib(memory.least),
        Some(memory) => format!(">={}", gib(memory.least)),
    };
    let free = if stock.unknown > 0 {
        format!("n/a/{}", stock.installed)
    } else {
        format!("{}/{}", stock.free, stock.installed)
    };
    let label = if stock.yours > 0 { Label::Good } else { Label::Plain };
    let queues: Vec<&str> = stock.open_in.iter().map(String::as_str).collect();
    let queues = match (queues.is_empty(), stock.closed_in.is_empty()) {
        (false, _) => queues.join(" "),
        (true, false) => "none for you".to_owned(),
        (true, true) => String::new(),
    };
    let mut cells = vec![
        (Label::Plain, stock.name.clone()),
        (Label::Plain, memory),
        (Label::Plain, stock.nodes.to_string()),
        (label, stock.yours.to_string()),
        (Label::Plain, free),
    ];
    cells.extend(SHOWN.map(|ability| {
        let word = match stock.abilities.get(&ability) {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        (Label::Plain, word.to_owned())
    }));
    cells.push((Label::Plain, queues));
    cells
}
