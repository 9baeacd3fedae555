//! From the words of a scheduler to a model.
//!
//! Order: the type that the scheduler itself gives a device (`gpu:TYPE:N`), then the node's features.
//! Words are compared whole, case and punctuation aside, never as parts of other words: `a1000` is
//! no `A100`. Features count only when they are a model's name, or name a maker beside it; a
//! driver's version names no card. Memory is pinned by a size that the model exists in, and two
//! names that disagree pin nothing.

use serde::Serialize;

use super::{Catalogue, Model};
use crate::model::{Ability, Bytes};

/// Makers and brands: in a label with one of these the rest may name a card.
const MAKERS: [&str; 10] = [
    "nvidia", "tesla", "quadro", "geforce", "titan", "instinct", "radeon", "habana", "amd", "intel",
];
/// Parts of a label that say nothing about the model.
const NOISE: [&str; 22] = [
    "gpu",
    "gpus",
    "gres",
    "accel",
    "accelerator",
    "card",
    "model",
    "type",
    "sxm",
    "sxm2",
    "sxm3",
    "sxm4",
    "sxm5",
    "pcie",
    "pci",
    "oam",
    "hbm2",
    "hbm2e",
    "hbm3",
    "hbm3e",
    "gpumodel",
    "gputype",
];
/// Such labels are of software.
const SOFTWARE: [&str; 6] = ["driver", "firmware", "cuda", "version", "rocm", "toolkit"];
/// A name is a few words; what is longer is prose.
const LONGEST: usize = 5;

/// What is known of a device.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Device<'c> {
    /// The scheduler's word for it; empty where it gave none.
    pub label: String,
    /// The model, where the words name one.
    pub model: Option<&'c Model>,
    /// Its memory; `None` where nothing is known.
    pub memory: Option<Memory>,
    /// The profile of a MIG slice, such as `1g.10gb`.
    pub slice: Option<String>,
}

/// The memory of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// It has this much at least.
    pub least: Bytes,
    /// It has this much at most.
    pub most: Bytes,
}

impl Memory {
    /// Whether it is known exactly.
    pub fn is_certain(self) -> bool {
        self.least == self.most
    }
}

impl Device<'_> {
    /// Whether it can do something; `None` where that is not known, as of any device that is not
    /// identified.
    pub fn can(&self, ability: Ability) -> Option<bool> {
        if self.slice.is_some() && matches!(ability, Ability::Nvlink | Ability::Mig) {
            return Some(false);
        }
        self.model?.can(ability)
    }

    /// Whether it has that much memory; `None` where that is not known.
    pub fn holds(&self, bytes: Bytes) -> Option<bool> {
        let memory = self.memory?;
        if bytes <= memory.least {
            Some(true)
        } else if bytes > memory.most {
            Some(false)
        } else {
            None
        }
    }

    /// What to call it: the model, the scheduler's word, or that nothing is known.
    pub fn name(&self) -> String {
        match (self.model, &self.slice) {
            (Some(model), Some(slice)) => format!("{} {slice}", model.name),
            (Some(model), None) => model.name.clone(),
            (None, _) if !self.label.is_empty() => self.label.clone(),
            (None, Some(slice)) => slice.clone(),
            (None, None) => "unidentified".to_owned(),
        }
    }
}

/// A label that named a model.
struct Hit {
    model: usize,
    pinned: Option<Bytes>,
}

impl Catalogue {
    /// The device that a scheduler calls `kind` on a node with these features.
    pub fn identify(&self, kind: Option<&str>, features: &[&str]) -> Device<'_> {
        let kind = kind.unwrap_or_default();
        let (bare, slice) = split_slice(kind);
        let typed = self.find(&bare, true);
        let mut named: Vec<Hit> = Vec::new();
        let mut profiles: Vec<Bytes> = Vec::new();
        for feature in features {
            let (bare, profile) = split_slice(feature);
            profiles.extend(profile.as_ref().map(|(_, memory)| *memory));
            named.extend(self.find(&bare, false));
        }
        let by_feature = named.first().map(|hit| hit.model);
        let unanimous = named.iter().all(|hit| Some(hit.model) == by_feature);
        let index = match &typed {
            Some(hit) => Some(hit.model),
            // Nodes with several models say so by their types; features do not tell which is which.
            None => by_feature.filter(|_| unanimous),
        };
        let model = index.and_then(|index| self.models.get(index));
        let memory = if let Some((_, memory)) = &slice {
            Some(Memory { least: *memory, most: *memory })
        } else {
            let mut pins: Vec<Bytes> = typed
                .iter()
                .chain(&named)
                .filter(|hit| Some(hit.model) == index)
                .filter_map(|hit| hit.pinned)
                .collect();
            pins.extend(model.and_then(|model| memory_label(model, features)));
            memory(model, &pins, &profiles)
        };
        Device { label: kind.to_owned(), model, memory, slice: slice.map(|(profile, _)| profile) }
    }

    /// The model that a label names: all of it where `whole_words` may stand beside others.
    fn find(&self, label: &str, is_type: bool) -> Option<Hit> {
        let value = label.split_once('=').map_or(label, |(_, value)| value);
        let words: Vec<String> = value
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        if words.iter().any(|word| SOFTWARE.contains(&word.as_str())) {
            return None;
        }
        let is_maker = |word: &String| MAKERS.contains(&word.as_str());
        let anywhere = is_type || words.iter().any(is_maker);
        let said: Vec<&String> = words
            .iter()
            .filter(|word| !is_maker(word) || word.as_str() == "titan")
            .filter(|word| !NOISE.contains(&word.as_str()))
            .collect();
        // The longest run of words that is a name wins: `rtx 6000 ada` over `rtx 6000`.
        let mut best: Option<(usize, Hit)> = None;
        for start in 0..said.len() {
            for end in start + 1..=said.len().min(start + LONGEST) {
                if !anywhere && (start, end) != (0, said.len()) {
                    continue;
                }
                let name: String = said[start..end].iter().map(|word| word.as_str()).collect();
                let name = MAKERS
                    .iter()
                    .find_map(|maker| name.strip_prefix(maker).filter(|rest| !rest.is_empty()))
                    .filter(|_| !self.names.contains_key(&name))
                    .map_or(name.clone(), str::to_owned);
                // Two letters alone are as well the name of a rack.
                let is_short = name.len() < 3 && !anywhere;
                if let Some((model, pinned)) = self.names.get(&name).filter(|_| !is_short)
                    && best.as_ref().is_none_or(|(length, _)| name.len() > *length)
                {
                    best = Some((name.len(), Hit { model: *model, pinned: *pinned }));
                }
            }
        }
        let (_, mut hit) = best?;
        // A size that stands apart: `A100-SXM4-80GB`.
        if hit.pinned.is_none() {
            let model = self.models.get(hit.model)?;
            let mut sizes = words.iter().filter_map(|word| size(word));
            hit.pinned = sizes.find(|bytes| model.memory.contains(bytes));
        }
        Some(hit)
    }
}

/// The memory of a model, from what names pin and what MIG profiles the node has.
fn memory(model: Option<&Model>, pins: &[Bytes], profiles: &[Bytes]) -> Option<Memory> {
    // The node is cut: how much one device has is that of some profile, never of the card.
    if let (Some(least), Some(most)) = (profiles.iter().min(), profiles.iter().max()) {
        return Some(Memory { least: *least, most: *most });
    }
    let model = model?;
    let bounds: &[Bytes] = if pins.is_empty() { &model.memory } else { pins };
    Some(Memory { least: *bounds.iter().min()?, most: *bounds.iter().max()? })
}

/// A feature that is about the memory of GPUs, such as `gpumem80` or `vram:80g`.
fn memory_label(model: &Model, features: &[&str]) -> Option<Bytes> {
    features.iter().find_map(|feature| {
        let name = squeezed(feature);
        let rest = ["gpumemory", "gpumem", "gpuram", "vram"]
            .iter()
            .find_map(|word| name.strip_prefix(word))?;
        let bytes = size(rest).or_else(|| gib(rest))?;
        model.memory.contains(&bytes).then_some(bytes)
    })
}

/// `80gb`, `80g`.
fn size(word: &str) -> Option<Bytes> {
    gib(word.strip_suffix("gb").or_else(|| word.strip_suffix('g'))?)
}

fn gib(digits: &str) -> Option<Bytes> {
    let number: u64 = digits.parse().ok().filter(|_| !digits.starts_with('+'))?;
    number.checked_mul(Bytes::GIB).map(Bytes)
}

/// Takes the MIG profile out of a label: `a100_1g.10gb` is `a100` and 10 GiB.
fn split_slice(label: &str) -> (String, Option<(String, Bytes)>) {
    let bytes = label.as_bytes();
    for (dot, _) in label.match_indices("g.").chain(label.match_indices("G.")) {
        let start = bytes[..dot].iter().rposition(|b| !b.is_ascii_digit()).map_or(0, |at| at + 1);
        let digits = bytes[dot + 2..].iter().take_while(|b| b.is_ascii_digit()).count();
        let end = dot + 2 + digits;
        let unit = label.get(end..end + 2).unwrap_or_default();
        if start == dot || digits == 0 || !unit.eq_ignore_ascii_case("gb") {
            continue;
        }
        if let Some(memory) = gib(&label[dot + 2..end]) {
            let profile = label[start..end + 2].to_ascii_lowercase();
            let rest = format!("{} {}", &label[..start], &label[end + 2..]);
            return (rest, Some((profile, memory)));
        }
    }
    (label.to_owned(), None)
}

/// Letters and digits only, in lower case.
pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
