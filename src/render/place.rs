//! Where a job can run, and what the scheduler says to it, for people.

use std::collections::BTreeMap;
use std::io;

use jiff::{SignedDuration, Timestamp};

use super::Report;
use super::page::{Cell, Column, Label, Page, WHOLE};
use crate::answer::place::{Checked, CheckedQueue, Places, Possible};
use crate::capacity::change::spoken_until;
use crate::capacity::gates::Gate;
use crate::capacity::rank::{Placement, Source, Start, Verdict, too_few};
use crate::model::{Devices, DryRun, Known, Per, Refusal, Room, Settled, Shape};
use crate::text;

/// Queues that cannot take it are told in one line after so many.
const SHOWN: usize = 8;

/// `2 nodes, 8 CPUs and 2 a100 GPUs each, 64G per node, 01:00:00`.
fn sentence(shape: &Shape) -> String {
    let mut parts = Vec::new();
    let nodes = shape.least_nodes();
    let each = if nodes > 1 { " on each" } else { "" };
    if shape.has_fixed_nodes() {
        parts.push(text::count(nodes, "node"));
    }
    if shape.has_fixed_nodes() {
        parts.push(format!("{}{each}", text::count(shape.cpus_on_node(), "CPU")));
    } else {
        parts.push(text::count(shape.all_cpus(), "CPU"));
    }
    if shape.all_tasks() > nodes {
        parts.push(text::count(shape.all_tasks(), "task"));
    }
    for Devices { name, kind, count, per } in &shape.devices {
        let name = if name == "gpu" { "GPU" } else { name };
        let kind = kind.as_ref().map_or(String::new(), |kind| format!("{kind} "));
        let per = match per {
            Per::Task => " per task",
            Per::Node => each,
            _ => " in all",
        };
        parts.push(format!("{}{per}", text::count(*count, &format!("{kind}{name}"))));
    }
    if let Some(bytes) = shape.gpu_memory {
        parts.push(format!("{} on each GPU", bytes.to_option()));
    }
    if !shape.needs.is_empty() {
        let words: Vec<&str> = shape.needs.iter().map(|need| need.word()).collect();
        parts.push(text::join(&words, "and"));
    }
    match shape.memory {
        Some(Room { bytes, .. }) if bytes.0 == 0 => parts.push("all memory".to_owned()),
        Some(Room { bytes, per }) => {
            let per = match per {
                Per::Cpu => "CPU",
                Per::Gpu => "GPU",
                _ => "node",
            };
            parts.push(format!("{} per {per}", bytes.to_option()));
        }
        None => {}
    }
    if let Some(words) = &shape.constraint {
        parts.push(format!("constraint {words}"));
    }
    if shape.exclusive {
        parts.push("alone on its nodes".to_owned());
    }
    parts.push(match &shape.time {
        Known::Value(time) => time.to_string(),
        Known::Unlimited => "no time limit".to_owned(),
        Known::NotGathered | Known::Unreadable(_) => "the default time".to_owned(),
    });
    parts.join(", ")
}

fn label(verdict: Verdict) -> Label {
    match verdict {
        Verdict::RunNow => Label::Good,
        Verdict::Queue => Label::Plain,
        Verdict::NoAnswer => Label::Warn,
        _ => Label::Bad,
    }
}

fn access(placement: &Placement) -> String {
    match &placement.dry_run {
        Some(answer) => match answer.settled {
            Settled::Taken => "confirmed".to_owned(),
            Settled::Refused(refusal) => refusal.label().to_owned(),
            Settled::NoAnswer => "no answer".to_owned(),
        },
        // Nothing that its rules or its nodes rule out is asked about.
        None if placement.verdict > Verdict::NoAnswer => String::new(),
        None => "not asked".to_owned(),
    }
}

fn start(place: &Placement, now: Timestamp) -> String {
    let Some(Start { at, source }) = place.start else {
        // It would wait, and nobody can say how long.
        let waits = place.verdict == Verdict::Queue;
        return if waits { "n/a".to_owned() } else { String::new() };
    };
    let wait = at.duration_since(now);
    // Who waits is told how long, however short.
    let is_now = wait <= SignedDuration::from_secs(30) && place.verdict != Verdict::Queue;
    let words = if is_now { "now".to_owned() } else { spoken_until(wait) };
    // Ours is told apart from the scheduler's.
    match source {
        Source::Scheduler => words,
        Source::Estimate => format!("{words}*"),
    }
}

/// The line to submit: for a terminal broken between options, as a shell lets people paste it, and in
/// one piece for a program.
fn submit_line(page: &mut Page<'_>, options: &[String], script: Option<&str>) -> io::Result<()> {
    let quoted = |option: &str| {
        let plain = option
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_=+,./:@%".contains(&byte));
        if plain { option.to_owned() } else { format!("'{}'", option.replace('\'', "'\\''")) }
    };
    let words = options.iter().map(|option| quoted(option));
    let words = words.chain([quoted(script.unwrap_or("SCRIPT"))]);
    let most = if page.is_cut() { page.width() - GOES_ON.len() } else { usize::MAX };
    let mut line = "  sbatch".to_owned();
    for word in words {
        if text::width(&line) + 1 + text::width(&word) > most {
            page.line(&[(Label::Strong, &format!("{line}{GOES_ON}"))])?;
            "   ".clone_into(&mut line);
        }
        line = format!("{line} {word}");
    }
    page.line(&[(Label::Strong, &line)])
}

/// Tells a shell that the command goes on.
const GOES_ON: &str = " \\";

impl Report for Places {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.entry("", 0, Label::Plain, &sentence(&self.shape))?;
        let best = self.placements.first();
        let (label_of, words) = match best {
            Some(best) if best.verdict == Verdict::RunNow => {
                (Label::Good, format!("RUN NOW in {}", best.queue))
            }
            Some(best) if best.verdict == Verdict::Queue => {
                (Label::Warn, format!("nowhere now; it would wait in {}", best.queue))
            }
            Some(best) if best.reachable => {
                (Label::Warn, format!("perhaps in {}: the scheduler was not asked", best.queue))
            }
            Some(best) if best.verdict == Verdict::NoAnswer => {
                (Label::Warn, format!("not known whether in {}", best.queue))
            }
            _ => (Label::Bad, "NOWHERE".to_owned()),
        };
        page.entry("", 0, label_of, &words)?;
        page.gap()?;
        let shown = self.shown();
        self.table(page, &self.placements[..shown])?;
        let hidden = &self.placements[shown..];
        if !hidden.is_empty() {
            let more = text::count(hidden.len() as u64, "more partition");
            let mut verdicts: BTreeMap<Verdict, u64> = BTreeMap::new();
            for place in hidden {
                *verdicts.entry(place.verdict).or_default() += 1;
            }
            let verdicts: Vec<String> = verdicts
                .iter()
                .map(|(verdict, many)| format!("{many} {}", verdict.word()))
                .collect();
            let line = format!("{more} cannot take it ({}): --all", verdicts.join(", "));
            page.entry("", 0, Label::Dim, &line)?;
        }
        self.legend(page)?;
        // Where it can run is worth more than where there is no such node.
        let told = |place: &&Placement| {
            let obvious = self.somewhere && place.verdict == Verdict::WrongHardware;
            !place.because.is_empty() && (self.all || !obvious)
        };
        let reasons: Vec<&Placement> = self.placements[..shown].iter().filter(told).collect();
        if !reasons.is_empty() {
            page.gap()?;
        }
        // What holds for many queues is said once, where the best of them stands.
        let mut told: Vec<(Vec<Line>, Vec<&str>)> = Vec::new();
        for place in reasons {
            let lines = reason(place);
            match told.iter_mut().find(|(known, _)| *known == lines) {
                Some((_, queues)) => queues.push(&place.queue),
                None => told.push((lines, vec![&place.queue])),
            }
        }
        for (lines, queues) in told {
            let mut before = format!("{}: ", text::join(&queues, "and"));
            for (indent, label, line) in lines {
                let line = format!("{}{line}", std::mem::take(&mut before));
                page.entry(&" ".repeat(indent), indent, label, &line)?;
            }
        }
        if !self.elsewhere.is_empty() {
            page.gap()?;
            let line = format!(
                "{} was named by {}; by rules and nodes {} would take it: -p {} asks the scheduler",
                text::join(&self.shape.partitions, "and"),
                self.named_by,
                text::join(&self.elsewhere, "or"),
                self.elsewhere[0],
            );
            page.entry("", 0, Label::Good, &line)?;
        }
        self.footer(page)?;
        page.notices(&self.notices)
    }
}

/// A line with how far it is indented.
type Line = (usize, Label, String);

/// Why a queue stands where it does, without its name.
fn reason(place: &Placement) -> Vec<Line> {
    let waiting = match (place.verdict, place.waiting) {
        (Verdict::Queue, 1) => "; 1 job waits there".to_owned(),
        (Verdict::Queue, many @ 2..) => format!("; {many} jobs wait there"),
        _ => String::new(),
    };
    // Where all its nodes lack one thing their number says nothing.
    let because = match (place.verdict, place.fit.wrong.keys().next()) {
        (Verdict::WrongHardware, Some(why)) if place.fit.wrong.len() == 1 => why,
        _ => &place.because,
    };
    let mut lines = vec![(0, Label::Plain, format!("{because}{waiting}"))];
    lines.extend(remedies(place));
    lines
}

/// What would lift the reason that was just told, and what is in the way then: advice that is
/// followed must not end at the next gate.
fn remedies(place: &Placement) -> Vec<Line> {
    let mut lines = Vec::new();
    if !matches!(place.verdict, Verdict::Limit | Verdict::Blocked) {
        return lines;
    }
    let (told, others): (Vec<&Gate>, Vec<&Gate>) =
        place.access.refusals().partition(|gate| place.because.starts_with(&gate.text));
    for lift in told.iter().filter_map(|gate| gate.lift.as_ref()) {
        lines.push((2, Label::Dim, lift.clone()));
    }
    for gate in others {
        lines.push((2, Label::Plain, format!("also: {} ({})", gate.text, gate.source)));
        lines.extend(gate.lift.iter().map(|lift| (4, Label::Dim, lift.clone())));
    }
    let fit = &place.fit;
    if place.verdict == Verdict::Limit
        && !fit.ever
        && fit.right > 0
        && fit.unverified == 0
        && !place.because.contains("right hardware")
    {
        lines.push((2, Label::Plain, format!("also: {}", too_few(fit))));
    }
    lines
}

impl Places {
    /// How many queues are told one by one: those that can take it, then what stands closest.
    fn shown(&self) -> usize {
        let all = self.placements.len();
        let able =
            self.placements.iter().take_while(|place| place.verdict < Verdict::Limit).count();
        // Where no node has what is asked for is worth a line only where that is all there is.
        let of_use =
            self.placements.iter().take_while(|place| place.verdict != Verdict::WrongHardware);
        match of_use.count() {
            _ if self.all => all,
            0 => SHOWN.min(all),
            of_use => able.max(SHOWN).min(of_use),
        }
    }

    fn table(&self, page: &mut Page<'_>, placements: &[Placement]) -> io::Result<()> {
        const COLUMNS: [Column; 7] = [
            Column { heading: "VERDICT", right: false, least: WHOLE },
            Column { heading: "PARTITION", right: false, least: WHOLE },
            Column { heading: "FITS", right: true, least: WHOLE },
            Column { heading: "RIGHT HW", right: true, least: WHOLE },
            Column { heading: "START", right: false, least: WHOLE },
            Column { heading: "GPUS", right: false, least: 6 },
            Column { heading: "ACCESS", right: false, least: 9 },
        ];
        let rows: Vec<Vec<Cell>> = placements.iter().map(|place| self.row(place)).collect();
        // Where nobody was asked that is said once, below.
        let told = if placements.iter().any(|place| place.dry_run.is_some()) { 7 } else { 6 };
        page.table(&COLUMNS[..told], &rows)
    }

    fn legend(&self, page: &mut Page<'_>) -> io::Result<()> {
        let unsure = self.placements.iter().any(|place| place.fit.unverified > 0);
        let unsure = if unsure { " (+N? where its GPUs are not identified)" } else { "" };
        let line = format!(
            "FITS: nodes with room now/needed; RIGHT HW: nodes that have what it asks for/all{unsure}"
        );
        page.entry("", 0, Label::Dim, &line)
    }

    fn row(&self, place: &Placement) -> Vec<Cell> {
        let fit = &place.fit;
        let unsure = match fit.unverified {
            0 => String::new(),
            more => format!("+{more}?"),
        };
        let gpus: Vec<&str> = fit.gpus.keys().map(String::as_str).collect();
        vec![
            (label(place.verdict), place.verdict.word().to_owned()),
            (Label::Plain, place.queue.clone()),
            (Label::Plain, format!("{}/{}", fit.fitting, fit.needed)),
            (Label::Plain, format!("{}/{}{unsure}", fit.right, fit.considered)),
            (Label::Plain, start(place, self.taken_at)),
            (Label::Plain, gpus.join(" ")),
            (Label::Plain, access(place)),
        ]
    }

    fn footer(&self, page: &mut Page<'_>) -> io::Result<()> {
        if let Some(changes) = &self.changes {
            page.gap()?;
            changed(page, changes)?;
        }
        let best = self.placements.first().filter(|place| !place.submit.is_empty());
        if let Some(best) = best {
            page.gap()?;
            let when = match best.verdict {
                Verdict::RunNow => "starts now",
                Verdict::Queue => "waits",
                _ => "not asked",
            };
            page.line(&[(Label::Dim, &format!("submit ({when}):"))])?;
            submit_line(page, &best.submit, self.script.as_deref())?;
        }
        page.gap()?;
        let estimated = self
            .placements
            .iter()
            .any(|place| place.start.is_some_and(|start| start.source == Source::Estimate));
        if estimated {
            let text = "* our estimate from the time limits of jobs that run and wait; those that end \
                        early make it sooner, new ones of higher priority later";
            page.entry("", 0, Label::Dim, text)?;
        }
        // Why nobody was asked says more.
        if self.notices.iter().any(|notice| notice.code == "no-dry-run") {
            return Ok(());
        }
        asked(page, self.asked)
    }
}

fn changed(page: &mut Page<'_>, changes: &[Possible]) -> io::Result<()> {
    if changes.is_empty() {
        return page.entry("", 0, Label::Plain, "no single change would let it run now");
    }
    page.entry("", 0, Label::Dim, "it would run now:")?;
    for Possible { change, confirmed, .. } in changes {
        let said = match confirmed {
            Some(true) => "the scheduler says so",
            _ => "not confirmed by the scheduler",
        };
        let place = format!("in partition {}", change.queue);
        let words = if change.what.contains(&place) {
            change.what.clone()
        } else {
            format!("{}, {place}", change.what)
        };
        page.entry("", 2, Label::Plain, &format!("{words} ({said})"))?;
    }
    Ok(())
}

fn asked(page: &mut Page<'_>, asked: usize) -> io::Result<()> {
    let text = match asked {
        0 => "the scheduler was not asked".to_owned(),
        1 => "1 dry run was made; it took a job id".to_owned(),
        many => format!("{many} dry runs were made; each took a job id"),
    };
    page.entry("", 0, Label::Dim, &text)
}

impl Report for Checked {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        const COLUMNS: [Column; 6] = [
            Column { heading: "PARTITION", right: false, least: WHOLE },
            Column { heading: "ANSWER", right: false, least: WHOLE },
            Column { heading: "ACCOUNT", right: false, least: 7 },
            Column { heading: "QOS", right: false, least: 5 },
            Column { heading: "START", right: false, least: WHOLE },
            Column { heading: "NODES", right: false, least: 6 },
        ];
        page.entry("", 0, Label::Plain, &sentence(&self.shape))?;
        let line = format!(
            "{} of {} would take it, {} gave no answer",
            self.accepted,
            text::count(self.queues.len() as u64, "partition"),
            self.unanswered
        );
        page.entry("", 0, Label::Strong, &line)?;
        page.gap()?;
        let rows: Vec<Vec<Cell>> =
            self.queues.iter().map(|queue| checked_row(page, queue)).collect();
        page.table(&COLUMNS, &rows)?;
        page.gap()?;
        for queue in &self.queues {
            let said = queue.answer.as_ref().map(|answer| answer.message.as_str());
            let untried = match queue.untried {
                0 => String::new(),
                more => format!(" ({} not tried)", text::count(more as u64, "account")),
            };
            let words = match (&queue.but, said) {
                (Some(but), _) => format!("yes, but {but}"),
                (None, Some(said)) if !said.is_empty() => format!("{said}{untried}"),
                (None, None) => format!("not asked{untried}"),
                _ => continue,
            };
            page.entry("", 0, Label::Plain, &format!("{}: {words}", queue.queue))?;
        }
        for answer in self.queues.iter().flat_map(|queue| &queue.disagreements) {
            let filter = answer.filter.as_ref().is_some_and(|filter| filter.passed);
            let says = if filter { "passes" } else { "rejects" };
            let text = format!(
                "{}: the site's submit filter {says} it, the scheduler says: {}",
                answer.queue,
                if answer.message.is_empty() { "yes" } else { &answer.message }
            );
            page.entry("disagree ", 9, Label::Warn, &text)?;
        }
        for text in &self.not_covered {
            page.entry("", 0, Label::Dim, &format!("a dry run does not look at {text}"))?;
        }
        asked(page, self.asked)?;
        page.notices(&self.notices)
    }
}

fn checked_row(page: &Page<'_>, queue: &CheckedQueue) -> Vec<Cell> {
    let answer = queue.answer.as_ref();
    let (label, words) = match answer.map(|answer| answer.settled) {
        Some(Settled::Taken) if queue.but.is_some() => (Label::Warn, "yes, but"),
        Some(Settled::Taken) => (Label::Good, "yes"),
        Some(Settled::Refused(refusal)) => (Label::Bad, Refusal::label(refusal)),
        Some(Settled::NoAnswer) => (Label::Warn, "no answer"),
        None => (Label::Warn, "not asked"),
    };
    let text =
        |get: fn(&DryRun) -> Option<&String>| answer.and_then(get).cloned().unwrap_or_default();
    let start = answer.map_or(String::new(), |answer| {
        if answer.start.is_value() { page.brief_moment(&answer.start) } else { String::new() }
    });
    vec![
        (Label::Plain, queue.queue.clone()),
        (label, words.to_owned()),
        (Label::Plain, text(|answer| answer.account.as_ref())),
        (Label::Plain, text(|answer| answer.effective_qos.as_ref().or(answer.qos.as_ref()))),
        (Label::Plain, start),
        (Label::Plain, text(|answer| answer.nodes.as_ref())),
    ]
}
