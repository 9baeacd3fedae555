//! Whether the scheduler may run the job again by itself.

use super::Proposal;
use super::script_edit::Edits;
use super::setting::Sources;

pub(super) fn propose(sources: &Sources<'_>, edits: &mut Edits) -> Result<Proposal, String> {
    let setting = sources.setting(&["no-requeue", "requeue"])?;
    match setting.given() {
        Some(("no-requeue", _)) => Err(format!(
            "{}: change it only if the job can start twice without harm",
            setting.in_words()
        )),
        Some(_) => Err(format!("{} already", setting.in_words())),
        None => sources.add(
            "--requeue".to_owned(),
            "the scheduler then runs it again by itself; only if it can start twice without harm"
                .to_owned(),
            edits,
        ),
    }
}
