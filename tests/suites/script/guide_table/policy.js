// The policy of the test in JavaScript. The test replaces each «…» by code from the second column of the guide's table.
// The text between « and » chooses a row: it is the beginning of the text in the row's first column. If the row's
// second column has several pieces of code, a number after a colon chooses one of them, counted from 0. Without a
// number, the test takes the first piece.
const path = 'data', from = 'spec.title', origin = 'spec.passwordFrom.secretKeyRef';
const name = 'login', key = 'password', reason = 'NotFound', message = 'the Secret is missing';

export function describe() {
  return {
    name: 'table',
    version: '0.1.0',
    claims: [{
      primary: { apiVersion: 'example.com/v1', kind: 'Website' },
      emits: [{ apiVersion: 'v1', kind: 'ConfigMap' }, { apiVersion: 'apps/v1', kind: 'Deployment' }],
      reads: [{ apiVersion: 'v1', kind: 'Secret' }, { apiVersion: 'kaos.tools/v1alpha1', kind: 'ModelAPI' }],
      samples: [{ name: 'minimal', object: { apiVersion: 'example.com/v1', kind: 'Website',
        metadata: { name: 'blog', namespace: 'default' },
        spec: { title: 'Hello', passwordFrom: { secretKeyRef: { name, key } } } } }],
    }],
    settingsSchema: { type: 'object', additionalProperties: false },
  };
}

export function needs(subject) {
  const llm = { apiVersion: 'kaos.tools/v1alpha1', kind: 'ModelAPI', name: 'llm' };
  return [«need::named», { id: 'model', target: { tag: 'named', val: llm }, «.fields» }];
}

export function mapEnv(subject, base) {
  const env = «server.bind:1»;
  «server.bind»;
  return env.vars();
}

const facts = (answer) => {
  if («the Secret exists») return { exists: 'true', keys: «the Secret exists:1».join(' '), digest: «the Secret exists:2» };
  if («Absent») return { exists: 'false' };
  if («Forbidden») return { forbidden: «Forbidden:1» };
};
const isAbsent = (answer) => «Absent:1»;

export function translate(subject, env) {
  const login = «subject.secret»;
  const model = isAbsent(subject.found.find((it) => it.id === 'model')?.answer) ? 'absent' : 'there';
  const data = facts(login);
  if (!['«subject.secret:1»', '«subject.secret:2»'].includes(login.tag)) throw new Error(`the tag ${login.tag}`);
  const gate = «or_blocker:1»;
  if (data.exists === 'false' && subject.object.spec.waits) {
    const wait = () => { «or_wait»; };
    wait();
  }
  const labels = { app: 'blog' };
  const containers = [{ name: 'server', image: 'server:1', env: kaos.containerEnv(env, 'server') }];
  const spec = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } };
  const plan = {
    manifests: [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'blog', labels: { model } }, data },
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'blog' }, spec },
    ],
    «child.origin»: [«child.origin:1»],
    env,
  };
  return data.exists === 'false' ? { ...plan, «or_blocker»: [gate], «plan.gates_hold» } : plan;
}

export function assess(subject, seen) {
  return { ready: false, phase: 'Pending', message: '', «condition::no»: [«condition::no:1»] };
}
