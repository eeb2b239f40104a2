//! Counts the JSON values of a policy's answer before parsing it.
//!
//! A parsed value takes many times the memory of its text. One call can return eight megabytes of small objects, which
//! take most of a gigabyte after parsing. So the host limits both the bytes and the number of values in an answer, and
//! does not parse an answer above the limit.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The maximum number of values in all texts of one answer together. The objects that a policy receives have other
/// limits, which are lower.
pub(crate) const VALUES: usize = 100_000;

/// Returns whether the number of values in these texts is within the limit. Ignores texts that are not JSON, because
/// the parser reports them.
pub(crate) fn is_bounded<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> bool {
    // Each value has at least one byte, so texts with few bytes cannot have too many values.
    if texts.clone().map(str::len).sum::<usize>() <= VALUES {
        return true;
    }
    let mut count = 0;
    for text in texts {
        let _ = Count(&mut count).deserialize(&mut serde_json::Deserializer::from_str(text));
    }
    count <= VALUES
}

/// Returns the message for texts with too many values.
pub(crate) fn too_many() -> String {
    format!("more than {VALUES} JSON values in total: use fewer values")
}

/// Returns the items of a list. Returns no items if the value is not a list.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Counts values without storing them. Stops counting at the first value beyond the limit.
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
    fn values_are_counted_and_not_their_bytes() {
        let small = list(r#"{"":0}"#, VALUES / 2);
        assert!(
            !is_bounded(once(small.as_str())),
            "each item counts as an object and a number, and the list counts too"
        );
        assert!(is_bounded(once(list(r#"{"":0}"#, VALUES / 2 - 1).as_str())));
        let long = format!("\"{}\"", "[0],{}".repeat(VALUES));
        assert!(is_bounded(once(long.as_str())), "a text is one value, whatever its content");
    }

    #[test]
    fn texts_are_counted_together_and_invalid_json_up_to_its_error() {
        let half = list("0", VALUES / 2);
        assert!(is_bounded([half.as_str()].into_iter()));
        assert!(!is_bounded([half.as_str(), half.as_str()].into_iter()));
        assert!(is_bounded([half.as_str(), "no JSON", "[null, true, 1.5, -1, "].into_iter()));
        let cut_off = list("0", VALUES + 1).replace(']', "");
        assert!(!is_bounded(once(cut_off.as_str())));
        let deep = "[".repeat(2 * VALUES);
        assert!(is_bounded(once(deep.as_str())), "the parser stops at its limit of nested levels");
    }
}
