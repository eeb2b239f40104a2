/** The functions that a script exports. `describe` and `translate` have no default. */
export interface Policy {
  /** The policy's name, version, claims and settings. */
  describe(): Descriptor;
  /** The objects that the policy must see. Default: none. */
  needs?(subject: Subject): Need[];
  /** The environment variables. `base` is the mapping of the layer below. Throws a Refusal. Default: `base`. */
  mapEnv?(subject: Subject, base: EnvVar[]): EnvVar[];
  /** The children. Throws a Refusal. */
  translate(subject: Subject, env: EnvVar[]): Plan;
  /**
   * The status. Default: ready as soon as all children exist and each workload has an available pod, also while plan
   * gates hold back a change.
   */
  assess?(subject: Subject, seen: Observation): Report;
}

/**
 * The functions that a script for an overlay exports. An overlay changes the answer of the policy below. `describe` and
 * `amend` have no default.
 */
export interface Overlay {
  /** The overlay's name, version, claims and settings. */
  describe(): Descriptor;
  /** The objects that the overlay must see. Default: none. */
  needs?(subject: Subject): Need[];
  /** The environment variables. `base` is the mapping of the layer below. Throws a Refusal. Default: `base`. */
  mapEnv?(subject: Subject, base: EnvVar[]): EnvVar[];
  /** The changed plan. `below` is the plan of the layer below, which the function may change. Throws a Refusal. */
  amend(subject: Subject, below: Plan): Plan;
}

/** Builds the mapping of environment variables. The user's variables win over the policy's. */
export interface Env {
  /** Sets a text. Kubernetes does not expand `$(NAME)` in it. */
  set(container: string, name: string, value: string, origin: string): Env;
  /** Sets any source. */
  bind(container: string, name: string, source: EnvSource, origin: string): Env;
  /** Like `bind`, but the value stays even if the policy later sets another one. The user's value still wins. */
  hold(container: string, name: string, source: EnvSource, origin: string): Env;
  /** Adds the `env` list at `path` of the object. */
  user(container: string, list: Json[] | undefined, path: string): Env;
  /** Removes a variable. */
  remove(container: string, name: string): Env;
  /** Returns the mapping. Throws a Refusal if the user's list is wrong. */
  vars(): EnvVar[];
}

declare global {
  const kaos: {
    /** The object is invalid: `throw kaos.invalid('spec.title', 'must not be blank: give the site a title')`. */
    invalid(path: string, message: string): Refusal;
    invalid(violations: Violation[]): Refusal;
    /** The policy waits for other objects: `throw kaos.waiting([{on, reason, message}])`. */
    waiting(blockers: Blocker | Blocker[]): Refusal;
    /** The cluster or the policy does not support the object. */
    unsupported(message: string): Refusal;
    /** Begins a mapping with the variables of the layer below. */
    env(base: EnvVar[]): Env;
    /** The `env` list of a container in a pod. */
    containerEnv(env: EnvVar[], container: string): Json[];
    /**
     * Merges the user's partial pod spec into the policy's pod spec, like `kubectl patch`. `own` is the name of the
     * policy's container, which stays first. `path` is the place of the patch in the object. Throws a Refusal.
     */
    mergePodSpec(base: Json, patch: Json, own: string, path: string): Json;
    /** Merges the user's partial container into the policy's container. Throws a Refusal. */
    mergeContainer(base: Json, patch: Json, path: string): Json;
    /** Checks the variables in the user's partial pod spec. Call it before the merge. Throws a Refusal. */
    checkPodSpecEnv(patch: Json, path: string): void;
    /** Keeps one definition of each variable of an `env` list: the last one, as in Kubernetes. */
    envOnce(list: Json[]): Json[];
    /**
     * The mapping of a pod spec after all merges. A variable that equals its entry in `env` keeps its origin. Every
     * other variable gets the origin `path`. Throws a Refusal.
     */
    podSpecEnv(podSpec: Json, env: EnvVar[], path: string): EnvVar[];
    /** At most `most` characters of a user's text on one line, for a message. */
    shown(text: string, most: number): string;
    /** The text as one word of a POSIX shell. */
    shellWord(text: string): string;
    /** The text with escapes, so that Kubernetes expands no `$(NAME)` in it. */
    unexpanded(text: string): string;
    /**
     * The image on another registry. `registry` is a host, and may have a path: `mirror.internal/hub`. An image
     * without a registry is an image of Docker Hub. For an empty registry, the image stays as it is.
     */
    onRegistry(image: string, registry: string): string;
    /** The pod template of a workload in a plan; undefined for other manifests. */
    podTemplate(manifest: Json): Json;
    /** All containers of a pod template, including the init containers. */
    containers(template: Json): Json[];
    /** Reads a YAML text with one document. Throws a SyntaxError with the line and the column. */
    yaml(text: string): Json;
    /** Like `yaml`, but every number and Boolean stays the text that the user wrote: `1.10` stays `1.10`. */
    yamlTexts(text: string): Json;
    /** Why the text cannot be the name of a Service; null if it can. */
    dnsLabel(name: string): string | null;
    /** The available pods of a Deployment or StatefulSet, without pods of an older generation. */
    available(workload: Json | undefined): number;
  };
}
