//! Reads the API server's audit log, which shows which user sent which request.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

/// The audit policy. With this policy, the API server logs every answered request, without its body.
pub(super) const POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [{"level": "Metadata"}]}"#;

/// An audit log.
#[derive(Debug, Clone)]
pub struct Audit(PathBuf);

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The user who sent the request.
    pub user: String,
    /// The ID of the service account token in the request. Empty for other users.
    pub credential: String,
    /// The verb, such as `patch`.
    pub verb: String,
    /// The resource, such as `deployments` or `agents/status`.
    pub resource: String,
    /// The namespace in the request, or an empty text.
    pub namespace: String,
    /// The name in the request, or an empty text.
    pub name: String,
    /// Whether the request was a dry run.
    pub dry_run: bool,
    /// The status code of the response.
    pub code: u64,
    /// When the API server received the request. Texts in this format (RFC 3339) sort by time.
    pub at: String,
    /// When the API server responded.
    pub answered: String,
}

impl Request {
    /// Returns whether the request has a verb that writes.
    pub fn writes(&self) -> bool {
        ["create", "update", "patch", "delete", "deletecollection"].contains(&self.verb.as_str())
    }

    /// Returns whether the request created an object.
    pub fn made(&self) -> bool {
        self.code == 201 && !self.dry_run
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
            dry_run: text(&event["requestURI"]).contains("dryRun="),
            code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
            at: text(&event["requestReceivedTimestamp"]),
            answered: text(&event["stageTimestamp"]),
        })
    }
}

impl Audit {
    /// Returns the log that an API server writes to `path`.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the position of the log's end. The log contains all requests that the API server has answered so far
    /// before this position.
    pub fn mark(&self) -> Result<usize> {
        let length = fs::metadata(&self.0).with_context(|| self.0.display().to_string())?.len();
        Ok(usize::try_from(length)?)
    }

    /// Returns the requests of `user` in the log after the position `mark`.
    pub fn since(&self, mark: usize, user: &str) -> Result<Vec<Request>> {
        self.tail(mark, user).read()
    }

    /// Follows the requests of `user` in the log, beginning after the position `mark`.
    pub fn tail(&self, mark: usize, user: &str) -> Tail {
        Tail { path: self.0.clone(), at: mark as u64, user: user.to_owned() }
    }
}

/// Reads the requests of one user from a growing log.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    at: u64,
    user: String,
}

impl Tail {
    /// Returns the requests that the API server has logged since the previous call of this function.
    pub fn read(&mut self) -> Result<Vec<Request>> {
        let mut file = File::open(&self.path).with_context(|| self.path.display().to_string())?;
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // Leave out an incomplete last line, which the API server is still writing.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.at += whole as u64;
        let text = String::from_utf8_lossy(&bytes[..whole]);
        let own = text.lines().filter(|line| line.contains(&self.user));
        Ok(own.filter_map(Request::parse).filter(|request| request.user == self.user).collect())
    }
}
