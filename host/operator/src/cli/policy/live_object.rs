//! Finds the object of a running cluster that the user names, and the policies that serve there.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, bail};
use kube::Client;

use super::{
    answering::{Installed, PolicySet},
    in_force::standing,
    output::complain,
};
use crate::{
    catalogue::{Catalogue, Snapshot},
    discovery,
    input::Identity,
    live::Gathered,
    offline::Started,
    policies::Loader,
};

/// An object of a cluster, and the policies that serve there.
pub(super) struct LiveObject {
    /// The objects that the command has read so far. The named object is one of them.
    pub(super) gathered: Gathered,
    pub(super) identity: Identity,
    pub(super) standing: PolicySet,
    pub(super) snapshot: Arc<Snapshot>,
}

impl LiveObject {
    /// Reads the policies and the object. `own` are the policies that the operator got with `--policy`. Prints a note
    /// for each revision that does not serve.
    pub(super) async fn find(
        client: Client,
        loader: &Loader,
        started: &Started,
        own: &[PathBuf],
        (kind, namespace, name): (&str, &str, &str),
    ) -> anyhow::Result<Self> {
        let home = &started.cluster.operator_namespace;
        let standing = standing(&client, loader, &loader.load(own)?, home).await?;
        let Installed { snapshot, conflicts } =
            standing.install(&Catalogue::default()).context("cannot combine the active policies")?;
        for (revision, why) in &conflicts {
            complain("note", format_args!("PolicyRevision {revision} does not serve: {why}"));
        }
        let kinds = snapshot.kinds().map(|(of, _)| of.clone()).collect();
        let of = discovery::meant(&client, &kinds, kind).await?;
        let mut gathered = Gathered::new(client);
        let position = gathered.object(&of, namespace, name).await?;
        let Some(identity) = position else { bail!("{} {namespace}/{name} does not exist", of.kind) };
        Ok(Self { gathered, identity, standing, snapshot })
    }
}
