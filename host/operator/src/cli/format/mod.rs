//! The output formats of commands that print objects, as `kubectl -o` names them.

mod jsonpath;

use std::{ffi::OsStr, fmt};

use anyhow::bail;
use clap::{
    Arg, Command,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
    error::ErrorKind,
};
use serde::Serialize;

use super::output::Output;
use crate::yaml;
use jsonpath::Template;

/// The prefix of a template in the value of `-o`.
const JSONPATH: &str = "jsonpath=";

/// An output format.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Format {
    /// For people.
    #[default]
    Text,
    /// For people, with more columns.
    Wide,
    /// One JSON value.
    Json,
    /// One YAML document.
    Yaml,
    /// The names of the objects, one for each line.
    Name,
    /// The parts of the JSON value that a template selects.
    JsonPath(Template),
}

impl Format {
    /// Returns whether the format is a table.
    pub(super) fn is_table(&self) -> bool {
        matches!(self, Self::Text | Self::Wide)
    }

    /// Writes an answer in a format for programs. `names` are the names of the objects in the answer.
    pub(super) fn write(
        &self,
        out: &mut Output,
        answer: &impl Serialize,
        names: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Text | Self::Wide => bail!("the format {self} has no form for programs"),
            Self::Json => out.json(answer)?,
            Self::Yaml => out.verbatim(&yaml::text(answer)?)?,
            Self::Name => names.into_iter().try_for_each(|name| out.text(&format!("{name}\n")))?,
            Self::JsonPath(template) => out.text(&template.fill(&serde_json::to_value(answer)?))?,
        }
        Ok(())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Wide => "wide",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Name => "name",
            Self::JsonPath(_) => "jsonpath",
        })
    }
}

/// Parses the flag `-o`. `without` lists the formats that a command does not have.
#[derive(Debug, Clone)]
pub(super) struct FormatParser {
    without: &'static [&'static str],
}

/// The formats with a fixed name, each with its help.
const NAMED: [(&str, &str); 5] = [
    ("text", "For people"),
    ("wide", "For people, with more columns"),
    ("json", "For programs"),
    ("yaml", "For programs, as YAML"),
    ("name", "Only the names of the objects"),
];

impl FormatParser {
    /// Creates a parser of all formats.
    pub(super) const fn all() -> Self {
        Self { without: &[] }
    }

    /// Creates a parser of all formats except the formats in `without`.
    pub(super) const fn without(without: &'static [&'static str]) -> Self {
        Self { without }
    }

    fn named(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        NAMED.into_iter().filter(|(name, _)| !self.without.contains(name))
    }
}

impl TypedValueParser for FormatParser {
    type Value = Format;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Format, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, arg, value)?;
        let wrong = |why: String| {
            let names: Vec<&str> = self.named().map(|(name, _)| name).collect();
            let message = format!("-o {text}: {why}: write one of {} or jsonpath=TEMPLATE\n", names.join(", "));
            clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(command)
        };
        if let Some(template) = text.strip_prefix(JSONPATH) {
            return Template::parse(template).map(Format::JsonPath).map_err(|error| wrong(error.to_string()));
        }
        if self.named().all(|(name, _)| name != text) {
            return Err(wrong("no such format".to_owned()));
        }
        Ok(match text.as_str() {
            "wide" => Format::Wide,
            "json" => Format::Json,
            "yaml" => Format::Yaml,
            "name" => Format::Name,
            _ => Format::Text,
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let named = self.named().map(|(name, help)| PossibleValue::new(name).help(help));
        let template = PossibleValue::new(JSONPATH).help("The parts that a template selects, as in kubectl");
        Some(Box::new(named.chain([template])))
    }
}
