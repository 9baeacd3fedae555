//! From the text of a family file to a [`Family`].
//!
//! The format is closed: a field it does not know is an error with file and line, because a rule
//! that is silently not applied is worse than one that is refused.

use std::path::Path;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use serde::Deserialize;

use super::{Check, Family, Page, Provenance, RecordPattern, Section, Signal, SignalSource, page};
use crate::model::{Domain, Edit, EditError, FamilyId, Role};

/// `(file name, front matter as JSON, text)` of every embedded family, sorted by name; written by
/// `build.rs`.
const EMBEDDED: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/knowledge.rs"));

/// A family file that cannot be read as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct KnowledgeError {
    /// The file.
    pub file: String,
    /// The line in it, from 1, where one is to blame.
    pub line: Option<usize>,
    /// What is wrong, with the value found.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrontMatter {
    family: String,
    title: String,
    domain: Domain,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    states: Vec<String>,
    #[serde(default)]
    fallback: bool,
    #[serde(default)]
    crash: bool,
    #[serde(default)]
    signals: Vec<FrontSignal>,
    #[serde(default)]
    counter: Vec<String>,
    #[serde(default)]
    yields_to: Vec<FamilyId>,
    #[serde(default)]
    checks: Vec<Check>,
    #[serde(default)]
    edits: Vec<String>,
    without_edit: Option<String>,
    report: Option<String>,
    #[serde(default)]
    sources: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrontSignal {
    id: String,
    from: Option<SignalSource>,
    role: Role,
    literal: Option<String>,
    regex: Option<String>,
    unless: Option<String>,
    #[serde(default = "usual_weight")]
    weight: f64,
    example: Option<String>,
    #[serde(default)]
    probe: bool,
    #[serde(default)]
    may_exit_zero: bool,
    with: Option<Check>,
    when: Option<RecordPattern>,
    waiting_helps: Option<bool>,
    #[serde(default)]
    edits: Vec<String>,
}

/// What a signal counts when its file does not say.
fn usual_weight() -> f64 {
    0.9
}

/// The families embedded in the program, sorted by id.
pub fn built_in() -> Result<Vec<Family>, KnowledgeError> {
    let read = |(name, json, text): &(&str, &str, &str)| match serde_json::from_str(json) {
        Ok(front) => family(name, text, front, Provenance::BuiltIn),
        // What is wrong is told of the file as it was written.
        Err(_) => parse(name, text, Provenance::BuiltIn),
    };
    EMBEDDED.iter().map(read).collect()
}

/// What is known: the families, and the pages that have no rule.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// The families, by id.
    pub families: Vec<Family>,
    /// The pages, by id and file.
    pub pages: Vec<Page>,
    /// Files that had to be left out.
    pub errors: Vec<KnowledgeError>,
}

impl Notes {
    /// Adds the files of an overlay folder: a family of an id that is known takes its place, a text
    /// without front matter is a page. A file that cannot be read is left out and told: one bad file
    /// must not cost the answer.
    #[must_use]
    pub fn with_overlay(mut self, files: Vec<(String, Vec<u8>)>) -> Self {
        for (path, bytes) in files {
            let name = file_name(&path);
            let is_note = Path::new(name).extension().is_some_and(|end| end == "md");
            if !is_note || name == "README.md" {
                continue;
            }
            let refused = |what: &str| KnowledgeError {
                file: path.clone(),
                line: None,
                what: what.to_owned(),
            };
            match std::str::from_utf8(&bytes) {
                Err(_) => self.errors.push(refused("is not UTF-8 text")),
                Ok(text) if text.trim().is_empty() => self.errors.push(refused("is empty")),
                Ok(text) if !is_family(text) => self.pages.push(page(&path, text)),
                Ok(text) => match parse(name, text, Provenance::Overlay(path.clone())) {
                    Ok(family) => self.add(family, path),
                    Err(error) => self.errors.push(KnowledgeError { file: path, ..error }),
                },
            }
        }
        self.families.sort_by(|a, b| a.id.cmp(&b.id));
        self.pages.sort_by(|a, b| (&a.id, &a.path).cmp(&(&b.id, &b.path)));
        self
    }

    fn add(&mut self, family: Family, path: String) {
        match self.families.iter_mut().find(|known| known.id == family.id) {
            Some(known) if known.provenance == Provenance::BuiltIn => {
                *known = Family { provenance: Provenance::Replacement(path), ..family };
            }
            // The built-in note stays replaced when its replacement is.
            Some(known) => {
                let provenance = match &known.provenance {
                    Provenance::Replacement(_) => Provenance::Replacement(path),
                    _ => family.provenance.clone(),
                };
                *known = Family { provenance, ..family };
            }
            None => self.families.push(family),
        }
    }
}

/// Whether a text is meant as a family: it has front matter, or what looks like it.
fn is_family(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first.trim_end() == "---" || first.starts_with("family:")
}

/// Reads one family file. `name` is the file's name; its stem must be the family's id.
pub fn parse(name: &str, text: &str, provenance: Provenance) -> Result<Family, KnowledgeError> {
    let at =
        |line: Option<usize>, what: String| KnowledgeError { file: name.to_owned(), line, what };
    let (front, ..) = split(text).ok_or_else(|| at(Some(1), UNFRAMED.to_owned()))?;
    let front = serde_yaml::from_str(front).map_err(|error| {
        // The front matter begins on line 2 of the file.
        let line = error.location().map(|location| location.line() + 1);
        let told = error.to_string();
        let what = told.split(" at line ").next().unwrap_or(&told).to_owned();
        at(line, what)
    })?;
    family(name, text, front, provenance)
}

const UNFRAMED: &str = "has no front matter between two '---' lines";

/// A family of front matter that was read, and the text it stands in.
fn family(
    name: &str,
    text: &str,
    front: FrontMatter,
    provenance: Provenance,
) -> Result<Family, KnowledgeError> {
    let at =
        |line: Option<usize>, what: String| KnowledgeError { file: name.to_owned(), line, what };
    // The value to blame is looked for in the file, so that errors of meaning carry a line too.
    let blame = |value: &str, what: String| {
        let line = text.lines().position(|line| line.contains(value)).map(|index| index + 1);
        at(line, what)
    };
    let (_, body, body_line) = split(text).ok_or_else(|| at(Some(1), UNFRAMED.to_owned()))?;
    let stem = file_name(name).trim_end_matches(".md");
    if front.family != stem {
        return Err(blame(
            &front.family,
            format!("family '{}' is not the file's stem '{stem}'", front.family),
        ));
    }
    let read_edits = |texts: &[String]| -> Result<Vec<Edit>, KnowledgeError> {
        let read =
            |text: &String| text.parse().map_err(|error: EditError| blame(text, error.to_string()));
        texts.iter().map(read).collect()
    };
    let edits = read_edits(&front.edits)?;
    let mut signals = Vec::new();
    for signal in front.signals {
        let id = signal.id.clone();
        let edits = read_edits(&signal.edits)?;
        let signal = checked(signal, edits);
        signals.push(signal.map_err(|what| blame(&format!("id: {id}"), what))?);
    }
    Ok(Family {
        id: FamilyId(front.family),
        title: front.title,
        domain: front.domain,
        tags: front.tags,
        states: front.states,
        fallback: front.fallback,
        crash: front.crash,
        signals,
        counter: front.counter,
        yields_to: front.yields_to,
        checks: front.checks,
        edits,
        without_edit: front.without_edit,
        report: front.report,
        sources: front.sources,
        sections: sections(body, body_line),
        provenance,
    })
}

/// A signal of text needs a literal; one of the record needs a pattern; none may have both.
fn checked(signal: FrontSignal, edits: Vec<Edit>) -> Result<Signal, String> {
    let FrontSignal {
        id,
        from,
        role,
        literal,
        regex,
        unless,
        weight,
        example,
        probe,
        may_exit_zero,
        with,
        when,
        waiting_helps,
        ..
    } = signal;
    let from = match (from, &literal, &when) {
        (None | Some(SignalSource::Record), None, Some(_)) => SignalSource::Record,
        (Some(from), Some(_), None) if from != SignalSource::Record => from,
        _ => {
            return Err(format!("signal '{id}' needs either 'from' with 'literal', or 'when'"));
        }
    };
    if waiting_helps.is_some() && from != SignalSource::Reason {
        return Err(format!("signal '{id}' is no reason for waiting, but says 'waiting_helps'"));
    }
    Ok(Signal {
        id,
        from,
        role,
        literal,
        regex,
        unless,
        weight,
        example,
        probe,
        may_exit_zero,
        with,
        when,
        waiting_helps,
        edits,
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Front matter, body, and the number of lines before the body.
fn split(text: &str) -> Option<(&str, &str, usize)> {
    let rest = text.strip_prefix("---\n")?;
    let end = rest.find("\n---\n")?;
    let (front, body) = (&rest[..=end], &rest[end + "\n---\n".len()..]);
    Some((front, body, front.lines().count() + 2))
}

/// The body cut at its headings of the second level.
fn sections(body: &str, lines_before: usize) -> Vec<Section> {
    struct Open {
        heading: String,
        start: usize,
        content: usize,
    }
    let mut opened: Vec<Open> = Vec::new();
    let mut in_heading = false;
    for (event, range) in Parser::new(body).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) => {
                in_heading = true;
                opened.push(Open {
                    heading: String::new(),
                    start: range.start,
                    content: range.end,
                });
            }
            Event::End(TagEnd::Heading(HeadingLevel::H2)) => in_heading = false,
            Event::Text(text) | Event::Code(text) if in_heading => {
                if let Some(open) = opened.last_mut() {
                    open.heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    let ends: Vec<usize> =
        opened.iter().skip(1).map(|open| open.start).chain([body.len()]).collect();
    opened
        .into_iter()
        .zip(ends)
        .map(|(open, end)| Section {
            heading: open.heading,
            markdown: body[open.content..end].trim().to_owned(),
            line: lines_before + body[..open.start].matches('\n').count() + 1,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "---\nfamily: small\ntitle: A small one\ndomain: user\nsignals:\n  - id: text\n    from: log\n    role: root\n    literal: boom\n  - id: state\n    when: {state: TIMEOUT}\n    role: root\n    weight: 0.5\nedits: [\"memory\"]\n---\n\n## Symptoms\n\nIt says `boom`.\n\n## Fixes\n\n1. Do `## not a heading` things.\n";

    fn read(text: &str) -> Result<Family, KnowledgeError> {
        parse("small.md", text, Provenance::BuiltIn)
    }

    #[test]
    fn the_embedded_form_is_the_file_s() {
        let from_json = built_in().expect("sound");
        for ((name, json, text), family) in EMBEDDED.iter().zip(from_json) {
            assert!(!json.is_empty(), "{name} is no YAML");
            assert_eq!(parse(name, text, Provenance::BuiltIn).as_ref(), Ok(&family));
        }
    }

    #[test]
    fn a_file_becomes_a_rule_and_sections_with_their_lines() {
        let family = read(SMALL).expect("a good file");
        assert_eq!(family.signals[0].literal.as_deref(), Some("boom"));
        assert_eq!(family.signals[1].from, SignalSource::Record);
        let headings: Vec<(&str, usize)> =
            family.sections.iter().map(|s| (s.heading.as_str(), s.line)).collect();
        // Counted by hand in SMALL.
        assert_eq!(headings, [("Symptoms", 17), ("Fixes", 21)]);
        assert_eq!(family.sections[0].markdown, "It says `boom`.");
    }

    #[test]
    fn what_is_wrong_is_told_with_file_line_and_value() {
        let wrong =
            |from: &str, to: &str| read(&SMALL.replace(from, to)).expect_err(to).to_string();
        assert!(wrong("title: A", "titel: A").starts_with("small.md:3: unknown field `titel`"));
        assert!(wrong("family: small", "family: other").starts_with("small.md:2: family 'other'"));
        assert!(wrong("\"memory\"", "\"mem\"").starts_with("small.md:14: 'mem' is not an edit"));
        assert!(wrong("    literal: boom\n", "").starts_with("small.md:6: signal 'text' needs"));
        assert!(read("no front matter").is_err());
    }

    #[test]
    fn an_overlay_adds_and_replaces_and_a_bad_file_costs_only_itself() {
        let families = vec![read(SMALL).expect("a good file")];
        let site = |name: &str, text: &str| (format!("site/{name}"), text.as_bytes().to_vec());
        let files = vec![
            site("small.md", &SMALL.replace("A small one", "Ours")),
            site("new.md", &SMALL.replace("family: small", "family: new")),
            ("site/bad.md".to_owned(), vec![0xff]),
            site("cut.md", SMALL.strip_prefix("---\n").expect("front matter")),
            site("void.md", "\n"),
            site("README.md", "words"),
            site("howto.md", "# How to\n\nAsk.\n"),
            site("other.txt", "words"),
        ];
        let notes = Notes { families, ..Notes::default() }.with_overlay(files);
        let titles: Vec<(&str, &str)> =
            notes.families.iter().map(|f| (f.id.0.as_str(), f.title.as_str())).collect();
        assert_eq!(titles, [("new", "A small one"), ("small", "Ours")]);
        let replaced = Provenance::Replacement("site/small.md".to_owned());
        assert_eq!(notes.families[1].provenance, replaced);
        let pages: Vec<&str> = notes.pages.iter().map(|page| page.title.as_str()).collect();
        assert_eq!(pages, ["How to"]);
        let told: Vec<String> = notes.errors.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[1].starts_with("site/cut.md:1: has no front matter"), "{told:?}");
        assert_eq!(
            (&*told[0], &*told[2]),
            ("site/bad.md: is not UTF-8 text", "site/void.md: is empty")
        );
        // A second folder replaces the replacement.
        let mine = ("mine/small.md".to_owned(), SMALL.as_bytes().to_vec());
        let notes = notes.with_overlay(vec![mine]);
        let replaced = Provenance::Replacement("mine/small.md".to_owned());
        assert_eq!(notes.families[1].provenance, replaced);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(---\n)?(family: small\n|title: x\n|signals: |domain: user\n|[ -~\n]{0,20}){0,8}(---\n)?(## [a-z]*\n|[ -~é\n]{0,30}){0,4}") {
            let _ = read(&text);
        }
    }
}
