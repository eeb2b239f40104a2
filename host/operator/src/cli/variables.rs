//! The table of `render --env` with the value of each environment variable and the origin of this value.

use std::io;

use kaos_policy::{
    contract::{EnvSource, EnvVar, KeySelector},
    printable::printable,
    settings::Path,
};

use super::{output::Output, table::Table};
use crate::{
    input::Document,
    masking::{MASK, Masks, is_secret},
    offline::Entry,
};

/// Prints the name of one object, and below the name the object's variables. With `with_status`, adds the phase and the
/// message that the object would get.
pub(super) fn write(out: &mut Output, document: &Document, entry: &Entry, with_status: bool) -> io::Result<()> {
    let mut table = Table::new(&["CONTAINER", "VARIABLE", "VALUE", "FROM"]);
    for variable in variables(entry) {
        table.row(variable);
    }
    heading(out, document, entry, with_status)?;
    if table.is_empty() { out.text("no environment variables\n\n") } else { out.text(&format!("{table}\n")) }
}

/// Prints the name of an object. With `with_status`, adds the phase and the message that the object would get.
pub(super) fn heading(out: &mut Output, document: &Document, entry: &Entry, with_status: bool) -> io::Result<()> {
    let text = |field: &str| entry.status[field].as_str().unwrap_or_default();
    let status = if with_status { format!(": {}: {}", text("phase"), text("message")) } else { String::new() };
    out.text(&format!("{}{}\n", document.identity, printable(&status)))
}

/// Returns the container, name, value and origin of each variable. Masks secret values.
pub(in crate::cli) fn variables(entry: &Entry) -> Vec<[String; 4]> {
    let masks = Masks::of_pass(&entry.rendered);
    let row = |variable: &EnvVar| {
        let EnvVar { container, name, source, .. } = variable;
        [container.clone(), name.clone(), value(name, source, &masks), masks.text(&explained(variable, entry))]
    };
    entry.rendered.env().iter().map(row).collect()
}

fn value(name: &str, source: &EnvSource, masks: &Masks) -> String {
    let selected = |of: &str, KeySelector { name, key, optional }: &KeySelector| {
        format!("{of} {name}, key {key}{}", if *optional { " (optional)" } else { "" })
    };
    match source {
        EnvSource::Literal(value) if value.is_empty() => "\"\"".to_owned(),
        EnvSource::Literal(_) if is_secret(name) => MASK.to_owned(),
        EnvSource::Literal(value) => masks.text(value),
        EnvSource::SecretKey(from) => selected("Secret", from),
        EnvSource::ConfigMapKey(from) => selected("ConfigMap", from),
        EnvSource::FieldPath(path) => format!("field {path}"),
        EnvSource::Other(text) => masks.text(text),
    }
}

/// Formats the origin of a variable. For a setting, adds the source of its value: a variable, a file or the default. If
/// an overlay also answers, adds the name of the policy to which the setting belongs.
fn explained(variable: &EnvVar, entry: &Entry) -> String {
    let origin = &variable.origin;
    let Some((policy, settings)) = entry.rendered.giver(variable) else { return origin.clone() };
    let source = origin.strip_prefix("settings.").and_then(|setting| settings.source(&Path::parse(setting)));
    let of = if entry.rendered.overlays.is_empty() { String::new() } else { format!(" (policy {})", policy.name) };
    source.map_or_else(|| format!("{origin}{of}"), |source| format!("{origin}{of}, {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_within_the_value_of_a_variable_with_another_name_is_masked() {
        let shown = |name: &str, text: &str| value(name, &EnvSource::Literal(text.to_owned()), &Masks::default());
        assert_eq!(shown("X_URL", "postgres://user:s3cret@db/x"), format!("postgres://{MASK}@db/x"));
        assert_eq!(shown("ARGS", "--api-key s3cret --quiet"), format!("--api-key {MASK} --quiet"));
        assert_eq!(shown("API_TOKEN", "s3cret"), MASK);
        assert_eq!(shown("URL", "https://host/path"), "https://host/path");
    }
}
