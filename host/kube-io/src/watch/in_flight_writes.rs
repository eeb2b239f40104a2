//! The writes for which the answer has not arrived yet.

use std::collections::{BTreeMap, BTreeSet};

use super::owners::ChildPlace;
use crate::{
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

/// The children that passes are writing now, each with its owner: the object of the pass. The value contains the
/// versions of the child that the watch reported during the write (0 for a deletion). Only the answer to the write
/// shows which version the pass wrote. Until the answer arrives, the watch does not wake this owner. The watch wakes
/// other owners at once.
#[derive(Debug, Default)]
pub(super) struct InFlightWrites(pub(super) BTreeMap<(ChildPlace, ObjectKey), BTreeSet<u64>>);

impl InFlightWrites {
    /// Records a version that the watch reported, for the owners whose passes are writing the child. Returns the wakes
    /// of all other owners.
    pub(super) fn hold(&mut self, place: &ChildPlace, version: u64, mut wakes: Wakes) -> Wakes {
        if !self.0.is_empty() {
            wakes.retain(|(owner, _)| {
                let told = self.0.get_mut(&(place.clone(), owner.clone()));
                told.map(|told| told.insert(version)).is_none()
            });
        }
        wakes
    }

    /// Ends a write. Returns the owner if the watch reported a version other than the version in the write's answer.
    pub(super) fn end(&mut self, writer: (ChildPlace, ObjectKey), answered: Option<u64>) -> Wakes {
        let told = self.0.remove(&writer).unwrap_or_default();
        let other = told.into_iter().any(|version| Some(version) != answered);
        other.then_some((writer.1, Urgency::Fresh)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use kaos_objects::ResourceType;

    use super::*;

    fn place(name: &str) -> ChildPlace {
        ChildPlace { of: ResourceType::new("v1", "Service").into(), namespace: "t".into(), name: name.into() }
    }

    fn owner(name: &str) -> ObjectKey {
        ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "t", name)
    }

    fn wakes(names: &[&str]) -> Wakes {
        names.iter().map(|name| (owner(name), Urgency::Fresh)).collect()
    }

    fn in_flight(writers: &[(ChildPlace, ObjectKey)]) -> InFlightWrites {
        InFlightWrites(writers.iter().map(|writer| (writer.clone(), BTreeSet::new())).collect())
    }

    #[test]
    fn the_echo_of_a_write_wakes_no_object_and_writes_of_others_do() {
        let writer = (place("a"), owner("w"));
        let mut now = in_flight(std::slice::from_ref(&writer));
        assert_eq!(now.hold(&place("b"), 4, wakes(&["w"])), wakes(&["w"]), "no owner writes this child");
        assert_eq!(now.hold(&place("a"), 5, wakes(&["w"])), []);
        assert_eq!(now.end(writer.clone(), Some(5)), []);
        assert_eq!(now.hold(&place("a"), 6, wakes(&["w"])), wakes(&["w"]), "the write has ended");
        for (told, answered) in [([7, 8], 7), ([6, 7], 7), ([7, 0], 7)] {
            let mut now = in_flight(std::slice::from_ref(&writer));
            for version in told {
                assert_eq!(now.hold(&place("a"), version, wakes(&["w"])), []);
            }
            assert_eq!(
                now.end(writer.clone(), Some(answered)),
                wakes(&["w"]),
                "{told:?}: another client wrote one version"
            );
        }
    }

    #[test]
    fn two_writers_of_the_same_child_each_see_the_write_of_the_other() {
        let (one, other) = ((place("a"), owner("one")), (place("a"), owner("other")));
        let mut now = in_flight(&[one.clone(), other.clone()]);
        // The deletion concerns `one`, the owner that had the child. After the deletion, `other` creates the child.
        assert_eq!(now.hold(&place("a"), 0, wakes(&["one", "third"])), wakes(&["third"]));
        assert_eq!(now.hold(&place("a"), 9, wakes(&["other"])), []);
        assert_eq!(now.end(other, Some(9)), []);
        assert_eq!(now.end(one, Some(8)), wakes(&["one"]));
    }

    #[test]
    fn without_an_answer_the_writer_of_a_version_is_unknown() {
        let writer = (place("a"), owner("w"));
        let mut now = in_flight(std::slice::from_ref(&writer));
        now.hold(&place("a"), 5, wakes(&["w"]));
        assert_eq!(now.end(writer.clone(), None), wakes(&["w"]));
        assert_eq!(in_flight(std::slice::from_ref(&writer)).end(writer, None), [], "and the watch reported no version");
    }
}
