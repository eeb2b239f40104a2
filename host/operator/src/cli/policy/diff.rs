//! `policy diff`: prints how a project of `policy new --from` differs from the default policy of this operator.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use similar::TextDiff;

use super::{HELD_BACK, new, output::Output};

/// The text before the name of the default policy, in the `description` of a project's Cargo.toml.
const ORIGIN: &str = "started from the operator's policy ";

/// The names that the diff leaves out: the git repository, and the files that a build writes.
const LEFT_OUT: [&str; 3] = [".git", "target", "Cargo.lock"];

/// Arguments of `policy diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 = the project equals a new project; 1 = the project differs; 2 = the project cannot be \
                  read, or did not start from a default policy."
)]
pub(super) struct Diff {
    /// Directory of the project
    #[arg(default_value = ".")]
    project: PathBuf,
    /// The default policy that the project started from; default: the policy that the description in Cargo.toml names
    #[arg(long, value_name = "POLICY")]
    from: Option<String>,
}

impl Diff {
    /// Prints a unified diff from the files that `policy new --from` would write to the files of the project.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { project, from } = self;
        let manifest = project.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
        let start = Start::of(&text, from).with_context(|| manifest.display().to_string())?;
        let shipped = new::shipped_files(&start.name, &start.from, &start.sdk)?;
        let own = files(&project)?;
        let diff = unified(&shipped, &own);
        out.text(&diff)?;
        Ok(if diff.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(HELD_BACK) })
    }
}

/// The arguments of the command `policy new` that created the project.
#[derive(Debug, PartialEq)]
struct Start {
    name: String,
    from: String,
    sdk: new::Sdk,
}

impl Start {
    fn of(manifest: &str, from: Option<String>) -> anyhow::Result<Self> {
        let Some(package) = value(manifest, "name") else { bail!("has no package with a name") };
        let name = package.strip_suffix("-policy").unwrap_or(package).to_owned();
        let described = value(manifest, "description").and_then(|text| text.split_once(ORIGIN)).map(|(_, from)| from);
        let Some(from) = from.or_else(|| described.map(str::to_owned)) else {
            bail!("the description names no default policy that the project started from: name the policy with --from");
        };
        let line = manifest.lines().find(|line| line.starts_with("kaos-policy-sdk = ")).unwrap_or_default();
        let sdk = match ["path", "git", "version"].map(|field| value_in(line, field)) {
            [Some(path), ..] => new::Sdk::located(path)?,
            [_, Some(url), _] => new::Sdk::Git(url.to_owned(), value_in(line, "tag").map(str::to_owned)),
            [.., Some(version)] => new::Sdk::Version(version.to_owned()),
            _ => bail!("has no dependency kaos-policy-sdk with a path, a git URL or a version"),
        };
        Ok(Self { name, from, sdk })
    }
}

/// Returns the text of a field that has its own line in Cargo.toml.
fn value<'a>(manifest: &'a str, field: &str) -> Option<&'a str> {
    let text = manifest.lines().find_map(|line| line.strip_prefix(field)?.trim_start().strip_prefix('='))?;
    text.trim().strip_prefix('"')?.strip_suffix('"')
}

/// Returns the text of a field in an inline table of Cargo.toml.
fn value_in<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let (_, text) = line.split_once(&format!("{field} = \""))?;
    text.split_once('"').map(|(text, _)| text)
}

/// Returns the texts of all files of the project, by path. Leaves out the git repository, files that a build writes,
/// and binary files.
fn files(project: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![project.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let within = path.strip_prefix(project).unwrap_or(&path).display().to_string();
            if LEFT_OUT.contains(&within.as_str()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                found.insert(within, text);
            }
        }
    }
    Ok(found)
}

/// Compares files by path.
fn unified(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> String {
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut text = String::new();
    for path in paths {
        let [before, after] = [old, new].map(|files| files.get(path));
        if before == after {
            continue;
        }
        let header =
            |side: &str, file: Option<&String>| file.map_or("/dev/null".to_owned(), |_| format!("{side}/{path}"));
        let [one, other] = [before, after].map(|file| file.map_or("", String::as_str));
        text += &TextDiff::from_lines(one, other)
            .unified_diff()
            .header(&header("a", before), &header("b", after))
            .to_string();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_the_policy_the_name_and_the_sdk() {
        let files = new::shipped_files("red-kite", "agent", &new::Sdk::Version("0.1.0".to_owned())).unwrap();
        let start = Start::of(&files["Cargo.toml"], None).unwrap();
        let sdk = new::Sdk::Version("0.1.0".to_owned());
        assert_eq!(start, Start { name: "red-kite".to_owned(), from: "agent".to_owned(), sdk });
        let git = "name = \"a-policy\"\nkaos-policy-sdk = { git = \"https://x.io/y\" }\n";
        let told = Start::of(git, None).unwrap_err().to_string();
        assert!(told.contains("--from"), "{told}");
        assert_eq!(
            Start::of(git, Some("agent".to_owned())).unwrap().sdk,
            new::Sdk::Git("https://x.io/y".to_owned(), None)
        );
    }

    #[test]
    fn changed_added_and_removed_files_are_shown() {
        let of = |files: &[(&str, &str)]| -> BTreeMap<String, String> {
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
        };
        let old = of(&[("same", "x\n"), ("changed", "1\n2\n"), ("removed", "r\n")]);
        let new = of(&[("same", "x\n"), ("changed", "1\n3\n"), ("added", "a\n")]);
        assert_eq!(
            unified(&old, &new),
            "--- /dev/null\n+++ b/added\n@@ -0,0 +1 @@\n+a\n--- a/changed\n+++ b/changed\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n\
             --- a/removed\n+++ /dev/null\n@@ -1 +0,0 @@\n-r\n"
        );
        assert_eq!(unified(&old, &old), "");
    }
}
