//! What the ConfigMaps of a package hold.

use std::sync::Arc;

use kaos_policy::digest::Digest;

use crate::package::{Package, PackageError};

/// What the ConfigMaps of a package hold.
#[derive(Debug, Clone)]
pub(in crate::catalogue::installed) struct Held {
    /// The digest of the package; of the bare ConfigMap if it is none.
    pub(in crate::catalogue::installed) digest: Digest,
    pub(in crate::catalogue::installed) package: Result<Arc<Package>, NoPackage>,
}

/// Why there is no package to check.
#[derive(Debug, Clone)]
pub(in crate::catalogue::installed) enum NoPackage {
    /// The ConfigMap does not hold one.
    Wrong(PackageError),
    /// Its namespace has as many that are older as are taken: it was not looked into.
    OneTooMany,
}
