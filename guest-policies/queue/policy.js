// The policy `queue` as a script. The script makes the same plans and the same status as the policy in Rust (src), byte
// for byte. A test compares both. `docs/guide/a-real-policy.md` explains the policy step by step.

const API_VERSION = 'example.com/v1';
const CONTAINER = 'server';
const PASSWORD = 'password';
const EXTRA_KEY = 'extra.conf';
const LOGIN = 'login';
const EXTRA = 'extra';
// The maximum length of a StatefulSet's name. Kubernetes adds eleven characters and puts the result into a label, whose
// value has at most 63.
const NAME_MAX = 52;

/** @returns {import('./policy').Descriptor} */
export function describe() {
  return {
    name: 'queue',
    version: '0.1.0',
    claims: [{
      primary: { apiVersion: API_VERSION, kind: 'Queue' },
      emits: [
        { apiVersion: 'v1', kind: 'ConfigMap' },
        { apiVersion: 'v1', kind: 'Service' },
        { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
        { apiVersion: 'apps/v1', kind: 'StatefulSet' },
      ],
      reads: [{ apiVersion: 'v1', kind: 'ConfigMap' }, { apiVersion: 'v1', kind: 'Secret' }],
      samples: samples(),
    }],
    settingsSchema: SETTINGS,
  };
}

/** @type {import('./policy').Policy['needs']} */
export function needs(subject) {
  const { credentialsSecret: secret, configFrom: config } = readSpec(subject.object).value ?? {};
  const needed = [];
  if (isName(secret)) needed.push({ id: LOGIN, target: { tag: 'named', val: secretOf(secret) } });
  if (isName(config)) {
    needed.push({ id: EXTRA, target: { tag: 'named', val: configOf(config) }, fields: [`data["${EXTRA_KEY}"]`] });
  }
  return needed;
}

/** @type {import('./policy').Policy['mapEnv']} */
export function mapEnv(subject, base) {
  const spec = specOf(subject);
  const env = kaos.env(base).bind(CONTAINER, 'POD_NAME', { tag: 'field-path', val: 'metadata.name' }, 'metadata.name');
  if (spec.credentialsSecret !== undefined) {
    const val = { name: spec.credentialsSecret, key: PASSWORD, optional: false };
    env.bind(CONTAINER, 'QUEUE_PASSWORD', { tag: 'secret-key', val }, 'spec.credentialsSecret');
  }
  return env.user(CONTAINER, spec.env, 'spec.env').vars();
}

/** @type {import('./policy').Policy['translate']} */
export function translate(subject, env) {
  const { object, settings } = subject;
  const spec = specOf(subject);
  check(object, spec);
  const { login, extra } = found(subject, spec);
  const gates = [login.missing, extra.missing].filter((gate) => gate);
  const manifests = [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: metadata(object),
      data: { 'nats.conf': configuration(subject, spec, extra.text ?? '') },
    },
    service(object),
    budget(object),
    statefulSet(object, spec, settings, login, env),
  ];
  const container = `spec.template.spec.containers[name="${CONTAINER}"]`;
  const volume = 'spec.volumeClaimTemplates[0].spec';
  const from = (own, path, setting) => (own === undefined ? setting : path);
  const origins = [
    ['spec.replicas', 'spec.replicas'],
    [`${container}.image`, from(spec.image, 'spec.image', 'settings.image')],
    [`${container}.resources`, 'settings.resources'],
    [`${volume}.resources.requests.storage`, from(spec.storage.size, 'spec.storage.size', 'settings.storageSize')],
    [`${volume}.storageClassName`, 'spec.storage.className'],
  ].map(([path, source]) => ({ manifest: 3, path, from: source }));
  // Without the password or the extra configuration, the plan is incomplete. So its plan gates hold back every apply,
  // not only the first.
  return { manifests, origins, env, gates, gatesHold: gates.length > 0, notes: notes(login) };
}

/** @type {import('./policy').Policy['assess']} */
export function assess(subject, seen) {
  const { name } = subject.object.metadata;
  const live = seen.children.find((child) => child.identity.kind === 'StatefulSet' && child.live)?.live;
  const available = kaos.available(live);
  // Before the first apply, no StatefulSet exists, so use the number in the Queue.
  const wanted = live ? live.spec?.replicas ?? 1 : readSpec(subject.object).value?.replicas ?? 0;
  const hasMajority = available * 2 > wanted;
  const servers = `${available} of ${wanted} servers available`;
  const [phase, message] = verdict(seen, hasMajority, servers);
  const fields = {
    endpoint: `nats://${host(subject)}:4222`,
    replicas: live?.status?.replicas ?? 0,
    readyReplicas: live?.status?.readyReplicas ?? 0,
    selector: `app=queue,queue=${name}`,
  };
  return { ready: phase === 'Ready', phase, message, fields, conditions: conditions(subject) };
}

function verdict(seen, hasMajority, servers) {
  const { tag, val } = seen.outcome;
  const refusal = tag === 'refused' ? val : undefined;
  if (refusal?.tag === 'invalid') {
    return ['Failed', refusal.val.map(({ path, message }) => `${path}: ${message}`).join('; ')];
  }
  if (refusal?.tag === 'unsupported') return ['Failed', refusal.val];
  if (tag === 'failed') return ['Failed', val];
  // A lost Secret does not stop running servers.
  if (tag !== 'applied' && !hasMajority) return ['Waiting', seen.gates[0]?.message ?? 'waiting'];
  return [hasMajority ? 'Ready' : 'Pending', servers];
}

function conditions(subject) {
  const spec = readSpec(subject.object);
  if (spec.wrong) return [];
  const { login } = found(subject, spec.value);
  const of = (status, reason, message) => [{ type: 'LoginKnown', status, reason, message }];
  if (login.missing) return of('no', login.missing.reason, login.missing.message);
  if (login.why !== undefined) {
    return of('unknown', 'SecretNotWatched', `the operator does not look at Secret ${login.secret}`);
  }
  return login.secret === undefined ? [] : of('yes', 'Found', `Secret ${login.secret} has a password`);
}

// Reads the spec, and refuses fields of a wrong type.
function specOf(subject) {
  const { wrong, value } = readSpec(subject.object);
  if (wrong) throw kaos.invalid(wrong.path, wrong.message);
  return value;
}

// Checks the types of all fields, in the order of the names. Returns the spec with its defaults, or the first mistake.
function readSpec(object) {
  const given = object.spec ?? {};
  const text = { name: 'a string', is: (value) => typeof value === 'string' };
  const isNumber = (value) => Number.isInteger(value) && value >= 0 && value <= 4294967295;
  const number = { name: 'a whole number from 0 to 4294967295', is: isNumber };
  const list = { name: 'a list', is: Array.isArray };
  const map = { name: 'an object', is: (value) => typeof value === 'object' && !Array.isArray(value) };
  const all = [
    ['configFrom', text], ['credentialsSecret', text], ['env', list], ['image', text], ['maxMessages', number],
    ['replicas', number], ['storage', map], ['storage.className', text], ['storage.size', text],
  ];
  for (const [path, type] of [['', map], ...all]) {
    const value = path === '' ? given : path.split('.').reduce((at, name) => at?.[name], given);
    if (value !== undefined && value !== null && !type.is(value)) {
      const message = `must be ${type.name}, not ${shown(value)}`;
      return { wrong: { path: path === '' ? 'spec' : `spec.${path}`, message } };
    }
  }
  const there = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const storage = Object.fromEntries(Object.entries(there.storage ?? {}).filter(([, value]) => value !== null));
  return { value: { replicas: 1, env: [], ...there, storage } };
}

function shown(value) {
  if (typeof value === 'string') return `string "${value}"`;
  if (typeof value === 'boolean') return `boolean \`${value}\``;
  if (typeof value === 'number') return `${Number.isInteger(value) ? 'integer' : 'floating point'} \`${value}\``;
  return Array.isArray(value) ? 'a list' : 'an object';
}

// Checks the object. The guard's checks of the manifests find other mistakes, such as an invalid size.
function check(object, spec) {
  const wrong = [];
  const require = (holds, path, message) => { if (!holds) wrong.push({ path, message }); };
  const why = kaos.dnsLabel(object.metadata.name);
  if (why) {
    require(false, 'metadata.name', `${why}, since the Service has the same name`);
  } else {
    require(object.metadata.name.length <= NAME_MAX, 'metadata.name', `must have at most ${NAME_MAX} characters`);
  }
  require([1, 3, 5].includes(spec.replicas), 'spec.replicas', 'must be 1, 3 or 5: servers decide by majority');
  const limit = spec.maxMessages ?? 1;
  require(limit >= 1 && limit <= 1000000, 'spec.maxMessages', 'must be a number from 1 to 1000000');
  for (const field of ['credentialsSecret', 'configFrom']) {
    const isFine = spec[field] === undefined || isName(spec[field]);
    require(isFine, `spec.${field}`, "must be the name of an object: lower-case letters, digits, '-' and '.'");
  }
  if (wrong.length > 0) throw kaos.invalid(wrong);
}

// Reads the answers to the needs. In the result, `missing` is a blocker: it names the object that the plan waits for.
function found(subject, spec) {
  const answer = (id) => subject.found.find((it) => it.id === id)?.answer;
  return {
    login: spec.credentialsSecret === undefined ? {} : readLogin(answer(LOGIN), spec.credentialsSecret),
    extra: spec.configFrom === undefined ? {} : readExtra(answer(EXTRA), configOf(spec.configFrom)),
  };
}

function readLogin(answer, secret) {
  if (answer?.tag === 'forbidden') return { secret, why: answer.val };
  const on = secretOf(secret);
  if (answer?.tag !== 'secret' || !answer.val.present) return { missing: notFound(on) };
  const { keys, digest } = answer.val;
  return keys.includes(PASSWORD) ? { secret, digest } : { missing: noKey(on, PASSWORD) };
}

function readExtra(answer, on) {
  if (answer?.tag === 'unserved') {
    const message = `this cluster does not serve ${on.kind} of ${on.apiVersion}`;
    return { missing: { on, reason: 'Unserved', message } };
  }
  if (answer?.tag === 'forbidden') {
    const message = `${on.kind} ${on.name} cannot be read: ${answer.val}`;
    return { missing: { on, reason: 'Forbidden', message } };
  }
  const config = answer?.val[0];
  if (!config) return { missing: notFound(on) };
  const text = config.data?.[EXTRA_KEY];
  return typeof text === 'string' ? { text } : { missing: noKey(on, EXTRA_KEY) };
}

function notes({ missing, secret, why }) {
  const path = 'spec.credentialsSecret';
  if (missing) {
    const message = `${missing.message}: the servers keep their configuration until the Secret has a password`;
    return [{ severity: 'warning', reason: missing.reason, message, path }];
  }
  if (why === undefined) return [];
  const message = `a new password in Secret ${secret} does not restart the servers: ${why}`;
  return [{ severity: 'info', reason: 'SecretNotWatched', message, path }];
}

const notFound = (on) => ({ on, reason: 'NotFound', message: `${on.kind} ${on.name} not found` });
const noKey = (on, key) => ({ on, reason: 'KeyNotFound', message: `${on.kind} ${on.name} has no key ${key}` });
const secretOf = (name) => ({ apiVersion: 'v1', kind: 'Secret', name });
const configOf = (name) => ({ apiVersion: 'v1', kind: 'ConfigMap', name });

function isName(text) {
  const part = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
  return typeof text === 'string' && text.length <= 253 && new RegExp(`^${part}(\\.${part})*$`).test(text);
}

function host(subject) {
  const { name, namespace } = subject.object.metadata;
  return `${name}.${namespace}.svc.${subject.cluster.domain}`;
}

// The server replaces `$POD_NAME` and `$QUEUE_PASSWORD` by the values of these environment variables.
function configuration(subject, spec, extra) {
  const { name } = subject.object.metadata;
  const { settings } = subject;
  const lines = [
    'server_name: $POD_NAME',
    'listen: 0.0.0.0:4222',
    'http: 0.0.0.0:8222',
    `debug: ${settings.logLevel !== 'info'}`,
    `trace: ${settings.logLevel === 'trace'}`,
    'jetstream {',
    '  store_dir: /data',
    `  limits { max_ack_pending: ${spec.maxMessages ?? settings.maxMessages} }`,
    '}',
  ];
  if (spec.credentialsSecret !== undefined) {
    lines.push('authorization { user: queue, password: $QUEUE_PASSWORD }');
  }
  if (spec.replicas > 1) {
    lines.push('cluster {', `  name: "${name}"`, '  listen: 0.0.0.0:6222', '  routes: [');
    for (let ordinal = 0; ordinal < spec.replicas; ordinal += 1) {
      lines.push(`    "nats://${name}-${ordinal}.${host(subject)}:6222"`);
    }
    lines.push('  ]', '}');
  }
  return `${lines.join('\n')}\n${extra}`;
}

function labels(object) {
  return { app: 'queue', queue: object.metadata.name };
}

function metadata(object) {
  const { name, namespace } = object.metadata;
  return { name, namespace, labels: labels(object) };
}

// The headless Service gives each server a name. The servers must find each other before they are ready.
function service(object) {
  const port = (name, number) => ({ name, port: number, targetPort: name, protocol: 'TCP' });
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadata(object),
    spec: {
      clusterIP: 'None',
      publishNotReadyAddresses: true,
      selector: labels(object),
      ports: [port('client', 4222), port('cluster', 6222), port('monitor', 8222)],
    },
  };
}

// A node drain stops only one server at a time, so that the majority keeps working.
function budget(object) {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: metadata(object),
    spec: { maxUnavailable: 1, selector: { matchLabels: labels(object) } },
  };
}

function statefulSet(object, spec, settings, login, env) {
  const { name } = object.metadata;
  const port = (of, number) => ({ name: of, containerPort: number, protocol: 'TCP' });
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: metadata(object),
    spec: {
      replicas: spec.replicas,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      selector: { matchLabels: labels(object) },
      template: {
        // A new password changes the annotation, so Kubernetes restarts the pods one after another.
        metadata: {
          labels: labels(object),
          annotations: login.digest === undefined ? undefined : { 'example.com/login-digest': login.digest },
        },
        spec: {
          securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 },
          containers: [{
            name: CONTAINER,
            image: spec.image ?? settings.image,
            args: ['--config', '/etc/nats/nats.conf'],
            env: kaos.containerEnv(env, CONTAINER),
            ports: [port('client', 4222), port('cluster', 6222), port('monitor', 8222)],
            readinessProbe: { httpGet: { path: '/healthz?js-enabled-only=true', port: 'monitor' } },
            livenessProbe: { httpGet: { path: '/healthz?js-server-only=true', port: 'monitor' } },
            resources: settings.resources,
            securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
            volumeMounts: [{ name: 'config', mountPath: '/etc/nats' }, { name: 'data', mountPath: '/data' }],
          }],
          volumes: [{ name: 'config', configMap: { name } }],
        },
      },
      volumeClaimTemplates: [{
        metadata: { name: 'data' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: spec.storage.size ?? settings.storageSize } },
          storageClassName: spec.storage.className,
        },
      }],
    },
  };
}

function samples() {
  const minimal = { apiVersion: API_VERSION, kind: 'Queue', metadata: { name: 'jobs', namespace: 'default' }, spec: {} };
  const spec = {
    replicas: 3,
    image: 'registry.example.com/nats:2.11',
    storage: { size: '10Gi', className: 'fast' },
    maxMessages: 5000,
    credentialsSecret: 'orders-login',
    configFrom: 'orders-extra',
    env: [{ name: 'GOMEMLIMIT', value: '100MiB' }],
  };
  const inShop = (name) => ({ metadata: { name, namespace: 'shop' } });
  const orders = { apiVersion: API_VERSION, kind: 'Queue', ...inShop('orders'), spec };
  const secret = (data) => ({ apiVersion: 'v1', kind: 'Secret', ...inShop('orders-login'), data });
  const data = { [EXTRA_KEY]: 'max_payload: 2MB\n' };
  const extra = { apiVersion: 'v1', kind: 'ConfigMap', ...inShop('orders-extra'), data };
  return [
    { name: 'minimal', object: minimal },
    { name: 'orders', object: orders, beside: [secret({ password: '' }), extra] },
    { name: 'no-secret', object: orders, beside: [extra] },
    { name: 'no-password', object: orders, beside: [secret({ token: '' }), extra] },
  ];
}

const amounts = { type: 'object', additionalProperties: { type: 'string' } };

const SETTINGS = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Settings of the queue policy',
  type: 'object',
  additionalProperties: false,
  properties: {
    image: {
      description: 'The image of the servers, for Queues without spec.image.',
      type: 'string', default: 'nats:2.11-alpine', 'x-env': 'DEFAULT_QUEUE_IMAGE',
    },
    logLevel: {
      description: 'The level of the log: info, debug or trace.',
      type: 'string', enum: ['info', 'debug', 'trace'], default: 'info',
      'x-annotation': true, 'x-env': 'DEFAULT_QUEUE_LOG_LEVEL',
    },
    maxMessages: {
      description: 'The number of unacknowledged messages per consumer, for Queues without spec.maxMessages.',
      type: 'integer', minimum: 1, maximum: 1000000, default: 1000,
    },
    storageSize: {
      description: "The size of each server's volume, for Queues without spec.storage.size.",
      type: 'string', default: '1Gi',
    },
    resources: {
      description: 'The resources of each server.',
      type: 'object', properties: { limits: amounts, requests: amounts }, additionalProperties: false,
      default: { requests: { cpu: '100m', memory: '128Mi' } },
    },
  },
};
