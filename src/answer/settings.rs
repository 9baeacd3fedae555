//! Which settings are in force, and who set them?

use serde::Serialize;

use super::World;

/// Every setting with its value and origin.
#[derive(Debug, Serialize)]
pub struct Settings {
    /// `jobwise/config/1`.
    pub schema: &'static str,
    /// One row a setting, by key.
    pub settings: Vec<Row>,
    /// Files of settings that are looked for, each over the one before it.
    pub files: Vec<File>,
}

/// A place where a file of settings may be.
#[derive(Debug, Serialize)]
pub struct File {
    /// Its path.
    pub path: String,
    /// Whether it was read.
    pub read: bool,
}

/// One setting.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The dotted key.
    pub key: String,
    /// Its value as TOML.
    pub value: String,
    /// The layer that set it, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// Lists the settings, with their origins where that is wanted.
pub fn settings(world: World<'_>, with_origin: bool) -> Settings {
    let rows = world.config.origins.iter().map(|(key, (value, origin))| Row {
        key: key.clone(),
        value: value.clone(),
        origin: with_origin.then(|| origin.to_string()),
    });
    let files = world.config.files.iter();
    let files = files.map(|(path, read)| File { path: path.display().to_string(), read: *read });
    Settings { schema: "jobwise/config/1", settings: rows.collect(), files: files.collect() }
}
