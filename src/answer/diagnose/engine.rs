//! What diagnosing needs that does not depend on the job: the rules, the scanner for their literals, and
//! the notes to search. Built once, whatever the number of jobs.

use std::sync::Arc;

use crate::answer::embedding::Told;
use crate::answer::{AnswerError, World, kb, left_out, scope};
use crate::classify::Rules;
use crate::knowledge::{Family, Notes, Provenance};
use crate::logs::{self, Scanner};
use crate::model::{Cause, FamilyId, Idle, Notice, Outcome, Span, Verdict};
use crate::retrieve::{Library, Match, Method, Query, Wants};

/// What one run of the program builds once, whatever the number of jobs.
pub(in crate::answer) struct Engine {
    pub(super) rules: Rules,
    pub(super) scanner: Scanner,
    pub(super) scan: logs::Limits,
    pub(super) tail_lines: usize,
    library: Arc<Library>,
    pub(super) index: String,
    told: Told,
    pub(super) idle: Idle,
    /// Of a shorter run nothing is said about its GPUs.
    pub(super) least_gpu: Span,
}

impl Engine {
    pub(in crate::answer) fn start(world: World<'_>) -> Result<(Self, Vec<Notice>), AnswerError> {
        let Notes { families, pages, errors } = world.notes()?;
        let rules = Rules::new(families);
        let scanner = Scanner::new(&rules.literals());
        let scan = logs::Limits { bytes: world.config.settings.scan.limit_bytes };
        let tail_lines = world.config.settings.diagnose.tail_lines;
        let opened = kb::library(world, rules.families(), &pages)?;
        let kb::Opened { library, from: index, mut notices, told } = opened;
        notices.extend(errors.iter().map(left_out));
        let library = Arc::new(library);
        let idle = scope::idle(world.config);
        let least_gpu = Span::seconds(world.config.settings.findings.least_seconds_gpu);
        let engine =
            Self { rules, scanner, scan, tail_lines, library, index, told, idle, least_gpu };
        Ok((engine, notices))
    }

    /// The families whose rules are applied.
    pub(in crate::answer) fn families(&self) -> &[Family] {
        self.rules.families()
    }

    /// The same without the rule of one family; its note stays.
    pub(in crate::answer) fn without(&self, family: &FamilyId) -> Self {
        let others = self.families().iter().filter(|other| other.id != *family);
        let rules = Rules::new(others.cloned().collect());
        let scanner = Scanner::new(&rules.literals());
        let library = Arc::clone(&self.library);
        let Self { scan, tail_lines, idle, least_gpu, .. } = *self;
        let (index, told) = (self.index.clone(), self.told.clone());
        Self { rules, scanner, scan, tail_lines, library, index, told, idle, least_gpu }
    }

    /// The notes that fit a text, best first, whatever the verdict.
    pub(in crate::answer) fn search(&self, text: &str) -> Vec<Match> {
        let query = Query { text, examples: &[], family: None, wants: Wants::Fix };
        self.library.search(&query, usize::MAX)
    }

    /// The notes that fit a question in plain words, ranked one way.
    pub(in crate::answer) fn ask(
        &self,
        text: &str,
        family: Option<&FamilyId>,
        method: Method,
    ) -> Vec<Match> {
        let query = Query { text, examples: &[], family, wants: Wants::of(text) };
        self.library.ranked(&query, method)
    }

    /// Where the note of a family is.
    pub(super) fn provenance(&self, family: &FamilyId) -> Provenance {
        let of = self.rules.family(family).map(|family| family.provenance.clone());
        of.unwrap_or(Provenance::BuiltIn)
    }

    /// Whose vectors take part.
    pub(in crate::answer) fn embedder(&self) -> String {
        self.library.space().model.clone()
    }

    /// What is wrong with the model, once something was searched.
    pub(in crate::answer) fn model_notice(&self) -> Option<Notice> {
        self.told.notice()
    }

    /// The sections of the knowledge base that fit a verdict, best first; what to do comes first.
    pub(in crate::answer) fn sections(&self, verdict: &Verdict, limit: usize) -> Vec<Match> {
        let unknown = FamilyId("unknown".to_owned());
        let cause = verdict.causes.first().filter(|_| verdict.outcome != Outcome::Unknown);
        let family = cause.map_or(&unknown, |cause| &cause.family);
        let words: Vec<&str> = cause
            .map(|cause| cause.evidence.iter().map(|evidence| evidence.text.as_str()).collect())
            .unwrap_or_default();
        let text = words.join("\n");
        let examples = cause.map(|cause| self.examples(cause)).unwrap_or_default();
        let query =
            Query { text: &text, examples: &examples, family: Some(family), wants: Wants::Fix };
        self.library.search(&query, limit)
    }

    /// What the notes give as examples of the signals that a cause rests on.
    fn examples(&self, cause: &Cause) -> Vec<&str> {
        let family = self.rules.families().iter().find(|family| family.id == cause.family);
        let signals = family.map(|family| family.signals.as_slice()).unwrap_or_default();
        let heard = signals.iter().filter(|signal| cause.heard.contains(&signal.id));
        heard.filter_map(|signal| signal.example.as_deref()).collect()
    }
}
