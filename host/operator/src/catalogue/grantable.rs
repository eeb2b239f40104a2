//! The limits for the grants and claims of installed policies. The owner sets the limits with flags. The limits do not
//! apply to policies that the process loaded at startup. This module does not check privileges that come from settings.
//! The guard checks these privileges in each plan, because only the plan shows which child gets the privileges.

use std::{collections::BTreeSet, fmt};

use kaos_policy::{
    contract::{Claim, ResourceType},
    describe::{is_built_in, is_protection},
    manifest::{Grants, Privilege},
};

use super::tenancy::{NOT_GRANTED, Overreach};
use crate::{group_kind::GroupKind, watch::is_guarded};

/// The limits for the grants and claims of installed policies. A field that is `None` allows everything for which the
/// operator has rights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grantable {
    /// Privileged fields that a policy can set although the user did not write them. `None` allows all privileged
    /// fields.
    pub privileges: Option<BTreeSet<Privilege>>,
    /// Kinds that plans can contain. `None` allows all kinds.
    pub emits: Option<BTreeSet<GroupKind>>,
    /// Kinds that policies can read in addition to the kinds that they answer for. `None` allows all kinds.
    pub reads: Option<BTreeSet<GroupKind>>,
}

impl Grantable {
    /// Checks that a `policy.yaml` grants nothing beyond the limits.
    pub(crate) fn covers_grants(&self, grants: &Grants) -> Result<(), Overreach> {
        let privileges = grants.privileges.iter().copied();
        covers(self.privileges.as_ref(), privileges, "grants.privileges", "--grantable-privileges")?;
        let reads = grants.reads.iter().map(|grant| GroupKind::from(&grant.of()));
        covers(self.reads.as_ref(), reads, "grants.reads", "--grantable-reads")
    }

    /// Checks that the claims of an installed policy stay within the limits. `is_owners` is true for a policy in the
    /// operator's namespace. `own` are the claims of the policies that the operator started with.
    pub(crate) fn covers_policy<'a>(
        &self,
        claims: &[Claim],
        is_owners: bool,
        own: impl IntoIterator<Item = &'a Claim>,
    ) -> Result<(), Overreach> {
        self.covers_claims(claims)?;
        if is_owners {
            return Ok(());
        }
        self.covers_emits_of_namespace(claims)?;
        self.covers_reads_of_namespace(claims, own)
    }

    /// Checks that a policy claims nothing beyond the limits.
    pub(crate) fn covers_claims(&self, claims: &[Claim]) -> Result<(), Overreach> {
        for (i, Claim { emits, reads, .. }) in claims.iter().enumerate() {
            for (types, listed, what) in [(emits, &self.emits, "emits"), (reads, &self.reads, "reads")] {
                let (path, flag) = (format!("claims[{i}].{what}"), format!("--grantable-{what}"));
                covers(listed.as_ref(), types.iter().map(GroupKind::from), &path, &flag)?;
            }
        }
        Ok(())
    }

    /// Checks the types that a policy outside the operator's namespace emits. Objects of some kinds decide who reaches
    /// pods and routes. A tenant's policy can create such objects only if the owner lists their kind. The operator's
    /// right to create such objects is not enough, because the operator has this right for the policies that the
    /// owner's settings configure.
    fn covers_emits_of_namespace(&self, claims: &[Claim]) -> Result<(), Overreach> {
        if self.emits.is_some() {
            // The owner set a list, and `covers_claims` has already compared the claims with it.
            return Ok(());
        }
        for (i, claim) in claims.iter().enumerate() {
            if let Some(of) = claim.emits.iter().find(|of| is_protection(of)) {
                let kind = GroupKind::from(of);
                let message = format!(
                    "claims[{i}].emits: {kind}: objects of this kind decide who reaches pods and routes, and the \
                     operator's --grantable-emits does not list the kind: remove the kind from the claim, or ask the \
                     operator's owner to list the kind"
                );
                return Err(Overreach { reason: NOT_GRANTED, message });
            }
        }
        Ok(())
    }

    /// Checks the types that a policy outside the operator's namespace reads. A tenant's policy can make the operator
    /// watch all objects of a built-in type only if the owner lists the kind. ConfigMaps and Secrets are allowed
    /// because the operator watches them one by one. The types that `own` reads are allowed because the operator
    /// watches them already.
    fn covers_reads_of_namespace<'a>(
        &self,
        claims: &[Claim],
        own: impl IntoIterator<Item = &'a Claim>,
    ) -> Result<(), Overreach> {
        if self.reads.is_some() {
            // The owner set a list, and `covers_claims` has already compared the claims with it.
            return Ok(());
        }
        let watched: BTreeSet<&ResourceType> = own.into_iter().flat_map(|claim| &claim.reads).collect();
        let is_costly = |of: &&ResourceType| is_built_in(of) && !is_guarded(of) && !watched.contains(of);
        for (i, claim) in claims.iter().enumerate() {
            if let Some(of) = claim.reads.iter().find(is_costly) {
                let kind = GroupKind::from(of);
                let message = format!(
                    "claims[{i}].reads: {kind}: the operator would watch all objects of this kind, and \
                     --grantable-reads does not list the kind: remove the kind from the claim, or ask the \
                     operator's owner to list the kind"
                );
                return Err(Overreach { reason: NOT_GRANTED, message });
            }
        }
        Ok(())
    }
}

/// Checks that every value at `path` is in the list of a flag. Without the flag, every value is allowed.
fn covers<T: Ord + fmt::Display>(
    listed: Option<&BTreeSet<T>>,
    asked: impl IntoIterator<Item = T>,
    path: &str,
    flag: &str,
) -> Result<(), Overreach> {
    let Some(listed) = listed else { return Ok(()) };
    let Some(beyond) = asked.into_iter().find(|asked| !listed.contains(asked)) else { return Ok(()) };
    let names: Vec<String> = listed.iter().map(ToString::to_string).collect();
    let those = if names.is_empty() { "nothing".to_owned() } else { format!("only {}", names.join(", ")) };
    let message = format!("{path}: {beyond} is not allowed: the operator's {flag} allows {those}");
    Err(Overreach { reason: NOT_GRANTED, message })
}

#[cfg(test)]
mod tests {
    use kaos_policy::manifest::PolicyFile;

    use super::*;

    fn kinds(names: &[&str]) -> BTreeSet<GroupKind> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn claim(emits: &[&str], reads: &[&str]) -> Claim {
        let types = |kinds: &[&str]| kinds.iter().map(|kind| ResourceType::new("v1", *kind)).collect();
        Claim {
            primary: ResourceType::new("test.example.com/v1", "Widget"),
            emits: types(emits),
            reads: types(reads),
            wishes: Vec::new(),
            finalizer: None,
            samples: Vec::new(),
            extra: "{}".to_owned(),
        }
    }

    #[test]
    fn a_grant_beyond_the_limit_is_reported_with_the_limit_and_the_flag() {
        let file =
            "grants: {privileges: [hostPath], reads: [{apiVersion: v1, kind: Secret, namespace: a, names: [b]}]}";
        let grants = PolicyFile::parse(file).unwrap().grants;
        let claims = [claim(&[], &[]), claim(&["ConfigMap"], &["ConfigMap", "Secret"])];
        let everything = Grantable::default();
        assert_eq!((everything.covers_grants(&grants), everything.covers_claims(&claims)), (Ok(()), Ok(())));
        let all = Grantable {
            privileges: Some([Privilege::HostPath].into()),
            emits: Some(kinds(&["ConfigMap"])),
            reads: Some(kinds(&["ConfigMap", "Secret"])),
        };
        assert_eq!((all.covers_grants(&grants), all.covers_claims(&claims)), (Ok(()), Ok(())));
        let told = |refused: Result<(), Overreach>| refused.unwrap_err().message;
        let few = Grantable { privileges: Some(BTreeSet::new()), ..all.clone() };
        assert_eq!(
            told(few.covers_grants(&grants)),
            "grants.privileges: hostPath is not allowed: the operator's --grantable-privileges allows nothing"
        );
        let few = Grantable { reads: Some(kinds(&["Pod", "ConfigMap"])), ..all.clone() };
        let which = "Secret is not allowed: the operator's --grantable-reads allows only ConfigMap, Pod";
        assert_eq!(told(few.covers_grants(&grants)), format!("grants.reads: {which}"));
        assert_eq!(told(few.covers_claims(&claims)), format!("claims[1].reads: {which}"));
        let few = Grantable { emits: Some(kinds(&["ConfigMap.example.com"])), ..all };
        let which = "ConfigMap is not allowed: the operator's --grantable-emits allows only ConfigMap.example.com";
        assert_eq!(told(few.covers_claims(&claims)), format!("claims[1].emits: {which}"));
    }

    #[test]
    fn a_policy_of_a_namespace_protects_and_opens_nothing_unless_the_owner_lists_the_kind() {
        let network = ResourceType::new("networking.k8s.io/v1", "NetworkPolicy");
        let claims = [claim(&["ConfigMap"], &[]), Claim { emits: vec![network], ..claim(&[], &[]) }];
        let unlisted = Grantable::default();
        let told = unlisted.covers_policy(&claims, false, []).unwrap_err().message;
        assert!(told.starts_with("claims[1].emits: NetworkPolicy.networking.k8s.io: "), "{told}");
        assert!(told.contains("--grantable-emits"), "{told}");
        assert_eq!(unlisted.covers_policy(&claims, true, []), Ok(()), "the owner has no limits");
        let listed = Grantable { emits: Some(kinds(&["ConfigMap", "NetworkPolicy.networking.k8s.io"])), ..unlisted };
        assert_eq!(listed.covers_policy(&claims, false, []), Ok(()));
    }

    #[test]
    fn a_policy_of_a_namespace_reads_no_further_kinds_of_kubernetes_unless_the_owner_lists_them() {
        let own = [claim(&[], &["PersistentVolumeClaim"])];
        let covered = |grantable: &Grantable, of: ResourceType| {
            let claims = [claim(&[], &[]), Claim { reads: vec![of], ..claim(&[], &[]) }];
            grantable.covers_reads_of_namespace(&claims, &own).map_err(|refused| refused.message)
        };
        let unlisted = Grantable::default();
        for of in ["v1 ConfigMap", "v1 Secret", "v1 PersistentVolumeClaim", "kaos.tools/v1alpha1 Agent"] {
            let (api_version, kind) = of.split_once(' ').unwrap();
            assert_eq!(covered(&unlisted, ResourceType::new(api_version, kind)), Ok(()), "{of}");
        }
        let deployments = ResourceType::new("apps/v1", "Deployment");
        let told = covered(&unlisted, deployments.clone()).unwrap_err();
        assert!(told.starts_with("claims[1].reads: Deployment.apps: "), "{told}");
        assert!(told.contains("--grantable-reads"), "{told}");
        assert!(covered(&unlisted, ResourceType::new("v1", "Service")).is_err());
        let listed = Grantable { reads: Some(kinds(&["Deployment.apps"])), ..unlisted };
        assert_eq!(covered(&listed, deployments), Ok(()));
    }
}
