//! Reads objects from files, and converts them to the form in which an API server would store them.

use std::sync::Arc;

use anyhow::Context;
use kaos_policy::{
    contract::{ResourceType, Scopes},
    lookup::claimed,
    near::nearest,
    policy::Policy,
};

use super::output::complain;
use crate::{
    input::{self, Document, InputPaths},
    schema::{Admission, Crd, Finding, KnownCrds},
};

/// Returns the embedded CRDs and the CRDs of files, or `None` if a file is unusable.
pub(super) fn catalogue(paths: &[String]) -> anyhow::Result<Option<KnownCrds>> {
    let mut catalogue = KnownCrds::embedded()?;
    let sources = InputPaths { paths, recursive: false, namespace: "default" };
    let (documents, errors) = input::read(sources, &Scopes::default());
    for error in &errors {
        complain("error", error);
    }
    for Document { origin, object, .. } in &documents {
        catalogue.add(Crd::new(object).with_context(|| origin.to_string())?);
    }
    Ok(errors.is_empty().then_some(catalogue))
}

/// Adds the kinds that policies claim, as namespaced kinds, because a policy can claim only namespaced kinds.
pub(super) fn claim<'a>(catalogue: &mut KnownCrds, policies: impl IntoIterator<Item = &'a Arc<Policy>>) {
    for policy in policies {
        catalogue.add_scopes(&claimed(&policy.descriptor().claims));
    }
}

/// Returns the objects in the form in which an API server would store them, or `None` if an object is unusable.
pub(super) fn documents(sources: InputPaths<'_>, catalogue: &KnownCrds) -> Option<Vec<Document>> {
    let (mut documents, errors) = input::read(sources, catalogue.scopes());
    let mut usable = errors.is_empty();
    for error in &errors {
        complain("error", error);
    }
    for Document { origin, identity, object } in &mut documents {
        let Admission { unknown, violations } = catalogue.admit(&identity.group, &identity.kind, object);
        for Finding { path, message } in unknown {
            complain("warning", format_args!("{origin}: {identity}: {path}: {message}"));
        }
        for Finding { path, message } in violations {
            complain("error", format_args!("{origin}: {identity}: {path}: {message}"));
            usable = false;
        }
    }
    if usable && documents.is_empty() {
        complain("error", "the input has no objects: use -f to specify files that contain objects");
        usable = false;
    }
    usable.then_some(documents)
}

/// Like [`documents`], but returns no objects if the user named no file.
pub(super) fn documents_if_named(filenames: &[String], catalogue: &KnownCrds) -> Option<Vec<Document>> {
    if filenames.is_empty() {
        return Some(Vec::new());
    }
    documents(InputPaths { paths: filenames, recursive: false, namespace: "default" }, catalogue)
}

/// Warns of each object whose kind does not exist in its group, if the group is known. An API server would refuse such
/// an object.
pub(super) fn warn_of_strangers(documents: &[Document], catalogue: &KnownCrds, claimed: &[&ResourceType]) {
    for Document { origin, identity, .. } in documents {
        let claimed = claimed.iter().filter(|of| of.group() == identity.group).map(|of| of.kind.as_str());
        let kinds: Vec<&str> = catalogue.kinds(&identity.group).chain(claimed).collect();
        if kinds.is_empty() || kinds.contains(&identity.kind.as_str()) {
            continue;
        }
        let near = nearest(&identity.kind, kinds.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!(": did you mean {near}?"));
        let group = &identity.group;
        complain("warning", format_args!("{origin}: {identity}: ignored, since {group} has no such kind{hint}"));
    }
}
