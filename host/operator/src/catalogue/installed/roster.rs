//! Which revisions are to serve, and what comes of that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kaos_crds::PolicySource;
use kaos_policy::{
    contract::{Cluster, ResourceType},
    describe::emitted_primary,
    manifest::OnRefusal,
    policy::Policy,
    render::Renderer,
    settings::Layer,
};
use serde_json::Value;

use crate::catalogue::{Age, Answers, Arranged, Conflict, Given, Kind, Member, Offer, Reach, Tuning, arrange};

/// How far back what served before is remembered.
pub(super) const BACK: usize = 3;

/// A revision that was let in.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) source: PolicySource,
    pub(crate) age: Age,
    pub(crate) reach: Reach,
    pub(crate) pinned: bool,
    pub(crate) content: Content,
    /// What a refusal leads to.
    pub(crate) on_refusal: OnRefusal,
    pub(crate) since: Option<Timestamp>,
    pub(crate) predecessor: Option<String>,
}

/// What a revision brings.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A policy, with settings.
    Policy(Arc<Policy>, Value),
    /// Settings for the policy of this name.
    Settings(String, Value),
    /// The policy of this name, which was let in, serves these kinds, and could not be loaded yet.
    Unloaded(String, Vec<ResourceType>),
}

/// Everything that was let in, and what the process brought along.
pub(crate) struct Roster {
    pub(crate) own: Vec<Offer>,
    pub(crate) entries: BTreeMap<String, Entry>,
}

/// Revisions that cannot serve together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub(crate) struct Unfit {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// What namespaces brought themselves, as far as that is a part of it.
    local: Vec<Arc<str>>,
}

impl Content {
    /// The kinds that it answers for; none for settings, which are for a policy.
    pub(super) fn kinds(&self) -> Vec<String> {
        match self {
            Self::Policy(policy, _) => {
                policy.descriptor().claims.iter().map(|claim| claim.primary.to_string()).collect()
            }
            Self::Unloaded(_, kinds) => kinds.iter().map(ToString::to_string).collect(),
            Self::Settings(..) => Vec::new(),
        }
    }
}

impl Entry {
    fn layer(&self, policy: &str, tree: &Value) -> Layer {
        let PolicySource { namespace, config_map } = &self.source;
        Layer::tree(self.reach.origin(namespace, config_map), policy, tree.clone())
    }
}

impl Roster {
    /// What answers when these serve, under settings that hold everywhere.
    pub(crate) fn arrange(&self, serving: &BTreeSet<String>, shared: &[Layer]) -> Result<Arranged, Unfit> {
        self.arrange_with(None, serving, shared)
    }

    /// The same, while one of them is about to be let in. Where something that holds for others, too, does not go with what a
    /// namespace brought itself, the latter gives way: a tenant has no say in what holds for everybody.
    pub(crate) fn arrange_with(
        &self,
        candidate: Option<&str>,
        serving: &BTreeSet<String>,
        shared: &[Layer],
    ) -> Result<Arranged, Unfit> {
        let mut serving = serving.clone();
        let mut gave_way: BTreeMap<Arc<str>, Conflict> = BTreeMap::new();
        loop {
            let mut arranged = self.arrange_all(&serving, shared);
            let Err(unfit) = fit(&arranged.answers) else {
                arranged.conflicts.extend(gave_way);
                return Ok(arranged);
            };
            // The youngest gives way, and what is to be let in before all others.
            let is_candidate = |local: &&Arc<str>| candidate == Some(&***local);
            let age = |local: &&Arc<str>| self.entries.get(&***local).map(|entry| &entry.age);
            let youngest =
                unfit.local.iter().max_by_key(age).filter(|_| !unfit.local.iter().any(|it| is_candidate(&it)));
            let Some(local) = youngest.filter(|local| serving.remove(&***local)).cloned() else { return Err(unfit) };
            let message = format!("it does not go with what holds here, too: {}", unfit.message);
            gave_way.insert(local, Conflict { reason: unfit.reason, message });
        }
    }

    fn arrange_all(&self, serving: &BTreeSet<String>, shared: &[Layer]) -> Arranged {
        let mut offers = self.own.clone();
        let mut given = Vec::new();
        for (name, entry) in serving.iter().filter_map(|name| self.entries.get_key_value(name)) {
            match &entry.content {
                Content::Policy(..) => {
                    let member = self.member(name, 0);
                    offers.extend(
                        member.iter().flat_map(|it| Offer::of_member(it, &entry.reach, entry.pinned, &entry.age)),
                    );
                }
                Content::Settings(..) => given.extend(self.tuning(name, 0).map(|tuning| Given {
                    tuning,
                    reach: entry.reach.clone(),
                    age: entry.age.clone(),
                })),
                Content::Unloaded(..) => {}
            }
        }
        let mut arranged = arrange(&offers, &given, shared);
        for (_, entry) in self.unloaded(serving).filter(|(_, entry)| !entry.pinned) {
            let Content::Unloaded(_, kinds) = &entry.content else { continue };
            for of in kinds {
                // What it was let in to replace must make nothing of its objects.
                let Some(answers) = arranged.answers.get_mut(of) else { continue };
                for namespace in entry.reach.places() {
                    answers.withhold(namespace);
                }
            }
        }
        arranged
    }

    /// Those that are to serve and could not be loaded yet.
    pub(super) fn unloaded<'a>(
        &'a self,
        serving: &'a BTreeSet<String>,
    ) -> impl Iterator<Item = (&'a String, &'a Entry)> {
        let entries = serving.iter().filter_map(move |name| self.entries.get_key_value(name));
        entries.filter(|(_, entry)| matches!(entry.content, Content::Unloaded(..)))
    }

    /// Whether a revision is of a namespace one of whose own could not be loaded yet: what serves beside what is open there.
    pub(super) fn is_open(&self, name: &str, serving: &BTreeSet<String>) -> bool {
        let Some(entry) = self.entries.get(name) else { return false };
        matches!(entry.reach, Reach::Own(_)) && self.unloaded(serving).any(|(_, other)| other.reach == entry.reach)
    }

    fn member(&self, name: &str, back: usize) -> Option<Arc<Member>> {
        let entry = self.entries.get(name).filter(|_| back < BACK)?;
        let Content::Policy(policy, settings) = &entry.content else { return None };
        let predecessor = entry.predecessor.as_ref().and_then(|before| self.member(before, back + 1));
        let settings = Some(settings).filter(|settings| !settings.is_null());
        Some(Arc::new(Member {
            policy: Arc::clone(policy),
            settings: settings.map(|settings| entry.layer(&policy.id().name, settings)).into_iter().collect(),
            revision: Some(name.into()),
            on_refusal: entry.on_refusal,
            is_local: matches!(entry.reach, Reach::Own(_)),
            since: entry.since,
            predecessor,
        }))
    }

    fn tuning(&self, name: &str, back: usize) -> Option<Arc<Tuning>> {
        let entry = self.entries.get(name).filter(|_| back < BACK)?;
        let Content::Settings(policy, tree) = &entry.content else { return None };
        Some(Arc::new(Tuning {
            layer: entry.layer(policy, tree),
            revision: name.into(),
            on_refusal: entry.on_refusal,
            since: entry.since,
            predecessor: entry.predecessor.as_ref().and_then(|before| self.tuning(before, back + 1)),
        }))
    }

    /// Whether a policy of this name answers, or could.
    pub(super) fn knows_policy(&self, name: &str) -> bool {
        let own = self.own.iter().any(|offer| offer.member.policy.id().name == name);
        let is_it = |entry: &Entry| match &entry.content {
            Content::Policy(policy, _) => policy.id().name == name,
            Content::Unloaded(policy, _) => policy == name,
            Content::Settings(..) => false,
        };
        own || self.entries.values().any(is_it)
    }
}

/// Whether all of it can answer: the settings fit the schemas, and nothing that is emitted is an object for another.
fn fit(answers: &BTreeMap<ResourceType, Answers>) -> Result<(), Unfit> {
    for of in answers.values() {
        for kind in of.all() {
            if let Err(errors) = Renderer::new(kind.stack(), kind.layers(), Cluster::default()) {
                let local = kind.local_revision().map(Arc::clone).into_iter().collect();
                return Err(Unfit { reason: "BadSettings", message: errors.to_string(), local });
            }
        }
    }
    let kinds = || answers.values().flat_map(Answers::all);
    let claims: Vec<_> = kinds().flat_map(|kind| kind.claims()).collect();
    let Some((claim, of)) = emitted_primary(&claims) else { return Ok(()) };
    // Either of both can be what a namespace brought.
    let answers_for = |kind: &&Arc<Kind>| {
        kind.claims().any(|it| std::ptr::eq(it, claim) || it.primary.group_kind() == of.group_kind())
    };
    Err(Unfit {
        reason: "EmitsClaimed",
        message: format!(
            "{of} is emitted for {}, but a policy answers for {of}: nothing emitted may be an object for one",
            claim.primary
        ),
        local: kinds().filter(answers_for).filter_map(|kind| kind.local_revision()).map(Arc::clone).collect(),
    })
}
