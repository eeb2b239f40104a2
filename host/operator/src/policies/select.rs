//! From policies to the stack that answers for each kind.

use std::{collections::BTreeMap, sync::Arc};

use kaos_policy::{
    code::World,
    contract::ResourceType,
    describe::emitted_primary,
    policy::{Policy, Stack},
};

use super::{Origin, PolicyError};

/// The stack of each claimed kind. A policy from a file takes the place of the embedded one for the kinds that it
/// claims; an overlay lies over whatever answers, the last named on top. Nothing that one of them emits may be an object
/// for another, since from one object could then come others without end.
pub fn select(policies: &[(Origin, Arc<Policy>)]) -> Result<BTreeMap<ResourceType, Stack>, PolicyError> {
    let mut bases: BTreeMap<&ResourceType, &(Origin, Arc<Policy>)> = BTreeMap::new();
    let mut overlays: BTreeMap<&ResourceType, Vec<&(Origin, Arc<Policy>)>> = BTreeMap::new();
    for named in policies {
        let (origin, policy) = named;
        for claim in &policy.descriptor().claims {
            let of = &claim.primary;
            if policy.world() == World::EnvironmentOverlay {
                overlays.entry(of).or_default().push(named);
                continue;
            }
            match bases.insert(of, named) {
                Some((first, _)) if *first != Origin::Embedded && *origin != Origin::Embedded => {
                    let (first, second) = (first.clone(), origin.clone());
                    return Err(PolicyError::ClaimedTwice { of: of.clone(), first, second });
                }
                _ => {}
            }
        }
    }
    if let Some((of, named)) = overlays.iter().find(|(of, _)| !bases.contains_key(*of)) {
        return Err(PolicyError::NothingBelow { origin: named[0].0.clone(), of: (*of).clone() });
    }
    let claims: Vec<_> = bases.iter().filter_map(|(of, (_, policy))| policy.claim(of)).collect();
    if let Some((claim, of)) = emitted_primary(&claims) {
        let origin = bases.get(&claim.primary).map_or(Origin::Embedded, |(origin, _)| origin.clone());
        return Err(PolicyError::EmitsClaimed { origin, claimed: claim.primary.clone(), of: of.clone() });
    }
    let stack = |(of, (_, base)): (&ResourceType, &(Origin, Arc<Policy>))| {
        let over = overlays.get(of).into_iter().flatten().map(|(_, policy)| Arc::clone(policy)).collect();
        Ok((of.clone(), Stack::new(Arc::clone(base), over)?))
    };
    bases.into_iter().map(stack).collect()
}
