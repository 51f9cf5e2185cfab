//! `fairshare-sim [run|promise|calibrate] [FILE]`: JSON in (a file, or standard input), JSON out.

use std::io::{Read, Write};
use std::process::ExitCode;

use fairshare_sim::{calibrate, promise, simulate, Config, Task};
use serde::de::DeserializeOwned;
use serde::Serialize;

const USAGE: &str = "usage: fairshare-sim run|promise|calibrate [FILE]
  run        simulates the document in FILE (or standard input)
  promise    says what its policy promises its jobs, without simulating them
  calibrate  fits server and placement to measurements and predicts
Numbers are bytes, seconds, and bytes per second. What it prints is simulated, never measured.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = match words[..] {
        ["run"] => run(None),
        ["run", file] => run(Some(file)),
        ["promise"] => say(None),
        ["promise", file] => say(Some(file)),
        ["calibrate"] => fit(None),
        ["calibrate", file] => fit(Some(file)),
        ["--version" | "-V"] => {
            println!("fairshare-sim {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    };
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("fairshare-sim: {reason}");
            ExitCode::from(2)
        }
    }
}

fn run(file: Option<&str>) -> Result<(), String> {
    let config: Config = read(file)?;
    print(&simulate(&config)?)
}

fn say(file: Option<&str>) -> Result<(), String> {
    let config: Config = read(file)?;
    print(&promise(&config)?)
}

fn fit(file: Option<&str>) -> Result<(), String> {
    let task: Task = read(file)?;
    print(&calibrate(&task)?)
}

fn read<T: DeserializeOwned>(file: Option<&str>) -> Result<T, String> {
    let mut text = String::new();
    let name = file.unwrap_or("standard input");
    let read = match file {
        Some(path) => std::fs::read_to_string(path).map(|content| text = content),
        None => std::io::stdin().read_to_string(&mut text).map(|_| ()),
    };
    read.map_err(|error| format!("{name}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
}

fn print(answer: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string(answer).map_err(|error| error.to_string())?;
    // A reader that has seen enough (`| head`) is no failure.
    let _ = writeln!(std::io::stdout(), "{text}");
    Ok(())
}
