//! A recorded case: the applied objects, the environment, and the result.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// One folder of `tests/golden/cases`.
pub struct Case {
    /// The folder's name.
    pub name: String,
    folder: PathBuf,
    /// `case.yaml`.
    pub about: About,
    /// All applied objects, in order.
    pub input: Vec<Value>,
    /// Objects of a second apply.
    pub update: Vec<Value>,
    /// The pods that become ready, before and after the update.
    pub readiness: Readiness,
    /// The operator's environment.
    pub environment: BTreeMap<String, String>,
    /// Children and status as recorded.
    pub recorded: Value,
}

/// `case.yaml`.
#[derive(Deserialize)]
pub struct About {
    /// The objects whose children and status are compared, as `Kind/name`.
    pub primary: Vec<String>,
    profile: String,
    /// Describes a wanted deviation from the recording. `desired.yaml` states it as a patch, or `conditions` does.
    #[serde(default)]
    pub desired: Option<String>,
    /// The reason why the case was written by hand. Absent in recorded cases.
    #[serde(default)]
    pub by_hand: Option<String>,
    /// Conditions that the first primary has at the end, and their status. The Go operator has no conditions.
    #[serde(default)]
    pub conditions: BTreeMap<String, String>,
    /// Objects to compare in addition to the children of the primaries.
    #[serde(default, rename = "alsoRecord")]
    pub also_record: Vec<String>,
}

/// `status.yaml`.
#[derive(Default, Deserialize)]
pub struct Readiness {
    /// Ready before the update.
    #[serde(default)]
    pub before: Vec<Ready>,
    /// Ready after the update.
    #[serde(default)]
    pub after: Vec<Ready>,
}

/// Pods of one Deployment that become ready.
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

/// The folder that holds cases, profiles and the registry of runtimes.
pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// All cases, by name.
pub fn all() -> Result<Vec<Case>> {
    let profiles: Profiles = serde_saphyr::from_str(&read(&golden().join("profiles.yaml"))?)?;
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(golden().join("cases"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    folders.sort();
    folders.into_iter().map(|folder| load(folder, &profiles)).collect()
}

/// The cases for tests on a real API server. These tests create the state that the Go operator leaves behind. Each case
/// runs a workload, must end as recorded, and needs neither another environment nor a second apply.
pub fn left_by_go() -> Result<Vec<Case>> {
    let environment = default_environment()?;
    Ok(all()?.into_iter().filter(|case| case.can_be_left(&environment)).collect())
}

fn load(folder: PathBuf, profiles: &Profiles) -> Result<Case> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let about: About = serde_saphyr::from_str(&read(&folder.join("case.yaml"))?).with_context(|| name.clone())?;
    let profile =
        profiles.profiles.get(&about.profile).with_context(|| format!("{name}: profile {}", about.profile))?;
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
    /// The result that this operator must produce: the recording, patched by `desired.yaml` for wanted deviations.
    pub fn wanted(&self) -> Result<Value> {
        let mut wanted = self.recorded.clone();
        if self.deviation().exists() {
            let patch: json_patch::Patch = serde_saphyr::from_str(&read(&self.deviation())?)?;
            json_patch::patch(&mut wanted, &patch).with_context(|| format!("{}: desired.yaml", self.name))?;
        }
        Ok(wanted)
    }

    /// The children and the status as the API server stored them, with its defaults.
    pub fn stored(&self) -> Result<Value> {
        Ok(serde_json::from_str(&read(&self.folder.join("expected.full.json"))?)?)
    }

    /// The file with the wanted deviation: a JSON patch for `expected.json`.
    pub fn deviation(&self) -> PathBuf {
        self.folder.join("desired.yaml")
    }

    fn can_be_left(&self, environment: &BTreeMap<String, String>) -> bool {
        let children: Vec<&Value> = self.recorded["children"].as_array().into_iter().flatten().collect();
        self.environment == *environment
            && self.about.by_hand.is_none()
            && self.update.is_empty()
            && !self.deviation().exists()
            // Takeovers from a foreign owner have tests of their own.
            && children.iter().all(|child| child["metadata"]["ownerReferences"].is_array())
            && children.iter().any(|child| child["kind"] == "Deployment")
            // The nodes of the tests match no node selector.
            && children.iter().all(|child| child["spec"]["template"]["spec"]["nodeSelector"].is_null())
    }
}

/// The environment of the profile `default`.
pub fn default_environment() -> Result<BTreeMap<String, String>> {
    let profiles: Profiles = serde_saphyr::from_str(&read(&golden().join("profiles.yaml"))?)?;
    Ok(profiles.base.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

/// The objects of a YAML file.
pub fn documents(path: &Path) -> Result<Vec<Value>> {
    // Reads YAML 1.2, as the recorder did: `y` is a string.
    let options = serde_saphyr::options! { strict_booleans: true };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(&read(path)?, options).with_context(|| path.display().to_string())?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}
