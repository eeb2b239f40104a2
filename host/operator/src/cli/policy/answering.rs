//! Simulates how the operator chooses the policy for each object. The commands predict the operator's choice with this
//! simulation.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
    sync::Arc,
};

use anyhow::{Context, bail};
use futures_util::FutureExt as _;
use jiff::Timestamp;
use kaos_crds::PolicySource;
use kaos_policy::{
    gate,
    manifest::{PolicyFile, Scope},
    near::nearest,
    policy::Policy,
    render::Renderer,
    settings::{Layer, Origin, SettingsErrors},
};
use serde_json::Value;

use crate::{
    catalogue::{
        Age, Arranged, Catalogue, Conflict, MovedObjects, Offer, Reach, Snapshot,
        installed::{AdmittedRevision, Content, RevisionSet, Unfit, is_default, try_all},
    },
    offline::{Answering, At},
    policies::{Loaded, Loader, select},
};

/// The revision name of a package that is not installed yet. A real name never contains spaces.
pub(in crate::cli) const PLANNED: &str = "the planned package";

/// A package that is installed, or that the user wants to install.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Shipped {
    /// The name of the package's revision, or [`PLANNED`].
    pub(super) revision: Arc<str>,
    /// The namespace and the name of the package's ConfigMap.
    pub(super) source: (String, String),
    /// The policy of the package; `None` if the package contains only settings.
    pub(super) policy: Option<Arc<Policy>>,
    /// The `policy.yaml` of the package.
    pub(super) file: PolicyFile,
    /// The file with the user's settings; `None` if the settings do not come from a file.
    pub(super) written_in: Option<Origin>,
    pub(super) age: Age,
    /// The time at which the revision became active. If two revisions can both be the cause of a failure, the operator
    /// blames the newer one.
    pub(super) since: Option<Timestamp>,
    /// The revision that served the same place before this revision.
    pub(super) predecessor: Option<String>,
    /// The objects that the revision's rollout has moved. `None` if the revision serves all objects.
    pub(super) stage: Option<MovedObjects>,
}

/// The policies and settings that serve in a cluster at one moment.
#[derive(Debug, Clone)]
pub(in crate::cli) struct PolicySet {
    /// The policies that the operator has at its start: the default policies, and the policies of `--policy`.
    own: Vec<Offer>,
    /// Settings layers for the whole cluster.
    shared: Vec<Layer>,
    /// The active packages.
    pub(super) shipped: Vec<Shipped>,
    /// The predecessors of the active packages. A predecessor answers for objects on which an active revision fails.
    pub(super) before: Vec<Shipped>,
    /// The operator's namespace.
    home: String,
}

impl PolicySet {
    /// Creates a set without packages. `own` contains the policies that the operator has at its start.
    pub(super) fn new(own: &[Loaded], shared: Vec<Layer>, home: &str) -> anyhow::Result<Self> {
        let stacks = select(own)?;
        let own = stacks.iter().flat_map(|(of, stack)| Offer::of_process(of, stack)).collect();
        Ok(Self { own, shared, shipped: Vec::new(), before: Vec::new(), home: home.to_owned() })
    }

    /// Returns a copy in which `new` replaces the package of the same ConfigMap. The replaced revision remains as the
    /// predecessor, so that objects can still pin the replaced revision.
    pub(super) fn with(&self, new: Shipped) -> Self {
        let mut standing = self.clone();
        match standing.shipped.iter_mut().find(|old| old.source == new.source) {
            Some(place) => {
                let (age, predecessor) = (place.age.clone(), Some(place.revision.to_string()));
                let old = std::mem::replace(place, Shipped { age, predecessor, ..new });
                standing.before.push(old);
            }
            None => standing.shipped.push(new),
        }
        standing
    }

    /// Returns a copy in which the revisions in `gone` no longer serve. These revisions remain as predecessors.
    pub(super) fn without(&self, gone: &BTreeSet<Arc<str>>) -> Self {
        let mut standing = self.clone();
        let (went, shipped) = standing.shipped.into_iter().partition(|shipped| gone.contains(&shipped.revision));
        standing.shipped = shipped;
        standing.before.extend::<Vec<Shipped>>(went);
        standing
    }

    /// Fails if the package has settings for a policy that does not exist. Such settings would change nothing, and an
    /// operator would refuse them.
    pub(super) fn has_policy_for(&self, new: &Shipped) -> anyhow::Result<()> {
        let Some(named) = new.file.name.as_deref().filter(|_| new.policy.is_none()) else { return Ok(()) };
        let shipped = self.shipped.iter().chain(&self.before).filter_map(|shipped| shipped.policy.as_deref());
        let own = self.own.iter().map(|offer| &*offer.member.policy);
        let names: BTreeSet<&str> = own.chain(shipped).map(|policy| policy.id().name.as_str()).collect();
        if names.contains(named) {
            return Ok(());
        }
        match nearest(named, names.iter().copied()) {
            Some(near) => bail!("there is no policy {named}: did you mean {near}?"),
            None => {
                bail!("there is no policy {named}: name one of {}", names.into_iter().collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Tries a package of this set, as the operator does before the package serves. Fails if, with the package, a
    /// policy's plan for one of the policy's own samples is invalid.
    pub(super) fn try_package(&self, revision: &str, loader: &Loader) -> anyhow::Result<()> {
        let (mut revisions, serving) = self.revisions();
        let Some(content) = revisions.entries.get(revision).map(|entry| entry.content.clone()) else { return Ok(()) };
        let cases = revisions.cases_as_first(revision, &serving, &self.shared)?;
        let is_valid = |policy: Arc<Policy>, layers: Vec<Layer>| {
            ready(gate::try_settings(&policy, &layers, &loader.cluster, &loader.server()))
        };
        match try_all(&cases, is_valid).now_or_never() {
            Some(Err(misfit)) => bail!("{}", misfit.told_of(&content).1),
            // This trial never waits, so the result is never `None`.
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Checks a package that contains only settings from a file. Fails if no policy with the name in the package
    /// accepts the settings. The message names the file.
    pub(super) fn accepts(&self, new: &Shipped) -> Result<(), SettingsErrors> {
        let (Some(name), Some(origin), None) = (&new.file.name, &new.written_in, &new.policy) else { return Ok(()) };
        let layer = [Layer::tree(origin.clone(), name, new.file.settings.clone())];
        let own = self.own.iter().map(|offer| &offer.member.policy);
        let all = own.chain(self.shipped.iter().filter_map(|shipped| shipped.policy.as_ref()));
        let named = all.filter(|policy| policy.id().name == *name);
        let mut result = Ok(());
        for policy in named {
            match policy.schema().resolve(name, &layer) {
                Ok(_) => return Ok(()),
                Err(errors) => result = Err(errors),
            }
        }
        result
    }

    /// Returns the old and the new namespaces if the package would replace a package that applies in other namespaces.
    pub(super) fn moved_by(&self, new: &Shipped) -> Option<(String, String)> {
        let old = self.shipped.iter().find(|old| old.source == new.source)?;
        moved(&old.file.scope, &new.file.scope)
    }

    /// Returns the policies of this set, without predecessors.
    pub(super) fn policies(&self) -> impl Iterator<Item = &Policy> {
        let own = self.own.iter().map(|offer| &*offer.member.policy);
        own.chain(self.shipped.iter().filter_map(|shipped| shipped.policy.as_deref()))
    }

    /// Returns the settings layers for the whole cluster.
    pub(super) fn shared(&self) -> &[Layer] {
        &self.shared
    }

    /// Returns a copy with other settings layers for the whole cluster.
    pub(super) fn under(&self, shared: Vec<Layer>) -> Self {
        Self { shared, ..self.clone() }
    }

    /// Returns why the policies and settings cannot serve together; `None` if they can.
    pub(super) fn misfit(&self) -> Option<String> {
        self.arranged().err().map(|unfit| unfit.message)
    }

    /// Returns why the policies and settings cannot serve together, as a message about the package of `revision`.
    /// Returns `None` if they can serve together.
    pub(super) fn misfit_with(&self, revision: &str) -> Option<String> {
        let unfit = self.arranged().err()?;
        let new = self.shipped.iter().find(|shipped| *shipped.revision == *revision)?;
        Some(unfit.told_of(&new.entry(&self.home).content).1)
    }

    /// Converts all revisions to the operator's own type.
    ///
    /// Returns these revisions, and the names of the revisions that serve.
    fn revisions(&self) -> (RevisionSet, BTreeSet<String>) {
        let entry = |shipped: &Shipped| (shipped.revision.to_string(), shipped.entry(&self.home));
        let entries: BTreeMap<String, AdmittedRevision> = self.shipped.iter().chain(&self.before).map(entry).collect();
        let serving = self.shipped.iter().map(|shipped| shipped.revision.to_string()).collect();
        (RevisionSet { own: self.own.clone(), entries }, serving)
    }

    fn arranged(&self) -> Result<Arranged, Unfit> {
        let (mut revisions, serving) = self.revisions();
        if let Some(new) = self.shipped.iter().find(|shipped| *shipped.revision == *PLANNED) {
            let replaces: Vec<String> = new.predecessor.iter().cloned().collect();
            let before = serving.iter().filter(|it| *it != PLANNED).chain(&replaces).cloned().collect();
            let (earlier, waiting) = (revisions.claimed(&replaces), revisions.kept_waiting(&before));
            revisions.claim(PLANNED, earlier, &serving, &waiting, Timestamp::MAX);
        }
        // The operator makes the same call when it activates a package. The call leaves out a policy of another
        // namespace that cannot serve together with the other policies.
        revisions.arrange_with(Some(PLANNED), &serving, &self.shared)
    }

    /// Builds the policy table from this set, and installs the table into a catalogue. Fails if the planned package
    /// would not serve. A conflict between other packages is not an error: the result contains every conflict.
    pub(in crate::cli) fn install(&self, catalogue: &Catalogue) -> anyhow::Result<Installed> {
        if let Some(why) = self.misfit_with(PLANNED) {
            bail!("{why}");
        }
        let mut arranged = self.arranged()?;
        let conflicts = std::mem::take(&mut arranged.conflicts);
        if let Some(why) = conflicts.get(PLANNED) {
            bail!("{PLANNED} would not serve: {why}");
        }
        catalogue.install(arranged);
        Ok(Installed { snapshot: catalogue.load().context("no policy answers")?, conflicts })
    }
}

/// Returns the namespaces of the old scope and of the new scope; `None` if both have the same namespaces.
pub(super) fn moved(from: &Scope, to: &Scope) -> Option<(String, String)> {
    let places = |scope: &Scope| scope.namespaces.iter().cloned().collect::<BTreeSet<_>>();
    let shown = |places: BTreeSet<String>| match places.len() {
        0 => "the whole cluster".to_owned(),
        _ => places.into_iter().collect::<Vec<_>>().join(", "),
    };
    let (from, to) = (places(from), places(to));
    (from != to).then(|| (shown(from), shown(to)))
}

/// The result of installing all policies.
pub(in crate::cli) struct Installed {
    /// The policies that serve.
    pub(in crate::cli) snapshot: Arc<Snapshot>,
    /// Revisions that do not serve because of a conflict.
    pub(in crate::cli) conflicts: BTreeMap<Arc<str>, Conflict>,
}

impl Shipped {
    fn place(&self) -> PolicySource {
        let (namespace, config_map) = self.source.clone();
        PolicySource { namespace, config_map }
    }

    /// Converts the package to the type that the operator uses for packages that passed the gate.
    fn entry(&self, home: &str) -> AdmittedRevision {
        let Self { source: (namespace, _), policy, file, age, since, predecessor, stage, .. } = self;
        let content = match policy {
            Some(policy) => Content::Policy(Arc::clone(policy), file.settings.clone()),
            None => Content::Settings(file.name.clone().unwrap_or_default(), file.settings.clone()),
        };
        AdmittedRevision {
            source: self.place(),
            age: age.clone(),
            reach: if is_default(&self.place()) {
                Reach::Process
            } else {
                Reach::of_package(namespace, &file.scope.namespaces, home)
            },
            pinned: file.scope.pinned,
            content,
            on_refusal: file.on_refusal,
            rollout: file.rollout.clone(),
            stage: stage.clone(),
            since: *since,
            predecessor: predecessor.clone(),
        }
    }
}

/// Renderers that use `renderer` for the object `object`, and the renderers of `usual` for all other objects.
pub(super) struct Instead<'a> {
    pub(super) usual: At<'a>,
    pub(super) object: &'a Value,
    pub(super) renderer: &'a Renderer,
}

impl Answering for Instead<'_> {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        let is_it = ["apiVersion", "kind"].iter().all(|field| object[field] == self.object[field])
            && ["namespace", "name"].iter().all(|field| object["metadata"][field] == self.object["metadata"][field]);
        if is_it { Some(self.renderer) } else { self.usual.renderer(object) }
    }
}
