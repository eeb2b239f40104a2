//! Converts a script's value to a record of the contract. Every error has the path of the wrong value, and a remedy.

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor, value::StrDeserializer,
};
use serde_json::{Map, Value};

use crate::{
    fields::{EMPTY, ENUMS, REQUIRED},
    names::{camel, kebab},
    plain::Wrong,
    to_script::is_json,
};

/// Returns `value` as a record of the contract. `value` is `None` if the script returned no value.
pub(crate) fn record<T: DeserializeOwned>(value: Option<&Value>) -> Result<T, Wrong> {
    T::deserialize(Answer { value, place: WitField::default() })
}

/// A value of the script, and the field or case of the contract to which the value belongs.
#[derive(Clone, Copy)]
struct Answer<'a> {
    value: Option<&'a Value>,
    place: WitField,
}

/// The field of a record (`of`), or the case of a variant (`of`), to which a value belongs.
#[derive(Clone, Copy, Default)]
struct WitField {
    of: &'static str,
    field: &'static str,
}

impl WitField {
    fn is_in(self, table: &[&str]) -> bool {
        table.iter().any(|entry| entry.split_once('.') == Some((self.of, self.field)))
    }

    fn is_json(self) -> bool {
        is_json(self.of, self.field)
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Wrong {}

impl serde::de::Error for Wrong {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl Answer<'_> {
    fn expected(&self, what: &str) -> Wrong {
        let is = match self.value {
            None => return Wrong::new(format!("is missing: write {what}")),
            Some(Value::Null) => "null",
            Some(Value::Bool(_)) => "a Boolean",
            Some(Value::Number(_)) => "a number",
            Some(Value::String(_)) => "a text",
            Some(Value::Array(_)) => "a list",
            Some(Value::Object(_)) => "an object",
        };
        Wrong::new(format!("is {is}: write {what}"))
    }
}

impl<'de> Deserializer<'de> for Answer<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::new("has a type that the contract does not have"))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.place.is_json() {
            return match self.value {
                Some(value) => visitor.visit_string(value.to_string()),
                None if self.place.is_in(&EMPTY) => visitor.visit_str("{}"),
                None => Err(self.expected("an object")),
            };
        }
        match self.value {
            Some(Value::String(text)) => visitor.visit_str(text),
            _ => Err(self.expected("a text")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            Some(Value::Bool(value)) => visitor.visit_bool(*value),
            None if !self.place.is_in(&REQUIRED) => visitor.visit_bool(false),
            _ => Err(self.expected("true or false")),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value.and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok()) {
            Some(number) => visitor.visit_u32(number),
            None => Err(self.expected("a whole number from 0")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            None | Some(Value::Null) => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let list: &[Value] = match self.value {
            Some(Value::Array(list)) => list,
            None if !self.place.is_in(&REQUIRED) => &[],
            _ => return Err(self.expected("a list")),
        };
        visitor.visit_seq(Items { list, at: 0, place: self.place })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            Some(Value::Array(list)) if list.len() == length => {
                visitor.visit_seq(Items { list, at: 0, place: self.place })
            }
            _ => Err(self.expected(&format!("a list of {length} texts"))),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let Some(Value::Object(members)) = self.value else { return Err(self.expected("an object")) };
        let names: Vec<String> = fields.iter().map(|field| camel(field)).collect();
        if let Some(other) = members.keys().find(|key| !names.contains(key)) {
            let problem =
                format!("is not a field of this record: remove the field, or use one of {}", names.join(", "));
            return Err(Wrong::new(problem).below(other));
        }
        visitor.visit_map(Members { members, fields, names: &names, at: 0, of: name })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        cases: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let names: Vec<String> = cases.iter().map(|case| kebab(case)).collect();
        let form = if ENUMS.contains(&name) {
            format!("one of the texts {}", names.join(", "))
        } else {
            format!("{{tag, val}} with one of the tags {}", names.join(", "))
        };
        let (tag, val) = match self.value {
            Some(Value::String(tag)) if ENUMS.contains(&name) => (tag, None),
            Some(Value::Object(members)) => match members.get("tag") {
                Some(Value::String(tag)) => (tag, members.get("val")),
                _ => return Err(self.expected(&form)),
            },
            _ => return Err(self.expected(&form)),
        };
        let Some(at) = names.iter().position(|name| name == tag) else {
            return Err(Wrong::new(format!("has the unknown tag {tag:?}: write {form}")));
        };
        let case = cases.get(at).copied().unwrap_or_default();
        visitor.visit_enum(Case { case, value: val, of: name })
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct newtype_struct
        tuple_struct map identifier ignored_any
    }
}

struct Items<'a> {
    list: &'a [Value],
    at: usize,
    place: WitField,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some(value) = self.list.get(self.at) else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        let answer = Answer { value: Some(value), place: self.place };
        seed.deserialize(answer).map(Some).map_err(|wrong| wrong.below_item(at))
    }
}

/// Visits all fields of a record, in the order of the contract. A field that the script omitted has no value.
struct Members<'a> {
    members: &'a Map<String, Value>,
    fields: &'static [&'static str],
    names: &'a [String],
    at: usize,
    of: &'static str,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let Some(field) = self.fields.get(self.at) else { return Ok(None) };
        let key: StrDeserializer<'_, Wrong> = (*field).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let (Some(field), Some(name)) = (self.fields.get(self.at), self.names.get(self.at)) else {
            return Err(Wrong::custom("a record has no further field"));
        };
        self.at += 1;
        let answer = Answer { value: self.members.get(name), place: WitField { of: self.of, field } };
        seed.deserialize(answer).map_err(|wrong| wrong.below(name))
    }
}

/// A case of a variant or an enum, with its value.
struct Case<'a> {
    case: &'static str,
    value: Option<&'a Value>,
    of: &'static str,
}

impl<'de, 'a> EnumAccess<'de> for Case<'a> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Wrong> {
        let case: StrDeserializer<'_, Wrong> = self.case.into_deserializer();
        Ok((seed.deserialize(case)?, self))
    }
}

impl<'de> VariantAccess<'de> for Case<'_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        match self.value {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(Wrong::new("this tag has no value: remove `val`").below("val")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        let place = WitField { of: self.of, field: self.case };
        seed.deserialize(Answer { value: self.value, place }).map_err(|wrong| wrong.below("val"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::custom("the contract has no tuple variants"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::custom("the contract has no struct variants"))
    }
}
