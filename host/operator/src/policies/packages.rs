//! The packages of the policies that a process loads at startup.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use kaos_policy::{digest::Digest, manifest::PolicyFile};

use super::{Candidate, ComponentOrigin, Loaded, PolicyError, select};
use crate::{
    catalogue::DefaultPolicy,
    embedded::DEFAULTS,
    package::{Package, PolicyCode},
};

/// Returns those policies that answer for all kinds that they claim, with their packages. The parameter `files` names
/// the files of the user's policies. Leaves out overlays, policies that another policy replaces for some kinds, and
/// policies whose file changed after this process loaded them.
pub fn packages(loaded: &[Loaded], files: &[PathBuf]) -> Result<Vec<DefaultPolicy>, PolicyError> {
    let mut known: BTreeMap<Digest, (PolicyFile, PolicyCode)> = BTreeMap::new();
    for policy in DEFAULTS {
        let file = PolicyFile::parse(policy.manifest)
            .map_err(|source| PolicyError::File { path: ComponentOrigin::Embedded.to_string(), source })?;
        let code = PolicyCode::component(policy.component);
        known.insert(code.digest(), (file, code));
    }
    for file in files {
        let inner = Candidate::read(file)?.inner;
        let code = PolicyCode { form: inner.form, bytes: inner.bytes.into() };
        known.insert(code.digest(), (inner.file, code));
    }
    let stacks = select(loaded)?;
    let mut found = Vec::new();
    for Loaded { policy, .. } in loaded {
        let claims = &policy.descriptor().claims;
        let is_base =
            claims.iter().all(|claim| stacks.get(&claim.primary).is_some_and(|stack| stack.base().id() == policy.id()));
        let Some((file, code)) = known.get(&policy.id().digest).filter(|_| is_base) else { continue };
        let (name, file, component) = (policy.id().name.clone(), file.clone(), Some(code.clone()));
        let package = Arc::new(Package { name, namespace: String::new(), file, component });
        found.push(DefaultPolicy { policy: Arc::clone(policy), package });
    }
    Ok(found)
}
