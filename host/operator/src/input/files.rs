//! Reads the arguments of `-f`: files, directories, standard input.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use kaos_policy::contract::Scopes;
use serde_json::Value;

use super::{
    Document, DocumentOrigin, InputError,
    documents::{identified, objects, values},
};
use crate::reading::{self, OBJECTS, ReadError, SETTINGS};

/// The paths to read, and how to read them.
#[derive(Debug, Clone, Copy)]
pub struct InputPaths<'a> {
    /// Files, directories, or `-`.
    pub paths: &'a [String],
    /// Whether to read subdirectories too.
    pub recursive: bool,
    /// The namespace for objects that name no namespace.
    pub namespace: &'a str,
}

/// Reads all objects in the order of the paths. The files of a directory are sorted by name. Collects all errors, so
/// that one run shows all of them. If `known` does not say whether a type is namespaced, this function uses a CRD among
/// the objects, or the namespaces of the type's objects.
pub fn read(sources: InputPaths<'_>, known: &Scopes) -> (Vec<Document>, Vec<InputError>) {
    let InputPaths { paths, recursive, namespace } = sources;
    let mut found = Vec::new();
    let mut stdin_read = false;
    for path in paths {
        let texts = if path != "-" {
            texts(path, recursive)
        } else if stdin_read {
            vec![Err(InputError::StandardInputTwice)]
        } else {
            stdin_read = true;
            vec![reading::standard_input(OBJECTS).map(|text| ("-".into(), text)).map_err(InputError::Read)]
        };
        for text in texts {
            match text {
                Err(error) => found.push(Err(error)),
                Ok((file, text)) => found.extend(objects(&file, &text)),
            }
        }
    }
    let mut scopes = Scopes::of(found.iter().flatten().map(|(_, object)| object));
    scopes.add(known);
    let (documents, mut errors) = identified(found, namespace, &scopes);
    errors.extend(duplicates(&documents));
    (documents, errors)
}

fn duplicates(documents: &[Document]) -> Vec<InputError> {
    let mut seen = HashMap::new();
    let mut errors = Vec::new();
    for document in documents {
        if let Some(first) = seen.insert(&document.identity, &document.origin) {
            errors.push(InputError::Duplicate {
                identity: Box::new(document.identity.clone()),
                first: first.clone(),
                second: document.origin.clone(),
            });
        }
    }
    errors
}

/// Reads a file with one document that is not an object, such as settings. Returns null for an empty file.
pub fn document(path: &Path) -> Result<Value, InputError> {
    let text = reading::text(path, SETTINGS)?;
    let file: Arc<str> = path.display().to_string().into();
    let mut found = Vec::new();
    for (index, value) in values(&file, &text).into_iter().enumerate() {
        let origin = || DocumentOrigin { file: Arc::clone(&file), document: index + 1, item: None };
        let value = value.map_err(|wrong| wrong.at(origin()))?;
        found.extend((!value.is_null()).then_some(value));
    }
    match found.len() {
        0 | 1 => Ok(found.pop().unwrap_or_default()),
        count => Err(InputError::Several { path: file.to_string(), count }),
    }
}

/// Returns the text of a file, or of each file of a directory. Returns an error for each unreadable file, in addition
/// to the texts of the other files.
fn texts(named: &str, recursive: bool) -> Vec<Result<(Arc<str>, String), InputError>> {
    let path = Path::new(named);
    if !path.is_dir() {
        return vec![text(path)];
    }
    let mut files = Vec::new();
    collect(path, recursive, &mut files);
    if files.is_empty() {
        return vec![Err(InputError::EmptyDirectory { path: named.to_owned() })];
    }
    files.into_iter().map(|file| text(&file?)).collect()
}

fn text(path: &Path) -> Result<(Arc<str>, String), InputError> {
    Ok((path.display().to_string().into(), reading::text(path, OBJECTS)?))
}

fn collect(directory: &Path, recursive: bool, files: &mut Vec<Result<PathBuf, ReadError>>) {
    let entries = match fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) => entries,
        Err(source) => {
            files.push(Err(ReadError::Unreadable { path: directory.display().to_string(), source }));
            return;
        }
    };
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            // Do not follow links: a link to a parent directory would cause an endless loop.
            if recursive && !path.is_symlink() {
                collect(&path, recursive, files);
            }
        } else if is_manifest(&path) {
            files.push(Ok(path));
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
}
