//! Leaving out the node that failed.

use super::script_edit::Edits;
use super::setting::Sources;
use super::{Proposal, Target};
use crate::text::expand;

/// No cluster has more nodes.
const NODES: usize = 100_000;

/// Whether a list such as `cn[01-03],gpu7` names a node.
fn names(list: &str, node: &str) -> bool {
    expand(list, NODES).is_ok_and(|names| names.iter().any(|name| name == node))
}

pub(super) fn propose(
    target: &Target<'_>,
    sources: &Sources<'_>,
    edits: &mut Edits,
) -> Result<Proposal, String> {
    let job = target.job;
    let only = job.node_list.as_ref().filter(|_| job.nodes.get() == Some(1));
    let node = job.failed_node.as_deref().or(only.map(String::as_str)).or(target.node);
    let node = node.ok_or_else(|| match &job.node_list {
        Some(nodes) => format!("which node of {nodes} failed is not recorded"),
        None => "on which node it ran is not known: leave that one out with --exclude".to_owned(),
    })?;
    let wanted = sources.setting(&["nodelist"])?;
    if wanted.given().is_some() {
        return Err(format!("{}: ask for another node there", wanted.in_words()));
    }
    let because = format!("{node} is the node that failed; leave it out until it is repaired");
    let setting = sources.setting(&["exclude"])?;
    match setting.given() {
        None => sources.add(format!("--exclude={node}"), because, edits),
        Some((_, list)) if list.contains('/') => {
            Err(format!("{}: add {node} to that file", setting.in_words()))
        }
        Some((_, list)) if names(list, node) => Err(format!("{} already", setting.in_words())),
        Some((_, list)) => {
            let list = format!("{list},{node}");
            sources.set(&setting, "exclude", &list, because, edits)
        }
    }
}
