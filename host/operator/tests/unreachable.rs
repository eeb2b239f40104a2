//! Verbs that ask a cluster which does not answer, and an operator that waits for one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Stdio},
    time::Duration,
};

use support::{Folder, binary, run};

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1/";

fn kubeconfig(folder: &Folder) -> String {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: '{NOWHERE}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
    );
    folder.write("kubeconfig", text)
}

#[test]
fn a_cluster_that_does_not_answer_is_named_with_every_cause() {
    let folder = Folder::new("unreachable");
    let kubeconfig = kubeconfig(&folder);
    let settings = folder.write("settings.yaml", "image: x:1\n");
    let named = format!("error: the API server at {NOWHERE} does not answer: ");
    let cases: [(&[&str], i32); 5] = [
        (&["policy", "list"], 2),
        (&["policy", "explain", "agent/a"], 2),
        (&["policy", "push", "--settings", &settings, "--for", "agent"], 2),
        (&["policy", "plan", "--settings", &settings, "--for", "agent"], 1),
        (&["release", "--keep-lease"], 2),
    ];
    for (verb, code) in cases {
        let ran = run(verb.iter().copied().chain(["--kubeconfig", kubeconfig.as_str()]), "");
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{verb:?}: {}", ran.stderr);
        for told in [named.as_str(), "Connection refused"] {
            assert_eq!(ran.stderr.matches(told).count(), 1, "{verb:?}, {told}: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("ServiceError"), "{verb:?}: {}", ran.stderr);
    }
    // What may still happen because the Lease cannot be had is told with its causes, too.
    let ran = run(["release", "--kubeconfig", &kubeconfig], "");
    let warning = ran.stderr.lines().find(|line| line.starts_with("warning: Lease ")).unwrap_or_default();
    assert_eq!(warning.matches("Connection refused").count(), 1, "{}", ran.stderr);
}

/// An operator that ends with the test.
struct Operator(Child);

impl Drop for Operator {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn readiness(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn an_operator_that_waits_for_its_cluster_says_why() {
    let folder = Folder::new("waiting");
    let mut command = binary();
    command.args(["run", "--kubeconfig", &kubeconfig(&folder)]);
    command.args(["--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0"]);
    let mut operator = Operator(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut log = BufReader::new(operator.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    let serving = log.find(|line| line.contains("serving")).expect("it serves");
    let (_, address) = serving.split_once("health=\"").expect("its address");
    let address = address.split('"').next().unwrap_or_default();
    let told = log.find(|line| line.contains("does not answer")).expect("it says so");
    assert!(told.contains(NOWHERE) && !told.contains("ServiceError"), "{told}");
    assert_eq!(told.matches("Connection refused").count(), 1, "{told}");
    // It is in the log a moment before it is on the page.
    let because = format!("the API server at {NOWHERE} does not answer: ");
    for _ in 0..600 {
        let page = readiness(address);
        if page.contains(&because) {
            assert!(page.starts_with("HTTP/1.1 503") && page.contains("Connection refused"), "{page}");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("not in a minute: {because}\n{}", readiness(address));
}
