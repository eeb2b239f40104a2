//! A client for HTTP without TLS, with a new connection for each request.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A response with its status, its headers and its body.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
    head: String,
}

impl Response {
    /// Returns the value of a header. `name` must be in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(':'));
        headers.find(|(header, _)| header.to_lowercase() == name).map(|(_, value)| value.trim())
    }

    /// Returns the body as JSON. Fails if the status is not a success.
    pub(crate) fn json(&self) -> Result<Value> {
        ensure!((200..300).contains(&self.status), "HTTP {}: {}", self.status, self.body);
        serde_json::from_str(&self.body).with_context(|| self.body.clone())
    }
}

/// Sends a request to a port of this machine: GET without a body, and POST with a body. `patience` is the time limit
/// for each part of the response.
pub(crate) fn send(
    port: u16,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
    patience: Duration,
) -> Result<Response> {
    let method = if body.is_some() { "POST" } else { "GET" };
    exchange(port, method, path, headers, &body.map(Value::to_string).unwrap_or_default(), patience)
}

/// Sends a PUT request with this text.
pub(crate) fn put(port: u16, path: &str, text: &str, patience: Duration) -> Result<Response> {
    exchange(port, "PUT", path, &[], text, patience)
}

fn exchange(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    text: &str,
    patience: Duration,
) -> Result<Response> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(patience))?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", text.len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let answer = String::from_utf8(bytes)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a head")?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).with_context(|| head.to_owned())?;
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { joined(body)? } else { body.to_owned() };
    Ok(Response { status, body, head: head.to_owned() })
}

/// Joins the chunks of a chunked body.
fn joined(mut body: &str) -> Result<String> {
    let mut all = Vec::new();
    loop {
        let (size, rest) = body.split_once("\r\n").context("a chunk without its size")?;
        let size = usize::from_str_radix(size.trim(), 16)?;
        if size == 0 {
            return Ok(String::from_utf8(all)?);
        }
        all.extend_from_slice(rest.as_bytes().get(..size).context("a chunk that ends early")?);
        body = rest.get(size + 2..).context("a chunk that ends early")?;
    }
}
