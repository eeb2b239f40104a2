//! Fields that a kind does not have, as an API server refuses them. Known are the kinds that the default policies make, as
//! Kubernetes of [`VERSION`] has them; of any other nothing is said.
//!
//! `fields.txt` says which fields each type has, one type a line: `name:Type` where what stands in the field, or in its
//! items, is of a type that is listed, too. `fields.py` writes it.

use std::{collections::HashMap, sync::LazyLock};

use super::{found::Found, found::quoted, place::Place};
use crate::near::nearest;

/// The version of Kubernetes whose fields are known.
pub const VERSION: &str = "1.36";

/// The fields of a type, and the types of those that have fields in turn.
type Fields = HashMap<&'static str, Option<&'static str>>;

static TYPES: LazyLock<HashMap<&'static str, Fields>> = LazyLock::new(|| {
    let field = |text: &'static str| text.split_once(':').map_or((text, None), |(name, of)| (name, Some(of)));
    let line = |line: &'static str| {
        let (name, fields) = line.split_once(' ')?;
        Some((name, fields.split(' ').map(field).collect()))
    };
    include_str!("fields.txt").lines().filter_map(line).collect()
});

/// Every field of a manifest of a kind that its type does not have.
pub(super) fn check(manifest: &Place<'_>, kind: &str, found: &mut Found) {
    walk(manifest, kind, found);
}

fn walk(at: &Place<'_>, of: &str, found: &mut Found) {
    if at.value().is_array() {
        return at.items().for_each(|item| walk(&item, of, found));
    }
    let Some(fields) = TYPES.get(of) else { return };
    for (name, value) in at.entries() {
        if found.is_full() {
            return;
        }
        match fields.get(name) {
            Some(Some(of)) => walk(&value, of, found),
            Some(None) => {}
            None => {
                let near = nearest(name, fields.keys().copied());
                let meant = near.map_or("take it out".to_owned(), |near| format!("did you mean {near}?"));
                found.add(&value, format!("Kubernetes {VERSION} has no field {} here: {meant}", quoted(name)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_is_named_is_listed() {
        for (name, fields) in TYPES.iter() {
            for of in fields.values().flatten() {
                assert!(TYPES.contains_key(of), "{of} of {name}");
            }
        }
        assert!(TYPES.len() > 100, "{}", TYPES.len());
    }

    /// What it costs every operator.
    #[test]
    fn the_table_is_small() {
        assert!(include_str!("fields.txt").len() < 16 << 10, "{}", include_str!("fields.txt").len());
    }
}
