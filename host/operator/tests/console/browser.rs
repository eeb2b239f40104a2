//! Starts `kaos-operator console`, and requests its pages like a browser that has opened the printed address.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::support::binary;

/// A running console, with the cookie of a browser that has opened its address.
pub(super) struct Console {
    pub(super) process: Child,
    _output: BufReader<ChildStdout>,
    pub(super) port: u16,
    pub(super) token: String,
    /// The cookie as `name=value`. Empty until the console has answered the first request.
    cookie: String,
    pub(super) base: String,
}

/// An answer of the console.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The headers, in lower case.
    pub(super) head: String,
    pub(super) body: String,
}

impl Console {
    /// Starts the console with this kubeconfig.
    pub(super) fn start(kubeconfig: &str, arguments: &[&str]) -> Self {
        let mut command = binary();
        command.args(["console", "--no-browser", "--kubeconfig", kubeconfig]).args(arguments);
        Self::of(&mut command)
    }

    /// Starts a program, and reads the address of the console that it prints.
    pub(super) fn of(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("/?token=") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the program ended without an address");
        }
        let (port, token) = line.trim()["http://127.0.0.1:".len()..].split_once("/?token=").unwrap();
        let (port, token) = (port.parse().unwrap(), token.to_owned());
        let (cookie, base) = (String::new(), String::new());
        let mut console = Self { process, _output: output, port, token, cookie, base };
        console.enter();
        console
    }

    /// Opens the printed address as a browser does, and stores the cookie and the secret path from the answer.
    fn enter(&mut self) {
        let entered = self.send("GET", &format!("/?token={}", self.token), &[("Host", &self.host())], "");
        let cookie = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let (pair, attributes) = cookie.split_once("; ").unwrap();
        pair.clone_into(&mut self.cookie);
        attributes.strip_prefix("path=").unwrap().split_once("/;").unwrap().0.clone_into(&mut self.base);
    }

    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn cookie(&self) -> String {
        self.cookie.clone()
    }

    /// Returns the path of a page, including the secret path.
    pub(super) fn path(&self, page: &str) -> String {
        format!("{}{page}", self.base)
    }

    pub(super) fn connect(&self) -> TcpStream {
        TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))).unwrap()
    }

    /// Sends a request with exactly these headers.
    pub(super) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect();
        let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = headers.concat();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Requests a page, as the browser that has opened the address does.
    pub(super) fn get(&self, path: &str) -> Answer {
        self.send("GET", &self.path(path), &[("Host", &self.host()), ("Cookie", &self.cookie())], "")
    }

    /// Sends the form on a page, with this YAML.
    pub(super) fn post(&self, path: &str, yaml: &str) -> Answer {
        let origin = format!("http://{}", self.host());
        let headers = [
            ("Host", &*self.host()),
            ("Cookie", &*self.cookie()),
            ("Origin", &*origin),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        let body: Vec<String> = yaml.bytes().map(|byte| format!("%{byte:02X}")).collect();
        self.send("POST", &self.path(path), &headers, &format!("yaml={}", body.concat()))
    }

    /// Reads the updates of an open page until one of them contains a text.
    pub(super) fn until(&self, page: &str, text: &str) {
        let (mut stream, host, cookie) = (self.connect(), self.host(), self.cookie());
        let page = page.replace('?', "%3F").replace('&', "%26").replace('=', "%3D");
        let path = self.path(&format!("/events?page={page}&seen="));
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        let found = lines.find(|line| line.as_ref().unwrap().contains(text));
        assert!(found.is_some(), "the stream ended without {text:?}");
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}
