// A browser that a test controls through ChromeDriver, by the WebDriver protocol.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf';
// The time limit in milliseconds until a page shows an expected text.
const PATIENCE = 60_000;
const STARTED = /started successfully on port (\d+)/;
export const KEYS = { tab: '\uE004', enter: '\uE007', control: '\uE009', end: '\uE010' };

// Starts a program. Returns the process, and the first line of its output that `fits` accepts.
export async function started(program, args, fits, options = {}) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], ...options });
  // End the program together with the test.
  process.once('exit', () => child.kill());
  const ended = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${program} ${args[0]} ended with ${code}`)));
  });
  // After the program has printed that line, its end is no error.
  ended.catch(() => {});
  const lines = createInterface({ input: child.stdout });
  const line = new Promise((resolve) => lines.on('line', (text) => fits(text) && resolve(text)));
  return { child, line: await Promise.race([line, ended]) };
}

export class Browser {
  // Starts a headless browser. The browser can resolve no host name, and can reach only this machine.
  static async start() {
    const { child, line } = await started('chromedriver', ['--port=0'], (text) => STARTED.test(text));
    const base = `http://127.0.0.1:${line.match(STARTED)[1]}`;
    const browser = new Browser(child, base);
    const args = [
      '--headless=new', '--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--window-size=1200,900', '--hide-scrollbars',
      '--disable-background-networking', '--disable-component-update', '--no-first-run',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ];
    const capabilities = {
      alwaysMatch: {
        browserName: 'chrome',
        'goog:chromeOptions': { args, perfLoggingPrefs: { enableNetwork: true } },
        'goog:loggingPrefs': { performance: 'ALL', browser: 'ALL' },
        timeouts: { script: 60_000 },
      },
    };
    const { sessionId } = await browser.send('POST', '/session', { capabilities });
    browser.session = `/session/${sessionId}`;
    return browser;
  }

  constructor(child, base) {
    Object.assign(this, { child, base, session: '' });
  }

  async send(method, path, body) {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(this.base + this.session + path, { method, headers, body: body && JSON.stringify(body) });
    const { value } = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`);
    return value;
  }

  async stop() {
    if (this.session) await this.send('DELETE', '');
    this.child.kill();
  }

  open(url) {
    return this.send('POST', '/url', { url });
  }

  url() {
    return this.send('GET', '/url');
  }

  // Runs a script in the page. The script calls its last argument with the result.
  script(text, ...args) {
    return this.send('POST', '/execute/async', { script: text, args });
  }

  value(expression) {
    return this.script(`arguments[0](${expression})`);
  }

  // Waits until the page has a text. Polls with short scripts, because a navigation would end a script that waits in
  // the page.
  async has(text, selector = 'main') {
    const script = `const [text, selector] = arguments;
      return [...document.querySelectorAll(selector)].some((one) => one.innerText.includes(text));`;
    const deadline = Date.now() + PATIENCE;
    while (!(await this.send('POST', '/execute/sync', { script, args: [text, selector] }))) {
      if (Date.now() > deadline) {
        const shown = await this.value('document.body.innerText');
        throw new Error(`no ${selector} has ${JSON.stringify(text)}:\n${await this.url()}\n${shown}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  // Clicks a link or a button as a user does.
  async click(text) {
    const using = 'xpath';
    const value = `//main//*[self::a or self::button or self::summary][normalize-space()="${text}"] | //header//a[normalize-space()="${text}"]`;
    const found = await this.send('POST', '/element', { using, value });
    await this.send('POST', `/element/${found[ELEMENT]}/click`, {});
  }

  // Presses keys, one after the other. Keys in a list are pressed together.
  press(...keys) {
    const strokes = (key) => (Array.isArray(key) ? [...key.map(down), ...key.toReversed().map(up)] : [down(key), up(key)]);
    const down = (value) => ({ type: 'keyDown', value });
    const up = (value) => ({ type: 'keyUp', value });
    return this.send('POST', '/actions', { actions: [{ type: 'key', id: 'keyboard', actions: keys.flatMap(strokes) }] });
  }

  // Presses Tab until the focus is on an element with this text or id.
  async tabTo(name) {
    for (let presses = 0; presses < 80; presses += 1) {
      await this.press(KEYS.tab);
      const focused = await this.value('[document.activeElement.innerText, document.activeElement.id]');
      if (focused.includes(name)) return;
    }
    throw new Error(`the keyboard does not reach ${name}`);
  }

  async screenshot() {
    return Buffer.from(await this.send('GET', '/screenshot'), 'base64');
  }

  // Sets the colour scheme that the browser reports to pages as the user's preference.
  scheme(value) {
    const params = { features: [{ name: 'prefers-color-scheme', value }] };
    return this.send('POST', '/goog/cdp/execute', { cmd: 'Emulation.setEmulatedMedia', params });
  }

  // Returns the addresses of all requests since the last call.
  async requests() {
    const entries = await this.send('POST', '/se/log', { type: 'performance' });
    const messages = entries.map((entry) => JSON.parse(entry.message).message);
    return messages.filter(({ method }) => method === 'Network.requestWillBeSent').map(({ params }) => params.request.url);
  }

  // Returns the messages of the browser's console since the last call, such as violations of the content policy.
  async complaints() {
    const entries = await this.send('POST', '/se/log', { type: 'browser' });
    return entries.filter(({ level }) => level === 'SEVERE').map(({ message }) => message);
  }
}
