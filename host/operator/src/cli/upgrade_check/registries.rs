//! The ConfigMaps with registries of runtimes, which the chart writes from its values and from the preset.

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::values::Values;
use crate::{
    config_maps::OPERATOR_CONFIG,
    input::{self, Document},
    presets::{COMPATIBILITY, Preset},
};

/// The ConfigMaps with the runtimes of `MCPServer` objects and of harnesses.
pub(super) const REGISTRIES: [&str; 2] = ["kaos-mcp-runtimes", "kaos-harness-runtimes"];

/// The runtimes of the preset, each with the chart value that contains the runtime's image.
const IMAGES: [(&str, &str); 5] = [
    ("python-string", "defaultImages.mcpPythonString"),
    ("pctx-codemode", "defaultImages.mcpPctxCodemode"),
    ("fastmcp-codemode", "defaultImages.mcpFastmcpCodemode"),
    ("kubernetes", "defaultImages.mcpKubernetes"),
    ("slack", "defaultImages.mcpSlack"),
];

/// Returns the objects, with the ConfigMaps of the new chart instead of the operator's existing ConfigMaps.
pub(super) fn applied_to(
    values: &Values,
    documents: &[Document],
    preset: &Preset,
    home: &str,
) -> anyhow::Result<Vec<Document>> {
    let is_replaced = |document: &&Document| {
        let identity = &document.identity;
        let names = [&REGISTRIES[..], &[OPERATOR_CONFIG, COMPATIBILITY]].concat();
        identity.kind == "ConfigMap"
            && identity.namespace.as_deref() == Some(home)
            && names.contains(&identity.name.as_str())
    };
    let mut kept: Vec<Document> = documents.iter().filter(|document| !is_replaced(document)).cloned().collect();
    let config_map = |name: &str, runtimes: &Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": home},
            "data": {"runtimes.yaml": json!({"runtimes": runtimes}).to_string()}})
    };
    let registries =
        [config_map(REGISTRIES[0], &runtimes(values, preset)), config_map(REGISTRIES[1], &harnesses(values))];
    let (made, errors) = input::parse(&"the values".into(), &json!(registries[0]).to_string(), home);
    let (more, wrong) = input::parse(&"the values".into(), &json!(registries[1]).to_string(), home);
    if let Some(error) = errors.into_iter().chain(wrong).next() {
        return Err(error).context("the registries of runtimes");
    }
    kept.extend(made.into_iter().chain(more));
    Ok(kept)
}

fn runtimes(values: &Values, preset: &Preset) -> Value {
    let mut runtimes = preset.sections["mcpserver"]["runtimes"].clone();
    for (name, path) in IMAGES {
        let image = values.text(path);
        if let Some(Value::Object(runtime)) = runtimes.get_mut(name).filter(|_| !image.is_empty()) {
            runtime.insert("image".to_owned(), image.into());
        }
    }
    with_custom(values, runtimes, "mcpRuntimes.custom")
}

fn harnesses(values: &Values) -> Value {
    with_custom(
        values,
        json!({"pi": {"driver": "pi", "image": values.text("defaultImages.harnessPi")}}),
        "harnessRuntimes.custom",
    )
}

/// Returns the runtimes with the user's entries. A user's entry replaces the whole entry of the same name.
fn with_custom(values: &Values, runtimes: Value, path: &str) -> Value {
    let mut runtimes = match runtimes {
        Value::Object(runtimes) => runtimes,
        _ => Map::new(),
    };
    for (name, runtime) in values.at(path).as_object().into_iter().flatten().filter(|(_, entry)| !entry.is_null()) {
        runtimes.insert(name.clone(), runtime.clone());
    }
    Value::Object(runtimes)
}

#[cfg(test)]
mod tests {
    use kaos_policy::settings::Layer;

    use super::{
        super::{super::compatibility::Compatibility, recorded::Recorded},
        *,
    };

    fn read(file: &str) -> Value {
        let text = std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let (documents, errors) = input::parse(&file.into(), &text, "kaos-system");
        assert!(errors.is_empty() || documents.is_empty(), "{errors:?}");
        match &*documents {
            [] => serde_saphyr::from_str(&text).unwrap(),
            all => Value::Array(all.iter().map(|document| document.object.clone()).collect()),
        }
    }

    fn made(name: &str) -> Value {
        let made = read("deploy/install.yaml");
        let is_it = |object: &&Value| object["kind"] == "ConfigMap" && object["metadata"]["name"] == name;
        made.as_array().unwrap().iter().find(is_it).unwrap()["data"].clone()
    }

    #[test]
    fn the_chart_makes_the_same_of_its_own_values() {
        let mut values = Values::read(&[], false).unwrap();
        Recorded::default().choose(&mut values, None);
        let preset = values.preset(&Compatibility::of(None)).unwrap();
        let layers = values.layers(&preset, "kaos-system");
        let Some(Layer { content: kaos_policy::settings::Content::Env(variables), .. }) = layers.last() else {
            panic!("{layers:?}");
        };
        assert_eq!(json!(variables), made(OPERATOR_CONFIG));
        let chosen: Value = serde_saphyr::from_str(made(COMPATIBILITY)["kaos-0.8.yaml"].as_str().unwrap()).unwrap();
        assert_eq!(preset.sections, chosen);
        let registry =
            |name: &str| -> Value { serde_saphyr::from_str(made(name)["runtimes.yaml"].as_str().unwrap()).unwrap() };
        assert_eq!(json!({"runtimes": runtimes(&values, &preset)}), registry(REGISTRIES[0]));
        let mut registered = registry(REGISTRIES[1]);
        registered["runtimes"]["pi"].as_object_mut().unwrap().remove("description");
        assert_eq!(json!({"runtimes": harnesses(&values)}), registered);
    }
}
