//! Records statuses of objects, each with the verdict that tools such as Flux and Argo CD must give on the object. The
//! tests in `tests/gitops` check these verdicts with the tools' own libraries.

use std::{fs, path::PathBuf};

use serde_json::{Map, Value, json};

/// Returns the folder of the records.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/gitops/recorded"))
}

/// The verdict that tools such as Flux and Argo CD must give on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The object is in the wanted state.
    Done,
    /// The tool waits for the object.
    Waits,
    /// The tool reports a failure.
    Fails,
}

impl Verdict {
    /// Returns the verdict in the words of kstatus, for Flux, Helm and kpt.
    pub fn kstatus(self) -> &'static str {
        match self {
            Self::Done => "Current",
            Self::Waits => "InProgress",
            Self::Fails => "Failed",
        }
    }

    /// Returns the verdict in the words of Argo CD.
    pub fn argo(self) -> &'static str {
        match self {
            Self::Done => "Healthy",
            Self::Waits => "Progressing",
            Self::Fails => "Degraded",
        }
    }

    /// Returns a record: the parts of the object that tools read, and the verdict in the words of each tool.
    pub fn record(self, object: &Value) -> Value {
        json!({"kstatus": self.kstatus(), "argo": self.argo(), "object": looked_at(object)})
    }
}

/// Returns the parts of an object that tools read, without values that differ between runs.
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

/// Removes the digest at the end of each revision's name in a text. The digest depends on the component, which differs
/// between compilers.
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

/// Compares a record with the stored record of this name. If `UPDATE_GOLDEN=1` is set, stores the record instead of
/// comparing it.
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
    assert!(
        stored == text,
        "the record {path} is stale (UPDATE_GOLDEN=1 writes the record):\n{text}",
        path = path.display()
    );
}
