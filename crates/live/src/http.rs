//! As much of HTTP/1.1 as it takes to be read by a collector of metrics: one request on each connection, answered in
//! turn. Requests are hostile until proven otherwise: their size and their time are bounded.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::openmetrics::CONTENT_TYPE;

/// Bytes of a request's head at most. Collectors send some hundreds.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Reads at most after the answer, of 1 KiB each.
const REST_READS_MAX: u32 = 64;
/// Time for a request, and again for its answer. Others wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause after a connection could not be accepted, as if files had run out.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers every connection, one after another, with what `metrics` gives at that time. Never returns; a connection that
/// fails is its client's matter.
pub fn serve(listener: &TcpListener, metrics: impl Fn() -> String) {
    for connection in listener.incoming() {
        match connection {
            // Nobody is left to be told.
            Ok(stream) => drop(answer(stream, &metrics)),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn answer(mut stream: TcpStream, metrics: &impl Fn() -> String) -> io::Result<()> {
    let response = match head(&mut stream, Instant::now() + PATIENCE)? {
        Head::Complete(head) => respond(&head, metrics),
        Head::TooLarge => {
            plain("431 Request Header Fields Too Large", "", "The request is too large.\n", true)
        }
        Head::TooLate => plain("408 Request Timeout", "", "The request took too long.\n", true),
        Head::Broken => return Ok(()),
    };
    let end = Instant::now() + PATIENCE;
    let mut left = response.as_slice();
    while !left.is_empty() {
        stream.set_write_timeout(Some(remaining(end)?))?;
        let written = stream.write(left)?;
        left = &left[written..];
        if written == 0 {
            return Ok(());
        }
    }
    stream.shutdown(Shutdown::Write)?;
    forget_rest(&mut stream, end)
}

/// Reads what else was sent, until the client has closed too. Otherwise the system would take the answer back.
fn forget_rest(stream: &mut TcpStream, end: Instant) -> io::Result<()> {
    let mut buffer = [0; 1024];
    for _ in 0..REST_READS_MAX {
        // A client that sends a byte now and then must not be waited for again and again.
        stream.set_read_timeout(Some(remaining(end)?))?;
        if stream.read(&mut buffer)? == 0 {
            break;
        }
    }
    Ok(())
}

/// How a request's head was received.
enum Head {
    Complete(Vec<u8>),
    TooLarge,
    TooLate,
    /// The client went before it was complete.
    Broken,
}

fn head(stream: &mut TcpStream, end: Instant) -> io::Result<Head> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let Ok(time) = remaining(end) else { return Ok(Head::TooLate) };
        stream.set_read_timeout(Some(time))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(Head::Broken),
            Ok(bytes) => head.extend_from_slice(&buffer[..bytes]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if head.windows(4).any(|window| window == b"\r\n\r\n") {
            return Ok(Head::Complete(head));
        }
        if head.len() > HEAD_BYTES_MAX {
            return Ok(Head::TooLarge);
        }
    }
}

/// What is left of a connection's time; an error if nothing is.
fn remaining(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// The answer to a request, of which only the first line matters.
fn respond(head: &[u8], metrics: &impl Fn() -> String) -> Vec<u8> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&str> = str::from_utf8(line).unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else {
        return plain("400 Bad Request", "", "This is not a request of HTTP/1.1.\n", true);
    };
    let path = target.split('?').next().unwrap_or_default();
    let has_body = method != "HEAD";
    if !version.starts_with("HTTP/1.") {
        plain("505 HTTP Version Not Supported", "", "Only HTTP/1.1 is spoken here.\n", has_body)
    } else if path != "/metrics" {
        plain("404 Not Found", "", "Metrics are at /metrics.\n", has_body)
    } else if !["GET", "HEAD"].contains(&method) {
        plain("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "Metrics can only be read.\n", has_body)
    } else {
        message("200 OK", "", CONTENT_TYPE, &metrics(), has_body)
    }
}

fn plain(status: &str, fields: &str, body: &str, has_body: bool) -> Vec<u8> {
    message(status, fields, "text/plain; charset=utf-8", body, has_body)
}

fn message(status: &str, fields: &str, content_type: &str, body: &str, has_body: bool) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{fields}Connection: close\r\n\r\n",
        body.len()
    );
    (if has_body { head + body } else { head }).into_bytes()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[track_caller]
    fn answer_to(request: &str) -> String {
        String::from_utf8(respond(request.as_bytes(), &|| "# EOF\n".to_owned())).unwrap()
    }

    #[test]
    fn metrics_are_at_one_path() {
        let found = answer_to("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(
            found.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"),
            "{found}"
        );
        assert!(found.ends_with("Content-Length: 6\r\nConnection: close\r\n\r\n# EOF\n"), "{found}");
        assert!(answer_to("GET /metrics?a=b HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
        assert!(answer_to("HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    }

    #[test]
    fn everything_else_is_refused() {
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", 404),
            ("GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", 404),
            ("POST /metrics HTTP/1.1\r\n\r\n", 405),
            ("GET /metrics HTTP/2\r\n\r\n", 505),
            ("GET /metrics\r\n\r\n", 400),
            ("GET  /metrics HTTP/1.1\r\n\r\n", 400),
            ("\r\n\r\n", 400),
            ("\0\u{fffd}\r\n\r\n", 400),
        ] {
            let found = answer_to(request);
            assert!(found.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}\n{found}");
        }
        assert!(respond(b"\xff\xfe\r\n\r\n", &String::new).starts_with(b"HTTP/1.1 400 "));
    }

    fn started() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || serve(&listener, || "# EOF\n".to_owned()));
        address
    }

    fn sent(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(address).unwrap();
        // The other side may have answered already, and closed.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    #[test]
    fn hostile_clients_leave_it_running() {
        let address = started();
        drop(TcpStream::connect(address).unwrap());
        assert!(sent(address, &[b'a'; HEAD_BYTES_MAX + 2000]).starts_with(b"HTTP/1.1 431 "));
        assert!(sent(address, b"\r\n\r\n").starts_with(b"HTTP/1.1 400 "));
        // Sends more than was asked for, and gets its answer all the same.
        let more = [b"GET /metrics HTTP/1.1\r\n\r\n".as_slice(), &[b'a'; 20_000]].concat();
        assert!(sent(address, &more).starts_with(b"HTTP/1.1 200 "));
        // Says nothing more, and is sent away in the end.
        assert!(sent(address, b"GET /metrics HTTP/1.1\r\n").starts_with(b"HTTP/1.1 408 "));
        assert!(sent(address, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with(b"HTTP/1.1 200 "));
    }
}
