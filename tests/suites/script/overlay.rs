//! Checks that the template for overlays in JavaScript amends the plan of every recorded case like the template in
//! Rust, byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kaos_policy::code::{Code, Sandbox, World};
use kaos_policy::contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject};
use kaos_policy::failure::Failure;
use kaos_policy::gate::CodeForm;
use kaos_policy::limits::Limits;
use kaos_policy::manifest::PolicyFile;
use kaos_policy::policy::Policy;
use kaos_policy_sdk::{Overlay, testing, types};
use kaos_tests::{case, play, policies, websites};
use mirror_overlay::Mirror;
use serde_json::{Value, json};

const SCRIPT: &str = include_str!("../../../guest-policies/overlay-template/javascript/policy.js");

/// A default policy. After each plan, compares what both overlays make of it.
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

fn amended_by_rust(subject: &Subject, plan: &Plan, settings: &Value) -> Vec<String> {
    let object: Value = serde_json::from_str(&subject.object).unwrap();
    let subject = testing::subject(&object).settings(settings).build();
    let below = types::Plan { manifests: plan.manifests.clone(), ..types::Plan::default() };
    Mirror::amend(&subject, below).unwrap().manifests
}

fn amended_by_script(overlay: &Policy, subject: &Subject, plan: &Plan, settings: &Value) -> Plan {
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
            assert_eq!(amended_by_script(&self.overlay, subject, plan, &settings), expected);
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

#[test]
fn the_overlay_in_javascript_amends_every_recorded_plan_like_the_one_in_rust() {
    let overlay = websites::load(CodeForm::Script, SCRIPT.into());
    assert_eq!((overlay.world(), overlay.id().name.as_str()), (World::Overlay, "mirror"));
    let compared = Arc::new(AtomicUsize::new(0));
    let over = |policy: Arc<Policy>| {
        let (digest, limits) = (policy.id().digest, *policy.limits());
        let file = PolicyFile { grants: policy.grants().clone(), ..PolicyFile::default() };
        let below = Below { policy, overlay: Arc::clone(&overlay), compared: Arc::clone(&compared) };
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

#[test]
fn both_overlays_describe_themselves_alike() {
    let overlay = websites::load(CodeForm::Script, SCRIPT.into());
    let script = overlay.descriptor();
    let rust = Mirror::describe();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!((&script.name, &script.version), (&rust.name, &rust.version));
    assert_eq!(value(&script.settings_schema), value(&rust.settings_schema));
    assert_eq!(script.claims.len(), rust.claims.len());
    for (script, rust) in script.claims.iter().zip(&rust.claims) {
        assert_eq!(
            (&script.primary.api_version, &script.primary.kind),
            (&rust.primary.api_version, &rust.primary.kind)
        );
        let kinds = |kinds: Vec<&String>| kinds.into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(
            kinds(script.emits.iter().map(|it| &it.kind).collect()),
            kinds(rust.emits.iter().map(|it| &it.kind).collect())
        );
        assert_eq!(value(&script.samples[0].object), value(&rust.samples[0].object));
    }
}

#[test]
fn the_overlay_in_the_guide_adds_labels_tolerations_and_a_sidecar() {
    let guide = include_str!("../../../docs/guide/writing-scripts.md");
    let mut blocks = guide.split("```js\n").skip(1).filter_map(|rest| rest.split("```").next());
    let amend = blocks.find(|block| block.contains("export function amend")).unwrap();
    let describe = "export const describe = () => ({name: 'placement', version: '0.1.0', claims: [{
  primary: {apiVersion: 'kaos.tools/v1alpha1', kind: 'Agent'}, emits: [{apiVersion: 'apps/v1', kind: 'Deployment'}],
  samples: [{name: 'any', object: {apiVersion: 'kaos.tools/v1alpha1', kind: 'Agent',
    metadata: {name: 'any', namespace: 'default'}, spec: {}}}]}],
  settingsSchema: {type: 'object', additionalProperties: false, properties: {
    team: {type: 'string', default: 'red', description: 'The team.'},
    tolerations: {type: 'array', default: [], description: 'Tolerations.', items: {type: 'object'}}}}});\n";
    let overlay = websites::load(CodeForm::Script, format!("{describe}{amend}").into_bytes());
    let pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "a:1"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pod}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {}});
    let plan = Plan {
        manifests: vec![service.to_string(), deployment.to_string()],
        origins: Vec::new(),
        gates: Vec::new(),
        env: Vec::new(),
        notes: Vec::new(),
        finalizer: None,
        kept: Vec::new(),
        gates_hold: false,
        extra: "{}".to_owned(),
    };
    let subject = websites::subject(&websites::blog(), &json!({}));
    let settings = json!({"team": "blue", "tolerations": [{"key": "gpu", "operator": "Exists"}]});
    let amended = amended_by_script(&overlay, &subject, &plan, &settings);
    assert_eq!(serde_json::from_str::<Value>(&amended.manifests[0]).unwrap(), service);
    let template = serde_json::from_str::<Value>(&amended.manifests[1]).unwrap()["spec"]["template"].take();
    assert_eq!(template["metadata"]["labels"], json!({"app": "a", "team": "blue"}));
    assert_eq!(template["spec"]["tolerations"], settings["tolerations"]);
    assert_eq!(template["spec"]["containers"][1]["name"], "forwarder");
    assert_eq!((amended.origins[0].manifest, amended.origins[0].from.as_str()), (1, "settings.tolerations"));
}
