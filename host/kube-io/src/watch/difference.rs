//! A change of one object. Its methods return whether certain fields changed. The *readers* of the changed object are
//! the objects whose policies need it.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeMap,
    sync::Arc,
};

use kaos_objects::Fields;
use serde_json::Value;

use super::{cached_object::CachedObject, fetched_objects::Fetched};

/// Maximum number of bytes of JSON that the watch compares for one change. The watch compares the object once for each
/// distinct set of fields. A comparison usually costs less than a needless pass. But the watch can do nothing else
/// while it compares. So beyond this limit, the watch stops comparing, and wakes all readers of the object.
const MAX_COMPARED: usize = 16 << 20;

/// A change of one object.
pub(super) struct Difference<'a> {
    before: Option<&'a CachedObject>,
    after: Option<&'a CachedObject>,
    parsed: OnceCell<[Value; 2]>,
    /// The results of earlier comparisons: for each set of fields, whether one of these fields changed.
    known: RefCell<BTreeMap<Arc<Fields>, bool>>,
    left: Cell<usize>,
}

impl<'a> Difference<'a> {
    pub(super) fn new(before: Option<&'a CachedObject>, after: Option<&'a CachedObject>) -> Self {
        let (parsed, known, left) = (OnceCell::new(), RefCell::default(), Cell::new(MAX_COMPARED));
        Self { before, after, parsed, known, left }
    }

    /// Creates a change that concerns all readers.
    pub(super) fn unknown() -> Self {
        Self::new(None, None)
    }

    /// Creates the change of an object that the operator read by name.
    pub(super) fn fetched(before: Option<&'a Fetched>, after: &'a Fetched) -> Self {
        match (before, after) {
            (Some(Fetched::Object(before)), Fetched::Object(after)) => Self::new(Some(before), Some(after)),
            _ => Self::unknown(),
        }
    }

    /// Returns the object before and after the change. Leaves out a state that does not exist or is unknown.
    pub(super) fn states(&self) -> impl Iterator<Item = &'a CachedObject> {
        [self.before, self.after].into_iter().flatten()
    }

    /// Returns whether these fields changed, or the object appeared or disappeared.
    pub(super) fn is_in(&self, fields: &Arc<Fields>) -> bool {
        let (Some(before), Some(after)) = (self.before, self.after) else { return true };
        if fields.is_whole() {
            return true;
        }
        if let Some(known) = self.known.borrow().get(fields) {
            return *known;
        }
        let Some(left) = self.left.get().checked_sub(before.text().len() + after.text().len()) else { return true };
        self.left.set(left);
        let parse = |item: &CachedObject| serde_json::from_slice(&item.text().plain()).unwrap_or_default();
        let [before, after] = self.parsed.get_or_init(|| [parse(before), parse(after)]);
        let is_in = fields.of(before) != fields.of(after);
        self.known.borrow_mut().insert(Arc::clone(fields), is_in);
        is_in
    }
}

#[cfg(test)]
mod tests {
    use kaos_objects::ResourceType;
    use serde_json::json;

    use super::*;
    use crate::watch::cached_object::{Arrived, Extract};

    fn item(spec: &Value) -> CachedObject {
        let object = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}, "spec": spec});
        Arrived::new(object, &ResourceType::new("x.io/v1", "Gadget"), Extract::default()).unwrap().item
    }

    fn fields(path: &str) -> Arc<Fields> {
        Arc::new(Fields::parse(&[path.to_owned()]).unwrap())
    }

    #[test]
    fn a_change_is_in_the_fields_that_differ() {
        let (before, after) = (item(&json!({"a": 1, "b": 1})), item(&json!({"a": 1, "b": 2})));
        let difference = Difference::new(Some(&before), Some(&after));
        let is_in = |path: &str| difference.is_in(&fields(path));
        assert_eq!((is_in("spec.a"), is_in("spec.b"), is_in("spec"), is_in("spec.a")), (false, true, true, false));
        assert!(difference.is_in(&Arc::new(Fields::whole())));
        for appeared in [Difference::new(None, Some(&after)), Difference::new(Some(&before), None)] {
            assert!(appeared.is_in(&fields("spec.a")));
        }
    }

    #[test]
    fn comparisons_of_one_change_are_limited() {
        let long = "x".repeat(1 << 20);
        let (before, after) = (item(&json!({"l": long, "b": 1})), item(&json!({"l": long, "b": 2})));
        let difference = Difference::new(Some(&before), Some(&after));
        let compared = (0..20).take_while(|at| !difference.is_in(&fields(&format!("spec.a{at}")))).count();
        assert_eq!(compared, 7, "of 16 MiB, each comparison takes 2 MiB and some bytes");
        assert!(!difference.is_in(&fields("spec.a0")), "the result of a comparison stays");
    }
}
