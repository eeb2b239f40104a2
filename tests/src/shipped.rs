//! Builds packages for tests. Also changes the bytes of components without a change of their behaviour.

use std::io::Write as _;

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use kaos_operator::embedded::DEFAULTS;
use kaos_operator::package::{PolicyCode, pack};
use kaos_policy::contract::HOME;
use kaos_policy::manifest::PolicyFile;
use serde_json::{Value, json};

/// Returns the embedded component of a policy, and its `policy.yaml`.
pub fn embedded(policy: &str) -> Result<(&'static [u8], &'static str)> {
    let named = |manifest: &str| manifest.lines().any(|line| line == format!("name: {policy}"));
    let found = DEFAULTS.iter().find(|it| named(it.manifest)).with_context(|| format!("no policy {policy}"))?;
    Ok((found.component, found.manifest))
}

/// Adds a custom section to a component, which changes the bytes of the component, but not its behaviour.
pub fn with_section(component: &[u8], name: &str, content: &[u8]) -> Result<Vec<u8>> {
    let mut body = vec![u8::try_from(name.len())?];
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    // The length must fit into a single byte of LEB128.
    ensure!(body.len() < 128, "the section is too long");
    let mut more = component.to_vec();
    more.extend([0, u8::try_from(body.len())?]);
    more.extend(body);
    Ok(more)
}

/// Compresses bytes with gzip. `level` is the compression level, from 1 to 9.
pub fn gzipped(bytes: &[u8], level: u32) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Builds a package in the operator's namespace, like `policy pack`. `file` is the content of `policy.yaml`.
pub fn package(name: &str, component: Option<&[u8]>, file: &str) -> Result<Value> {
    let code = component.map(|bytes| PolicyCode::component(bytes.to_vec()));
    let packed = pack(name, HOME, &PolicyFile::parse(file)?, code.as_ref())?;
    ensure!(packed.chunks.is_empty(), "{name} does not fit into one ConfigMap");
    let mut index = serde_json::to_value(&packed.index)?;
    index["apiVersion"] = json!("v1");
    index["kind"] = json!("ConfigMap");
    Ok(index)
}
