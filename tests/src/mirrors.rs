//! Checks that the template of `policy new --overlay` in another language amends the plan of every recorded case like
//! the template in Rust, byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kaos_policy::code::{Code, Sandbox, World};
use kaos_policy::contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject};
use kaos_policy::failure::Failure;
use kaos_policy::limits::Limits;
use kaos_policy::manifest::PolicyFile;
use kaos_policy::policy::Policy;
use kaos_policy_sdk::{Overlay, testing, types};
use mirror_overlay::Mirror;
use serde_json::{Value, json};

use crate::{case, play, policies};

/// A default policy.
///
/// The test lets the template in Rust amend each plan of this policy, and also the overlay in the field `overlay`. Then
/// it compares the two amended plans.
struct Below {
    policy: Arc<Policy>,
    overlay: Arc<Policy>,
    compared: Arc<AtomicUsize>,
}

struct Pass<'a> {
    inner: Box<dyn Sandbox + 'a>,
    below: &'a Below,
    subject: Option<Subject>,
}

#[allow(clippy::unwrap_used, reason = "a test whose policy fails has failed")]
fn amended_by_rust(subject: &Subject, plan: &Plan, settings: &Value) -> Vec<String> {
    let object: Value = serde_json::from_str(&subject.object).unwrap();
    let subject = testing::subject(&object).settings(settings).build();
    let below = types::Plan { manifests: plan.manifests.clone(), ..types::Plan::default() };
    Mirror::amend(&subject, below).unwrap().manifests
}

/// Makes all calls of a pass to an overlay, and returns the amended plan.
///
/// # Panics
///
/// Fails the test if the overlay fails, has a need, changes a variable or refuses the object.
#[allow(clippy::unwrap_used, reason = "a test whose policy fails has failed")]
pub fn amended(overlay: &Policy, subject: &Subject, plan: &Plan, settings: &Value) -> Plan {
    let mut sandbox = overlay.code().open(&Limits::default()).unwrap();
    sandbox.begin(&Subject { settings: settings.to_string(), found: Vec::new(), ..subject.clone() }).unwrap();
    assert_eq!(sandbox.needs(&[]).unwrap(), []);
    assert_eq!(sandbox.map_env(plan.env.clone()).unwrap(), Ok(plan.env.clone()));
    sandbox.amend(plan.clone()).unwrap().unwrap()
}

impl Below {
    fn compare(&self, subject: &Subject, plan: &Plan) {
        for registry in ["registry.test:5000/hub", ""] {
            let settings = json!({"registry": registry});
            let manifests = amended_by_rust(subject, plan, &settings);
            let expected = Plan { manifests, ..plan.clone() };
            assert_eq!(amended(&self.overlay, subject, plan, &settings), expected);
            self.compared.fetch_add(usize::from(expected != *plan), Ordering::Relaxed);
        }
    }
}

impl Code for Below {
    fn world(&self) -> World {
        World::Policy
    }

    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(Pass { inner: self.policy.code().open(limits)?, below: self, subject: None }))
    }
}

impl Sandbox for Pass<'_> {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        self.inner.describe()
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        self.subject = Some(subject.clone());
        self.inner.begin(subject)
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        self.inner.needs(found)
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        self.inner.map_env(base)
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        let answer = self.inner.translate(env);
        if let (Some(subject), Ok(Ok(plan))) = (&self.subject, &answer) {
            self.below.compare(subject, plan);
        }
        answer
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        self.inner.assess(seen)
    }

    fn fuel_used(&self) -> u64 {
        self.inner.fuel_used()
    }

    fn memory(&self) -> usize {
        self.inner.memory()
    }
}

/// Checks that the overlay amends every recorded plan like the overlay in Rust.
///
/// # Panics
///
/// Fails the test at the first difference.
#[allow(clippy::unwrap_used, reason = "a test without its policies and cases has failed")]
pub fn same_amendments(overlay: &Arc<Policy>) {
    let compared = Arc::new(AtomicUsize::new(0));
    let over = |policy: Arc<Policy>| {
        let (digest, limits) = (policy.id().digest, *policy.limits());
        let file = PolicyFile { grants: policy.grants().clone(), ..PolicyFile::default() };
        let below = Below { policy, overlay: Arc::clone(overlay), compared: Arc::clone(&compared) };
        Arc::new(Policy::admit(Arc::new(below), digest, &file, limits).unwrap())
    };
    let policies: Vec<_> = policies::native().unwrap().into_iter().map(over).collect();
    for case in case::all().unwrap() {
        let wanted = case.wanted().unwrap();
        if wanted.get("rejected").is_none() {
            play::play(&case, &wanted, policies::renderers(&policies, &case).unwrap()).unwrap();
        }
    }
    let compared = compared.load(Ordering::Relaxed);
    assert!(compared > 100, "only {compared} plans changed");
}

/// Checks that the overlay describes itself like the overlay in Rust.
///
/// # Panics
///
/// Fails the test at the first difference.
#[allow(clippy::unwrap_used, reason = "a description that is not JSON has failed")]
pub fn same_description(overlay: &Policy) {
    let (own, rust) = (overlay.descriptor(), Mirror::describe());
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(overlay.world(), World::Overlay);
    assert_eq!((&own.name, &own.version), (&rust.name, &rust.version));
    assert_eq!(value(&own.settings_schema), value(&rust.settings_schema));
    assert_eq!(own.claims.len(), rust.claims.len());
    for (own, rust) in own.claims.iter().zip(&rust.claims) {
        assert_eq!((&own.primary.api_version, &own.primary.kind), (&rust.primary.api_version, &rust.primary.kind));
        let own_emits: Vec<&String> = own.emits.iter().map(|it| &it.kind).collect();
        let emits: Vec<&String> = rust.emits.iter().map(|it| &it.kind).collect();
        assert_eq!(own_emits, emits);
        assert_eq!(value(&own.samples[0].object), value(&rust.samples[0].object));
    }
}
