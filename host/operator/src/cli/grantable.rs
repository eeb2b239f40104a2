//! Flags for the operator's limits on grants. `run` enforces the limits; other commands use the limits to predict what
//! `run` would do.

use std::{collections::BTreeSet, fmt::Display};

use clap::Args;
use kaos_policy::{gate::SizeClass, manifest::Privilege};

use crate::{catalogue::Grantable, group_kind::GroupKind};

/// The limit for privileges. The guard checks this limit in each pass.
#[derive(Debug, Args)]
pub(super) struct GrantablePrivileges {
    /// Privileges, such as hostPath, that the policy.yaml of an installed policy can grant, and that settings of
    /// packages and of kaos-operator-config can set; `none` allows no privileges; default: all
    #[arg(long, env = "GRANTABLE_PRIVILEGES", value_delimiter = ',', value_name = "A,B", value_parser = privilege)]
    grantable_privileges: Option<Vec<GrantableEntry<Privilege>>>,
}

/// All limits for grants: the limit for privileges, and the limits that the operator checks before it admits a package.
#[derive(Debug, Args)]
pub(super) struct GrantableFlags {
    #[command(flatten)]
    privileges: GrantablePrivileges,
    /// Kinds that the plans of installed policies can contain, such as ConfigMap or Deployment.apps; `none` allows no
    /// kinds; default: all kinds that the operator has rights for
    #[arg(long, env = "GRANTABLE_EMITS", value_delimiter = ',', value_name = "A,B", value_parser = kind)]
    grantable_emits: Option<Vec<GrantableEntry<GroupKind>>>,
    /// Kinds that installed policies can read, in addition to the kinds that they answer for. A policy also names each
    /// of these kinds, in its claim or in a grant of its policy.yaml. `none` allows no kinds. Default: all kinds that
    /// the operator has rights for. A policy outside the operator's namespace can read fewer of Kubernetes' own kinds:
    /// ConfigMap, Secret, and the kinds that the default policies read
    #[arg(long, env = "GRANTABLE_READS", value_delimiter = ',', value_name = "A,B", value_parser = kind)]
    grantable_reads: Option<Vec<GrantableEntry<GroupKind>>>,
    /// Accept installed policies that contain an interpreter, as in Python: components of up to 24 MiB instead of 8
    /// MiB, with functions of up to 512 KiB instead of 128 KiB and up to 64 MiB of compiled code instead of 32 MiB
    #[arg(long, env = "LARGE_POLICIES")]
    large_policies: bool,
}

impl GrantablePrivileges {
    /// Returns the listed privileges, or `None` if packages can grant all privileges.
    pub(super) fn listed(&self) -> Option<BTreeSet<Privilege>> {
        listed(self.grantable_privileges.as_deref())
    }
}

impl GrantableFlags {
    /// Returns the largest size class of components that the operator accepts.
    pub(super) fn size(&self) -> SizeClass {
        if self.large_policies { SizeClass::Large } else { SizeClass::Standard }
    }

    /// Returns the limits that the flags set.
    pub(super) fn grantable(&self) -> Grantable {
        Grantable {
            privileges: self.privileges.listed(),
            emits: listed(self.grantable_emits.as_deref()),
            reads: listed(self.grantable_reads.as_deref()),
        }
    }
}

/// One entry in the list of a flag; `None` if the entry is the word `none`.
#[derive(Debug, Clone, Copy)]
struct GrantableEntry<T>(Option<T>);

fn privilege(text: &str) -> Result<GrantableEntry<Privilege>, String> {
    one_or_none(text, |text| serde_json::from_value(text.into()))
}

fn kind(text: &str) -> Result<GrantableEntry<GroupKind>, String> {
    one_or_none(text, str::parse::<GroupKind>)
}

fn one_or_none<T, E: Display>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<GrantableEntry<T>, String> {
    if text == "none" {
        return Ok(GrantableEntry(None));
    }
    read(text).map(|one| GrantableEntry(Some(one))).map_err(|error| format!("{error}; write `none` to allow nothing"))
}

/// Returns the entries of a flag, or `None` if the flag is not given.
fn listed<T: Clone + Ord>(flag: Option<&[GrantableEntry<T>]>) -> Option<BTreeSet<T>> {
    flag.map(|listed| listed.iter().filter_map(|it| it.0.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_none_lists_nothing_and_a_missing_flag_allows_all() {
        let kinds = ["none", "ConfigMap", "Deployment.apps"].map(|text| kind(text).unwrap());
        assert_eq!(listed::<GroupKind>(None), None);
        assert_eq!(listed(Some(&kinds[..1])), Some(BTreeSet::new()));
        assert_eq!(listed(Some(&kinds[1..])).unwrap().len(), 2);
        assert_eq!(listed(Some(&[privilege("hostPath").unwrap()][..])), Some([Privilege::HostPath].into()));
        for refused in [kind("deployments.apps").unwrap_err(), privilege("hostPaths").unwrap_err()] {
            assert!(refused.ends_with("; write `none` to allow nothing"), "{refused}");
        }
    }
}
