//! Counts the operator's writes and reads during changes. While nothing changes, the operator must send no requests.

use std::collections::BTreeMap;
use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_operator::left_out::LeftOut;
use kaos_operator::watch::Scope;
use kaos_tests::gadget::gadget;
use kaos_tests::harness::definitions::routes;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::replicas::user;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, mcp_server, model_api, model_api_for};
use kaos_tests::harness::{Scenario, World, condition, is_ready, play};
use kaos_tests::shipped;
use serde_json::json;

use crate::support::web;

fn counts<const N: usize>(counts: [(&str, usize); N]) -> BTreeMap<String, usize> {
    counts.into_iter().map(|(of, count)| (of.to_owned(), count)).collect()
}

/// Removes the status writes from the counts. Asserts that there were one or two status writes for each object.
fn without_statuses(mut writes: BTreeMap<String, usize>, objects: &[(&str, usize)]) -> BTreeMap<String, usize> {
    for (plural, count) in objects {
        let statuses = writes.remove(&format!("{plural}/status")).unwrap_or_default();
        assert!((*count..=2 * count).contains(&statuses), "{statuses} writes of the status of {count} {plural}");
    }
    writes
}

#[test]
fn an_object_costs_one_write_for_each_child_and_two_for_its_status() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.forget_requests();
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        let writes = without_statuses(w.writes_by_type(), &[("gadgets", 1)]);
        let wanted = [
            ("gadgets", 1),
            ("configmaps", 1),
            ("deployments", 1),
            ("secrets", 1),
            ("serviceaccounts", 1),
            ("services", 1),
        ];
        assert_eq!(writes, counts(wanted), "{:#?}", w.writes());
    });
}

#[test]
fn a_graph_of_kaos_objects_costs_one_write_for_each_child_and_two_for_each_status() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.forget_requests();
        w.apply_all(&[model_api("llm"), mcp_server("echo"), agent("a", "llm", &json!({"mcpServers": ["echo"]}))]).await;
        w.until_all("all objects are ready", &["ModelAPI/llm", "MCPServer/echo", "Agent/a"], |all| {
            all.iter().all(is_ready)
        })
        .await;
        w.quiet().await;
        // Do not compare the status writes of the Agents exactly: the status names the objects for which an Agent
        // waits, so the number of status writes varies.
        let mut writes = w.writes_by_type();
        let agents = writes.remove("agents/status").unwrap_or_default();
        assert!((1..=4).contains(&agents), "{agents} writes of the Agent's status");
        let writes = without_statuses(writes, &[("modelapis", 1), ("mcpservers", 1)]);
        let children = w.list("Deployment").await.len();
        assert_eq!((children, writes["deployments"], writes["services"]), (3, 3, 3), "{:#?}", w.writes());
    });
}

/// Creates ten Agents on one ModelAPI, and waits until nothing changes any more. The pods of these Agents take some
/// time to start.
async fn ten_agents(w: &World) -> Vec<String> {
    let names: Vec<String> = (0..10).map(|at| format!("a-{at}")).collect();
    w.apply(&model_api_for("llm", &["gpt-4o"])).await;
    for name in &names {
        w.apply(&agent(name, "llm", &json!({}))).await;
    }
    let names: Vec<String> = names.iter().map(|name| format!("Agent/{name}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    w.until_all("all objects are ready", &all, |all| all.iter().all(is_ready)).await;
    w.quiet().await;
    w.pods_of("modelapi-llm", PodFate::ReadyAfter(Duration::from_secs(20)));
    w.forget_requests();
    names
}

#[test]
fn a_change_of_offered_models_costs_no_write_of_agents() {
    play(Scenario::embedded("the test counts requests, and decides the fate of pods"), async |w| {
        ten_agents(w).await;
        w.apply(&model_api_for("llm", &["gpt-4o", "tiny"])).await;
        w.until_ready("ModelAPI/llm").await;
        w.quiet().await;
        assert_eq!(w.rollouts("modelapi-llm").await, 2);
        let mut writes = w.writes_by_type();
        let statuses = writes.remove("modelapis/status").unwrap_or_default();
        assert!((1..=2).contains(&statuses), "{statuses} writes of the status: {:#?}", w.writes());
        assert_eq!(writes, counts([("configmaps", 1), ("deployments", 1)]), "{:#?}", w.writes());
    });
}

#[test]
fn a_change_of_the_mode_costs_each_agent_a_deployment_and_its_statuses() {
    play(Scenario::embedded("the test counts requests, and decides the fate of pods"), async |w| {
        let agents = ten_agents(w).await;
        let history = w.history(&agents[0]).await;
        let mut hosted = model_api_for("llm", &[]);
        hosted["spec"] = json!({"mode": "Hosted", "hostedConfig": {"model": "gpt-4o"}});
        w.apply(&hosted).await;
        w.until("the ModelAPI is ready with the other mode", "ModelAPI/llm", |api| {
            is_ready(api) && api["metadata"]["generation"] == 2
        })
        .await;
        let all: Vec<&str> = agents.iter().map(String::as_str).collect();
        w.until_all("all objects are ready", &all, |all| all.iter().all(is_ready)).await;
        w.quiet().await;
        let writes = w.writes_by_type();
        assert_eq!(writes["deployments"], 11, "{:#?}", w.writes());
        let flapped = history.states().into_iter().find(|a| condition(a, "DependenciesReady")["status"] != "True");
        assert_eq!(flapped, None);
        assert!(
            writes["agents/status"] <= 20,
            "{} writes of statuses of ten: {:#?}",
            writes["agents/status"],
            w.writes()
        );
    });
}

#[test]
fn objects_that_a_watch_delivers_are_never_read() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.forget_requests();
        w.apply_all(&[web(), model_api("llm"), agent("a", "llm", &json!({}))]).await;
        w.until_all("all objects are ready", &["Gadget/web", "ModelAPI/llm", "Agent/a"], |all| {
            all.iter().all(is_ready)
        })
        .await;
        w.quiet().await;
        assert!(w.reads().is_empty(), "{:#?}", w.reads());
        w.forget_requests();
        w.delete("Deployment/web").await;
        w.until_ready("Gadget/web").await;
        w.quiet().await;
        assert!(w.reads().is_empty(), "{:#?}", w.reads());
    });
}

/// The number of groups in a crowd. Each group has five objects.
const GROUPS: usize = 20;

/// Creates a hundred objects of all kinds.
async fn crowd(w: &World) {
    for at in 0..GROUPS {
        w.apply(&model_api(&format!("llm-{at}"))).await;
        w.apply(&mcp_server(&format!("echo-{at}"))).await;
        w.apply(&gadget(&format!("gadget-{at}"), &json!({"config": {"a": "1"}, "secret": {"k": "v"}}))).await;
        let more = json!({"mcpServers": [format!("echo-{at}")], "agentNetwork": {"access": [format!("worker-{at}")]}});
        w.apply(&agent(&format!("boss-{at}"), &format!("llm-{at}"), &more)).await;
        w.apply(&agent(&format!("worker-{at}"), &format!("llm-{at}"), &json!({}))).await;
    }
    w.until_true("all objects are ready", async || {
        let mut ready = 0;
        for kind in ["Agent", "ModelAPI", "MCPServer", "Gadget"] {
            ready += w.list(kind).await.iter().filter(|object| is_ready(object)).count();
        }
        ready == 5 * GROUPS
    })
    .await;
    w.quiet().await;
}

#[test]
fn a_hundred_steady_objects_cause_no_writes_for_ten_minutes_and_a_restart() {
    play(Scenario::embedded("the test counts requests, and simulates time"), async |w| {
        crowd(w).await;
        w.forget_requests();
        w.pass_time(Duration::from_mins(10)).await;
        assert_eq!((w.writes(), w.reads()), (Vec::new(), Vec::new()));
        // The operator must send no discovery requests, although the cluster does not serve HTTPRoutes yet: the watch
        // on CustomResourceDefinitions reports when a user installs this type.
        let rest = [Sort::Refused, Sort::DryRun, Sort::Event, Sort::Discovery].map(|sort| w.requests(sort).len());
        assert_eq!(rest, [0, 0, 0, 0]);
        w.stop_all().await;
        w.forget_requests();
        w.start().await;
        w.quiet().await;
        w.pass_time(Duration::from_mins(1)).await;
        assert_eq!(w.writes(), Vec::<String>::new());
        assert_eq!([Sort::Refused, Sort::DryRun, Sort::Event].map(|sort| w.requests(sort).len()), [0, 0, 0]);
        w.crash().await;
        w.start().await;
        w.quiet().await;
        assert_eq!(w.writes(), Vec::<String>::new());
    });
}

/// Installs a user's packages: a policy for one kind, and settings for another kind.
async fn install(w: &World) {
    let (component, file) = shipped::embedded("mcpserver").unwrap();
    let component = shipped::with_section(component, "edition", b"2").unwrap();
    let packages = [
        shipped::package("servers", Some(&component), file),
        shipped::package("agents", None, "{name: agent, settings: {logLevel: DEBUG}}"),
    ];
    for package in packages {
        w.apply(&package.unwrap()).await;
    }
    let active = async || {
        let all = w.list_in(Kind::named("PolicyRevision"), "kaos-system").await;
        all.iter().filter(|revision| revision["status"]["state"] == "Active").count() == 2
    };
    w.until_true("both packages serve", active).await;
}

#[test]
fn installed_policies_and_a_standby_replica_cause_no_writes() {
    play(Scenario::embedded("the test counts requests, and simulates time").installing(false).idle(), async |w| {
        for replica in 1..=2 {
            w.spawn_replica(&user(replica));
        }
        install(w).await;
        crowd(w).await;
        w.forget_requests();
        w.pass_time(Duration::from_mins(10)).await;
        let busy = [Sort::Write, Sort::Read, Sort::Refused, Sort::DryRun, Sort::Event, Sort::Discovery];
        assert_eq!(busy.map(|sort| w.requests(sort).len()), [0; 6], "{:?} {:?}", w.writes(), w.reads());
        // Each replica sends one request for the Lease every two seconds: the leader writes the Lease, and the other
        // replica reads it.
        assert!((500..=1000).contains(&w.requests(Sort::Lease).len()), "{}", w.requests(Sort::Lease).len());
        let leader = w.leader().await.unwrap();
        w.crash_one(&leader).await;
        w.until_true("the other replica leads", async || w.leader().await.is_some()).await;
        w.quiet().await;
        w.pass_time(Duration::from_mins(1)).await;
        assert_eq!(w.writes(), [""; 0]);
        assert_eq!([Sort::Refused, Sort::DryRun, Sort::Event].map(|sort| w.requests(sort).len()), [0, 0, 0]);
    });
}

/// An operator that has only Roles cannot watch CustomResourceDefinitions. So it repeatedly asks the API server whether
/// missing types exist now, but asks for optional types only every ten minutes.
#[test]
fn in_listed_namespaces_an_optional_type_is_looked_for_every_ten_minutes() {
    let scenario = Scenario::embedded("the test counts requests, and simulates time");
    // Run the operator as the chart does if protection is off: then HTTPRoute is the only optional type.
    let scenario = scenario.tuned(|options| {
        options.namespaces = Scope::Listed(["test".to_owned()].into());
        let protection = ["NetworkPolicy.networking.k8s.io", "SecurityPolicy.gateway.envoyproxy.io"];
        options.left_out = LeftOut::new(protection.map(|kind| kind.parse().unwrap()));
    });
    play(scenario, async |w| {
        w.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        w.pass_time(Duration::from_mins(10)).await;
        w.forget_requests();
        w.pass_time(Duration::from_mins(30)).await;
        assert_eq!((w.writes(), w.reads()), (Vec::new(), Vec::new()));
        let asked: Vec<String> = w.requests(Sort::Discovery).iter().map(ToString::to_string).collect();
        assert!((2..=4).contains(&asked.len()), "{asked:#?}");
        w.apply(&routes()).await;
        let found = || w.counted("kaos_operator_watch_state", &["kind=\"HTTPRoute\"", "state=\"synced\""]) > 0.0;
        w.until_true("routes are found", async || found()).await;
    });
}
