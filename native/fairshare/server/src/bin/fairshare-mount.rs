//! The program `fairshare-mount`: shows a server's files on this machine, as one user's and one job's.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use server::{show_remote, Remote};

const USAGE: &str = "\
usage: fairshare-mount --server ADDRESS --mount FOLDER [--apart] [--leave]

Mount the files of a fairshare server on an empty folder, until SIGTERM.

  --server ADDRESS  the path of the server's socket, or tcp:HOST:PORT
  --mount FOLDER    where programs are to see the files
  --apart           in namespaces of its own, of which the first line printed names a process to join
  --leave           end when the server has gone

FAIRSHARE_TICKET    says whose job this is (tiercel share ticket), or @ and a file that has it; needed over TCP
FAIRSHARE_PATIENCE  seconds to wait for a server that has gone (default: 30)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("fairshare-mount: {reason}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Vec<String>) -> Result<(), String> {
    let (mut address, mut path, mut apart, mut leave) = (None, None, false, false);
    let mut arguments = arguments.into_iter();
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--server" => address = Some(value()?),
            "--mount" => path = Some(PathBuf::from(value()?)),
            "--apart" => apart = true,
            "--leave" => leave = true,
            _ => return Err(format!("{name} is not an option (--help lists them)")),
        }
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let patience = match variable("FAIRSHARE_PATIENCE") {
        Some(text) => text
            .parse()
            .map_err(|_| format!("FAIRSHARE_PATIENCE: {text:?} is not a number of seconds"))?,
        None => 30,
    };
    let remote = Remote {
        address: address.ok_or("--server ADDRESS is missing")?,
        ticket: variable("FAIRSHARE_TICKET"),
        patience: Duration::from_secs(patience),
        leave,
    };
    let path = path.ok_or("--mount FOLDER is missing")?;
    // Before any thread runs, so that all of them leave these to us.
    // SAFETY: a signal set of our own.
    let signals = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    };
    let (mounted, holder) = show_remote(remote, &path, apart)?;
    println!(
        "fairshare-mount: ready on {}{}",
        path.display(),
        server::to_join(holder)
    );
    let _ = std::io::stdout().flush();
    let mut number = 0;
    // SAFETY: a set that was made above.
    unsafe { libc::sigwait(&signals, &mut number) };
    drop(mounted);
    Ok(())
}
