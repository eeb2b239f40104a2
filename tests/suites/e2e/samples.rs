//! Applies KAOS's samples while an operator of the chart runs, and checks what kubectl prints about them.

use std::time::Duration;

use crate::support::{Release, USER, moved, recorded, until_ready};

const SAMPLES: [(&str, &str); 4] = [
    ("kaos-simple", "agent-sample-1-simple"),
    ("kaos-multi", "agent-sample-2-multi"),
    ("kaos-hierarchy", "agent-sample-3-hierarchy"),
    ("kaos-dev", "agent-sample-4-dev"),
];

#[tokio::test]
async fn the_samples_of_kaos_become_ready_and_then_cause_no_writes() {
    let release = Release::install(&[]).await;
    let mark = release.cluster.audit().mark().unwrap();
    let operator = release.working_operator().await;
    let mut worlds = Vec::new();
    for (namespace, sample) in SAMPLES {
        let world = release.world(namespace).await;
        let objects = moved(&recorded(sample).input, namespace);
        world.apply_all(&objects).await;
        worlds.push((world, objects));
    }
    for (world, objects) in &worlds {
        until_ready(world, objects).await;
        world.quiet().await;
    }
    assert_eq!(release.refused_since(mark), Vec::<String>::new(), "rights are missing");

    let mark = release.cluster.audit().mark().unwrap();
    // Let a minute pass in which nothing changes. The audit log records the requests of this minute.
    tokio::time::sleep(Duration::from_mins(1)).await;
    let asked = release.cluster.audit().since(mark, USER).unwrap();
    let (lease, other): (Vec<_>, Vec<_>) = asked.into_iter().partition(|request| request.resource == "leases");
    let writes: Vec<_> = other.iter().filter(|request| request.writes()).collect();
    assert!(writes.is_empty(), "{writes:#?}\n{}", operator.log());
    let reads: Vec<String> = other.iter().map(|request| format!("{} {}", request.verb, request.resource)).collect();
    println!("in a silent minute: {} requests for the Lease, and {reads:?}", lease.len());
}

#[tokio::test]
async fn kubectl_shows_columns_short_names_and_explanations() {
    let release = Release::install(&[]).await;
    let _operator = release.working_operator().await;
    let world = release.world("looked-at").await;
    let objects = moved(&recorded("agent-sample-1-simple").input, "looked-at");
    world.apply_all(&objects).await;
    until_ready(&world, &objects).await;
    let kubectl = |arguments: &[&str]| release.cluster.kubectl(&[arguments, &["-n", "looked-at"]].concat()).expect();

    let table = kubectl(&["get", "agents"]);
    let (titles, row) = table.split_once('\n').unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(titles)[..5], ["NAME", "MODELAPI", "MODEL", "READY", "PHASE"]);
    assert_eq!(words(row)[..5], ["simple-agent", "simple-modelapi", "smollm2:135m", "true", "Ready"]);
    let everything = kubectl(&["get", "kaos"]);
    for name in
        ["agent.kaos.tools/simple-agent", "modelapi.kaos.tools/simple-modelapi", "mcpserver.kaos.tools/simple-echo-mcp"]
    {
        assert!(everything.contains(name), "{everything}");
    }
    assert_eq!(kubectl(&["get", "agents,apis,mcps", "-o", "name"]).lines().count(), 3);

    // The operator writes an Event only after the change that the Event reports.
    world
        .until_true("an Event about the Agent exists", async || !world.events("Agent/simple-agent").await.is_empty())
        .await;
    let described = kubectl(&["describe", "agent", "simple-agent"]);
    for text in [
        "Accepted",
        "Resolved",
        "Applied",
        "Deployment ready replicas: 1/1",
        "Observed Generation:",
        "Digest:",
        "kaos.tools/operator",
    ] {
        assert!(described.contains(text), "{text} is not in\n{described}");
    }
    let explained = kubectl(&["explain", "agent.spec.config.reasoningLoopMaxSteps"]);
    assert!(explained.contains("<integer>") && explained.contains("DESCRIPTION"), "{explained}");
    let scaled = kubectl(&["scale", "agent", "simple-agent", "--replicas=2"]);
    assert!(scaled.contains("scaled"), "{scaled}");
    world.until("two pods are ready", "Deployment/agent-simple-agent", |d| d["status"]["readyReplicas"] == 2).await;
}
