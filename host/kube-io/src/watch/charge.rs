//! Checks whether the limits of a namespace allow the new needs of an object.

use std::collections::BTreeSet;

use kaos_objects::{Followed, Target};

use super::{
    allowance::{Allowance, TooMany, Used},
    selected,
    state::State,
};
use crate::object_key::{ObjectKey, Wakes};

/// Checks the new needs of an object against the limits of its namespace. Needs in other namespaces do not count: they
/// require a grant, so they are few. If the new needs of an object are not more than its old needs, always accepts
/// them.
pub(super) fn allow(state: &mut State, key: &ObjectKey, needs: &BTreeSet<Followed>) -> Result<(), TooMany> {
    let targets: BTreeSet<&Target> = needs.iter().map(|need| &need.target).collect();
    let here = |target: &&Target| target.namespace() == Some(&*key.namespace);
    let is_new = |target: &&Target| state.needs.who(target).next().is_none();
    let is_freed = |target: &&Target| !targets.contains(target) && state.needs.who(target).all(|other| other == key);
    let more = Used::of(targets.iter().copied().filter(here).filter(is_new));
    let less = Used::of(state.needs.of_key(key).filter(here).filter(is_freed));
    let used = state.ledger.used.get(&key.namespace).copied().unwrap_or_default();
    let Allowance { needs, selectors } = state.allowance;
    for (what, used, more, less, most) in [
        ("label selectors", used.selectors, more.selectors, less.selectors, selectors),
        ("objects and label selectors", used.needs, more.needs, less.needs, needs),
    ] {
        let wanted = used.saturating_sub(less) + more;
        if more > less && wanted > most {
            state.ledger.refused.entry(key.namespace.clone()).or_default().insert(key.clone());
            return Err(TooMany { namespace: key.namespace.clone(), what, wanted, most });
        }
    }
    if let Some(refused) = state.ledger.refused.get_mut(&key.namespace) {
        refused.remove(key);
        if refused.is_empty() {
            state.ledger.refused.remove(&key.namespace);
        }
    }
    Ok(())
}

/// Replaces the needs of an object if the limits allow the new needs. Returns whether the set of needed targets
/// changed. Also returns the objects that the limit refused earlier and whose needs may fit now.
pub(super) fn set_needs(
    state: &mut State,
    key: &ObjectKey,
    needs: BTreeSet<Followed>,
) -> Result<(bool, Wakes), TooMany> {
    allow(state, key, &needs)?;
    let changed = state.needs.set(key, needs);
    let mut wakes = Wakes::new();
    for target in &changed {
        wakes.extend(state.ledger.note(target, &state.needs));
    }
    selected::needs_changed(state, &changed);
    Ok((!changed.is_empty(), wakes))
}
