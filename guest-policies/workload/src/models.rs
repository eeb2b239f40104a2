//! Decides whether a list of patterns allows a model name. Agents and proxy configurations use this rule to check
//! whether a ModelAPI offers a model.

use alloc::string::String;

/// The reason code of every note on a name that providers probably do not know.
pub const UNLIKELY: &str = "ModelUnlikely";

/// Returns whether `name` is empty or contains only whitespace.
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
