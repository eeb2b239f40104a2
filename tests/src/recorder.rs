//! Wraps policies, and records each of their answers byte for byte, before the host processes the answer.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use kaos_policy::code::{Code, Sandbox, World};
use kaos_policy::contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject};
use kaos_policy::failure::Failure;
use kaos_policy::limits::Limits;
use kaos_policy::manifest::PolicyFile;
use kaos_policy::policy::Policy;

/// The recorded answers, in the order of the calls.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<Vec<String>>>);

impl Answers {
    /// Returns all recorded answers and clears the record.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records an answer in its debug form, which shows every byte of a text.
    fn keep<T: Debug>(&self, verb: &str, answer: T) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{verb}: {answer:?}"));
        answer
    }
}

/// Wraps policies. Returns the wrapped policies, and the record of their answers.
pub fn recording(policies: Vec<Arc<Policy>>) -> anyhow::Result<(Vec<Arc<Policy>>, Answers)> {
    let answers = Answers::default();
    let recorded = |policy: Arc<Policy>| {
        let (digest, limits) = (policy.id().digest, *policy.limits());
        let file = PolicyFile { grants: policy.grants().clone(), ..PolicyFile::default() };
        let code = Recorder { policy, answers: answers.clone() };
        Ok(Arc::new(Policy::admit(Arc::new(code), digest, &file, limits)?))
    };
    let policies = policies.into_iter().map(recorded).collect::<anyhow::Result<_>>()?;
    // Discard the answers to `describe`, because they are the same for every case.
    answers.take();
    Ok((policies, answers))
}

struct Recorder {
    policy: Arc<Policy>,
    answers: Answers,
}

struct Recording<'a> {
    inner: Box<dyn Sandbox + 'a>,
    answers: &'a Answers,
}

impl Code for Recorder {
    fn world(&self) -> World {
        self.policy.world()
    }

    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(Recording { inner: self.policy.code().open(limits)?, answers: &self.answers }))
    }
}

impl Sandbox for Recording<'_> {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        self.answers.keep("describe", self.inner.describe())
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        self.inner.begin(subject)
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        self.answers.keep("needs", self.inner.needs(found))
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        self.answers.keep("map-env", self.inner.map_env(base))
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        self.answers.keep("translate", self.inner.translate(env))
    }

    fn amend(&mut self, below: Plan) -> Result<Result<Plan, Refusal>, Failure> {
        self.answers.keep("amend", self.inner.amend(below))
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        self.answers.keep("assess", self.inner.assess(seen))
    }

    fn fuel_used(&self) -> u64 {
        self.inner.fuel_used()
    }

    fn memory(&self) -> usize {
        self.inner.memory()
    }
}
