//! Finds fields in a manifest that the manifest's kind does not have. An API server would refuse such a field. This
//! module knows the kinds that the default policies emit, as Kubernetes [`VERSION`] defines them. The module ignores
//! other kinds.
//!
//! Each line of `fields.txt` lists the fields of one type. `name:Type` means that the value of the field `name`, or
//! each item of the value, has the type `Type`. Another line lists the fields of `Type`. `fields.py` generates
//! `fields.txt`.

use std::{collections::HashMap, sync::LazyLock};

use super::{found::Findings, found::quoted, manifest_value::ManifestValue};
use crate::near::nearest;

/// The version of Kubernetes from which the fields in `fields.txt` come.
pub const VERSION: &str = "1.36";

/// The fields of a type. If a field's value has fields too, the entry contains the name of the value's type.
type Fields = HashMap<&'static str, Option<&'static str>>;

static TYPES: LazyLock<HashMap<&'static str, Fields>> = LazyLock::new(|| {
    let field = |text: &'static str| text.split_once(':').map_or((text, None), |(name, of)| (name, Some(of)));
    let line = |line: &'static str| {
        let (name, fields) = line.split_once(' ')?;
        Some((name, fields.split(' ').map(field).collect()))
    };
    include_str!("fields.txt").lines().filter_map(line).collect()
});

/// Reports every field in a manifest that the manifest's kind does not have.
pub(super) fn check(manifest: &ManifestValue<'_>, kind: &str, found: &mut Findings) {
    walk(manifest, kind, found);
}

fn walk(at: &ManifestValue<'_>, of: &str, found: &mut Findings) {
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
                let meant = near.map_or("remove it".to_owned(), |near| format!("did you mean {near}?"));
                found.add(&value, format!("Kubernetes {VERSION} has no field {} here: {meant}", quoted(name)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_referenced_type_is_listed() {
        for (name, fields) in TYPES.iter() {
            for of in fields.values().flatten() {
                assert!(TYPES.contains_key(of), "{of} of {name}");
            }
        }
        assert!(TYPES.len() > 100, "{}", TYPES.len());
    }

    /// The table must be small, because every operator keeps the table in memory.
    #[test]
    fn the_table_is_small() {
        assert!(include_str!("fields.txt").len() < 16 << 10, "{}", include_str!("fields.txt").len());
    }
}
