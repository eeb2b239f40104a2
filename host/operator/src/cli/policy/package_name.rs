//! The name of the ConfigMap of a package. `policy new` writes the name into the kustomization of a project. From then
//! on, `kubectl apply -k` and the commands that pack the policy take the name from the kustomization. So `kubectl` and
//! these commands write the same ConfigMap, even after the author changed the name.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use crate::{input, package::LABEL};

/// The file names that `kubectl` accepts for a kustomization.
const FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Returns the default name of the ConfigMap for the package of a policy.
pub(super) fn usual(policy: &str) -> String {
    format!("policy-{policy}")
}

/// A kustomization that makes the package of a policy's file.
pub(super) struct Kustomized {
    /// The path of the kustomization.
    pub(super) path: PathBuf,
    /// The name of the ConfigMap.
    pub(super) name: String,
}

/// Reads the kustomization in the directory of a policy's file. Returns `None` if the kustomization makes no package of
/// this file.
pub(super) fn kustomized(file: &Path) -> anyhow::Result<Option<Kustomized>> {
    let directory = file.parent().unwrap_or(Path::new(""));
    let Some(path) = FILES.iter().map(|name| directory.join(name)).find(|path| path.is_file()) else {
        return Ok(None);
    };
    let kustomization = input::document(&path).with_context(|| {
        format!(
            "{}: cannot read the name of the package from this file: correct the file, or delete it",
            path.display()
        )
    })?;
    let name = file.file_name().and_then(|name| name.to_str()).and_then(|name| name_in(&kustomization, name));
    Ok(name.map(|name| Kustomized { path, name }))
}

/// Returns the name of the ConfigMap that a kustomization generates from a file, if the ConfigMap is a package.
fn name_in(kustomization: &Value, file: &str) -> Option<String> {
    let has_file = |entry: &Value| {
        let entry = entry.as_str().unwrap_or_default();
        let source = entry.split_once('=').map_or(entry, |(_, source)| source);
        source.strip_prefix("./").unwrap_or(source) == file
    };
    let usual = &kustomization["generatorOptions"];
    let is_package = |generator: &&Value| {
        let label = |options: &Value| options["labels"][LABEL].is_string();
        let keeps = |options: &Value| options["disableNameSuffixHash"] == true;
        let own = &generator["options"];
        (label(own) || label(usual))
            && (keeps(own) || keeps(usual))
            && generator["files"].as_array().is_some_and(|files| files.iter().any(has_file))
    };
    let generator = kustomization["configMapGenerator"].as_array()?.iter().find(is_package)?;
    let around = |field: &str| kustomization[field].as_str().unwrap_or_default();
    Some(format!("{}{}{}", around("namePrefix"), generator["name"].as_str()?, around("nameSuffix")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_generated_package_of_the_file_has_the_name() {
        let package = json!({"disableNameSuffixHash": true, "labels": {LABEL: "package"}});
        let with = |generator: Value| json!({"configMapGenerator": [{"name": "other", "files": ["a.js"]}, generator]});
        let generator = json!({"name": "policy-kite", "files": ["policy.js", "policy.yaml"], "options": package});
        assert_eq!(name_in(&with(generator.clone()), "policy.js").as_deref(), Some("policy-kite"));
        assert_eq!(name_in(&with(generator.clone()), "a.js"), None);
        let mut more = with(generator);
        more["namePrefix"] = json!("team-");
        assert_eq!(name_in(&more, "policy.js").as_deref(), Some("team-policy-kite"));
        let renamed = json!({"name": "kite", "files": ["policy.js=./src.js"], "options": package});
        assert_eq!(name_in(&with(renamed), "src.js").as_deref(), Some("kite"));
        let hashed = json!({"name": "kite", "files": ["policy.js"], "options": {"labels": {LABEL: "package"}}});
        assert_eq!(name_in(&with(hashed.clone()), "policy.js"), None);
        let mut common = with(hashed);
        common["generatorOptions"] = json!({"disableNameSuffixHash": true});
        assert_eq!(name_in(&common, "policy.js").as_deref(), Some("kite"));
        assert_eq!(name_in(&json!({"resources": ["a.yaml"]}), "policy.js"), None);
    }
}
