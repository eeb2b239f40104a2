//! From JSON values to serde types, with the exact path in every error.
//!
//! One deserializer for all of a policy's types, so that each of them is compiled once; the path is put
//! together while an error travels up, so that it costs nothing where there is none.

mod error;

pub use error::Error;

use error::{Segment, in_words};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// `value` as a `T`. Nulls in structs count as absent, as on an API server.
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(At(value))
}

#[derive(Clone, Copy)]
struct At<'a>(&'a Value);

impl<'a> At<'a> {
    fn wrong<T>(self, wanted: &dyn Expected) -> Result<T, Error> {
        let found = match self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => {
                return Err(Error::new(format!("must be {}, not {number}", in_words(wanted))));
            }
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Other("a list"),
            Value::Object(_) => Unexpected::Other("an object"),
        };
        Err(de::Error::invalid_type(found, wanted))
    }

    fn number<V: Visitor<'a>>(number: &serde_json::Number, visitor: V) -> Result<V::Value, Error> {
        if let Some(value) = number.as_u64() {
            visitor.visit_u64(value)
        } else if let Some(value) = number.as_i64() {
            visitor.visit_i64(value)
        } else {
            visitor.visit_f64(number.as_f64().unwrap_or_default())
        }
    }

    fn map<V: Visitor<'a>>(self, visitor: V, with_nulls: bool) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(map) => visitor.visit_map(Members { rest: map.iter(), value: None, with_nulls }),
            _ => self.wrong(&visitor),
        }
    }
}

impl<'de> Deserializer<'de> for At<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => Self::number(number, visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { rest: items.iter(), next: 0 }),
            Value::Object(_) => self.map(visitor, true),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.map(visitor, false)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(Variant { name: text, content: None }),
            Value::Object(map) => match map.iter().next() {
                Some((name, content)) if map.len() == 1 => visitor.visit_enum(Variant { name, content: Some(content) }),
                _ => Err(Error::new("must have exactly one field".to_owned())),
            },
            _ => self.wrong(&visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier
    }
}

struct Items<'a> {
    rest: std::slice::Iter<'a, Value>,
    next: usize,
}

impl<'a> SeqAccess<'a> for Items<'a> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(item) = self.rest.next() else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(At(item)).map(Some).map_err(|error| error.within(Segment::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Members<'a> {
    rest: <&'a Map<String, Value> as IntoIterator>::IntoIter,
    value: Option<(&'a String, &'a Value)>,
    with_nulls: bool,
}

impl<'a> MapAccess<'a> for Members<'a> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        for (key, value) in self.rest.by_ref() {
            if self.with_nulls || !value.is_null() {
                self.value = Some((key, value));
                return seed.deserialize(StrDeserializer::new(key)).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value, Error> {
        match self.value.take() {
            Some((key, value)) => seed.deserialize(At(value)).map_err(|error| error.within(Segment::Key(key.clone()))),
            None => Err(Error::new("has no value".to_owned())),
        }
    }
}

struct Variant<'a> {
    name: &'a str,
    content: Option<&'a Value>,
}

impl<'a> EnumAccess<'a> for Variant<'a> {
    type Error = Error;
    type Variant = Content<'a>;

    fn variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<(S::Value, Content<'a>), Error> {
        let content = Content { name: self.name, content: self.content };
        seed.deserialize(StrDeserializer::new(self.name)).map(|value| (value, content))
    }
}

struct Content<'a> {
    name: &'a str,
    content: Option<&'a Value>,
}

impl<'a> Content<'a> {
    fn value(&self) -> At<'a> {
        At(self.content.unwrap_or(&Value::Null))
    }

    fn within<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.within(Segment::Key(self.name.to_owned())))
    }
}

impl<'a> VariantAccess<'a> for Content<'a> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.content {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(Error::new("takes no content".to_owned()).within(Segment::Key(self.name.to_owned()))),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<S::Value, Error> {
        self.within(seed.deserialize(self.value()))
    }

    fn tuple_variant<V: Visitor<'a>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.within(self.value().deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'a>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.within(self.value().map(visitor, false))
    }
}

#[cfg(test)]
mod tests;
