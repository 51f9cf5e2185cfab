//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::{CostModel, Policy, SchedulerKind, Settings};

use crate::safe;

pub const USAGE: &str = "\
fairshare-server: shares a folder's storage among jobs by a policy

  fairshare-server --data DIR [options]

  --data DIR            the data folder (made where it is not there); on the storage that is shared
  --socket PATH         Unix socket for clients on this machine (default: NAME.socket in the runtime folder, NAME
                        being DIR's: /run/fairshare for root, else $XDG_RUNTIME_DIR/fairshare)
  --listen ADDRESS      also serve clients elsewhere, on this TCP address (host:port)
  --cleartext           let --listen and --exchange be other than this machine's own addresses: what goes over
                        them is neither encrypted nor, for files, protected from change
  --policy NAME         fifo, job-fair, user-fair, size-fair, priority-fair, or levels joined, as in
                        user-then-size-fair (default: user-fair)
  --jobs WHOSE          who may make jobs: administrator (the default: Slurm's jobs, and tickets that root or
                        the server's user had signed; all else is one job of its user), or users (anybody's own
                        tickets also count as jobs of one node)
  --scheduler NAME      stride, token, gift, gift-published, tbf, tbf-published, fifo (default: stride)
  --parallel N          requests that are served at a time (default: half of the processors, at most 8)
  --charge BYTES        what an operation costs a job beside its bytes (default: 32768; with --rate as much as the
                        storage gives in the time that an operation takes, 4.2 microseconds, if that is less)
  --charge-requests     every request costs the same, as in the ThemisIO paper's code
  --rate BYTES          bytes per second that the storage gives, reads and writes together: no more is
                        served, so that requests wait here, where the policy decides (default: 0, no limit;
                        gift-published and tbf-published then count on 10000000000)
  --anticipation MICROSECONDS
                        stride: how long to wait for the next request of a job that is due (default: 0)
  --credit BYTES        stride: how far a job may catch up (default: 16777216)
  --exchange ADDRESS    exchange job tables with other servers: receive them on this UDP address
  --peer ADDRESS        where another server receives them (repeat for each)
  --lambda MILLISECONDS time between exchanges (default: 500)
  --key FILE            key that all these servers share: signs tickets and tables (default: one of its own)
  --stripe BYTES        stripe new files over the client's servers in pieces of so many bytes; a multiple
                        of 4096 (default: 0, they are not striped); needs --key
  --slurm COMMAND       what says how many nodes a Slurm job has, {job} stands for its number; empty: nothing
                        (default: scontrol -o show job {job})
  --mount PATH          also mount the files here, by FUSE
  --apart               mount them in namespaces of its own, of which the first line printed names a process to join
  --config FILE         more options, one in a line without its dashes, as `policy size-fair`; # begins a comment.
                        Those of the command line win. On SIGHUP (tiercel share reload) policy, scheduler, rate and
                        jobs are read anew; clients stay
  --log FILE            who joined as what, who was refused and what was changed: JSON, a line for each; - is
                        standard error
  --metrics ADDRESS     answer GET /metrics on this TCP address, for Prometheus
  --files N             open files for each user (default: 65536)
  --clients N           connected processes for each user (default: 4096)
";

/// Whose word makes jobs beside Slurm's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Makers {
    Administrator,
    Users,
}

impl Makers {
    pub fn name(self) -> &'static str {
        match self {
            Makers::Administrator => "administrator",
            Makers::Users => "users",
        }
    }
}

impl std::str::FromStr for Makers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Makers::Administrator, Makers::Users]
            .into_iter()
            .find(|makers| makers.name() == text)
            .ok_or_else(|| format!("--jobs wants administrator or users, not {text:?}"))
    }
}

pub struct Config {
    pub data: PathBuf,
    pub socket: Option<PathBuf>,
    pub listen: Option<String>,
    pub cleartext: bool,
    pub policy: Policy,
    pub policy_name: String,
    pub scheduler: SchedulerKind,
    pub settings: Settings,
    /// What a request costs, where that was said.
    pub charge: Option<CostModel>,
    pub parallel: usize,
    /// Bytes per second of the storage; 0: unknown, no limit.
    pub rate: u64,
    /// Workers beyond `parallel`: for those that wait for devices, and to listen.
    pub spare: usize,
    pub exchange: Option<String>,
    pub peers: Vec<String>,
    pub lambda: Duration,
    pub key: Option<PathBuf>,
    pub stripe: u32,
    pub slurm: String,
    pub jobs: Makers,
    pub mount: Option<PathBuf>,
    pub apart: bool,
    pub log: Option<PathBuf>,
    pub metrics: Option<String>,
    /// As they were given, to be read anew.
    pub arguments: Vec<String>,
    pub most_handles: usize,
    pub most_sessions: usize,
}

/// What can change while the server runs.
pub struct Live {
    pub policy_name: String,
    pub scheduler: SchedulerKind,
    /// Bytes per second of the storage; 0: unknown, no limit.
    pub rate: u64,
    pub jobs: Makers,
}

impl Config {
    /// What of this can change while the server runs.
    pub fn live(&self) -> Live {
        Live {
            policy_name: self.policy_name.clone(),
            scheduler: self.scheduler,
            rate: self.rate,
            jobs: self.jobs,
        }
    }

    /// What requests cost where the storage gives so much.
    pub fn cost(&self, rate: u64) -> CostModel {
        self.charge.unwrap_or_else(|| CostModel::of_storage(rate))
    }

    /// The options that another configuration has otherwise, and that cannot change while the server runs.
    pub fn fixed_that_differ(&self, other: &Self) -> Vec<&'static str> {
        let pairs = [
            ("--data", self.data == other.data),
            ("--socket", self.socket == other.socket),
            ("--listen", self.listen == other.listen),
            ("--cleartext", self.cleartext == other.cleartext),
            ("--charge", self.charge == other.charge),
            (
                "--anticipation",
                self.settings.anticipation == other.settings.anticipation,
            ),
            ("--credit", self.settings.credit == other.settings.credit),
            ("--parallel", self.parallel == other.parallel),
            ("--exchange", self.exchange == other.exchange),
            ("--peer", self.peers == other.peers),
            ("--lambda", self.lambda == other.lambda),
            ("--key", self.key == other.key),
            ("--stripe", self.stripe == other.stripe),
            ("--slurm", self.slurm == other.slurm),
            ("--mount", self.mount == other.mount),
            ("--log", self.log == other.log),
            ("--metrics", self.metrics == other.metrics),
            ("--files", self.most_handles == other.most_handles),
            ("--clients", self.most_sessions == other.most_sessions),
        ];
        pairs
            .into_iter()
            .filter(|(_, same)| !same)
            .map(|(name, _)| name)
            .collect()
    }

    /// Read the arguments behind the program's name, and the file that they name. The error is a sentence for
    /// the user.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let given: Vec<String> = arguments.into_iter().collect();
        let mut arguments = Vec::new();
        if let Some(at) = given.iter().position(|name| name == "--config") {
            let file = given.get(at + 1).ok_or("--config wants a value")?;
            arguments = options_of_file(file)?;
        }
        arguments.extend(given.iter().cloned());
        let mut data = None;
        let mut config = Self {
            data: PathBuf::new(),
            socket: None,
            listen: None,
            cleartext: false,
            policy: Policy::parse("user-fair").expect("known"),
            policy_name: "user-fair".into(),
            scheduler: SchedulerKind::Stride,
            settings: Settings::default(),
            charge: None,
            parallel: std::thread::available_parallelism()
                .map_or(1, |n| n.get() / 2)
                .clamp(1, 8),
            spare: 6,
            rate: 0,
            exchange: None,
            peers: Vec::new(),
            lambda: Duration::from_millis(500),
            key: None,
            stripe: 0,
            jobs: Makers::Administrator,
            slurm: "scontrol -o show job {job}".into(),
            mount: None,
            apart: false,
            log: None,
            metrics: None,
            arguments: given,
            most_handles: 65536,
            most_sessions: 4096,
        };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{name} wants a value"));
            match name.as_str() {
                "--data" => data = Some(PathBuf::from(value()?)),
                "--socket" => config.socket = Some(PathBuf::from(value()?)),
                "--listen" => config.listen = Some(value()?),
                "--cleartext" => {
                    config.cleartext = true;
                    continue;
                }
                "--apart" => {
                    config.apart = true;
                    continue;
                }
                "--policy" => {
                    config.policy_name = value()?;
                    config.policy = Policy::parse(&config.policy_name).map_err(|error| error.to_string())?;
                }
                "--scheduler" => config.scheduler = value()?.parse()?,
                "--parallel" => config.parallel = number(&name, &value()?, 1, 1024)? as usize,
                "--charge" => {
                    let per_operation = number(&name, &value()?, 0, 1 << 40)?;
                    config.charge = Some(CostModel::Bytes { per_operation });
                }
                "--charge-requests" => config.charge = Some(CostModel::Request),
                "--rate" => {
                    config.rate = number(&name, &value()?, 0, 1 << 50)?;
                    if config.rate > 0 {
                        config.settings.rate = config.rate as f64;
                    }
                }
                "--anticipation" => {
                    config.settings.anticipation = number(&name, &value()?, 0, 1_000_000)? * 1000;
                }
                "--credit" => config.settings.credit = number(&name, &value()?, 0, 1 << 50)?,
                "--exchange" => config.exchange = Some(value()?),
                "--peer" => config.peers.push(value()?),
                "--lambda" => config.lambda = Duration::from_millis(number(&name, &value()?, 1, 60_000)?),
                "--key" => config.key = Some(PathBuf::from(value()?)),
                "--slurm" => config.slurm = value()?,
                "--jobs" => config.jobs = value()?.parse()?,
                "--stripe" => config.stripe = number(&name, &value()?, 0, 1 << 30)? as u32,
                "--config" => {
                    value()?;
                }
                "--log" => config.log = Some(PathBuf::from(value()?)),
                "--metrics" => config.metrics = Some(value()?),
                "--mount" => config.mount = Some(PathBuf::from(value()?)),
                "--files" => config.most_handles = number(&name, &value()?, 1, 1 << 30)? as usize,
                "--clients" => config.most_sessions = number(&name, &value()?, 1, 1 << 20)? as usize,
                _ => return Err(format!("{name} is not an option (--help lists them)")),
            }
        }
        config.data = data.ok_or("--data DIR is missing")?;
        if !config.peers.is_empty() && (config.exchange.is_none() || config.key.is_none()) {
            return Err("--peer needs --exchange ADDRESS and --key FILE".into());
        }
        let addresses = [
            ("--listen", &config.listen),
            ("--exchange", &config.exchange),
            ("--metrics", &config.metrics),
        ];
        for (name, address) in addresses {
            if let Some(address) = address.as_ref().filter(|a| !config.cleartext && !stays_here(a)) {
                return Err(format!(
                    "{name} {address}: others could read and change what goes over the network: \
                     --cleartext allows it (on a network of trusted machines)"
                ));
            }
        }
        if config.stripe % 4096 != 0 {
            return Err("--stripe wants a multiple of 4096 bytes".into());
        }
        if config.stripe > 0 && config.key.is_none() {
            return Err("--stripe needs --key FILE, the same for all servers".into());
        }
        Ok(config)
    }
}

/// The options that a file holds, as a command line has them.
fn options_of_file(file: &str) -> Result<Vec<String>, String> {
    let text = safe::text(Path::new(file)).map_err(|error| format!("--config {file}: {error}"))?;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if name.starts_with('-') || name == "config" {
            let number = number + 1;
            return Err(format!(
                "--config {file}: line {number}: wants an option without its dashes, not {name:?}"
            ));
        }
        found.push(format!("--{name}"));
        let value = value.trim().trim_start_matches('=').trim();
        if !value.is_empty() {
            found.push(value.to_owned());
        }
    }
    Ok(found)
}

/// Whether an address (host:port) is reached from this machine alone.
fn stays_here(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

fn number(name: &str, text: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!(
            "{name} wants a number from {least} to {most}, not {text:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Config, String> {
        Config::parse(arguments.iter().map(|a| (*a).to_owned()))
    }

    #[test]
    fn a_misspelt_policy_is_named() {
        let error = parse(&["--data", "x", "--policy", "sise-fair"]).err().unwrap();
        assert!(error.contains("sise-fair"), "{error}");
    }

    #[test]
    fn what_is_missing_or_out_of_range_is_refused() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["--data", "x", "--parallel", "0"]).is_err());
    }

    #[test]
    fn a_pipe_is_no_configuration() {
        let pipe = std::env::temp_dir().join(format!("fairshare-pipe-{}", std::process::id()));
        let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
        // SAFETY: a path that ends in a zero.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let error = parse(&["--config", pipe.to_str().unwrap()]).err().unwrap();
        std::fs::remove_file(&pipe).unwrap();
        assert!(error.ends_with("is not a file"), "{error}");
    }

    #[test]
    fn other_machines_only_in_clear_text() {
        let with =
            |address: &str, more: &[&str]| parse(&[&["--data", "x", "--listen", address], more].concat());
        for here in ["127.0.0.1:7000", "localhost:7000", "[::1]:7000"] {
            assert!(with(here, &[]).is_ok(), "{here}");
        }
        for elsewhere in [
            "0.0.0.0:7000",
            "10.0.0.1:7000",
            "[::]:7000",
            "node1:7000",
            "127.0.0.1.evil:1",
        ] {
            assert!(with(elsewhere, &[]).is_err(), "{elsewhere}");
            assert!(with(elsewhere, &["--cleartext"]).unwrap().cleartext);
        }
    }

    #[test]
    fn stripes_are_whole_pages_and_need_a_key() {
        let with = |size: &str, more: &[&str]| parse(&[&["--data", "x", "--stripe", size], more].concat());
        assert_eq!(with("65536", &["--key", "k"]).unwrap().stripe, 65536);
        assert!(with("65537", &["--key", "k"]).is_err());
        assert!(with("65536", &[]).is_err());
    }
}
