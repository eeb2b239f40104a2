//! What answers for which object: the operator's own arrangement, for a question that somebody asks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::{Context, bail};
use jiff::Timestamp;
use kaos_crds::PolicySource;
use kaos_policy::{
    manifest::{PolicyFile, Scope},
    near::nearest,
    policy::Policy,
    render::Renderer,
    settings::Layer,
};
use serde_json::Value;

use crate::{
    catalogue::{
        Age, Arranged, Catalogue, Conflict, Offer, Reach, Snapshot,
        installed::{Content, Entry, Roster, Unfit},
    },
    offline::{Answering, At},
    policies::{Loaded, select},
};

/// How what is not shipped yet is called among revisions; no name of one has blanks.
pub(in crate::cli) const PLANNED: &str = "what is to be shipped";

/// Something that was shipped, or is to be.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Shipped {
    /// Its revision, or what it is called here.
    pub(super) revision: Arc<str>,
    /// The namespace and the name of its ConfigMap.
    pub(super) source: (String, String),
    /// Its policy; none for settings alone.
    pub(super) policy: Option<Arc<Policy>>,
    /// What its `policy.yaml` says.
    pub(super) file: PolicyFile,
    /// How old it is.
    pub(super) age: Age,
    /// Since when it serves: of two that can be the reason for a failure, the newer is blamed.
    pub(super) since: Option<Timestamp>,
    /// The revision that served its place before.
    pub(super) predecessor: Option<String>,
}

/// Everything that answers at one time.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Standing {
    /// What the operator brought along.
    own: Vec<Offer>,
    /// Settings that hold everywhere.
    shared: Vec<Layer>,
    /// What was shipped.
    pub(super) shipped: Vec<Shipped>,
    /// What served before that, and answers for objects that it fails on.
    pub(super) before: Vec<Shipped>,
    /// Where the operator lives.
    home: String,
}

impl Standing {
    /// Only what the operator brought along.
    pub(super) fn new(own: &[Loaded], shared: Vec<Layer>, home: &str) -> anyhow::Result<Self> {
        let stacks = select(own)?;
        let own = stacks.iter().flat_map(|(of, stack)| Offer::of_process(of, stack)).collect();
        Ok(Self { own, shared, shipped: Vec::new(), before: Vec::new(), home: home.to_owned() })
    }

    /// The same, with something shipped in place of what its ConfigMap holds now. That goes on to answer for objects
    /// that name it.
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

    /// The same, when these revisions serve no more. They are remembered, as what served before others.
    pub(super) fn without(&self, gone: &BTreeSet<Arc<str>>) -> Self {
        let mut standing = self.clone();
        let (went, shipped) = standing.shipped.into_iter().partition(|shipped| gone.contains(&shipped.revision));
        standing.shipped = shipped;
        standing.before.extend::<Vec<Shipped>>(went);
        standing
    }

    /// Fails for settings of a policy that there is not. Nothing would change, and an operator would refuse them.
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
            None => bail!("there is no policy {named}: there are {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        }
    }

    /// The policies whose settings something would change, each with all settings that it would have then. `shared` hold
    /// everywhere.
    pub(super) fn tuned_by(&self, new: &Shipped, shared: &[Layer]) -> Vec<(Arc<Policy>, Vec<Layer>)> {
        let Entry { content: Content::Settings(of, tree), reach, .. } = new.entry(&self.home) else {
            return Vec::new();
        };
        let (namespace, name) = &new.source;
        let layer = Layer::tree(reach.origin(namespace, name), &of, tree);
        let (roster, serving) = self.roster();
        let with = |own: Option<Layer>| shared.iter().cloned().chain(own).chain([layer.clone()]).collect();
        roster.loaded(&of, &reach, &serving).into_iter().map(|(policy, own)| (policy, with(own))).collect()
    }

    /// Where what is shipped takes the place of something that holds elsewhere: where that does, and where the new one would.
    pub(super) fn moved_by(&self, new: &Shipped) -> Option<(String, String)> {
        let old = self.shipped.iter().find(|old| old.source == new.source)?;
        moved(&old.file.scope, &new.file.scope)
    }

    /// The same, under other settings that hold everywhere.
    pub(super) fn under(&self, shared: Vec<Layer>) -> Self {
        Self { shared, ..self.clone() }
    }

    /// Why all of it does not go together, if it does not.
    pub(super) fn misfit(&self) -> Option<String> {
        self.arranged().err().map(|unfit| unfit.message)
    }

    /// Everything as the operator has it, and what serves of that.
    fn roster(&self) -> (Roster, BTreeSet<String>) {
        let entry = |shipped: &Shipped| (shipped.revision.to_string(), shipped.entry(&self.home));
        let entries: BTreeMap<String, Entry> = self.shipped.iter().chain(&self.before).map(entry).collect();
        let serving = self.shipped.iter().map(|shipped| shipped.revision.to_string()).collect();
        (Roster { own: self.own.clone(), entries }, serving)
    }

    fn arranged(&self) -> Result<Arranged, Unfit> {
        let (mut roster, serving) = self.roster();
        if let Some(new) = self.shipped.iter().find(|shipped| *shipped.revision == *PLANNED) {
            let replaces: Vec<String> = new.predecessor.iter().cloned().collect();
            let before = serving.iter().filter(|it| *it != PLANNED).chain(&replaces).cloned().collect();
            let (earlier, waiting) = (roster.claimed(&replaces), roster.kept_waiting(&before));
            roster.claim(PLANNED, earlier, &serving, &waiting, Timestamp::MAX);
        }
        // As when the operator lets it in: a namespace's own policy gives way to what it does not go with.
        roster.arrange_with(Some(PLANNED), &serving, &self.shared)
    }

    /// Lets a catalogue hold what comes of it. Fails if what is to be shipped would not serve: that others do not keeps
    /// nobody from asking.
    pub(in crate::cli) fn install(&self, catalogue: &Catalogue) -> anyhow::Result<Installed> {
        let Arranged { answers, conflicts } = self.arranged()?;
        if let Some(why) = conflicts.get(PLANNED) {
            bail!("{PLANNED} would not serve: {why}");
        }
        catalogue.install(answers);
        Ok(Installed { snapshot: catalogue.load().context("nothing answers")?, conflicts })
    }
}

/// Where something held, and where it holds instead, if these are different places.
pub(super) fn moved(from: &Scope, to: &Scope) -> Option<(String, String)> {
    let places = |scope: &Scope| scope.namespaces.iter().cloned().collect::<BTreeSet<_>>();
    let shown = |places: BTreeSet<String>| match places.len() {
        0 => "the whole cluster".to_owned(),
        _ => places.into_iter().collect::<Vec<_>>().join(", "),
    };
    let (from, to) = (places(from), places(to));
    (from != to).then(|| (shown(from), shown(to)))
}

/// What comes of everything that answers at one time.
pub(in crate::cli) struct Installed {
    /// What answers.
    pub(in crate::cli) snapshot: Arc<Snapshot>,
    /// Revisions that do not serve, and why.
    pub(in crate::cli) conflicts: BTreeMap<Arc<str>, Conflict>,
}

impl Shipped {
    /// The same, as the operator has what it let in.
    fn entry(&self, home: &str) -> Entry {
        let Self { revision: _, source: (namespace, config_map), policy, file, age, since, predecessor } = self;
        let content = match policy {
            Some(policy) => Content::Policy(Arc::clone(policy), file.settings.clone()),
            None => Content::Settings(file.name.clone().unwrap_or_default(), file.settings.clone()),
        };
        Entry {
            source: PolicySource { namespace: namespace.clone(), config_map: config_map.clone() },
            age: age.clone(),
            reach: Reach::of_package(namespace, &file.scope.namespaces, home),
            pinned: file.scope.pinned,
            content,
            on_refusal: file.on_refusal,
            since: *since,
            predecessor: predecessor.clone(),
        }
    }
}

/// The same, but something else for one object.
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
