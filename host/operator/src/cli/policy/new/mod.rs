//! `policy new`: writes a project for a new policy or overlay. The project builds and passes its tests without changes.

mod files;
mod sdk;
mod shipped;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::Args;
use kaos_policy::{describe::is_policy_name, names::is_label};

use super::output::complain;
use files::Names;
use sdk::Sdk;
use shipped::ShippedSources;

/// Arguments of `policy new`.
#[derive(Debug, Args)]
pub(super) struct New {
    /// Name of the policy: lower-case letters, digits and inner hyphens
    #[arg(value_parser = name)]
    name: String,
    /// Start from the default policy of this name; for an unknown name, the error lists all default policies
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["kind", "api_version"])]
    from: Option<String>,
    /// Create an overlay, which changes the plans of the policies below it; it starts with a change of every image's
    /// registry
    #[arg(long, conflicts_with = "from")]
    overlay: bool,
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
    /// Source of kaos-policy-sdk: a directory, the URL of a git repository, or a published version
    #[arg(long, value_name = "PATH|URL|VERSION")]
    sdk: String,
}

impl New {
    /// Writes the project and prints the next step.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self { name, from, overlay, kind, api_version, dir, sdk } = self;
        let place = dir.unwrap_or_else(|| PathBuf::from(&name));
        if fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("{}: exists and is not empty: name another directory with --dir", place.display());
        }
        let sdk = Sdk::located(&sdk)?;
        let files = match (from, kind.as_deref(), api_version.as_deref()) {
            (Some(from), ..) => files::from_shipped(&ShippedSources::named(&from)?, &name, &sdk)?,
            (None, kind, api_version) if overlay => files::overlay(&name, api_version.zip(kind), &sdk)?,
            (None, kind, api_version) => {
                let (kind, api_version) = (kind.unwrap_or_default(), api_version.unwrap_or_default());
                if let Some(shipped) = ShippedSources::of_kind(api_version, kind) {
                    let start = format!("policy new {name} --from {shipped}");
                    complain(
                        "note",
                        format_args!(
                            "the operator ships the policy {shipped} for {kind}, and this project would replace it and \
                             its children: to start from the shipped policy, run `{start}`"
                        ),
                    );
                }
                files::from_template(&Names { name: &name, kind, api_version }, &sdk)?
            }
        };
        for (path, content) in files {
            let path = place.join(path);
            write(&path, &content).with_context(|| path.display().to_string())?;
        }
        complain(
            "made",
            format_args!("{}: run `cargo test` there; README.md describes the next steps", place.display()),
        );
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
    if usable { Ok(text.to_owned()) } else { Err("write it as in a manifest, like Website".to_owned()) }
}

fn api_version(text: &str) -> Result<String, String> {
    let usable = text.split_once('/').is_some_and(|(group, version)| {
        kaos_policy::names::is_subdomain(group) && group.contains('.') && is_label(version) && version.starts_with('v')
    });
    if usable { Ok(text.to_owned()) } else { Err("write it as in a manifest, like example.com/v1".to_owned()) }
}
