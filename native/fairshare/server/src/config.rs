//! The server's options: a TOML file, and the command line over it.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use policy::{CostModel, Policy, SchedulerKind, Settings};
use serde::de::{Deserializer, Error as _, Visitor};
use serde::Deserialize;
use toml::{Table, Value};

use crate::safe;

pub const USAGE: &str = "\
fairshare-server: share a folder's storage among jobs by a policy

  fairshare-server --data DIR [options]
  fairshare-server --config FILE [options]

  --config FILE         TOML file with these options, as in `policy = \"size-fair\"`. An option of the command
                        line replaces the key of that name. On SIGHUP (`tiercel share reload`) the server reads
                        policy, scheduler, rate and jobs again; clients stay connected.
  --data DIR            data folder, on the storage that is shared; created if missing
  --socket PATH         Unix socket for clients on this machine (default: NAME.socket in /run/fairshare for root,
                        else in $XDG_RUNTIME_DIR/fairshare; NAME is DIR's name)
  --listen ADDRESS      also serve clients on other machines, on this TCP address (host:port)
  --cleartext           allow --listen, --exchange and --metrics on addresses other than loopback. Nothing is
                        encrypted, and file data are not protected from modification.
  --policy NAME         fifo, job-fair, user-fair, size-fair, priority-fair, or joined levels such as
                        user-then-size-fair (default: user-fair)
  --scheduler NAME      stride, token, gift, tbf, fifo (default: stride)
  --jobs WHO            who may define jobs besides Slurm: administrator (default; tickets that root or the
                        server's user requested) or users (any user's own tickets, each a job of one node)
  --parallel N          requests served at a time (default: half of the processors, at most 8)
  --rate SIZE           bytes per second of the storage, reads and writes together, as 400MiB. The server serves
                        no more, so that requests queue here, where the policy decides (default: 0, no limit)
  --charge SIZE         cost of an operation in addition to its bytes (default: 32KiB; with --rate at most what
                        the storage moves in 4.2 microseconds)
  --credit SIZE         stride: how far an idle job may catch up (default: 16MiB)
  --exchange ADDRESS    exchange job tables with other servers; receive them on this UDP address
  --peer ADDRESS        another server's --exchange address (repeat for each; in the file: peers = [...])
  --lambda MILLISECONDS time between exchanges (default: 500)
  --key FILE            key that all these servers share: signs tickets and tables (default: the server's own)
  --slurm COMMAND       prints the number of nodes of Slurm job {job}; empty: never asked
                        (default: scontrol -o show job {job})
  --mount PATH          also mount the files here (FUSE)
  --apart               mount them in namespaces of their own; the first line of output names a process in them
  --log FILE            JSON lines: who joined, who was refused, what changed (- is standard error)
  --metrics ADDRESS     answer GET /metrics on this TCP address, for Prometheus
  --files N             open files for each user (default: 65536)
  --clients N           connected processes for each user (default: 4096)
";

/// Keys that [`crate::server::Server::reload`] can change while the server runs.
const LIVE: [&str; 4] = ["policy", "scheduler", "rate", "jobs"];

/// Who may define jobs besides Slurm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
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

/// A whole number from LEAST to MOST: a TOML integer, or text such as `4` or `400MiB`.
struct Whole<const LEAST: u64, const MOST: u64>(u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number(u64, u64);
        impl Visitor<'_> for Number {
            type Value = u64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number from {} to {}", self.0, self.1)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<u64, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<u64, E> {
                size(text)
                    .filter(|number| (self.0..=self.1).contains(number))
                    .ok_or_else(|| {
                        E::custom(format!(
                            "must be a number from {} to {}, not {text:?}",
                            self.0, self.1
                        ))
                    })
            }
        }
        from.deserialize_any(Number(LEAST, MOST)).map(Self)
    }
}

/// A number with an optional binary (KiB) or decimal (KB) unit.
fn size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (prefix, base) = match unit.trim_end_matches('B') {
        "" => return (unit.len() < 2).then_some(number.parse().ok()).flatten(),
        prefix => match prefix.strip_suffix('i') {
            Some(prefix) => (prefix, 1024_u64),
            None => (prefix, 1000),
        },
    };
    let power = ["K", "M", "G", "T"].iter().position(|known| *known == prefix)?;
    let number: u64 = number.parse().ok()?;
    number.checked_mul(base.pow(power as u32 + 1))
}

/// A name that `T` reads: a policy or a scheduler.
struct Named<T>(String, T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        match name.parse() {
            Ok(known) => Ok(Self(name, known)),
            Err(error) => Err(D::Error::custom(error)),
        }
    }
}

/// A scheduler that a server runs: the published variants belong to the simulator's comparison with the paper.
#[derive(Clone, Copy)]
struct Served(SchedulerKind);

impl FromStr for Served {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let served = || {
            SchedulerKind::ALL
                .into_iter()
                .filter(|(_, kind)| !kind.is_published())
        };
        let found = served().find(|(known, _)| *known == name);
        found.map(|(_, kind)| Self(kind)).ok_or_else(|| {
            let names: Vec<&str> = served().map(|(known, _)| known).collect();
            format!(
                "{name:?} is not a scheduler of a server: use one of {}",
                names.join(", ")
            )
        })
    }
}

macro_rules! options {
    ($($name:ident: $type:ty,)*) => {
        /// The options as they were written.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Options {
            $($name: Option<$type>,)*
        }

        const KEYS: &[&str] = &[$(stringify!($name)),*];
    };
}

const LARGEST: u64 = 1 << 50;

options! {
    data: PathBuf,
    socket: PathBuf,
    listen: String,
    cleartext: bool,
    policy: Named<Policy>,
    scheduler: Named<Served>,
    jobs: Makers,
    parallel: Whole<1, 1024>,
    rate: Whole<0, LARGEST>,
    charge: Whole<0, LARGEST>,
    credit: Whole<0, LARGEST>,
    exchange: String,
    peers: Vec<String>,
    lambda: Whole<1, 60_000>,
    key: PathBuf,
    slurm: String,
    mount: PathBuf,
    apart: bool,
    log: PathBuf,
    metrics: String,
    files: Whole<1, { 1 << 30 }>,
    clients: Whole<1, { 1 << 20 }>,
}

pub struct Config {
    pub data: PathBuf,
    pub socket: Option<PathBuf>,
    pub listen: Option<String>,
    pub policy: Policy,
    pub settings: Settings,
    /// Cost of an operation, if it was configured.
    charge: Option<u64>,
    pub parallel: usize,
    /// Workers beyond `parallel`: for requests that wait for devices, and to listen.
    pub spare: usize,
    pub exchange: Option<String>,
    pub peers: Vec<String>,
    pub lambda: Duration,
    pub key: Option<PathBuf>,
    pub slurm: String,
    pub mount: Option<PathBuf>,
    /// Whether it is mounted in namespaces of its own.
    pub apart: bool,
    pub log: Option<PathBuf>,
    pub metrics: Option<String>,
    pub most_handles: usize,
    pub most_sessions: usize,
    pub live: Live,
    /// The command line, to be read again on reload.
    pub arguments: Vec<String>,
    /// All keys that were set, of file and command line.
    set: Table,
}

/// What can change while the server runs.
#[derive(Clone)]
pub struct Live {
    pub policy_name: String,
    pub scheduler: SchedulerKind,
    /// Bytes per second of the storage; 0: unknown, no limit.
    pub rate: u64,
    pub jobs: Makers,
}

impl Config {
    /// What requests cost if the storage moves `rate` bytes per second.
    pub fn cost(&self, rate: u64) -> CostModel {
        match self.charge {
            Some(per_operation) => CostModel::Bytes { per_operation },
            None => CostModel::of_storage(rate),
        }
    }

    /// The keys that another configuration sets otherwise, and that need a restart.
    pub fn fixed_that_differ(&self, other: &Self) -> Vec<&'static str> {
        let differs = |key: &&&str| self.set.get(**key) != other.set.get(**key) && !LIVE.contains(*key);
        KEYS.iter().filter(differs).copied().collect()
    }

    /// Read the arguments after the program's name, and the file that they name. The error is one line for the user.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let arguments: Vec<String> = arguments.into_iter().collect();
        let (command_line, file) = command_line(&arguments)?;
        let file = file
            .map(|path| ConfigFile::read(&path))
            .transpose()?
            .unwrap_or_default();
        let mut set = file.table.clone();
        set.extend(command_line.clone());
        let origin = |key: &str| match command_line.contains_key(key) {
            true => option(key),
            false => file.place(key),
        };
        for (key, value) in &set {
            let one = Table::from_iter([(key.clone(), value.clone())]);
            Options::deserialize(one).map_err(|error| format!("{}: {}", origin(key), error.message()))?;
        }
        let given = Options::deserialize(set.clone()).map_err(|error| error.message().to_owned())?;
        let number = |number: Option<u64>, default: u64| number.unwrap_or(default);
        let rate = number(given.rate.map(|n| n.0), 0);
        let mut settings = Settings::default();
        settings.credit = number(given.credit.map(|n| n.0), settings.credit);
        let (policy_name, policy) = match given.policy {
            Some(Named(name, policy)) => (name, policy),
            None => ("user-fair".into(), Policy::parse("user-fair").expect("known")),
        };
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if given.peers.iter().flatten().next().is_some() && (given.exchange.is_none() || given.key.is_none())
        {
            return Err(format!("{}: also needs exchange and key", origin("peers")));
        }
        let addresses = [
            ("listen", &given.listen),
            ("exchange", &given.exchange),
            ("metrics", &given.metrics),
        ];
        let cleartext = given.cleartext.unwrap_or(false);
        for (key, address) in addresses {
            if let Some(address) = address
                .as_ref()
                .filter(|address| !cleartext && !is_loopback(address))
            {
                return Err(format!(
                    "{}: {address} is reached over a network, where others could read and change the traffic: \
                     cleartext allows it, for a network of trusted machines",
                    origin(key)
                ));
            }
        }
        Ok(Self {
            data: given
                .data
                .ok_or("--data DIR is missing (or `data` in the file that --config names)")?,
            socket: given.socket,
            listen: given.listen,
            policy,
            settings,
            charge: given.charge.map(|n| n.0),
            parallel: number(given.parallel.map(|n| n.0), (processors as u64 / 2).clamp(1, 8)) as usize,
            spare: 6,
            exchange: given.exchange,
            peers: given.peers.unwrap_or_default(),
            lambda: Duration::from_millis(number(given.lambda.map(|n| n.0), 500)),
            key: given.key,
            slurm: given.slurm.unwrap_or_else(|| "scontrol -o show job {job}".into()),
            mount: given.mount,
            apart: given.apart.unwrap_or(false),
            log: given.log,
            metrics: given.metrics,
            most_handles: number(given.files.map(|n| n.0), 65536) as usize,
            most_sessions: number(given.clients.map(|n| n.0), 4096) as usize,
            live: Live {
                policy_name,
                scheduler: given.scheduler.map_or(SchedulerKind::Stride, |named| named.1 .0),
                rate,
                jobs: given.jobs.unwrap_or(Makers::Administrator),
            },
            arguments,
            set,
        })
    }
}

/// How the command line spells a key.
fn option(key: &str) -> String {
    format!("--{}", if key == "peers" { "peer" } else { key })
}

/// The options of a command line, and the file that `--config` names.
fn command_line(arguments: &[String]) -> Result<(Table, Option<PathBuf>), String> {
    let (mut table, mut file) = (Table::new(), None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let key = match word.strip_prefix("--") {
            Some("peer") => "peers",
            Some(key) if key == "config" || KEYS.contains(&key) && key != "peers" => key,
            _ => {
                return Err(unknown(
                    word,
                    KEYS.iter().map(|key| option(key)).chain(["--config".into()]),
                ))
            }
        };
        if matches!(key, "cleartext" | "apart") {
            table.insert(key.into(), Value::Boolean(true));
            continue;
        }
        let value = words.next().filter(|value| !value.starts_with("--"));
        let value = value.ok_or_else(|| format!("{word}: needs a value"))?;
        match key {
            "config" => file = Some(PathBuf::from(value)),
            "peers" => {
                let peers = table.entry(key).or_insert_with(|| Value::Array(Vec::new()));
                peers
                    .as_array_mut()
                    .expect("made above")
                    .push(Value::String(value.clone()));
            }
            _ => drop(table.insert(key.into(), Value::String(value.clone()))),
        }
    }
    Ok((table, file))
}

/// A name that is not known, and the nearest one that is.
fn unknown(name: &str, known: impl Iterator<Item = String>) -> String {
    let nearest = known.min_by_key(|known| policy::distance(name, known));
    let nearest = nearest.map_or(String::new(), |nearest| format!("; the nearest is `{nearest}`"));
    format!("`{name}` is not an option{nearest} (--help lists all)")
}

#[derive(Default)]
struct ConfigFile {
    path: PathBuf,
    table: Table,
    /// The line of each key, from 1.
    lines: HashMap<String, usize>,
}

impl ConfigFile {
    fn read(path: &Path) -> Result<Self, String> {
        let text = safe::text(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
        let syntax = |error: toml::de::Error| {
            let number = line(error.span().map_or(0, |span| span.start));
            let written = text.lines().nth(number - 1).unwrap_or("").trim();
            let word = written.split([' ', '\t', '=']).next().unwrap_or("");
            let place = format!("{}: line {number}: `{word}`", path.display());
            if !written.contains('=') && KEYS.contains(&word) {
                let value = written[word.len()..].trim();
                return format!(
                    "{place}: is written as older servers read it: in TOML it is `{word} = \"{value}\"`"
                );
            }
            format!("{place}: {}", error.message().replace('\n', ", "))
        };
        let spans = toml::de::DeTable::parse(&text).map_err(syntax)?;
        let lines: HashMap<String, usize> = spans
            .get_ref()
            .keys()
            .map(|key| (key.get_ref().to_string(), line(key.span().start)))
            .collect();
        let table = text.parse().map_err(syntax)?;
        let file = Self {
            path: path.to_owned(),
            table,
            lines,
        };
        match file.table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            Some(key) => Err(format!(
                "{}: line {}: {}",
                path.display(),
                file.lines[key],
                unknown(key, KEYS.iter().map(|key| (*key).to_owned()))
            )),
            None => Ok(file),
        }
    }

    fn place(&self, key: &str) -> String {
        match self.lines.get(key) {
            Some(line) => format!("{}: line {line}: `{key}`", self.path.display()),
            None => format!("`{key}`"),
        }
    }
}

/// Whether an address (host:port) is reached from this machine only.
fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Config, String> {
        Config::parse(arguments.iter().map(|a| (*a).to_owned()))
    }

    /// Parse a file with this text, and `more` options after it. In an error the file is called FILE.
    fn parse_file(name: &str, text: &str, more: &[&str]) -> Result<Config, String> {
        let path = std::env::temp_dir().join(format!("fairshare-config-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let parsed = parse(&[&["--config", path], more].concat());
        std::fs::remove_file(path).unwrap();
        parsed.map_err(|error| error.replace(path, "FILE"))
    }

    fn refused(name: &str, text: &str) -> String {
        parse_file(name, text, &[]).err().unwrap()
    }

    #[test]
    fn the_command_line_replaces_keys_of_the_file() {
        let text =
            "data = '/d'\npolicy = 'size-fair'\nrate = '50MiB'\nparallel = 3\npeers = ['a:1', 'b:1']\n\
                    exchange = 'localhost:1'\nkey = 'k'\n";
        let config = parse_file("over", text, &["--policy", "job-fair", "--peer", "c:1"]).unwrap();
        assert_eq!(config.live.policy_name, "job-fair");
        assert_eq!((config.live.rate, config.parallel), (50 << 20, 3));
        assert_eq!(config.peers, ["c:1"]);
        let other = parse_file("over", &text.replace("= 3", "= 4"), &[]).unwrap();
        assert_eq!(config.fixed_that_differ(&other), ["parallel", "peers"]);
    }

    #[test]
    fn an_error_names_file_line_and_key() {
        for (text, place) in [
            ("data = 'd'\npolicy = 'sise-fair'\n", "FILE: line 2: `policy`: "),
            (
                "data = 'd'\n\n# a comment\nparallel = 0\n",
                "FILE: line 4: `parallel`: ",
            ),
            ("rate = '50 parsecs'\n", "FILE: line 1: `rate`: "),
            ("data = 'd'\ncleartext = 'yes'\n", "FILE: line 2: `cleartext`: "),
            ("data = 'd'\nlisten = 'node1:7'\n", "FILE: line 2: `listen`: "),
            ("data = 'd'\npeers = ['a:1']\n", "FILE: line 2: `peers`: "),
            (
                "data = 'd'\nscheduler = 'gift-published'\n",
                "FILE: line 2: `scheduler`: ",
            ),
            ("data = 'd'\npolicy =\nrate = 3\n", "FILE: line 2: `policy`: "),
            ("data = 'd'\nrate = 3\nrate = 4\n", "FILE: line 3: `rate`: "),
        ] {
            let error = refused("place", text);
            assert!(error.starts_with(place) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest() {
        let error = refused("unknown", "data = 'd'\npolcy = 'fifo'\n");
        assert!(
            error.starts_with("FILE: line 2: `polcy` ") && error.contains("`policy`"),
            "{error}"
        );
        let error = parse(&["--data", "x", "--schedular", "fifo"]).err().unwrap();
        assert!(error.contains("`--scheduler`"), "{error}");
    }

    #[test]
    fn the_older_format_is_refused_with_what_to_write() {
        let error = refused("older", "data /scratch/bb\npolicy size-fair\n");
        assert!(
            error.contains("line 1: ") && error.contains("`data = \"/scratch/bb\"`"),
            "{error}"
        );
    }

    #[test]
    fn an_option_without_a_value_does_not_take_the_next_one_for_it() {
        let error = parse(&["--data", "x", "--policy", "--mount", "/m"])
            .err()
            .unwrap();
        assert!(error.starts_with("--policy: "), "{error}");
        assert!(parse(&["--data"]).is_err());
    }

    #[test]
    fn what_is_missing_or_out_of_range_is_refused() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["--data", "x", "--parallel", "0"]).is_err());
    }

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        for (text, bytes) in [
            ("7", Some(7)),
            ("7B", Some(7)),
            ("2KiB", Some(2048)),
            ("3MB", Some(3_000_000)),
            ("1TiB", Some(1 << 40)),
            ("", None),
            ("5BB", None),
            ("4XiB", None),
            ("-1", None),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
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
    fn other_machines_are_served_only_in_cleartext() {
        let with =
            |address: &str, more: &[&str]| parse(&[&["--data", "x", "--listen", address], more].concat());
        for loopback in ["127.0.0.1:7000", "localhost:7000", "[::1]:7000"] {
            assert!(with(loopback, &[]).is_ok(), "{loopback}");
        }
        for elsewhere in [
            "0.0.0.0:7000",
            "10.0.0.1:7000",
            "[::]:7000",
            "node1:7000",
            "127.0.0.1.evil:1",
        ] {
            assert!(with(elsewhere, &[]).is_err(), "{elsewhere}");
            assert!(with(elsewhere, &["--cleartext"]).is_ok());
        }
    }
}
