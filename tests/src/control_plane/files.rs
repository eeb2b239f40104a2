//! Writes files atomically, because other processes read the files at the same time.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Replaces a file atomically. A reader sees either the old content or the new content.
pub fn write(path: &Path, content: &str) -> Result<()> {
    let beside = path.with_extension(fastrand::u64(..).to_string());
    fs::write(&beside, content).and_then(|()| fs::rename(&beside, path)).with_context(|| path.display().to_string())
}
