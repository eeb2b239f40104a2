//! A limit for an increase, as a percentage of the value before.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A percentage by which a value may rise, at most 1000%.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Increase(u16);

impl Increase {
    /// The highest percentage.
    const MAX: u16 = 1000;

    /// Returns whether a value rises by more than this percentage. A rise from 0 has no percentage, so it never exceeds
    /// the limit.
    pub fn is_exceeded(self, before: u64, after: u64) -> bool {
        let allowed = u128::from(before) * (100 + u128::from(self.0));
        before > 0 && u128::from(after) * 100 > allowed
    }
}

impl fmt::Display for Increase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl Serialize for Increase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Increase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let percent = text.strip_suffix('%').and_then(|percent| percent.parse().ok());
        percent.filter(|percent| *percent <= Self::MAX).map(Self).ok_or_else(|| {
            de::Error::invalid_value(de::Unexpected::Str(&text), &"a percentage such as 20%, at most 1000%")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_increase_is_a_percentage_of_the_value_before() {
        let increase = |text: &str| serde_json::from_value::<Increase>(text.into());
        let twenty = increase("20%").unwrap();
        assert_eq!([twenty.is_exceeded(100, 120), twenty.is_exceeded(100, 121)], [false, true]);
        assert!(!twenty.is_exceeded(0, 100), "nothing can be compared with 0");
        assert!(!twenty.is_exceeded(100, 10));
        assert!(increase("0%").unwrap().is_exceeded(u64::MAX - 1, u64::MAX));
        for wrong in ["20", "-1%", "1001%", "%", ""] {
            let error = increase(wrong).unwrap_err().to_string();
            assert!(error.contains("a percentage such as 20%"), "{wrong}: {error}");
        }
    }
}
