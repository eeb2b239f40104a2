//! Runs an Agent in a coding harness instead of the default runtime. The harness works on a clone of a Git repository.
//!
//! The clone script contains no text from the user: variables contain the URL, the branch and the token. A credential
//! helper passes the token only to `git clone`, so Git never writes the token to disk.

use alloc::{borrow::ToOwned, string::String};
use kaos_crds::agent::{Harness, Workspace};
use kaos_policy_sdk::env::{Env, secret_key, with_optional};
use kaos_policy_sdk::need::{key, named, reference_in};
use kaos_policy_sdk::quote::shown;
use kaos_policy_sdk::types::{Need, Reference, Refusal, Subject};
use kaos_policy_sdk::{Decode, NeedExt as _, SubjectExt, Violations, blocker, object, refusal};
use kaos_workload::{PodParts, Registry};

use crate::settings::HarnessSettings;

/// The id of the need for the ConfigMap with the registry of harnesses.
const REGISTRY: &str = "harness-registry";
/// The key of the registry's ConfigMap that lists the harnesses.
const KEY: &str = "runtimes.yaml";
/// The init container that clones the repository.
const CLONE: &str = "workspace-clone";
/// The script of the init container.
const SCRIPT: &str = r#"set -eu
helper='!f() { test "$1" = get || exit 0; echo username=x-access-token; printf "password=%s\n" "$GIT_TOKEN"; }; f'
if [ -z "${GIT_TOKEN:-}" ]; then helper=; fi
exec git -c credential.helper= -c "credential.helper=$helper" clone --depth 1 --single-branch --branch "$REPO_BRANCH" -- "$REPO_URL" "$WORKSPACE"
"#;

/// The entry of a harness in the registry's ConfigMap.
#[derive(Debug, Default, PartialEq, Decode)]
#[serde(default)]
pub(crate) struct Entry {
    pub(crate) image: String,
    driver: String,
}

/// Returns the need for the registry's ConfigMap.
pub(crate) fn need(settings: &HarnessSettings, operator_namespace: &str) -> Need {
    named(REGISTRY, reference(settings, operator_namespace)).fields([key("data", KEY)])
}

fn reference(settings: &HarnessSettings, operator_namespace: &str) -> Reference {
    reference_in(operator_namespace, "v1", "ConfigMap", &settings.registry)
}

/// Checks the fields of the workspace.
pub(crate) fn check(harness: &Harness, wrong: &mut Violations) {
    let Some(workspace) = &harness.workspace else { return };
    let host = workspace.repo_url.strip_prefix("https://").unwrap_or_default();
    let end = host.bytes().position(|byte| b"/?#".contains(&byte)).unwrap_or(host.len());
    let authority = host.get(..end).unwrap_or_default();
    let path = "spec.harness.workspace.repoURL";
    if authority.is_empty() || has_gap(&workspace.repo_url) {
        wrong.add(path, "must be an https URL of a Git repository");
    } else if authority.contains('@') {
        wrong.add(
            path,
            "must not contain a user or a token: put the token into a Secret, named in credentialsSecretRef",
        );
    }
    if branch(workspace).is_some_and(has_gap) {
        wrong.add("spec.harness.workspace.branch", "must be the name of a branch, without spaces");
    }
    if workspace.credentials_secret_ref.as_ref().is_some_and(|secret| secret.name.is_empty() || secret.key.is_empty()) {
        wrong.add("spec.harness.workspace.credentialsSecretRef", "needs the name of a Secret and a key in it");
    }
}

/// Returns whether `text` contains whitespace or a control character.
fn has_gap(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control())
}

fn branch(workspace: &Workspace) -> Option<&str> {
    workspace.branch.as_deref().filter(|branch| !branch.is_empty())
}

impl Entry {
    /// Returns the registry's entry for `harness`. If `own_image` is true, the user's image wins over the image in this
    /// entry.
    pub(crate) fn of(
        subject: &Subject,
        harness: &Harness,
        settings: &HarnessSettings,
        own_image: bool,
    ) -> Result<Self, Refusal> {
        let on = reference(settings, &subject.cluster.operator_namespace);
        let found = subject.one(REGISTRY).or_wait(on.clone())?;
        let unusable = |why: String| {
            let message = format!("{KEY} of ConfigMap {name} cannot be read as a registry: {why}", name = on.name);
            refusal::waiting(vec![blocker::new(on.clone(), "Unusable", message)])
        };
        let Some(text) = found.str_at(&["data", KEY]) else { return Err(unusable("there is no such key".to_owned())) };
        let registry = Registry::parse(text).map_err(unusable)?;
        let Some(runtime) = registry.entry::<Self>(&harness.runtime).transpose().map_err(unusable)? else {
            let message = format!(
                "unknown harness runtime: {runtime} (not found in registry)",
                runtime = shown(&harness.runtime, 63)
            );
            return Err(refusal::invalid("spec.harness.runtime", message));
        };
        if runtime.image.is_empty() && !own_image {
            let message = format!(
                "harness runtime {runtime} requires a user-supplied spec.container.image",
                runtime = harness.runtime
            );
            return Err(refusal::invalid("spec.container.image", message));
        }
        Ok(runtime)
    }

    /// Sets the variables of the harness and of the init container.
    pub(crate) fn set_env(&self, env: &mut Env, own: &str, harness: &Harness, settings: &HarnessSettings) {
        env.container(own)
            .set("HARNESS_DRIVER", &self.driver, &format!("{REGISTRY} data[\"{KEY}\"]"))
            .set("HARNESS_WORKSPACE", &settings.workspace, "settings.harness.workspace")
            .set("HARNESS_STATE_DIR", &settings.state, "settings.harness.state");
        let Some(workspace) = &harness.workspace else { return };
        let path = |field: &str| format!("spec.harness.workspace.{field}");
        let (name, origin) = match branch(workspace) {
            Some(branch) => (branch, path("branch")),
            None => (settings.branch.as_str(), "settings.harness.branch".to_owned()),
        };
        let mut clone = env.container(CLONE);
        clone
            .set("REPO_URL", &workspace.repo_url, &path("repoURL"))
            .set("REPO_BRANCH", name, &origin)
            .set("WORKSPACE", &settings.workspace, "settings.harness.workspace")
            .set("GIT_TERMINAL_PROMPT", "0", "spec.harness.workspace");
        if let Some(secret) = &workspace.credentials_secret_ref {
            let token = with_optional(secret_key(&secret.name, &secret.key), secret.optional);
            clone.bind("GIT_TOKEN", token, &path("credentialsSecretRef"));
        }
    }
}

/// Adds the volumes and the init container of a workspace.
pub(crate) fn add_workspace(parts: &mut PodParts<'_>, settings: &HarnessSettings) {
    let mount = |name: &str, path: &str| object! { "name": name, "mountPath": path };
    for (name, path) in [("workspace", &settings.workspace), ("state", &settings.state)] {
        parts.volumes.push(object! { "name": name, "emptyDir": object! {} });
        parts.volume_mounts.push(mount(name, path));
    }
    parts.init_containers.push(object! {
        "name": CLONE,
        "image": settings.git_image.as_str(),
        "command": vec!["sh", "-c", SCRIPT],
        "volumeMounts": vec![mount("workspace", &settings.workspace)],
    });
}
