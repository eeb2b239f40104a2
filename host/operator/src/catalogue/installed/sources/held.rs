//! The content of a package's ConfigMaps.

use std::sync::Arc;

use kaos_policy::digest::Digest;

use crate::package::{Package, PackageError};

/// The content of a package's ConfigMaps, as the operator read it last.
#[derive(Debug, Clone)]
pub(in crate::catalogue::installed) struct Held {
    /// The digest of the package. If the ConfigMap contains no valid package, this field is the digest of the
    /// ConfigMap.
    pub(in crate::catalogue::installed) digest: Digest,
    pub(in crate::catalogue::installed) package: Result<Arc<Package>, NoPackage>,
}

/// The reason why the operator cannot get a package from the ConfigMap.
#[derive(Debug, Clone)]
pub(in crate::catalogue::installed) enum NoPackage {
    /// The ConfigMap does not contain a valid package.
    Wrong(PackageError),
    /// The namespace already has the maximum number of older packages, so the operator did not read this package.
    OneTooMany,
}
