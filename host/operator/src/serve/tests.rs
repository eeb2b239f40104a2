use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;

struct Known;

impl Report for Known {
    fn ready(&self) -> Result<String, Vec<String>> {
        Err(vec!["the store of Widgets is not filled".to_owned(), "no policy answers for Gadgets".to_owned()])
    }

    fn explain(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        (name == "w").then(|| json!({"of": format!("{kind} {namespace}/{name}")}))
    }
}

/// The answer to a request for a page.
async fn get(address: SocketAddr, page: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    let request = format!("GET {page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// Runs a server at two addresses while `look` looks at it.
async fn served(metrics: &str, health: &str, look: impl AsyncFnOnce(SocketAddr, SocketAddr)) {
    let parse = |text: &str| text.parse().expect("an address");
    let listeners = Listeners::bind(parse(metrics), parse(health)).await.expect("free ports");
    let (metrics, health) = (listeners.metrics_address(), listeners.health_address());
    let stop = CancellationToken::new();
    let server = tokio::spawn(listeners.serve(Arc::new(Metrics::new()), Arc::new(Known), stop.clone()));
    look(metrics.expect("metrics"), health.expect("health")).await;
    stop.cancel();
    server.await.expect("it ends");
}

#[tokio::test]
async fn every_page_is_where_it_belongs() {
    served("127.0.0.1:0", ":0", async |metrics, health| {
        let health = SocketAddr::from(([127, 0, 0, 1], health.port()));
        let page = get(metrics, "/metrics", "localhost").await;
        assert!(page.starts_with("HTTP/1.1 200") && page.contains(crate::metrics::CONTENT_TYPE), "{page}");
        assert!(page.contains("kaos_operator_leader") && page.ends_with("# EOF\n"), "{page}");
        assert!(get(health, "/livez", "x").await.starts_with("HTTP/1.1 200"));
        assert!(get(health, "/healthz", "x").await.starts_with("HTTP/1.1 200"));
        assert!(get(health, "/metrics", "x").await.starts_with("HTTP/1.1 404"));
        assert!(get(metrics, "/livez", "x").await.starts_with("HTTP/1.1 404"));
    })
    .await;
}

#[tokio::test]
async fn what_is_missing_for_readiness_is_told_line_by_line() {
    served("127.0.0.1:0", "127.0.0.1:0", async |metrics, health| {
        assert_eq!(metrics, health);
        let page = get(health, "/readyz", "x").await;
        assert!(page.starts_with("HTTP/1.1 503"), "{page}");
        assert!(page.ends_with("the store of Widgets is not filled\nno policy answers for Gadgets\n"), "{page}");
    })
    .await;
}

#[tokio::test]
async fn an_object_is_explained_to_callers_on_this_machine_only() {
    served("127.0.0.1:0", ":0", async |local, everywhere| {
        for host in ["localhost:1", "127.0.0.1", "[::1]:7"] {
            let page = get(local, "/debug/objects/widget/n/w", host).await;
            assert!(page.starts_with("HTTP/1.1 200") && page.contains("widget n/w"), "{page}");
        }
        assert!(get(local, "/debug/objects/widget/n/x", "localhost").await.starts_with("HTTP/1.1 404"));
        assert!(get(local, "/debug/objects/widget/n/w", "evil.example").await.starts_with("HTTP/1.1 403"));
        let everywhere = SocketAddr::from(([127, 0, 0, 1], everywhere.port()));
        assert!(get(everywhere, "/debug/objects/widget/n/w", "localhost").await.starts_with("HTTP/1.1 404"));
        assert!(get(everywhere, "/livez", "localhost").await.starts_with("HTTP/1.1 200"));
    })
    .await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_reported_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = BindAddress::One(taken.local_addr().expect("an address"));
    let error = Listeners::bind(BindAddress::Off, address).await.expect_err("it is taken").to_string();
    assert!(error.starts_with(&format!("--health-probe-bind-address {address}: ")), "{error}");
    let both = Listeners::bind(BindAddress::Off, BindAddress::Off).await.expect("nothing to do");
    assert_eq!((both.metrics_address(), both.health_address()), (None, None));
}
