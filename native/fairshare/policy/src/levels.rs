//! Policies by name: a list of levels, from the outermost to the innermost.

use std::fmt;
use std::str::FromStr;

/// One step of splitting: by what jobs are told apart, and what their parts weigh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Groups, all alike.
    Group,
    /// Users, all alike.
    User,
    /// Jobs, all alike.
    Job,
    /// Jobs in proportion to their nodes. Above another level: classes of jobs of equal size.
    Size,
    /// Jobs in proportion to their priority. Above another level: classes of equal priority.
    Priority,
}

impl Level {
    const ALL: [(&'static str, Level); 5] = [
        ("group", Level::Group),
        ("user", Level::User),
        ("job", Level::Job),
        ("size", Level::Size),
        ("priority", Level::Priority),
    ];

    fn word(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// Whether a level of this kind can be the innermost one: it tells single jobs apart.
    pub(crate) fn ends(self) -> bool {
        !matches!(self, Level::Group | Level::User)
    }
}

/// What is fair. `fifo` has no levels; every other policy has at least one.
///
/// Read with [`Policy::parse`]; shown in its full name, as in `group-then-user-then-size-fair`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    levels: Vec<Level>,
}

impl Policy {
    /// First in, first out: no fairness.
    pub const FIFO: Policy = Policy { levels: Vec::new() };

    /// Reads `fifo`, `size-fair`, `user-then-size-fair`, `group-user-size-fair` and the like.
    ///
    /// Levels are joined by `-then-` or `-`, outermost first. A job level can only be the last;
    /// where the last level is `group` or `user`, the jobs within it share alike.
    pub fn parse(name: &str) -> Result<Policy, ParseError> {
        let name = name.trim();
        let words: Vec<&str> = name.split('-').collect();
        match read(&words) {
            Ok(policy) => Ok(policy),
            Err(reason) => Err(ParseError {
                name: name.to_owned(),
                reason,
                suggestion: nearest(name),
            }),
        }
    }

    pub fn is_fifo(&self) -> bool {
        self.levels.is_empty()
    }

    /// The levels as they were named, outermost first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The levels of the tree of shares: as named, and jobs as the last where that was not said.
    pub fn tree_levels(&self) -> Vec<Level> {
        let mut levels = self.levels.clone();
        if !levels.last().is_some_and(|level| level.ends()) {
            levels.push(Level::Job);
        }
        levels
    }
}

impl FromStr for Policy {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Self, ParseError> {
        Policy::parse(name)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_fifo() {
            return f.write_str("fifo");
        }
        for (place, level) in self.levels.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "-then-" })?;
            f.write_str(level.word())?;
        }
        f.write_str("-fair")
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A name that is no policy, why, and the nearest one that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub name: String,
    pub reason: String,
    pub suggestion: Option<String>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a sharing policy: {}", self.name, self.reason)?;
        match &self.suggestion {
            Some(name) => write!(f, "; did you mean {name}?"),
            None => write!(
                f,
                "; write fifo, or levels of group, user, job, size and priority, outermost first, \
                 as in size-fair or user-then-size-fair"
            ),
        }
    }
}

impl std::error::Error for ParseError {}

fn read(words: &[&str]) -> Result<Policy, String> {
    if words == ["fifo"] {
        return Ok(Policy::FIFO);
    }
    let Some((&"fair", names)) = words.split_last() else {
        return Err("a policy is fifo or ends in -fair".into());
    };
    let mut levels = Vec::new();
    let mut joined = true;
    for (place, word) in names.iter().enumerate() {
        if *word == "then" {
            if joined || place + 1 == names.len() {
                return Err("\"then\" stands between two levels".into());
            }
            joined = true;
            continue;
        }
        joined = false;
        let level = Level::ALL.iter().find(|(name, _)| name == word);
        let Some(&(_, level)) = level else {
            return Err(format!("{word:?} is not a level"));
        };
        if levels.contains(&level) {
            return Err(format!("level {word:?} is named twice"));
        }
        if levels.last() == Some(&Level::Job) {
            return Err("job tells single jobs apart, so no level can follow it".into());
        }
        levels.push(level);
    }
    if levels.is_empty() {
        return Err("it names no level".into());
    }
    Ok(Policy { levels })
}

/// The policy that results when every word is replaced by the one it most resembles.
fn nearest(name: &str) -> Option<String> {
    let lower = name.to_lowercase().replace(['_', ' ', '.', ':', '/'], "-");
    let vocabulary = ["fifo", "then", "fair", "group", "user", "job", "size", "priority"];
    let mut words: Vec<&str> = Vec::new();
    for word in lower.split('-').filter(|word| !word.is_empty()).take(16) {
        let near = vocabulary
            .iter()
            .map(|known| (distance(word, known), *known))
            .min()?;
        // Half of the letters wrong is another word, not a slip.
        if near.0 * 2 > near.1.len() {
            return None;
        }
        words.push(near.1);
    }
    if words != ["fifo"] && words.last() != Some(&"fair") {
        words.push("fair");
    }
    read(&words).ok().map(|_| words.join("-"))
}

/// Number of letters to insert, delete, replace or swap with their neighbour to turn `a` into `b`.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(32).collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(rows[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(name: &str) -> Vec<Level> {
        Policy::parse(name).unwrap().levels
    }

    #[test]
    fn reads_primitive_and_composite_policies() {
        use Level::*;
        assert!(Policy::parse("fifo").unwrap().is_fifo());
        assert_eq!(levels("size-fair"), [Size]);
        assert_eq!(levels("priority-fair"), [Priority]);
        assert_eq!(levels("user-then-size-fair"), [User, Size]);
        assert_eq!(levels("user-size-fair"), [User, Size]);
        assert_eq!(levels("group-user-size-fair"), [Group, User, Size]);
        assert_eq!(levels("group-user-then-size-fair"), [Group, User, Size]);
        assert_eq!(
            levels("priority-group-user-size-fair"),
            [Priority, Group, User, Size]
        );
    }

    #[test]
    fn its_full_name_reads_back() {
        for name in ["fifo", "job-fair", "group-then-user-then-size-fair"] {
            assert_eq!(Policy::parse(name).unwrap().to_string(), name);
        }
        let short = Policy::parse("group-user-size-fair").unwrap();
        assert_eq!(Policy::parse(&short.to_string()), Ok(short));
    }

    #[test]
    fn a_slip_suggests_the_nearest() {
        for (wrong, right) in [
            ("sise-fair", "size-fair"),
            ("size_fair", "size-fair"),
            ("Size-Fair", "size-fair"),
            ("size", "size-fair"),
            ("user-than-size-fair", "user-then-size-fair"),
            ("uesr-fair", "user-fair"),
            ("group-user-siez-fare", "group-user-size-fair"),
            ("fito", "fifo"),
            ("prioritiy-fair", "priority-fair"),
        ] {
            let error = Policy::parse(wrong).unwrap_err();
            assert_eq!(error.suggestion.as_deref(), Some(right), "{wrong}");
            assert!(error.to_string().contains(right));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            "",
            "fair",
            "-fair",
            "fifo-fair",
            "user-fifo-fair",
            "user-user-fair",
            "job-then-user-fair",
            "then-user-fair",
            "user-then-fair",
            "user-then-then-size-fair",
            "bandwidth-fair",
            "\u{0}",
            "user--fair",
        ] {
            assert!(Policy::parse(wrong).is_err(), "{wrong:?}");
        }
        let error = Policy::parse("bandwidth-fair").unwrap_err();
        assert_eq!(error.suggestion, None);
        assert!(error.to_string().contains("user-then-size-fair"));
    }
}
