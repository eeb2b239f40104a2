//! A recorded case: the applied objects, the environment, and the recorded result.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// A case: one folder of `tests/golden/cases`.
pub struct Case {
    /// The folder's name.
    pub name: String,
    folder: PathBuf,
    /// The content of `case.yaml`.
    pub about: About,
    /// All applied objects, in the order in which tests apply them.
    pub input: Vec<Value>,
    /// The objects that a test applies after the objects in `input`: the case's update.
    pub update: Vec<Value>,
    /// The pods that become ready before the update, and the pods that become ready after it.
    pub readiness: Readiness,
    /// The operator's environment.
    pub environment: BTreeMap<String, String>,
    /// The recorded children and statuses.
    pub recorded: Value,
}

/// The content of `case.yaml`.
#[derive(Deserialize)]
pub struct About {
    /// The objects whose children and status a test compares with the recording, as `Kind/name`.
    pub primary: Vec<String>,
    profile: String,
    /// Describes how this operator deliberately deviates from the recording. The deviation itself is either a patch in
    /// `desired.yaml`, or an entry in `conditions`.
    #[serde(default)]
    pub desired: Option<String>,
    /// Why an author wrote the case by hand. Recorded cases lack this field.
    #[serde(default)]
    pub by_hand: Option<String>,
    /// The final conditions of the first object in the field `primary`, with their status. The recordings lack these
    /// conditions, because the Go operator has no conditions.
    #[serde(default)]
    pub conditions: BTreeMap<String, String>,
    /// Further children, as `Kind/name`. For each of them, a test also compares all children of its owner.
    #[serde(default, rename = "alsoRecord")]
    pub also_record: Vec<String>,
}

/// The content of `status.yaml`.
#[derive(Default, Deserialize)]
pub struct Readiness {
    /// The pods that become ready before the update.
    #[serde(default)]
    pub before: Vec<Ready>,
    /// The pods that become ready after the update.
    #[serde(default)]
    pub after: Vec<Ready>,
}

/// The ready pods of one Deployment.
#[derive(Deserialize)]
pub struct Ready {
    /// The name of the Deployment.
    pub deployment: String,
    /// The number of ready pods.
    pub ready: u32,
}

#[derive(Deserialize)]
struct Profiles {
    base: BTreeMap<String, Option<String>>,
    profiles: BTreeMap<String, BTreeMap<String, Option<String>>>,
}

/// Returns the folder with the cases, the profiles and the registry of runtimes.
pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// Returns all cases, sorted by name.
pub fn all() -> Result<Vec<Case>> {
    let profiles: Profiles = serde_saphyr::from_str(&read(&golden().join("profiles.yaml"))?)?;
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(golden().join("cases"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    folders.sort();
    folders.into_iter().map(|folder| load(folder, &profiles)).collect()
}

/// Returns the cases for tests that recreate on a real API server what the Go operator left. Each of these cases has a
/// Deployment and no deviation, uses the default environment, and applies its objects only once.
pub fn left_by_go() -> Result<Vec<Case>> {
    let environment = default_environment()?;
    Ok(all()?.into_iter().filter(|case| case.can_be_left(&environment)).collect())
}

fn load(folder: PathBuf, profiles: &Profiles) -> Result<Case> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let about: About = serde_saphyr::from_str(&read(&folder.join("case.yaml"))?).with_context(|| name.clone())?;
    let profile = profiles
        .profiles
        .get(&about.profile)
        .with_context(|| format!("{name}: profiles.yaml has no profile {}", about.profile))?;
    let mut environment = profiles.base.clone();
    environment.extend(profile.clone());
    let mut input = documents(&golden().join("runtimes.yaml"))?;
    input.extend(documents(&folder.join("input.yaml"))?);
    let update = folder.join("update.yaml");
    let readiness = folder.join("status.yaml");
    Ok(Case {
        input,
        update: if update.exists() { documents(&update)? } else { Vec::new() },
        readiness: if readiness.exists() { serde_saphyr::from_str(&read(&readiness)?)? } else { Readiness::default() },
        environment: environment.into_iter().filter_map(|(key, value)| Some((key, value?))).collect(),
        recorded: serde_json::from_str(&read(&folder.join("expected.json"))?)?,
        about,
        folder,
        name,
    })
}

impl Case {
    /// Returns the result that this operator must produce: the recording, changed by `desired.yaml` if the case
    /// deviates.
    pub fn wanted(&self) -> Result<Value> {
        let mut wanted = self.recorded.clone();
        if self.deviation().exists() {
            let patch: json_patch::Patch = serde_saphyr::from_str(&read(&self.deviation())?)?;
            json_patch::patch(&mut wanted, &patch).with_context(|| format!("{}: desired.yaml", self.name))?;
        }
        Ok(wanted)
    }

    /// Returns the children and the status as the API server stored them, with the API server's defaults.
    pub fn stored(&self) -> Result<Value> {
        Ok(serde_json::from_str(&read(&self.folder.join("expected.full.json"))?)?)
    }

    /// Returns the path of the file with the deliberate deviation. The file is a JSON patch for `expected.json`.
    pub fn deviation(&self) -> PathBuf {
        self.folder.join("desired.yaml")
    }

    fn can_be_left(&self, environment: &BTreeMap<String, String>) -> bool {
        let children: Vec<&Value> = self.recorded["children"].as_array().into_iter().flatten().collect();
        self.environment == *environment
            && self.about.by_hand.is_none()
            && self.update.is_empty()
            && !self.deviation().exists()
            // Skip cases with children that have no owner: other tests cover the takeover of such children.
            && children.iter().all(|child| child["metadata"]["ownerReferences"].is_array())
            && children.iter().any(|child| child["kind"] == "Deployment")
            // Skip cases with a node selector, because it would match no node of the tests.
            && children.iter().all(|child| child["spec"]["template"]["spec"]["nodeSelector"].is_null())
    }
}

/// Returns the environment of the profile `default`.
pub fn default_environment() -> Result<BTreeMap<String, String>> {
    let profiles: Profiles = serde_saphyr::from_str(&read(&golden().join("profiles.yaml"))?)?;
    Ok(profiles.base.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

/// Returns the objects of a YAML file.
pub fn documents(path: &Path) -> Result<Vec<Value>> {
    // Read YAML 1.2, in which `y` is a string, like the program that recorded the cases.
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(&read(path)?, options).with_context(|| path.display().to_string())?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}
