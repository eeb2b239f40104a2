//! Finds the preset and the images that the chart records of an installation, so that later upgrades keep both. The chart
//! writes them into annotations of the ConfigMap `kaos-operator-config`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    go_image,
    report::{Sort, UpgradeFinding},
    rolls::workloads,
    table::TAKEOVER_TIME,
    values::Values,
};
use crate::{
    config_maps::OPERATOR_CONFIG,
    input::Document,
    presets::{COMPATIBILITY, JANUARY, Preset, USUAL},
};

/// The annotation with the name of the preset.
const PRESET: &str = "kaos.tools/compatibility";
/// The annotation with the images of the takeover, for each preset.
const IMAGES: &str = "kaos.tools/default-images";
/// The name of this operator's image, without its registry.
const OWN_IMAGE: &str = "policy-operator";
/// The container of the operator.
const MANAGER: &str = "manager";

/// The earlier release.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Recorded {
    preset: String,
    /// The images of the takeover, by preset, and by the name of the value in `defaultImages`.
    images: BTreeMap<String, BTreeMap<String, String>>,
    /// Whether this chart was installed before.
    pub(super) is_installed: bool,
    /// Whether KAOS's operator works now: nothing was upgraded yet, or its release came back.
    pub(super) is_of_go: bool,
    /// The time of the takeover. Empty if the chart recorded none.
    pub(super) time: String,
    /// The repositories of the operator's image in the release's namespace.
    running: BTreeSet<String>,
}

/// The preset before and after the upgrade, and the images of the takeover that the values replace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Changes {
    /// The preset of the installation, or of the values of KAOS's chart. Empty if neither tells it.
    before: String,
    /// Whether the chart finds this preset, or images, only in the cluster.
    is_of_cluster: bool,
    /// The name of each changed value, the image, and the image of the takeover.
    images: Vec<(String, String, String)>,
}

impl Recorded {
    /// Finds the earlier release in the objects of the cluster. `home` is the namespace of the release.
    pub(super) fn of(documents: &[Document], home: &str) -> Self {
        let config_map = |name: &str| {
            let is_it = |document: &&Document| {
                let identity = &document.identity;
                identity.kind == "ConfigMap" && identity.name == name && identity.namespace.as_deref() == Some(home)
            };
            documents.iter().find(is_it).map(|document| &document.object)
        };
        let (config, compatibility) = (config_map(OPERATOR_CONFIG), config_map(COMPATIBILITY));
        let annotation =
            |name: &str| config.and_then(|it| it["metadata"]["annotations"][name].as_str()).unwrap_or_default();
        let is_installed = !annotation(PRESET).is_empty() || compatibility.is_some();
        let files = compatibility.and_then(|it| it["data"].as_object()).into_iter().flatten();
        let of_file = files.filter_map(|(file, _)| file.strip_suffix(".yaml")).next().unwrap_or_default();
        let preset = if annotation(PRESET).is_empty() { of_file } else { annotation(PRESET) };
        let images: Vec<(bool, String)> = documents.iter().flat_map(|document| images(document, home)).collect();
        let works_of_go = images.iter().any(|(_, repository)| go_image::is_repository(repository));
        Self {
            preset: preset.to_owned(),
            images: serde_json::from_str(annotation(IMAGES)).unwrap_or_default(),
            is_installed,
            is_of_go: works_of_go || (config.is_some() && !is_installed),
            time: config.and_then(|it| it["data"][TAKEOVER_TIME].as_str()).unwrap_or_default().to_owned(),
            running: images.into_iter().filter(|(is_manager, _)| *is_manager).map(|(_, image)| image).collect(),
        }
    }

    /// Returns whether KAOS's operator works now with an image of this repository. An image with the name of this
    /// operator's image is never KAOS's.
    pub(super) fn is_image_of_go(&self, repository: &str) -> bool {
        let is_ours = repository.rsplit('/').next() == Some(OWN_IMAGE);
        !is_ours && self.is_of_go && self.running.contains(repository)
    }

    /// Chooses the preset and the images of the values, as the chart does. `flag` is a preset that the user names for the
    /// check. Images of the preset `from` in values of its chart do not count for another preset.
    pub(super) fn choose(&self, values: &mut Values, flag: Option<&str>) -> Changes {
        let from = if values.is_of_january { JANUARY } else { USUAL };
        let before = if self.preset.is_empty() && values.is_carried { from } else { &self.preset };
        let named = values.text("compatibility");
        let chosen = [flag.unwrap_or_default(), &named, before, from].into_iter().find(|name| !name.is_empty());
        let chosen = chosen.unwrap_or(USUAL).to_owned();
        if values.is_carried && chosen != from {
            let usual = images_of(from);
            for (name, image) in values.images() {
                if usual.contains(&image) {
                    values.set(&format!("defaultImages.{name}"), "");
                }
            }
        }
        let mut changes = Changes { before: before.to_owned(), ..Changes::default() };
        let given = values.images();
        for (name, image) in self.images.get(&chosen).into_iter().flatten() {
            let (path, given) = (format!("defaultImages.{name}"), given.get(name).map_or("", String::as_str));
            if given.is_empty() || given == values.usual(&path) {
                changes.is_of_cluster |= given != image;
                values.set(&path, image);
            } else if given != image {
                changes.images.push((path, given.to_owned(), image.clone()));
            }
        }
        changes.is_of_cluster |= named.is_empty() && chosen != USUAL && !values.is_carried;
        // A finding names a preset that the chart lacks. But a file that the flag names is no value of the chart.
        if flag.is_none_or(Preset::is_embedded) {
            values.set("compatibility", &chosen);
        } else if named.is_empty() {
            values.set("compatibility", USUAL);
        }
        changes
    }
}

impl Changes {
    /// Returns notes about another preset, about other images than those of the takeover, and about a preset and images
    /// that the chart finds only in the cluster.
    pub(super) fn findings(&self, preset: &str) -> Vec<UpgradeFinding> {
        let note =
            |about: &str, message: String, remedy: String| UpgradeFinding::new(Sort::Note, about, message, remedy);
        let mut found = Vec::new();
        if !self.before.is_empty() && self.before != preset {
            let message = format!("the preset becomes {preset}, and is {} now: pods are replaced", self.before);
            found.push(note("compatibility", message, format!("set it to {} to keep the pods", self.before)));
        }
        for (path, given, image) in &self.images {
            let message = format!("is {given}, but the release took over KAOS's operator with the image {image}");
            found.push(note(path, message, format!("remove the value to keep the image {image}")));
        }
        if self.is_of_cluster {
            let message = "the chart keeps the preset and the images that it recorded in the cluster, but a chart that \
                           is rendered without a cluster, for example by Argo CD, does not find them";
            let remedy = format!(
                "if you render the chart without a cluster, set compatibility to {preset}, and defaultImages to the \
                 images in the annotation {IMAGES} of ConfigMap {OPERATOR_CONFIG}"
            );
            found.push(note("compatibility", message.to_owned(), remedy));
        }
        found
    }
}

/// Returns the repositories of a Deployment's images in the namespace `home`, each with whether the container is the
/// operator's.
fn images(document: &Document, home: &str) -> Vec<(bool, String)> {
    let is_it = document.identity.kind == workloads().kind && document.identity.namespace.as_deref() == Some(home);
    let containers = document.object["spec"]["template"]["spec"]["containers"].as_array().filter(|_| is_it);
    let image = |container: &Value| {
        Some((container["name"] == MANAGER, go_image::repository(container["image"].as_str()?).to_owned()))
    };
    containers.into_iter().flatten().filter_map(image).collect()
}

/// Returns the images of an embedded preset.
fn images_of(preset: &str) -> Vec<String> {
    let Ok(Preset { sections, .. }) = Preset::named(preset) else { return Vec::new() };
    let paths = ["/agent/image", "/memorystore/image", "/modelapi/proxy/image", "/modelapi/hosted/image"];
    let runtimes = sections["mcpserver"]["runtimes"].as_object().into_iter().flatten();
    let of_runtimes = runtimes.filter_map(|(_, runtime)| runtime["image"].as_str());
    let all = paths.into_iter().filter_map(|path| sections.pointer(path)?.as_str()).chain(of_runtimes);
    all.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input;

    const HOME: &str = "kaos-system";

    fn documents(objects: &[Value]) -> Vec<Document> {
        let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
        let (documents, errors) = input::parse(&"test".into(), &text.join("\n---\n"), HOME);
        assert!(errors.is_empty(), "{errors:?}");
        documents
    }

    fn config(annotations: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"A": "b"},
            "metadata": {"name": OPERATOR_CONFIG, "namespace": HOME, "annotations": annotations}})
    }

    fn operator(image: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kaos", "namespace": HOME},
            "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": image}]}}}})
    }

    fn values(file: &str, more: &str) -> Values {
        let folder = format!("{}/../../tests/golden/today/values", env!("CARGO_MANIFEST_DIR"));
        let mut values = if file.is_empty() {
            Values::read(&[], false).unwrap()
        } else {
            Values::read(&[format!("{folder}/{file}.yaml")], true).unwrap()
        };
        if !more.is_empty() {
            values.set("compatibility", more);
        }
        values
    }

    #[test]
    fn a_release_of_kaos_works_until_this_chart_records_a_preset_and_after_a_rollback() {
        let of = |objects: &[Value]| {
            let Recorded { is_installed, is_of_go, .. } = Recorded::of(&documents(objects), HOME);
            (is_installed, is_of_go)
        };
        let recorded = config(&json!({PRESET: USUAL}));
        assert_eq!(
            (of(&[]), of(&[config(&json!({}))]), of(&[recorded.clone()])),
            ((false, false), (false, true), (true, false))
        );
        assert_eq!(of(&[recorded.clone(), operator("mirror:5000/axsauze/kaos-operator:0.8.2")]), (true, true));
        assert_eq!(of(&[recorded, operator("ghcr.io/kaos-tools/policy-operator@sha256:0")]), (true, false));
        let mirrored =
            Recorded::of(&documents(&[config(&json!({})), operator("mirror:5000/operator:1@sha256:0")]), HOME);
        assert!(mirrored.is_image_of_go("mirror:5000/operator") && !mirrored.is_image_of_go("operator"));
        let forgotten = Recorded::of(&documents(&[config(&json!({})), operator("mirror/policy-operator:1")]), HOME);
        assert!(!forgotten.is_image_of_go("mirror/policy-operator"));
    }

    #[test]
    fn the_recorded_preset_and_images_count_until_the_values_name_others() {
        let images = r#"{"kaos-0.1": {"agentRuntime": "agent:0", "harnessPi": "pi:0"}}"#;
        let recorded = Recorded::of(&documents(&[config(&json!({PRESET: JANUARY, IMAGES: images}))]), HOME);
        let chosen = |file: &str, preset: &str, image: &str| {
            let mut values = values(file, preset);
            if !image.is_empty() {
                values.set("defaultImages.agentRuntime", image);
            }
            let changes = recorded.choose(&mut values, None);
            let of = ["compatibility", "defaultImages.agentRuntime", "defaultImages.harnessPi"]
                .map(|path| values.text(path));
            let notes = changes.findings(&of[0]).into_iter().map(|finding| finding.about).collect::<Vec<_>>().join(" ");
            (of[0].clone(), of[1].clone(), of[2] == "pi:0", notes)
        };
        let of = |preset: &str, image: &str, is_pi: bool, notes: &str| {
            (preset.to_owned(), image.to_owned(), is_pi, notes.to_owned())
        };
        assert_eq!(chosen("", "", ""), of(JANUARY, "agent:0", true, "compatibility"));
        assert_eq!(chosen("", JANUARY, "x"), of(JANUARY, "x", true, "defaultImages.agentRuntime compatibility"));
        assert_eq!(chosen("", USUAL, ""), of(USUAL, "", false, "compatibility"));
        assert_eq!(chosen("kaos-0.1", USUAL, ""), of(USUAL, "", false, "compatibility"));
        assert_eq!(chosen("kaos-0.1", USUAL, "x"), of(USUAL, "x", false, "compatibility"));
    }

    #[test]
    fn values_of_kaos_choose_the_preset_of_their_chart() {
        for (file, preset) in [("", USUAL), ("kaos-0.1", JANUARY), ("kaos-0.8.2", USUAL)] {
            let mut values = values(file, "");
            let changes = Recorded::default().choose(&mut values, None);
            assert_eq!(
                (values.text("compatibility"), changes.findings(preset)),
                (preset.to_owned(), Vec::new()),
                "{file}"
            );
        }
        let mut values = values("kaos-0.1", "");
        Recorded::default().choose(&mut values, Some("./mine.yaml"));
        assert_eq!(values.text("compatibility"), USUAL, "the file is no value of the chart");
    }
}
