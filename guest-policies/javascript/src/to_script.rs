//! Writes records of the contract as JSON text for the script. JSON text in a field becomes a JSON value.

use serde::ser::{Error as _, Impossible, Serialize, SerializeSeq, SerializeStruct, SerializeTuple, Serializer};

use crate::{
    fields::JSON,
    names::{camel, kebab},
};

/// Returns a value of the contract as JSON text, with the names that fields have in the script.
pub(crate) fn text<T: Serialize>(value: &T) -> Result<String, Error> {
    let mut text = String::new();
    value.serialize(Writer { text: &mut text, is_json: false })?;
    Ok(text)
}

/// An error of the serializer. No value of the contract causes it.
#[derive(Debug)]
pub(crate) struct Error(pub(crate) String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl serde::ser::Error for Error {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

struct Writer<'a> {
    text: &'a mut String,
    /// Whether texts are already JSON, so that no quotes are necessary.
    is_json: bool,
}

/// Writes the members of a record or a list.
struct Members<'a> {
    text: &'a mut String,
    of: &'static str,
    is_json: bool,
    is_first: bool,
}

impl Members<'_> {
    fn next(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.text.push(',');
        }
    }
}

fn quoted(text: &mut String, value: &str) -> Result<(), Error> {
    text.push_str(&serde_json::to_string(value).map_err(Error::custom)?);
    Ok(())
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'a>;
    type SerializeTuple = Members<'a>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Impossible<(), Error>;

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if self.is_json {
            self.text.push_str(value);
            return Ok(());
        }
        quoted(self.text, value)
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.text.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.text.push_str("null");
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, name: &'static str, _: u32, case: &'static str) -> Result<(), Error> {
        if crate::fields::ENUMS.contains(&name) {
            return quoted(self.text, &kebab(case));
        }
        self.text.push_str("{\"tag\":");
        quoted(self.text, &kebab(case))?;
        self.text.push('}');
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        case: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.text.push_str("{\"tag\":");
        quoted(self.text, &kebab(case))?;
        self.text.push_str(",\"val\":");
        value.serialize(Writer { text: self.text, is_json: is_json(name, case) })?;
        self.text.push('}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        self.text.push('[');
        Ok(Members { text: self.text, of: "", is_json: self.is_json, is_first: true })
    }

    fn serialize_tuple(self, length: usize) -> Result<Members<'a>, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'a>, Error> {
        self.text.push('{');
        Ok(Members { text: self.text, of: name, is_json: false, is_first: true })
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.text.push_str(&value.to_string());
        Ok(())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.text.push_str(&value.to_string());
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_f32(self, _: f32) -> Result<(), Error> {
        Err(no("fractions"))
    }

    fn serialize_f64(self, _: f64) -> Result<(), Error> {
        Err(no("fractions"))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Error> {
        Err(no("bytes"))
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Err(no("units"))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        Err(no("units"))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<(), Error> {
        Err(no("newtypes"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Error> {
        Err(no("tuple structs"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(no("tuple variants"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        Err(no("maps"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Err(no("struct variants"))
    }
}

fn no(what: &str) -> Error {
    Error(format!("the contract has no {what}"))
}

/// Returns whether a field or case of the contract contains JSON text.
pub(crate) fn is_json(record: &str, field: &str) -> bool {
    let is = |entry: &&str| entry.split_once('.') == Some((record, field));
    JSON.iter().any(|entry| is(&entry))
}

impl SerializeSeq for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.next();
        value.serialize(Writer { text: self.text, is_json: self.is_json })
    }

    fn end(self) -> Result<(), Error> {
        self.text.push(']');
        Ok(())
    }
}

impl SerializeTuple for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<(), Error> {
        SerializeSeq::end(self)
    }
}

impl SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) -> Result<(), Error> {
        let (before, was_first) = (self.text.len(), self.is_first);
        self.next();
        quoted(self.text, &camel(field))?;
        self.text.push(':');
        let start = self.text.len();
        value.serialize(Writer { text: self.text, is_json: is_json(self.of, field) })?;
        // Leave out a member that has no value.
        if self.text.get(start..) == Some("null") {
            self.text.truncate(before);
            self.is_first = was_first;
        }
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        self.text.push('}');
        Ok(())
    }
}
