//! Selects the stack of policies for each kind.

use std::{collections::BTreeMap, sync::Arc};

use kaos_policy::{code::World, contract::ResourceType, describe::emitted_primary, policy::Stack};

use super::{ComponentOrigin, Loaded, PolicyError};

/// Returns the stack for each claimed kind. A policy from a file replaces the embedded policy for the kinds that it
/// claims. Overlays apply over these policies, in the order in which the user named them. Refuses a policy that emits a
/// kind that another policy claims: otherwise objects could create further objects without end.
pub fn select(policies: &[Loaded]) -> Result<BTreeMap<ResourceType, Stack>, PolicyError> {
    let mut bases: BTreeMap<&ResourceType, &Loaded> = BTreeMap::new();
    let mut overlays: BTreeMap<&ResourceType, Vec<&Loaded>> = BTreeMap::new();
    for loaded in policies {
        for claim in &loaded.policy.descriptor().claims {
            let of = &claim.primary;
            if loaded.policy.world() == World::Overlay {
                overlays.entry(of).or_default().push(loaded);
                continue;
            }
            match bases.insert(of, loaded) {
                Some(first)
                    if first.origin != ComponentOrigin::Embedded && loaded.origin != ComponentOrigin::Embedded =>
                {
                    let (first, second) = (first.origin.clone(), loaded.origin.clone());
                    return Err(PolicyError::ClaimedTwice { of: of.clone(), first, second });
                }
                _ => {}
            }
        }
    }
    if let Some((of, over)) = overlays.iter().find(|(of, _)| !bases.contains_key(*of)) {
        return Err(PolicyError::NothingBelow { origin: over[0].origin.clone(), of: (*of).clone() });
    }
    let claims: Vec<_> = bases.iter().filter_map(|(of, base)| base.policy.claim(of)).collect();
    if let Some((claim, of)) = emitted_primary(&claims) {
        let origin = bases.get(&claim.primary).map_or(ComponentOrigin::Embedded, |base| base.origin.clone());
        return Err(PolicyError::EmitsClaimed { origin, claimed: claim.primary.clone(), of: of.clone() });
    }
    let stack = |(of, base): (&ResourceType, &Loaded)| {
        let over = overlays.get(of).into_iter().flatten().map(|loaded| Arc::clone(&loaded.policy)).collect();
        Ok((of.clone(), Stack::new(Arc::clone(&base.policy), over)?))
    };
    bases.into_iter().map(stack).collect()
}
