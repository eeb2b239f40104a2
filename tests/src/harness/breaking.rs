//! Breaks and mends the operator's requests and watches.

use kaos_cluster::faults::EventFate;

use super::World;
use super::faults::{Fault, none_missed};

impl World {
    /// Adds a fault to the operator's requests on the embedded cluster. At least one request must meet it before it is
    /// mended or the test ends.
    pub fn break_it(&self, fault: Fault) {
        // On a real cluster the harness does not sit between the operator and the API server.
        self.embedded();
        self.script.add(fault);
    }

    /// Decides what happens to the watch events of a type on their way to the operator, on the embedded cluster. At
    /// least one event must meet the rule before it is mended or the test ends.
    pub fn break_events(&self, plural: &'static str, fate: EventFate) {
        self.embedded();
        self.script.events(plural, fate);
    }

    /// Waits until every fault has had at least one hit.
    pub async fn until_hit(&self) {
        let what = format!("something meets each fault: {}", self.missed().join("; "));
        self.until_true(&what, async || self.missed().is_empty()).await;
    }

    /// Removes all faults. Fails the test if a fault had no hit.
    pub fn mend(&self) {
        none_missed(self.script.missed());
        self.script.clear();
    }

    /// The faults that needed a hit and have had none yet.
    pub(super) fn missed(&self) -> Vec<String> {
        let mut missed = self.script.missed();
        missed.extend(self.setting.spared());
        missed
    }
}
