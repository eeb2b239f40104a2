//! Tests invalid descriptions of policies. Each defect has its own error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use kaos_policy::{
    code::World,
    contract::{Claim, Descriptor, ResourceType, Sample},
    describe::{DescribeError, check, check_capitals, emitted_primary},
    manifest::PolicyFile,
};

fn of(text: &str) -> ResourceType {
    let (api_version, kind) = text.split_once(' ').unwrap();
    ResourceType::new(api_version, kind)
}

fn claim(primary: &str, emits: &[&str]) -> Claim {
    Claim {
        primary: of(primary),
        emits: emits.iter().map(|text| of(text)).collect(),
        reads: vec![],
        wishes: vec![],
        finalizer: None,
        samples: vec![Sample { name: "one".into(), object: "{}".into(), beside: vec![] }],
        extra: "{}".into(),
    }
}

fn descriptor(claims: Vec<Claim>) -> Descriptor {
    Descriptor {
        name: "widget".into(),
        version: "0.1.0".into(),
        claims,
        settings_schema: "{}".into(),
        extra: "{}".into(),
    }
}

fn told(claims: Vec<Claim>, file: &str) -> Result<(), DescribeError> {
    check(&descriptor(claims), World::Policy, &PolicyFile::parse(file).unwrap()).map(drop)
}

#[test]
fn too_long_versions_and_types_are_refused() {
    let long = Descriptor {
        version: format!("0.1.0-{}", "a".repeat(1 << 20)),
        ..descriptor(vec![claim("example.com/v1 Widget", &[])])
    };
    let error = check(&long, World::Policy, &PolicyFile::default()).map(drop).unwrap_err();
    assert!(matches!(error, DescribeError::Version { .. }) && error.to_string().len() < 1000, "{error}");
    for kind in [format!("example.com/v1 W{}", "a".repeat(1 << 20)), format!("example.com/v{} W", "1".repeat(1 << 20))]
    {
        assert!(matches!(told(vec![claim(&kind, &[])], "{}"), Err(DescribeError::NotAType { .. })));
    }
}

#[test]
fn claims_on_kinds_of_kubernetes_itself_are_refused() {
    for primary in ["v1 Secret", "v1 PersistentVolumeClaim", "apps/v1 Deployment", "batch/v1 Job"] {
        let error = told(vec![claim(primary, &[])], "{}").unwrap_err();
        assert!(matches!(error, DescribeError::BuiltIn { .. }), "{error}");
    }
    let error = told(vec![claim("gateway.networking.k8s.io/v1 HTTPRoute", &[])], "{}").unwrap_err();
    assert!(matches!(error, DescribeError::BuiltIn { .. }), "{error}");
    assert_eq!(told(vec![claim("example.com/v1 Widget", &[])], "{}"), Ok(()));
}

#[test]
fn served_kinds_in_other_capitals_are_refused() {
    let served = [of("example.com/v1 Widget"), of("v1 Secret")];
    let widget = || claim("example.com/v1 Widget", &["v1 ConfigMap"]);
    let checked = |claim: Claim| check_capitals(&[widget(), claim], &served);
    assert_eq!(checked(widget()), Ok(()));
    assert_eq!(checked(claim("example.org/v1 WIDGET", &[])), Ok(()), "of another group");
    for (claim, list, given, kind) in [
        (claim("example.com/v2 WIDGET", &[]), "primary", "example.com/v2 WIDGET", "Widget"),
        (Claim { reads: vec![of("v1 SECRET")], ..widget() }, "reads", "v1 SECRET", "Secret"),
        (claim("example.com/v1 Gadget", &["v1 SECRET"]), "emits", "v1 SECRET", "Secret"),
    ] {
        let path = format!("claims[1].{list}");
        assert_eq!(checked(claim), Err(DescribeError::OtherCapitals { path, of: of(given), served: kind.to_owned() }));
    }
    assert!(matches!(told(vec![claim("example.com/v1 widget", &[])], "{}"), Err(DescribeError::NotAType { .. })));
}

#[test]
fn claims_that_emit_each_other_are_refused() {
    let (ping, pong) = ("example.com/v1 Ping", "example.com/v1 Pong");
    let error = told(vec![claim(ping, &[pong]), claim(pong, &[])], "{}").unwrap_err();
    assert_eq!(error, DescribeError::EmitsClaimed { path: "claims[0].emits".into(), of: of(pong) });
    let error = told(vec![claim(ping, &["example.com/v2 Ping"])], "{}").unwrap_err();
    assert!(matches!(error, DescribeError::EmitsClaimed { .. }), "a kind in another version is still the same kind");
}

#[test]
fn claims_of_several_policies_that_emit_each_other_are_found() {
    let (ping, pong) = (claim("example.com/v1 Ping", &["example.com/v1 Pong"]), claim("example.com/v1 Pong", &[]));
    let (emitting, found) = emitted_primary(&[&ping, &pong]).unwrap();
    assert_eq!((emitting, found), (&ping, &pong.primary));
    assert_eq!(emitted_primary(&[&ping]), None);
}

#[test]
fn finalizers_outside_of_the_claimed_group_need_a_grant() {
    let with =
        |finalizer: &str| vec![Claim { finalizer: Some(finalizer.into()), ..claim("example.com/v1 Widget", &[]) }];
    for own in ["example.com/tidy", "old.example.com/tidy"] {
        assert_eq!(told(with(own), "{}"), Ok(()));
    }
    // The finalizer's domain must be the group or a subdomain of the group. It is not enough that the domain's text
    // ends with the group's text.
    for foreign in ["other.team/backup", "kubernetes.io/pvc-protection", "badexample.com/x"] {
        let error = told(with(foreign), "{}").unwrap_err();
        assert!(matches!(error, DescribeError::ForeignFinalizer { .. }), "{error}");
    }
    assert_eq!(told(with("other.team/backup"), "grants: {finalizers: [other.team/backup]}"), Ok(()));
}

#[test]
fn an_unknown_member_of_an_extra_is_refused_by_its_name() {
    let with = |extra: &str| told(vec![Claim { extra: extra.into(), ..claim("example.com/v1 Widget", &[]) }], "{}");
    assert_eq!(with("{}"), Ok(()));
    let error = with(r#"{"priority": 1}"#).unwrap_err();
    assert!(matches!(&error, DescribeError::UnknownMember { key, .. } if key == "priority"), "{error}");
    assert!(error.to_string().contains("the field `priority`"), "{error}");
}
