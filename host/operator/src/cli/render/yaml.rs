//! `-o yaml`: prints the manifests that the operator would apply, with a comment that names each object. The manifests
//! are for reading and comparing. Users cannot apply the manifests, because an owner reference needs the object's UID,
//! and only the API server assigns UIDs.

use std::io;

use kaos_policy::contract::Outcome;
use serde_json::json;

use super::super::output::Output;
use crate::{input::Document, offline::Entry, yaml::text};

pub(super) fn write(out: &mut Output, document: &Document, entry: &Entry, with_status: bool) -> io::Result<()> {
    let Entry { rendered, outcome, status } = entry;
    let verdict = match outcome {
        Outcome::Applied => "",
        Outcome::Gated => ": waits for another object",
        Outcome::Refused(_) => ": refused",
        Outcome::Failed(_) => ": the policy failed",
    };
    let layers = std::iter::once(&rendered.policy).chain(&rendered.overlays).map(ToString::to_string);
    let layers: Vec<_> = layers.collect();
    out.text(&format!("# {}: policy {}{verdict}\n", document.identity, layers.join(", with ")))?;
    for manifest in rendered.manifests() {
        out.verbatim("---\n")?;
        out.verbatim(&text(manifest).map_err(io::Error::other)?)?;
    }
    if with_status {
        let object = rendered.object.reference();
        let shown = json!({
            "apiVersion": object.api_version,
            "kind": object.kind,
            "metadata": {"name": object.name, "namespace": object.namespace},
            "status": status,
        });
        out.verbatim("---\n# the status that the operator would write\n")?;
        out.verbatim(&text(&shown).map_err(io::Error::other)?)?;
    }
    Ok(())
}
