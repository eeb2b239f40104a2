//! `policy new`: writes a project for a new policy or overlay. The project builds and passes its tests without changes.

/// Embeds a file of the templates in `guest-policies/template`. This repository also builds and tests these templates.
macro_rules! template {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template/", $path))
    };
}

/// Embeds a file of the template for overlays. This repository also builds and tests this template.
macro_rules! overlay_template {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/overlay-template/", $path))
    };
}

mod ci;
mod files;
mod go;
mod python;
mod script;
mod sdk;
mod shipped;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use kaos_policy::{describe::is_policy_name, names::is_label};

use super::output::complain;
use ci::OperatorSource;
use files::Names;
pub(super) use sdk::Sdk;
use shipped::ShippedSources;

/// Arguments of `policy new`.
#[derive(Debug, Args)]
pub(super) struct New {
    /// Name of the policy: lower-case letters, digits and inner hyphens. With --from, leave out the name to keep that
    /// of the default policy, so that presets and the owner's settings apply to the new policy too
    #[arg(value_parser = name, required_unless_present = "from")]
    name: Option<String>,
    /// Start from the default policy of this name; for an unknown name, the error lists all default policies
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["kind", "api_version"])]
    from: Option<String>,
    /// Create an overlay, which changes the plans of the policies below it; the new overlay changes the registry of
    /// every image
    #[arg(long, conflicts_with = "from")]
    overlay: bool,
    /// Default policy whose kind the overlay changes; default: all default policies
    #[arg(long = "for", value_name = "POLICY", requires = "overlay", conflicts_with_all = ["kind", "api_version"])]
    below: Option<String>,
    /// Kind that the policy answers for; for an overlay, by default the kinds of the default policies
    #[arg(long, value_parser = kind, required_unless_present_any = ["from", "overlay"], requires = "api_version")]
    kind: Option<String>,
    /// API version of that kind
    #[arg(
        long,
        value_name = "GROUP/VERSION",
        value_parser = api_version,
        required_unless_present_any = ["from", "overlay"],
        requires = "kind"
    )]
    api_version: Option<String>,
    /// Directory for the project; default: the policy's name
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Language of the policy. A policy in JavaScript is a script, and needs no compiler. A policy in Go needs only Go
    #[arg(long, value_enum, default_value_t)]
    language: Language,
    /// Source of kaos-policy-sdk for a policy in Rust: a directory, the URL of a git repository, or a published
    /// version. A URL can end with # and a tag of the repository
    #[arg(long, value_name = "PATH|URL|VERSION", required_unless_present = "language")]
    sdk: Option<String>,
    /// Source from which the CI file of the project installs kaos-operator: the URL of a git repository, or a path in
    /// the project, such as a submodule. A URL can end with # and a tag or a commit. Default: the repository of --sdk,
    /// or the release with the version of this program
    #[arg(long, value_name = "URL|PATH")]
    operator: Option<String>,
}

/// The language of a new policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Language {
    /// A component, built with cargo
    #[default]
    Rust,
    /// A script, which the operator runs as it is
    Javascript,
    /// A component, built with the compiler of Go
    Go,
    /// A component that contains Python, built with componentize-py; the operator needs --large-policies
    Python,
}

impl Language {
    /// The command that runs the tests of a new project.
    fn tests(self) -> &'static str {
        match self {
            Self::Rust => "cargo test",
            Self::Javascript | Self::Python => "sh test.sh",
            Self::Go => "go test ./...",
        }
    }
}

/// Returns the files of a project that starts from a default policy.
pub(super) fn shipped_files(name: &str, from: &str, sdk: &Sdk) -> anyhow::Result<files::Files> {
    files::from_shipped(&ShippedSources::named(from)?, name, sdk)
}

impl New {
    /// Writes the project and prints the next step.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self { name, from, overlay, below, kind, api_version, dir, language, sdk, operator } = self;
        let below = below.map(|policy| files::kind_of(&policy)).transpose()?;
        let (kind, api_version) = match below {
            Some((api_version, kind)) => (Some(kind.to_owned()), Some(api_version.to_owned())),
            None => (kind, api_version),
        };
        let name = name.or_else(|| from.clone()).unwrap_or_default();
        let place = dir.unwrap_or_else(|| PathBuf::from(&name));
        if fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("{}: exists and is not empty: name another directory with --dir", place.display());
        }
        let original_sdk = sdk.clone();
        let sdk = match (language, sdk) {
            (Language::Rust, Some(sdk)) => Some(Sdk::located(&sdk)?),
            (Language::Rust, None) => bail!("--sdk is missing: name the source of kaos-policy-sdk"),
            (_, None) => None,
            (_, Some(_)) => bail!("--sdk is only for a policy in Rust: leave out --sdk"),
        };
        let operator = OperatorSource::of(operator.as_deref(), sdk.as_ref())?;
        let mut files = match (from, kind.as_deref(), api_version.as_deref(), &sdk) {
            (Some(from), _, _, Some(sdk)) => {
                let files = shipped_files(&name, &from, sdk)?;
                if name != from {
                    complain(
                        "note",
                        format_args!(
                            "presets and settings for {from} do not apply to {name}: to keep them, leave out the name \
                             {name}"
                        ),
                    );
                }
                files
            }
            (Some(_), _, _, None) => {
                bail!(
                    "the default policies are written in Rust: leave out --language, or name a --kind instead of --from"
                )
            }
            (None, kind, api_version, Some(sdk)) if overlay => files::overlay(&name, api_version.zip(kind), sdk)?,
            (None, kind, api_version, None) if overlay => match language {
                Language::Go => go::overlay(&name, api_version.zip(kind)),
                Language::Python => python::overlay(&name, api_version.zip(kind)),
                Language::Javascript | Language::Rust => script::overlay(&name, api_version.zip(kind)),
            },
            (None, kind, api_version, sdk) => {
                let (kind, api_version) = (kind.unwrap_or_default(), api_version.unwrap_or_default());
                if let Some(shipped) = ShippedSources::of_kind(api_version, kind) {
                    let sdk = original_sdk.as_deref().unwrap_or("PATH");
                    let start = format!("policy new --from {shipped} --sdk {sdk}");
                    complain(
                        "note",
                        format_args!(
                            "the operator ships the policy {shipped} for {kind}, and this project would replace that \
                             policy with all its children: to start from the shipped policy, run `{start}`"
                        ),
                    );
                }
                let names = Names { name: &name, kind, api_version };
                match (language, sdk) {
                    (_, Some(sdk)) => files::from_template(&names, sdk)?,
                    (Language::Go, None) => go::from_template(&names),
                    (Language::Python, None) => python::from_template(&names),
                    (_, None) => script::from_template(&names),
                }
            }
        };
        operator.set(&mut files);
        for (path, content) in files {
            let path = place.join(path);
            write(&path, &content).with_context(|| path.display().to_string())?;
        }
        let tests = language.tests();
        if let Some(note) = operator.note() {
            complain("note", note);
        }
        complain("made", format_args!("{}: run `{tests}` there; README.md describes the next steps", place.display()));
        Ok(ExitCode::SUCCESS)
    }
}

fn write(path: &Path, content: &str) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, content)
}

fn name(text: &str) -> Result<String, String> {
    let usable = is_policy_name(text);
    let remedy = "use at most 40 lower-case letters, digits and inner hyphens, and begin with a letter";
    if usable { Ok(text.to_owned()) } else { Err(remedy.to_owned()) }
}

fn kind(text: &str) -> Result<String, String> {
    let usable = text.len() <= 63 && kaos_policy::names::is_kind(text);
    if usable { Ok(text.to_owned()) } else { Err("write the kind as in a manifest, like Website".to_owned()) }
}

fn api_version(text: &str) -> Result<String, String> {
    let usable = text.split_once('/').is_some_and(|(group, version)| {
        kaos_policy::names::is_subdomain(group) && group.contains('.') && is_label(version) && version.starts_with('v')
    });
    let remedy = "write the API version as in a manifest, like example.com/v1";
    if usable { Ok(text.to_owned()) } else { Err(remedy.to_owned()) }
}
