// Tests the console in a headless browser, on the demo's cluster: real clicks, the keyboard alone, changes while a page is
// open, a policy that tries to inject markup, and accessibility. With KAOS_SCREENSHOTS=1, also writes the screenshots
// of the documentation. With KAOS_CONSOLE_AGENTS=1000, also adds 1,000 Agents to the cluster, and prints how long each
// page then takes to appear.
//
// |  node tests/console/run.mjs PROGRAM

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Browser, KEYS, started } from './webdriver.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const program = process.argv[2] ?? join(folder, '../../target/debug/kaos-operator');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const images = join(folder, '../../docs/images');

const ended = [];
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

async function start(args, fits) {
  return (await started(program, args, fits)).line;
}

// The demo's cluster.
const kubeconfig = (await start(
  ['demo', '--plain', '--crds', join(folder, 'trickster/crd.yaml')],
  (line) => line.includes('export KUBECONFIG='),
)).split('=')[1].trim();
const config = readFileSync(kubeconfig, 'utf8');
const [server, token] = [/server: (\S+)/, /token: (\S+)/].map((pattern) => config.match(pattern)[1].replaceAll('"', ''));

async function kube(method, path, object) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await fetch(server + path, { method, headers, body: object && JSON.stringify(object) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.text()}`);
}

function create(apiVersion, plural, kind, name, spec) {
  const object = { apiVersion, kind, metadata: { name, namespace: 'team' }, spec };
  return kube('POST', `/apis/${apiVersion}/namespaces/team/${plural}`, object);
}

const KAOS = 'kaos.tools/v1alpha1';
const TRICKS = 'tricks.example/v1';
const MARKUP = '<img src="x" onerror="window.injected=1">';

const address = (await start(['console', '--no-browser', '--kubeconfig', kubeconfig], (line) => line.includes('token='))).trim();
const origin = new URL(address).origin;
// The secret path below which the console serves its pages.
let base = '';
const browser = await Browser.start();

async function test(name, run) {
  console.log(`test: ${name}`);
  await run();
  ended.push(name);
}

// Fails if the checker axe finds a serious or critical accessibility problem on the page.
async function accessible(page) {
  for (const scheme of ['light', 'dark']) {
    await browser.scheme(scheme);
    const result = await browser.script(
      `${axe}; const done = arguments[arguments.length - 1];
       axe.run(document, { resultTypes: ['violations'] }).then((found) => done(found.violations), (error) => done([{ impact: 'critical', id: String(error), nodes: [] }]));`,
    );
    const serious = result.filter(({ impact }) => ['serious', 'critical'].includes(impact));
    const told = serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html).join(' ')}`);
    assert.deepEqual(told, [], `${page} in ${scheme} colours`);
  }
  await browser.scheme('light');
}

async function picture(name) {
  if (!process.env.KAOS_SCREENSHOTS) return;
  mkdirSync(images, { recursive: true });
  writeFileSync(join(images, `console-${name}.png`), await browser.screenshot());
}

async function harmless() {
  assert.equal(await browser.value('window.injected === undefined'), true, 'injected markup ran');
  assert.deepEqual(await browser.complaints(), []);
}

try {
  await test('the printed address opens the overview, and hides the secret', async () => {
    await browser.open(address);
    await browser.has('5 of 5 objects are ready.');
    base = (await browser.url()).replace(/\/$/, '');
    assert.match(base, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{64}$/);
    assert.ok(!base.includes(new URL(address).searchParams.get('token')), 'the address still has the printed secret');
    await accessible('the overview');
  });

  await test('an open page shows what changes in the cluster, and why', async () => {
    await browser.has('Live', '#live');
    await create(KAOS, 'agents', 'Agent', 'reader', { modelAPI: 'missing', model: 'gpt', config: { description: MARKUP } });
    await browser.has('5 of 6 objects are ready.');
    await browser.has('ModelAPI team/missing does not exist');
    await browser.has('5 of 6 objects are ready.', '#news');
    await accessible('the overview with an object that is not ready');
    await picture('overview');
  });

  await test('paused updates wait until the user wants them', async () => {
    await browser.tabTo('Pause updates');
    await browser.press(KEYS.enter);
    await browser.has('Paused', '#live');
    await create(KAOS, 'agents', 'Agent', 'paused', { modelAPI: 'missing', model: 'gpt' });
    await browser.open(`${base}/objects`);
    await browser.has('Agent team/paused');
    await browser.has('Paused', '#live');
    await accessible('a page with paused updates');
    await browser.open(`${base}/`);
    await kube('DELETE', `/apis/${KAOS}/namespaces/team/agents/paused`);
    assert.ok(await browser.value('document.querySelector("main").innerText.includes("Agent team/paused")'));
    await browser.tabTo('Agent team/paused');
    await browser.value('document.getElementById("pause").click()');
    await browser.has('Live', '#live');
    await browser.has('5 of 6 objects are ready.');
    const focused = 'document.activeElement.closest("main") !== null && document.activeElement !== document.body';
    assert.ok(await browser.value(focused), 'the focus fell off the page when its row left');
  });

  await test('more objects than a picture can show are groups in it', async () => {
    await kube('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'many' } });
    for (let at = 0; at < 70; at += 1) {
      const metadata = { name: `agent-${at}`, namespace: 'many' };
      const spec = { modelAPI: 'missing', model: 'gpt' };
      await kube('POST', `/apis/${KAOS}/namespaces/many/agents`, { apiVersion: KAOS, kind: 'Agent', metadata, spec });
    }
    await browser.open(`${base}/objects`);
    await browser.has('70 Agent in many', 'ul.connections');
    await browser.has('70 not ready', 'ul.connections');
    const drawn = await browser.value('document.querySelectorAll(".picture .node").length');
    const listed = await browser.value('document.querySelectorAll("ul.connections > li").length');
    assert.equal(drawn, listed, 'the picture and the list have the same groups');
    await accessible('a picture of groups');
    await picture('groups');
    await browser.click('70 Agent in many');
    await browser.has('Agent many/agent-0');
    assert.match(await browser.url(), /namespace=many&kind=Agent/);
    await kube('DELETE', `/apis/${KAOS}/namespaces/many/agents`);
  });

  await test('a click leads from the cause to the object, its picture and its values', async () => {
    await browser.click('Objects');
    await browser.has('Agent team/coordinator');
    await browser.has('MCPServer team/echo', 'ul.connections');
    await accessible('the list of objects');
    await browser.click('Agent team/coordinator');
    await browser.has('uses', 'ul.connections');
    await browser.has('Deployment agent-coordinator');
    await browser.has('MODEL_NAME');
    const drawn = await browser.value('document.querySelectorAll(".picture .node").length');
    const listed = await browser.value('document.querySelectorAll("ul.connections > li").length');
    assert.equal(drawn, listed, 'the picture and the list have the same objects');
    assert.ok(drawn >= 4, `${drawn} objects in the picture`);
    await accessible('an object');
    await picture('object');
  });

  await test('the filter of the list needs no mouse and no script', async () => {
    await browser.open(`${base}/objects`);
    await browser.tabTo('name');
    await browser.press(...'echo', KEYS.enter);
    await browser.has('1 object is ready.');
    assert.match(await browser.url(), /name=echo/);
  });

  await test('the keyboard alone leads to the effect of an edit', async () => {
    await browser.open(`${base}/objects?name=analyst`);
    await browser.has('Agent team/analyst');
    await browser.tabTo('Agent team/analyst');
    await browser.press(KEYS.enter);
    await browser.has('See the effect of an edit');
    await browser.tabTo('See the effect of an edit');
    await browser.press(KEYS.enter);
    await browser.has('The object as YAML');
    await accessible('the form for an edit');
    await browser.tabTo('yaml');
    await browser.press([KEYS.control, KEYS.end], ...'  container: {image: "example.org/agent:2"}\n'.replace('\n', ''));
    await browser.tabTo('Show the effect');
    await browser.press(KEYS.enter);
    await browser.has('Effect of the edit', 'h2');
    assert.equal(await browser.value('document.activeElement.id'), 'result-heading', 'the focus is on the result');
    await browser.has('example.org/agent:2', '.result');
    await browser.has('Kubernetes would replace the pods of 1 workload.');
    await accessible('the effect of an edit');
    await picture('effect');
  });

  await test('the keyboard alone leads to the effect of settings on all objects', async () => {
    await browser.open(`${base}/policies`);
    await browser.has('policy-agent-settings');
    await browser.tabTo('See the effect of settings');
    await browser.press(KEYS.enter);
    await browser.has('The settings, as in policy.yaml');
    await browser.tabTo('Show the effect');
    await browser.press(KEYS.enter);
    await browser.has('Effect of the settings', 'h2');
    await browser.has('registry.example.org/agent:2', '.result');
    await accessible('the effect of settings');
  });

  await test('a policy that tries to inject markup shows text', async () => {
    await create(TRICKS, 'tricks', 'Trick', 'one', { title: MARKUP });
    await create(TRICKS, 'tricks', 'Trick', 'two', { refused: true });
    // These objects never become settled, so wait only until the policy is active.
    const push = ['policy', 'push', join(folder, 'trickster/policy.js'), '--kubeconfig', kubeconfig, '--wait', 'active', '--timeout', '300'];
    const pushed = spawnSync(program, push);
    assert.equal(pushed.status, 0, `${pushed.stdout}${pushed.stderr}`);
    await browser.open(`${base}/`);
    for (const trick of ['one', 'two']) {
      await browser.has(`Trick team/${trick}`);
      await browser.has('window.injected=1');
    }
    await harmless();
    for (const path of ['/object/tricks.example/Trick/team/one', '/object/tricks.example/Trick/team/two', '/object/kaos.tools/Agent/team/reader']) {
      await browser.open(base + path);
      await browser.has('Where values come from');
      await harmless();
    }
    await browser.open(`${base}/effect/tricks.example/Trick/team/one`);
    await browser.click('Show the effect');
    await browser.has('Effect of the edit', 'h2');
    await browser.has('window.injected=1', '.result');
    await harmless();
    await browser.click('Policies');
    await browser.has('trickster');
    await accessible('the policies');
    await harmless();
  });

  await test('a page of a deleted object says so', async () => {
    await browser.open(`${base}/object/kaos.tools/Agent/team/reader`);
    await browser.has('Live', '#live');
    await kube('DELETE', `/apis/${KAOS}/namespaces/team/agents/reader`);
    await browser.has('does not exist any more', '#live');
  });

  const crowd = Number(process.env.KAOS_CONSOLE_AGENTS ?? 0);
  if (crowd > 0) {
    await test(`pages with ${crowd} more Agents`, async () => {
      await kube('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'crowd' } });
      for (let at = 0; at < crowd; at += 1) {
        const metadata = { name: `agent-${at}`, namespace: 'crowd' };
        const spec = { modelAPI: 'models', model: 'gpt' };
        await kube('POST', `/apis/${KAOS}/namespaces/crowd/agents`, { apiVersion: KAOS, kind: 'Agent', metadata, spec });
      }
      for (const path of ['/', '/objects', `/objects?name=agent-1`, '/object/kaos.tools/Agent/crowd/agent-1']) {
        await browser.open(base + path);
        const paint = await browser.value("performance.getEntriesByName('first-contentful-paint')[0]?.startTime");
        const size = await browser.value('document.documentElement.outerHTML.length');
        console.log(`${path}: first paint after ${Math.round(paint)} ms, ${Math.round(size / 1024)} KiB`);
      }
      await harmless();
    });
  }

  await test('no page asks another server', async () => {
    const beyond = (await browser.requests()).filter((url) => !url.startsWith(`${origin}/`) && !/^(data|about|chrome):/.test(url));
    assert.deepEqual(beyond, []);
    await harmless();
  });
  console.log(`${ended.length} tests passed`);
} finally {
  await browser.stop();
}
// The demo and the console run until this process ends.
process.exit();
