//! Removes the images of the old preset from values if the upgrade changes the preset.

use std::collections::{BTreeMap, BTreeSet};

use super::{go_image, values::Values};
use crate::presets::Preset;

/// The chart value that contains the image for MCPServers without a runtime. The value has no effect.
const WITHOUT_EFFECT: &str = "mcpServer";

/// Removes the images of the preset `from` from values of KAOS's chart. Also removes images with the same names and
/// other tags, because these can be the images of another release of KAOS 0.8. But if the chart recorded images at the
/// takeover, removes an image with another tag only if the chart recorded it.
///
/// Returns the recorded images with other names, each with the name of its value. These images stay, because they are
/// the user's.
pub(super) fn leave(
    values: &mut Values,
    from: &str,
    recorded: Option<&BTreeMap<String, String>>,
) -> Vec<(String, String)> {
    let usual = images_of(from);
    let repositories: BTreeSet<&str> = usual.iter().map(|image| go_image::repository(image)).collect();
    let recorded = recorded.filter(|images| !images.is_empty());
    let mut kept = Vec::new();
    for (name, image) in values.images() {
        let is_recorded = recorded.is_some_and(|images| images.get(&name) == Some(&image));
        let is_of_kaos = repositories.contains(go_image::repository(&image));
        let path = format!("defaultImages.{name}");
        if usual.contains(&image) || (is_of_kaos && (is_recorded || recorded.is_none())) {
            values.set(&path, "");
        } else if is_recorded && name != WITHOUT_EFFECT {
            kept.push((path, image));
        }
    }
    kept
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
    use super::*;
    use crate::presets::USUAL;

    #[test]
    fn the_images_of_a_preset_go_with_it_and_images_of_the_user_stay() {
        let file = format!("{}/../../tests/golden/today/values/kaos-0.8.2.yaml", env!("CARGO_MANIFEST_DIR"));
        let images = [("agentRuntime", "axsauze/kaos-agent:0.8.2"), ("litellm", "mine:1")];
        let recorded: BTreeMap<_, _> =
            images.map(|(name, image)| (name.to_owned(), image.to_owned())).into_iter().collect();
        for (recorded, told) in [(None, vec![]), (Some(&recorded), vec!["defaultImages.litellm".to_owned()])] {
            let mut values = Values::read(std::slice::from_ref(&file), true).unwrap();
            values.set("defaultImages.litellm", "mine:1");
            let kept: Vec<String> = leave(&mut values, USUAL, recorded).into_iter().map(|(path, _)| path).collect();
            let of = |name: &str| values.text(&format!("defaultImages.{name}"));
            assert_eq!((of("agentRuntime"), of("litellm"), kept), (String::new(), "mine:1".to_owned(), told));
        }
    }
}
