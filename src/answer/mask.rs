//! Nobody's secret leaves in an answer: the one place where what other people wrote is masked,
//! right before it is told, so that a live answer, one that is recorded and its replay are the same.
//!
//! Judged and looked up is with what was really written. The scan of a log masks what it keeps by
//! itself, because half of a secret would not be known for one; the diff of a script likewise.

use super::diagnose::{Diagnosis, LogReport};
use crate::model::{Evidence, History, Job, Notice, Place};
use crate::patch::Patch;
use crate::text::masked;

fn mask(text: &mut String) {
    *text = masked(text);
}

/// A record: its names, commands, paths and comments.
pub(super) fn job(mut job: Job) -> Job {
    job.each_text(&mut mask);
    job
}

/// A whole history: every text of its runs.
pub(super) fn history(history: &mut History) {
    history.names.change(masked);
    history.notices.iter_mut().for_each(notice);
}

/// A whole diagnosis.
pub(super) fn diagnosis(mut told: Diagnosis) -> Diagnosis {
    told.job = job(told.job);
    for cause in &mut told.verdict.causes {
        cause.evidence.iter_mut().for_each(evidence);
        cause.captures.values_mut().for_each(mask);
    }
    told.verdict.consequences.iter_mut().for_each(evidence);
    told.logs.iter_mut().for_each(log);
    if let Some(ending) = &mut told.ending {
        mask(&mut ending.text);
    }
    if let Some(waiting) = &mut told.waiting {
        mask(&mut waiting.reason);
    }
    told.patch.iter_mut().for_each(patch);
    for offer in &mut told.offers {
        offer.given.iter_mut().for_each(mask);
        offer.nearest.iter_mut().chain(&mut offer.valid).for_each(mask);
    }
    told.wrapper.iter_mut().for_each(|wrapped| wrapped.settings.iter_mut().for_each(mask));
    for child in told.children.iter_mut().chain(&mut told.parents) {
        // Its diagnosis came masked.
        child.step.iter_mut().for_each(mask);
        child.trouble.iter_mut().for_each(mask);
    }
    told.notices.iter_mut().for_each(notice);
    told
}

/// Where a log is and what is quoted of it.
pub(super) fn log(log: &mut LogReport) {
    mask(&mut log.path);
    mask(&mut log.how);
    log.trouble.iter_mut().for_each(mask);
    log.tail.iter_mut().for_each(|quoted| mask(&mut quoted.text));
}

fn evidence(piece: &mut Evidence) {
    mask(&mut piece.text);
    if let Place::Log { path, .. } = &mut piece.place {
        mask(path);
    }
}

fn patch(patch: &mut Patch) {
    for change in &mut patch.changes {
        change.from.iter_mut().for_each(mask);
        mask(&mut change.to);
        mask(&mut change.because);
    }
    patch.refused.iter_mut().for_each(|refused| mask(&mut refused.why));
    patch.command_line.iter_mut().for_each(mask);
}

/// What an answer lacks.
pub(super) fn notices(mut notices: Vec<Notice>) -> Vec<Notice> {
    notices.iter_mut().for_each(notice);
    notices
}

fn notice(notice: &mut Notice) {
    mask(&mut notice.text);
    notice.hint.iter_mut().for_each(mask);
}
