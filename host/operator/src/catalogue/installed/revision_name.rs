//! The names of revisions.

use kaos_crds::PolicySource;
use kaos_policy::digest::Digest;
use serde_json::json;

/// Returns the name of the revision of a source with this content. `home` is the operator's namespace.
pub(super) fn revision_name(source: &PolicySource, digest: Digest, home: &str) -> String {
    // In the source of a default policy, `config_map` contains a colon, which the name of an object cannot contain.
    let mut name = source.config_map.replace(':', "-");
    if source.namespace != home {
        name = format!("{}.{name}", source.namespace);
    }
    name.truncate(180);
    let whole = Digest::of_json(&json!([source.namespace, source.config_map, digest.to_string()]));
    format!("{}-{}", name.trim_end_matches(['.', '-']), &whole.hex()[..12])
}
