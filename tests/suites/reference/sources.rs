//! Reads the project's own source files without tests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::page::ROOT;

/// Returns the paths and the texts of the source files below these folders. Omits test files, and the test module at
/// the end of a file.
pub(crate) fn of(folders: &[&str]) -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| below(&Path::new(ROOT).join(folder))).collect();
    files.sort();
    let is_test = |path: &PathBuf| {
        path.components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            ["tests", "tests.rs", "testing", "testing.rs"].contains(&&*part)
        })
    };
    let relative = |path: &Path| path.strip_prefix(ROOT).unwrap_or(path).display().to_string();
    let own: Vec<_> = files
        .iter()
        .filter(|path| !path.strip_prefix(ROOT).is_ok_and(|path| is_test(&path.to_owned())))
        .map(|path| (relative(path), without_tests(&fs::read_to_string(path).unwrap())))
        .collect();
    assert!(!own.is_empty(), "{folders:?} have no sources");
    own
}

/// Returns every Rust file below a folder, including tests.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let (folders, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|path| path.is_dir());
    let mut files: Vec<_> = files.into_iter().filter(|path| path.extension().is_some_and(|of| of == "rs")).collect();
    files.extend(folders.iter().flat_map(|folder| below(folder)));
    files
}

/// Returns the text of a file without the test module at its end, and without comments that fill a whole line.
fn without_tests(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}
