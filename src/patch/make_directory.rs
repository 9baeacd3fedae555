//! The directory of the logs, which must be there before the job starts.

use super::setting::quoted;
use super::{Place, Proposal, Target};

pub(super) fn propose(target: &Target<'_>) -> Result<Proposal, String> {
    let directory = target.missing_directory.ok_or(
        "the directory of the logs is there, or not known: check that you may write to it from a \
         compute node",
    )?;
    Ok(Proposal {
        place: Place::BeforeSubmitting,
        from: None,
        to: format!("mkdir -p {}", quoted(directory)),
        because: "the directory does not exist, and the script starts too late to make it"
            .to_owned(),
    })
}
