//! What a policy may know, through typed views.

use crate::blocker;
use crate::decode;
use crate::object::Object;
use crate::refusal;
use crate::types::{Answer, Reference, Refusal, ResourceType, SecretFacts, Subject};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Typed views of a [`Subject`].
pub trait SubjectExt {
    /// The primary object.
    fn object(&self) -> Object;
    /// The effective settings as a type of the policy's.
    fn settings<T: DeserializeOwned>(&self) -> Result<T, Refusal>;
    /// The object that the named need `id` asked for.
    fn one(&self, id: &str) -> Lookup<Object>;
    /// The objects that the labelled need `id` asked for.
    fn list(&self, id: &str) -> Lookup<Vec<Object>>;
    /// What may be known of the Secret that need `id` asked for.
    fn secret(&self, id: &str) -> Lookup<SecretFacts>;
    /// Whether this cluster serves a type that the claim wishes for.
    fn serves(&self, api_version: &str, kind: &str) -> bool;
    /// The DNS name of a Service in `namespace`: `<service>.<namespace>.svc.<domain>`.
    fn service_host(&self, service: &str, namespace: &str) -> String;
}

/// The answer to one need.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    /// It is there. A list may be empty.
    There(T),
    /// It was looked for and is not there.
    Absent,
    /// The cluster does not serve this type now.
    Unserved,
    /// It may not be read; the text says why.
    Forbidden(String),
    /// This need was not answered: it is not among those that the policy asked for.
    Unasked,
}

impl<T> Lookup<T> {
    /// What is there, and nothing in all other cases.
    pub fn there(self) -> Option<T> {
        match self {
            Self::There(found) => Some(found),
            _ => None,
        }
    }

    /// What is there; otherwise a refusal that waits for `on`, with the reason (`NotFound`, `Unserved`,
    /// `Forbidden`).
    pub fn or_wait(self, on: Reference) -> Result<T, Refusal> {
        let blocked = match self {
            Self::There(found) => return Ok(found),
            Self::Absent | Self::Unasked => blocker::not_found(on),
            Self::Unserved => {
                let message = format!("this cluster does not serve {} of {}", on.kind, on.api_version);
                blocker::new(on, "Unserved", message)
            }
            Self::Forbidden(why) => {
                let message = format!("{} {} cannot be read: {why}", on.kind, on.name);
                blocker::new(on, "Forbidden", message)
            }
        };
        Err(refusal::waiting(vec![blocked]))
    }
}

impl SubjectExt for Subject {
    fn object(&self) -> Object {
        Object::parse(&self.object)
    }

    fn settings<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let settings: Value = serde_json::from_str(&self.settings)
            .map_err(|error| refusal::invalid("settings", format!("not JSON: {error}")))?;
        decode::decode(&settings).map_err(|error| refusal::invalid(error.path().under("settings"), error.message()))
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
            Some(Answer::Secret(_)) => Lookup::Forbidden("a Secret is answered by its facts only".to_owned()),
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
