//! What `-f` names: files, directories, standard input.

use std::{
    collections::HashMap,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Document, InputError, parse};

/// What to read, and how.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// Files, directories, or `-`.
    pub paths: &'a [String],
    /// Whether directories below a directory are read, too.
    pub recursive: bool,
    /// The namespace of objects that name none.
    pub namespace: &'a str,
}

/// Every object of the sources in the order in which they were given; a directory's files by name. All errors are
/// collected, so that one run shows all of them.
pub fn read(sources: Sources<'_>) -> (Vec<Document>, Vec<InputError>) {
    let Sources { paths, recursive, namespace } = sources;
    let (mut documents, mut errors) = (Vec::new(), Vec::new());
    let mut stdin_read = false;
    for path in paths {
        let texts = if path != "-" {
            texts(path, recursive)
        } else if stdin_read {
            Err(InputError::StandardInputTwice)
        } else {
            stdin_read = true;
            standard_input().map(|text| vec![text])
        };
        match texts {
            Err(error) => errors.push(error),
            Ok(texts) => {
                for (file, text) in texts {
                    let (found, wrong) = parse(&file, &text, namespace);
                    documents.extend(found);
                    errors.extend(wrong);
                }
            }
        }
    }
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

fn standard_input() -> Result<(Arc<str>, String), InputError> {
    let mut text = String::new();
    match io::stdin().lock().read_to_string(&mut text) {
        Ok(_) => Ok(("-".into(), text)),
        Err(source) => Err(InputError::Unreadable { path: "-".to_owned(), source }),
    }
}

fn texts(named: &str, recursive: bool) -> Result<Vec<(Arc<str>, String)>, InputError> {
    let path = Path::new(named);
    if !path.is_dir() {
        return Ok(vec![text(path)?]);
    }
    let mut files = Vec::new();
    collect(path, recursive, &mut files)?;
    if files.is_empty() {
        return Err(InputError::EmptyDirectory { path: named.to_owned() });
    }
    files.iter().map(|file| text(file)).collect()
}

fn text(path: &Path) -> Result<(Arc<str>, String), InputError> {
    let name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => Ok((name.into(), text)),
        Err(source) => Err(InputError::Unreadable { path: name, source }),
    }
}

fn collect(directory: &Path, recursive: bool, files: &mut Vec<PathBuf>) -> Result<(), InputError> {
    let unreadable = |source| InputError::Unreadable { path: directory.display().to_string(), source };
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(unreadable)?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            // A link that leads back up would be followed for ever.
            if recursive && !path.is_symlink() {
                collect(&path, recursive, files)?;
            }
        } else if is_manifest(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
}
