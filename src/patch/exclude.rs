//! Leaving out the node that failed.

use super::script_edit::Edits;
use super::setting::Sources;
use super::{Proposal, Target};

pub(super) fn propose(
    target: &Target<'_>,
    sources: &Sources<'_>,
    edits: &mut Edits,
) -> Result<Proposal, String> {
    let job = target.job;
    let only = job.node_list.as_ref().filter(|_| job.nodes.get() == Some(1));
    let node = job.failed_node.as_ref().or(only).ok_or_else(|| {
        let nodes = job.node_list.as_deref().unwrap_or("several nodes");
        format!("which node of {nodes} failed is not recorded")
    })?;
    let wanted = sources.setting(&["nodelist"])?;
    if wanted.given().is_some() {
        return Err(format!("{}: ask for another node there", wanted.in_words()));
    }
    let because = format!("{node} is the node that failed; leave it out until it is repaired");
    let setting = sources.setting(&["exclude"])?;
    match setting.given() {
        None => sources.add(format!("--exclude={node}"), because, edits),
        Some((_, list)) if list.split(',').any(|named| named == node) => {
            Err(format!("{} already", setting.in_words()))
        }
        Some((_, list)) => {
            let list = format!("{list},{node}");
            sources.set(&setting, "exclude", &list, because, edits)
        }
    }
}
