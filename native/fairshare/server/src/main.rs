//! The program `fairshare-server`.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use server::config::{Config, USAGE};
use server::data::DataFolder;
use server::door::Door;
use server::log::Log;
use server::{serves_all, Server};

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
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN); // under `ulimit -f` a client's long file is EFBIG, not our end
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
    server::catch_unreadable_pages();
    let data = DataFolder::open(&config.data, config.key.as_deref())?;
    let door = Door::open(config.socket.as_deref(), &config.data)?;
    let log = Log::open(config.log.clone())?;
    let socket = door.path.clone();
    let (listen, metrics) = (config.listen.clone(), config.metrics.clone());
    let signals = signals_that_are_heard();
    let server = server::start(config, data, door, log).map_err(|error| {
        let text = std::io::Error::from_raw_os_error(error.0);
        let where_to = listen
            .or(metrics)
            .map_or(String::new(), |address| format!(" on {address}"));
        format!("cannot listen{where_to}: {text}")
    })?;
    hear_signals(Arc::clone(&server), signals);
    let (mount, apart) = (server.config.mount.clone(), server.config.apart);
    // Unmounted when this goes, after the workers have ended.
    let mounted = mount
        .map(|path| server::mount(&server, &path, apart))
        .transpose()?;
    let holder = mounted.as_ref().and_then(|(_, holder)| *holder);
    let whom = if serves_all() { "all users" } else { "its own user" };
    let over_tcp = server
        .tcp_port()
        .map_or(String::new(), |port| format!(", TCP port {port}"));
    println!(
        "fairshare-server: ready on {} for {whom}{over_tcp}{}",
        socket.display(),
        server::to_join(holder)
    );
    let _ = std::io::stdout().flush();
    tell_systemd("READY=1");
    let about = serde_json::json!({"policy": server.config.live.policy_name, "rate": server.config.live.rate,
        "data": server.config.data, "socket": socket});
    server.log.tell("began", about);
    server::worker::run(&server);
    server.log.tell("ended", serde_json::Value::Null);
    let _ = std::fs::remove_file(&socket);
    Ok(())
}

/// SIGTERM and SIGINT end the server in order, SIGHUP makes it read its options anew. Blocked before any other
/// thread runs, so that all of them do.
fn signals_that_are_heard() -> libc::sigset_t {
    // SAFETY: a signal set of our own.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}

fn hear_signals(server: Arc<Server>, set: libc::sigset_t) {
    std::thread::spawn(move || loop {
        let mut number = 0;
        // SAFETY: a set that was made above.
        unsafe {
            libc::sigwait(&set, &mut number);
        }
        if number != libc::SIGHUP {
            return server.shut_down();
        }
        match server.reload("SIGHUP") {
            Ok(text) => eprintln!("fairshare-server: reloaded: {text}"),
            Err(text) => eprintln!("fairshare-server: not reloaded: {text}"),
        }
    });
}

/// Tell systemd how the server is, where it is one that asks for it (sd_notify(3)).
fn tell_systemd(state: &str) {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let Some(to) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let name = to.to_string_lossy().into_owned();
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    if let (Ok(socket), Ok(address)) = (UnixDatagram::unbound(), address) {
        let _ = socket.send_to_addr(state.as_bytes(), &address);
    }
}
