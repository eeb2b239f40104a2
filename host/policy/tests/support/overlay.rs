//! A native overlay over Widgets. A function of the test amends the plan.
#![allow(dead_code, clippy::needless_pass_by_value)]

use std::sync::Arc;

use kaos_policy::{
    code::{Code, Native, Sandbox, World},
    contract::{
        Claim, Cluster, Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, ResourceType, Subject,
    },
    digest::Digest,
    failure::{Failure, Verb},
    limits::Limits,
    lookup::Fixed,
    manifest::PolicyFile,
    policy::{Policy, Stack},
    render::{Rendered, Renderer},
    settings::Layer,
};
use serde_json::{Value, json};

use crate::widget::{self, NATIVE, admitted, translate_planned, widget as object};

/// A function that changes the mapping.
pub(crate) type MapEnv = Arc<dyn Fn(Vec<EnvVar>) -> Vec<EnvVar> + Send + Sync>;
/// A function that changes the plan.
pub(crate) type Amend = Arc<dyn Fn(Plan) -> Result<Plan, Refusal> + Send + Sync>;

/// The code of an overlay.
#[derive(Clone)]
pub(crate) struct Overlay {
    pub(crate) name: &'static str,
    pub(crate) emits: Vec<ResourceType>,
    pub(crate) schema: &'static str,
    pub(crate) map_env: MapEnv,
    pub(crate) amend: Amend,
}

impl Overlay {
    /// Creates an overlay that changes plans. The overlay may change all types that the tests use.
    pub(crate) fn amending(name: &'static str, amend: impl Fn(&mut Plan) + Send + Sync + 'static) -> Self {
        let amend = move |mut plan: Plan| {
            amend(&mut plan);
            Ok(plan)
        };
        let core = ["ConfigMap", "Secret", "Service", "ServiceAccount"].map(|kind| widget::of("v1", kind));
        let others = [widget::of("apps/v1", "Deployment"), widget::of("networking.k8s.io/v1", "NetworkPolicy")];
        let emits = core.into_iter().chain(others).collect();
        Self { name, emits, schema: "{}", map_env: Arc::new(|base| base), amend: Arc::new(amend) }
    }

    /// Creates an overlay that changes the mapping.
    pub(crate) fn mapping(
        name: &'static str,
        map_env: impl Fn(Vec<EnvVar>) -> Vec<EnvVar> + Send + Sync + 'static,
    ) -> Self {
        Self { map_env: Arc::new(map_env), emits: Vec::new(), ..Self::amending(name, |_| ()) }
    }

    pub(crate) fn policy(self, file: &str) -> Arc<Policy> {
        let digest = Digest::of(self.name.as_bytes());
        let file = PolicyFile::parse(file).unwrap();
        Arc::new(Policy::admit(Arc::new(self), digest, &file, Limits::default()).unwrap())
    }
}

impl Code for Overlay {
    fn world(&self) -> World {
        World::Overlay
    }

    fn open(&self, _: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(self.clone()))
    }
}

impl Sandbox for Overlay {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        let Descriptor { version, claims, extra, .. } = widget::describe();
        let claims = claims.into_iter().map(|claim| Claim { emits: self.emits.clone(), reads: vec![], ..claim });
        Ok(Descriptor {
            name: self.name.into(),
            version,
            claims: claims.collect(),
            settings_schema: self.schema.into(),
            extra,
        })
    }

    fn begin(&mut self, _: &Subject) -> Result<(), Failure> {
        Ok(())
    }

    fn needs(&mut self, _: &[Found]) -> Result<Vec<Need>, Failure> {
        Ok(Vec::new())
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        Ok(Ok((self.map_env)(base)))
    }

    fn translate(&mut self, _: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        Err(Failure::NotOfThisWorld { verb: Verb::Translate })
    }

    fn amend(&mut self, below: Plan) -> Result<Result<Plan, Refusal>, Failure> {
        Ok((self.amend)(below))
    }

    fn assess(&mut self, _: &Observation) -> Result<Report, Failure> {
        Err(Failure::NotOfThisWorld { verb: Verb::Assess })
    }

    fn fuel_used(&self) -> u64 {
        1
    }

    fn memory(&self) -> usize {
        0
    }
}

/// Returns a policy for Widgets that takes its plan from `spec.planned`. `file` is the `policy.yaml` with the policy's
/// grants.
pub(crate) fn base(file: &str) -> Arc<Policy> {
    admitted(Native { translate: translate_planned, ..NATIVE }, file)
}

/// Renders a Widget. The base policy returns the manifests in `plan`, and `user` is the user's spec.
pub(crate) fn rendered(base: Arc<Policy>, overlays: Vec<Arc<Policy>>, plan: &Value, user: Value) -> Rendered {
    rendered_with(&[], base, overlays, plan, user)
}

/// Renders a Widget with these settings.
pub(crate) fn rendered_with(
    layers: &[Layer],
    base: Arc<Policy>,
    overlays: Vec<Arc<Policy>>,
    plan: &Value,
    user: Value,
) -> Rendered {
    let mut spec = user;
    spec["planned"] = json!(plan.to_string());
    let stack = Stack::new(base, overlays).unwrap();
    let renderer = Renderer::new(&stack, layers, Cluster::default()).unwrap();
    renderer.render(&object(spec), &Fixed::default()).unwrap()
}

/// Changes every manifest of a plan.
pub(crate) fn each(plan: &mut Plan, change: impl Fn(&mut Value)) {
    for text in &mut plan.manifests {
        let mut manifest: Value = serde_json::from_str(text).unwrap();
        change(&mut manifest);
        *text = manifest.to_string();
    }
}
