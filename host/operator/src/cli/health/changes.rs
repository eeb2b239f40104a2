//! Waits until the objects that a command shows may have changed.

use std::{collections::BTreeSet, time::Duration};

use anyhow::bail;
use futures_util::{
    StreamExt as _,
    stream::{BoxStream, select_all},
};
use kaos_policy::contract::ResourceType;
use kube::{
    Api, Client,
    api::{DynamicObject, PartialObjectMeta},
    runtime::watcher::{self, Event, watcher},
};

use super::super::output::complain;
use crate::{discovery, error_text::with_causes};

/// After a change, the command waits until no further change comes for this time, because changes often come in groups.
const QUIET: Duration = Duration::from_millis(300);

type Watched = Result<Event<PartialObjectMeta<DynamicObject>>, watcher::Error>;

/// The watches of a command.
pub(super) struct ObjectChanges {
    watches: BoxStream<'static, (String, Watched)>,
    told: BTreeSet<String>,
}

impl ObjectChanges {
    /// Watches the objects of these kinds, and pods. The state of pods shows the cause for many objects.
    pub(super) async fn watch(
        client: &Client,
        kinds: &BTreeSet<ResourceType>,
        namespace: Option<&str>,
    ) -> anyhow::Result<Self> {
        let mut watches = Vec::new();
        for of in kinds.iter().chain([&ResourceType::new("v1", "Pod")]) {
            let Some(served) = discovery::served(client, of).await? else { continue };
            let api: Api<PartialObjectMeta<DynamicObject>> = match namespace.filter(|_| served.namespaced) {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &served.resource),
                None => Api::all_with(client.clone(), &served.resource),
            };
            let kind = of.kind.clone();
            let events = watcher(api, watcher::Config::default());
            watches.push(events.map(move |event| (kind.clone(), event)).boxed());
        }
        Ok(Self { watches: select_all(watches).boxed(), told: BTreeSet::new() })
    }

    /// Waits for a change, and then waits until no further change comes for the time [`QUIET`].
    pub(super) async fn next(&mut self) -> anyhow::Result<()> {
        self.one().await?;
        while let Ok(changed) = tokio::time::timeout(QUIET, self.one()).await {
            changed?;
        }
        Ok(())
    }

    async fn one(&mut self) -> anyhow::Result<()> {
        while let Some((kind, event)) = self.watches.next().await {
            match event {
                Ok(Event::Init | Event::InitApply(_)) => {}
                Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => return Ok(()),
                Err(error) => {
                    let why = with_causes(&error);
                    if self.told.insert(format!("{kind}{why}")) {
                        complain(
                            "note",
                            format_args!("cannot watch {kind} objects, so the output may be out of date: {why}"),
                        );
                    }
                    // Without this wait, the watch would send its next request immediately.
                    tokio::time::sleep(QUIET).await;
                }
            }
        }
        bail!("all watches ended")
    }
}
