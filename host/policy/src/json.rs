//! JSON of a policy's answer, counted before any of it is made into values.
//!
//! A value takes many times the room of its text: of eight megabytes, which one call may hand back, small objects become
//! most of a gigabyte. So an answer is bounded in values as it is in bytes, and an answer beyond that is not read.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Values that all texts of one answer may have together: more than an object and all that is shown beside it may have.
pub(crate) const VALUES: usize = 100_000;

/// Whether these texts have so few values together that they may be read. What else is wrong with one of them is for
/// whoever reads it.
pub(crate) fn is_bounded<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> bool {
    // Each value has a byte at least: an ordinary answer takes no second look.
    if texts.clone().map(str::len).sum::<usize>() <= VALUES {
        return true;
    }
    let mut count = 0;
    for text in texts {
        let _ = Count(&mut count).deserialize(&mut serde_json::Deserializer::from_str(text));
    }
    count <= VALUES
}

/// What is told of texts that have more.
pub(crate) fn too_many() -> String {
    format!("more than {VALUES} values of JSON in all: say less, or in longer texts")
}

/// The items of a list; none, if it is no list.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Counts values, and makes none of them; up to one too many.
struct Count<'a>(&'a mut usize);

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if *self.0 > VALUES {
            return Err(D::Error::custom("too many values"));
        }
        *self.0 += 1;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Count(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while fields.next_key::<IgnoredAny>()?.is_some() {
            fields.next_value_seed(Count(&mut *self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::iter::once;

    use super::*;

    fn list(of: &str, count: usize) -> String {
        format!("[{}]", vec![of; count].join(","))
    }

    #[test]
    fn small_values_are_counted_and_not_their_bytes() {
        let small = list(r#"{"":0}"#, VALUES / 2);
        assert!(!is_bounded(once(small.as_str())), "as many objects, as many numbers, and the list");
        assert!(is_bounded(once(list(r#"{"":0}"#, VALUES / 2 - 1).as_str())));
        let long = format!("\"{}\"", "[0],{}".repeat(VALUES));
        assert!(is_bounded(once(long.as_str())), "a text is one value, whatever stands in it");
    }

    #[test]
    fn texts_are_counted_together_and_what_is_no_json_as_far_as_it_goes() {
        let half = list("0", VALUES / 2);
        assert!(is_bounded([half.as_str()].into_iter()));
        assert!(!is_bounded([half.as_str(), half.as_str()].into_iter()));
        assert!(is_bounded([half.as_str(), "no JSON", "[null, true, 1.5, -1, "].into_iter()));
        let cut_off = list("0", VALUES + 1).replace(']', "");
        assert!(!is_bounded(once(cut_off.as_str())));
        let deep = "[".repeat(2 * VALUES);
        assert!(is_bounded(once(deep.as_str())), "who reads it stops as early");
    }
}
