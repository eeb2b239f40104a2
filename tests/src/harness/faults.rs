//! Planned faults in the operator's requests. Requests of other users pass unchanged.
//!
//! If a fault hits no request, the test proves nothing about the fault. Therefore a [`Script`] counts the requests that
//! each fault hits. A test fails if it removes a fault, or ends, before a request has met the fault.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use kaos_cluster::faults::{Attempt, EventFate, Failure, FaultPlan, Outcome, Verdict};

/// The user name with which the harness's operators send requests to the API server. The user names of replicas have a
/// number at the end.
pub const OPERATOR: &str = "system:serviceaccount:kaos-system:kaos-operator";

/// Returns whether a user is an operator of the harness.
pub fn is_operator(user: &str) -> bool {
    user.starts_with(OPERATOR)
}

/// A rule that decides which of the operator's requests fail, how they fail, and how many of them fail.
#[derive(Debug, Clone)]
pub struct Fault {
    verbs: Vec<&'static str>,
    resource: Option<&'static str>,
    subresource: Option<&'static str>,
    name: Option<String>,
    outcome: Outcome,
    delay: Duration,
    left: Option<usize>,
    hits: usize,
    if_ever: bool,
}

impl Fault {
    /// Returns a rule for requests with one of these verbs, or for all requests if the list is empty.
    pub fn on(verbs: &[&'static str]) -> Self {
        Self {
            verbs: verbs.to_vec(),
            resource: None,
            subresource: None,
            name: None,
            outcome: Outcome::Proceed,
            delay: Duration::ZERO,
            left: None,
            hits: 0,
            if_ever: false,
        }
    }

    /// Returns a rule for requests that write.
    pub fn on_writes() -> Self {
        Self::on(&["create", "update", "patch", "delete"])
    }

    /// Restricts the rule to this type, without its subresources.
    #[must_use]
    pub fn of(mut self, plural: &'static str) -> Self {
        self.resource = Some(plural);
        self.subresource.get_or_insert("");
        self
    }

    /// Restricts the rule to this subresource.
    #[must_use]
    pub fn under(mut self, subresource: &'static str) -> Self {
        self.subresource = Some(subresource);
        self
    }

    /// Restricts the rule to this object.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Makes matching requests fail before they take effect.
    #[must_use]
    pub fn fail(mut self, failure: Failure) -> Self {
        self.outcome = Outcome::FailBefore(failure);
        self
    }

    /// Lets matching requests take effect, but drops their responses.
    #[must_use]
    pub fn lose_answer(mut self) -> Self {
        self.outcome = Outcome::FailAfter(Failure::Disconnect);
        self
    }

    /// Delays matching requests.
    #[must_use]
    pub fn slow(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Restricts the rule to the first `count` matching requests.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        self.left = Some(count);
        self
    }

    /// Makes the rule optional: if it hits no request, the test does not fail.
    #[must_use]
    pub fn if_ever(mut self) -> Self {
        self.if_ever = true;
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

    /// Returns whether the rule is required and has hit no request. A rule for zero requests is never required.
    fn is_missed(&self) -> bool {
        self.hits == 0 && !self.if_ever && self.left != Some(0)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs = if self.verbs.is_empty() { "any request".to_owned() } else { self.verbs.join("/") };
        write!(f, "{verbs} of {}", self.resource.unwrap_or("anything"))?;
        if let Some(subresource) = self.subresource.filter(|subresource| !subresource.is_empty()) {
            write!(f, "/{subresource}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " named {name}")?;
        }
        write!(f, ": {:?} after {:?}", self.outcome, self.delay)
    }
}

/// The active rules. For each request, the first matching rule applies.
#[derive(Debug, Clone, Default)]
pub struct Script(Arc<Mutex<Rules>>);

#[derive(Debug, Default)]
struct Rules {
    faults: Vec<Fault>,
    events: Vec<EventFault>,
}

/// A rule for the watch events of a type, and the number of events to which the rule has applied.
#[derive(Debug)]
struct EventFault {
    plural: &'static str,
    fate: EventFate,
    hits: usize,
}

impl fmt::Display for EventFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "events of {}: {:?}", self.plural, self.fate)
    }
}

impl Script {
    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule.
    pub fn add(&self, fault: Fault) {
        self.rules().faults.push(fault);
    }

    /// Chooses what happens to the watch events of a type before they reach the operator: for example, they get lost.
    pub fn events(&self, plural: &'static str, fate: EventFate) {
        self.rules().events.push(EventFault { plural, fate, hits: 0 });
    }

    /// Returns each required rule that has hit no request and no event yet.
    pub(super) fn missed(&self) -> Vec<String> {
        let rules = self.rules();
        let requests = rules.faults.iter().filter(|fault| fault.is_missed()).map(ToString::to_string);
        let events = rules.events.iter().filter(|fault| fault.hits == 0).map(ToString::to_string);
        requests.chain(events).collect()
    }

    /// Removes all rules.
    pub fn clear(&self) {
        *self.rules() = Rules::default();
    }
}

impl FaultPlan for Script {
    fn request(&mut self, attempt: &Attempt, _: &mut Rng) -> Verdict {
        let mut rules = self.rules();
        let Some(rule) = rules.faults.iter_mut().find(|rule| rule.fits(attempt)) else { return Verdict::default() };
        rule.left = rule.left.map(|left| left - 1);
        rule.hits += 1;
        Verdict { delay: rule.delay, outcome: rule.outcome }
    }

    fn event(&mut self, watch: &Attempt, kind: &str, _: &mut Rng) -> EventFate {
        let mut rules = self.rules();
        let mut events = rules.events.iter_mut();
        let rule = events.find(|rule| is_operator(&watch.user) && watch.resource == rule.plural);
        let Some(rule) = rule else { return EventFate::Deliver };
        // Do not count bookmarks: a bookmark reports no change, so a test with a lost bookmark proves nothing.
        rule.hits += usize::from(kind != "BOOKMARK");
        rule.fate
    }
}

/// Fails the test if a planned fault hit no request and no event.
///
/// # Panics
/// If `missed` is not empty.
pub(super) fn none_missed(missed: impl IntoIterator<Item = String>) {
    let missed: Vec<String> = missed.into_iter().collect();
    assert!(
        missed.is_empty(),
        "these faults hit no request, so the test proves nothing about them: {faults}",
        faults = missed.join("; ")
    );
}

#[cfg(test)]
mod tests {
    use kaos_cluster::faults::Verb;

    use super::*;

    fn attempt(verb: Verb, resource: &str) -> Attempt {
        let [user, resource] = [OPERATOR, resource].map(str::to_owned);
        let [program, group, subresource, namespace, name, content_type] = [const { String::new() }; 6];
        Attempt { user, program, verb, group, resource, subresource, namespace, name, content_type, dry_run: false }
    }

    fn asked(script: &Script, verb: Verb, resource: &str) {
        script.clone().request(&attempt(verb, resource), &mut Rng::with_seed(0));
    }

    fn told(script: &Script, kind: &str, resource: &str) {
        script.clone().event(&attempt(Verb::Watch, resource), kind, &mut Rng::with_seed(0));
    }

    #[test]
    fn the_error_names_a_fault_that_no_request_met() {
        let script = Script::default();
        script.add(Fault::on(&["patch"]).of("services").named("web").fail(Failure::Conflict));
        asked(&script, Verb::Patch, "services");
        assert_eq!(script.missed(), ["patch of services named web: FailBefore(Conflict) after 0ns"]);
        script.clear();
        script.add(Fault::on_writes().of("services").lose_answer().times(1));
        asked(&script, Verb::Get, "services");
        asked(&script, Verb::Patch, "deployments");
        assert_eq!(script.missed().len(), 1);
        asked(&script, Verb::Patch, "services");
        assert_eq!(script.missed(), [""; 0], "it was met, and is used up");
    }

    #[test]
    fn only_the_first_of_two_matching_faults_counts_as_met() {
        let script = Script::default();
        script.add(Fault::on(&["patch"]).times(1));
        script.add(Fault::on(&["patch"]).of("services").fail(Failure::Server(500)));
        asked(&script, Verb::Patch, "services");
        assert_eq!(script.missed(), ["patch of services: FailBefore(Server(500)) after 0ns"]);
        asked(&script, Verb::Patch, "services");
        assert_eq!(script.missed(), [""; 0]);
    }

    #[test]
    fn an_optional_fault_may_stay_unmet() {
        let script = Script::default();
        script.add(Fault::on_writes().fail(Failure::Disconnect).if_ever());
        script.add(Fault::on_writes().times(0));
        assert_eq!(script.missed(), [""; 0]);
    }

    #[test]
    fn a_lost_bookmark_does_not_count_as_a_lost_event() {
        let script = Script::default();
        script.events("services", EventFate::Drop);
        told(&script, "BOOKMARK", "services");
        told(&script, "ADDED", "deployments");
        assert_eq!(script.missed(), ["events of services: Drop"]);
        told(&script, "DELETED", "services");
        assert_eq!(script.missed(), [""; 0]);
    }

    #[test]
    #[should_panic(expected = "these faults hit no request, so the test proves nothing about them: events of \
        services: Drop")]
    fn an_unmet_fault_fails_the_test() {
        let script = Script::default();
        script.events("services", EventFate::Drop);
        none_missed(script.missed());
    }
}
