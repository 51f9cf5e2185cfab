//! The program `fairshare-server`.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use server::config::{Config, USAGE};
use server::data::DataFolder;
use server::door::Door;
use server::server::{serves_all, Server};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .iter()
        .any(|argument| argument == "--help" || argument == "-h")
    {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("fairshare-server: {reason}");
            ExitCode::from(2)
        }
    }
}

fn serve(arguments: Vec<String>) -> Result<(), String> {
    let config = Config::parse(arguments)?;
    // SAFETY: plain calls, before any other thread runs.
    unsafe {
        libc::umask(0); // modes are the clients' own, masked by them
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
    server::catch_unreadable_pages();
    let data = DataFolder::open(&config.data, config.key.as_deref(), config.stripe)?;
    let door = Door::open(config.socket.as_deref(), &config.data)?;
    let socket = door.path.clone();
    let listen = config.listen.clone();
    let ends = signals_that_end();
    let server = Server::start(config, data, door).map_err(|error| {
        let text = std::io::Error::from_raw_os_error(error.0);
        let where_to = listen.map_or(String::new(), |address| format!(" on {address}"));
        format!("cannot listen{where_to}: {text}")
    })?;
    end_on_signal(Arc::clone(&server), ends);
    let mount = server.config.mount.clone();
    // Unmounted when this goes, after the workers have ended.
    let _mounted = mount.map(|path| server::mount(&server, &path)).transpose()?;
    let whom = if serves_all() { "all users" } else { "its own user" };
    println!("fairshare-server: ready on {} for {whom}", socket.display());
    let _ = std::io::stdout().flush();
    server::worker::run(&server);
    let _ = std::fs::remove_file(&socket);
    Ok(())
}

/// SIGTERM and SIGINT end the server in order. Blocked before any other thread runs, so that all of them do.
fn signals_that_end() -> libc::sigset_t {
    // SAFETY: a signal set of our own.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}

fn end_on_signal(server: Arc<Server>, set: libc::sigset_t) {
    std::thread::spawn(move || {
        let mut number = 0;
        // SAFETY: a set that was made above.
        unsafe {
            libc::sigwait(&set, &mut number);
        }
        server.shut_down();
    });
}
