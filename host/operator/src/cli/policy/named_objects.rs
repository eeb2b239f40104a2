//! Names a few of many objects in a message.

/// The maximum number of objects that a message names.
const NAMED: usize = 3;

/// Joins the texts about the first [`NAMED`] objects, and adds the number of the other objects.
pub(super) fn named_objects(objects: &[String]) -> String {
    let named = objects.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    match objects.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_three_objects_and_counts_the_others() {
        let objects = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(named_objects(&objects[..1]), "a");
        assert_eq!(named_objects(&objects[..3]), "a; b; c");
        assert_eq!(named_objects(&objects), "a; b; c; and 2 more");
    }
}
