//! A gateway made of a script: real HTTP over a real socket, with answers that a proper gateway would never give.
//!
//! Each test says what to answer to which request, in which pieces, and how the connection ends. What was asked is kept.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    /// The path and the query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What to answer.
pub enum Reply {
    /// A whole answer of this status, content type and body.
    Whole(u16, &'static str, String),
    /// An event stream in pieces, each sent by itself.
    Events(Vec<Piece>),
    /// Bytes as they are, then the end of the connection.
    Raw(Vec<u8>),
    /// Nothing, until the client has gone.
    Silence,
}

/// A part of an event stream.
pub enum Piece {
    Bytes(Vec<u8>),
    /// Go on when somebody says so.
    Gate(Receiver<()>),
    /// Nothing, until the client has gone.
    Hang,
    /// The connection breaks here; without it the stream ends in good order.
    Cut,
}

pub fn json(status: u16, body: impl Into<String>) -> Reply {
    Reply::Whole(status, "application/json", body.into())
}

/// 204. It says that the connection ends, or the client would keep it for its next request and find it closed.
pub fn no_content() -> Reply {
    Reply::Raw(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_vec())
}

/// A stream of the given text, sent in one piece.
pub fn events(text: impl Into<String>) -> Reply {
    Reply::Events(vec![Piece::Bytes(text.into().into_bytes())])
}

/// A snapshot event of a run.
pub fn snapshot(id: Option<u32>, status: &str) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!(
        "{id}event: snapshot\ndata: {{\"run_id\":\"r-1\",\"snapshot\":{{\"run_id\":\"r-1\",\"flow_name\":\"main\",\
         \"status\":\"{status}\",\"tasks\":{{\"a\":\"SUCCEEDED\",\"b\":\"RUNNING\"}},\"updated_at\":12.5}},\"ts\":13.25}}\n\n"
    )
}

pub const HEARTBEAT: &str = "event: heartbeat\ndata: {\"run_id\":\"r-1\",\"ts\":14.0}\n\n";

/// A run as the gateway shows it.
pub fn run(status: &str) -> Reply {
    let run = serde_json::json!({"run_id": "r-1", "flow_name": "main", "status": status, "tasks": {"a": "SUCCEEDED"}});
    json(200, run.to_string())
}

/// The server; it lives as long as the test.
pub struct Gateway {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Gateway {
    /// Answers each request by `script`, which also gets its number, counted from zero.
    pub fn start(script: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (script, seen) = (Arc::new(script), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                thread::spawn(move || {
                    let stream = stream.unwrap();
                    let Some(request) = read_request(&stream) else { return };
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.len() - 1
                    };
                    // The client may leave at any moment; what it did not read is not our trouble.
                    let _ = answer(stream, script(&request, number));
                });
            }
        });
        Self { address, asked }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut asked = Asked { method, target, headers, body: Vec::new() };
    if let Some(length) = asked.header("content-length") {
        asked.body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut asked.body).ok()?;
    } else if asked.header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            if size == 0 {
                break;
            }
            asked.body.extend_from_slice(&chunk[..size]);
        }
    }
    Some(asked)
}

fn answer(mut stream: TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Whole(status, kind, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n");
            stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes())
        }
        Reply::Raw(bytes) => stream.write_all(&bytes),
        Reply::Silence => wait_until_gone(&mut stream),
        Reply::Events(pieces) => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n";
            stream.write_all(
                format!("{head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n").as_bytes(),
            )?;
            stream.set_nodelay(true)?;
            for piece in pieces {
                match piece {
                    Piece::Bytes(bytes) => {
                        stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes())?;
                        stream.write_all(&bytes)?;
                        stream.write_all(b"\r\n")?;
                    }
                    Piece::Gate(gate) => {
                        let _ = gate.recv();
                    }
                    Piece::Hang => return wait_until_gone(&mut stream),
                    Piece::Cut => return Ok(()),
                }
            }
            stream.write_all(b"0\r\n\r\n")
        }
    }
}

fn wait_until_gone(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut rest = [0; 64];
    while stream.read(&mut rest)? > 0 {}
    Ok(())
}
