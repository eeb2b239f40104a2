//! Makes folders with a script, and with the CRD of the kind that the script claims. A test changes the good script in
//! one place.

use crate::support::{Folder, Ran, run};

/// The CRD of the kind that the scripts claim.
pub(crate) const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kites.sky.io}
spec:
  group: sky.io
  scope: Namespaced
  names: {kind: Kite, plural: kites, singular: kite}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              title: {type: string}
              replicas: {type: integer, format: int32, minimum: 0}
              mode: {type: string, enum: [plain, odd]}
              tags: {type: array, items: {type: string}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// A policy without problems.
const GOOD: &str = "export function describe() {
  return {
    name: 'kite', version: '0.1.0',
    claims: [{
      primary: {apiVersion: 'sky.io/v1', kind: 'Kite'},
      emits: [{apiVersion: 'apps/v1', kind: 'Deployment'}],
      samples: [{name: 'minimal', object: {apiVersion: 'sky.io/v1', kind: 'Kite',
        metadata: {name: 'fuji', namespace: 'default'}, spec: {title: 'Above the clouds'}}}],
    }],
    settingsSchema: {
      type: 'object', additionalProperties: false,
      properties: {
        image: {type: 'string', minLength: 1, default: 'kite:1'},
        port: {type: 'integer', minimum: 1, maximum: 65535, default: 8080},
        /* settings */
      },
    },
  };
}
export function mapEnv({object: {spec}}, base) {
  const env = kaos.env(base).set('web', 'TITLE', spec?.title ?? 'none', 'spec.title');
  /* mapping */
  return env.vars();
}
export function translate({object, settings, applied}, env) {
  const {metadata: {name, namespace}, spec = {}} = object;
  const why = kaos.dnsLabel(name);
  if (why) throw kaos.invalid('metadata.name', why);
  if ((spec.title ?? 'none').trim() === '') throw kaos.invalid('spec.title', 'must not be blank: give the kite a title');
  const labels = {app: name};
  const container = {
    name: 'web', image: settings.image, env: kaos.containerEnv(env, 'web'), ports: [{containerPort: settings.port}],
  };
  const deployment = {
    apiVersion: 'apps/v1', kind: 'Deployment', metadata: {name, namespace, labels},
    spec: {replicas: spec.replicas, selector: {matchLabels: labels},
      template: {metadata: {labels}, spec: {containers: [container]}}},
  };
  /* translation */
  return {manifests: [deployment], env, origins: [
    {manifest: 0, path: 'spec.replicas', from: 'spec.replicas'},
    {manifest: 0, path: 'spec.template.spec.containers[0].image', from: 'settings.image'},
  ]};
}
";

/// A folder with a script and the CRD of the kind that the script claims.
pub(crate) struct Project {
    pub(crate) folder: Folder,
    pub(crate) script: String,
    pub(crate) crd: String,
}

impl Project {
    /// Writes the good script, with `code` instead of the comment that contains `place`.
    pub(crate) fn new(place: &str, code: &str) -> Self {
        let folder = Folder::new("conform");
        let script = folder.write("policy.js", GOOD.replace(&format!("/* {place} */"), code));
        let crd = folder.write("crd.yaml", CRD);
        Self { folder, script, crd }
    }

    pub(crate) fn conform(&self, more: &[&str]) -> Ran {
        let usual = ["policy", "conform", &self.script, "--crds", &self.crd, "--objects", "40"];
        run(usual.iter().chain(more), "")
    }
}

/// The script's manifests with a second child, which has the custom kind `Sky`.
const SKY: &str =
    "manifests: [{apiVersion: 'sky.io/v1', kind: 'Sky', metadata: {name}, spec: {colur: 'blue'}}, deployment]";

/// Returns a project whose policy also has a child of the kind `Sky` in its plan.
pub(crate) fn with_sky() -> Project {
    let project = Project::new("", "");
    let script = std::fs::read_to_string(&project.script).unwrap();
    let emits = "emits: [{apiVersion: 'sky.io/v1', kind: 'Sky'}, ";
    let script = script.replace("emits: [", emits).replace("manifests: [deployment]", SKY);
    std::fs::write(&project.script, script.replace("manifest: 0", "manifest: 1")).unwrap();
    project
}
