// A policy that tries to put markup into the pages of the console: each text that a policy can choose contains markup.

const API_VERSION = 'tricks.example/v1';
const MARKUP = '<script>window.injected=1</script><img src="x" onerror="window.injected=1">';

export function describe() {
  return {
    name: 'trickster',
    version: '0.1.0',
    claims: [{
      primary: { apiVersion: API_VERSION, kind: 'Trick' },
      emits: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
      samples: [{
        name: 'minimal',
        object: { apiVersion: API_VERSION, kind: 'Trick', metadata: { name: 'one', namespace: 'default' }, spec: {} },
      }],
    }],
    settingsSchema: { type: 'object', additionalProperties: false, properties: {} },
  };
}

export function translate({ object }) {
  const { name, namespace } = object.metadata;
  if (object.spec.refused) throw kaos.invalid('spec.refused', MARKUP);
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { text: object.spec.title ?? '' } };
  return {
    manifests: [map],
    origins: [{ manifest: 0, path: 'data.text', from: 'spec.title' }],
    notes: [{ severity: 'info', reason: 'Tricked', message: MARKUP }],
  };
}

export function assess() {
  return { ready: false, phase: 'Pending', message: MARKUP };
}
