//! Implements the exports of the component.

use std::{cell::RefCell, sync::Once};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    bindings::{
        exports::kaos::policy::{amendment, meta, script, translation},
        types::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    },
    engine::{self, Answer},
    failure::{cut, fail},
    from_script::record,
    to_script::text,
};

struct Component;

crate::bindings::export!(Component with_types_in crate::bindings);

#[used]
#[unsafe(link_section = "kaos:policy")]
static CONTRACT: [u8; kaos_policy_sdk::CONTRACT_VERSION.len()] = kaos_policy_sdk::__contract_bytes();

impl script::Guest for Component {
    fn load(source: script::Source) -> Result<script::Kind, String> {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| std::panic::set_hook(Box::new(|panic| kaos_policy_sdk::__tell_panic(panic))));
        let script::Source { file, text, memory, stop_at } = source;
        engine::load(&file, &text, memory, stop_at).map_err(|message| cut(&message))
    }
}

impl meta::Guest for Component {
    fn describe() -> Descriptor {
        answer("describe", &[])
    }
}

impl translation::Guest for Component {
    type Pass = Pass;
}

impl amendment::Guest for Component {
    type Pass = Pass;
}

/// The subject of a pass.
struct Pass(RefCell<Subject>);

impl translation::GuestPass for Pass {
    fn new(subject: Subject) -> Self {
        Self(RefCell::new(subject))
    }

    fn needs(&self, found: Vec<Found>) -> Vec<Need> {
        Self::needs(self, found)
    }

    fn map_env(&self, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        Self::map_env(self, &base)
    }

    fn translate(&self, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        answer_or_refusal("translate", &[self.subject(), shown(&env)])
    }

    fn assess(&self, seen: Observation) -> Report {
        answer("assess", &[self.subject(), shown(&seen)])
    }
}

impl amendment::GuestPass for Pass {
    fn new(subject: Subject) -> Self {
        Self(RefCell::new(subject))
    }

    fn needs(&self, found: Vec<Found>) -> Vec<Need> {
        Self::needs(self, found)
    }

    fn map_env(&self, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        Self::map_env(self, &base)
    }

    fn amend(&self, below: Plan) -> Result<Plan, Refusal> {
        answer_or_refusal("amend", &[self.subject(), shown(&below)])
    }
}

impl Pass {
    fn needs(&self, found: Vec<Found>) -> Vec<Need> {
        if !found.is_empty() {
            let mut subject = self.0.borrow_mut();
            subject.found.extend(found);
            subject.found.sort_by(|one, other| one.id.cmp(&other.id));
        }
        answer("needs", &[self.subject()])
    }

    fn map_env(&self, base: &[EnvVar]) -> Result<Vec<EnvVar>, Refusal> {
        answer_or_refusal("mapEnv", &[self.subject(), shown(&base)])
    }

    /// Returns the subject for the script. Each call gets its own copy, so that no call sees changes of another call.
    fn subject(&self) -> String {
        shown(&*self.0.borrow())
    }
}

fn shown<T: Serialize>(value: &T) -> String {
    text(value).unwrap_or_else(|error| fail(&error.0))
}

fn answer<T: DeserializeOwned>(name: &str, arguments: &[String]) -> T {
    answer_or_refusal(name, arguments).unwrap_or_else(|_| fail("only mapEnv, translate and amend may refuse"))
}

fn answer_or_refusal<T: DeserializeOwned>(name: &str, arguments: &[String]) -> Result<T, Refusal> {
    let read = match engine::call(name, arguments) {
        Answer::Returned(value) => record(value.as_ref()).map(Ok),
        Answer::Refused(value) => record(Some(&value)).map(Err),
    };
    read.unwrap_or_else(|wrong| engine::wrong_answer(name, &wrong))
}
