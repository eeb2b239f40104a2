mod monitoring;

use kaos_policy::digest::Digest;

use super::*;

fn widgets() -> (ResourceType, PolicyId) {
    let policy = PolicyId { name: "widget".into(), version: "1.0.0".into(), digest: Digest::of(b"") };
    (ResourceType::new("example.dev/v1", "Widget"), policy)
}

/// Returns metrics after one call of each method.
fn used() -> Metrics {
    let metrics = Metrics::new();
    let (of, policy) = widgets();
    let mut tally = Tally::default();
    tally.add(Some(Readiness::False), Some(Unserved::PolicyFailed));
    let trace = Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned());
    metrics.pass(&of, PassResult::Changed, Duration::from_millis(3), trace);
    metrics.retry(&of);
    metrics.objects(&BTreeMap::from([(of.clone(), tally)]));
    metrics.awaiting_policy(&[(of.clone(), 2)]);
    metrics.queue(1, Duration::from_millis(1500));
    metrics.policies(&[(of.clone(), policy.clone())], &BTreeSet::from([policy.clone()]));
    metrics.answer(&policy, 400_000, false);
    metrics.policy_call(&policy, Verb::Translate, Duration::from_millis(2), None);
    let spending = Spending { of: of.clone(), namespace: "team-a".to_owned(), fuel: 1, passes: 1 };
    metrics.spending(&[spending], 1);
    metrics.compilation(true, Duration::from_millis(700));
    metrics.policy_failure(&policy, "Trap");
    metrics.fallback(&policy);
    metrics.policy_revisions(&BTreeMap::from([((RevisionState::Active, true), 1)]));
    metrics.rollout_returned("kaos-system/widgets", "harm");
    metrics.rollouts(&[RolloutState {
        package: "kaos-system/widgets".to_owned(),
        step: 2,
        moved: 5,
        left: 95,
        paused: Some("SlowToStart".to_owned()),
    }]);
    metrics.api_call("patch", "apps", "deployments", "200", Duration::from_millis(8));
    metrics.leader(true);
    metrics.everywhere(true);
    metrics.watch(&of, Some(WatchState::Synced));
    metrics.watch_error(&of, "Expired");
    metrics.barred(1);
    metrics.stored(&of, 7, 7000);
    metrics.recorded(1, 2000, 3);
    metrics
}

#[test]
fn a_kind_without_a_policy_awaits_no_pass() -> Result<(), fmt::Error> {
    let (metrics, (of, _)) = (Metrics::new(), widgets());
    let says = |metrics: &Metrics| metrics.encode().map(|text| text.contains("kaos_operator_objects_awaiting_policy{"));
    metrics.awaiting_policy(&[(of, 2)]);
    assert!(says(&metrics)?);
    metrics.awaiting_policy(&[]);
    assert!(!says(&metrics)?);
    Ok(())
}

#[test]
fn the_scraped_metrics_match_the_table() -> Result<(), fmt::Error> {
    let text = used().encode()?;
    let described: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let expected: Vec<_> = table::ROWS
        .iter()
        .map(|row| {
            let name = row.full_name();
            let family = name.strip_suffix("_total").unwrap_or(&name);
            let family = if row.kind == table::MetricKind::Info { family.trim_end_matches("_info") } else { family };
            format!("{family} {}", format!("{:?}", row.kind).to_lowercase())
        })
        .collect();
    assert_eq!(described, expected);
    for row in table::ROWS {
        let sample = if row.kind == table::MetricKind::Histogram { row.full_name() + "_sum" } else { row.full_name() };
        let line = text.lines().find(|line| line.starts_with(&sample)).unwrap_or_default();
        let labels: Vec<_> = match line.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
            Some((labels, _)) => {
                labels.split(',').filter_map(|label| label.split_once('=')).map(|(key, _)| key).collect()
            }
            None => Vec::new(),
        };
        assert!(!line.is_empty(), "{sample} has no sample");
        assert_eq!(labels, row.labels, "{line}");
    }
    Ok(())
}

#[test]
fn the_bucket_of_a_traced_pass_names_the_trace() -> Result<(), fmt::Error> {
    let text = used().encode()?;
    let bucket = text.lines().find(|line| line.contains("trace_id")).unwrap_or_default();
    assert!(bucket.starts_with("kaos_operator_pass_duration_seconds_bucket{le=\"0.004\","), "{bucket}");
    assert!(bucket.ends_with("1 # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"} 0.003"), "{bucket}");
    Ok(())
}

#[test]
fn a_remembered_answer_uses_no_fuel() -> Result<(), fmt::Error> {
    let (metrics, (_, policy)) = (Metrics::new(), widgets());
    metrics.answer(&policy, 400_000, false);
    metrics.answer(&policy, 400_000, true);
    let text = metrics.encode()?;
    let labels = r#"policy="widget",version="1.0.0""#;
    for line in [
        format!("kaos_operator_policy_fuel_count{{{labels}}} 1"),
        format!(r#"kaos_operator_policy_answers_total{{{labels},remembered="true"}} 1"#),
        format!(r#"kaos_operator_policy_answers_total{{{labels},remembered="false"}} 1"#),
    ] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
    Ok(())
}

#[test]
fn many_versions_of_policies_share_one_series() -> Result<(), fmt::Error> {
    let metrics = Metrics::new();
    for number in 0..150 {
        metrics.policy_failure(&version(number), "Trap");
    }
    let text = metrics.encode()?;
    let series = text.lines().filter(|line| line.starts_with("kaos_operator_policy_failures_total{")).count();
    assert_eq!(series, 101);
    let others = r#"kaos_operator_policy_failures_total{policy="(others)",version="",reason="Trap"} 50"#;
    assert!(text.contains(others), "{text}");
    Ok(())
}

#[test]
fn the_reference_page_is_the_table() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, reference()).expect("the page can be written");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(page, reference(), "run this test with UPDATE_GOLDEN=1 to write {}", path.display());
}

#[test]
fn policies_that_no_longer_answer_are_no_longer_shown() -> Result<(), fmt::Error> {
    let metrics = used();
    metrics.policies(&[], &BTreeSet::new());
    assert!(!metrics.encode()?.contains("policy_info{"));
    Ok(())
}

#[test]
fn counters_of_a_policy_start_at_zero() -> Result<(), fmt::Error> {
    let (of, policy) = widgets();
    let metrics = Metrics::new();
    let able = BTreeSet::from([policy.clone()]);
    metrics.policies(&[(of.clone(), policy.clone())], &able);
    let text = metrics.encode()?;
    for line in [
        r#"kaos_operator_passes_total{group="example.dev",kind="Widget",result="failed"} 0"#,
        r#"kaos_operator_retries_total{group="example.dev",kind="Widget"} 0"#,
        r#"kaos_operator_policy_failures_total{policy="widget",version="1.0.0",reason="Trap"} 0"#,
        r#"kaos_operator_policy_fallbacks_total{policy="widget",version="1.0.0"} 0"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    metrics.retry(&of);
    metrics.policies(&[(of, policy)], &able);
    assert!(
        metrics.encode()?.contains(r#"retries_total{group="example.dev",kind="Widget"} 1"#),
        "the counter keeps its value"
    );
    Ok(())
}

/// Returns the id of another version of the Widgets' policy.
fn version(version: usize) -> PolicyId {
    PolicyId { version: format!("{version}.0.0"), ..widgets().1 }
}

/// Makes the version `number` active, and lets the versions in `able` answer too.
fn serves(metrics: &Metrics, number: usize, able: &[usize]) {
    let able: BTreeSet<PolicyId> = able.iter().copied().chain([number]).map(version).collect();
    metrics.policies(&[(widgets().0, version(number))], &able);
}

/// Records fuel, a failure and a fallback for a version.
fn counts(metrics: &Metrics, number: usize) {
    metrics.fuel(&version(number), 400_000);
    metrics.policy_failure(&version(number), "Trap");
    metrics.fallback(&version(number));
}

/// Returns the sample with the number of traps of a version. Returns `None` if the version has no samples at all.
fn told_of(metrics: &Metrics, number: usize) -> Option<String> {
    let text = metrics.encode().unwrap();
    let labels = format!(r#"policy="widget",version="{number}.0.0""#);
    let trapped = format!(r#"kaos_operator_policy_failures_total{{{labels},reason="Trap"}} "#);
    let told = text.contains(&labels);
    let trapped = text.lines().find_map(|line| line.strip_prefix(&trapped));
    told.then(|| trapped.unwrap_or("not told").to_owned())
}

#[test]
fn counters_of_a_version_last_until_the_next_change_after_it_retired() {
    let metrics = Metrics::new();
    serves(&metrics, 1, &[]);
    counts(&metrics, 1);
    serves(&metrics, 2, &[1]);
    assert_eq!(told_of(&metrics, 1).as_deref(), Some("1"), "version 1 may have to serve again");
    serves(&metrics, 3, &[2]);
    counts(&metrics, 1);
    assert_eq!(told_of(&metrics, 1).as_deref(), Some("2"), "a pass with version 1 may still run");
    serves(&metrics, 3, &[2]);
    assert_eq!(told_of(&metrics, 1), None);
    assert_eq!(told_of(&metrics, 2).as_deref(), Some("0"));
    counts(&metrics, 1);
    assert_eq!(told_of(&metrics, 1).as_deref(), Some("1"), "a very long pass with version 1 ended");
    serves(&metrics, 3, &[2]);
    assert_eq!(told_of(&metrics, 1), None);
    serves(&metrics, 1, &[3]);
    assert_eq!(told_of(&metrics, 1).as_deref(), Some("0"), "a version that returns starts at zero");
}

#[test]
fn the_page_does_not_grow_with_one_version_after_another() {
    let metrics = Metrics::new();
    let mut lengths = BTreeSet::new();
    for number in 1..=100 {
        serves(&metrics, number, &[number - 1]);
        counts(&metrics, number);
        if number > 3 {
            lengths.insert(metrics.encode().unwrap().lines().count());
        }
    }
    assert_eq!(lengths.len(), 1, "{lengths:?}");
}

#[test]
fn objects_show_their_last_reported_condition_and_all_label_values_exist() -> Result<(), fmt::Error> {
    let (of, _) = widgets();
    let metrics = used();
    let text = metrics.encode()?;
    for sample in [
        r#"objects{group="example.dev",kind="Widget",ready="true"} 0"#,
        r#"objects{group="example.dev",kind="Widget",ready="false"} 1"#,
        r#"objects_unserved{group="example.dev",kind="Widget",reason="PolicyFailed"} 1"#,
        r#"objects_unserved{group="example.dev",kind="Widget",reason="NoPolicy"} 0"#,
    ] {
        assert!(text.contains(sample), "{sample} is not in\n{text}");
    }
    metrics.objects(&BTreeMap::from([(of, Tally::default())]));
    assert!(metrics.encode()?.contains(r#"objects{group="example.dev",kind="Widget",ready="false"} 0"#));
    metrics.objects(&BTreeMap::new());
    assert!(
        !metrics.encode()?.contains("kaos_operator_objects{"),
        "no policy answers for the kind, and the kind has no objects"
    );
    Ok(())
}

#[test]
fn current_packages_are_distinguished_from_earlier_ones() -> Result<(), fmt::Error> {
    let metrics = Metrics::new();
    metrics.policy_revisions(&BTreeMap::from([((RevisionState::Refused, false), 2)]));
    let text = metrics.encode()?;
    for sample in [
        r#"policy_revisions{state="Refused",current="false"} 2"#,
        r#"policy_revisions{state="Refused",current="true"} 0"#,
        r#"policy_revisions{state="Quarantined",current="true"} 0"#,
    ] {
        assert!(text.contains(sample), "{sample} is not in\n{text}");
    }
    metrics.policy_revisions(&BTreeMap::new());
    assert!(metrics.encode()?.contains(r#"policy_revisions{state="Refused",current="false"} 0"#));
    Ok(())
}

#[test]
fn a_watch_has_one_state_and_an_unwatched_type_has_none() -> Result<(), fmt::Error> {
    let metrics = used();
    let (of, _) = widgets();
    let states = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("kaos_operator_watch_state{") && line.ends_with(" 1"));
        lines.map(str::to_owned).collect()
    };
    metrics.watch(&of, Some(WatchState::Failing));
    let now = states(&metrics.encode()?);
    assert!(now.len() == 1 && now[0].contains("failing"), "{now:?}");
    metrics.watch(&of, None);
    assert!(!metrics.encode()?.contains("watch_state{"));
    Ok(())
}

#[test]
fn values_needed_only_by_a_scrape_are_computed_then() -> Result<(), fmt::Error> {
    let metrics = Metrics::new();
    metrics.before_encoding(|metrics| metrics.queue(41, Duration::ZERO));
    assert!(metrics.encode()?.contains("kaos_operator_queue_depth 41"));
    Ok(())
}
