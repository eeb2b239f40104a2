//! Decides whether a list of patterns allows a model name. The policies for Agents, ModelAPIs and MemoryStores use this
//! rule to check whether a ModelAPI offers a model.

use alloc::{borrow::ToOwned, format, string::String, vec::Vec};
use kaos_policy_sdk::need::equal;

/// The list of patterns in the spec of a ModelAPI.
const LIST: &str = "spec.proxyConfig.models";
/// The fields that `kaos_crds::modelapi::offered` reads, except [`LIST`].
const OFFER: [&str; 4] = ["spec.mode", "spec.proxyConfig.model", "spec.hostedConfig.model", "spec.serverConfig.model"];
/// The maximum number of patterns that a need selects one by one. A need for more patterns selects the whole list.
const MAX_PATTERNS: usize = 12;
/// The maximum length in bytes of a model's name that a need selects. For a longer name, the need selects the whole
/// list.
const MAX_BYTES: usize = 128;

/// The reason code of every note on a model name that probably no provider has.
pub const UNLIKELY: &str = "ModelUnlikely";

/// Returns the paths of the fields that list all models of a ModelAPI.
pub fn offer() -> Vec<String> {
    OFFER.into_iter().chain([LIST]).map(ToOwned::to_owned).collect()
}

/// Returns the paths of the fields that show whether a ModelAPI offers these models. If possible, the paths select no
/// other models.
pub fn offer_of<'a>(models: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut patterns = alloc::vec!["*".to_owned()];
    for model in models {
        let providers = model.match_indices('/').map(|(at, _)| format!("{}/*", model.get(..at).unwrap_or_default()));
        if model.len() > MAX_BYTES {
            return offer();
        }
        patterns.extend(providers);
        patterns.push(model.to_owned());
    }
    if patterns.len() > MAX_PATTERNS {
        return offer();
    }
    let list = patterns.iter().map(|pattern| equal(LIST, pattern));
    OFFER.into_iter().map(ToOwned::to_owned).chain(list).collect()
}

/// Returns whether `name` is empty or only whitespace.
pub fn is_blank(name: &str) -> bool {
    name.chars().all(char::is_whitespace)
}

/// Returns whether a pattern allows `model`. `*` allows every model, and `provider/*` allows every model of the
/// provider. Any other pattern allows only the model with exactly this name.
pub fn allowed(patterns: &[String], model: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some("") => true,
        Some(prefix) if prefix.ends_with('/') => model.starts_with(prefix),
        _ => pattern == model,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_tell_whether_a_model_is_offered_hold_every_pattern_that_allows_it() {
        let fields = |models: &[&str]| {
            let of = offer_of(models.iter().copied());
            of.into_iter().filter_map(|field| field.strip_prefix(LIST).map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(fields(&["gpt-4o"]), [r#"[="*"]"#, r#"[="gpt-4o"]"#]);
        assert_eq!(fields(&["a/b/c"]), [r#"[="*"]"#, r#"[="a/*"]"#, r#"[="a/b/*"]"#, r#"[="a/b/c"]"#]);
        assert_eq!(fields(&["a", "b"]), [r#"[="*"]"#, r#"[="a"]"#, r#"[="b"]"#]);
        assert_eq!(fields(&["/".repeat(12).as_str()]), [""], "for so many patterns, the need selects the whole list");
        assert_eq!(fields(&["x".repeat(200).as_str()]), [""]);
    }

    fn allows(pattern: &str, model: &str) -> bool {
        allowed(&[pattern.to_owned()], model)
    }

    #[test]
    fn a_star_allows_every_model() {
        assert!(allows("*", "openai/gpt-4o") && allows("*", ""));
    }

    #[test]
    fn a_provider_with_a_star_allows_its_models_only() {
        assert!(allows("openai/*", "openai/gpt-4o"));
        assert!(!allows("openai/*", "anthropic/claude-3"));
        assert!(!allows("openai/*", "openai2/gpt"));
        assert!(!allows("openai/*", "openai"));
    }

    #[test]
    fn a_name_allows_itself_and_a_star_inside_a_name_is_a_letter() {
        assert!(allows("gpt-4o", "gpt-4o") && !allows("gpt-4o", "gpt-4"));
        assert!(allows("claude-*", "claude-*") && !allows("claude-*", "claude-3"));
    }
}
