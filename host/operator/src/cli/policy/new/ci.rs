//! Sets the source from which the CI file of a new project installs `kaos-operator`.

use anyhow::{Context as _, bail};

use super::{files::Files, sdk::Sdk};

/// The path of the CI file.
const FILE: &str = ".github/workflows/policy.yml";
/// The arguments of `cargo install` in the generated CI files.
const RELEASE: &str =
    concat!("--git https://github.com/kaos-tools/policy-operator --tag v", env!("CARGO_PKG_VERSION"), " kaos-operator");

/// The source of `kaos-operator`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OperatorSource {
    /// The release with the version of this program.
    Release,
    /// The URL of a git repository, and a tag or a commit.
    Git(String, Option<String>),
    /// A checkout of the operator's repository in the project, such as a submodule.
    Path(String),
}

impl OperatorSource {
    /// Reads the flag `--operator`. Without this flag, a git repository with the SDK is also the source of the
    /// operator.
    pub(super) fn of(flag: Option<&str>, sdk: Option<&Sdk>) -> anyhow::Result<Self> {
        match (flag, sdk) {
            (Some(flag), _) => Self::read(flag).with_context(|| format!("--operator {flag}")),
            (None, Some(Sdk::Git(url, tag))) => Ok(Self::Git(url.clone(), tag.clone())),
            (None, _) => Ok(Self::Release),
        }
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        if !text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/@%+#".contains(c)) {
            bail!("contains a character that a shell may change: write a plain URL or path");
        }
        if text.contains("://") || text.starts_with("git@") {
            let (url, at) = text.split_once('#').map_or((text, None), |(url, at)| (url, Some(at.to_owned())));
            return Ok(Self::Git(url.to_owned(), at));
        }
        if text.starts_with(['/', '~']) {
            bail!("is a directory of this machine, which CI does not have: write the path in the project, or a URL");
        }
        Ok(Self::Path(text.trim_end_matches('/').to_owned()))
    }

    fn arguments(&self) -> String {
        match self {
            Self::Release => RELEASE.to_owned(),
            Self::Git(url, None) => format!("--git {url} kaos-operator"),
            Self::Git(url, Some(at)) => {
                let is_commit = at.len() == 40 && at.bytes().all(|byte| byte.is_ascii_hexdigit());
                format!("--git {url} --{} {at} kaos-operator", if is_commit { "rev" } else { "tag" })
            }
            Self::Path(path) => format!("--path {path}/host/operator"),
        }
    }

    /// Writes the source into the CI file.
    pub(super) fn set(&self, files: &mut Files) {
        if let Some(text) = files.get_mut(FILE) {
            *text = text.replace(RELEASE, &self.arguments());
        }
    }

    /// Returns a note if the source is the release of this program's version, because this release may not exist yet.
    pub(super) fn note(&self) -> Option<&'static str> {
        (*self == Self::Release).then_some(concat!(
            "the CI file needs the release v",
            env!("CARGO_PKG_VERSION"),
            " of kaos-operator: name another source with --operator, if this release does not exist yet"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(flag: Option<&str>, sdk: Option<&str>) -> String {
        let sdk = sdk.map(|sdk| Sdk::located(sdk).unwrap());
        OperatorSource::of(flag, sdk.as_ref()).unwrap().arguments()
    }

    #[test]
    fn the_source_is_the_flag_or_the_repository_of_the_sdk_or_the_release() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for (flag, sdk, expected) in [
            (None, None, RELEASE.to_owned()),
            (None, Some("0.1.0"), RELEASE.to_owned()),
            (None, Some("https://x.io/y#v0.2.0"), "--git https://x.io/y --tag v0.2.0 kaos-operator".to_owned()),
            (Some("https://x.io/y"), Some("0.1.0"), "--git https://x.io/y kaos-operator".to_owned()),
            (
                Some(&*format!("https://x.io/y#{commit}")),
                None,
                format!("--git https://x.io/y --rev {commit} kaos-operator"),
            ),
            (Some("vendor/operator/"), None, "--path vendor/operator/host/operator".to_owned()),
        ] {
            assert_eq!(arguments(flag, sdk), expected, "{flag:?} {sdk:?}");
        }
        for (flag, told) in [("/home/me/operator", "directory of this machine"), ("x; rm", "a shell may change")] {
            let error = format!("{:#}", OperatorSource::of(Some(flag), None).unwrap_err());
            assert!(error.contains(told) && error.contains("--operator"), "{error}");
        }
    }

    #[test]
    fn only_the_release_may_be_missing() {
        assert!(OperatorSource::Release.note().is_some_and(|note| note.contains("--operator")));
        assert_eq!(OperatorSource::Path("a".to_owned()).note(), None);
    }

    #[test]
    fn the_ci_files_of_all_languages_contain_the_arguments() {
        for text in [
            include_str!("project/ci.yml"),
            include_str!("project/ci-go.yml"),
            include_str!("project/ci-javascript.yml"),
            include_str!("project/ci-python.yml"),
        ] {
            let release = RELEASE.replace(concat!("v", env!("CARGO_PKG_VERSION")), "VERSION");
            assert_eq!(text.matches(&release).count(), 1, "{text}");
        }
    }
}
