// Runs before the script. Removes what is not pure, defines `kaos`, and returns the default functions.
(function (native) {
  'use strict';

  const forbid = (what, remedy) => {
    throw new TypeError(`${what} is not available, since a policy is a pure function: ${remedy}`);
  };

  const RealDate = Date;
  const NO_CLOCK = 'read times from the object or from what was found';
  function PureDate(...parts) {
    if (!new.target) forbid('Date()', NO_CLOCK);
    if (parts.length === 0) forbid('new Date()', NO_CLOCK);
    return Reflect.construct(RealDate, parts, new.target);
  }
  PureDate.prototype = RealDate.prototype;
  PureDate.prototype.constructor = PureDate;
  PureDate.parse = RealDate.parse;
  PureDate.UTC = RealDate.UTC;
  PureDate.now = () => forbid('Date.now()', NO_CLOCK);
  globalThis.Date = PureDate;

  Math.random = () => forbid('Math.random()', 'derive the value from the object, for example from its uid');

  const NO_TEXT = 'write the code into policy.js';
  function NoFunction() { forbid('Function()', NO_TEXT); }
  NoFunction.prototype = Function.prototype;
  for (const some of [function () {}, function* () {}, async function () {}, async function* () {}]) {
    Object.defineProperty(Object.getPrototypeOf(some), 'constructor', { value: NoFunction });
  }
  globalThis.Function = NoFunction;
  globalThis.eval = () => forbid('eval()', NO_TEXT);

  const ignore = () => {};
  globalThis.console = Object.freeze({ debug: ignore, error: ignore, info: ignore, log: ignore, warn: ignore });

  class Env {
    #base;
    #steps = [];
    constructor(base) { this.#base = base; }
    #step(step) { this.#steps.push(step); return this; }
    set(container, name, value, origin) { return this.#step({ op: 'set', container, name, value, origin }); }
    bind(container, name, source, origin) { return this.#step({ op: 'bind', container, name, source, origin }); }
    hold(container, name, source, origin) { return this.#step({ op: 'hold', container, name, source, origin }); }
    user(container, list, path) { return this.#step({ op: 'user', container, list: list ?? [], path }); }
    remove(container, name) { return this.#step({ op: 'remove', container, name }); }
    vars() {
      const { refused, vars } = native.env({ base: this.#base, steps: this.#steps });
      if (refused) throw refused;
      return vars;
    }
  }

  // Returns the value in a native function's answer, or throws the refusal or the error in this answer.
  const answered = ({ refused, error, value }) => {
    if (refused) throw refused;
    if (error !== undefined) throw new SyntaxError(error);
    return value;
  };

  const kaos = Object.freeze({
    invalid: (path, message) => ({ tag: 'invalid', val: Array.isArray(path) ? path : [{ path, message }] }),
    waiting: (blockers) => ({ tag: 'waiting', val: Array.isArray(blockers) ? blockers : [blockers] }),
    unsupported: (message) => ({ tag: 'unsupported', val: message }),
    env: (base) => new Env(base),
    containerEnv: (env, container) => native.containerEnv({ env, container }),
    checkPodSpecEnv: (patch, path) => { answered(native.checkPodSpecEnv({ patch, path })); },
    envOnce: (list) => native.envOnce(list),
    podSpecEnv: (podSpec, env, path) => answered(native.podSpecEnv({ podSpec, env, path })),
    mergePodSpec: (base, patch, own, path) => answered(native.mergePodSpec({ base, patch, own, path })),
    mergeContainer: (base, patch, path) => answered(native.mergeContainer({ base, patch, path })),
    dnsLabel: (name) => native.dnsLabel(name),
    shown: (text, most) => native.shown({ text, most }),
    shellWord: (text) => native.shellWord(text),
    unexpanded: (text) => native.unexpanded(text),
    onRegistry: (image, registry) => native.onRegistry({ image, registry }),
    podTemplate,
    containers,
    yaml: (text) => answered(native.parseYaml({ text })),
    yamlTexts: (text) => answered(native.parseYaml({ text, onlyTexts: true })),
    available,
  });
  Object.defineProperty(globalThis, 'kaos', { value: kaos });

  // Counts the available pods of a workload's current generation. Pods of an earlier generation do not count.
  function available(workload) {
    const status = workload?.status ?? {};
    if ((status.observedGeneration ?? 0) < (workload?.metadata?.generation ?? 0)) return 0;
    const old = Math.max(0, (status.replicas ?? 0) - (status.updatedReplicas ?? 0));
    return Math.max(0, (status.availableReplicas ?? 0) - old);
  }

  // Returns the pod template of a workload. A bare Pod is its own template.
  function podTemplate(manifest) {
    const spec = manifest?.spec;
    const all = [manifest, spec?.template, spec?.jobTemplate?.spec?.template];
    return all.find((template) => Array.isArray(template?.spec?.containers));
  }

  // Returns all containers of a pod template, including the init containers.
  function containers(template) {
    return [...(template?.spec?.initContainers ?? []), ...(template?.spec?.containers ?? [])];
  }

  const WORKLOADS = ['Deployment', 'StatefulSet'];

  function assess(subject, seen) {
    const workloads = seen.children.filter((child) => WORKLOADS.includes(child.identity.kind));
    const up = workloads.filter(({ live }) => live && (available(live) > 0 || live.spec?.replicas === 0)).length;
    const { tag } = seen.outcome;
    const failed = tag === 'refused' || tag === 'failed';
    // Plan gates can hold back a change of children that serve. A plan without children was never applied.
    const accepted = tag === 'applied' || (tag === 'gated' && seen.children.length > 0);
    const ready = accepted && seen.children.every((child) => child.live) && up === workloads.length;
    const phase = failed ? 'Failed' : ready ? 'Ready' : 'Pending';
    return { ready, phase, message: `${up} of ${workloads.length} workloads available` };
  }

  return { needs: () => [], mapEnv: (subject, base) => base, assess };
})
