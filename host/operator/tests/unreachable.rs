//! Tests the commands of `kaos-operator`, and the operator, with a cluster that does not answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader, Lines, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStderr, Stdio},
    time::Duration,
};

use crate::support::{Folder, binary, run};

/// An address without a listener.
const NOWHERE: &str = "http://127.0.0.1:1/";

fn kubeconfig(folder: &Folder) -> String {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: '{NOWHERE}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
    );
    folder.write("kubeconfig", text)
}

#[test]
fn unreachable_cluster_is_reported_with_every_cause_once() {
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
    // The warning about the Lease shows why the API server could not be reached.
    let ran = run(["release", "--kubeconfig", &kubeconfig], "");
    let warning =
        ran.stderr.lines().find(|line| line.starts_with("warning: could not take Lease ")).unwrap_or_default();
    assert_eq!(warning.matches("Connection refused").count(), 1, "{}", ran.stderr);
}

/// An operator process that ends when the test ends.
struct Operator {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    /// The log line with the addresses of the operator's pages.
    serving: String,
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

impl Operator {
    fn start(folder: &Folder, pages: [&str; 3]) -> Self {
        let mut command = binary();
        command.args(["run", "--kubeconfig", &kubeconfig(folder)]).args(pages);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut operator = Self { child, log, serving: String::new() };
        operator.serving = operator.says("serving");
        operator
    }

    /// Returns the next log line that contains a text.
    fn says(&mut self, what: &str) -> String {
        self.log.by_ref().map_while(Result::ok).find(|line| line.contains(what)).expect(what)
    }

    /// Fetches a page of the operator. `which` is the field of the log line `serving` that contains the page's address.
    fn get(&self, which: &str, page: &str) -> String {
        let (_, rest) = self.serving.split_once(&format!(" {which}=\"")).expect("its address");
        let address = rest.split('"').next().unwrap_or_default();
        let port: u16 = address.rsplit(':').next().unwrap_or_default().parse().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {page} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn waiting_operator_reports_the_reason_in_log_and_readyz() {
    let folder = Folder::new("waiting");
    let pages = ["--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0", "--debug-bind-address=0"];
    let mut operator = Operator::start(&folder, pages);
    let told = operator.says("does not answer");
    assert!(told.contains(NOWHERE) && !told.contains("ServiceError"), "{told}");
    assert_eq!(told.matches("Connection refused").count(), 1, "{told}");
    // Fetch the page several times: the log shows the message slightly earlier than the page.
    let because = format!("the API server at {NOWHERE} does not answer: ");
    for _ in 0..600 {
        let page = operator.get("health", "/readyz");
        if page.contains(&because) {
            assert!(page.starts_with("HTTP/1.1 503") && page.contains("Connection refused"), "{page}");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("not in a minute: {because}\n{}", operator.get("health", "/readyz"));
}

#[test]
fn debug_pages_have_their_own_address_apart_from_the_probes() {
    let folder = Folder::new("explaining");
    let pages = ["--metrics-bind-address=0", "--health-probe-bind-address=:0", "--debug-bind-address=127.0.0.1:0"];
    let operator = Operator::start(&folder, pages);
    let (page, unknown) = ("/debug/objects/Agent/team/writer", "this process does not reconcile now");
    let (there, elsewhere) = (operator.get("debug", page), operator.get("health", page));
    assert!(there.starts_with("HTTP/1.1 404") && there.contains(unknown), "{there}");
    assert!(elsewhere.starts_with("HTTP/1.1 404") && !elsewhere.contains(unknown), "{elsewhere}");
}
