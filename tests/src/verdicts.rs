//! Recorded statuses with the verdicts that other tools must give. `tests/gitops` asks the tools' own libraries for their
//! verdicts on the same records.

use std::{fs, path::PathBuf};

use serde_json::{Map, Value, json};

/// The folder of the records.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/gitops/recorded"))
}

/// The verdicts of other tools on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The object is as it should be.
    Done,
    /// The tool waits.
    Waits,
    /// The tool gives up.
    Fails,
}

impl Verdict {
    /// Returns the word of kstatus: Flux, Helm and kpt.
    pub fn kstatus(self) -> &'static str {
        match self {
            Self::Done => "Current",
            Self::Waits => "InProgress",
            Self::Fails => "Failed",
        }
    }

    /// Returns the word of Argo CD.
    pub fn argo(self) -> &'static str {
        match self {
            Self::Done => "Healthy",
            Self::Waits => "Progressing",
            Self::Fails => "Degraded",
        }
    }

    /// Returns a record: the part of the object that tools look at, and their verdicts.
    pub fn record(self, object: &Value) -> Value {
        json!({"kstatus": self.kstatus(), "argo": self.argo(), "object": looked_at(object)})
    }
}

/// The part of an object that tools look at, without anything that differs between runs.
fn looked_at(object: &Value) -> Value {
    let pick = |value: &Value, fields: &[&str]| -> Map<String, Value> {
        fields.iter().filter_map(|field| Some(((*field).to_owned(), value.get(field)?.clone()))).collect()
    };
    let mut status =
        pick(&object["status"], &["phase", "state", "ready", "message", "observedGeneration", "conditions"]);
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        *condition = pick(condition, &["type", "status", "reason", "message", "observedGeneration"]).into();
    }
    let mut metadata = pick(&object["metadata"], &["name", "namespace", "generation"]);
    if object["kind"] == "PolicyRevision" {
        metadata.get_mut("name").into_iter().for_each(drop_digests);
        let conditions = status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten();
        conditions.filter_map(|condition| condition.get_mut("message")).for_each(drop_digests);
        status.get_mut("message").into_iter().for_each(drop_digests);
    }
    json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": metadata,
        "status": status,
    })
}

/// Shortens names of revisions to the names of their ConfigMaps. The names end with a digest of the component, and another
/// compiler makes other bytes.
fn drop_digests(text: &mut Value) {
    const DIGITS: usize = 12;
    let is_digest = |end: &str| end.len() == DIGITS && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    let short = |word: &str| match word.rsplit_once('-') {
        Some((source, end)) if is_digest(end) => source.to_owned(),
        _ => word.to_owned(),
    };
    if let Some(words) = text.as_str() {
        *text = words.split(' ').map(short).collect::<Vec<_>>().join(" ").into();
    }
}

/// Compares a record with the stored one. `UPDATE_GOLDEN=1` stores it.
///
/// # Panics
/// If the records differ.
#[expect(clippy::panic, reason = "that is how a test fails")]
pub fn compare(name: &str, record: &Value) {
    let path = folder().join(format!("{name}.json"));
    let text = format!("{record:#}\n");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "{} is stale (UPDATE_GOLDEN=1 writes it):\n{text}", path.display());
}
