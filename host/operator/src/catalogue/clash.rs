//! Finds conflicts.
//!
//! If two packages with the same precedence claim the same place, the package with the earlier claim serves.

use kaos_policy::{
    code::World,
    settings::{Content, Path},
};
use serde_json::Value;

use super::{Given, Offer};

impl Offer {
    pub(super) fn is_overlay(&self) -> bool {
        self.member.policy.world() == World::Overlay
    }

    fn name(&self) -> &str {
        &self.member.policy.id().name
    }

    /// Returns why this policy cannot serve together with an older policy, or `None` if it can.
    pub(super) fn clash(&self, older: &Self) -> Option<String> {
        if self.of != older.of || self.member.revision == older.member.revision || self.pinned || older.pinned {
            return None;
        }
        let shown = || older.member.revision.as_deref().unwrap_or("a policy of the operator itself").to_owned();
        if self.is_overlay() || older.is_overlay() {
            let together = self.reach.places().all(|place| older.reach.holds(Some(place)))
                || older.reach.places().all(|place| self.reach.holds(Some(place)));
            return (self.name() == older.name() && (together || self.reach.meets(&older.reach))).then(|| {
                format!(
                    "{} has the same policy name and claims the same kind, {}: choose another name for the overlay",
                    shown(),
                    self.of
                )
            });
        }
        self.reach.meets(&older.reach).then(|| {
            format!(
                "{} already claims {} in the same namespaces: delete one of the two packages, or give them different \
                 scopes",
                shown(),
                self.of
            )
        })
    }
}

impl Given {
    /// Returns why these settings cannot serve together with older settings, or `None` if they can. Two equal values of
    /// a setting conflict too: otherwise a user who later changes this value would have to change it in two packages.
    pub(super) fn clash(&self, older: &Self) -> Option<String> {
        let (own, other) = (&self.tuning.layer, &older.tuning.layer);
        if own.policy != other.policy || !self.reach.meets(&older.reach) {
            return None;
        }
        let (Content::Tree(own_tree), Content::Tree(other_tree)) = (&own.content, &other.content) else { return None };
        let path = common(own_tree, other_tree, &Path::default())?;
        let policy = own.policy.as_deref().unwrap_or("every policy");
        Some(format!(
            "{} already sets `{path}` of {policy} in the same namespaces: remove the setting from one of the two \
             packages, or give them different scopes",
            older.tuning.revision
        ))
    }
}

/// Returns the first path that has a value in both trees of settings, or `None` if no path has a value in both.
/// Compares objects key by key, and all other values as a whole, as the merge of settings does.
fn common(one: &Value, other: &Value, at: &Path) -> Option<Path> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.iter().find_map(|(name, value)| common(value, other.get(name)?, &at.then(name)))
        }
        _ => Some(at.clone()),
    }
}
