//! Reads JSON values into types that derive serde's `Deserialize`. Each error has a path, and the same wording as the
//! errors of `Decode`.
//!
//! Types that derive `Decode` make smaller components. But `Deserialize` has more attributes (`flatten`, `untagged`,
//! `with`), and many types of other crates already derive it.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString as _},
};
use core::fmt::{self, Display};
use kaos_decode::Error;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer as _, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value, map};

/// Reads `value` into a `T`. Treats a null in a struct as absent, as an API server does.
pub(crate) fn from_value<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<T, Error> {
    T::deserialize(At(value)).map_err(|wrong| wrong.0)
}

/// A value to read.
#[derive(Clone, Copy)]
struct At<'a>(&'a Value);

/// Wraps an error to implement serde's error trait.
#[derive(Debug)]
struct Wrong(Error);

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: Display>(message: T) -> Self {
        Self(Error::new(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        mismatch(found, wanted)
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        mismatch(found, wanted)
    }

    fn unknown_variant(found: &str, wanted: &'static [&'static str]) -> Self {
        let found = kaos_decode::shown(found, kaos_decode::SHOWN);
        Self::custom(format_args!("must be one of {}, not \"{found}\"", wanted.join(", ")))
    }

    fn unknown_field(name: &str, wanted: &'static [&'static str]) -> Self {
        Self::custom(format_args!("is not a field: use one of {}", wanted.join(", "))).in_member(name)
    }

    fn missing_field(name: &'static str) -> Self {
        Self::custom("is required").in_member(name)
    }
}

/// Returns the error for a value of a wrong type, with the wording of `Decode`.
fn mismatch(found: Unexpected<'_>, wanted: &dyn Expected) -> Wrong {
    let wanted = match wanted.to_string().as_str() {
        "u8" => whole(&u8::MIN, &u8::MAX),
        "u16" => whole(&u16::MIN, &u16::MAX),
        "u32" => whole(&u32::MIN, &u32::MAX),
        "u64" | "usize" => whole(&u64::MIN, &u64::MAX),
        "i8" => whole(&i8::MIN, &i8::MAX),
        "i16" => whole(&i16::MIN, &i16::MAX),
        "i32" => whole(&i32::MIN, &i32::MAX),
        "i64" | "isize" => whole(&i64::MIN, &i64::MAX),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" => "an object".to_owned(),
        "a sequence" => "a list".to_owned(),
        other if other.starts_with("struct ") => "an object".to_owned(),
        other => other.to_owned(),
    };
    match found {
        Unexpected::Map => de::Error::custom(format_args!("must be {wanted}, not an object")),
        Unexpected::Seq => de::Error::custom(format_args!("must be {wanted}, not a list")),
        Unexpected::Unit => de::Error::custom(format_args!("must be {wanted}, not null")),
        Unexpected::Str(text) => {
            let text = kaos_decode::shown(text, kaos_decode::SHOWN);
            de::Error::custom(format_args!("must be {wanted}, not string \"{text}\""))
        }
        found => de::Error::custom(format_args!("must be {wanted}, not {found}")),
    }
}

fn whole(least: &dyn Display, most: &dyn Display) -> String {
    format!("a whole number from {least} to {most}")
}

impl Wrong {
    fn in_member(self, name: &str) -> Self {
        Self(self.0.in_member(name))
    }
}

impl<'a> At<'a> {
    fn object<V: Visitor<'a>>(
        object: &'a Map<String, Value>,
        skips_nulls: bool,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_map(Members { rest: object.iter(), skips_nulls, last: None })
    }
}

impl<'de> Deserializer<'de> for At<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (.., number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { rest: items.iter(), at: 0 }),
            Value::Object(object) => Self::object(object, false, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.0 {
            Value::Object(object) => Self::object(object, true, visitor),
            other => Err(Wrong(Error::mismatch("an object", other))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.0 {
            Value::String(case) => visitor.visit_enum(Case { case, content: None }),
            Value::Object(object) if object.len() == 1 => {
                let (case, content) = object.iter().next().ok_or_else(|| de::Error::custom("must have one member"))?;
                visitor.visit_enum(Case { case, content: Some(content) })
            }
            other => Err(Wrong(Error::mismatch("a string or an object with one member", other))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct Items<'a> {
    rest: core::slice::Iter<'a, Value>,
    at: usize,
}

impl<'a> SeqAccess<'a> for Items<'a> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some(item) = self.rest.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        seed.deserialize(At(item)).map(Some).map_err(|wrong| Wrong(wrong.0.in_item(at)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Members<'a> {
    rest: map::Iter<'a>,
    skips_nulls: bool,
    last: Option<(&'a str, &'a Value)>,
}

impl<'a> MapAccess<'a> for Members<'a> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let skips_nulls = self.skips_nulls;
        let Some((name, member)) = self.rest.find(|(_, member)| !(skips_nulls && member.is_null())) else {
            return Ok(None);
        };
        self.last = Some((name, member));
        seed.deserialize(Key(name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        let (name, member) =
            self.last.take().ok_or_else(|| de::Error::custom("the name of a member must be read before its value"))?;
        seed.deserialize(At(member)).map_err(|wrong| wrong.in_member(name))
    }
}

/// The name of a member.
struct Key<'a>(&'a str);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_enum(Case { case: self.0, content: None })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// A case of an enum, with its content.
struct Case<'a> {
    case: &'a str,
    content: Option<&'a Value>,
}

impl<'a> EnumAccess<'a> for Case<'a> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Self), Wrong> {
        let name: StrDeserializer<'_, Wrong> = self.case.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'a> Case<'a> {
    fn content(&self) -> Result<At<'a>, Wrong> {
        let missing = || de::Error::custom(format_args!("must be an object with the member {}", self.case));
        self.content.map(At).ok_or_else(missing)
    }
}

impl<'a> VariantAccess<'a> for Case<'a> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        match self.content {
            None | Some(Value::Null) => Ok(()),
            Some(other) => Err(Wrong(Error::mismatch("empty", other)).in_member(self.case)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Wrong> {
        seed.deserialize(self.content()?).map_err(|wrong| wrong.in_member(self.case))
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.content()?.deserialize_any(visitor).map_err(|wrong| wrong.in_member(self.case))
    }

    fn struct_variant<V: Visitor<'a>>(self, names: &'static [&'static str], visitor: V) -> Result<V::Value, Wrong> {
        self.content()?.deserialize_struct("", names, visitor).map_err(|wrong| wrong.in_member(self.case))
    }
}

#[cfg(test)]
mod tests {
    use super::from_value;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", default, deny_unknown_fields)]
    struct Spec {
        replicas: u32,
        image_name: Option<String>,
        share: f64,
        env: Vec<Variable>,
        labels: BTreeMap<String, String>,
        mode: Mode,
        size: Size,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Variable {
        name: String,
    }

    #[derive(Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Mode {
        #[default]
        Fast,
        Exact(i8),
        Both(u8, u8),
        Given {
            by: String,
        },
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(untagged)]
    enum Size {
        #[default]
        None,
        Bytes(u64),
        Text(String),
    }

    fn refused(spec: &Value) -> String {
        from_value::<Spec>(spec).unwrap_err().to_string()
    }

    #[test]
    fn types_that_derive_deserialize_are_read() {
        let read: Spec = from_value(&json!({
            "replicas": 3, "imageName": null, "share": 0.5, "env": [{"name": "A"}], "labels": {"a": "b"},
            "mode": {"Exact": -1}, "size": "1Gi",
        }))
        .unwrap();
        assert_eq!((read.replicas, read.image_name, read.mode), (3, None, Mode::Exact(-1)));
        assert_eq!((read.env[0].name.as_str(), read.labels["a"].as_str()), ("A", "b"));
        assert_eq!(read.size, Size::Text("1Gi".to_owned()));
        let modes = [("Fast".into(), Mode::Fast), (json!({"Both": [1, 2]}), Mode::Both(1, 2))];
        for (text, mode) in modes {
            assert_eq!(from_value::<Mode>(&text).unwrap(), mode);
        }
        assert_eq!(from_value::<Mode>(&json!({"Given": {"by": "x"}})).unwrap(), Mode::Given { by: "x".to_owned() });
        assert_eq!(from_value::<BTreeMap<Mode, u8>>(&json!({"Fast": 1})).unwrap(), BTreeMap::from([(Mode::Fast, 1)]));
    }

    #[test]
    fn a_null_is_absent_in_a_struct() {
        assert_eq!(from_value::<Spec>(&json!({"replicas": null, "env": null})).unwrap(), Spec::default());
    }

    #[test]
    fn an_error_has_the_path_and_names_the_wanted_type() {
        assert_eq!(
            refused(&json!({"env": [{"name": "A"}, {"name": 1}]})),
            "env[1].name: must be a string, not integer `1`"
        );
        assert_eq!(refused(&json!({"env": [{}]})), "env[0].name: is required");
        assert_eq!(refused(&json!({"labels": {"a.b": {}}})), "labels[\"a.b\"]: must be a string, not an object");
        assert!(refused(&json!({"replica": 1})).starts_with("replica: is not a field: use one of replicas, imageName"));
        assert_eq!(refused(&json!({"mode": "Slow"})), "mode: must be one of Fast, Exact, Both, Given, not \"Slow\"");
        assert_eq!(refused(&json!({"mode": "Exact"})), "mode: must be an object with the member Exact");
        assert_eq!(refused(&json!({"mode": {"Given": {"by": 1}}})), "mode.Given.by: must be a string, not integer `1`");
        assert_eq!(refused(&json!({"mode": {"Fast": 1}})), "mode.Fast: must be empty, not integer `1`");
        assert_eq!(
            refused(&json!({"mode": 1})),
            "mode: must be a string or an object with one member, not integer `1`"
        );
        assert_eq!(
            refused(&json!({"replicas": -1})),
            "replicas: must be a whole number from 0 to 4294967295, not integer `-1`"
        );
        assert_eq!(refused(&json!({"share": "x"})), "share: must be a number, not string \"x\"");
        assert_eq!(refused(&json!({"env": {}})), "env: must be a list, not an object");
        assert_eq!(refused(&json!([])), ": must be an object, not a list");
        assert_eq!(refused(&json!({"env": [[]]})), "env[0]: must be an object, not a list");
    }
}
