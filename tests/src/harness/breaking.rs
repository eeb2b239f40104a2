//! Adds faults to the operator's requests and watches, and removes them.

use kaos_cluster::faults::EventFate;

use super::World;
use super::faults::{Fault, none_missed};

impl World {
    /// Adds a fault to the operator's requests on the embedded cluster. The fault must hit at least one request before
    /// the test removes the fault or ends.
    pub fn break_it(&self, fault: Fault) {
        // Fail on a real cluster, because there the harness cannot change requests between the operator and the API
        // server.
        self.embedded();
        self.script.add(fault);
    }

    /// Chooses what happens to the watch events of a type before they reach the operator: for example, they get lost.
    /// Requires the embedded cluster. The fault must hit at least one event before the test removes the fault or ends.
    pub fn break_events(&self, plural: &'static str, fate: EventFate) {
        self.embedded();
        self.script.events(plural, fate);
    }

    /// Waits until each fault has hit at least one request or event.
    pub async fn until_hit(&self) {
        let what = format!("each fault has hit a request or an event: {faults}", faults = self.missed().join("; "));
        self.until_true(&what, async || self.missed().is_empty()).await;
    }

    /// Removes all faults. Fails the test for every fault that has hit no request and no event.
    pub fn mend(&self) {
        none_missed(self.script.missed());
        self.script.clear();
    }

    /// Returns each required fault that has had no effect yet: on no request, on no watch event, and on no compilation.
    pub(super) fn missed(&self) -> Vec<String> {
        let mut missed = self.script.missed();
        missed.extend(self.setting.spared());
        missed
    }
}
