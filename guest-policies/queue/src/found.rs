//! The needs of a Queue: the Secret with its password, and the ConfigMap with more configuration.

use kaos_policy_sdk::types::{Blocker, Need, Note, Reference, Subject};
use kaos_policy_sdk::{Lookup, NeedExt as _, SubjectExt, blocker, names, need, note};

use crate::spec::Spec;

/// The key of the password in the Secret.
pub(crate) const PASSWORD: &str = "password";
/// The key of the configuration in the ConfigMap.
const EXTRA_KEY: &str = "extra.conf";
/// The ids of the needs.
const LOGIN: &str = "login";
const EXTRA: &str = "extra";

/// Returns the needs of a Queue. Skips a need with an invalid name, because the host would refuse it. The function
/// `translate` then refuses the Queue.
pub(crate) fn needs(spec: &Spec) -> Vec<Need> {
    let mut needs = Vec::new();
    if let Some(secret) = spec.credentials_secret.as_deref().filter(|name| names::is_dns1123_subdomain(name)) {
        needs.push(need::named(LOGIN, secret_of(secret)));
    }
    if let Some(config) = spec.config_from.as_deref().filter(|name| names::is_dns1123_subdomain(name)) {
        needs.push(need::named(EXTRA, config_of(config)).fields([need::key("data", EXTRA_KEY)]));
    }
    needs
}

/// The answers to the needs.
pub(crate) struct Found {
    pub(crate) login: Login,
    /// The extra configuration. The text is empty if the Queue names no ConfigMap. The error is a blocker for a missing
    /// ConfigMap.
    pub(crate) extra: Result<String, Blocker>,
}

/// The facts that the policy found out about the Secret with the password.
pub(crate) enum Login {
    /// The Queue names no Secret.
    Open,
    /// The Secret has a password. The digest changes with the content of the Secret.
    Known { secret: String, digest: String },
    /// The operator does not watch Secrets.
    Unwatched { secret: String, why: String },
    /// The Secret or its key is missing.
    Missing(Blocker),
}

impl Found {
    /// Reads the answers to the needs.
    pub(crate) fn of(subject: &Subject, spec: &Spec) -> Self {
        let login = spec.credentials_secret.as_deref().map_or(Login::Open, |secret| Login::of(subject, secret));
        let extra = spec.config_from.as_deref().map_or(Ok(String::new()), |config| extra(subject, config));
        Self { login, extra }
    }

    /// Returns the objects that the plan waits for.
    pub(crate) fn blockers(&self) -> Vec<Blocker> {
        let login = if let Login::Missing(blocker) = &self.login { Some(blocker.clone()) } else { None };
        login.into_iter().chain(self.extra.as_ref().err().cloned()).collect()
    }

    /// Returns the notes for the user.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let note = match &self.login {
            Login::Open | Login::Known { .. } => return Vec::new(),
            Login::Missing(blocker) => {
                let message = format!(
                    "{}: the servers keep their configuration until the Secret has a password",
                    blocker.message
                );
                note::warning(&blocker.reason, message)
            }
            Login::Unwatched { secret, why } => {
                let message = format!("a new password in Secret {secret} does not restart the servers: {why}");
                note::info("SecretNotWatched", message)
            }
        };
        vec![note::at("spec.credentialsSecret", note)]
    }
}

impl Login {
    fn of(subject: &Subject, secret: &str) -> Self {
        let on = secret_of(secret);
        match subject.secret(LOGIN) {
            Lookup::There(facts) if facts.keys.iter().any(|key| key == PASSWORD) => {
                Self::Known { secret: secret.to_owned(), digest: facts.digest }
            }
            Lookup::There(_) => Self::Missing(no_key(on, PASSWORD)),
            Lookup::Forbidden(why) => Self::Unwatched { secret: secret.to_owned(), why },
            Lookup::Absent | Lookup::Unserved | Lookup::Unasked => Self::Missing(blocker::not_found(on)),
        }
    }
}

fn extra(subject: &Subject, config: &str) -> Result<String, Blocker> {
    let found = subject.one(EXTRA).or_blocker(config_of(config))?;
    let text = found.str_at(&["data", EXTRA_KEY]);
    text.map(ToOwned::to_owned).ok_or_else(|| no_key(config_of(config), EXTRA_KEY))
}

fn no_key(on: Reference, key: &str) -> Blocker {
    let message = format!("{} {} has no key {key}", on.kind, on.name);
    blocker::new(on, "KeyNotFound", message)
}

fn secret_of(name: &str) -> Reference {
    need::reference("v1", "Secret", name)
}

fn config_of(name: &str) -> Reference {
    need::reference("v1", "ConfigMap", name)
}
