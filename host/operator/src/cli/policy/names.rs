//! The names of installed policies, for completions.

use std::collections::BTreeSet;

use kube::Client;

use super::revisions::{Revisions, name, status};

/// Names that a user may give to a command of `policy`.
#[derive(Debug, Default)]
pub(in crate::cli) struct InstalledNames {
    /// The names of policies, and of the ConfigMaps that contain them.
    pub(in crate::cli) packages: BTreeSet<String>,
    /// The names of the revisions, the oldest first.
    pub(in crate::cli) revisions: Vec<String>,
}

/// Reads the names from the records of the operator in namespace `home`.
pub(in crate::cli) async fn installed(client: Client, home: &str) -> anyhow::Result<InstalledNames> {
    let all = Revisions::new(client, home).all().await?;
    let packages = all.iter().flat_map(|revision| {
        let source = revision.spec.source.config_map.clone();
        status(revision).policy.into_iter().chain([source])
    });
    Ok(InstalledNames { packages: packages.collect(), revisions: all.iter().map(|it| name(it).to_owned()).collect() })
}
