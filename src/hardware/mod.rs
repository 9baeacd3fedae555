//! Accelerators: which model a scheduler's words name, and what that model can do.
//!
//! The facts stand in `hardware/accelerators.toml`, with their sources; a site and a user may add to
//! them. Refuses to guess: a word that names no model leaves the device unidentified, which is not
//! the same as incapable, and the memory of a model that exists in several sizes is only "at least
//! the smallest" until a name pins it.

mod identify;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::{FileErrorKind, Runner};
use crate::model::{Ability, Bytes, Notice};

pub use identify::{Device, Memory};

const BUILT_IN: &str = include_str!("../../hardware/accelerators.toml");
const SITE: &str = "/etc/jobwise/accelerators.toml";
/// A catalogue of accelerators is short; a longer file is a mistake.
const FILE_LIMIT: u64 = 1 << 20;

/// A model of accelerator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// Its name as people write it.
    pub name: String,
    /// What compilers call it: `sm_80`, `gfx942`.
    pub target: String,
    /// Who makes it.
    pub vendor: String,
    /// Its generation.
    pub architecture: String,
    /// The memory of one device, every variant, smallest first; empty where it is not known.
    pub memory: Vec<Bytes>,
    /// Board power, and where that is read.
    pub watts: Option<Watts>,
    abilities: BTreeMap<Ability, bool>,
    names: Vec<String>,
}

/// Board power.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Watts {
    /// Watts.
    pub watts: u32,
    /// A document of the vendor, an address, or `believed`.
    pub source: String,
}

impl Model {
    /// Whether it can do something; `None` where nobody said.
    pub fn can(&self, ability: Ability) -> Option<bool> {
        self.abilities.get(&ability).copied()
    }
}

/// The models that are known.
#[derive(Debug, Default)]
pub struct Catalogue {
    models: Vec<Model>,
    /// Model and pinned memory by name, letters and digits only.
    names: BTreeMap<String, (usize, Option<Bytes>)>,
}

/// A file of accelerators that cannot be taken.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct CatalogueError {
    /// The file.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    target: BTreeMap<String, Target>,
    #[serde(default)]
    models: BTreeMap<String, Vec<Entry>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    vendor: String,
    architecture: String,
    bf16: Option<bool>,
    fp8: Option<bool>,
    fp4: Option<bool>,
    tf32: Option<bool>,
    flash: Option<bool>,
    fp64: Option<Rate>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Rate {
    Full,
    Reduced,
    Slow,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    target: String,
    #[serde(default)]
    gib: Vec<u64>,
    watts: Option<u32>,
    source: Option<String>,
    link: Option<String>,
    mig: Option<bool>,
    fp8: Option<bool>,
    fp64: Option<Rate>,
    #[serde(default)]
    names: Vec<String>,
}

impl Catalogue {
    /// The models built in.
    pub fn built_in() -> Result<Self, CatalogueError> {
        let mut catalogue = Self::default();
        let mut targets = BTreeMap::new();
        catalogue.add("accelerators.toml", BUILT_IN, &mut targets)?;
        catalogue.index();
        Ok(catalogue)
    }

    /// The models built in, and those of the site and the user. A file that cannot be used is told
    /// and left out.
    pub fn load(runner: &dyn Runner) -> Result<(Self, Vec<Notice>), CatalogueError> {
        let mut catalogue = Self::default();
        let mut targets = BTreeMap::new();
        catalogue.add("accelerators.toml", BUILT_IN, &mut targets)?;
        let mut notices = Vec::new();
        let mut leave_out = |reason: String| {
            let text = format!("accelerators were left out: {reason}");
            notices.push(Notice::warning("accelerators-left-out", text));
        };
        for path in std::iter::once(PathBuf::from(SITE)).chain(user_file(runner)) {
            let read = runner.open(&path).and_then(|content| {
                let bytes = content.read_all(FILE_LIMIT);
                bytes.map_err(|error| crate::host::FileError::from_io(&path, &error))
            });
            match read {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes);
                    let place = path.display().to_string();
                    if let Err(error) = catalogue.add(&place, &text, &mut targets) {
                        leave_out(error.to_string());
                    }
                }
                Err(error)
                    if matches!(error.kind, FileErrorKind::Absent | FileErrorKind::NotRecorded) => {
                }
                Err(error) => leave_out(error.to_string()),
            }
        }
        catalogue.index();
        Ok((catalogue, notices))
    }

    /// Every model, in the order of the files.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    fn add(
        &mut self,
        place: &str,
        text: &str,
        targets: &mut BTreeMap<String, Target>,
    ) -> Result<(), CatalogueError> {
        let fail = |reason: String| CatalogueError { place: place.to_owned(), reason };
        let written: Written = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            fail(format!("line {line}: {}", error.message()))
        })?;
        let mut known = targets.clone();
        known.extend(written.target);
        let mut added = Vec::new();
        for entry in written.models.into_values().flatten() {
            let target = known.get(&entry.target);
            let target = target.ok_or_else(|| {
                fail(format!("'{}' has an unknown target '{}'", entry.name, entry.target))
            })?;
            added.push(model(entry, target));
        }
        *targets = known;
        for model in added {
            self.models.retain(|known| known.name != model.name);
            self.models.push(model);
        }
        Ok(())
    }

    fn index(&mut self) {
        for (index, model) in self.models.iter().enumerate() {
            for name in &model.names {
                self.names.insert(name.clone(), (index, None));
            }
        }
        // A size behind a name pins it, unless that spelling is a name of its own.
        for (index, model) in self.models.iter().enumerate() {
            for (name, memory) in
                model.names.iter().flat_map(|name| model.memory.iter().map(move |m| (name, m)))
            {
                for unit in ["", "g", "gb"] {
                    let sized = format!("{name}{}{unit}", memory.0 / Bytes::GIB);
                    self.names.entry(sized).or_insert((index, Some(*memory)));
                }
            }
        }
    }
}

fn model(entry: Entry, target: &Target) -> Model {
    let fp64 = entry.fp64.or(target.fp64).map(|rate| rate == Rate::Full);
    let vendor = target.vendor.as_str();
    let link = |name: &str| entry.link.as_deref().map(|link| link == name);
    // Another maker's card never has it.
    let of = |maker: &str, said: Option<bool>| if vendor == maker { said } else { Some(false) };
    let abilities = [
        (Ability::Bf16, target.bf16),
        (Ability::Fp8, entry.fp8.or(target.fp8)),
        (Ability::Fp4, target.fp4),
        (Ability::Tf32, target.tf32),
        (Ability::Fp64, fp64),
        (Ability::Flash, target.flash),
        (Ability::Cuda, Some(vendor == "nvidia")),
        (Ability::Rocm, Some(vendor == "amd")),
        (Ability::Nvlink, of("nvidia", link("nvlink"))),
        (Ability::Xgmi, of("amd", link("xgmi"))),
        (Ability::Mig, Some(entry.mig.unwrap_or(false))),
    ];
    let mut memory: Vec<Bytes> = entry.gib.iter().map(|gib| Bytes(gib * Bytes::GIB)).collect();
    memory.sort_unstable();
    let names = std::iter::once(&entry.name).chain(&entry.names);
    Model {
        names: names.map(|name| identify::squeezed(name)).collect(),
        abilities: abilities.into_iter().filter_map(|(a, said)| Some((a, said?))).collect(),
        vendor: target.vendor.clone(),
        architecture: target.architecture.clone(),
        target: entry.target,
        memory,
        watts: entry.watts.map(|watts| Watts {
            watts,
            source: entry.source.unwrap_or_else(|| "believed".to_owned()),
        }),
        name: entry.name,
    }
}

fn user_file(runner: &dyn Runner) -> Option<PathBuf> {
    let set = |name: &str| runner.env(name).filter(|value| value.starts_with('/'));
    let folder = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&set("HOME")?).join(".config")))?;
    Some(folder.join("jobwise/accelerators.toml"))
}

#[cfg(test)]
mod tests;
