//! Builds the cases in which the operator tries a revision before the revision serves. A case is a policy with the
//! settings that the policy would have in a place. The check against the schema is not enough, because Kubernetes may
//! refuse a value that the schema accepts. The operator and the command line use the same cases.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::{
    gate::LoadError,
    policy::Policy,
    settings::{Layer, Origin},
};

use super::revision_set::{AdmittedRevision, Content, RevisionSet, Unfit};
use crate::catalogue::{Answers, Arranged, Kind, Member, Reach, lasting};

/// The status reason of settings that do not fit the policies of their place.
pub(crate) const BAD_SETTINGS: &str = "BadSettings";
/// The status reason of a policy that does not fit the active settings of its place.
pub(crate) const SETTINGS_DO_NOT_FIT: &str = "SettingsDoNotFit";

/// A policy with the settings that it would have in a place.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    policy: Arc<Policy>,
    /// The settings that apply in the place already, without the settings to try.
    base: Vec<Layer>,
    /// The settings to try, the weakest first.
    given: Vec<Layer>,
    /// Whether the policy answers in this place only for objects that a rollout has not moved yet.
    is_before: bool,
}

/// An error in a policy's plans for its own samples, and the settings that cause the error.
#[derive(Debug, Clone)]
pub(crate) struct Misfit {
    pub(crate) error: LoadError,
    /// The settings that cause the error.
    pub(crate) cause: Origin,
    /// Whether the error disappears when the running rollouts end: the settings fit the policies that are being rolled
    /// out.
    pub(crate) is_before: bool,
}

impl Misfit {
    /// Returns the reason and the message for the refusal of a revision.
    pub(crate) fn told_of(&self, content: &Content) -> (&'static str, String) {
        let Self { error, cause, .. } = self;
        match content {
            Content::Policy(..) => {
                (SETTINGS_DO_NOT_FIT, not_with(&format!("the policy fails with the settings of {cause}: {error}")))
            }
            _ => (BAD_SETTINGS, error.to_string()),
        }
    }
}

impl Unfit {
    /// Returns the reason and the message for the refusal of a revision. The settings in a policy's own package are
    /// never the cause of an error here, because the gate checked the policy with them.
    pub(crate) fn told_of(self, content: &Content) -> (&'static str, String) {
        match content {
            Content::Policy(..) if self.reason == BAD_SETTINGS => (SETTINGS_DO_NOT_FIT, not_with(&self.message)),
            _ => (self.reason, self.message),
        }
    }
}

fn not_with(what: &str) -> String {
    format!(
        "{what}; these active settings do not fit the policy: correct or delete the settings before you install \
        the policy, or in the same apply"
    )
}

/// The result of trying a revision in all its cases.
pub(crate) type Tried = Result<(), Misfit>;

impl PartialEq for Case {
    fn eq(&self, other: &Self) -> bool {
        self.tries_as(other) && self.is_before == other.is_before
    }
}

impl Case {
    /// Returns the case that tries the settings `given` with a policy. Returns `None` if `given` changes nothing for
    /// this policy.
    fn new(policy: &Arc<Policy>, base: Vec<Layer>, given: Vec<Layer>, is_before: bool) -> Option<Self> {
        let case = Self { policy: Arc::clone(policy), base, given, is_before };
        let resolved = |layers: &[Layer]| policy.settings(layers).ok();
        let sets_nothing = resolved(&case.base).is_some_and(|base| resolved(&case.layers()) == Some(base));
        (!sets_nothing).then_some(case)
    }

    /// Returns whether another case tries the same settings with the same policy.
    fn tries_as(&self, other: &Self) -> bool {
        let (one, two) = (&self.policy, &other.policy);
        let is_same = one.id() == two.id() && one.limits() == two.limits() && one.grants() == two.grants();
        is_same && self.base == other.base && self.given == other.given
    }

    fn layers(&self) -> Vec<Layer> {
        self.base.iter().chain(&self.given).cloned().collect()
    }

    /// Finds the settings in `given` that are the cause of an error: the weakest layer with which the plans become
    /// invalid. Returns `None` if the plans are invalid even without `given`.
    async fn blamed<F: Future<Output = Result<(), LoadError>>>(
        &self,
        error: LoadError,
        is_valid: &impl Fn(Arc<Policy>, Vec<Layer>) -> F,
    ) -> Option<Misfit> {
        let mut layers = self.base.clone();
        let without = is_valid(Arc::clone(&self.policy), layers.clone()).await;
        if without.err().and_then(lasting).is_some() {
            return None;
        }
        let (last, others) = self.given.split_last()?;
        let misfit = |error, layer: &Layer| Misfit { error, cause: layer.origin.clone(), is_before: self.is_before };
        for layer in others {
            layers.push(layer.clone());
            let with = is_valid(Arc::clone(&self.policy), layers.clone()).await;
            if let Some(error) = with.err().and_then(lasting) {
                return Some(misfit(error, layer));
            }
        }
        Some(misfit(error, last))
    }
}

/// Tries cases. `is_valid` checks that the plans of a policy for its own samples are valid with the given settings.
/// Ignores a lasting error that also occurs without the settings to try.
pub(crate) async fn try_all<F: Future<Output = Result<(), LoadError>>>(
    cases: &[Case],
    is_valid: impl Fn(Arc<Policy>, Vec<Layer>) -> F,
) -> Tried {
    let mut tried = Ok(());
    for case in cases {
        let Err(error) = is_valid(Arc::clone(&case.policy), case.layers()).await else { continue };
        if error.is_lasting() {
            if let Some(misfit) = case.blamed(error, &is_valid).await {
                return Err(misfit);
            }
        } else if let Some(last) = case.given.last() {
            // This error may be temporary. Try the other cases as well: they may show a lasting error in the settings.
            tried = Err(Misfit { error, cause: last.origin.clone(), is_before: case.is_before });
        }
    }
    tried
}

/// Returns the cases for the operator's own ConfigMap: one for each policy that answers for the whole cluster. A policy
/// with a scope that lists namespaces gets no case. The cases of policies that answer only for objects that a rollout
/// has not moved yet come last.
pub(super) fn of_cluster(arranged: &Arranged) -> Vec<Case> {
    let mut cases = Vec::new();
    for (is_before, answers) in answers_of(arranged) {
        let Some(kind) = answers.of_cluster() else { continue };
        for policy in kind.policies() {
            let layers = kind.layers().iter().cloned();
            let (given, base) = layers.partition(|layer| layer.origin == Origin::OperatorConfig);
            add(&mut cases, Case::new(policy, base, given, is_before));
        }
    }
    cases
}

/// Returns the policies for each kind, first those of the table with all revisions. The boolean is true for the other
/// tables, which contain the predecessors of revisions that are being rolled out.
fn answers_of(arranged: &Arranged) -> impl Iterator<Item = (bool, &Answers)> {
    let tables = arranged.tables().enumerate();
    tables.flat_map(|(at, table)| table.values().map(move |answers| (at > 0, answers)))
}

impl RevisionSet {
    /// Returns the cases for a revision, as if the revisions in `serving` were serving. `shared` are the settings for
    /// the whole cluster. Ignores an older package in the revision's place, because the older package may disappear at
    /// any time.
    pub(crate) fn cases_as_first(
        &mut self,
        name: &str,
        serving: &BTreeSet<String>,
        shared: &[Layer],
    ) -> Result<Vec<Case>, Unfit> {
        let age = self.entries.get_mut(name).map(|entry| std::mem::take(&mut entry.age));
        let arranged = self.arrange_with(Some(name), serving, shared);
        if let (Some(entry), Some(age)) = (self.entries.get_mut(name), age) {
            entry.age = age;
        }
        Ok(self.cases(name, serving, &arranged?))
    }

    /// Returns the cases for a revision. For settings, returns a case for each place where the settings apply and where
    /// their policy answers. For a policy, returns a case for each place, with the settings that apply in this place. A
    /// package of the operator's namespace is never tried with policies and settings that a tenant installed in its own
    /// namespace.
    pub(crate) fn cases(&self, name: &str, serving: &BTreeSet<String>, arranged: &Arranged) -> Vec<Case> {
        let Some(entry) = self.entries.get(name) else { return Vec::new() };
        let is_local = matches!(entry.reach, Reach::Own(_));
        let counts = |layer: &&Layer| is_local || !matches!(layer.origin, Origin::NamespacePolicy(_));
        let serves = |kind: &&Kind| {
            let base = kind.members().first().and_then(|base| base.revision.as_deref());
            base.is_none_or(|base| serving.contains(base))
        };
        let mut cases = Vec::new();
        for (is_before, answers) in answers_of(arranged) {
            // Leave out the predecessors of serving policies, because a predecessor answers only for objects that pin
            // it by digest.
            let kinds = answers.in_place().map(|kind| &**kind).chain(answers.pinned().filter(serves));
            for kind in kinds.filter(|kind| kind.revisions().any(|revision| &**revision == name)) {
                for member in kind.members().iter().filter(|member| is_local || !member.is_local) {
                    let layers = kind.layers().iter().filter(counts);
                    add(&mut cases, case(name, entry, member, layers, is_before));
                }
            }
        }
        cases
    }
}

/// Returns the case that tries a revision with the policy `member` of a place. Returns `None` if the revision is
/// neither this policy nor settings for this policy.
fn case<'a>(
    name: &str,
    entry: &AdmittedRevision,
    member: &Member,
    layers: impl Iterator<Item = &'a Layer>,
    is_before: bool,
) -> Option<Case> {
    let of = &member.policy.id().name;
    let (given, base) = match &entry.content {
        Content::Settings(policy, tree) if policy == of => {
            let own = entry.layer(policy, tree);
            layers.cloned().partition(|layer| *layer == own)
        }
        // The gate already tried the policy with the settings in its own package.
        Content::Policy(..) if member.revision.as_deref() == Some(name) => {
            let concerns = |layer: &&Layer| layer.policy.as_ref().is_none_or(|policy| policy == of);
            layers.filter(concerns).cloned().partition(|layer| !member.settings.contains(layer))
        }
        _ => return None,
    };
    Case::new(&member.policy, base, given, is_before)
}

fn add(cases: &mut Vec<Case>, case: Option<Case>) {
    cases.extend(case.filter(|case| !cases.iter().any(|known| known.tries_as(case))));
}
