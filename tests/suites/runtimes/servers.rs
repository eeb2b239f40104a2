//! Checks that `FastMCP` serves the Python functions in the field `params` of an MCPServer as tools. The names of these
//! tools must equal the names of the tools in the object's status.

use std::collections::BTreeMap;

use kaos_tests::case;
use kaos_tests::policies;
use kaos_tests::stage::{Stage, key};
use serde_json::{Value, json};

use crate::images::{self, Image};
use crate::node::Node;
use crate::pod::Objects;

/// Returns the different Python sources in the recorded cases. Each source has the name of an object, the object's
/// Deployment, and the tools in the object's status.
fn sources() -> BTreeMap<String, (String, Value, Value)> {
    let mut sources = BTreeMap::new();
    for case in case::all().unwrap() {
        let mut stage = Stage::new(policies::renderers(&policies::native().unwrap(), &case).unwrap());
        for object in &case.input {
            stage.apply(object);
        }
        stage.settle().unwrap();
        for server in case.input.iter().filter(|object| object["kind"] == "MCPServer") {
            let (key, name) = (key(server), format!("{}-{}", case.name, server["metadata"]["name"].as_str().unwrap()));
            let children = stage.children_of(&key);
            let Some(deployment) = children.into_iter().find(|child| child["kind"] == "Deployment") else { continue };
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let is_params = |variable: &&Value| variable["name"] == "MCP_TOOLS_STRING";
            let source = container["env"].as_array().unwrap().iter().find(is_params).map(|it| it["value"].to_string());
            let ours = container["image"] == "axsauze/kaos-mcp-python-string:test" && container["command"].is_null();
            // Skip an object in which the user sets the variable `MCP_TOOLS_STRING` directly.
            let by_hand = server["spec"].to_string().contains("MCP_TOOLS_STRING");
            if let Some(source) = source.filter(|_| ours && !by_hand) {
                let tools = stage.status_of(&key)["availableTools"].clone();
                sources.entry(source).or_insert((name, deployment, tools));
            }
        }
    }
    sources
}

#[test]
fn a_server_of_python_functions_serves_the_functions_in_params_and_in_the_status() {
    let mut node = Node::new("servers").unwrap();
    let sources = sources();
    assert!(sources.len() >= 4, "{} sources", sources.len());
    for (name, deployment, _) in sources.values() {
        node.start(name, &deployment["spec"]["template"]["spec"], &Objects::default()).unwrap();
    }
    let mut words = vec!["python".to_owned(), images::of_tests().join("node/tools.py").display().to_string()];
    for (name, ..) in sources.values() {
        let pod = node.until_ready(name).unwrap();
        words.push(format!("http://127.0.0.1:{}/mcp", pod.served().unwrap()));
    }
    let output = Image::named("python-string").unwrap().program(&words).unwrap().output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), sources.len());
    for ((name, _, listed), told) in sources.values().zip(&told) {
        println!("  {name}: {told}");
        assert_eq!(told["tools"], *listed, "{name}");
    }
    let answers: Vec<&Value> = told.iter().map(|told| &told["answers"]["shell"]).filter(|it| !it.is_null()).collect();
    assert_eq!(answers, [&json!("$(HOSTNAME) $HOME $$")]);
}
