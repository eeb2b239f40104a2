//! Converts between the types of a released version of the contract and the host's own types.
//!
//! Each released version of the contract has one module here. Each version has two modules of generated types: the
//! engine's module for components, and the guest SDK's module for native policies in tests. A macro defines the
//! conversions of a version for both modules.

pub(crate) mod v0_1;
#[cfg(test)]
pub(crate) mod v0_2;

/// A version of the contract that this host serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V0_1,
    #[cfg(test)]
    V0_2,
}

/// The drafts of the contract that this host serves. A released host serves none.
#[cfg(not(test))]
pub(crate) const DRAFTS: [(&str, Version); 0] = [];
/// The drafts of the contract that this host serves. Tests use a draft to show that the contract can grow.
#[cfg(test)]
pub(crate) const DRAFTS: [(&str, Version); 1] = [(v0_2::VERSION, Version::V0_2)];

impl Version {
    /// Returns the version for the text `contract`, which the inspection of a component has accepted.
    pub(crate) fn of(contract: &str) -> Self {
        let draft = DRAFTS.iter().find(|(draft, _)| *draft == contract);
        draft.map_or(Self::V0_1, |(_, version)| *version)
    }
}

/// Defines functions that convert between the host's types and the generated types of version 0.1 of the contract.
/// `descriptor`, `needs`, `env`, `plan`, `refusal` and `report` convert to the host's types. `to_subject`, `to_founds`,
/// `to_env`, `to_plan` and `to_observation` convert from the host's types.
#[macro_export]
macro_rules! adapt_v0_1 {
    ($($theirs:tt)+) => {
        use $crate::contract as ours;
        use $($theirs)+ as theirs;

        pub fn descriptor(it: theirs::Descriptor) -> ours::Descriptor {
            let theirs::Descriptor { name, version, claims, settings_schema, extra } = it;
            ours::Descriptor { name, version, claims: claims.into_iter().map(claim).collect(), settings_schema, extra }
        }

        fn claim(it: theirs::Claim) -> ours::Claim {
            let theirs::Claim { primary, emits, reads, wishes, finalizer, samples, extra } = it;
            let types = |list: Vec<theirs::ResourceType>| list.into_iter().map(resource_type).collect();
            let sample = |it: theirs::Sample| {
                let theirs::Sample { name, object, beside } = it;
                ours::Sample { name, object, beside }
            };
            ours::Claim {
                primary: resource_type(primary),
                emits: types(emits),
                reads: types(reads),
                wishes: types(wishes),
                finalizer,
                samples: samples.into_iter().map(sample).collect(),
                extra,
            }
        }

        fn resource_type(it: theirs::ResourceType) -> ours::ResourceType {
            let theirs::ResourceType { api_version, kind } = it;
            ours::ResourceType { api_version, kind }
        }

        fn reference(it: theirs::Reference) -> ours::Reference {
            let theirs::Reference { api_version, kind, namespace, name } = it;
            ours::Reference { api_version, kind, namespace, name }
        }

        pub fn needs(list: Vec<theirs::Need>) -> Vec<ours::Need> {
            let target = |it| match it {
                theirs::Target::Named(it) => ours::Target::Named(reference(it)),
                theirs::Target::Labelled(theirs::Selector { of, namespace, labels }) => {
                    ours::Target::Labelled(ours::Selector { of: resource_type(of), namespace, labels })
                }
            };
            list.into_iter()
                .map(|theirs::Need { id, target: at, fields, optional }| ours::Need {
                    id,
                    target: target(at),
                    fields,
                    optional,
                })
                .collect()
        }

        fn key(it: theirs::KeySelector) -> ours::KeySelector {
            let theirs::KeySelector { name, key, optional } = it;
            ours::KeySelector { name, key, optional }
        }

        pub fn env(list: Vec<theirs::EnvVar>) -> Vec<ours::EnvVar> {
            let source = |it| match it {
                theirs::EnvSource::Literal(value) => ours::EnvSource::Literal(value),
                theirs::EnvSource::SecretKey(it) => ours::EnvSource::SecretKey(key(it)),
                theirs::EnvSource::ConfigMapKey(it) => ours::EnvSource::ConfigMapKey(key(it)),
                theirs::EnvSource::FieldPath(path) => ours::EnvSource::FieldPath(path),
                theirs::EnvSource::Other(json) => ours::EnvSource::Other(json),
            };
            list.into_iter()
                .map(|theirs::EnvVar { container, name, source: from, origin }| ours::EnvVar {
                    container,
                    name,
                    source: source(from),
                    origin,
                })
                .collect()
        }

        fn blockers(list: Vec<theirs::Blocker>) -> Vec<ours::Blocker> {
            let blocker = |theirs::Blocker { on, reason, message }| ours::Blocker { on: reference(on), reason, message };
            list.into_iter().map(blocker).collect()
        }

        fn notes(list: Vec<theirs::Note>) -> Vec<ours::Note> {
            let severity = |it| match it {
                theirs::Severity::Info => ours::Severity::Info,
                theirs::Severity::Warning => ours::Severity::Warning,
            };
            list.into_iter()
                .map(|theirs::Note { severity: how, reason, message, path }| ours::Note {
                    severity: severity(how),
                    reason,
                    message,
                    path,
                })
                .collect()
        }

        pub fn plan(it: theirs::Plan) -> ours::Plan {
            let theirs::Plan { manifests, origins, gates, env: mapping, notes: told, finalizer, kept, gates_hold, extra } =
                it;
            let origin = |theirs::Origin { manifest, path, from }| ours::Origin { manifest, path, from };
            ours::Plan {
                manifests,
                origins: origins.into_iter().map(origin).collect(),
                gates: blockers(gates),
                env: env(mapping),
                notes: notes(told),
                finalizer,
                kept,
                gates_hold,
                extra,
            }
        }

        pub fn refusal(it: theirs::Refusal) -> ours::Refusal {
            match it {
                theirs::Refusal::Invalid(list) => ours::Refusal::Invalid(
                    list.into_iter()
                        .map(|theirs::Violation { path, message }| ours::Violation { path, message })
                        .collect(),
                ),
                theirs::Refusal::Waiting(list) => ours::Refusal::Waiting(blockers(list)),
                theirs::Refusal::Unsupported(message) => ours::Refusal::Unsupported(message),
            }
        }

        pub fn report(it: theirs::Report) -> ours::Report {
            let theirs::Report { ready, phase, message, fields, conditions, extra } = it;
            let truth = |it| match it {
                theirs::Truth::Yes => ours::Truth::Yes,
                theirs::Truth::No => ours::Truth::No,
                theirs::Truth::Unknown => ours::Truth::Unknown,
            };
            let condition = |theirs::Condition { type_, status, reason, message }| ours::Condition {
                type_,
                status: truth(status),
                reason,
                message,
            };
            let conditions = conditions.into_iter().map(condition).collect();
            ours::Report { ready, phase, message, fields, conditions, extra }
        }

        pub fn to_subject(it: &ours::Subject) -> theirs::Subject {
            let ours::Subject { object, found, settings, cluster, applied, extra } = it.clone();
            let ours::Cluster { domain, operator_namespace, served } = cluster;
            theirs::Subject {
                object,
                found: found.into_iter().map(to_found).collect(),
                settings,
                cluster: theirs::Cluster {
                    domain,
                    operator_namespace,
                    served: served
                        .into_iter()
                        .map(|ours::ResourceType { api_version, kind }| theirs::ResourceType { api_version, kind })
                        .collect(),
                },
                applied,
                extra,
            }
        }

        pub fn to_founds(list: &[ours::Found]) -> Vec<theirs::Found> {
            list.iter().cloned().map(to_found).collect()
        }

        fn to_found(it: ours::Found) -> theirs::Found {
            let answer = match it.answer {
                ours::Answer::Objects(list) => theirs::Answer::Objects(list),
                ours::Answer::Secret(ours::SecretFacts { present, keys, digest }) => {
                    theirs::Answer::Secret(theirs::SecretFacts { present, keys, digest })
                }
                ours::Answer::Unserved => theirs::Answer::Unserved,
                ours::Answer::Forbidden(reason) => theirs::Answer::Forbidden(reason),
            };
            theirs::Found { id: it.id, answer }
        }

        fn to_key(it: ours::KeySelector) -> theirs::KeySelector {
            let ours::KeySelector { name, key, optional } = it;
            theirs::KeySelector { name, key, optional }
        }

        pub fn to_env(list: Vec<ours::EnvVar>) -> Vec<theirs::EnvVar> {
            let source = |it| match it {
                ours::EnvSource::Literal(value) => theirs::EnvSource::Literal(value),
                ours::EnvSource::SecretKey(it) => theirs::EnvSource::SecretKey(to_key(it)),
                ours::EnvSource::ConfigMapKey(it) => theirs::EnvSource::ConfigMapKey(to_key(it)),
                ours::EnvSource::FieldPath(path) => theirs::EnvSource::FieldPath(path),
                ours::EnvSource::Other(json) => theirs::EnvSource::Other(json),
            };
            list.into_iter()
                .map(|ours::EnvVar { container, name, source: from, origin }| theirs::EnvVar {
                    container,
                    name,
                    source: source(from),
                    origin,
                })
                .collect()
        }

        fn to_reference(it: ours::Reference) -> theirs::Reference {
            let ours::Reference { api_version, kind, namespace, name } = it;
            theirs::Reference { api_version, kind, namespace, name }
        }

        fn to_blockers(list: Vec<ours::Blocker>) -> Vec<theirs::Blocker> {
            let blocker =
                |ours::Blocker { on, reason, message }| theirs::Blocker { on: to_reference(on), reason, message };
            list.into_iter().map(blocker).collect()
        }

        fn to_notes(list: Vec<ours::Note>) -> Vec<theirs::Note> {
            let severity = |it| match it {
                ours::Severity::Info => theirs::Severity::Info,
                ours::Severity::Warning => theirs::Severity::Warning,
            };
            list.into_iter()
                .map(|ours::Note { severity: how, reason, message, path }| theirs::Note {
                    severity: severity(how),
                    reason,
                    message,
                    path,
                })
                .collect()
        }

        fn to_refusal(it: ours::Refusal) -> theirs::Refusal {
            match it {
                ours::Refusal::Invalid(list) => theirs::Refusal::Invalid(
                    list.into_iter()
                        .map(|ours::Violation { path, message }| theirs::Violation { path, message })
                        .collect(),
                ),
                ours::Refusal::Waiting(list) => theirs::Refusal::Waiting(to_blockers(list)),
                ours::Refusal::Unsupported(message) => theirs::Refusal::Unsupported(message),
            }
        }

        pub fn to_plan(it: ours::Plan) -> theirs::Plan {
            let ours::Plan { manifests, origins, gates, env: mapping, notes: told, finalizer, kept, gates_hold, extra } =
                it;
            let origin = |ours::Origin { manifest, path, from }| theirs::Origin { manifest, path, from };
            theirs::Plan {
                manifests,
                origins: origins.into_iter().map(origin).collect(),
                gates: to_blockers(gates),
                env: to_env(mapping),
                notes: to_notes(told),
                finalizer,
                kept,
                gates_hold,
                extra,
            }
        }

        pub fn to_observation(it: &ours::Observation) -> theirs::Observation {
            let ours::Observation { outcome, children, gates, env: mapping, notes: told, extra } = it.clone();
            let child =
                |ours::Child { identity, live }| theirs::Child { identity: to_reference(identity), live };
            theirs::Observation {
                outcome: match outcome {
                    ours::Outcome::Applied => theirs::Outcome::Applied,
                    ours::Outcome::Gated => theirs::Outcome::Gated,
                    ours::Outcome::Refused(it) => theirs::Outcome::Refused(to_refusal(it)),
                    ours::Outcome::Failed(message) => theirs::Outcome::Failed(message),
                },
                children: children.into_iter().map(child).collect(),
                gates: to_blockers(gates),
                env: to_env(mapping),
                notes: to_notes(told),
                extra,
            }
        }
    };
}

/// Creates a [`crate::code::Native`] from a policy that is compiled into this process: `native_code!(path to the guest
/// SDK, type of the policy)`. Tests and benches compare this [`crate::code::Native`] with the component of the same
/// policy.
#[macro_export]
macro_rules! native_code {
    ($sdk:ident, $policy:ty) => {{
        #[allow(dead_code, missing_docs, unreachable_pub, clippy::pedantic)]
        mod adapted {
            $crate::adapt_v0_1!($sdk::contract);
        }
        $crate::code::Native {
            describe: || adapted::descriptor(<$policy as $sdk::Policy>::describe()),
            needs: |subject| adapted::needs(<$policy as $sdk::Policy>::needs(&adapted::to_subject(subject).into())),
            map_env: |subject, base| {
                <$policy as $sdk::Policy>::map_env(&adapted::to_subject(subject).into(), adapted::to_env(base))
                    .map(adapted::env)
                    .map_err(adapted::refusal)
            },
            translate: |subject, env| {
                <$policy as $sdk::Policy>::translate(&adapted::to_subject(subject).into(), adapted::to_env(env))
                    .map(adapted::plan)
                    .map_err(adapted::refusal)
            },
            assess: |subject, seen| {
                adapted::report(<$policy as $sdk::Policy>::assess(
                    &adapted::to_subject(subject).into(),
                    &adapted::to_observation(seen),
                ))
            },
        }
    }};
}
