//! Finds proxies that LiteLLM 1.104 does not start, because they have neither a master key nor the permission to run
//! without one. The setting `proxyConfig.withoutMasterKey` of the policy `modelapi` gives the permission.

use std::sync::Arc;

use kaos_crds::API_VERSION;
use kaos_policy::{
    render::Verdict,
    stamp::{pod_template, references, referred_config_maps},
};
use serde_json::Value;

use super::report::{Sort, UpgradeFinding};
use crate::{input::Document, offline::Entry};

/// The first version of LiteLLM that does not start without a master key.
const FIRST: (u64, u64) = (1, 104);
/// A word in the names of LiteLLM's images.
const NAME: &str = "litellm";
/// The variables with which a proxy starts: the permission, and the master key.
const VARIABLES: [&str; 2] = ["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "LITELLM_MASTER_KEY"];
/// The field of LiteLLM's configuration with the master key.
const FIELD: &str = "master_key";
const REMEDY: &str = "when a restart is possible, set policies.proxies={policy: modelapi, settings: {proxyConfig: \
                      {withoutMasterKey: true, withoutMasterKeySince: \"\"}}}; or choose an image of an older version, \
                      or give the proxy a master key";

/// The version of LiteLLM that an image can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// The version starts without a master key.
    Earlier,
    /// The version does not start without a master key.
    Later,
    /// The tag names no version, so a node can pull any version.
    Moving,
    /// The digest names one version, but the check does not know which one.
    Fixed,
}

/// Returns the finding about one object. `is_kept` tells whether the upgrade keeps the pods of the object.
pub(super) fn finding(object: &Document, entry: &Arc<Entry>, is_kept: bool) -> Option<UpgradeFinding> {
    let Verdict::Planned(planned) = &entry.rendered.verdict else { return None };
    if object.object["apiVersion"] != API_VERSION || object.object["kind"] != "ModelAPI" {
        return None;
    }
    let spec = &planned.manifests.iter().find_map(pod_template)?["spec"];
    let containers = spec["containers"].as_array()?;
    let of =
        |container: &Value| Some((container["image"].as_str()?.to_owned(), version(container["image"].as_str()?)?));
    let (container, (image, version)) = containers.iter().find_map(|container| Some((container, of(container)?)))?;
    let variables = container["env"].as_array().into_iter().flatten();
    let is_set = |variable: &Value| VARIABLES.iter().any(|name| variable["name"] == *name);
    let configs = referred_config_maps(spec, &planned.manifests);
    let mut texts = configs.iter().filter_map(|config| config["data"].as_object()).flat_map(|data| data.values());
    if variables.into_iter().any(is_set) || texts.any(|text| text.as_str().is_some_and(has_key)) {
        return None;
    }
    let message = match (version, is_kept) {
        (Version::Earlier, _) | (Version::Fixed, true) => return None,
        (Version::Later, _) => format!("its image {image} is such a version, so its pods end at once"),
        (Version::Moving, true) => format!(
            "its image {image} can become such a version: the pods that run now stay, but a pod that starts on a node \
             with a newer image ends at once"
        ),
        (Version::Moving | Version::Fixed, false) => {
            format!("its image {image} can be such a version: the new pods then end at once")
        }
    };
    // The check reads no Secrets.
    let is_hidden = !container["envFrom"].is_null() || references(&spec["volumes"]).iter().any(|it| it.0 == "Secret");
    let (unless, sort) = match (version, is_hidden) {
        (Version::Moving, _) if is_kept => ("", Sort::Note),
        (_, true) => (", unless a Secret or a ConfigMap of yours has the master key", Sort::Open),
        (_, false) => ("", Sort::Breaks),
    };
    let message = format!(
        "the proxy has no master key, and LiteLLM {}.{} and later do not start without one; {message}{unless}",
        FIRST.0, FIRST.1
    );
    Some(UpgradeFinding::new(sort, object.identity.to_string(), message, REMEDY))
}

/// Returns whether a configuration of LiteLLM sets the master key.
fn has_key(config: &str) -> bool {
    config.lines().any(|line| line.split('#').next().unwrap_or_default().contains(FIELD))
}

/// Returns the version of LiteLLM in an image. `None` for an image of another program.
fn version(image: &str) -> Option<Version> {
    let (named, digest) = image.split_once('@').map_or((image, None), |(named, digest)| (named, Some(digest)));
    let last = named.rsplit('/').next().unwrap_or_default();
    let (program, tag) = last.split_once(':').unwrap_or((last, ""));
    if !program.contains(NAME) {
        return None;
    }
    let numbers = tag.split(|letter: char| !letter.is_ascii_digit() && letter != '.').find_map(|part| {
        let mut parts = part.split('.').map(|number| number.parse::<u64>().ok());
        Some((parts.next()??, parts.next()??))
    });
    Some(match (numbers, digest) {
        (Some(numbers), _) if numbers < FIRST => Version::Earlier,
        (Some(_), _) => Version::Later,
        (None, Some(_)) => Version::Fixed,
        (None, None) => Version::Moving,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_an_image_tells_the_version_or_moves() {
        for (image, is) in [
            ("ghcr.io/berriai/litellm:main-v1.103.9-stable", Some(Version::Earlier)),
            ("ghcr.io/berriai/litellm:v1.74.3.rc.1", Some(Version::Earlier)),
            ("registry:5000/litellm-database:1.104.0", Some(Version::Later)),
            ("litellm:main-v1.104.2-nightly@sha256:00", Some(Version::Later)),
            ("litellm:v2.0", Some(Version::Later)),
            ("ghcr.io/berriai/litellm:main-stable", Some(Version::Moving)),
            ("ghcr.io/berriai/litellm:main-1a2b3c4", Some(Version::Moving)),
            ("litellm", Some(Version::Moving)),
            ("litellm@sha256:1104", Some(Version::Fixed)),
            ("litellm/other:1.105", None),
            ("ollama/ollama:latest", None),
        ] {
            assert_eq!(version(image), is, "{image}");
        }
    }

    #[test]
    fn a_comment_sets_no_key() {
        assert!(has_key("general_settings: {master_key: sk-1}") && !has_key("a: 1 # master_key"));
    }
}
