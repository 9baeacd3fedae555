//! What to do, as steps with the job's own values in them.
//!
//! A value goes into a step only where it is a plain word: steps are commands that people copy, and
//! what a log names was written by anybody. Anything else leaves the step as it reads in the note.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Diagnosis, Engine};
use crate::knowledge::{Provenance, filled};
use crate::model::{FamilyId, Job, Outcome, Verdict};
use crate::patch::Patch;
use crate::retrieve::{Match, Parts, Scored, points};
use crate::text;

/// What to do: a section of the knowledge base.
#[derive(Debug, Serialize)]
pub struct Fix {
    /// The family whose note it is.
    pub family: FamilyId,
    /// The note's title.
    pub title: String,
    /// The section's heading.
    pub heading: String,
    /// Its numbered steps, with the job's own values where they are known.
    pub steps: Vec<String>,
    /// The score by which it was chosen.
    pub score: f64,
    /// What that is made of.
    pub parts: Parts,
    /// How each section of the note did by itself.
    pub sections: Vec<Scored>,
    /// Where the note is.
    pub provenance: Provenance,
    /// What the site's or the user's own pages say about this family; it comes first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<OwnPage>,
}

/// A page of somebody's own about a family.
#[derive(Debug, Serialize)]
pub struct OwnPage {
    /// Its title.
    pub title: String,
    /// Its file.
    pub path: String,
    /// What it says to do.
    pub steps: Vec<String>,
}

/// The steps for a verdict, as they read in the notes.
pub(super) fn fix(engine: &Engine, verdict: &Verdict) -> Option<Fix> {
    let mut found = engine.sections(verdict, usize::MAX).into_iter();
    let first = found.next()?;
    let family = first.chunk.family.clone();
    let about = std::iter::once(first).chain(found).filter(|found| found.chunk.family == family);
    let (own, notes): (Vec<Match>, Vec<Match>) =
        about.partition(|found| found.chunk.page.is_some());
    let note = notes.into_iter().next()?;
    let own_page = |found: Match| OwnPage {
        steps: points(&found.chunk.markdown),
        path: found.chunk.page.unwrap_or_default(),
        title: found.chunk.title,
    };
    Some(Fix {
        provenance: engine.provenance(&family),
        family,
        title: note.chunk.title,
        heading: note.chunk.heading,
        steps: points(&note.chunk.markdown),
        score: note.score,
        parts: note.parts,
        sections: note.sections,
        own: own.into_iter().map(own_page).collect(),
    })
}

/// Fills the values of the job, the verdict and the change into the steps.
pub(super) fn fill(told: &mut Diagnosis) {
    let Diagnosis { job, verdict, patch, fix, guesses, parents, .. } = told;
    let known = |name: &str| value(name, job, &BTreeMap::new(), None);
    for step in guesses.iter_mut().flat_map(|guess| &mut guess.verify) {
        *step = filled(step, &known);
    }
    let Some(fix) = fix else { return };
    let first = verdict
        .causes
        .first()
        .filter(|cause| verdict.outcome != Outcome::Unknown && cause.family == fix.family);
    let nothing = BTreeMap::new();
    let captures = first.map_or(&nothing, |cause| &cause.captures);
    let parent = parents.first().map(|parent| parent.id.clone());
    let value = |name: &str| match name {
        "parent" => parent.clone(),
        _ => value(name, job, captures, patch.as_ref()),
    };
    for step in &mut fix.steps {
        *step = filled(step, &value);
    }
}

fn value(
    name: &str,
    job: &Job,
    captures: &BTreeMap<String, String>,
    patch: Option<&Patch>,
) -> Option<String> {
    if matches!(name, "memory" | "time" | "exclude") {
        let changes = patch.map(|patch| patch.changes.as_slice()).unwrap_or_default();
        let change = changes.iter().find(|change| change.edit.to_string() == name);
        // Ours: it may begin with the dashes of an option.
        let to = change.map(|change| change.to.clone()).filter(|to| is_plain(to));
        // A node that is known can be left out although nothing proposes it.
        return to.or_else(|| {
            let node = (name == "exclude").then(|| value("node", job, captures, None))??;
            Some(format!("--exclude={node}"))
        });
    }
    let value = match name {
        "job" => (job.id.number > 0).then(|| job.id.to_string()),
        "array" => (job.id.number > 0).then(|| job.id.number.to_string()),
        "partition" => job.partition.as_ref().or_else(|| captures.get(name)).cloned(),
        "account" => captures.get(name).or(job.account.as_ref()).cloned(),
        // Of a module below one what is installed is the whole.
        "package" => captures.get(name).cloned().or_else(|| {
            Some(captures.get("module")?.split('.').next().unwrap_or_default().to_owned())
        }),
        "node" => {
            let only = job.node_list.as_ref().filter(|_| job.nodes.get() == Some(1));
            captures.get(name).or(job.failed_node.as_ref()).or(only).cloned()
        }
        _ => captures.get(name).cloned(),
    };
    value.filter(|value| is_plain(value) && !value.starts_with('-'))
}

/// Whether a value is the same word in a sentence and in a shell.
fn is_plain(value: &str) -> bool {
    const LONGEST: usize = 120;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/@+:=,%-".contains(&byte);
    (1..=LONGEST).contains(&value.len()) && value.bytes().all(plain) && !text::holds_secret(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_word_is_put_into_a_command() {
        for plain in ["gcc/13.2.0", "numpy", "/scratch/a.b/c-d_e", "--mem=64G", "cn-07", "4711_3"] {
            assert!(is_plain(plain), "{plain}");
        }
        for not in ["", "a b", "$(rm -rf ~)", "x;y", "a`b", "a|b", "*", "~x", "é", "a'b", "a\nb"] {
            assert!(!is_plain(not), "{not}");
        }
        assert!(!is_plain("ghp_0123456789abcdefghijABCDEFGHIJ012345"));
        assert!(!is_plain(&"a".repeat(121)));
        let captures = BTreeMap::from([("module".to_owned(), "-rf".to_owned())]);
        let job = Job::bare(
            crate::model::JobId::whole(0),
            crate::model::State::parse("FAILED"),
            crate::model::Source::Given,
        );
        assert_eq!(value("module", &job, &captures, None), None);
        assert_eq!(value("job", &job, &captures, None), None);
    }
}
