//! Checks how the operator would handle the objects of a cluster after the upgrade.

use std::sync::Arc;

use anyhow::Context as _;
use kaos_policy::{
    contract::{ResourceType, Scopes, Target},
    lookup::Sighting,
};

use super::{
    keyless, left, left_out, protection,
    recorded::Recorded,
    reference_grants, registries,
    report::{Sort, UpgradeFinding},
    rolls, secured,
    table::{Case, asked},
    takeover,
    values::Values,
    volumes,
};
use crate::{
    catalogue::Snapshot,
    input::Document,
    offline::{Brought, Started, StoredObjects, World},
    presets::Preset,
};

/// The operator after the upgrade.
pub(super) struct UpgradeTarget<'a> {
    pub(super) values: &'a Values,
    pub(super) preset: &'a Preset,
    pub(super) recorded: &'a Recorded,
    pub(super) home: &'a str,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) started: &'a Started,
}

impl UpgradeTarget<'_> {
    /// Returns the findings, and the needs of the passes over the objects. `scopes` contains the scopes of types that
    /// have no object in `documents`.
    pub(super) fn of(
        &self,
        documents: &[Document],
        scopes: &Scopes,
        hidden: &dyn Fn(&ResourceType) -> Option<Sighting>,
    ) -> anyhow::Result<(Vec<UpgradeFinding>, Vec<Target>)> {
        let mut findings = secured::findings(documents, self.values, self.recorded, self.home);
        findings.extend(left_out::finding(documents, self.values, self.recorded, self.home));
        findings.extend(reference_grants::findings(documents, self.values, self.home));
        findings.extend(left::findings(documents, self.snapshot, &self.preset.name));
        findings.extend(takeover::finding(documents, self.values, self.preset, self.recorded));
        let then = registries::applied_to(self.values, documents, self.preset, self.home)?;
        let objects = then.iter().map(|document| &document.object);
        let brought = Brought::of(Arc::clone(self.snapshot), self.started, |of| hidden(of).is_none(), objects)?;
        let stored = StoredObjects::new(&then, scopes);
        let world = World::new(&stored, &brought, hidden);
        let mut needs = Vec::new();
        let environment = self.values.environment(self.home);
        let is_protected = self.values.cases().contains(&Case::Protected);
        let asked = asked(&environment, self.home);
        // After the first upgrade, this operator has already applied the sizes in the objects to the volume claims.
        let is_first = self.recorded.is_of_go || !self.recorded.is_installed;
        for (position, document) in then.iter().enumerate() {
            let Some(entry) = world.entry(position) else { continue };
            let entry = entry.with_context(|| document.identity.to_string())?;
            needs.extend(entry.rendered.needs.iter().map(|need| need.target.clone()));
            let rolls = rolls::findings(document, &entry, documents);
            let is_kept = rolls.is_empty() && rolls::are_there(&entry, documents);
            findings.extend(keyless::finding(document, &entry, is_kept));
            findings.extend(rolls);
            if is_first {
                findings.extend(volumes::findings(document, &entry, documents));
            }
            if is_protected {
                findings.extend(protection::findings(document, &entry, documents, asked));
            }
        }
        Ok((findings, needs))
    }

    /// Returns the number of objects for which a policy answers.
    pub(super) fn claimed(&self, documents: &[Document]) -> usize {
        let is_claimed = |document: &&Document| {
            self.snapshot
                .kinds()
                .any(|(of, _)| (of.group(), of.kind.as_str()) == (&*document.identity.group, &*document.identity.kind))
        };
        documents.iter().filter(is_claimed).count()
    }
}

/// Returns the finding about a type whose objects the command could not read.
pub(super) fn open(of: &ResourceType, why: &str) -> UpgradeFinding {
    let remedy = "run the command as a user with the right to read these objects";
    UpgradeFinding::new(Sort::Open, of.to_string(), format!("cannot be read: {why}"), remedy)
}
