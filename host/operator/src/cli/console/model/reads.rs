//! Remembers for some seconds the objects that pages read from the cluster without a watch, such as pods and Events. So
//! a page that changes all the time does not repeat its requests, and pages share the results of equal requests.

use std::{collections::BTreeMap, time::Duration};

use kaos_policy::contract::{ResourceType, Target};
use tokio::time::Instant;

use crate::{
    live::{KnownType, RememberedRead},
    watch::Served,
};

/// The time for which the console remembers a read.
pub(super) const REMEMBERED: Duration = Duration::from_secs(10);

/// The objects that pages read in the last seconds.
#[derive(Debug, Default)]
pub(super) struct Reads {
    targets: BTreeMap<Target, (Instant, RememberedRead)>,
    /// How the cluster serves types that the console does not watch. The console asks again after some seconds, because
    /// the cluster may serve a type later.
    types: BTreeMap<ResourceType, (Instant, Option<Served>)>,
}

impl Reads {
    /// Returns the remembered result of a read, if the result is new enough.
    pub(super) fn find(&self, target: &Target) -> Option<RememberedRead> {
        self.targets.get(target).filter(|(at, _)| at.elapsed() < REMEMBERED).map(|(_, read)| read.clone())
    }

    /// Remembers the result of a read, and forgets old results.
    pub(super) fn add(&mut self, target: &Target, read: RememberedRead) {
        self.targets.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        self.targets.insert(target.clone(), (Instant::now(), read));
    }

    /// Returns how the cluster serves a type, if the answer is new enough.
    pub(super) fn served(&self, of: &ResourceType) -> KnownType {
        match self.types.get(of).filter(|(at, _)| at.elapsed() < REMEMBERED) {
            Some((_, Some(served))) => KnownType::Served(served.clone()),
            Some((_, None)) => KnownType::Unserved,
            None => KnownType::Unasked,
        }
    }

    /// Remembers how the cluster serves a type. The number of types is small, so the console forgets none.
    pub(super) fn learn(&mut self, of: &ResourceType, served: Option<Served>) {
        self.types.insert(of.clone(), (Instant::now(), served));
    }
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::{ResourceType, Selector};

    use super::*;

    fn pods_of(name: &str) -> Target {
        let labels = vec![("app".to_owned(), name.to_owned())];
        Target::Labelled(Selector { of: ResourceType::new("v1", "Pod"), namespace: Some("team".to_owned()), labels })
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_is_forgotten_after_some_seconds_and_takes_no_memory() {
        let mut reads = Reads::default();
        reads.add(&pods_of("a"), RememberedRead::Found(Vec::new()));
        assert!(reads.find(&pods_of("a")).is_some() && reads.find(&pods_of("b")).is_none());
        tokio::time::advance(REMEMBERED).await;
        assert!(reads.find(&pods_of("a")).is_none());
        reads.add(&pods_of("b"), RememberedRead::Found(Vec::new()));
        assert_eq!(reads.targets.len(), 1);
    }
}
