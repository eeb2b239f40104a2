//! Maps packages to the names of their revisions.

use std::collections::BTreeSet;

use kaos_crds::{PolicyRevisionSpec, PolicyScope, PolicySource};

use super::{Found, Held, Lifecycle};
use crate::catalogue::installed::revision_name::revision_name;

impl Lifecycle {
    /// Returns the name of a package's revision. The name depends on the source and the content of the package. The
    /// name ends in a digest of the source and the content, because two sources can have the same readable part of the
    /// name. Returns `None` while the operator cannot read the content.
    pub(super) fn name_of(&self, Found { source, held, .. }: &Found) -> Option<String> {
        Some(revision_name(source, held.as_ref()?.digest, &self.tools.duties.operator_namespace))
    }

    /// Returns the revisions of the current packages. For a package that could not be read, returns all revisions of
    /// its source.
    pub(super) fn current(&self, found: &[Found]) -> BTreeSet<String> {
        let is_unread = |found: &&Found| found.held.is_none();
        let unread: BTreeSet<&PolicySource> = found.iter().filter(is_unread).map(|found| &found.source).collect();
        let may = self.records.all().iter().filter(|(_, revision)| unread.contains(&revision.spec.source));
        found.iter().filter_map(|found| self.name_of(found)).chain(may.map(|(name, _)| name.clone())).collect()
    }

    pub(super) fn spec_of(&self, Found { source, .. }: &Found, Held { digest, package }: &Held) -> PolicyRevisionSpec {
        let package = package.as_ref().ok();
        let own = (source.namespace != self.tools.duties.operator_namespace).then(|| source.namespace.clone());
        let listed = package.map(|package| package.file.scope.namespaces.clone()).unwrap_or_default();
        PolicyRevisionSpec {
            source: source.clone(),
            package_digest: digest.to_string(),
            digest: package.and_then(|package| package.component_digest()).map(|digest| digest.to_string()),
            scope: PolicyScope {
                namespaces: own.map_or(listed, |namespace| vec![namespace]),
                pinned: package.is_some_and(|package| package.file.scope.pinned),
            },
        }
    }
}
