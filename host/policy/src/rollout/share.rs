//! A number, or a percentage of a total.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A number, or a percentage of a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// This number.
    Number(u64),
    /// This percentage of a total, from 0 to 100.
    Percent(u8),
}

impl Share {
    /// Returns this share of the total `all` as a number. Rounds a percentage down.
    pub fn of(self, all: u64) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => u64::try_from(u128::from(all) * u128::from(percent) / 100).unwrap_or(u64::MAX),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShareVisitor)
    }
}

struct ShareVisitor;

impl de::Visitor<'_> for ShareVisitor {
    type Value = Share;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number such as 10, or a percentage such as 5%")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Share, E> {
        Ok(Share::Number(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Share, E> {
        u64::try_from(number).map(Share::Number).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Share, E> {
        let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
        match text.strip_suffix('%') {
            Some(percent) => {
                percent.parse().ok().filter(|percent| *percent <= 100).map(Share::Percent).ok_or_else(wrong)
            }
            None => text.parse().map(Share::Number).map_err(|_| wrong()),
        }
    }
}
