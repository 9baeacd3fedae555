//! `kb check`, the static half: what can be seen in the files without running a rule.
//!
//! The other half, whether each example makes its own family win, is `classify::check`.

use std::collections::BTreeSet;
use std::fmt;

use regex::Regex;

use super::{Family, KnowledgeError, SignalSource, placeholder_names};
use crate::model::{BaseState, Domain};

/// The sections of a body, in order.
pub const SECTIONS: [&str; 4] = ["Symptoms", "Causes", "Fixes", "Verify"];

/// Something wrong with a family file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The file.
    pub file: String,
    /// The line, where one is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl Finding {
    /// A finding about a family as a whole.
    pub fn about(family: &Family, what: impl Into<String>) -> Self {
        let own = family.provenance.file().map(str::to_owned);
        let file = own.unwrap_or_else(|| format!("knowledge/{}.md", family.id));
        Self { file, line: None, what: what.into() }
    }
}

impl From<KnowledgeError> for Finding {
    fn from(error: KnowledgeError) -> Self {
        Self { file: error.file, line: error.line, what: error.what }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// Checks every family. `holds_stem` says whether the log scan would look at a line that holds a
/// literal: a literal without one of its stems is never seen.
pub fn check(families: &[Family], holds_stem: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let ids: BTreeSet<&str> = families.iter().map(|family| family.id.0.as_str()).collect();
    let states: BTreeSet<&str> = BaseState::words().collect();
    let mut findings = Vec::new();
    let instance = Regex::new(INSTANCE);
    for (index, family) in families.iter().enumerate() {
        let mut find = |what: String| findings.push(Finding::about(family, what));
        if families[..index].iter().any(|other| other.id == family.id) {
            find(format!("family '{}' is there twice", family.id));
        }
        for state in unknown_states(family, &states) {
            find(format!("'{state}' is not a job state"));
        }
        for neighbour in &family.yields_to {
            if !ids.contains(neighbour.0.as_str()) {
                find(format!("yields to '{neighbour}', which is not a family"));
            }
        }
        for source in &family.sources {
            if !source.starts_with("https://") {
                find(format!("source '{source}' is not an https address"));
            }
        }
        let edits =
            family.edits.len() + family.signals.iter().map(|s| s.edits.len()).sum::<usize>();
        match &family.without_edit {
            None if edits == 0 => {
                find("brings no edit and does not say why: 'without_edit'".to_owned());
            }
            Some(_) if edits > 0 => find("brings an edit and says why there is none".to_owned()),
            _ => {}
        }
        if matches!(family.domain, Domain::Site | Domain::Hardware) && family.report.is_none() {
            find(
                "is not its user's to mend and has nothing to ask of the staff: 'report'"
                    .to_owned(),
            );
        }
        if !family.signals.is_empty() && family.sources.is_empty() {
            find("names no source for its signals".to_owned());
        }
        let headings: Vec<&str> =
            family.sections.iter().map(|section| section.heading.as_str()).collect();
        if headings != SECTIONS {
            find(format!("has the sections {headings:?}, not {SECTIONS:?}"));
        }
        for section in family.sections.iter().filter(|section| section.markdown.is_empty()) {
            find(format!("section '{}' is empty", section.heading));
        }
        check_signals(family, holds_stem, &mut find);
        check_placeholders(family, &mut findings);
        if let Ok(instance) = &instance {
            check_instances(family, instance, &mut findings);
        }
    }
    findings
}

/// What an answer knows beside the values that signals capture: the job, its array, partition and
/// account, the node it ran on where that is one, the job that it waits for, the package of a module,
/// and the changes that are proposed.
pub const VALUES: [&str; 10] = [
    "job",
    "array",
    "partition",
    "account",
    "node",
    "parent",
    "package",
    "memory",
    "time",
    "exclude",
];

/// A place that nothing ever fills in is a misspelt name.
fn check_placeholders(family: &Family, findings: &mut Vec<Finding>) {
    for section in &family.sections {
        for name in placeholder_names(&section.markdown) {
            if VALUES.contains(&name) || captures(family, name) {
                continue;
            }
            let heading = &section.heading;
            let what = format!(
                "section '{heading}' fills in '{name}', which no signal captures and is not one of \
                 {VALUES:?}"
            );
            let line = Some(section.line);
            findings.push(Finding { line, ..Finding::about(family, what) });
        }
    }
}

/// The bus id of a device, a peer with its port, an address, a node or a job behind an option.
const INSTANCE: &str = r"(?x)
    \b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}
    | \b[a-z][a-z-]*\d+<\d+>
    | \b(?:[1-9]\d{0,2})(?:\.\d{1,3}){3}\b
    | (?:--exclude=|--nodelist=|-w\x20|ExcNodeList=|^)[a-z]{1,6}-?\d{2,4}(?:\x20|$)
    | (?:JobId=|--jobid=|--jobs=|-j\x20|scancel\x20|release\x20|jobwise\x20diagnose\x20)\d+";

/// A value that looks like one of somebody's job reads as one of this job: it has to be filled in, or to
/// be no more than a name for it.
fn check_instances(family: &Family, instance: &Regex, findings: &mut Vec<Finding>) {
    /// Types of numbers, and addresses of the machine itself.
    const GENERAL: [&str; 11] = [
        "bf16",
        "fp16",
        "fp32",
        "fp64",
        "int8",
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "127.0.0.1",
        "x86",
    ];
    let steps = family.sections.iter().filter(|section| section.heading == "Fixes");
    for section in steps {
        let plain = super::filled(&section.markdown, &|_| Some("VALUE".to_owned()));
        for code in plain.split('`').skip(1).step_by(2) {
            let found = instance.find(code).map(|found| found.as_str().trim());
            if let Some(found) = found.filter(|found| !GENERAL.contains(found)) {
                let what = format!(
                    "'{found}' in a step reads as a fact of the job: capture it and write \
                     {{name|WORD}}"
                );
                findings.push(Finding { line: Some(section.line), ..Finding::about(family, what) });
            }
        }
    }
}

/// Whether a signal captures a value of this name.
fn captures(family: &Family, name: &str) -> bool {
    let group = format!("(?P<{name}>");
    family
        .signals
        .iter()
        .filter_map(|signal| signal.regex.as_deref())
        .any(|pattern| pattern.contains(&group) || pattern.contains(&group.replace("?P<", "?<")))
}

fn unknown_states<'a>(family: &'a Family, known: &BTreeSet<&str>) -> Vec<&'a str> {
    let of_signals = family.signals.iter().filter_map(|signal| signal.when.as_ref());
    let of_signals =
        of_signals.flat_map(|when| [when.state.as_deref(), when.step_state.as_deref()]);
    let all = family.states.iter().map(String::as_str).chain(of_signals.flatten());
    all.filter(|state| !known.contains(state)).collect()
}

fn check_signals(family: &Family, holds_stem: &dyn Fn(&str) -> bool, find: &mut dyn FnMut(String)) {
    let mut seen = BTreeSet::new();
    for signal in &family.signals {
        let id = &signal.id;
        if !seen.insert(id) {
            find(format!("signal '{id}' is there twice"));
        }
        if !(signal.weight > 0.0 && signal.weight <= 1.0) {
            find(format!("signal '{id}' has weight {}, not above 0 and at most 1", signal.weight));
        }
        if let Some(when) = &signal.when {
            for exit in [&when.exit, &when.derived_exit].into_iter().flatten() {
                if !is_exit_pattern(exit) {
                    find(format!("signal '{id}' has the exit '{exit}', not CODE:SIGNAL"));
                }
            }
        }
        if signal.from == SignalSource::Record {
            continue;
        }
        let literal = signal.literal.as_deref().unwrap_or_default();
        if signal.from == SignalSource::Log && !holds_stem(literal) {
            find(format!("signal '{id}': the scan never looks at lines with '{literal}'"));
        }
        let Some(example) = &signal.example else {
            find(format!("signal '{id}' has no example"));
            continue;
        };
        let Some(line) = example.lines().find(|line| line.contains(literal)) else {
            find(format!("signal '{id}': its example does not hold '{literal}'"));
            continue;
        };
        for (pattern, wanted, what) in [
            (&signal.regex, true, "its regex does not match its example"),
            (&signal.unless, false, "its 'unless' matches its example"),
        ] {
            match pattern.as_deref().map(Regex::new) {
                Some(Err(error)) => find(format!("signal '{id}': {error}")),
                Some(Ok(regex)) if regex.is_match(line) != wanted => {
                    find(format!("signal '{id}': {what}"));
                }
                _ => {}
            }
        }
    }
}

/// `CODE:SIGNAL`, where `*` stands for any number.
fn is_exit_pattern(text: &str) -> bool {
    let number = |part: &str| part == "*" || part.parse::<u32>().is_ok();
    text.split_once(':').is_some_and(|(code, signal)| number(code) && number(signal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::{Provenance, built_in, parse};

    #[test]
    fn the_built_in_families_are_sound() {
        let families = built_in().expect("every embedded file is a family");
        assert!(families.len() >= 9);
        assert_eq!(check(&families, &|_| true), []);
    }

    #[test]
    fn every_kind_of_mistake_is_found() {
        let text = "---\nfamily: bad\ntitle: t\ndomain: user\nstates: [BROKEN]\nyields_to: [nobody]\nsources: [\"ftp://x\"]\nsignals:\n  - {id: a, from: log, role: root, literal: boom, regex: '(', weight: 2, example: boom}\n  - {id: b, from: log, role: root, literal: boom, example: bang}\n  - {id: a, when: {exit: x}, role: root}\n---\n## Fixes\n\nDo {wrong|it} on {node|NODE}, `srun -w cn07` and `bd019<47861>`, in `bf16`.\n## Verify\n";
        let family = parse("bad.md", text, Provenance::BuiltIn).expect("it has the form");
        let told: Vec<String> = check(&[family], &|_| false).into_iter().map(|f| f.what).collect();
        let told = told.join("\n");
        for part in [
            "'BROKEN'",
            "'nobody'",
            "'ftp://x'",
            "sections",
            "is empty",
            "weight 2",
            "twice",
            "the scan never looks",
            "does not hold 'boom'",
            "regex parse error",
            "the exit 'x'",
            "fills in 'wrong'",
            "'-w cn07' in a step",
            "'bd019<47861>' in a step",
        ] {
            assert!(told.contains(part), "{part} is missing in:\n{told}");
        }
    }
}
