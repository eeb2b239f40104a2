//! Who asked the API server for what, as the API server itself wrote it down.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

/// The policy: everything that was answered, without bodies.
pub(super) const POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [{"level": "Metadata"}]}"#;

/// The audit log.
#[derive(Debug, Clone)]
pub struct Audit(PathBuf);

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Who asked.
    pub user: String,
    /// Which of the user's tokens it was; empty for users that are no service accounts.
    pub credential: String,
    /// `patch`
    pub verb: String,
    /// `deployments`, `agents/status`
    pub resource: String,
    /// Its namespace; empty for none.
    pub namespace: String,
    /// Its name; empty for none.
    pub name: String,
    /// The status of the answer.
    pub code: u64,
    /// When it was received, in RFC 3339, which sorts.
    pub at: String,
}

impl Request {
    /// Whether it was to change something.
    pub fn writes(&self) -> bool {
        ["create", "update", "patch", "delete", "deletecollection"].contains(&self.verb.as_str())
    }

    fn parse(line: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(line).ok()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = &event["objectRef"];
        let (resource, sub) = (text(&of["resource"]), text(&of["subresource"]));
        Some(Self {
            user: text(&event["user"]["username"]),
            credential: text(&event["user"]["extra"]["authentication.kubernetes.io/credential-id"][0]),
            verb: text(&event["verb"]),
            resource: if sub.is_empty() { resource } else { format!("{resource}/{sub}") },
            namespace: text(&of["namespace"]),
            name: text(&of["name"]),
            code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
            at: text(&event["requestReceivedTimestamp"]),
        })
    }
}

impl Audit {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// A place in the log: everything before it has been answered.
    pub fn mark(&self) -> Result<usize> {
        Ok(self.text()?.len())
    }

    /// The answered requests of a user since a mark.
    pub fn since(&self, mark: usize, user: &str) -> Result<Vec<Request>> {
        let text = self.text()?;
        let requests = text.get(mark..).unwrap_or_default().lines().filter_map(Request::parse);
        Ok(requests.filter(|request| request.user == user).collect())
    }

    fn text(&self) -> Result<String> {
        fs::read_to_string(&self.0).with_context(|| self.0.display().to_string())
    }
}
