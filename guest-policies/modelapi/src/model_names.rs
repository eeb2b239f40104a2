//! Checks the names of models and of the provider.
//!
//! The policy refuses names that cannot work. For a doubtful name, which can still work, the policy only adds a note.

use alloc::string::String;
use alloc::vec::Vec;

use kaos_policy_sdk::quote::shown;
use kaos_policy_sdk::types::{Note, Refusal};
use kaos_policy_sdk::{Violations, note};
use kaos_workload::models::{UNLIKELY, is_blank};

use crate::providers::{Config, Proxy};

/// The maximum number of reported names. Ten names are enough to show the mistake.
const TOLD: usize = 10;

/// Refuses blank names in a generated configuration, and adds notes on doubtful names. `path_of` returns the path of
/// the model with the given index.
pub(crate) fn check(proxy: &Proxy, path_of: impl Fn(usize) -> String, notes: &mut Vec<Note>) -> Result<(), Refusal> {
    // If the user writes the configuration, the names have only one effect: they limit the models that Agents can use.
    let is_generated = matches!(proxy.config, Config::Generated);
    let mut wrong = Violations::new();
    let doubtful = proxy.models.iter().enumerate().filter_map(|(at, model)| Some((at, model, doubt(model)?)));
    for (at, model, doubt) in doubtful.take(TOLD) {
        if is_generated && is_blank(model) {
            wrong.add(path_of(at), doubt);
        } else {
            notes.push(note::at(path_of(at), note::warning(UNLIKELY, doubt)));
        }
    }
    if is_generated && proxy.provider.as_deref().is_some_and(is_blank) {
        let message = "the name is blank: name a provider that LiteLLM knows, such as openai, or remove the provider";
        wrong.add("spec.proxyConfig.provider", message);
    }
    wrong.into_result()
}

/// Returns why a model with this name probably cannot work, or `None` if the name is plausible.
fn doubt(model: &str) -> Option<String> {
    if is_blank(model) {
        return Some("the name is blank: name a model, or remove the entry".into());
    }
    let name = || shown(model, 100);
    if model.ends_with('/') {
        let message = "names a provider but no model: add the model, or `*` for all models";
        return Some(format!("`{}` {message}", name()));
    }
    let before = model.strip_suffix('*').unwrap_or(model);
    let is_pattern = before.len() < model.len();
    let is_plain =
        !before.bytes().any(|byte| byte == b'*') && (!is_pattern || before.is_empty() || before.ends_with('/'));
    (!is_plain).then(|| {
        let message = "matches only a model of exactly this name: write `*` for all models, openai/* for all models of \
                       a provider, or the name of each model";
        format!("`{}` {message}", name())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(models: &[&str], provider: Option<&str>, config: Config) -> (Vec<String>, Vec<String>) {
        let models = models.iter().map(|&model| model.into()).collect();
        let provider = provider.map(Into::into);
        let proxy = Proxy { models, provider, api_base: None, api_key: None, config };
        let mut notes = Vec::new();
        let wrong = match check(&proxy, |at| format!("models[{at}]"), &mut notes) {
            Ok(()) => Vec::new(),
            Err(Refusal::Invalid(wrong)) => wrong.into_iter().map(|wrong| wrong.path).collect(),
            Err(other) => panic!("{other:?}"),
        };
        (wrong, notes.into_iter().filter_map(|note| note.path).collect())
    }

    #[test]
    fn blank_names_are_refused_where_the_operator_writes_the_configuration() {
        let (wrong, notes) = checked(&["a", "", "\t \u{a0}"], Some(" "), Config::Generated);
        assert_eq!(wrong, ["models[1]", "models[2]", "spec.proxyConfig.provider"]);
        assert!(notes.is_empty());
        let own = Config::Text { text: "a: 1".into(), path: "p" };
        assert_eq!(checked(&["a", ""], Some(" "), own), (vec![], vec!["models[1]".to_owned()]));
    }

    #[test]
    fn names_that_probably_match_no_model_get_a_note() {
        let doubtful = ["gpt-*", "*/*", "openai/", "*a", "o*/a", "**"];
        let (wrong, notes) = checked(&doubtful, None, Config::Generated);
        assert_eq!((wrong, notes.len()), (vec![], doubtful.len()));
    }

    #[test]
    fn ordinary_names_and_patterns_get_no_note() {
        let names = ["*", "openai/*", "azure/eu/*", "gpt-4o", "openai/gpt-4o", "hf.co/user/x:Q4", " a", "größe"];
        assert_eq!(checked(&names, Some("openai"), Config::Generated), (vec![], vec![]));
    }

    #[test]
    fn a_note_lists_ten_of_thousands_of_names() {
        let (wrong, _) = checked(&vec![""; 3000], None, Config::Generated);
        assert_eq!(wrong.len(), 10);
    }
}
