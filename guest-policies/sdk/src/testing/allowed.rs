//! The host's rules for needs. If a need breaks a rule, the host refuses the answer.

use crate::names::{is_dns1123_subdomain, label_value, qualified_name};
use crate::types::{Need, Target};

/// The maximum number of needs in all rounds together.
pub(super) const NEEDS: usize = 256;
/// The maximum number of bytes of an id.
const ID: usize = 512;
/// The maximum number of labels of a selector.
const LABELS: usize = 32;
/// The maximum number of bytes of an object's name.
const NAME: usize = 253;

/// Returns the reason why the host would refuse the need; `None` if the host would answer.
pub(super) fn wrong(Need { id, target, .. }: &Need) -> Option<String> {
    if id.is_empty() || id.len() > ID {
        return Some(format!("the id must have 1 to {ID} characters"));
    }
    let namespace = match target {
        Target::Named(reference) => {
            let name = &reference.name;
            if name.is_empty() || name.len() > NAME || name.contains(['/', '%', '\0']) {
                return Some(format!("`{name}` is not a valid name: refuse the object, and leave out the need"));
            }
            &reference.namespace
        }
        Target::Labelled(selector) => {
            if selector.labels.len() > LABELS {
                return Some(format!(
                    "a selector has at most {LABELS} labels, but this one has {}",
                    selector.labels.len()
                ));
            }
            let is_wrong =
                |(key, value): &&(String, String)| qualified_name(key).or_else(|| label_value(value)).is_some();
            if let Some((key, value)) = selector.labels.iter().find(is_wrong) {
                return Some(format!("`{key}={value}` is not a valid label to select by"));
            }
            &selector.namespace
        }
    };
    let invalid = namespace.as_ref().filter(|namespace| !is_dns1123_subdomain(namespace));
    invalid.map(|namespace| format!("`{namespace}` is not a valid name of a namespace"))
}
