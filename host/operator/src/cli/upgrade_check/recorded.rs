//! Finds the preset and the images that the chart records of an installation, so that later upgrades keep both. The
//! chart writes the preset and the images into annotations of the ConfigMap `kaos-operator-config`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    go_image, operator_image, preset_images,
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
/// The annotation in which the chart records the images that each preset had at the time of the upgrade.
const IMAGES: &str = "kaos.tools/default-images";
/// The annotation with the image of KAOS's operator that the release replaced.
const REPLACED: &str = "kaos.tools/replaced-image";
/// The annotation with the features that the user accepted to lose, each as NAME=TEXT.
const ACCEPTED: &str = "kaos.tools/accepted";
/// The container of the operator.
const MANAGER: &str = "manager";

/// The earlier release.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Recorded {
    preset: String,
    /// The images that the chart recorded at the takeover, by preset, and then by the name of the value in
    /// `defaultImages`.
    images: BTreeMap<String, BTreeMap<String, String>>,
    /// Whether this chart was installed before.
    pub(super) is_installed: bool,
    /// Whether KAOS's operator runs now, because no upgrade replaced it yet, or because a rollback restored its
    /// release.
    pub(super) is_of_go: bool,
    /// The time of the takeover. Empty if the chart recorded no time.
    pub(super) time: String,
    /// The images of KAOS's operator that run now in the release's namespace. If none runs, the image that the release
    /// replaced.
    replaced: Vec<String>,
    /// The preset for the version of KAOS's operator that runs now. `None` if its ConfigMap does not show the version.
    version: Option<&'static str>,
    /// The features that the user accepted to lose in an earlier upgrade, each as NAME=TEXT.
    accepted: BTreeSet<String>,
    /// The findings about records that the chart cannot read.
    damages: Vec<UpgradeFinding>,
}

/// The preset before and after the upgrade, and the images of the takeover that the values replace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Changes {
    /// The preset that the chart recorded, or else the preset for the version of KAOS. Empty if both are unknown.
    before: String,
    /// Whether the values lack the preset or images, so that the chart finds them only in the cluster.
    is_of_cluster: bool,
    /// The values whose image is not the image of the takeover: the name of the value, its image, and the image of the
    /// takeover.
    images: Vec<(String, String, String)>,
    /// The images of the takeover that stay although the upgrade changes the preset, each with the name of its value.
    kept: Vec<(String, String)>,
    /// The findings about damaged records and about the operator's image.
    further: Vec<UpgradeFinding>,
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
        let of_files: Vec<&str> = files.filter_map(|(file, _)| file.strip_suffix(".yaml")).collect();
        let of_file = of_files.first().copied().unwrap_or_default();
        let preset = if annotation(PRESET).is_empty() { of_file } else { annotation(PRESET) };
        let mut damages = Vec::new();
        if annotation(PRESET).is_empty() && of_files.len() > 1 {
            damages.push(several(&of_files, home));
        }
        let read = serde_json::from_str(Some(annotation(IMAGES)).filter(|text| !text.is_empty()).unwrap_or("{}"));
        if read.is_err() {
            damages.push(damaged(home));
        }
        let images: Vec<(bool, String)> = documents.iter().flat_map(|document| images(document, home)).collect();
        let is_known = |image: &str| go_image::is_repository(go_image::repository(image));
        // The first upgrade may have ended after it wrote its ConfigMap and before it replaced the Deployment. Then
        // KAOS's operator still runs, although the ConfigMap is from this chart.
        let is_replaced = |is_manager: bool, image: &str| is_manager && image == annotation(REPLACED);
        let works_of_go = images.iter().any(|(is_manager, image)| is_known(image) || is_replaced(*is_manager, image));
        let is_of_go = works_of_go || (config.is_some() && !is_installed);
        let is_other = |image: &String| !operator_image::is_ours(go_image::repository(image));
        let running = images.into_iter().filter(|(is_manager, _)| *is_manager && is_of_go).map(|(_, image)| image);
        let mut replaced: Vec<String> = running.filter(is_other).collect();
        if replaced.is_empty() {
            replaced.extend(Some(annotation(REPLACED).to_owned()).filter(|image| !image.is_empty()));
        }
        let accepted = annotation(ACCEPTED).split(',').filter(|name| !is_of_go && !name.is_empty());
        let data = config.map(|it| &it["data"]).filter(|_| is_of_go && !is_installed);
        Self {
            preset: preset.to_owned(),
            images: read.unwrap_or_default(),
            is_installed,
            is_of_go,
            time: config.and_then(|it| it["data"][TAKEOVER_TIME].as_str()).unwrap_or_default().to_owned(),
            replaced,
            version: data.and_then(version),
            accepted: accepted.map(str::to_owned).collect(),
            damages,
        }
    }

    /// Returns whether the user accepted to lose this feature, with this text of its variable, in an earlier upgrade.
    pub(super) fn has_lost(&self, name: &str, text: &str) -> bool {
        self.accepted.contains(&format!("{name}={text}"))
    }

    /// Chooses the preset and the images of the values, as the chart does. `flag` is a preset that the user names for
    /// the check. If the upgrade changes the preset, removes the images of the old preset from values of KAOS's chart.
    pub(super) fn choose(&self, values: &mut Values, flag: Option<&str>) -> Changes {
        let operator = operator_image::choose(values, &self.replaced);
        let version = self.version.or_else(|| values.version());
        let from = version.unwrap_or(USUAL);
        let before = if self.preset.is_empty() { version.unwrap_or_default() } else { &self.preset };
        let named = values.text("compatibility");
        let chosen = [flag.unwrap_or_default(), &named, before, from].into_iter().find(|name| !name.is_empty());
        let chosen = chosen.unwrap_or(USUAL).to_owned();
        let further = self.damages.iter().cloned().chain(operator).collect();
        let mut changes = Changes { before: before.to_owned(), further, ..Changes::default() };
        if values.is_carried && chosen != from {
            changes.kept = preset_images::leave(values, from, self.images.get(from));
        }
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
        // Keep the name of a preset that the chart lacks, because a finding reports it. But do not set the value to a
        // file that the flag names, because the chart accepts no files.
        if flag.is_none_or(Preset::is_embedded) {
            values.set("compatibility", &chosen);
        } else if named.is_empty() {
            values.set("compatibility", USUAL);
        }
        changes
    }
}

impl Changes {
    /// Returns notes about a new preset, about images that replace the images of the takeover, and about a preset and
    /// images that the chart finds only in the cluster. Also returns the findings in the field `further`.
    pub(super) fn findings(&self, preset: &str) -> Vec<UpgradeFinding> {
        let note =
            |about: &str, message: String, remedy: String| UpgradeFinding::new(Sort::Note, about, message, remedy);
        let mut found = self.further.clone();
        for (path, image) in &self.kept {
            let message = format!(
                "stays {image}: the release used this image at the takeover from KAOS's operator, with the preset {}",
                self.before
            );
            found.push(note(path, message, format!("set it if the preset {preset} needs another image")));
        }
        if !self.before.is_empty() && self.before != preset {
            let message = format!("the upgrade changes the preset from {} to {preset}, and replaces pods", self.before);
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

/// Returns the finding about several presets in one ConfigMap. The ConfigMap does not show which of them is in use.
fn several(presets: &[&str], home: &str) -> UpgradeFinding {
    let message = format!("has several presets: {}", presets.join(", "));
    let remedy = format!(
        "remove all but one of these files from it, or name the preset in the annotation {PRESET} of ConfigMap \
         {OPERATOR_CONFIG}"
    );
    UpgradeFinding::new(Sort::Stops, format!("ConfigMap {home}/{COMPATIBILITY}"), message, remedy)
}

/// Returns the finding about an annotation that a user damaged. Without the images in this annotation, the upgrade
/// would replace pods.
fn damaged(home: &str) -> UpgradeFinding {
    let message = format!("the annotation {IMAGES} is damaged");
    let remedy = "correct it to the form {\"kaos-0.8\": {\"agentRuntime\": \"axsauze/kaos-agent:0.8.2\"}}, or set it to {} \
                  to use the images of the preset";
    UpgradeFinding::new(Sort::Stops, format!("ConfigMap {home}/{OPERATOR_CONFIG}"), message, remedy)
}

/// Returns the preset for the version of KAOS's operator with these variables. KAOS of January 2026 had no memory
/// service and no security.
fn version(variables: &Value) -> Option<&'static str> {
    let variables = variables.as_object().filter(|all| all.contains_key("DEFAULT_AGENT_IMAGE"))?;
    let is_newer = |name: &String| name == "DEFAULT_MEMORY_SERVICE_IMAGE" || name.starts_with("SECURITY_");
    Some(if variables.keys().any(is_newer) { USUAL } else { JANUARY })
}

/// Returns the images of a Deployment in the namespace `home`. With each image, returns whether the container is the
/// operator's.
fn images(document: &Document, home: &str) -> Vec<(bool, String)> {
    let is_it = document.identity.kind == workloads().kind && document.identity.namespace.as_deref() == Some(home);
    let containers = document.object["spec"]["template"]["spec"]["containers"].as_array().filter(|_| is_it);
    let image = |container: &Value| Some((container["name"] == MANAGER, container["image"].as_str()?.to_owned()));
    containers.into_iter().flatten().filter_map(image).collect()
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
            (of(&[]), of(&[config(&json!({}))]), of(std::slice::from_ref(&recorded))),
            ((false, false), (false, true), (true, false))
        );
        assert_eq!(of(&[recorded.clone(), operator("mirror:5000/axsauze/kaos-operator:0.8.2")]), (true, true));
        assert_eq!(of(&[recorded, operator("ghcr.io/kaos-tools/policy-operator@sha256:0")]), (true, false));
        // The first upgrade ended after it wrote its ConfigMap and before it replaced the Deployment.
        let begun = config(&json!({PRESET: USUAL, REPLACED: "mirror/operator:1"}));
        assert_eq!(of(&[begun.clone(), operator("mirror/operator:1")]), (true, true));
        assert_eq!(of(&[begun.clone(), operator("mirror/operator:2")]), (true, false));
        let replaced = |objects: &[Value]| Recorded::of(&documents(objects), HOME).replaced;
        let mirrored = "mirror:5000/operator:1@sha256:0";
        assert_eq!(replaced(&[config(&json!({})), operator(mirrored)]), [mirrored]);
        assert_eq!(replaced(&[config(&json!({})), operator("mirror/policy-operator:1")]), [""; 0]);
        assert_eq!(replaced(&[begun, operator("mirror/policy-operator:1")]), ["mirror/operator:1"]);
    }

    #[test]
    fn the_variables_of_kaos_operator_tell_its_version() {
        let of = |more: &str| {
            let mut config = config(&json!({}));
            config["data"] = json!({"DEFAULT_AGENT_IMAGE": "x", more: "y"});
            Recorded::of(&documents(&[config]), HOME).version
        };
        assert_eq!((of("A"), of("SECURITY_PDP_NAME")), (Some(JANUARY), Some(USUAL)));
        assert_eq!(of("DEFAULT_MEMORY_SERVICE_IMAGE"), Some(USUAL));
        assert_eq!(Recorded::of(&documents(&[config(&json!({}))]), HOME).version, None);
        let mut ours = config(&json!({PRESET: USUAL}));
        ours["data"] = json!({"DEFAULT_AGENT_IMAGE": "x"});
        assert_eq!(Recorded::of(&documents(&[ours]), HOME).version, None);
    }

    #[test]
    fn a_damaged_record_and_several_presets_stop_the_upgrade() {
        let of = |objects: &[Value]| -> Vec<String> {
            let mut values = values("", "");
            let found = Recorded::of(&documents(objects), HOME).choose(&mut values, None).findings(USUAL);
            found.into_iter().filter(|finding| finding.sort == Sort::Stops).map(|finding| finding.message).collect()
        };
        for text in ["[]", "x", r#"{"kaos-0.8": []}"#, r#"{"kaos-0.8": {"litellm": 1}}"#] {
            let found = of(&[config(&json!({IMAGES: text}))]);
            assert_eq!(found, [format!("the annotation {IMAGES} is damaged")], "{text}");
        }
        assert_eq!(of(&[config(&json!({IMAGES: "{}"}))]), [""; 0]);
        let presets = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"kaos-0.1.yaml": "", "kaos-0.8.yaml": ""},
            "metadata": {"name": COMPATIBILITY, "namespace": HOME}});
        assert_eq!(of(&[config(&json!({})), presets.clone()]), ["has several presets: kaos-0.1, kaos-0.8"]);
        assert_eq!(of(&[config(&json!({PRESET: JANUARY})), presets]), [""; 0]);
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
