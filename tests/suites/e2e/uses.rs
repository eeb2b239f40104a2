//! What the README has people type: a team is applied, and a default is changed and changed back.

use std::path::PathBuf;

use kaos_tests::case;
use kaos_tests::control_plane::Ran;
use kaos_tests::harness::read::text;

use crate::support::{Release, SYSTEM, until_image, until_ready};

const TEAM: &str = "../docs/examples/team.yaml";

/// The command line of a person with a kubeconfig, in a folder.
struct Person<'a>(&'a Release);

impl Person<'_> {
    fn kaos(&self, arguments: &[&str]) -> Ran {
        self.0.cluster.operator(&self.0.cluster.kubeconfig(), arguments)
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path: PathBuf = self.0.cluster.folder().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

const COORDINATOR: &str = "Deployment/agent-coordinator";

#[tokio::test]
async fn a_team_runs_and_its_defaults_change_and_change_back_as_the_readme_says() {
    let release = Release::install(&[]).await;
    let person = Person(&release);
    let operator = release.working_operator().await;
    let world = release.world("team").await;
    release.cluster.kubectl(&["apply", "-f", TEAM]).expect();
    let team = case::documents(TEAM.as_ref()).unwrap();
    until_ready(&world, &team).await;
    let shown = release.cluster.kubectl(&["get", "kaos", "-A"]).expect();
    assert!(shown.contains("coordinator") && shown.contains("researcher"), "{shown}");

    // A default is changed without a compiler.
    let settings = person.file("settings.yaml", b"image: registry.example/agent:2\n");
    let planned = person.kaos(&["policy", "plan", "--settings", &settings, "--for", "agent"]);
    assert!(!planned.ok && planned.out.contains("registry.example/agent:2"), "{planned:?}");
    let before =
        text(&world.look("Deployment/agent-coordinator").await["spec"]["template"]["spec"]["containers"][0]["image"])
            .to_owned();
    person.kaos(&["policy", "push", "--settings", &settings, "--for", "agent"]).expect();
    until_image(&world, COORDINATOR, "registry.example/agent:2").await;
    until_ready(&world, &team).await;
    person.file("settings.yaml", b"image: registry.example/agent:3\n");
    person.kaos(&["policy", "push", "--settings", &settings, "--for", "agent"]).expect();
    until_image(&world, COORDINATOR, "registry.example/agent:3").await;
    let listed = person.kaos(&["policy", "list"]).expect();
    assert!(listed.contains("Active") && listed.contains("Superseded"), "{listed}");
    person.kaos(&["policy", "rollback", "policy-agent-settings"]).expect();
    until_image(&world, COORDINATOR, "registry.example/agent:2").await;
    release.cluster.kubectl(&["delete", "configmap", "policy-agent-settings", "-n", SYSTEM]).expect();
    until_image(&world, COORDINATOR, &before).await;
    until_ready(&world, &team).await;
    assert!(operator.is_ready());
}
