// A policy that creates a Deployment and a Service for each `Website`.
//
// The five functions below are pure: they get everything as arguments, and use no clock, network or randomness.
// policy.d.ts describes the arguments and answers. The global `kaos` has helpers.

const API_VERSION = 'example.com/v1';
const CONTAINER = 'web';

/** @returns {import('./policy').Descriptor} */
export function describe() {
  return {
    name: 'website',
    version: '0.1.0',
    claims: [{
      primary: { apiVersion: API_VERSION, kind: 'Website' },
      emits: [{ apiVersion: 'apps/v1', kind: 'Deployment' }, { apiVersion: 'v1', kind: 'Service' }],
      samples: [{
        name: 'minimal',
        object: {
          apiVersion: API_VERSION,
          kind: 'Website',
          metadata: { name: 'blog', namespace: 'default' },
          spec: { title: 'Hello' },
        },
      }],
    }],
    // The host fills in the defaults and checks the values.
    settingsSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'Settings of the website policy',
      type: 'object',
      additionalProperties: false,
      properties: {
        image: {
          description: "The web server's image.",
          type: 'string',
          default: 'nginxinc/nginx-unprivileged:1.29',
          'x-env': 'DEFAULT_WEBSITE_IMAGE',
        },
        port: {
          description: "The port that it listens on, and the Service's.",
          type: 'integer',
          minimum: 1,
          maximum: 65535,
          default: 8080,
        },
      },
    },
  };
}

/**
 * @param {import('./policy').Subject} subject
 * @param {import('./policy').EnvVar[]} base
 * @returns {import('./policy').EnvVar[]}
 */
export function mapEnv(subject, base) {
  const spec = subject.object.spec ?? {};
  return kaos.env(base)
    .set(CONTAINER, 'SITE_TITLE', spec.title ?? 'Welcome', 'spec.title')
    .user(CONTAINER, spec.env, 'spec.env')
    .vars();
}

/**
 * @param {import('./policy').Subject} subject
 * @param {import('./policy').EnvVar[]} env
 * @returns {import('./policy').Plan}
 */
export function translate(subject, env) {
  const { object, settings } = subject;
  const { name, namespace } = object.metadata;
  const spec = object.spec ?? {};
  const wrong = [];
  if ((spec.title ?? 'Welcome').trim() === '') {
    wrong.push({ path: 'spec.title', message: 'must not be blank: give the site a title' });
  }
  const why = kaos.dnsLabel(name);
  if (why) wrong.push({ path: 'metadata.name', message: `${why}, since the Service has the same name` });
  if (wrong.length > 0) throw kaos.invalid(wrong);

  const labels = { app: 'website', 'website': name };
  const metadata = { name, namespace, labels };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: {
      replicas: spec.replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [{
            name: CONTAINER,
            image: settings.image,
            env: kaos.containerEnv(env, CONTAINER),
            ports: [{ name: 'http', containerPort: settings.port, protocol: 'TCP' }],
          }],
        },
      },
    },
  };
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: {
      selector: labels,
      ports: [{ name: 'http', port: settings.port, targetPort: settings.port, protocol: 'TCP' }],
    },
  };
  const origins = [
    { manifest: 0, path: `spec.template.spec.containers[name="${CONTAINER}"].image`, from: 'settings.image' },
    { manifest: 0, path: 'spec.replicas', from: 'spec.replicas' },
    { manifest: 1, path: 'spec.ports[0].port', from: 'settings.port' },
  ];
  return { manifests: [deployment, service], origins, env };
}

/**
 * @param {import('./policy').Subject} subject
 * @param {import('./policy').Observation} seen
 * @returns {import('./policy').Report}
 */
export function assess(subject, seen) {
  const deployment = seen.children.find((child) => child.live?.kind === 'Deployment')?.live;
  const available = kaos.available(deployment);
  const { tag } = seen.outcome;
  // If a plan sets `gatesHold`, its gates can hold back a change while the pods of an earlier plan still serve.
  const ready = (tag === 'applied' || tag === 'gated') && available > 0;
  const phase = ready ? 'Ready' : tag === 'refused' || tag === 'failed' ? 'Failed' : 'Pending';
  return { ready, phase, message: `${available} replicas available` };
}
