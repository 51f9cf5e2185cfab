//! What a request came to: from who carried it out to who asked.

use wire::Reply;

/// Gets the outcome, and the bytes of the reply's data.
pub type Then = Box<dyn FnOnce(&Outcome, &[u8]) + Send>;

/// What an operation came to. `data` bytes of the area are the reply's data.
#[derive(Default)]
pub struct Outcome {
    pub result: i64,
    pub value: u64,
    pub data: usize,
    /// The number of the file whose data were changed.
    pub changed: Option<u64>,
    /// Whether that was at another place than was asked for.
    pub elsewhere: bool,
    /// Whether a worker waited for a device.
    pub waited: bool,
}

impl Outcome {
    pub fn of(result: i64) -> Self {
        Self {
            result,
            ..Self::default()
        }
    }

    pub fn changing(mut self, ino: u64) -> Self {
        self.changed = Some(ino);
        self
    }

    pub fn with_data(data: usize) -> Self {
        Self {
            result: data as i64,
            data,
            ..Self::default()
        }
    }

    pub fn reply(&self) -> Reply {
        Reply {
            result: self.result,
            value: self.value,
            data_len: self.data as u32,
        }
    }
}
