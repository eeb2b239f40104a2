//! Remembers for some seconds what pages read from the cluster without a watch, such as pods and Events. So pages that
//! change all the time, and pages that show the same objects, send each request once.

use std::{collections::BTreeMap, time::Duration};

use kaos_policy::contract::Target;
use tokio::time::Instant;

use crate::live::RememberedRead;

/// The time for which the console remembers a read.
pub(super) const REMEMBERED: Duration = Duration::from_secs(10);

/// The reads of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Reads(BTreeMap<Target, (Instant, RememberedRead)>);

impl Reads {
    /// Returns the result of a read that is new enough.
    pub(super) fn find(&self, target: &Target) -> Option<RememberedRead> {
        self.0.get(target).filter(|(at, _)| at.elapsed() < REMEMBERED).map(|(_, read)| read.clone())
    }

    /// Remembers the result of a read, and forgets old ones.
    pub(super) fn add(&mut self, target: &Target, read: RememberedRead) {
        self.0.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        self.0.insert(target.clone(), (Instant::now(), read));
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
        assert_eq!(reads.0.len(), 1);
    }
}
