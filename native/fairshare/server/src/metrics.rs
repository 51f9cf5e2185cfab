//! Numbers for Prometheus: `GET /metrics` in its text format, on an address of their own.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::Server;
use crate::status;

/// How long a question may take to come, and its answer to be taken.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest question that is read.
const LONGEST: usize = 4096;
/// Questions at a time. One more ends the oldest: who asks takes a millisecond, and who says nothing keeps nobody out.
const MOST: usize = 16;

/// Answer on `listener` as long as the server lives.
pub fn start(server: &Arc<Server>, listener: TcpListener) -> io::Result<()> {
    let server = Arc::clone(server);
    let serve = move || {
        let mut asking: VecDeque<(TcpStream, JoinHandle<()>)> = VecDeque::new();
        for stream in listener.incoming().flatten() {
            asking.retain(|(_, thread)| !thread.is_finished());
            if asking.len() >= MOST {
                if let Some((oldest, thread)) = asking.pop_front() {
                    let _ = oldest.shutdown(Shutdown::Both);
                    let _ = thread.join();
                }
            }
            let Ok(kept) = stream.try_clone() else { continue };
            let server = Arc::clone(&server);
            let begun = thread::Builder::new().name("metrics".into()).spawn(move || {
                let _ = answer(&server, stream);
            });
            asking.extend(begun.ok().map(|thread| (kept, thread)));
        }
    };
    thread::Builder::new().name("metrics".into()).spawn(serve)?;
    Ok(())
}

fn answer(server: &Server, mut stream: TcpStream) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut question = Vec::new();
    let mut piece = [0; 1024];
    while !question.windows(4).any(|end| end == b"\r\n\r\n") {
        stream.set_read_timeout(Some(left(until)?))?;
        let count = stream.read(&mut piece)?;
        if count == 0 || question.len() > LONGEST {
            return Ok(());
        }
        question.extend_from_slice(&piece[..count]);
    }
    let (state, body) = if question.starts_with(b"GET /metrics ") {
        ("200 OK", text(server))
    } else {
        ("404 Not Found", "GET /metrics\n".to_owned())
    };
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "HTTP/1.1 {state}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.checked_duration_since(Instant::now());
    left.filter(|left| !left.is_zero())
        .ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// All numbers, as Prometheus' text format has them.
pub fn text(server: &Server) -> String {
    let found = status::describe(server);
    let (joined, refused) = server.counted();
    let mut out = String::new();
    let name = |field: &str| label(found[field].as_str().unwrap_or(""));
    head(&mut out, "info", "gauge", "What the server is; always 1.");
    let _ = writeln!(
        out,
        "fairshare_info{{server={},policy={},scheduler={}}} 1",
        name("server"),
        name("policy"),
        name("scheduler")
    );
    for (what, kind, about, value) in [
        (
            "uptime_seconds",
            "gauge",
            "Time since the server began.",
            found["seconds"].clone(),
        ),
        (
            "rate_bytes",
            "gauge",
            "Bytes per second that are served at most; 0: no limit.",
            found["rate"].clone(),
        ),
        (
            "open_files",
            "gauge",
            "Files that clients have open.",
            found["open_files"].clone(),
        ),
        (
            "connections",
            "gauge",
            "Connected processes.",
            server.connected().into(),
        ),
        ("joined_total", "counter", "Sessions that began.", joined.into()),
        (
            "refused_total",
            "counter",
            "Connections that were not let in.",
            refused.into(),
        ),
    ] {
        head(&mut out, what, kind, about);
        let _ = writeln!(out, "fairshare_{what} {value}");
    }
    let none = Vec::new();
    let jobs = found["jobs"].as_array().unwrap_or(&none);
    for (what, kind, about, field, more) in [
        (
            "job_clients",
            "gauge",
            "Connected processes of a job.",
            "clients",
            "",
        ),
        ("job_size", "gauge", "Nodes of a job.", "size", ""),
        (
            "job_share",
            "gauge",
            "Part of the storage that the policy entitles a job to.",
            "share",
            "",
        ),
        (
            "job_bytes_total",
            "counter",
            "Bytes that a job moved.",
            "bytes_read",
            ",direction=\"read\"",
        ),
        (
            "job_bytes_total",
            "counter",
            "",
            "bytes_written",
            ",direction=\"written\"",
        ),
        (
            "job_operations_total",
            "counter",
            "Requests of a job.",
            "operations",
            "",
        ),
    ] {
        if !about.is_empty() {
            head(&mut out, what, kind, about);
        }
        for job in jobs.iter().filter(|job| !job[field].is_null()) {
            let (name, user) = (label(job["job"].as_str().unwrap_or("")), &job["user"]);
            let _ = writeln!(
                out,
                "fairshare_{what}{{job={name},user=\"{user}\"{more}}} {}",
                number(&job[field])
            );
        }
    }
    out
}

fn head(out: &mut String, what: &str, kind: &str, about: &str) {
    let _ = write!(
        out,
        "# HELP fairshare_{what} {about}\n# TYPE fairshare_{what} {kind}\n"
    );
}

fn number(value: &Value) -> String {
    value.to_string()
}

/// A label's value in quotes. Job names are printable, but may have quotes and backslashes.
fn label(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_end_early() {
        assert_eq!(label(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(label("two\nlines"), "\"two\\nlines\"");
    }
}
