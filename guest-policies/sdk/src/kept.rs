//! The subject of a pass, with the values that the policy has decoded from the subject.
//!
//! All functions of a pass get the same subject. The first function that reads a value decodes the value.

use crate::contract;
use crate::object::Object;
use crate::types::{Found, Refusal};
use alloc::{borrow::ToOwned, boxed::Box, vec::Vec};
use core::any::Any;
use core::cell::{OnceCell, Ref, RefCell};
use core::fmt;
use core::ops::{Deref, DerefMut};
use serde_json::Value;

/// All inputs of a policy for one object. Dereferences to the contract's record `subject`.
pub struct Subject {
    data: contract::Subject,
    parsed_object: OnceCell<Object>,
    parsed_settings: OnceCell<Option<Value>>,
    kept: Kept,
}

/// A list of values of different types. A value never moves in memory.
#[derive(Default)]
struct Kept(OnceCell<Box<KeptValue>>);

struct KeptValue {
    value: Box<dyn Any>,
    next: Kept,
}

impl Subject {
    /// Returns the value that `read` computes from the subject. Keeps one value of each type, until the host adds found
    /// objects. If `read` refuses, keeps nothing, and the next call of `once` calls `read` again. Choose a type that no
    /// other caller uses, because the subject finds a kept value by its type.
    pub fn once<T: 'static>(&self, read: impl FnOnce(&Self) -> Result<T, Refusal>) -> Result<&T, Refusal> {
        if let Some(value) = self.kept.find() {
            return Ok(value);
        }
        let value = read(self)?;
        self.kept.keep(value).ok_or_else(|| Refusal::Unsupported("the value is of another type".to_owned()))
    }

    /// Parses the object once, and returns it.
    pub(crate) fn parsed(&self) -> &Object {
        self.parsed_object.get_or_init(|| Object::parse(&self.data.object))
    }

    /// Parses the settings once, and returns them. Returns `None` if the settings are not JSON.
    pub(crate) fn parsed_settings(&self) -> Option<&Value> {
        self.parsed_settings.get_or_init(|| serde_json::from_str(&self.data.settings).ok()).as_ref()
    }

    /// Adds found objects. Discards all decoded values except the parsed object and the parsed settings.
    fn add(&mut self, found: Vec<Found>) {
        if !found.is_empty() {
            self.data.found.extend(found);
            self.data.found.sort_by(|one, other| one.id.cmp(&other.id));
            self.kept = Kept::default();
        }
    }
}

impl Kept {
    fn find<T: 'static>(&self) -> Option<&T> {
        let mut rest = self;
        while let Some(place) = rest.0.get() {
            if let Some(value) = place.value.downcast_ref() {
                return Some(value);
            }
            rest = &place.next;
        }
        None
    }

    fn keep<T: 'static>(&self, value: T) -> Option<&T> {
        let mut rest = self;
        while let Some(place) = rest.0.get() {
            rest = &place.next;
        }
        let place = rest.0.get_or_init(|| Box::new(KeptValue { value: Box::new(value), next: Self::default() }));
        place.value.downcast_ref()
    }
}

impl From<contract::Subject> for Subject {
    fn from(data: contract::Subject) -> Self {
        Self { data, parsed_object: OnceCell::new(), parsed_settings: OnceCell::new(), kept: Kept::default() }
    }
}

impl Deref for Subject {
    type Target = contract::Subject;

    fn deref(&self) -> &Self::Target {
        &self.data
    }
}

/// Mutable access discards all decoded values, because the caller can change the subject.
impl DerefMut for Subject {
    fn deref_mut(&mut self) -> &mut Self::Target {
        (self.parsed_object, self.parsed_settings, self.kept) = (OnceCell::new(), OnceCell::new(), Kept::default());
        &mut self.data
    }
}

impl Clone for Subject {
    fn clone(&self) -> Self {
        Self::from(self.data.clone())
    }
}

impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.data.fmt(f)
    }
}

/// The resource `pass` of a component.
#[doc(hidden)]
#[derive(Debug)]
pub struct Pass(RefCell<Subject>);

impl Pass {
    /// Begins a pass.
    #[must_use]
    pub fn new(subject: contract::Subject) -> Self {
        Self(RefCell::new(subject.into()))
    }

    /// Adds found objects.
    pub fn add(&self, found: Vec<Found>) {
        self.0.borrow_mut().add(found);
    }

    /// Returns the subject.
    pub fn subject(&self) -> Ref<'_, Subject> {
        self.0.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::Pass;
    use crate::types::{Answer, Found, Refusal};
    use crate::{SubjectExt, refusal, testing};
    use core::cell::Cell;
    use serde_json::json;

    #[test]
    fn a_value_is_read_once_for_each_type_until_more_objects_are_found() {
        struct Name(String);
        struct Count(usize);
        let pass = Pass::new(testing::subject(&json!({"metadata": {"name": "a"}})).build().data.clone());
        let reads = Cell::new(0);
        let ask = || {
            let subject = pass.subject();
            let count = subject.once(|subject| {
                reads.set(reads.get() + 1);
                let name = subject.once(|subject| Ok(Name(subject.object().name().to_owned())))?;
                Ok(Count(name.0.len() + subject.found.len()))
            });
            count.map(|count| count.0)
        };
        assert_eq!((ask(), ask(), reads.get()), (Ok(1), Ok(1), 1));
        pass.add(vec![]);
        assert_eq!((ask(), reads.get()), (Ok(1), 1));
        let found = |id: &str| Found { id: id.to_owned(), answer: Answer::Unserved };
        pass.add(vec![found("b"), found("a")]);
        assert_eq!((ask(), ask(), reads.get()), (Ok(3), Ok(3), 2));
        assert_eq!(pass.subject().found[0].id, "a");
    }

    #[test]
    fn a_refusal_is_not_kept() {
        let subject = testing::subject(&json!({})).build();
        let refused: Result<&u8, Refusal> = subject.once(|_| Err(refusal::invalid("spec", "is bad")));
        assert!(refused.is_err());
        assert_eq!(subject.once(|_| Ok(1_u8)), Ok(&1));
    }

    #[test]
    fn a_change_is_seen() {
        let mut subject = testing::subject(&json!({"metadata": {"name": "a"}})).build();
        assert_eq!(subject.object().name(), "a");
        r#"{"metadata":{"name":"b"}}"#.clone_into(&mut subject.object);
        assert_eq!(subject.object().name(), "b");
    }
}
