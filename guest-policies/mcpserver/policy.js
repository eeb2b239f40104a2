// The default policy of the kind MCPServer, as a script. The operator ships the same policy in Rust, and a test compares
// the answers of both on every recorded case. So this script shows how a policy of a real size looks in JavaScript.
//
//   description          the claim, and the settings with their defaults
//   questions            the functions that the operator calls
//   the object           the fields of an MCPServer, older forms included
//   the start            the registry of runtimes, and how the container starts
//   manifests            Deployment, Service, HTTPRoute, and the objects that protect the server
//   the status           phase, endpoint, conditions, and the tools in Python source

const API_VERSION = 'kaos.tools/v1alpha1';

// The fixed names of the kind. They identify the kind's objects on a cluster, so they are not settings.
const APP = 'mcpserver';
const PREFIX = 'mcpserver';
const CONTAINER = 'mcp-server';
const ROUTE = 'mcp';

// The runtime with Python source in `params`.
const PYTHON_STRING = 'python-string';
// The runtime without an entry in the registry. A server with this runtime runs the user's own image.
const CUSTOM = 'custom';
// The id of the need for the registry.
const REGISTRY = 'registry';

const ROUTE_TYPE = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' };
const GATEWAY_POLICY = { apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'SecurityPolicy' };
const NETWORK_POLICY = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' };

const DEPRECATED = 'Deprecated';
const PARAMS_UNUSED = 'ParamsUnused';
const REQUIRED_ENV_MISSING = 'RequiredEnvMissing';
const COMMAND_IS_FLAGS = 'CommandIsFlags';

// ---------------------------------------------------------------------------------------------------- description

/** @returns {import('../template/javascript/policy').Descriptor} */
export function describe() {
  const registry = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'kaos-mcp-runtimes', namespace: 'kaos-system' },
    data: {
      'runtimes.yaml': `runtimes:
  python-string:
    image: axsauze/kaos-mcp-python-string:v0.1.4-dev
    paramsEnvVar: MCP_TOOLS_STRING
`,
    },
  };
  const sample = (name, spec) => ({
    apiVersion: API_VERSION, kind: 'MCPServer', metadata: { name, namespace: 'default' }, spec,
  });
  const echo = sample('echo', {
    runtime: PYTHON_STRING, params: 'def echo(message: str) -> str:\n    return message\n',
  });
  const custom = sample('custom', {
    runtime: CUSTOM,
    container: { image: 'example.com/mcp:1', env: [{ name: 'LOG_LEVEL', value: 'DEBUG' }] },
  });
  return {
    name: 'mcpserver',
    version: '0.1.0',
    claims: [{
      primary: { apiVersion: API_VERSION, kind: 'MCPServer' },
      emits: [
        { apiVersion: 'apps/v1', kind: 'Deployment' },
        { apiVersion: 'v1', kind: 'Service' },
        ROUTE_TYPE,
        GATEWAY_POLICY,
        NETWORK_POLICY,
      ],
      reads: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
      wishes: [ROUTE_TYPE, GATEWAY_POLICY, NETWORK_POLICY],
      samples: [
        { name: 'python-string', object: echo, beside: [registry] },
        { name: 'custom', object: custom },
      ],
    }],
    settingsSchema: settingsSchema(),
  };
}

// An object's annotation can override such a setting.
const ANNOTATED = { 'x-annotation': true };
const fromEnv = (name) => ({ 'x-env': name });

const LABEL = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?';
const WORD = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${WORD}(\\.${WORD})*`;
const NAMESPACE = { maxLength: 63, pattern: `^(${WORD})?$` };

const text = (value, description, more) => ({ type: 'string', default: value, description, ...more });
const flag = (value, description, more) => ({ type: 'boolean', default: value, description, ...more });
const number = (value, minimum, maximum, more) => ({
  type: 'integer', default: value, minimum, maximum, ...ANNOTATED, ...more,
});
const port = (description) => number(8000, 1, 65535, { description });
const choice = (value, choices, more) => ({
  default: value,
  oneOf: Object.entries(choices).map(([of, description]) => ({ const: of, description, type: 'string' })),
  ...more,
});
const group = (description, properties, more) => ({
  type: 'object', description, additionalProperties: false, properties, ...more,
});
const members = (description, more) => ({ type: 'object', default: {}, description, ...more });

function probe(description, initialDelaySeconds, periodSeconds, failureThreshold, mostSuccesses) {
  const most = 2147483647;
  return group(description, {
    handler: choice('tcpSocket', {
      httpGet: 'GET on `path`.', tcpSocket: 'A connection to the port.', none: 'No probe.',
    }, ANNOTATED),
    path: { type: 'string', default: '/', pattern: '^/', ...ANNOTATED },
    port: { type: ['integer', 'null'], default: null, minimum: 1, maximum: 65535, ...ANNOTATED },
    scheme: choice('HTTP', {
      HTTP: 'HTTP without TLS.', HTTPS: 'TLS, without checking the certificate.',
    }, ANNOTATED),
    initialDelaySeconds: number(initialDelaySeconds, 0, most),
    periodSeconds: number(periodSeconds, 1, most),
    timeoutSeconds: number(3, 1, most),
    failureThreshold: number(failureThreshold, 1, most),
    successThreshold: number(1, 1, mostSuccesses),
  });
}

// The host fills in the defaults and checks the values.
function settingsSchema() {
  const names = {
    maxLength: 317, pattern: `^(${SUBDOMAIN}/)?${LABEL}$`, not: { pattern: '^(.*\\.)?kaos\\.tools/' },
  };
  const quantities = {
    type: ['object', 'null'],
    additionalProperties: {
      type: ['string', 'number'],
      pattern: '^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$',
    },
  };
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Settings',
    description: 'The settings.',
    type: 'object',
    additionalProperties: false,
    properties: {
      registry: group('The ConfigMap with the registry of runtimes.', {
        configMap: text(
          'kaos-mcp-runtimes',
          "ConfigMap of runtimes in the operator's namespace. The policy can read only this ConfigMap. To use another\n"
            + 'ConfigMap, add a grant in policy.yaml.',
          { maxLength: 253, pattern: `^${SUBDOMAIN}$` },
        ),
        key: text('runtimes.yaml', 'The key in the ConfigMap.', {
          maxLength: 253, pattern: '^([-_a-zA-Z0-9]|\\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$',
        }),
      }),
      runtimes: runtimesSchema(),
      commandFlagsAsArgs: flag(
        false,
        "Whether a registry command that begins with a flag becomes arguments of the image's entrypoint, instead of\n"
          + 'replacing the entrypoint.',
        ANNOTATED,
      ),
      packageImage: text(
        'python:3.12-slim',
        'Image for packages of the older fields `config.mcp` and `config.tools.fromPackage`.',
        { minLength: 1, ...ANNOTATED },
      ),
      logLevel: text('INFO', 'Log level of servers that set no level, in the variable `LOG_LEVEL`.', {
        ...ANNOTATED, ...fromEnv('DEFAULT_LOG_LEVEL'),
      }),
      imagePullPolicy: choice('IfNotPresent', {
        Always: 'Pulls at each start of a pod.',
        IfNotPresent: 'Pulls if the node lacks the image.',
        Never: 'Never pulls.',
      }, { description: 'Pull policy of images.', ...ANNOTATED }),
      containerPort: port('Port that servers listen on.'),
      servicePort: port('Port of the Service, and of the endpoint.'),
      portName: text('http', 'Name of the port, also in the Service.', {
        maxLength: 15, pattern: '^([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$', ...ANNOTATED,
      }),
      serviceType: choice('ClusterIP', {
        ClusterIP: 'Inside the cluster.',
        NodePort: 'On a port of every node.',
        LoadBalancer: 'Through a load balancer.',
      }, { description: 'Type of the Service.' }),
      livenessProbe: probe('Liveness probe.', 20, 10, 3, 1),
      readinessProbe: probe('Readiness probe.', 15, 5, 2, 2147483647),
      resources: members('Resources of servers that set no resources.', {
        patternProperties: { '^(limits|requests)$': quantities }, ...ANNOTATED,
      }),
      securityContext: members('Security context of every container.', { additionalProperties: true }),
      podSecurityContext: members('Security context of the pod.', { additionalProperties: true }),
      automountServiceAccountToken: {
        type: ['boolean', 'null'],
        default: null,
        description: "Whether pods get a token. null selects Kubernetes' default.",
      },
      extraLabels: members('Additional labels of every child and pod.', {
        additionalProperties: { type: 'string', maxLength: 63, pattern: `^(${LABEL})?$` }, propertyNames: names,
      }),
      extraAnnotations: members('Additional annotations of every child and pod.', {
        additionalProperties: { type: 'string' }, propertyNames: names,
      }),
      gateway: group('The Gateway.', {
        enabled: flag(
          false,
          'Whether exposed objects get an HTTPRoute, if the cluster serves that type.',
          fromEnv('GATEWAY_API_ENABLED'),
        ),
        name: text('', 'Name of the Gateway.', {
          maxLength: 253, pattern: `^(${SUBDOMAIN})?$`, ...fromEnv('GATEWAY_NAME'),
        }),
        namespace: text('', "Namespace of the Gateway; empty selects the object's namespace.", {
          ...NAMESPACE, ...fromEnv('GATEWAY_NAMESPACE'),
        }),
        timeout: text('30s', 'Request timeout of objects that set no timeout, such as `1h30m`; `0s` sets no limit.', {
          pattern: '^([0-9]+(h|m|s|ms)){1,4}$', ...ANNOTATED, ...fromEnv('GATEWAY_DEFAULT_MCP_TIMEOUT'),
        }),
      }),
      security: securitySchema(),
      telemetry: group('Telemetry.', {
        enabled: flag(false, 'Whether telemetry is enabled.', {
          ...ANNOTATED, ...fromEnv('DEFAULT_TELEMETRY_ENABLED'),
        }),
        endpoint: text('', 'OTLP gRPC endpoint.', { ...ANNOTATED, ...fromEnv('DEFAULT_TELEMETRY_ENDPOINT') }),
        excludedUrls: text('/health,/ready', 'Paths that are not traced, joined by commas.', ANNOTATED),
      }),
      finalizer: text(
        '',
        'Finalizer for a deletion of the children in order, for example `kaos.tools/mcpserver-finalizer`. If empty, '
          + 'Kubernetes\ndeletes the children.',
        { maxLength: 317, pattern: `^(${SUBDOMAIN}/${LABEL})?$` },
      ),
    },
  };
}

function runtimesSchema() {
  const words = (description) => ({
    type: ['array', 'null'], default: null, items: { type: 'string' }, description,
  });
  const list = (description) => ({ type: 'array', default: [], items: { type: 'string' }, description });
  return {
    type: 'object',
    description: "The runtimes to use if the cluster does not have the registry's ConfigMap.",
    default: {
      'python-string': {
        type: 'python',
        image: 'axsauze/kaos-mcp-python-string:v0.1.4-dev',
        transport: 'http',
        paramsEnvVar: 'MCP_TOOLS_STRING',
      },
      kubernetes: {
        type: 'go', image: 'ghcr.io/manusa/kubernetes-mcp-server:latest', transport: 'http', args: ['--port', '8000'],
      },
      slack: {
        type: 'nodejs',
        image: 'zencoderai/slack-mcp:latest',
        transport: 'http',
        args: ['--transport', 'http', '--port', '8000'],
        requiredEnv: ['SLACK_BOT_TOKEN', 'SLACK_TEAM_ID'],
      },
    },
    additionalProperties: {
      type: 'object',
      description: 'How to start servers of a runtime. An entry in a ConfigMap may have further fields, which the policy '
        + 'ignores.',
      properties: {
        type: text('', 'The language of the runtime. Only for information.'),
        image: text('', 'The image. If a runtime has no image, each server with this runtime must set an image.'),
        description: text('', 'The purpose of the runtime. Only for information.'),
        command: words('Replaces the entrypoint of the image.'),
        args: words('Replaces the arguments of the image.'),
        paramsEnvVar: text(
          '',
          'The variable for `spec.params`. The parameters win over a variable that the policy sets, such as `LOG_LEVEL`. '
            + 'A\nvariable of the user wins over the parameters.',
          { maxLength: 253, pattern: '^([-._a-zA-Z][-._a-zA-Z0-9]*)?$' },
        ),
        transport: text('', 'The transport of MCP. Only for information.'),
        requiredEnv: list('Variables that servers of this runtime require.'),
        tools: list('The tools of the runtime, shown as `status.availableTools`.'),
      },
    },
  };
}

function securitySchema() {
  const agents = group('The tokens of Agents, from the header `x-agent-authorization`.', {
    issuer: text(
      '',
      'Issuer: the field `issuer` of `kubectl get --raw /.well-known/openid-configuration`.',
      fromEnv('SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER'),
    ),
    jwks: text('', 'Keys of the issuer: `kubectl get --raw /openid/v1/jwks`.', {
      maxLength: 65536,
      pattern: '^(\\s*\\{[\\s\\S]*"keys"[\\s\\S]*\\}\\s*)?$',
      ...fromEnv('SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS'),
    }),
    audience: text(
      '',
      'Audience of the tokens. If empty, the policy `agent` uses its setting `serviceAccount.audience`.',
      fromEnv('SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE'),
    ),
  });
  const users = group('The tokens of users, from the header `authorization`.', {
    issuer: text(
      '',
      'Issuer. If empty, requests carry no tokens of users.',
      fromEnv('SECURITY_USER_AUTH_ISSUER'),
    ),
    audience: text(
      '',
      'Audience of the tokens. If empty, the Gateway does not check the audience.',
      fromEnv('SECURITY_USER_AUTH_AUDIENCE'),
    ),
    jwksUri: text(
      '',
      "URL of the issuer's keys. If empty, the URL that Keycloak has for this issuer.",
      fromEnv('SECURITY_USER_AUTH_JWKS_URI'),
    ),
  });
  return {
    ...group('Protection at the Gateway and in the network.', {
      targetHeader: flag(
        false,
        'Whether HTTPRoutes set the header `x-kaos-target-resource` to the identifier of their object.',
      ),
      pdp: flag(
        false,
        "Whether the Service `kaos-pdp` in the operator's namespace is the decision point for requests at routes.",
        fromEnv('SECURITY_PDP_ENABLED'),
      ),
      authorizer: text(
        '',
        "Address of another Service as decision point, with Envoy's gRPC interface: `name.namespace.svc:port`.",
        {
          maxLength: 300,
          pattern: '^(([a-z]+://)?[-a-z0-9]+\\.[-a-z0-9]+(\\.svc(\\.[-.a-z0-9]+)?)?:[0-9]{1,5}/?)?$',
          ...fromEnv('SECURITY_AGENT_AUTH_EXT_AUTHZ_URL'),
        },
      ),
      jwtOptional: flag(
        true,
        'Whether requests without a valid token reach the decision point. If false, the Gateway refuses them.',
      ),
      agents,
      users,
      strict: flag(
        false,
        'Whether all calls go through the Gateway: all objects except Agents get a NetworkPolicy.',
        fromEnv('SECURITY_STRICT_GATEWAY_API_ENABLED'),
      ),
      networkPolicy: group('NetworkPolicies.', {
        disabled: flag(
          false,
          'Whether objects get no NetworkPolicy. With `security.strict`, this setting has no effect.',
          fromEnv('SECURITY_NETWORK_POLICY_DISABLED'),
        ),
        egress: flag(
          false,
          'Whether NetworkPolicies also limit the connections that pods open.',
          fromEnv('SECURITY_NETWORK_POLICY_EGRESS_ENABLED'),
        ),
      }),
      gatewayNamespace: text('', "Namespace of the Gateway's pods. Empty selects `envoy-gateway-system`.", {
        ...NAMESPACE, ...fromEnv('SECURITY_GATEWAY_NAMESPACE'),
      }),
      operatorNamespace: text(
        '',
        "The pods of this namespace can reach all objects. Empty selects the operator's namespace.",
        { ...NAMESPACE, ...fromEnv('SECURITY_OPERATOR_NAMESPACE') },
      ),
    }),
    type: ['object', 'null'],
    default: null,
    'x-owner': true,
  };
}

// ------------------------------------------------------------------------------------------------------ questions

/**
 * The need for the registry, if the object names a runtime. The need is optional if the settings contain the runtime.
 *
 * @param {import('../template/javascript/policy').Subject} subject
 * @returns {import('../template/javascript/policy').Need[]}
 */
export function needs(subject) {
  const { settings } = subject;
  let source;
  try {
    source = wantedOf(specOf(subject)).source;
  } catch (refusal) {
    // `translate` refuses the object again, with this refusal.
    if (refusal.tag === undefined) throw refusal;
    return [];
  }
  if (source.runtime === undefined) return [];
  return [{
    id: REGISTRY,
    target: { tag: 'named', val: registryReference(subject) },
    fields: [`data[${JSON.stringify(settings.registry.key)}]`],
    optional: Object.hasOwn(settings.runtimes, source.runtime),
  }];
}

/**
 * Maps the variables: parameters, the user's variables, telemetry, log level.
 *
 * @param {import('../template/javascript/policy').Subject} subject
 * @param {import('../template/javascript/policy').EnvVar[]} base
 * @returns {import('../template/javascript/policy').EnvVar[]}
 */
export function mapEnv(subject, base) {
  const request = requestOf(subject);
  const { spec, settings, wanted: { params }, launch: { paramsEnvVar } } = request;
  const env = kaos.env(base);
  if (paramsEnvVar && params) {
    // The registry chooses this variable for the parameters, so they replace a value that the policy sets.
    const { name, key, optional = false } = params.secret ?? {};
    const source = params.secret
      ? { tag: 'secret-key', val: { name, key, optional } }
      : { tag: 'literal', val: kaos.unexpanded(params.text) };
    env.hold(CONTAINER, paramsEnvVar, source, params.path);
  }
  env.user(CONTAINER, spec.config?.env, 'spec.config.env').user(CONTAINER, spec.container?.env, 'spec.container.env');
  setTelemetryEnv(env, request);
  return env.set(CONTAINER, 'LOG_LEVEL', settings.logLevel, 'settings.logLevel').vars();
}

/**
 * The plan: a Deployment, its Service, and an HTTPRoute if the cluster has a Gateway.
 *
 * @param {import('../template/javascript/policy').Subject} subject
 * @param {import('../template/javascript/policy').EnvVar[]} env
 * @returns {import('../template/javascript/policy').Plan}
 */
export function translate(subject, env) {
  const wrong = wrongName(subject);
  const plan = collecting(wrong, () => planOf(requestOf(subject), env));
  if (wrong.length > 0) throw kaos.invalid(wrong);
  return plan;
}

/**
 * The status: phase, endpoint, tools and conditions.
 *
 * @param {import('../template/javascript/policy').Subject} subject
 * @param {import('../template/javascript/policy').Observation} seen
 * @returns {import('../template/javascript/policy').Report}
 */
export function assess(subject, seen) {
  const spec = subject.object.spec ?? {};
  const report = assessWorkload(subject, spec, seen);
  const request = unlessRefused(() => requestOf(subject));
  if (request) {
    const tools = availableTools(request, seen.env);
    if (tools.length > 0) report.fields.availableTools = tools;
    report.conditions.push(...telemetryConditions(telemetryOf(request)));
  }
  report.conditions.push(...runtimeResolved(seen.outcome, request !== undefined));
  for (const [of, type, reason] of [
    [PARAMS_UNUSED, 'ParamsApplied', 'NoVariable'],
    [REQUIRED_ENV_MISSING, 'EnvironmentComplete', 'Missing'],
    [COMMAND_IS_FLAGS, 'CommandUsable', 'BeginsWithFlag'],
  ]) {
    const note = seen.notes.find((note) => note.reason === of);
    if (note) report.conditions.push(condition(type, 'no', reason, note.message));
  }
  // An object that waits also gets the condition.
  const wanted = request?.wanted ?? unlessRefused(() => wantedOf(spec));
  const older = (wanted?.notes ?? []).filter((note) => note.reason === DEPRECATED).map((note) => note.message);
  if (older.length > 0) report.conditions.push(condition(DEPRECATED, 'yes', 'OlderFields', older.join('; ')));
  return report;
}

/** Calls a function, and adds the violations of its refusal to `wrong`. Any other refusal ends the call. */
function collecting(wrong, call) {
  try {
    return call();
  } catch (refusal) {
    if (refusal.tag !== 'invalid') throw refusal;
    wrong.push(...refusal.val);
    return undefined;
  }
}

function unlessRefused(call) {
  try {
    return call();
  } catch (refusal) {
    if (refusal.tag === undefined) throw refusal;
    return undefined;
  }
}

const warning = (path, reason, message) => ({ severity: 'warning', reason, message, path });
const info = (path, reason, message) => ({ severity: 'info', reason, message, path });
const condition = (type, status, reason, message) => ({ type, status, reason, message });

// ----------------------------------------------------------------------------------------------------- the object

/** Everything that the policy must know about one MCPServer. */
function requestOf(subject) {
  const spec = specOf(subject);
  const wanted = wantedOf(spec);
  return { subject, spec, settings: subject.settings, wanted, launch: launchOf(subject, spec, wanted.source) };
}

/** The spec. Refuses lists that are too long for a pass. */
function specOf(subject) {
  const spec = subject.object.spec ?? {};
  for (const [path, list, most] of [
    ['spec.container.env', spec.container?.env, 12_000],
    ['spec.podSpec.containers', spec.podSpec?.containers, 100],
    ['spec.podSpec.initContainers', spec.podSpec?.initContainers, 100],
    ['spec.podSpec.volumes', spec.podSpec?.volumes, 2_000],
  ]) {
    const count = items(list).length;
    if (count > most) {
      const remedy = 'split the object, or move long content to ConfigMaps or Secrets';
      throw kaos.invalid(path, `has ${count} entries, but the limit is ${most}: ${remedy}`);
    }
  }
  return spec;
}

/** The MCPServer after the policy replaced older fields with current fields. */
function wantedOf(spec) {
  const config = spec.config ?? {};
  const notes = [];
  const note = (path, message) => notes.push(warning(path, DEPRECATED, message));
  const deprecated = (old, now) => note(old, `${old} is an older field and still works: use ${now}`);
  const ignored = (old, newer) => note(old, `${old} is an older field and is ignored, since ${newer} is set: remove it`);
  const older = (old, newer, isSet) => (isSet ? ignored : deprecated)(old, newer);

  if (isSet(spec.type)) older('spec.type', 'spec.runtime', Boolean(spec.runtime));
  if (items(config.env).length > 0) {
    // The variables at the older path have no effect if the container has all of their names.
    const newer = new Set(items(spec.container?.env).map(nameOf));
    older('spec.config.env', 'spec.container.env', config.env.every((variable) => newer.has(nameOf(variable))));
  }
  if (isSet(spec.resources)) {
    older('spec.resources', 'spec.container.resources', isSet(spec.container?.resources));
  }
  const written = writtenSources(config);
  let packaged;
  for (const [name, path] of [
    [config.tools?.fromPackage, 'spec.config.tools.fromPackage'], [config.mcp, 'spec.config.mcp'],
  ]) {
    if (!name) continue;
    const newer = spec.runtime ? 'spec.runtime' : written[0]?.path ?? packaged?.path;
    if (newer) ignored(path, newer);
    else deprecated(path, 'a runtime of the registry, or spec.runtime custom with container.image');
    packaged ??= { name, path };
  }
  const own = spec.params ? { text: spec.params, path: 'spec.params' } : undefined;
  written.forEach((params, at) => {
    const counts = own ?? (at > 0 ? written[0] : undefined);
    if (counts) ignored(params.path, counts.path);
    else if (params.secret) {
      deprecated(params.path, 'spec.runtime python-string, and MCP_TOOLS_STRING in spec.container.env');
    } else deprecated(params.path, 'spec.runtime python-string with spec.params');
  });
  const source = sourceOf(spec, written, packaged);
  let telemetry = spec.telemetry ?? undefined;
  let telemetryPath = 'spec.telemetry';
  if (isSet(config.telemetry)) {
    older('spec.config.telemetry', 'spec.telemetry', telemetry !== undefined);
    if (telemetry === undefined) [telemetry, telemetryPath] = [config.telemetry, 'spec.config.telemetry'];
  }
  return { source, params: own ?? written[0], telemetry, telemetryPath, notes };
}

/** The source texts in the older fields. The policy uses the first one. */
function writtenSources({ tools, toolsString }) {
  const written = [];
  if (tools?.fromString) written.push({ text: tools.fromString, path: 'spec.config.tools.fromString' });
  if (toolsString) written.push({ text: toolsString, path: 'spec.config.toolsString' });
  if (isSet(tools?.fromSecretKeyRef)) {
    written.push({ secret: tools.fromSecretKeyRef, path: 'spec.config.tools.fromSecretKeyRef' });
  }
  return written;
}

/** The origin of the server's program: a runtime of the registry, a Python package, or the user's own image. */
function sourceOf(spec, written, packaged) {
  if (spec.runtime === CUSTOM) return {};
  if (spec.runtime) return { runtime: spec.runtime };
  // Source text wins over a package, as in the Go operator.
  if (written.length > 0) return { runtime: PYTHON_STRING };
  if (packaged && spec.type === 'node-runtime') {
    throw kaos.invalid(packaged.path, 'packages of type node-runtime come from npm, which is not supported: use runtime '
      + 'custom with container.image');
  }
  if (packaged) return { package: packaged };
  throw kaos.invalid('spec.runtime', 'a runtime is required: name one from the registry, or custom with container.image');
}

/** Why the names of the children would be invalid. Kubernetes has the strictest rules for the names of Services. */
function wrongName(subject) {
  const { name } = subject.object.metadata;
  const longest = 63 - PREFIX.length - 1;
  if (name.length > longest) {
    return [{
      path: 'metadata.name',
      message: `the name has ${name.length} characters, but the limit is ${longest}: the Service is named \`${PREFIX}-\` `
        + 'plus this name, and names of Services have at most 63 characters; choose a shorter name',
    }];
  }
  if (name === '' || name.startsWith('-') || kaos.dnsLabel(childName(subject)) !== null) {
    return [{
      path: 'metadata.name',
      message: `\`${kaos.shown(name, 253)}\` cannot be part of a Service name: use at most ${longest} lower-case letters, `
        + 'digits and `-` (no dots), with a letter or digit at the beginning and at the end',
    }];
  }
  return [];
}

const isSet = (value) => value !== undefined && value !== null;
const items = (value) => (Array.isArray(value) ? value : []);
const nameOf = (value) => value?.name;
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isEmpty = (value) => isObject(value) && Object.keys(value).length === 0;

const childName = ({ object }) => `${PREFIX}-${object.metadata.name}`;
const routeName = ({ object }) => `${ROUTE}-${object.metadata.name}`;
// The labels that select the pods. Every child has these labels, too.
const selector = ({ object }) => ({ app: APP, [APP]: object.metadata.name });

const endpoint = ({ object, cluster }, servicePort) =>
  `http://${PREFIX}-${object.metadata.name}.${object.metadata.namespace}.svc.${cluster.domain}:${servicePort}`;

// ------------------------------------------------------------------------------------------------------ the start

const registryReference = ({ settings, cluster }) => ({
  apiVersion: 'v1', kind: 'ConfigMap', namespace: cluster.operatorNamespace, name: settings.registry.configMap,
});

/** How to start the container: image, command, arguments, and the variable for the parameters. */
function launchOf(subject, spec, source) {
  const { settings } = subject;
  const own = spec.container ?? {};
  if (source.package) return launchOfPackage(settings, source.package);
  if (source.runtime === undefined) {
    if (own.image) return { image: '', tools: [], requiredEnv: [], notes: [] };
    throw kaos.invalid('spec.container.image', 'custom runtime requires container.image to be set');
  }
  const unusable = (message) => kaos.waiting({
    on: registryReference(subject),
    reason: 'RegistryUnusable',
    message: `failed to get runtime registry: ${message}`,
  });
  const { key, configMap } = settings.registry;
  const malformed = (reason) => unusable(`${key} in ConfigMap ${configMap} is not usable: ${reason}`);
  const runtimes = registryOf(subject, unusable, malformed);
  if (!Object.hasOwn(runtimes, source.runtime)) throw unknownRuntime(source.runtime, runtimes, settings);
  const runtime = runtimeOf(source.runtime, runtimes[source.runtime], malformed);
  return launchOfRuntime(source.runtime, runtime, settings, own);
}

/** The runtimes in the ConfigMap that the host found. Without the ConfigMap, the runtimes of the settings apply. */
function registryOf(subject, unusable, malformed) {
  const { settings } = subject;
  const { key, configMap } = settings.registry;
  const answer = subject.found.find((found) => found.id === REGISTRY)?.answer;
  if (answer?.tag === 'forbidden') throw unusable(answer.val);
  if (answer?.tag !== 'objects' || answer.val.length === 0) return settings.runtimes;
  const source = answer.val[0].data?.[key];
  if (typeof source !== 'string') throw unusable(`ConfigMap ${configMap} has no key ${key}`);
  const most = 150_000;
  const bytes = bytesOf(source);
  if (bytes > most) throw malformed(`it has ${bytes} bytes, but the limit is ${most}: remove unused entries`);
  let fields;
  try {
    fields = kaos.yamlTexts(source) ?? {};
  } catch (error) {
    throw malformed(error.message);
  }
  if (!isObject(fields)) throw malformed('it must be a mapping with the key runtimes');
  // Without the key `runtimes`, the entries are at the top level.
  if (!Object.hasOwn(fields, 'runtimes')) return fields;
  if (fields.runtimes !== null && !isObject(fields.runtimes)) {
    throw malformed('runtimes must be a mapping from names to entries');
  }
  return fields.runtimes ?? {};
}

/** The length of a text in UTF-8. A text of JavaScript consists of units of UTF-16. */
function bytesOf(text) {
  const count = (units) => text.match(units)?.length ?? 0;
  return text.length + count(/[\u0080-\u07ff\ud800-\udfff]/g) + 2 * count(/[\u0800-\ud7ff\ue000-\uffff]/g);
}

/** The entry of a runtime. A mistake in another entry has no effect. */
function runtimeOf(name, entry, malformed) {
  const own = /^[A-Za-z0-9_$-]+$/.test(name) ? `.${name}` : `["${kaos.shown(name, 200)}"]`;
  const wrong = (path, message) => malformed(`runtimes${own}${path}: ${message}`);
  const fields = entry ?? {};
  if (!isObject(fields)) throw wrong('', `must be an object, not ${typeName(fields)}`);
  const word = (field) => {
    const value = fields[field] ?? '';
    if (typeof value !== 'string') throw wrong(`.${field}`, `must be a string, not ${typeName(value)}`);
    return value;
  };
  const words = (field) => {
    const list = fields[field] ?? undefined;
    if (list === undefined) return undefined;
    if (!Array.isArray(list)) throw wrong(`.${field}`, `must be a list, not ${typeName(list)}`);
    list.forEach((item, at) => {
      if (typeof item !== 'string') throw wrong(`.${field}[${at}]`, `must be a string, not ${typeName(item)}`);
    });
    return list;
  };
  const runtime = {
    image: word('image'),
    command: words('command'),
    args: words('args'),
    paramsEnvVar: word('paramsEnvVar'),
    requiredEnv: words('requiredEnv') ?? [],
    tools: words('tools') ?? [],
  };
  if (/[=\0]/.test(runtime.paramsEnvVar)) throw wrong('.paramsEnvVar', "a variable's name must not contain '='");
  return runtime;
}

function typeName(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'string' ? `string "${kaos.shown(value, 200)}"` : 'an object';
}

function unknownRuntime(runtime, runtimes, settings) {
  const name = kaos.shown(runtime, 63);
  const { key, configMap } = settings.registry;
  const names = Object.keys(runtimes).sort().join(', ');
  const remedy = names
    ? `use a runtime of the registry (${kaos.shown(names, 1000)}), or`
    : `the registry is empty; add ${name} to ${key} of ConfigMap ${configMap}, or use`;
  return kaos.invalid(
    'spec.runtime',
    `unknown runtime: ${name} (not found in registry): ${remedy} ${CUSTOM} with container.image`,
  );
}

function launchOfRuntime(name, runtime, settings, own) {
  if (!runtime.image && !own.image) {
    throw kaos.invalid(
      'spec.container.image',
      `the registry of runtimes has no image for runtime ${kaos.shown(name, 63)}: set container.image`,
    );
  }
  const launch = { ...runtime, paramsArePython: name === PYTHON_STRING, notes: [] };
  // A command replaces the image's entrypoint, but a flag is no program. The user's command replaces the flags.
  if (launch.command?.[0]?.startsWith('-') && !own.command?.length) {
    if (settings.commandFlagsAsArgs) {
      launch.args = [...launch.command, ...launch.args ?? []];
      launch.command = undefined;
    } else {
      launch.notes.push(warning('spec.runtime', COMMAND_IS_FLAGS, `the registry's command of runtime ${name} begins with `
        + 'a flag and replaces the entrypoint of the image: move the command to args in the registry, or set the policy '
        + 'setting commandFlagsAsArgs'));
    }
  }
  return launch;
}

/** Installs a package, and then runs the command with the package's name, or else the Python module. */
function launchOfPackage(settings, { name, path }) {
  const [program] = name.split(/[[=<>!~;@ \t]/, 1);
  // eslint-disable-next-line no-control-regex
  if (!/^[A-Za-z0-9._][A-Za-z0-9._-]*$/.test(program) || /[\0-\x1f\x7f-\x9f]/.test(name)) {
    throw kaos.invalid(
      path,
      `\`${kaos.shown(name, 253)}\` is not a Python package: name a package of PyPI, or use runtime custom `
        + 'with container.image',
    );
  }
  const [whole, command, module] = [name, program, program.replaceAll('-', '_')].map(kaos.shellWord);
  const script = `pip install ${whole} && ( ${command} || python -m ${module} )`;
  return {
    image: settings.packageImage,
    command: ['sh', '-c', kaos.unexpanded(script)],
    requiredEnv: [],
    tools: [],
    notes: [],
  };
}

// ------------------------------------------------------------------------------------------------------ manifests

function planOf(request, env) {
  const { settings, wanted, launch } = request;
  const notes = [...wanted.notes, ...launch.notes];
  const wrong = [];
  const deployment = collecting(wrong, () => deploymentOf(request, env, notes));
  const entrance = collecting(wrong, () => entranceOf(request, notes));
  if (wrong.length > 0) throw kaos.invalid(wrong);
  notes.push(...missingEnv(launch, deployment.child.manifest));
  const children = [deployment.child, serviceOf(request), ...entrance];
  notes.push(...telemetryNotes(telemetryOf(request)));
  if (wanted.params && !launch.paramsEnvVar) {
    notes.push(warning(wanted.params.path, PARAMS_UNUSED, 'this runtime names no variable for parameters, so the '
      + "container does not get the parameters: set the container's variables in container.env, or set paramsEnvVar "
      + 'in the registry'));
  }
  return {
    manifests: children.map((child) => child.manifest),
    origins: children.flatMap(({ origins }, manifest) => origins.map(([path, from]) => ({ manifest, path, from }))),
    env: deployment.env,
    notes,
    finalizer: settings.finalizer || undefined,
  };
}

/** A child, whose metadata has the additions of the settings, and the origins of its values. */
function child(settings, manifest, origins = []) {
  return { manifest, origins: [...additionOrigins(settings, ''), ...origins] };
}

function additionOrigins({ extraLabels, extraAnnotations }, above) {
  const origins = [];
  if (!isEmpty(extraLabels)) origins.push([`${above}metadata.labels`, 'settings.extraLabels']);
  if (!isEmpty(extraAnnotations)) origins.push([`${above}metadata.annotations`, 'settings.extraAnnotations']);
  return origins;
}

/** A `metadata` with these labels and the additions of the settings, over which the labels win. */
function extra({ extraLabels, extraAnnotations }, labels) {
  return {
    labels: { ...extraLabels, ...labels },
    annotations: isEmpty(extraAnnotations) ? undefined : extraAnnotations,
  };
}

function metadata({ subject, settings }, name) {
  return { ...extra(settings, selector(subject)), name, namespace: subject.object.metadata.namespace };
}

/** The Deployment, and the mapping after all merges. */
function deploymentOf(request, env, notes) {
  const { subject, spec, settings } = request;
  const path = 'spec.podSpec';
  const { own, older } = ownContainer(spec);
  let pod = podOf(request, own);
  const planned = setEnv(pod, env);
  if (isSet(spec.podSpec)) {
    kaos.checkPodSpecEnv(spec.podSpec, path);
    pod = kaos.mergePodSpec(pod, spec.podSpec, CONTAINER, path);
  }
  addEnv(pod, env, planned, notes);
  for (const container of containers(pod)) {
    if (!Array.isArray(container.env)) continue;
    const once = kaos.envOnce(container.env);
    if (once.length === container.env.length) continue;
    container.env = once;
    notes.push(info(path, 'DuplicateEnv', `container \`${container.name}\` sets a variable more than once: the last `
      + 'value wins'));
  }
  withoutVoidHandlers(pod);
  const repeated = firstRepeated(items(own?.env).map(nameOf));
  if (repeated !== undefined) {
    notes.push(info('spec.container.env', 'DuplicateEnv', `\`${kaos.shown(repeated, 63)}\` occurs more than once: the `
      + 'last value wins'));
  }
  checkPod(pod, spec.podSpec);
  const labels = selector(subject);
  const manifest = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadata(request, childName(subject)),
    spec: {
      replicas: spec.replicas ?? undefined,
      selector: { matchLabels: labels },
      template: { metadata: extra(settings, labels), spec: pod },
    },
  };
  return {
    child: child(settings, manifest, deploymentOrigins(spec, settings, own, older)),
    env: kaos.podSpecEnv(pod, env, path),
  };
}

/** The names of a container's fields are also the names of the settings for them, so one origin covers these settings. */
function deploymentOrigins(spec, settings, own, older) {
  const pod = 'spec.template.spec';
  const main = `${pod}.containers[name="${CONTAINER}"]`;
  const origins = [['spec.replicas', 'spec.replicas'], ...additionOrigins(settings, 'spec.template.'), [main, 'settings']];
  if (older) origins.push([`${main}.resources`, 'spec.resources']);
  if (own) origins.push([main, 'spec.container']);
  if (!isEmpty(settings.podSecurityContext)) origins.push([`${pod}.securityContext`, 'settings.podSecurityContext']);
  if (spec.serviceAccountName) origins.push([`${pod}.serviceAccountName`, 'spec.serviceAccountName']);
  if (isSet(spec.podSpec)) origins.push([pod, 'spec.podSpec']);
  return origins;
}

/** `spec.container`, with the resources of the older field if it has none. */
function ownContainer({ container, resources }) {
  if (!isSet(resources) || isSet(container?.resources)) return { own: container ?? undefined, older: false };
  return { own: { ...container, resources }, older: true };
}

/** The policy's own pod, into which the object's `container` is merged. */
function podOf({ spec, settings, launch }, own) {
  let main = {
    name: CONTAINER,
    image: launch.image,
    imagePullPolicy: settings.imagePullPolicy,
    ports: [{ name: settings.portName, containerPort: settings.containerPort, protocol: 'TCP' }],
    livenessProbe: probeOf(settings.livenessProbe, settings.containerPort),
    readinessProbe: probeOf(settings.readinessProbe, settings.containerPort),
    command: wordsOf(launch.command, spec.container?.command),
    args: wordsOf(launch.args, spec.container?.args),
    resources: filled(settings.resources),
    securityContext: filled(settings.securityContext),
  };
  if (own) {
    const fields = ['image', 'command', 'args', 'resources', 'securityContext', 'workingDir', 'volumeMounts'];
    // A typed client omits empty fields.
    const kept = fields.filter((field) => !isVoid(own[field])).map((field) => [field, own[field]]);
    main = kaos.mergeContainer(main, Object.fromEntries(kept), 'spec.container');
  }
  return {
    containers: [main],
    serviceAccountName: spec.serviceAccountName || undefined,
    securityContext: filled(settings.podSecurityContext),
    automountServiceAccountToken: settings.automountServiceAccountToken ?? undefined,
  };
}

// An empty list in the object removes the registry's list, which a strategic merge would not do.
const wordsOf = (words, own) => (own?.length === 0 || !words?.length ? undefined : words);
const filled = (value) => (isEmpty(value) ? undefined : value);
const isVoid = (value) => !isSet(value) || value === '' || value.length === 0 || isEmpty(value);

function probeOf({ handler, path, port, scheme, ...timing }, containerPort) {
  const at = port ?? containerPort;
  switch (handler) {
    case 'httpGet': return { ...timing, httpGet: { path, port: at, scheme } };
    case 'tcpSocket': return { ...timing, tcpSocket: { port: at } };
    default: return undefined;
  }
}

const containers = (pod) => [...items(pod.containers), ...items(pod.initContainers)].filter(isObject);

/** Sets the variables of each container of the policy's own pod. Returns the names of these containers. */
function setEnv(pod, env) {
  return pod.containers.map((container) => {
    const list = kaos.containerEnv(env, container.name);
    if (list.length > 0) container.env = list;
    return container.name;
  });
}

/** Adds the variables that an overlay sets to the containers that only `podSpec` defines. */
function addEnv(pod, env, planned, notes) {
  const others = new Set(env.map((variable) => variable.container).filter((name) => !planned.includes(name)));
  for (const other of [...others].sort()) {
    const found = containers(pod).find((container) => container.name === other);
    if (!found) {
      notes.push(warning(undefined, 'UnknownContainer', `the pod has no container \`${other}\`, so the plan leaves out `
        + 'the variables of this container'));
      continue;
    }
    if (found.env !== undefined && !Array.isArray(found.env)) continue;
    const own = items(found.env);
    const names = own.map(nameOf);
    found.env = [...own, ...kaos.containerEnv(env, other).filter((variable) => !names.includes(variable.name))];
  }
}

/** Removes probes and hooks that a patch has made empty, because an API server refuses them. */
function withoutVoidHandlers(pod) {
  for (const container of containers(pod)) {
    for (const field of Object.keys(container)) {
      if (field.endsWith('Probe') && isEmpty(container[field])) delete container[field];
    }
    for (const [name, hook] of Object.entries(isObject(container.lifecycle) ? container.lifecycle : {})) {
      if (isEmpty(hook)) delete container.lifecycle[name];
    }
  }
}

function firstRepeated(names) {
  const seen = new Set();
  return names.find((name) => {
    if (typeof name !== 'string') return false;
    const isRepeated = seen.has(name);
    seen.add(name);
    return isRepeated;
  });
}

/** Checks the pod spec after all merges for mistakes that an API server would refuse. */
function checkPod(pod, podSpec) {
  if (!items(pod.containers).some((container) => nameOf(container) === CONTAINER)) {
    throw kaos.invalid(
      'spec.podSpec.containers',
      `the pod must keep the container \`${CONTAINER}\`: remove the patch that deletes it`,
    );
  }
  const names = new Set();
  for (const list of ['containers', 'initContainers']) {
    for (const container of items(pod[list])) {
      const name = nameOf(container);
      const at = (field) => placeOf(podSpec, list, name, field);
      const written = items(podSpec?.[list]).findLast((it) => nameOf(it) === name);
      checkContainer(container, written !== undefined && Object.hasOwn(written, 'image'), at);
      if (names.has(name)) {
        throw kaos.invalid(at('name'), `two containers are named \`${kaos.shown(name, 63)}\`: choose another name`);
      }
      names.add(name);
    }
  }
}

/** The path of a field of the container with this name in the user's pod spec. */
function placeOf(podSpec, list, name, field) {
  for (const of of [list, 'containers', 'initContainers']) {
    const at = items(podSpec?.[of]).findLastIndex((it) => nameOf(it) === name);
    if (at >= 0) return `spec.podSpec.${of}[${at}].${field}`;
  }
  return `spec.podSpec.${list}`;
}

function checkContainer(container, hasImage, at) {
  const name = nameOf(container);
  if (typeof name !== 'string' || name === '') {
    throw kaos.invalid(at('name'), "is required; it is the container's name");
  }
  if (typeof container.image !== 'string' || container.image === '') {
    if (name !== CONTAINER) {
      throw kaos.invalid(at('image'), `container \`${kaos.shown(name, 63)}\` needs an image; to change the container of `
        + `this kind instead, name it \`${CONTAINER}\``);
    }
    if (hasImage) {
      throw kaos.invalid(at('image'), "removes the container's image: set an image, or remove this field");
    }
    throw kaos.invalid('spec.container.image', 'no image is set: set it here, or set the default image of the operator');
  }
  const repeated = firstRepeated(items(container.ports).map(nameOf).filter((name) => name !== ''));
  if (repeated !== undefined) {
    throw kaos.invalid(at('ports'), `two ports are named \`${kaos.shown(repeated, 15)}\`, since ports merge by number: `
      + 'choose another name, or set the policy setting containerPort to change the port');
  }
}

/** The note on variables that the runtime requires and the container lacks. */
function missingEnv({ requiredEnv }, deployment) {
  const main = deployment.spec.template.spec.containers.find((container) => container.name === CONTAINER);
  // The objects in `envFrom` can supply the variables.
  if (items(main.envFrom).length > 0) return [];
  const names = items(main.env).map(nameOf);
  const missing = requiredEnv.filter((required) => !names.includes(required));
  if (missing.length === 0) return [];
  const message = `in container.env, the variables are missing that this runtime needs: ${missing.join(', ')}`;
  return [warning('spec.container.env', REQUIRED_ENV_MISSING, message)];
}

function serviceOf(request) {
  const { subject, settings } = request;
  const { portName, servicePort, containerPort, serviceType } = settings;
  const manifest = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadata(request, childName(subject)),
    spec: {
      type: serviceType,
      selector: selector(subject),
      ports: [{ name: portName, port: servicePort, targetPort: containerPort, protocol: 'TCP' }],
    },
  };
  return child(settings, manifest, [
    ['spec.type', 'settings.serviceType'],
    ['spec.ports[0].port', 'settings.servicePort'],
    ['spec.ports[0].targetPort', 'settings.containerPort'],
  ]);
}

/** The HTTPRoute, and the objects that protect the server. */
function entranceOf(request, notes) {
  const { settings } = request;
  const route = routeOf(request, notes);
  const children = protectionOf(request, route !== undefined).map((manifest) => child(settings, manifest));
  if (route) {
    children.push(child(settings, route, [
      ['spec.parentRefs[0]', 'settings.gateway'],
      ['spec.rules[0].timeouts.request', timeoutOf(request).path],
    ]));
  }
  return children;
}

const serves = ({ cluster }, { apiVersion, kind }) =>
  cluster.served.some((type) => type.apiVersion === apiVersion && type.kind === kind);

/** The timeout in the object or the settings, and its path. */
function timeoutOf({ spec, settings }) {
  const own = spec.gatewayRoute?.timeout;
  return own
    ? { timeout: own, path: 'spec.gatewayRoute.timeout' }
    : { timeout: settings.gateway.timeout, path: 'settings.gateway.timeout' };
}

/** The HTTPRoute if routes are enabled. Adds a note instead if no Gateway is named, or if the cluster lacks the kind. */
function routeOf(request, notes) {
  const { subject, settings: { gateway, servicePort } } = request;
  const { name, namespace } = subject.object.metadata;
  const { timeout, path } = timeoutOf(request);
  const spelled = forGateway(timeout);
  if (spelled === undefined) {
    throw kaos.invalid(path, `\`${kaos.shown(timeout, 40)}\` is not a timeout: write up to four numbers with a unit h, m, `
      + 's or ms, for example 1h30m');
  }
  if (!gateway.enabled) return undefined;
  if (!gateway.name) {
    notes.push(warning(undefined, 'GatewayUnnamed', 'routes are enabled and no Gateway is named, so there is no '
      + 'HTTPRoute: set GATEWAY_NAME for the operator'));
    return undefined;
  }
  if (!serves(subject, ROUTE_TYPE)) {
    notes.push(warning(undefined, 'GatewayUnserved', 'routes are enabled and this cluster does not serve HTTPRoute of '
      + 'gateway.networking.k8s.io/v1, so there is no HTTPRoute: install the Gateway API, or set GATEWAY_API_ENABLED to '
      + 'false for the operator'));
    return undefined;
  }
  const rule = {
    matches: [{ path: { type: 'PathPrefix', value: `/${namespace}/${ROUTE}/${name}` } }],
    filters: filtersOf(request),
    backendRefs: [{ kind: 'Service', name: childName(subject), port: servicePort }],
  };
  if (timeout !== '0s') {
    if (spelled === TOO_LONG) {
      throw kaos.invalid(path, `\`${kaos.shown(timeout, 40)}\` is longer than the Gateway API allows (99999h): write a `
        + 'shorter timeout, or 0s for none');
    }
    if (spelled !== timeout) {
      notes.push(info(path, 'TimeoutRespelled', `\`${timeout}\` is written \`${spelled}\` in the HTTPRoute: the Gateway `
        + 'API allows at most five digits in a number'));
    }
    rule.timeouts = { request: spelled };
  }
  const parent = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: gateway.name };
  if (gateway.namespace) parent.namespace = gateway.namespace;
  return {
    ...ROUTE_TYPE,
    metadata: metadata(request, routeName(subject)),
    spec: { parentRefs: [parent], rules: [rule] },
  };
}

function filtersOf({ subject, settings }) {
  const { name, namespace } = subject.object.metadata;
  const filters = [{
    type: 'URLRewrite',
    urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } },
  }];
  if (securityOf(settings).targetHeader) {
    const header = { name: 'x-kaos-target-resource', value: `kaos://${APP}/${namespace}/${name}` };
    filters.unshift({ type: 'RequestHeaderModifier', requestHeaderModifier: { set: [header] } });
  }
  return filters;
}

const TOO_LONG = Symbol('longer than the Gateway API can express');
const UNITS = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/**
 * A duration in a form that the Gateway API accepts, unchanged if possible. A number with too many digits is split:
 * 100000s becomes 27h46m40s. The answer is undefined if the text is no duration, and may be TOO_LONG.
 */
function forGateway(duration) {
  if (!/^(?:[0-9]+(?:h|ms|m|s)){1,4}$/.test(duration)) return undefined;
  const parts = [...duration.matchAll(/([0-9]+)([a-z]+)/g)];
  if (parts.every(([, digits]) => digits.length <= 5)) return duration;
  let rest = parts.reduce((sum, [, digits, unit]) => sum + Number(digits) * UNITS[unit], 0);
  // Larger numbers are not exact, but all of them are too long.
  if (rest >= 100_000 * UNITS.h) return TOO_LONG;
  let spelled = '';
  for (const [unit, size] of Object.entries(UNITS)) {
    const count = Math.floor(rest / size);
    rest %= size;
    if (count > 0) spelled += count + unit;
  }
  return spelled || '0s';
}

/** The group `security` is null unless a layer sets one of its settings. */
function securityOf({ security }) {
  return { jwtOptional: true, agents: {}, users: {}, networkPolicy: {}, ...security };
}

/** The address of the decision point. */
const authorizerOf = ({ authorizer }, cluster) => authorizer || `kaos-pdp.${cluster.operatorNamespace}.svc:9191`;

/**
 * The objects that protect a server: a SecurityPolicy at its route, and a NetworkPolicy around its pods. No server stays
 * open without a message.
 */
function protectionOf(request, hasRoute) {
  const security = securityOf(request.settings);
  const isOn = Boolean(security.pdp || security.authorizer);
  const require = (type) => {
    if (serves(request.subject, type)) return;
    throw kaos.unsupported(`the operator cannot create a ${type.kind} of ${type.apiVersion}, so this object would be `
      + "open to every caller: install this type and remove it from the operator's flag --without, or turn off the "
      + 'setting `security`');
  };
  const manifests = [];
  if (hasRoute && isOn) {
    require(GATEWAY_POLICY);
    manifests.push(gatewayPolicy(request, security));
  }
  if ((isOn && !security.networkPolicy.disabled) || security.strict) {
    require(NETWORK_POLICY);
    manifests.push(networkPolicy(request, security, isOn));
  }
  return manifests;
}

/** The SecurityPolicy of Envoy Gateway. Refuses incomplete settings. */
function gatewayPolicy(request, security) {
  const { subject } = request;
  const { agents, users } = security;
  const backend = serviceAddress(authorizerOf(security, subject.cluster));
  const wrong = [];
  const demand = (holds, setting, message) => {
    if (!holds) wrong.push({ path: `settings.security.${setting}`, message });
  };
  const unset = 'is not set, so the Gateway cannot check the tokens of Agents: in the settings for the cluster, set it to '
    + 'the output of';
  demand(backend, 'authorizer', 'is not the address of a Service: write name.namespace.svc:port');
  demand(agents.issuer, 'agents.issuer',
    `${unset} \`kubectl get --raw /.well-known/openid-configuration\`, field issuer`);
  demand(agents.jwks, 'agents.jwks', `${unset} \`kubectl get --raw /openid/v1/jwks\``);
  demand(agents.audience, 'agents.audience', 'is not set, so the Gateway would accept every token of the cluster: in the '
    + "settings for the cluster, set it to the audience of the Agents' tokens, for example kaos-gateway");
  if (wrong.length > 0) throw kaos.invalid(wrong);
  const agentHeader = 'x-agent-authorization';
  const providers = [{
    name: 'agent',
    issuer: agents.issuer,
    audiences: [agents.audience],
    localJWKS: { type: 'Inline', inline: agents.jwks },
    extractFrom: { headers: [{ name: agentHeader, valuePrefix: 'Bearer ' }] },
    claimToHeaders: [{ claim: 'sub', header: 'x-agent-claim-sub' }],
  }];
  if (users.issuer) {
    providers.push({
      name: 'user',
      issuer: users.issuer,
      audiences: users.audience ? [users.audience] : undefined,
      remoteJWKS: { uri: users.jwksUri || `${users.issuer.replace(/\/+$/, '')}/protocol/openid-connect/certs` },
      claimToHeaders: [
        { claim: 'sub', header: 'x-user-claim-sub' },
        { claim: 'preferred_username', header: 'x-user-claim-username' },
      ],
    });
  }
  return {
    ...GATEWAY_POLICY,
    metadata: metadata(request, routeName(subject)),
    spec: {
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: ROUTE_TYPE.kind, name: routeName(subject) }],
      jwt: { providers, optional: security.jwtOptional ? true : undefined },
      extAuth: {
        failOpen: false,
        headersToExtAuth: ['authorization', agentHeader],
        grpc: { backendRefs: [backend] },
      },
    },
  };
}

/** The NetworkPolicy around the pods. */
function networkPolicy(request, security, isOn) {
  const { subject } = request;
  const { users } = security;
  const trusted = new Set([
    security.gatewayNamespace || 'envoy-gateway-system',
    security.operatorNamespace || subject.cluster.operatorNamespace,
  ]);
  const peers = (names) => names.map((name) => ({
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
  }));
  const spec = {
    podSelector: { matchLabels: selector(subject) },
    policyTypes: ['Ingress'],
    ingress: [{ from: peers([...trusted]) }],
  };
  if (security.networkPolicy.egress) {
    const others = [namespaceOf(users.issuer ?? ''), namespaceOf(users.jwksUri ?? '')];
    if (isOn) others.push(namespaceOfService(authorizerOf(security, subject.cluster)));
    for (const namespace of others) if (namespace) trusted.add(namespace);
    spec.policyTypes.push('Egress');
    spec.egress = [
      { to: peers(['kube-system']), ports: [{ protocol: 'UDP', port: 53 }, { protocol: 'TCP', port: 53 }] },
      { to: peers([...trusted]) },
    ];
  }
  return { ...NETWORK_POLICY, metadata: metadata(request, routeName(subject)), spec };
}

/** The labels of the host and the port of a URL. The scheme and the port are optional. */
function hostOf(url) {
  const [, host, port] = /^(?:.*?:\/\/)?(?:[^/?#]*@)?([^/?#]*?)(?::([^/?#:]*))?(?:[/?#][^]*)?$/.exec(url) ?? ['', ''];
  return { labels: (host ?? '').split('.'), port };
}

/** Reads name.namespace.svc:port, also with a scheme, or with the rest of the domain. */
function serviceAddress(url) {
  const { labels: [name, namespace, svc = 'svc'], port } = hostOf(url);
  const number = /^\+?[0-9]+$/.test(port ?? '') ? Number(port) : NaN;
  return name && namespace && svc === 'svc' && number <= 65535 ? { name, namespace, port: number } : undefined;
}

/** The namespace in the URL of a Service, or undefined for a host outside of the cluster. */
function namespaceOf(url) {
  const { labels: [, namespace, svc] } = hostOf(url);
  return svc === 'svc' ? namespace : undefined;
}

/** The namespace in the address of a Service. The address can lack `.svc` or the port. */
const namespaceOfService = (address) => serviceAddress(address)?.namespace ?? namespaceOf(address);

// ------------------------------------------------------------------------------------------------------- telemetry

/** The effective telemetry of one object. Each field that the object does not set comes from the settings. */
function telemetryOf({ settings: { telemetry }, wanted: { telemetry: own, telemetryPath: path } }) {
  return {
    path,
    enabled: own?.enabled ?? telemetry.enabled,
    enabledOrigin: isSet(own?.enabled) ? `${path}.enabled` : 'settings.telemetry.enabled',
    endpoint: own?.endpoint || telemetry.endpoint,
    endpointOrigin: own?.endpoint ? `${path}.endpoint` : 'settings.telemetry.endpoint',
  };
}

/** Sets the variables of Python's OpenTelemetry SDK. */
function setTelemetryEnv(env, request) {
  const { enabled, enabledOrigin, endpoint: to, endpointOrigin } = telemetryOf(request);
  if (!enabled) return;
  const { name, namespace } = request.subject.object.metadata;
  const { excludedUrls } = request.settings.telemetry;
  env.set(CONTAINER, 'OTEL_SDK_DISABLED', 'false', enabledOrigin);
  env.set(CONTAINER, 'OTEL_SERVICE_NAME', name, enabledOrigin);
  // Kubernetes expands variables in the endpoint, such as http://$(HOST_IP):4317.
  if (to) env.bind(CONTAINER, 'OTEL_EXPORTER_OTLP_ENDPOINT', { tag: 'literal', val: to }, endpointOrigin);
  const attributes = `service.namespace=${namespace},kaos.resource.name=${name}`;
  env.set(CONTAINER, 'OTEL_RESOURCE_ATTRIBUTES', attributes, enabledOrigin);
  if (excludedUrls) {
    env.set(CONTAINER, 'OTEL_PYTHON_FASTAPI_EXCLUDED_URLS', excludedUrls, 'settings.telemetry.excludedUrls');
  }
}

function telemetryNotes({ enabled, endpoint: to, path }) {
  if (!enabled || to) return [];
  return [warning(`${path}.endpoint`, 'TelemetryWithoutEndpoint', 'telemetry is enabled without an endpoint: the pods '
    + 'export nothing; set the endpoint, or DEFAULT_TELEMETRY_ENDPOINT for the operator')];
}

function telemetryConditions({ enabled, endpoint: to }) {
  const of = 'TelemetryConfigured';
  if (!enabled) return [];
  if (to) return [condition(of, 'yes', 'Configured', `exported to ${to}`)];
  return [condition(of, 'no', 'NoEndpoint', 'telemetry is enabled without an endpoint')];
}

// ----------------------------------------------------------------------------------------------------- the status

function assessWorkload(subject, spec, seen) {
  const name = childName(subject);
  const rollout = rolloutOf(live(seen, { apiVersion: 'apps/v1', kind: 'Deployment' }, name), spec.replicas ?? 1);
  const { phase, message } = verdict(seen, rollout);
  const isAccepted = seen.outcome.tag === 'applied' || seen.outcome.tag === 'gated';
  // Other objects can use the address. So the address stays while the Service exists, even if the policy refuses the
  // object.
  const service = live(seen, { apiVersion: 'v1', kind: 'Service' }, name);
  const port = isAccepted ? subject.settings.servicePort : service?.spec?.ports?.[0]?.port;
  return {
    ready: phase === 'Ready',
    phase,
    message,
    fields: {
      replicas: rollout.replicas,
      selector: Object.entries(selector(subject)).map(([key, value]) => `${key}=${value}`).join(','),
      endpoint: port ? endpoint(subject, port) : undefined,
      deployment: rollout.status,
    },
    conditions: routed(seen, live(seen, ROUTE_TYPE, routeName(subject))),
  };
}

function live(seen, { apiVersion, kind }, name) {
  return seen.children.find(({ identity }) =>
    identity.apiVersion === apiVersion && identity.kind === kind && identity.name === name)?.live;
}

/**
 * The phase and the message. If an object has serving pods but waits for another object, only its pods decide the phase.
 */
function verdict({ outcome, gates }, rollout) {
  const byPods = () => ({ phase: rollout.serves ? 'Ready' : 'Pending', message: rollout.message });
  const failed = (message) => ({ phase: 'Failed', message });
  const waits = (blockers) => (rollout.serves
    ? byPods()
    : { phase: 'Waiting', message: blockers[0]?.message ?? 'waiting' });
  switch (outcome.tag) {
    case 'applied': return byPods();
    case 'gated': return waits(gates);
    case 'failed': return failed(outcome.val);
    default:
  }
  const refusal = outcome.val;
  switch (refusal.tag) {
    case 'waiting': return waits(refusal.val);
    case 'invalid': return failed(refusal.val.map(({ path, message }) => `${path}: ${message}`).join('; '));
    default: return failed(refusal.val);
  }
}

/** The counts of a live Deployment. `wanted` is the number of pods while the Deployment does not exist. */
function rolloutOf(deployment, wanted) {
  if (!deployment) return { replicas: 0, serves: false, message: `Deployment ready replicas: 0/${wanted}` };
  const { metadata: { generation = 0 }, spec, status = {} } = deployment;
  const of = spec?.replicas ?? 1;
  const count = (field) => status[field] ?? 0;
  const replicas = count('replicas');
  const updated = count('updatedReplicas');
  // The number of available pods must be larger than the number of old pods, so at least one available pod is new.
  const serves = count('observedGeneration') >= generation && of > 0 && updated > 0
    && count('availableReplicas') > Math.max(replicas - updated, 0);
  let message = `Deployment ready replicas: ${count('readyReplicas')}/${of}`;
  if (of === 0) message += ' (scaled to zero)';
  const conditions = items(status.conditions);
  const holds = (type, is) => {
    const found = conditions.find((it) => it.type === type);
    return found?.status === is ? found.message ?? '' : undefined;
  };
  const trouble = holds('ReplicaFailure', 'True') ?? holds('Progressing', 'False');
  if (trouble && !serves) message += `; ${trouble}`;
  return { replicas, serves, message, status: deploymentStatus(status, conditions) };
}

/** The content of `status.deployment`: the counts that are not zero, and the conditions. */
function deploymentStatus(status, conditions) {
  const fields = ['replicas', 'readyReplicas', 'availableReplicas', 'updatedReplicas'];
  const block = Object.fromEntries(fields.filter((field) => status[field]).map((field) => [field, status[field]]));
  const own = conditions.filter((it) => it.type && it.status).map((it) => ({
    type: it.type,
    status: it.status,
    reason: it.reason || 'Unknown',
    message: it.message ?? '',
    lastTransitionTime: it.lastTransitionTime,
  }));
  if (own.length > 0) block.conditions = own;
  return block;
}

/** Shows the Gateway controller's verdict on the route, or why there is no route although routes are enabled. */
function routed(seen, route) {
  const of = 'Routed';
  const note = seen.notes.find(({ reason }) => reason.startsWith('Gateway'));
  if (note) return [condition(of, 'no', note.reason, note.message)];
  if (!route) return [];
  const conditions = items(route.status?.parents).flatMap((parent) => items(parent.conditions));
  const refused = conditions.find((it) => it.status === 'False');
  if (refused) return [condition(of, 'no', refused.reason ?? '', refused.message ?? '')];
  if (conditions.some((it) => it.type === 'Accepted' && it.status === 'True')) {
    return [condition(of, 'yes', 'Accepted', 'the Gateway accepted the route')];
  }
  return [condition(of, 'unknown', 'Pending', 'no Gateway has accepted the route yet')];
}

/** Shows whether the registry has a valid entry for the runtime. */
function runtimeResolved(outcome, isResolved) {
  const of = 'RuntimeResolved';
  if (isResolved) return [condition(of, 'yes', 'Resolved', 'the runtime is known')];
  const refusal = outcome.tag === 'refused' ? outcome.val : undefined;
  if (refusal?.tag === 'invalid') {
    const wrong = refusal.val.find(({ path }) => path === 'spec.runtime' || path === 'spec.container.image');
    return wrong ? [condition(of, 'no', 'Unknown', wrong.message)] : [];
  }
  const blocker = refusal?.tag === 'waiting' ? refusal.val[0] : undefined;
  return blocker ? [condition(of, 'no', blocker.reason, blocker.message)] : [];
}

/** The functions in the container's Python parameters, or else the registry's list of tools. */
function availableTools({ launch, wanted: { params } }, env) {
  if (!launch.paramsArePython || !launch.paramsEnvVar) return launch.tools;
  const given = env.find(({ container, name }) => container === CONTAINER && name === launch.paramsEnvVar);
  if (given) return given.source.tag === 'literal' ? topLevelFunctions(given.source.val) : launch.tools;
  return params && !params.secret ? topLevelFunctions(params.text) : launch.tools;
}

// A loop over characters costs much more fuel than a regular expression. A sticky expression begins at `lastIndex`.
const DEFINITION = /(?:async[ \t]+)?def[ \t]+([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)[ \t]*[([]/y;
const PLAIN = /[^\n#"'\\()[\]{}]+/y;
const ESCAPED = /\r\n|[^]/y;
const STRINGS = {
  '"': { line: /(?:[^"\\\n]+|\\(?:\r\n|[^])?)*"?/y, triple: /(?:[^"\\]+|\\(?:\r\n|[^])?|"(?!""))*(?:""")?/y },
  "'": { line: /(?:[^'\\\n]+|\\(?:\r\n|[^])?)*'?/y, triple: /(?:[^'\\]+|\\(?:\r\n|[^])?|'(?!''))*(?:''')?/y },
};

/**
 * The names of the functions that Python source defines at top level, in order and without duplicates. Reads just enough
 * of strings, brackets, comments and line continuations to find the statements that begin in column zero. If the text is
 * not Python, the list may be wrong.
 */
function topLevelFunctions(source) {
  const most = 500;
  const names = new Set();
  let at = source.startsWith('\ufeff') ? 1 : 0;
  while (at < source.length && names.size < most) {
    DEFINITION.lastIndex = at;
    const name = DEFINITION.exec(source)?.[1];
    if (name) names.add(name);
    at = afterStatement(source, at);
  }
  return [...names];
}

/** The position after the rest of the logical line. */
function afterStatement(source, start) {
  let at = start;
  let depth = 0;
  const skip = (expression) => {
    expression.lastIndex = at;
    if (expression.test(source)) at = expression.lastIndex;
  };
  for (;;) {
    skip(PLAIN);
    if (at >= source.length) return at;
    const c = source[at];
    at += 1;
    if (c === '\n') {
      if (depth === 0) return at;
    } else if (c === '#') {
      const end = source.indexOf('\n', at);
      at = end < 0 ? source.length : end;
    } else if (c === '"' || c === "'") {
      if (source.startsWith(c + c, at)) {
        at += 2;
        skip(STRINGS[c].triple);
      } else skip(STRINGS[c].line);
    } else if (c === '\\') {
      skip(ESCAPED);
    } else if ('([{'.includes(c)) {
      depth += 1;
    } else {
      depth = Math.max(depth - 1, 0);
    }
  }
}
