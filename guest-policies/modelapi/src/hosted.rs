//! A hosted model: checks the model's name, and builds the init container that pulls the model.
//!
//! The model's name is text from the user, and a shell runs the script. If the name has only letters, digits and a few
//! signs without a meaning for shells, the policy writes the name into the script. Every other name becomes an argument
//! of the script.

use alloc::{string::String, vec::Vec};
use kaos_policy_sdk::quote::{shown, unexpanded};
use kaos_policy_sdk::types::Refusal;
use kaos_policy_sdk::{object, refusal};
use kaos_workload::models;
use kaos_workload::settings::PullPolicy;
use serde_json::Value;

use crate::settings::ModelPull;

/// Refuses a blank name, and a name with control characters.
pub(crate) fn check_model(model: &str, path: &str) -> Result<(), Refusal> {
    if models::is_blank(model) {
        return Err(refusal::invalid(path, "the name is blank: name a model, for example smollm2:135m"));
    }
    if model.contains(char::is_control) {
        let message = format!(
            "`{model}` has control characters: name a model, for example smollm2:135m",
            model = shown(model, 253)
        );
        return Err(refusal::invalid(path, message));
    }
    Ok(())
}

/// Builds the init container that pulls `model` into the volume at `mount`.
pub(crate) fn pull_container(pull: &ModelPull, image: &str, policy: PullPolicy, model: &str, mount: &Value) -> Value {
    object! {
        "name": pull.name.as_str(),
        "image": image,
        "imagePullPolicy": policy.as_str(),
        "command": pull.command.clone(),
        "args": arguments(pull, model),
        "volumeMounts": vec![mount.clone()],
    }
}

/// Returns the arguments of the init container. The first argument is the script. If the script does not contain the
/// model's name, two more arguments follow: a name for the script, and the model's name.
fn arguments(pull: &ModelPull, model: &str) -> Vec<String> {
    if is_harmless(model) {
        return vec![script(pull, "", model)];
    }
    vec![script(pull, "-- ", "\"$1\""), pull.name.clone(), unexpanded(model)]
}

/// Returns the script of `pull`, with `model` in place of `{model}`, and `end_of_options` in place of `{--}`.
fn script(pull: &ModelPull, end_of_options: &str, model: &str) -> String {
    replaced(&replaced(&pull.script, "{--}", end_of_options), "{model}", model)
}

/// Replaces every occurrence of the text `mark` in `text` with `by`. Compares bytes, because the general text search
/// would add kilobytes to the component.
fn replaced(text: &str, mark: &str, by: &str) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some(at) = rest.as_bytes().windows(mark.len()).position(|window| window == mark.as_bytes()) {
        done.push_str(rest.get(..at).unwrap_or_default());
        done.push_str(by);
        rest = rest.get(at + mark.len()..).unwrap_or_default();
    }
    done.push_str(rest);
    done
}

/// Returns whether a shell reads the name as one plain word, and no program reads the name as a flag.
fn is_harmless(model: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '/' | '@' | '-');
    !model.is_empty() && model.chars().all(plain) && !model.starts_with('-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::settings::Settings;

    fn of(model: &str) -> Vec<String> {
        arguments(&Settings::default().model_pull, model)
    }

    #[test]
    fn an_ordinary_name_is_written_into_the_script() {
        for model in ["smollm2:135m", "hf.co/user/repo_x:Q4_K-M"] {
            let script = format!("ollama serve & OLLAMA_PID=$! && sleep 5 && ollama pull {model} && kill $OLLAMA_PID");
            assert_eq!(of(model), [script]);
        }
    }

    #[test]
    fn any_other_name_is_an_argument_of_the_script() {
        let [script, zero, model] = of("m; touch /tmp/pwned $(id) `id` 'q'").try_into().unwrap();
        assert_eq!(script, "ollama serve & OLLAMA_PID=$! && sleep 5 && ollama pull -- \"$1\" && kill $OLLAMA_PID");
        assert_eq!((zero.as_str(), model.as_str()), ("pull-model", "m; touch /tmp/pwned $$(id) `id` 'q'"));
        assert_eq!(of("--insecure").len(), 3);
    }

    #[test]
    fn the_model_is_one_word_in_a_script_from_a_setting() {
        let script = "set -- pull; exec get name={model} {model} {--}".to_owned();
        let pull = ModelPull { script, ..Settings::default().model_pull };
        assert_eq!(arguments(&pull, "m:1"), ["set -- pull; exec get name=m:1 m:1 "]);
        let odd = "set -- pull; exec get name=\"$1\" \"$1\" -- ";
        assert_eq!(arguments(&pull, "a {model} b"), [odd, "pull-model", "a {model} b"]);
    }

    #[test]
    fn a_name_with_control_characters_is_refused_with_the_path() {
        let refused = check_model("a\nb", "spec.hostedConfig.model").unwrap_err();
        let Refusal::Invalid(violations) = refused else { panic!("{refused:?}") };
        assert_eq!(violations[0].path, "spec.hostedConfig.model");
        assert!(check_model("größe", "p").is_ok());
        for blank in [" ", "\u{a0}\t"] {
            let refused = check_model(blank, "spec.serverConfig.model").unwrap_err();
            let Refusal::Invalid(violations) = refused else { panic!("{refused:?}") };
            assert_eq!(violations[0].message, "the name is blank: name a model, for example smollm2:135m");
        }
    }

    proptest! {
        #[test]
        fn the_script_for_a_name_with_other_characters_never_changes(model in "\\PC{1,40}", sign in "[^A-Za-z0-9._:/@-]") {
            let script = "ollama serve & OLLAMA_PID=$! && sleep 5 && ollama pull -- \"$1\" && kill $OLLAMA_PID";
            let arguments = of(&format!("{model}{sign}"));
            prop_assert_eq!(arguments[0].as_str(), script);
        }
    }
}
