//! Adds a note if the Agent asks for a variable that the Agent's image ignores.
//!
//! `KAOS_IMAGE` and the setting `imageVariables` list, for each known image, the versions that read a variable. An
//! Agent gets no note if neither list contains its image, or if the image's tag is not a version (`latest`).

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::iter::zip;
use kaos_policy_sdk::quote::shown;
use kaos_policy_sdk::types::{Condition, EnvSource, EnvVar, Note, Severity, Subject};
use kaos_policy_sdk::{Decode, Object, SubjectExt, condition, note};
use serde_json::Value;

use crate::memory::{ENDPOINT, STORE};
use crate::request::KIND;

/// The reason code of the notes on ignored variables.
const IGNORED: &str = "VariableIgnored";

/// KAOS's image, and the variables that fields of an Agent can set. For each variable, the list names the image
/// versions that read the variable. The versions come from the package `pydantic-ai-server` of KAOS 0.3.0 to 0.8.4, and
/// from the image of KAOS 0.1. The default of the setting does not contain this list, because each pass would have to
/// parse the list.
pub const KAOS_IMAGE: (&str, [(&str, &str); 11]) = (
    "axsauze/kaos-agent",
    [
        ("AGENTIC_LOOP_ENABLE_*", "<0.3"),
        ("AGENT_SYSTEM_PROMPT", "0.6"),
        ("AUTONOMOUS_*", "0.4"),
        ("MEMORY_FAILURE_MODE", "0.6"),
        ("MEMORY_MAX_READ_SCOPE", "0.7"),
        ("MEMORY_ROLLING_SUMMARY", "never"),
        ("MEMORY_SHORT_TERM_*", "0.6"),
        ("MEMORY_STORE_ENDPOINT", "0.6"),
        ("MEMORY_TOOLS", "0.6"),
        ("TASK_MAX_*", "never"),
        ("TOOL_CALL_MODE", "0.3"),
    ],
);

/// The setting `imageVariables`. The policy decodes this setting only for an Agent that asks for a variable.
#[derive(Decode)]
#[serde(rename_all = "camelCase")]
struct Known {
    #[serde(default)]
    image_variables: Images,
}

/// A map from the repository of an image to a list of variables. Each entry of the list names a variable and the
/// versions that read it, such as `AUTONOMOUS_* 0.4, OLD <0.3`.
type Images = BTreeMap<String, String>;

/// Returns a note for each variable that the object asks for and that the image of `deployment` ignores. `env` is the
/// Agent's complete mapping.
pub(crate) fn notes(subject: &Subject, object: &Object, deployment: &Value, env: &[EnvVar]) -> Vec<Note> {
    let mut candidates = env.iter().filter(|var| may_be_asked(&var.origin)).peekable();
    if candidates.peek().is_none() {
        return Vec::new();
    }
    let Some(image) = image_of(deployment) else { return Vec::new() };
    let Some((repository, version)) = split(image) else { return Vec::new() };
    let Ok(known) = subject.settings::<Known>() else { return Vec::new() };
    let is_it = |name: &str| repository.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    let listed = known.image_variables.iter().find(|(name, _)| is_it(name)).map(|(_, reads)| reads.as_str());
    if listed.is_none() && !is_it(KAOS_IMAGE.0) {
        return Vec::new();
    }
    let told = candidates.filter_map(|var| {
        let is_about = |(entry, _): &(&str, &str)| covers(entry, &var.name);
        let reads = match listed {
            Some(reads) => reads.split(", ").filter_map(|entry| entry.split_once(' ')).find(is_about),
            None => KAOS_IMAGE.1.iter().copied().find(is_about),
        };
        let versions = Versions::of(reads?.1).filter(|versions| !versions.contain(&version))?;
        Some(versions.note(image, &var.name, asked_at(object, var)?))
    });
    told.collect()
}

/// Returns whether a field of the Agent can be the reason for a variable with this origin. This cheap check excludes
/// most variables.
fn may_be_asked(origin: &str) -> bool {
    ["spec.co", "spec.p", "MemoryStore/"].iter().any(|beginning| origin.starts_with(beginning))
}

/// Builds the condition `VariablesRead` from the warnings about ignored variables.
pub(crate) fn condition(notes: &[Note]) -> Option<Condition> {
    let is_told = |note: &&Note| note.reason == IGNORED && note.severity == Severity::Warning;
    let messages: Vec<&str> = notes.iter().filter(is_told).map(|note| note.message.as_str()).collect();
    (!messages.is_empty()).then(|| condition::no("VariablesRead", "ImageIgnores", messages.join("; ")))
}

/// Returns the field of the object that asks for a variable. Returns `None` if no field of the object asks for the
/// variable, or if the value is the default of all runtimes.
fn asked_at<'a>(object: &Object, var: &'a EnvVar) -> Option<&'a str> {
    let origin = var.origin.as_str();
    let Some(place) = origin.strip_prefix("spec.") else {
        let is_address = origin.starts_with("MemoryStore/") && var.name == ENDPOINT;
        return is_address.then_some(STORE);
    };
    if var.container != KIND.container {
        return None;
    }
    if place.starts_with("container.") || place.starts_with("podSpec") {
        return Some(origin);
    }
    let field = place.strip_prefix("config.")?;
    let is_usual = var.name == "TOOL_CALL_MODE" && matches!(&var.source, EnvSource::Literal(mode) if mode == "auto");
    let mut value = object.at(&["spec", "config"])?;
    // Stop before an index such as `env[0]`: a variable with this origin exists only if the list has the entry.
    for name in field.split('.').take_while(|name| !name.ends_with(']')) {
        value = value.get(name)?;
    }
    (!value.is_null() && !is_usual).then_some(origin)
}

/// Returns whether `entry` of the setting matches `variable`. An entry that ends in `*` matches all names that begin
/// with the text before `*`.
fn covers(entry: &str, variable: &str) -> bool {
    entry.strip_suffix('*').map_or(entry == variable, |beginning| variable.starts_with(beginning))
}

/// Returns the image of the Agent's own container, or `None` if the container has no image.
fn image_of(deployment: &Value) -> Option<&str> {
    let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    let own = containers.iter().find(|it| it.get("name").and_then(Value::as_str) == Some(KIND.container))?;
    own.get("image")?.as_str()
}

/// Splits an image such as `kaos-agent:v0.1.4` into its repository and the numbers 0, 1 and 4 of its version. Returns
/// `None` if the tag has fewer than two numbers.
fn split(image: &str) -> Option<(&str, Vec<u32>)> {
    let named = image.split('@').next()?;
    let (repository, tag) = named.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    let version = numbers(tag.strip_prefix('v').unwrap_or(tag));
    (version.len() > 1).then_some((repository, version))
}

/// Returns the numbers at the start of a version, such as 0, 1 and 4 of `0.1.4-dev`.
fn numbers(version: &str) -> Vec<u32> {
    let plain = version.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or_default();
    plain.split('.').map_while(|number| number.parse().ok()).take(3).collect()
}

/// The image versions that read a variable.
enum Versions<'a> {
    /// The given version and all newer versions read the variable.
    Since(&'a str),
    /// All versions older than the given version read the variable.
    Before(&'a str),
    /// No version reads the variable.
    Never,
}

impl<'a> Versions<'a> {
    fn of(text: &'a str) -> Option<Self> {
        match text.strip_prefix('<') {
            Some(before) => Some(Self::Before(before)),
            None if text == "never" => Some(Self::Never),
            None => (!numbers(text).is_empty()).then_some(Self::Since(text)),
        }
    }

    fn contain(&self, version: &[u32]) -> bool {
        match self {
            Self::Since(since) => !is_older(version, since),
            Self::Before(before) => is_older(version, before),
            Self::Never => false,
        }
    }

    fn note(&self, image: &str, variable: &str, path: &str) -> Note {
        let image = shown(image, 200);
        let told = |remedy: &str| format!("the image {image} reads no {variable}, so {path} has no effect: {remedy}");
        let note = match self {
            Self::Since(since) => note::warning(IGNORED, told(&format!("use {since} or newer"))),
            Self::Before(before) => note::warning(
                IGNORED,
                told(&format!("remove the field; only images before {before} read this variable")),
            ),
            Self::Never => note::info(IGNORED, told("remove the field; no version of the image reads this variable")),
        };
        note::at(path, note)
    }
}

/// Returns whether `version` is older than `other`. A tag such as `0.4` can stand for any version with this prefix, so
/// `0.4` is not older than `0.4.2`.
fn is_older(version: &[u32], other: &str) -> bool {
    let first_difference = zip(version, numbers(other)).find(|(own, other)| *own != other);
    first_difference.is_some_and(|(own, other)| *own < other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tag_with_two_numbers_is_a_version() {
        let version = |image| split(image).map(|(_, version)| version);
        assert_eq!(split("axsauze/kaos-agent:v0.1.4-dev"), Some(("axsauze/kaos-agent", vec![0, 1, 4])));
        assert_eq!(split("localhost:5000/a:0.4@sha256:00"), Some(("localhost:5000/a", vec![0, 4])));
        for image in ["a:latest", "a", "localhost:5000/a", "a:1", "a@sha256:00", "a:", "", "a:v", "a:99999999999.1"] {
            assert_eq!(version(image), None, "{image}");
        }
    }

    #[test]
    fn versions_are_compared_by_the_numbers_that_both_have() {
        let contain = |versions, version| Versions::of(versions).unwrap().contain(&numbers(version));
        for (versions, version, is_in) in [
            ("0.4", "0.3.9", false),
            ("0.4", "0.4.0-dev", true),
            ("0.4", "0.10", true),
            ("0.4", "1.0", true),
            ("0.4.2", "0.4", true),
            ("0.4.2", "0.4.1", false),
            ("<0.3", "0.1.4", true),
            ("<0.3", "0.3.0", false),
            ("never", "0.1", false),
        ] {
            assert_eq!(contain(versions, version), is_in, "{versions} {version}");
        }
        assert!(Versions::of("soon").is_none());
    }
}
