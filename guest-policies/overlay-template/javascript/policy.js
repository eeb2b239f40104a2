// An overlay that changes the registry of every image.
//
// An overlay changes the answer of the policy below it: its variables (`mapEnv`), its plan (`amend`), or both. The
// functions are pure: they get everything as arguments, and use no clock, network or randomness. policy.d.ts describes
// the arguments and answers. The global `kaos` has helpers.

// The kinds whose plans the overlay changes.
const KINDS = [
  { apiVersion: 'kaos.tools/v1alpha1', kind: 'Agent' },
  { apiVersion: 'kaos.tools/v1alpha1', kind: 'MCPServer' },
  { apiVersion: 'kaos.tools/v1alpha1', kind: 'MemoryStore' },
  { apiVersion: 'kaos.tools/v1alpha1', kind: 'ModelAPI' },
];

/** @returns {import('./policy').Descriptor} */
export function describe() {
  return {
    name: 'mirror',
    version: '0.1.0',
    claims: KINDS.map((primary) => ({
      primary,
      // The types of the children that the overlay changes or adds.
      emits: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
      // The gate asks the overlay to amend a small Deployment for this object.
      samples: [{ name: 'any', object: { ...primary, metadata: { name: 'any', namespace: 'default' }, spec: {} } }],
    })),
    // The host fills in the defaults and checks the values.
    settingsSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'Settings of the mirror overlay',
      type: 'object',
      additionalProperties: false,
      properties: {
        registry: {
          description: 'The registry from which pods pull their images: a host, which may have a path. Empty: images '
            + 'stay as they are.',
          type: 'string',
          default: '',
          'x-env': 'DEFAULT_MIRROR_REGISTRY',
        },
      },
    },
  };
}

/**
 * @param {import('./policy').Subject} subject
 * @param {import('./policy').Plan} below
 * @returns {import('./policy').Plan}
 */
export function amend(subject, below) {
  const { registry } = subject.settings;
  for (const manifest of below.manifests) {
    const template = kaos.podTemplate(manifest);
    for (const container of kaos.containers(template)) {
      if (container.image) container.image = kaos.onRegistry(container.image, registry);
    }
  }
  return below;
}
