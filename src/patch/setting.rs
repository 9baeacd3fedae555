//! Where an option of the job is given, and so where it can be changed.

use super::script_edit::Edits;
use super::{Place, Proposal, Target};
use crate::model::{BaseState, Job, Part, Source, Step};
use crate::script::{Directive, NoteKind, Script, SubmitLine, parse, parse_submit_line};

/// The script and the submission command of a job.
pub(super) struct Sources<'a> {
    pub bytes: Option<&'a [u8]>,
    pub script: Option<Script>,
    submit: SubmitLine,
    /// The component of a heterogeneous job, or why it is not known.
    component: Result<usize, String>,
}

/// The option that decides.
pub(super) enum Setting<'a> {
    /// Given on the submission command.
    CommandLine { option: &'a str, spelled: &'a str, value: &'a str },
    /// A directive of the script; `own` unless an earlier component said it.
    Directive { directive: &'a Directive, own: bool },
    /// Nobody said anything: the site's default.
    Default,
}

impl<'a> Sources<'a> {
    pub(super) fn new(target: &Target<'a>) -> Self {
        let line = target.submit_line.or(target.job.submit_line.as_deref()).unwrap_or_default();
        let submit = parse_submit_line(line);
        // What --wrap or srun ran is no script of the user's.
        let bytes = target.script.filter(|_| !submit.wrap && !is_direct(&submit));
        let script = bytes.map(parse);
        let components = script
            .as_ref()
            .map_or(1, |script| script.components)
            .max(submit.options.iter().map(|given| given.component + 1).max().unwrap_or(1));
        let component = match target.job.id.part {
            Part::Component(number) => usize::try_from(number)
                .ok()
                .filter(|number| script.is_none() || *number < components)
                .ok_or_else(|| format!("the script has no component {number}")),
            _ if components > 1 && target.job.source == Source::Given => Err(format!(
                "the script has {components} components, and of which the logs are is not known"
            )),
            _ if components > 1 => Err(format!(
                "the job has {components} components; ask for one of them, such as {}+0",
                target.job.id.number
            )),
            _ => Ok(0),
        };
        Self { bytes, script, submit, component }
    }

    /// The setting that decides among options that exclude each other.
    pub(super) fn setting(&self, options: &[&str]) -> Result<Setting<'_>, String> {
        let component = self.component.clone()?;
        let given = options.iter().find_map(|long| self.submit.effective(component, long));
        if let Some(given) = given {
            return Ok(Setting::CommandLine {
                option: &given.option,
                spelled: &given.spelled,
                value: given.value.as_deref().unwrap_or_default(),
            });
        }
        let Some(script) = &self.script else { return Ok(Setting::Default) };
        let said = options.iter().filter_map(|long| script.effective_in(component, long));
        let Some(directive) = said.max_by_key(|said| said.component) else {
            return Ok(Setting::Default);
        };
        Ok(Setting::Directive { directive, own: directive.component == component })
    }

    /// Refuses where a `#PBS` or `#BSUB` line holds one of the words: `sbatch` lets it win.
    pub(super) fn overruled(&self, pbs: &[&str], bsub: &[&str]) -> Result<(), String> {
        for note in self.script.iter().flat_map(|script| &script.notes) {
            let NoteKind::OtherScheduler(line) = &note.kind else { continue };
            let words = if line.starts_with("#PBS") { pbs } else { bsub };
            if words.iter().any(|word| line.contains(word)) {
                return Err(format!(
                    "line {} ('{line}') decides: sbatch lets it win over #SBATCH; change it there",
                    note.line
                ));
            }
        }
        Ok(())
    }

    /// Whether an `--export` list names a variable.
    pub(super) fn exports(&self, name: &str) -> bool {
        let named = |list: &str| {
            list.split(',').any(|entry| entry.split_once('=').is_some_and(|(set, _)| set == name))
        };
        matches!(self.setting(&["export"]), Ok(Setting::CommandLine { value, .. }) if named(value))
            || self
                .script
                .iter()
                .filter_map(|script| script.effective("export"))
                .any(|directive| directive.value.as_deref().is_some_and(named))
    }

    /// Sets `option` to `value` where it is given now, or where it belongs.
    pub(super) fn set(
        &self,
        setting: &Setting<'_>,
        option: &str,
        value: &str,
        because: String,
        edits: &mut Edits,
    ) -> Result<Proposal, String> {
        let (place, from, to) = match setting {
            Setting::CommandLine { spelled, value: old, .. } => {
                let (from, to) = (format!("{spelled}{old}"), format!("{spelled}{value}"));
                (Place::CommandLine, Some(from), to)
            }
            Setting::Directive { directive, own: true } => {
                let span = directive.span.clone().ok_or_else(|| {
                    format!("line {} is quoted in a way that is not edited here", directive.line)
                })?;
                edits.replace(span, value);
                let to = format!("{}{value}", directive.spelled);
                (Place::Script, Some(directive.as_written()), to)
            }
            Setting::Directive { own: false, .. } | Setting::Default => {
                return self.add(format!("--{option}={value}"), because, edits);
            }
        };
        Ok(Proposal { place, from, to, because })
    }

    /// Adds an option that nobody gives yet, where it belongs.
    pub(super) fn add(
        &self,
        option: String,
        because: String,
        edits: &mut Edits,
    ) -> Result<Proposal, String> {
        let component = self.component.clone()?;
        let place = match (&self.script, self.bytes) {
            (Some(script), Some(bytes)) => {
                let at = script.insertion_point(component);
                edits.insert_directive(bytes, at, &format!("#SBATCH {option}"));
                Place::Script
            }
            _ if self.submit.wrap || is_direct(&self.submit) => Place::CommandLine,
            _ => Place::NotAtHand,
        };
        Ok(Proposal { place, from: None, to: option, because })
    }

    /// Adds a command before the first one of the script.
    pub(super) fn add_command(
        &self,
        command: String,
        because: String,
        edits: &mut Edits,
    ) -> Result<Proposal, String> {
        let (Some(script), Some(bytes)) = (&self.script, self.bytes) else {
            return Ok(Proposal { place: Place::NotAtHand, from: None, to: command, because });
        };
        if !script.is_posix_shell() {
            let interpreter = script.shebang.as_deref().unwrap_or("no interpreter line");
            return Err(format!(
                "'{interpreter}' is not a shell that reads '{command}': do it by its means"
            ));
        }
        let at = script.first_command.map_or(bytes.len(), |first| first.offset);
        edits.insert_command(bytes, at, &command);
        Ok(Proposal { place: Place::Script, from: None, to: command, because })
    }
}

/// A value as a shell takes it literally.
pub(super) fn quoted(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte);
    if value.bytes().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

/// Refuses where every step that ended in `state` was given a limit of its own: the job's cannot
/// raise it.
pub(super) fn steps_have_their_own(
    job: &Job,
    state: BaseState,
    options: &[&str],
) -> Result<(), String> {
    let own = |step: &Step| {
        let line = parse_submit_line(step.submit_line.as_deref()?);
        let given = options.iter().find_map(|long| line.effective(0, long))?;
        let all_there_is = given.value.as_deref() == Some("0");
        (!all_there_is).then(|| format!("step {} was given {}", step.id, given.as_written()))
    };
    let ended = job.steps.iter().filter(|step| step.state.base == state);
    let limits: Option<Vec<String>> = ended.map(own).collect();
    match limits.as_deref() {
        Some([first, ..]) => Err(format!("{first} of its own: raise it there")),
        _ => Ok(()),
    }
}

/// Commands that run a program without a batch script.
fn is_direct(submit: &SubmitLine) -> bool {
    matches!(submit.program.as_str(), "srun" | "salloc")
}

impl Setting<'_> {
    /// The long name and the value as given.
    pub(super) fn given(&self) -> Option<(&str, &str)> {
        match self {
            Self::CommandLine { option, value, .. } => Some((option, value)),
            Self::Directive { directive, .. } => {
                Some((&directive.option, directive.value.as_deref().unwrap_or_default()))
            }
            Self::Default => None,
        }
    }

    /// The option as given, and where, for a sentence.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::CommandLine { spelled, value, .. } => {
                format!("the submission command says {spelled}{value}")
            }
            Self::Directive { directive, .. } => {
                format!("line {} says {}", directive.line, directive.as_written())
            }
            Self::Default => "nothing is asked for".to_owned(),
        }
    }
}
