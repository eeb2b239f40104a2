//! Scripts of what goes wrong with the operator's requests; everybody else's pass.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use kaos_cluster::faults::{Attempt, EventFate, Failure, FaultPlan, Outcome, Verdict};

/// The user that operators of the harness are. Replicas have a number behind it.
pub const OPERATOR: &str = "system:serviceaccount:kaos-system:kaos-operator";

/// Whether a user is an operator of the harness.
pub fn is_operator(user: &str) -> bool {
    user.starts_with(OPERATOR)
}

/// A rule: which of the operator's requests go wrong, how, and how often.
#[derive(Debug, Clone)]
pub struct Fault {
    verbs: Vec<&'static str>,
    resource: Option<&'static str>,
    subresource: Option<&'static str>,
    name: Option<String>,
    outcome: Outcome,
    delay: Duration,
    left: Option<usize>,
}

impl Fault {
    /// Requests with one of these verbs; all with none.
    pub fn on(verbs: &[&'static str]) -> Self {
        Self {
            verbs: verbs.to_vec(),
            resource: None,
            subresource: None,
            name: None,
            outcome: Outcome::Proceed,
            delay: Duration::ZERO,
            left: None,
        }
    }

    /// Requests that change something.
    pub fn on_writes() -> Self {
        Self::on(&["create", "update", "patch", "delete"])
    }

    /// Only of this type, subresources apart.
    #[must_use]
    pub fn of(mut self, plural: &'static str) -> Self {
        self.resource = Some(plural);
        self.subresource.get_or_insert("");
        self
    }

    /// Only of this subresource.
    #[must_use]
    pub fn under(mut self, subresource: &'static str) -> Self {
        self.subresource = Some(subresource);
        self
    }

    /// Only of this object.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// They fail before they have an effect.
    #[must_use]
    pub fn fail(mut self, failure: Failure) -> Self {
        self.outcome = Outcome::FailBefore(failure);
        self
    }

    /// They have their effect, and the answer is lost.
    #[must_use]
    pub fn lose_answer(mut self) -> Self {
        self.outcome = Outcome::FailAfter(Failure::Disconnect);
        self
    }

    /// They wait first.
    #[must_use]
    pub fn slow(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Only the first of them.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        self.left = Some(count);
        self
    }

    fn fits(&self, attempt: &Attempt) -> bool {
        is_operator(&attempt.user)
            && self.left != Some(0)
            && (self.verbs.is_empty() || self.verbs.contains(&attempt.verb.name()))
            && self.resource.is_none_or(|resource| attempt.resource == resource)
            && self.subresource.is_none_or(|subresource| attempt.subresource == subresource)
            && self.name.as_ref().is_none_or(|name| attempt.name == *name)
    }
}

/// The rules in force; the first that fits decides.
#[derive(Debug, Clone, Default)]
pub struct Script(Arc<Mutex<Rules>>);

#[derive(Debug, Default)]
struct Rules {
    faults: Vec<Fault>,
    events: Vec<(&'static str, EventFate)>,
}

impl Script {
    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule.
    pub fn add(&self, fault: Fault) {
        self.rules().faults.push(fault);
    }

    /// What becomes of the events of a type on their way to the operator.
    pub fn events(&self, plural: &'static str, fate: EventFate) {
        self.rules().events.push((plural, fate));
    }

    /// Takes all rules away.
    pub fn clear(&self) {
        *self.rules() = Rules::default();
    }
}

impl FaultPlan for Script {
    fn request(&mut self, attempt: &Attempt, _: &mut Rng) -> Verdict {
        let mut rules = self.rules();
        let Some(rule) = rules.faults.iter_mut().find(|rule| rule.fits(attempt)) else { return Verdict::default() };
        rule.left = rule.left.map(|left| left - 1);
        Verdict { delay: rule.delay, outcome: rule.outcome }
    }

    fn event(&mut self, watch: &Attempt, _: &str, _: &mut Rng) -> EventFate {
        let rules = self.rules();
        let rule = rules.events.iter().find(|(plural, _)| is_operator(&watch.user) && watch.resource == *plural);
        rule.map_or(EventFate::Deliver, |(_, fate)| *fate)
    }
}
