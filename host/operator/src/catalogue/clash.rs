//! What may not serve beside what: of two packages that claim the same place with the same right, the
//! one stays that claimed it first.

use kaos_policy::{
    code::World,
    settings::{Content, Path},
};
use serde_json::Value;

use super::{Given, Offer};

impl Offer {
    /// Whether it lies over what answers.
    pub(super) fn is_overlay(&self) -> bool {
        self.member.policy.world() == World::EnvironmentOverlay
    }

    fn name(&self) -> &str {
        &self.member.policy.id().name
    }

    /// Why it cannot serve beside an older one.
    pub(super) fn clash(&self, older: &Self) -> Option<String> {
        if self.of != older.of || self.member.revision == older.member.revision || self.pinned || older.pinned {
            return None;
        }
        let shown = || older.member.revision.as_deref().unwrap_or("a policy of the operator itself").to_owned();
        if self.is_overlay() || older.is_overlay() {
            let together = self.reach.places().all(|place| older.reach.holds(Some(place)))
                || older.reach.places().all(|place| self.reach.holds(Some(place)));
            return (self.name() == older.name() && (together || self.reach.meets(&older.reach)))
                .then(|| format!("{} has the same name for {}: give the overlay a name of its own", shown(), self.of));
        }
        self.reach.meets(&older.reach).then(|| {
            format!(
                "{} holds the same place for {} and claimed it first: delete one of the two, or give them scopes",
                shown(),
                self.of
            )
        })
    }
}

impl Given {
    /// Why these settings cannot hold beside older ones. Equal values clash too: whoever changes one of them later must
    /// not have to find the other.
    pub(super) fn clash(&self, older: &Self) -> Option<String> {
        let (own, other) = (&self.tuning.layer, &older.tuning.layer);
        if own.policy != other.policy || !self.reach.meets(&older.reach) {
            return None;
        }
        let (Content::Tree(own_tree), Content::Tree(other_tree)) = (&own.content, &other.content) else { return None };
        let path = common(own_tree, other_tree, &Path::default())?;
        let policy = own.policy.as_deref().unwrap_or("every policy");
        Some(format!(
            "{} sets `{path}` of {policy} in the same place and did first: take it out of one of the two, or give them scopes",
            older.tuning.revision
        ))
    }
}

/// The first value that both say something about, as settings are merged: objects by their keys, everything else whole.
fn common(one: &Value, other: &Value, at: &Path) -> Option<Path> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.iter().find_map(|(name, value)| common(value, other.get(name)?, &at.then(name)))
        }
        _ => Some(at.clone()),
    }
}
