//! Which GPUs the scheduler may give.
//!
//! It knows neither the memory nor the abilities of a GPU, so a line that asks for any GPU may get
//! one that is too small. What it does know are types and hosts: a job is written with those. A GPU
//! that nobody could identify is kept out where there are others that are sure to suit.

use std::collections::BTreeSet;

use super::fit::suits;
use super::rank::Look;
use crate::model::Shape;
use crate::text;

impl Look<'_> {
    /// The same job, such that the scheduler gives it only GPUs that suit.
    #[must_use]
    pub fn narrowed(&self, shape: &Shape) -> Shape {
        let mut narrowed = shape.clone();
        if shape.gpu_memory.is_none() && shape.needs.is_empty() {
            return narrowed;
        }
        let known: Vec<(&str, Option<&str>, Option<bool>)> = self
            .hosts
            .iter()
            .flat_map(|host| {
                let gpus = host.devices.iter().filter(|device| device.name == "gpu");
                gpus.map(|gpu| (host.node.name.as_str(), gpu.kind, suits(shape, &gpu.device)))
            })
            .collect();
        let sure = known.iter().any(|(.., suits)| *suits == Some(true));
        let gpus =
            || known.iter().map(|(host, kind, suits)| (*host, *kind, suits.unwrap_or(!sure)));
        let kinds: BTreeSet<Option<&str>> =
            gpus().filter(|(.., suits)| *suits).map(|(_, kind, _)| kind).collect();
        let others = gpus().any(|(_, kind, suits)| !suits && !kinds.contains(&kind));
        let only = kinds.first().copied().flatten().filter(|_| kinds.len() == 1 && others);
        for wanted in narrowed.devices.iter_mut().filter(|wanted| wanted.name == "gpu") {
            if wanted.kind.is_none() {
                wanted.kind = only.map(str::to_owned);
            }
        }
        let wanted: Vec<Option<&str>> = narrowed.gpus().map(|gpu| gpu.kind.as_deref()).collect();
        let may_get = |kind: Option<&str>| {
            wanted.iter().any(|wanted| {
                wanted.is_none_or(|name| kind.is_some_and(|kind| kind.eq_ignore_ascii_case(name)))
            })
        };
        let unfit: BTreeSet<&str> = gpus()
            .filter(|(_, kind, suits)| !suits && may_get(*kind))
            .map(|(host, ..)| host)
            .collect();
        if !unfit.is_empty() {
            let unfit = text::collapse(unfit);
            narrowed.exclude = Some(match &shape.exclude {
                Some(hosts) => format!("{hosts},{unfit}"),
                None => unfit,
            });
        }
        narrowed
    }
}
