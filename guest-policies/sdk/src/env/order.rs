//! Decides which of several definitions of a variable the mapping keeps, and at which position.
//!
//! Kubernetes expands `$(NAME)` only if NAME is defined earlier, so the order of variables is part of their meaning.
//! The mapping keeps the last definition of a name. The kept definition moves to the position of the name's first
//! definition, because the variables between both definitions can refer to the name. But if the kept definition refers
//! to a variable between both definitions, it keeps its own position.

use crate::Places;
use crate::quote::references;
use alloc::vec::Vec;
use serde_json::Value;

/// Keeps one definition of each variable of an `env` array. Returns whether a variable had more than one definition.
pub fn each_once(list: &mut Vec<Value>) -> bool {
    let order = order(list.iter().map(|var| {
        let text = |field: &str| var.get(field).and_then(Value::as_str);
        text("name").map(|name| (name, text("value").unwrap_or_default()))
    }));
    let is_repeated = order.len() < list.len();
    if is_repeated {
        *list = picked(core::mem::take(list), &order);
    }
    is_repeated
}

/// Returns the indexes of the definitions to keep, in their final order. A definition is a name and a text that can
/// refer to other names. `None` stands for an item that is not a variable. Such an item keeps its position.
pub(super) fn order<'a>(definitions: impl Iterator<Item = Option<(&'a str, &'a str)>>) -> Vec<usize> {
    let mut names = Places::new();
    // The position in `all` of each name. The names have the order of their first occurrence.
    let mut stands: Vec<usize> = Vec::new();
    let mut all: Vec<Option<usize>> = Vec::new();
    for (at, definition) in definitions.enumerate() {
        if let Some((name, text)) = definition {
            if let Some(known) = names.insert(name, stands.len()) {
                let stood = stands[known];
                let is_after = |other| names.get(other).is_some_and(|other| stands[other] > stood);
                if !references(text).any(is_after) {
                    all[stood] = Some(at);
                    continue;
                }
                all[stood] = None;
                stands[known] = all.len();
            } else {
                stands.push(all.len());
            }
        }
        all.push(Some(at));
    }
    all.into_iter().flatten().collect()
}

/// Returns the items at the indexes that `order` lists, in this order.
pub(super) fn picked<T>(items: Vec<T>, order: &[usize]) -> Vec<T> {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.iter().filter_map(|at| items.get_mut(*at)?.take()).collect()
}

#[cfg(test)]
mod tests {
    use super::{each_once, order};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::collections::{BTreeMap, BTreeSet};

    fn list(vars: &[(&str, &str)]) -> Vec<Value> {
        vars.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    }

    fn settled(vars: &[(&str, &str)]) -> Vec<Value> {
        let mut list = list(vars);
        each_once(&mut list);
        list
    }

    #[test]
    fn a_variable_keeps_its_first_position_and_its_last_value() {
        assert_eq!(settled(&[("X", "1"), ("Y", "$(X)"), ("X", "2")]), list(&[("X", "2"), ("Y", "$(X)")]));
        let once = [("B", "1"), ("A", "$(B)")];
        assert_eq!(settled(&once), list(&once));
        assert!(!each_once(&mut list(&once)));
    }

    #[test]
    fn a_variable_moves_behind_the_one_that_its_value_refers_to() {
        assert_eq!(settled(&[("X", "1"), ("Y", "2"), ("X", "$(Y)!")]), list(&[("Y", "2"), ("X", "$(Y)!")]));
        let escaped = [("X", "1"), ("Y", "2"), ("X", "$$(Y)!")];
        assert_eq!(settled(&escaped), list(&[("X", "$$(Y)!"), ("Y", "2")]));
        let itself = [("X", "1"), ("Y", "2"), ("X", "$(X)$(Z)")];
        assert_eq!(settled(&itself), list(&[("X", "$(X)$(Z)"), ("Y", "2")]));
    }

    #[test]
    fn entries_without_a_name_stay() {
        let mut odd = vec![json!({"name": "A"}), json!(5), json!({"name": "A", "value": "1"}), json!(5)];
        assert!(each_once(&mut odd));
        assert_eq!(odd, [json!({"name": "A", "value": "1"}), json!(5), json!(5)]);
    }

    proptest! {
        #[test]
        fn each_name_stays_once_with_its_last_definition(
            names in prop::collection::vec("[A-D]", 0..12),
            texts in prop::collection::vec("(\\$\\([A-D]\\)|x){0,2}", 12),
        ) {
            let last: BTreeMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
            let stays = order(names.iter().zip(&texts).map(|(name, text)| Some((name.as_str(), text.as_str()))));
            prop_assert_eq!(stays.iter().collect::<BTreeSet<_>>(), last.values().collect::<BTreeSet<_>>());
            prop_assert_eq!(stays.len(), last.len());
        }
    }
}
