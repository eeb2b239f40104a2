//! Files that some write while others read them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a file so that whoever reads it meanwhile reads all of it, as it was or as it is.
pub fn write(path: &Path, content: &str) -> Result<()> {
    let beside = path.with_extension(fastrand::u64(..).to_string());
    fs::write(&beside, content).and_then(|()| fs::rename(&beside, path)).with_context(|| path.display().to_string())
}
