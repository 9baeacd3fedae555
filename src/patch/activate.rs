//! The environment that the program was meant to run in, activated before the first command.
//!
//! Only an environment that lies beside the job is proposed: which one its owner meant is not to
//! be guessed, and a second activation could hide the first.

use super::script_edit::Edits;
use super::setting::{Sources, quoted};
use super::{Proposal, Target};

pub(super) fn propose(
    target: &Target<'_>,
    sources: &Sources<'_>,
    edits: &mut Edits,
) -> Result<Proposal, String> {
    if let Some(script) = &sources.script {
        if let Some(line) = script.container {
            return Err(format!("line {line} runs a container: install the module in its image"));
        }
        let activation = script.activations.iter().find(|said| said.text.contains("activate"));
        if let Some(said) = activation {
            return Err(format!(
                "line {} activates an environment ('{}'): install the module in it",
                said.line, said.text
            ));
        }
    }
    match target.environments {
        [] => Err("no virtual environment lies in the job's directory: activate yours by its path"
            .to_owned()),
        [environment] => sources.add_command(
            format!("source {}", quoted(&format!("{environment}/bin/activate"))),
            "this environment lies in the job's directory, and the script activates none"
                .to_owned(),
            edits,
        ),
        several => Err(format!("activate one of {}", several.join(", "))),
    }
}
