//! `policy new`: writes a project for a new policy. It builds and passes its tests without changes.

mod files;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use kaos_policy::{describe::is_policy_name, names::is_label};

use super::output::complain;
use files::{Names, Sdk};

/// Arguments of `policy new`.
#[derive(Debug, Args)]
pub(super) struct New {
    /// Name of the policy: lower-case letters, digits and inner hyphens
    #[arg(value_parser = name)]
    name: String,
    /// The kind that it answers for
    #[arg(long, value_parser = kind)]
    kind: String,
    /// API version of that kind
    #[arg(long, value_name = "GROUP/VERSION", value_parser = api_version)]
    api_version: String,
    /// Where the project goes; otherwise a directory with the policy's name
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Where kaos-policy-sdk is: a directory, the URL of a git repository, or a published version
    #[arg(long, value_name = "PATH|URL|VERSION")]
    sdk: String,
}

impl New {
    /// Writes the project and prints the next step.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self { name, kind, api_version, dir, sdk } = self;
        let place = dir.unwrap_or_else(|| PathBuf::from(&name));
        if fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("{}: is there already and not empty: name another directory with --dir", place.display());
        }
        let names = Names { name: &name, kind: &kind, api_version: &api_version };
        for (path, content) in files::project(&names, &located(&sdk)?) {
            let path = place.join(path);
            write(&path, &content).with_context(|| path.display().to_string())?;
        }
        complain("made", format_args!("{}: type `cargo test` there, README.md says how to go on", place.display()));
        Ok(ExitCode::SUCCESS)
    }
}

fn write(path: &Path, content: &str) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, content)
}

/// Finds the SDK. A directory may be the SDK itself, or the repository that contains it.
fn located(sdk: &str) -> anyhow::Result<Sdk> {
    if sdk.contains("://") || sdk.starts_with("git@") {
        return Ok(Sdk::Git(sdk.to_owned()));
    }
    let path = Path::new(sdk);
    if path.is_dir() {
        let found = [path.to_owned(), path.join("guest-policies/sdk")].into_iter().find(|path| is_sdk(path));
        let Some(found) = found else {
            bail!("{sdk}: has no kaos-policy-sdk: name the directory guest-policies/sdk of its repository");
        };
        return Ok(Sdk::Path(found.canonicalize().with_context(|| sdk.to_owned())?));
    }
    if sdk.starts_with(|c: char| c.is_ascii_digit())
        && sdk.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
    {
        return Ok(Sdk::Version(sdk.to_owned()));
    }
    bail!("{sdk}: is no directory, no URL of a repository and no version: name where kaos-policy-sdk is")
}

fn is_sdk(path: &Path) -> bool {
    fs::read_to_string(path.join("Cargo.toml")).is_ok_and(|text| text.contains("name = \"kaos-policy-sdk\""))
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
