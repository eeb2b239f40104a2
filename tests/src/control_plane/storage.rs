//! Queries etcd directly.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// The etcd of a cluster.
#[derive(Debug, Clone)]
pub struct Storage(String);

impl Storage {
    /// Returns the etcd at `address`. The address is etcd's client URL without the scheme.
    pub(super) fn new(address: String) -> Self {
        Self(address)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.0)
    }

    /// Removes all of etcd's revisions before the current revision. After this compaction, no watch can resume from an
    /// older revision.
    pub fn compact(&self) -> Result<()> {
        // Read any key, because every response contains the current revision.
        let now = self.ask("/v3/kv/range", &json!({"key": "AA==", "count_only": true}))?;
        let revision = now["header"]["revision"].as_str().context("etcd returned no revision")?.to_owned();
        self.ask("/v3/kv/compaction", &json!({"revision": revision, "physical": true}))?;
        Ok(())
    }

    fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let mut stream = TcpStream::connect(&self.0).with_context(|| self.0.clone())?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let (host, body) = (&self.0, body.to_string());
        let length = body.len();
        write!(stream, "POST {path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: {length}\r\n\r\n{body}")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("etcd returned no HTTP response")?;
        ensure!(head.contains(" 200 "), "etcd answered the request {path} with {answer}");
        Ok(serde_json::from_str(body)?)
    }
}
