use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::*;

struct Known;

/// Controls a page: the server answers a request for it only when the test allows this.
static SLOW: Slow = Slow { asked: Notify::const_new(), answer: Notify::const_new() };

struct Slow {
    asked: Notify,
    answer: Notify,
}

impl Report for Known {
    fn ready(&self) -> Result<String, Vec<String>> {
        Err(vec![
            "the store of Widgets is not filled".to_owned(),
            "no policy answers for Gadgets\nok\u{1b}[2J".to_owned(),
        ])
    }

    fn explain(&self, kind: String, namespace: String, name: String) -> BoxFuture<'static, Result<Value, String>> {
        if kind == "slow" {
            return Box::pin(async {
                SLOW.asked.notify_one();
                SLOW.answer.notified().await;
                Ok(json!({}))
            });
        }
        let known = (name == "w").then(|| json!({"of": format!("{kind} {namespace}/{name}")}));
        Box::pin(std::future::ready(known.ok_or_else(|| format!("{kind} is unknown"))))
    }

    fn decisions(&self) -> Result<Value, String> {
        Ok(json!([{"decision": "0123456789abcdef"}]))
    }

    fn decisions_of(&self, kind: &str, namespace: &str, name: &str) -> Result<Value, String> {
        Ok(json!([{"object": format!("{kind} {namespace}/{name}")}]))
    }

    fn decision(&self, id: String) -> BoxFuture<'static, Result<Value, String>> {
        let known = (id == "0123456789abcdef").then(|| json!({"decision": id}));
        Box::pin(std::future::ready(known.ok_or_else(|| format!("{id} is unknown"))))
    }
}

/// Returns the answer to a request for a page.
async fn get(address: SocketAddr, page: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    let request = format!("GET {page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// One page of each group, in the order of addresses in [`served`].
const PAGES: [&str; 3] = ["/metrics", "/livez", "/debug/objects/widget/n/w"];

async fn bind(metrics: &str, health: &str, debug: &str) -> Result<Listeners, ServeError> {
    let parse = |text: &str| text.parse().expect("an address");
    Listeners::bind(parse(metrics), parse(health), debug.parse().expect("a local address")).await
}

/// Runs a server at the addresses of metrics, health and debug pages. Calls `look` with the addresses of the pages that
/// are served.
async fn served(addresses: [&str; 3], look: impl AsyncFnOnce(Vec<SocketAddr>)) {
    served_within(Bounds::default(), addresses, look).await;
}

async fn served_within(bounds: Bounds, [metrics, health, debug]: [&str; 3], look: impl AsyncFnOnce(Vec<SocketAddr>)) {
    let listeners = bind(metrics, health, debug).await.expect("free ports");
    let bound = [Pages::Metrics, Pages::Health, Pages::Debug].into_iter().filter_map(|pages| listeners.address(pages));
    let local: Vec<SocketAddr> = bound.map(|address| SocketAddr::from(([127, 0, 0, 1], address.port()))).collect();
    let stop = CancellationToken::new();
    let server = tokio::spawn(listeners.serve_within(bounds, Arc::new(Metrics::new()), Arc::new(Known), stop.clone()));
    look(local).await;
    stop.cancel();
    server.await.expect("it ends");
}

#[tokio::test]
async fn each_page_is_served_on_its_own_address_only() {
    served(["0.0.0.0:0", ":0", "127.0.0.1:0"], async |at| {
        for (which, &address) in at.iter().enumerate() {
            for (of, page) in PAGES.into_iter().enumerate() {
                let answer = get(address, page, "localhost").await;
                let code = if of == which { "HTTP/1.1 200" } else { "HTTP/1.1 404" };
                assert!(answer.starts_with(code), "{page} at {which}: {answer}");
            }
        }
        let page = get(at[0], "/metrics", "localhost").await;
        assert!(page.contains(crate::metrics::CONTENT_TYPE), "{page}");
        assert!(page.contains("kaos_operator_leader") && page.ends_with("# EOF\n"), "{page}");
        assert!(get(at[1], "/healthz", "x").await.starts_with("HTTP/1.1 200"));
    })
    .await;
}

#[tokio::test]
async fn one_address_can_serve_all_pages() {
    served(["127.0.0.1:0"; 3], async |at| {
        assert!(at.len() == 3 && at.iter().all(|address| *address == at[0]), "{at:?}");
        for page in PAGES {
            assert!(get(at[0], page, "localhost").await.starts_with("HTTP/1.1 200"), "{page}");
        }
    })
    .await;
}

#[tokio::test]
async fn readyz_lists_missing_prerequisites_one_per_line_without_control_characters() {
    served(["0", "127.0.0.1:0", "0"], async |at| {
        let page = get(at[0], "/readyz", "x").await;
        assert!(page.starts_with("HTTP/1.1 503"), "{page}");
        assert!(
            page.ends_with("the store of Widgets is not filled\nno policy answers for Gadgets\\nok\\u{1b}[2J\n"),
            "{page}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_debug_page_answers_requests_with_a_local_host_name() {
    served(["0", "0", "127.0.0.1:0"], async |at| {
        for host in ["localhost:1", "127.0.0.1", "[::1]:7"] {
            let page = get(at[0], "/debug/objects/widget/n/w", host).await;
            assert!(page.starts_with("HTTP/1.1 200") && page.contains("widget n/w"), "{page}");
        }
        let of_object = get(at[0], "/debug/objects/widget/n/w/decisions", "localhost").await;
        assert!(
            of_object.starts_with("HTTP/1.1 200") && of_object.contains("\"object\": \"widget n/w\""),
            "{of_object}"
        );
        let unknown = get(at[0], "/debug/objects/widget/n/x", "localhost").await;
        assert!(unknown.starts_with("HTTP/1.1 404") && unknown.ends_with("widget is unknown\n"), "{unknown}");
        assert!(get(at[0], "/debug/objects/widget/n/w", "evil.example").await.starts_with("HTTP/1.1 403"));
    })
    .await;
}

#[tokio::test]
async fn no_address_serves_the_debug_page_if_it_is_off() {
    served(["127.0.0.1:0", "127.0.0.1:0", "0"], async |at| {
        assert!(get(at[0], "/debug/objects/widget/n/w", "localhost").await.starts_with("HTTP/1.1 404"));
        assert!(get(at[0], "/livez", "localhost").await.starts_with("HTTP/1.1 200"));
    })
    .await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_reported_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let health = bind("0", &address, "0").await.expect_err("it is taken").to_string();
    assert!(health.starts_with(&format!("--health-probe-bind-address {address}: ")), "{health}");
    let debug = bind("0", "0", &address).await.expect_err("it is taken").to_string();
    assert!(debug.starts_with(&format!("--debug-bind-address {address}: ")), "{debug}");
    let nowhere = bind("0", "0", "0").await.expect("nothing to do");
    assert!([Pages::Metrics, Pages::Health, Pages::Debug].iter().all(|&pages| nowhere.address(pages).is_none()));
}

/// Short limits, for tests of slow callers.
const SHORT: Bounds = Bounds {
    asking: Duration::from_millis(200),
    lifetime: Duration::from_mins(1),
    ending: Duration::from_millis(200),
    most: 8,
};

/// Opens a connection and sends a text.
async fn saying(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    stream.write_all(text.as_bytes()).await.expect("it is sent");
    stream
}

/// Waits until the server closes a connection. Returns the server's answer.
async fn closed(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut said)).await;
    // Ignore a read error: if the server closes the connection before it has read all input, the system sends a reset.
    drop(read.expect("the connection is closed"));
    String::from_utf8_lossy(&said).into_owned()
}

const WHOLE: &str = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn idle_connections_are_closed_even_after_an_answer() {
    served_within(SHORT, ["0", "127.0.0.1:0", "0"], async |at| {
        for begun in ["", "GET /livez HTTP/1.1\r\nHost: x\r\n"] {
            let said = closed(saying(at[0], begun).await).await;
            assert!(!said.contains("200"), "{said}");
        }
        let said = closed(saying(at[0], WHOLE).await).await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    })
    .await;
}

#[tokio::test]
async fn a_new_connection_replaces_the_oldest_and_is_answered() {
    let patient = Bounds { asking: Duration::from_mins(1), ..SHORT };
    served_within(patient, ["0", "127.0.0.1:0", "0"], async |at| {
        let mut slow = Vec::new();
        for _ in 0..100 {
            slow.push(saying(at[0], "GET /li").await);
        }
        assert!(get(at[0], "/livez", "x").await.starts_with("HTTP/1.1 200"));
        for stream in slow.drain(..90) {
            closed(stream).await;
        }
    })
    .await;
}

/// Opens a connection from another address of this machine.
async fn from(caller: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((caller, 0))).expect("a local address");
    socket.connect(address).await.expect("somebody listens")
}

#[tokio::test]
async fn a_flood_of_connections_does_not_close_the_connection_of_another_caller() {
    let patient = Bounds { asking: Duration::from_mins(1), ..SHORT };
    served_within(patient, ["0", "127.0.0.1:0", "0"], async |at| {
        let mut probe = from([127, 0, 0, 2], at[0]).await;
        let mut flood = Vec::new();
        for _ in 0..100 {
            flood.push(saying(at[0], "").await);
        }
        // Wait until the server closes the flood's oldest connection: then all connections of the flood have arrived.
        closed(flood.remove(0)).await;
        probe.write_all(WHOLE.as_bytes()).await.expect("it is sent");
        let mut answer = [0; 12];
        probe.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200");
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_connections_does_not_close_one_whose_request_is_being_answered() {
    let patient = Bounds { asking: Duration::from_mins(1), ..SHORT };
    served_within(patient, ["0", "0", "127.0.0.1:0"], async |at| {
        let slow = "GET /debug/objects/slow/n/w HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut asked = saying(at[0], slow).await;
        SLOW.asked.notified().await;
        let mut flood = Vec::new();
        for _ in 0..100 {
            flood.push(saying(at[0], "").await);
        }
        closed(flood.remove(0)).await;
        SLOW.answer.notify_one();
        let mut answer = [0; 12];
        asked.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200");
    })
    .await;
}

#[tokio::test]
async fn a_connection_ends_after_its_time_limit_even_if_requests_continue() {
    let brief = Bounds { asking: Duration::from_mins(1), lifetime: Duration::from_millis(200), ..SHORT };
    served_within(brief, ["0", "127.0.0.1:0", "0"], async |at| {
        let said = closed(saying(at[0], &format!("{WHOLE}GET /li")).await).await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    })
    .await;
}

#[tokio::test]
async fn a_slow_caller_does_not_keep_the_process_from_ending() {
    // If the shutdown waited for the caller, this test would take an hour.
    let patient = Bounds { asking: Duration::from_hours(1), ..SHORT };
    served_within(patient, ["0", "127.0.0.1:0", "0"], async |at| {
        std::mem::forget(saying(at[0], "GET /li").await);
    })
    .await;
}
