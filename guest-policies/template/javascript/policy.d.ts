// The types of a policy. Generated from wit/policy.wit of the KAOS policy operator. Do not edit.

/** A value that JSON can express: a Kubernetes object or a part of one. */
export type Json = any;

export interface ResourceType {
  apiVersion: string;
  kind: string;
}

/**
 * A reference to one object. Without a namespace, the object is in the namespace of the pass's object, or
 * cluster-scoped.
 */
export interface Reference {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
}

/**
 * A sample that the gate and `policy check` evaluate: `object` is the object as a user would write it, and
 * `beside` lists the other objects in the cluster. At least one sample of each claim must end in a plan.
 */
export interface Sample {
  name: string;
  object: Json;
  beside?: Json[];
}

export interface Claim {
  primary: ResourceType;
  /** Types that plans may contain. For an overlay: types of the children that the overlay adds or changes. */
  emits: ResourceType[];
  /** Types that `needs` can name. */
  reads?: ResourceType[];
  /** Types that the policy uses only if the cluster serves them; a subset of `emits` and `reads`. */
  wishes?: ResourceType[];
  /**
   * The finalizer that stays on the object while the operator deletes the children in order. Omit it if
   * possible. An overlay has none.
   */
  finalizer?: string;
  samples?: Sample[];
  extra?: Json;
}

export interface Descriptor {
  /** The policy's name: short, in lower case. Settings and pins refer to the policy by this name. */
  name: string;
  /** The policy's own version (semantic versioning). */
  version: string;
  claims: Claim[];
  /**
   * The JSON Schema of the settings. A property can have `x-env`, the environment variable with the property's
   * value, and `x-annotation: true` if an object's annotation can override the property.
   */
  settingsSchema?: Json;
  extra?: Json;
}

export interface Cluster {
  /** The DNS domain of Services, for example `cluster.local`. */
  domain: string;
  operatorNamespace: string;
  /** The types among the claim's wishes that the cluster serves. */
  served: ResourceType[];
}

export interface Selector {
  of: ResourceType;
  namespace?: string;
  labels?: [string, string][];
}

export type Target =
  | { tag: 'named'; val: Reference }
  | { tag: 'labelled'; val: Selector };

/**
 * One read that the host makes for the policy. The host also watches the target, and begins a new pass when the
 * answer to the need changes. The policy chooses the id, which must be unique within one list of needs. `optional`
 * says that the policy can make its plan without the target. If `optional` is true, no condition reports a missing
 * target.
 *
 * `fields` are the paths that the policy reads of each object. The answer to the need has only these fields, so a
 * change of any other field begins no pass. An empty list means all fields. `apiVersion`, `kind`, `metadata.name`,
 * `metadata.namespace`, `metadata.uid` and `metadata.deletionTimestamp` are always in the answer. A need of a
 * Secret has an empty list, because the answer has only facts about the Secret. A need has at most 32 paths, each
 * of at most 512 bytes, with this grammar:
 *
 * ```text
 * path  = name *step [ equal ] [ "?" ]
 * step  = "." name | "[" text "]" | "[" name "=" text "]"
 * equal = "[=" text "]"
 * name  = letters, digits, "_" and "-"
 * text  = a JSON string, in double quotes
 * ```
 *
 * | path | selects |
 * |---|---|
 * | `status.endpoint` | the member with its whole value |
 * | `data["runtimes.yaml"]` | the member whose name has characters that the grammar's `name` does not allow |
 * | `status.conditions[type="Ready"].status` | the maps of a list whose `type` is `Ready`, each with only `type` and the rest of the path |
 * | `spec.models[="gpt-4o"]` | the items of a list that equal the text, sorted, without duplicates; or a string, if the string equals the text |
 * | `spec.volume?` | `true` if the member has a value |
 *
 * The answer keeps the maps and lists of the object along each path. If a value has another type than the paths
 * expect, the answer has the whole value.
 */
export interface Need {
  id: string;
  target: Target;
  fields?: string[];
  optional?: boolean;
}

export interface SecretFacts {
  present: boolean;
  keys: string[];
  digest: string;
}

export type Answer =
  /** The objects that exist; an empty list if there are none yet. */
  | { tag: 'objects'; val: Json[] }
  /** Facts of a Secret: whether it exists, its keys, and a keyed digest. Never its content. */
  | { tag: 'secret'; val: SecretFacts }
  /** The cluster does not serve this type now. */
  | { tag: 'unserved' }
  /** The operator or the policy is not allowed to read the target. The text gives the reason. */
  | { tag: 'forbidden'; val: string };

export interface Found {
  id: string;
  answer: Answer;
}

/**
 * Everything that a policy can know, as data; a policy cannot call the host. The object lacks status,
 * managedFields and resourceVersion. Found objects lack managedFields and resourceVersion. So a change of only
 * these fields does not change the subject.
 */
export interface Subject {
  object: Json;
  /** The answers to `needs`, sorted by id. */
  found: Found[];
  /** The effective settings: all layers merged, defaults filled in, valid by the policy's schema. */
  settings: Json;
  cluster: Cluster;
  /**
   * Whether the host has ever applied a plan of the object in full. If true, the plan's `gates` hold something
   * back only if the plan sets `gates-hold`. So if `applied` is true and the plan has no `gates-hold`, the
   * policy need not read fields that only its gates depend on. Always false for a kind whose
   * CustomResourceDefinition does not declare `status.appliedGeneration`.
   */
  applied: boolean;
  extra: Json;
}

export interface KeySelector {
  name: string;
  key: string;
  optional: boolean;
}

export type EnvSource =
  | { tag: 'literal'; val: string }
  | { tag: 'secret-key'; val: KeySelector }
  | { tag: 'config-map-key'; val: KeySelector }
  | { tag: 'field-path'; val: string }
  /** Any other `valueFrom`, as in a Kubernetes manifest. */
  | { tag: 'other'; val: Json };

/**
 * One environment variable. `origin` is the place of the variable, of its `valueFrom`, of its selector, or of the
 * value itself. If the policy computes the value from another value, `origin` is the place of this other value.
 */
export interface EnvVar {
  container: string;
  name: string;
  source: EnvSource;
  origin: Source;
}

/**
 * The origin of a value in a manifest, and of all values below it. The host looks up each value at the same path
 * below `from`. In a list, the host looks at the items with the same `name`, and at the items without a `name`. The
 * host believes an origin only for values that are equal in both places. So one origin can cover a whole part of a
 * manifest into which the policy merges a part of the object.
 *
 * Several origins can cover one value. The value comes from the origin with the longest path that has an equal
 * value. If several of these paths are equally long, the value comes from the last of these origins. All other
 * values are the policy's own.
 */
export interface Origin {
  /** The position of the manifest in the plan. */
  manifest: number;
  /** A path in the manifest; an empty text means the whole manifest. */
  path: string;
  from: Source;
}

export type Severity = 'info' | 'warning';

/** A message for the user, without any other effect. `path` is the field of the object that the message is about. */
export interface Note {
  severity: Severity;
  reason: string;
  message: string;
  path?: string;
}

export interface Blocker {
  on: Reference;
  reason: string;
  message: string;
}

/** The children that the cluster should have for the object. */
export interface Plan {
  manifests: Json[];
  /**
   * The origins of values in the manifests. The mapping has the origins of variables. A value that raises a
   * privilege or names a Secret or a PersistentVolumeClaim needs an origin in the object or in the owner's
   * settings, or a grant. If an overlay changes more of a child than labels, annotations and scheduling, the
   * settings and grants of the layers below no longer allow such a value in the child.
   */
  origins?: Origin[];
  /**
   * The plan gates, which hold back the first apply. After the host has applied a plan of the object in full
   * once, the host only reports the plan gates. So a flapping dependency neither stops nor freezes a running
   * workload. With `gates-hold`, the plan gates also hold back later changes.
   */
  gates?: Blocker[];
  /**
   * The final mapping, after all merges. The host checks that the manifests have the same variables. If the plan
   * of the policy returns an overlay's variable exactly as `translate` got it, the overlay stays the author of
   * the variable. Otherwise the policy is the author, and the grants and settings of the overlay do not apply.
   */
  env?: EnvVar[];
  notes?: Note[];
  /**
   * The finalizer that the host adds to the object, instead of the claim's finalizer. The host removes the
   * finalizer when the children are gone.
   */
  finalizer?: string;
  /**
   * The names of the plan's PersistentVolumeClaims that get no owner reference. The kept PersistentVolumeClaims
   * stay when a user deletes the object.
   */
  kept?: string[];
  /**
   * Whether the gates also hold back changes to running workloads. A policy sets `gates-hold` if its plan lacks
   * data that a missing object provides.
   */
  gatesHold?: boolean;
  extra?: Json;
}

/** A problem with the object. `path` is the field with the problem. `message` names the problem and the remedy. */
export interface Violation {
  path: string;
  message: string;
}

/** A policy's answer without a plan. The children stay as they are. */
export type Refusal =
  /** The object is invalid until a user changes it. */
  | { tag: 'invalid'; val: Violation[] }
  /** The policy waits until one of these objects appears or changes. */
  | { tag: 'waiting'; val: Blocker[] }
  /**
   * The cluster or the policy does not support the object. The refusal stays until the object, the cluster or
   * the policy changes.
   */
  | { tag: 'unsupported'; val: string };

/** The result of this pass. The policy gets the outcome in `assess`. */
export type Outcome =
  | { tag: 'applied' }
  /**
   * The plan's gates hold back this plan: the first apply or, with `gates-hold`, a change of running children. So
   * children of an earlier plan may exist, and the policy reports their state.
   */
  | { tag: 'gated' }
  | { tag: 'refused'; val: Refusal }
  /** The apply or the guard's check failed. The text is the message of the API server or the guard. */
  | { tag: 'failed'; val: string };

/**
 * A child of the object. An observation lists the children whatever the outcome is. `live` is the child as it is
 * in the cluster, or `none` if the cluster does not have the child. A live Secret has its keys, with empty values.
 */
export interface Child {
  identity: Reference;
  live?: Json;
}

export interface Observation {
  outcome: Outcome;
  children: Child[];
  /** The gates of this pass's plan; empty if the policy refused. */
  gates: Blocker[];
  env: EnvVar[];
  notes: Note[];
  extra: Json;
}

export type Truth = 'yes' | 'no' | 'unknown';

export interface Condition {
  type: string;
  status: Truth;
  reason: string;
  message: string;
}

/**
 * The policy's report for the object's `status`. `fields` is a JSON object with every other field of the status,
 * except the fields that only the host writes (`observedGeneration`, `policy`, the common conditions).
 */
export interface Report {
  ready: boolean;
  phase: string;
  message: string;
  fields?: Json;
  conditions?: Condition[];
  extra?: Json;
}

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
