//! Children that are being written. A watch may tell of a write before the answer to it is here; whoever writes need not
//! be woken for that.

use std::collections::BTreeMap;

use kaos_policy::contract::Reference;
use serde_json::Value;

use super::{Watch, owners::Place, state::Wakes};

/// Owners who are not woken before it is clear whether what the watch told was their own write.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    held: BTreeMap<Place, Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// The newest version that the watch told of.
    version: u64,
    wakes: Wakes,
}

impl InFlight {
    fn begin(&mut self, place: Place) {
        self.held.entry(place).or_default();
    }

    /// Those of `wakes` that need not wait.
    pub(super) fn hold(&mut self, place: &Place, version: u64, wakes: Wakes) -> Wakes {
        let Some(held) = self.held.get_mut(place) else { return wakes };
        held.version = version;
        held.wakes.extend(wakes);
        Wakes::new()
    }

    /// Those who are to be woken after all, where the answer has this version; none without an answer.
    fn end(&mut self, place: &Place, answered: Option<u64>) -> Wakes {
        let held = self.held.remove(place).unwrap_or_default();
        if answered == Some(held.version) { Wakes::new() } else { held.wakes }
    }
}

/// A child that is being written, until this is dropped.
#[must_use]
pub(crate) struct Writing<'a> {
    watch: &'a Watch,
    place: Place,
    answered: Option<u64>,
}

impl Writing<'_> {
    /// The write was answered with this object.
    pub(crate) fn answered(mut self, object: &Value) {
        self.watch.wrote(object);
        self.answered = object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.watch.0.tell(|state| state.in_flight.end(&self.place, self.answered));
    }
}

impl Watch {
    /// Says that a child is about to be written.
    pub(crate) fn writing(&self, child: &Reference) -> Writing<'_> {
        let namespace = child.namespace.as_deref().unwrap_or_default().into();
        let place = Place { of: child.of().into(), namespace, name: child.name.as_str().into() };
        self.0.with(|state| state.in_flight.begin(place.clone()));
        Writing { watch: self, place, answered: None }
    }
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::ResourceType;

    use super::*;
    use crate::{queue::Urgency, watch::key::ObjectKey};

    fn place(name: &str) -> Place {
        Place { of: ResourceType::new("v1", "Service").into(), namespace: "t".into(), name: name.into() }
    }

    fn wakes() -> Wakes {
        vec![(ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "t", "a"), Urgency::Fresh)]
    }

    #[test]
    fn the_echo_of_a_write_wakes_nobody_and_what_others_wrote_since_does() {
        let mut in_flight = InFlight::default();
        in_flight.begin(place("a"));
        assert_eq!(in_flight.hold(&place("b"), 4, wakes()), wakes(), "nobody writes this one");
        assert_eq!(in_flight.hold(&place("a"), 5, wakes()), []);
        assert_eq!(in_flight.end(&place("a"), Some(5)), []);
        assert_eq!(in_flight.hold(&place("a"), 6, wakes()), wakes(), "it is written no more");
        in_flight.begin(place("a"));
        in_flight.hold(&place("a"), 7, wakes());
        in_flight.hold(&place("a"), 8, wakes());
        assert_eq!(in_flight.end(&place("a"), Some(7)).len(), 2, "the eighth is somebody else's");
    }

    #[test]
    fn without_an_answer_nobody_knows_whose_write_it_was() {
        let mut in_flight = InFlight::default();
        in_flight.begin(place("a"));
        in_flight.hold(&place("a"), 5, wakes());
        assert_eq!(in_flight.end(&place("a"), None), wakes());
    }
}
