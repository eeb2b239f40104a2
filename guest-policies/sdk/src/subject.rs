//! Typed views of the policy's input.

use crate::blocker;
use crate::deserialize::from_value;
use crate::kept::Subject;
use crate::object::Object;
use crate::refusal;
use crate::types::{Answer, Blocker, Reference, Refusal, ResourceType, SecretFacts};
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_decode::Decode;

/// Typed views of a [`Subject`].
pub trait SubjectExt {
    /// Returns the object for which the policy answers.
    fn object(&self) -> Object;
    /// Decodes the effective settings into a type of the policy.
    fn settings<T: Decode>(&self) -> Result<T, Refusal>;
    /// Like [`settings`](Self::settings), for a type that derives serde's `Deserialize`.
    fn read_settings<T: for<'de> serde::Deserialize<'de>>(&self) -> Result<T, Refusal>;
    /// Returns the answer to the policy's need with this id. The need must name one object.
    fn one(&self, id: &str) -> Lookup<Object>;
    /// Returns the answer to the policy's need with this id. The need must select objects by labels.
    fn list(&self, id: &str) -> Lookup<Vec<Object>>;
    /// Returns the facts of the Secret that the policy requested with the need `id`.
    fn secret(&self, id: &str) -> Lookup<SecretFacts>;
    /// Returns whether this cluster serves a type that the claim lists in `wishes`.
    fn serves(&self, api_version: &str, kind: &str) -> bool;
    /// Returns the DNS name of a Service in `namespace`: `<service>.<namespace>.svc.<domain>`.
    fn service_host(&self, service: &str, namespace: &str) -> String;
}

/// The answer to one need.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    /// The host found the object. If the need selects objects by labels, `T` is a list, which can be empty.
    There(T),
    /// The host looked for the object and did not find it.
    Absent,
    /// The cluster does not serve this type now.
    Unserved,
    /// The policy cannot read the object, because a right or a grant is missing. The text contains the reason.
    Forbidden(String),
    /// The host did not answer this need, because the policy did not request it.
    Unasked,
}

impl<T> Lookup<T> {
    /// Returns the found object, or `None` in all other cases.
    pub fn there(self) -> Option<T> {
        match self {
            Self::There(found) => Some(found),
            _ => None,
        }
    }

    /// Returns the found object. In all other cases, returns a blocker for `on`, with the reason `NotFound`, `Unserved`
    /// or `Forbidden`. The policy can put this blocker into the field `gates` of its plan.
    pub fn or_blocker(self, on: Reference) -> Result<T, Blocker> {
        Err(match self {
            Self::There(found) => return Ok(found),
            Self::Absent | Self::Unasked => blocker::not_found(on),
            Self::Unserved => {
                let message = format!(
                    "this cluster does not serve {kind} of {version}",
                    kind = on.kind,
                    version = on.api_version
                );
                blocker::new(on, "Unserved", message)
            }
            Self::Forbidden(why) => {
                let message = format!("{kind} {name} cannot be read: {why}", kind = on.kind, name = on.name);
                blocker::new(on, "Forbidden", message)
            }
        })
    }

    /// Like [`or_blocker`](Self::or_blocker), but returns a refusal that waits for `on`.
    pub fn or_wait(self, on: Reference) -> Result<T, Refusal> {
        self.or_blocker(on).map_err(|blocker| refusal::waiting(vec![blocker]))
    }
}

impl SubjectExt for Subject {
    fn object(&self) -> Object {
        self.parsed().clone()
    }

    fn settings<T: Decode>(&self) -> Result<T, Refusal> {
        let settings = self.parsed_settings().ok_or_else(|| refusal::invalid("settings", "must be JSON"))?;
        T::decode(settings).map_err(|error| refusal::invalid(error.path().under("settings"), error.message()))
    }

    fn read_settings<T: for<'de> serde::Deserialize<'de>>(&self) -> Result<T, Refusal> {
        let settings = self.parsed_settings().ok_or_else(|| refusal::invalid("settings", "must be JSON"))?;
        from_value(settings).map_err(|error| refusal::invalid(error.path().under("settings"), error.message()))
    }

    fn one(&self, id: &str) -> Lookup<Object> {
        match self.list(id) {
            Lookup::There(objects) => objects.into_iter().next().map_or(Lookup::Absent, Lookup::There),
            Lookup::Absent => Lookup::Absent,
            Lookup::Unserved => Lookup::Unserved,
            Lookup::Forbidden(why) => Lookup::Forbidden(why),
            Lookup::Unasked => Lookup::Unasked,
        }
    }

    fn list(&self, id: &str) -> Lookup<Vec<Object>> {
        match answer(self, id) {
            Some(Answer::Objects(texts)) => Lookup::There(texts.iter().map(|text| Object::parse(text)).collect()),
            Some(Answer::Secret(_)) => Lookup::Forbidden("the host returns only the facts of a Secret".to_owned()),
            Some(Answer::Unserved) => Lookup::Unserved,
            Some(Answer::Forbidden(why)) => Lookup::Forbidden(why.clone()),
            None => Lookup::Unasked,
        }
    }

    fn secret(&self, id: &str) -> Lookup<SecretFacts> {
        match answer(self, id) {
            Some(Answer::Secret(facts)) if facts.present => Lookup::There(facts.clone()),
            Some(Answer::Secret(_) | Answer::Objects(_)) => Lookup::Absent,
            Some(Answer::Unserved) => Lookup::Unserved,
            Some(Answer::Forbidden(why)) => Lookup::Forbidden(why.clone()),
            None => Lookup::Unasked,
        }
    }

    fn serves(&self, api_version: &str, kind: &str) -> bool {
        self.cluster.served.iter().any(|served: &ResourceType| served.api_version == api_version && served.kind == kind)
    }

    fn service_host(&self, service: &str, namespace: &str) -> String {
        format!("{service}.{namespace}.svc.{}", self.cluster.domain)
    }
}

fn answer<'a>(subject: &'a Subject, id: &str) -> Option<&'a Answer> {
    subject.found.iter().find(|found| found.id == id).map(|found| &found.answer)
}

#[cfg(test)]
mod tests {
    use super::{Lookup, SubjectExt};
    use crate::types::{Answer, Refusal, Violation};
    use crate::{need, testing};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn waits_because<T: std::fmt::Debug>(lookup: Lookup<T>) -> (String, String) {
        let refusal = lookup.or_wait(need::reference("v1", "ConfigMap", "c")).unwrap_err();
        let Refusal::Waiting(mut blockers) = refusal else { panic!("must wait, not {refusal:?}") };
        let blocker = blockers.remove(0);
        (blocker.reason, blocker.message)
    }

    #[test]
    fn found_and_missing_objects_are_distinguished() {
        let config = json!({"kind": "ConfigMap", "metadata": {"name": "c"}});
        let subject = testing::subject(&json!({}))
            .found("there", std::slice::from_ref(&config))
            .found("absent", &[])
            .answer("unserved", Answer::Unserved)
            .answer("forbidden", Answer::Forbidden("no grant".to_owned()))
            .secret("secret", &["key"])
            .build();
        assert_eq!(subject.one("there").there().unwrap().value(), &config);
        assert_eq!(subject.list("there").there().unwrap().len(), 1);
        assert_eq!(subject.one("absent"), Lookup::Absent);
        assert_eq!(subject.list("absent"), Lookup::There(Vec::new()));
        assert_eq!(subject.one("unserved"), Lookup::Unserved);
        assert_eq!(subject.one("forbidden"), Lookup::Forbidden("no grant".to_owned()));
        assert_eq!(subject.one("else"), Lookup::Unasked);
        assert!(matches!(subject.one("secret"), Lookup::Forbidden(_)), "a Secret is no object");
    }

    #[test]
    fn a_secret_shows_only_its_keys() {
        let subject = testing::subject(&json!({})).secret("s", &["a", "b"]).found("none", &[]).build();
        assert_eq!(subject.secret("s").there().unwrap().keys, ["a", "b"]);
        assert_eq!(subject.secret("none"), Lookup::Absent);
        assert_eq!(subject.secret("else"), Lookup::Unasked);
    }

    #[test]
    fn a_wait_names_its_object_and_its_reason() {
        let said = |reason: &str, message: &str| (reason.to_owned(), message.to_owned());
        assert_eq!(Lookup::There(1).or_wait(need::reference("v1", "ConfigMap", "c")).unwrap(), 1);
        assert_eq!(waits_because(Lookup::<()>::Absent), said("NotFound", "ConfigMap c not found"));
        assert_eq!(waits_because(Lookup::<()>::Unasked), said("NotFound", "ConfigMap c not found"));
        let blocker = Lookup::<()>::Absent.or_blocker(need::reference("v1", "ConfigMap", "c")).unwrap_err();
        assert_eq!((blocker.reason, blocker.message), said("NotFound", "ConfigMap c not found"));
        let unserved = said("Unserved", "this cluster does not serve ConfigMap of v1");
        assert_eq!(waits_because(Lookup::<()>::Unserved), unserved);
        let forbidden = said("Forbidden", "ConfigMap c cannot be read: no grant");
        assert_eq!(waits_because(Lookup::<()>::Forbidden("no grant".to_owned())), forbidden);
    }

    #[test]
    fn settings_are_typed_and_refused_with_their_path() {
        let subject = testing::subject(&json!({})).settings(&json!({"ports": {"http": "x"}})).build();
        let Err(Refusal::Invalid(wrong)) = subject.settings::<BTreeMap<String, BTreeMap<String, u16>>>() else {
            panic!("must be refused")
        };
        assert_eq!(wrong[0].path, "settings.ports.http");
        assert_eq!(subject.read_settings::<BTreeMap<String, BTreeMap<String, u16>>>(), {
            let message = "must be a whole number from 0 to 65535, not string \"x\"".to_owned();
            Err(Refusal::Invalid(vec![Violation { path: "settings.ports.http".to_owned(), message }]))
        });
        assert!(subject.settings::<Value>().is_ok());
        let mut broken = subject;
        "{".clone_into(&mut broken.settings);
        assert!(matches!(broken.settings::<Value>(), Err(Refusal::Invalid(wrong)) if wrong[0].path == "settings"));
    }

    #[test]
    fn the_cluster_reports_its_types_and_its_domain() {
        let subject = testing::subject(&json!({})).serves("example.org/v1", "Route").domain("corp.local").build();
        assert!(subject.serves("example.org/v1", "Route"));
        assert!(!subject.serves("example.org/v1", "Other") && !subject.serves("example.org/v2", "Route"));
        assert_eq!(subject.service_host("api", "shop"), "api.shop.svc.corp.local");
    }
}
