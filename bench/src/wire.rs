//! One keep-alive connection for a load: requests as bytes, answers of a stated length, nothing else. The generator shares the cores
//! with what it measures, and a whole HTTP client took a fourteenth of them. Everything that is not a load uses `http`.

use std::fmt::Write as _;

use hyper::{HeaderMap, Request, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Failure;
use crate::http::{Address, Answer, PATIENCE};

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

pub(crate) struct Wire {
    address: Address,
    stream: TcpStream,
    received: Vec<u8>,
}

impl Wire {
    pub(crate) async fn open(address: Address) -> Result<Self, Failure> {
        Ok(Self { address, stream: connect(address).await?, received: Vec::with_capacity(4 * 1024) })
    }

    /// Sends one request and reads its answer. A connection that the server has closed is opened again.
    pub(crate) async fn send(&mut self, request: &Request<String>) -> Result<Answer, Failure> {
        let bytes = text(self.address, request)?;
        let exchange = async {
            if let Some(answer) = self.exchange(bytes.as_bytes()).await? {
                return Ok(answer);
            }
            self.stream = connect(self.address).await?;
            self.exchange(bytes.as_bytes()).await?.ok_or_else(|| "the server closes every connection".into())
        };
        timeout(PATIENCE, exchange).await?
    }

    /// `None` if the connection was closed before anything came.
    async fn exchange(&mut self, request: &[u8]) -> Result<Option<Answer>, Failure> {
        self.received.clear();
        if self.stream.write_all(request).await.is_err() {
            return Ok(None);
        }
        loop {
            if let Some(answer) = whole(&self.received)? {
                return Ok(Some(answer));
            }
            match self.stream.read_buf(&mut self.received).await {
                Ok(0) | Err(_) if self.received.is_empty() => return Ok(None),
                Ok(0) => return Err("the server closed the connection in an answer".into()),
                read => read?,
            };
        }
    }
}

async fn connect(address: Address) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A request as it goes over the wire.
fn text(address: Address, request: &Request<String>) -> Result<String, Failure> {
    let (path, body) = (request.uri().path_and_query().ok_or("a request without a path")?, request.body());
    let mut text = format!("{} {path} HTTP/1.1\r\nhost: {address}\r\n", request.method());
    for (name, value) in request.headers() {
        write!(text, "{name}: {}\r\n", value.to_str()?)?;
    }
    write!(text, "content-length: {}\r\n\r\n{body}", body.len())?;
    Ok(text)
}

/// An answer, once all of it has come.
fn whole(received: &[u8]) -> Result<Option<Answer>, Failure> {
    let Some(end) = received.windows(END_OF_HEAD.len()).position(|window| window == END_OF_HEAD) else {
        return Ok(None);
    };
    let (head, rest) = received.split_at(end);
    let body = rest.get(END_OF_HEAD.len()..).unwrap_or_default();
    let mut lines = std::str::from_utf8(head)?.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).ok_or("an answer without a status")?;
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .ok_or("an answer without a length")?;
    let length: usize = length.1.trim().parse()?;
    if body.len() < length {
        return Ok(None);
    }
    let status: StatusCode = status.parse()?;
    Ok(Some(Answer { status, headers: HeaderMap::new(), body: body.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_there_when_all_of_it_has_come() {
        let all = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\n{}";
        for end in 0..all.len() {
            assert!(whole(&all[..end]).unwrap().is_none(), "{end}");
        }
        let answer = whole(all).unwrap().unwrap();
        assert_eq!((answer.status, &*answer.body), (StatusCode::OK, &b"{}"[..]));
    }

    #[test]
    fn an_answer_whose_length_nobody_knows_is_an_error() {
        assert!(whole(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}").is_err());
        assert!(whole(b"nonsense\r\n\r\n").is_err());
    }
}
