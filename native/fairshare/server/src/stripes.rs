//! Files whose data lie on several servers.
//!
//! The home server has the file in its tree: name, attributes and size (a file of that length, all hole),
//! and in an extended attribute that clients neither see nor set the layout. Each server of the layout
//! has one object of the file, in `DIR/stripes`, with the stripes that fall to it at their places in the
//! file and holes between. The client knows which stripe falls to whom. No object has data behind the
//! file's size: a write that needs more makes the file longer first, and a file is made shorter when
//! nobody writes, objects first ([`crate::leases`]).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::time::Duration;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use wire::{rights, Grant, Layout, GRANT_BYTES, SIGNED_BYTES};

use crate::creds::{self, Creds};
use crate::errno::{check, check_size, Errno, Result};
use crate::handles::random;
use crate::identity::{keyed, now};
use crate::tree::proc_path;

/// How long a grant may be shown (seconds). A client asks for a new one whenever it opens an object again.
const VALID: u64 = 600;
/// After this time what a client did not remove is another's to remove.
const LEFT_OVER: Duration = Duration::from_secs(60);

const ATTRIBUTE: &std::ffi::CStr = c"user.fairshare.stripes";
/// Extended attributes that are the server's own.
pub const OWN_ATTRIBUTES: &[u8] = b"user.fairshare.";

pub struct Stripes {
    folder: PathBuf,
    key: Vec<u8>,
    /// Bytes of a stripe of new files; 0: they are not striped.
    pub size: u32,
    /// Whether there may be striped files in the tree.
    pub active: bool,
    /// Held for writing while a file is made and its layout noted, or loses its last name.
    pub births: RwLock<()>,
}

impl Stripes {
    /// The folder of objects in data folder `data`. `key`: shared by the servers of a file.
    pub fn open(data: &Path, key: Vec<u8>, size: u32) -> Result<Self> {
        let folder = data.join("stripes");
        if !folder.is_dir() {
            DirBuilder::new().mode(0o700).create(&folder)?;
        }
        let mark = folder.join("home");
        if size > 0 {
            let file = File::create(&mark)?;
            // Says now, rather than at the first file, that the backing store has no attributes.
            set_attribute(file.as_raw_fd(), b"")?;
        }
        Ok(Self {
            active: mark.exists(),
            folder,
            key,
            size,
            births: RwLock::default(),
        })
    }

    /// The layout of a file, None where it is an ordinary one. EIO for one that this key did not sign.
    pub fn layout(&self, fd: RawFd, ino: u64) -> Result<Option<Layout>> {
        if !self.active {
            return Ok(None);
        }
        let bytes = match attribute(fd) {
            // Who may only write to a file, or look at it, cannot read its attributes.
            Err(Errno(libc::EACCES | libc::EPERM)) => creds::as_server(|| attribute(fd))?,
            other => other?,
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let bytes: [u8; GRANT_BYTES] = bytes.try_into().map_err(|_| Errno(libc::EIO))?;
        if !self.signs(&bytes, &ino.to_le_bytes()) {
            return Err(Errno(libc::EIO));
        }
        Ok(Some(Grant::parse(&bytes).map_err(|_| Errno(libc::EIO))?.layout))
    }

    /// Make a new, empty file one that is striped over `servers`.
    pub fn found(&self, fd: RawFd, ino: u64, home: u64, servers: Vec<u64>) -> Result<()> {
        let layout = Layout {
            home,
            file: random()?,
            stripe: self.size,
            servers,
        };
        let bytes = self.signed(&plain(layout), &ino.to_le_bytes());
        creds::as_server(|| set_attribute(fd, &bytes))
    }

    /// What `client` shows to the servers of a layout.
    pub fn grant(
        &self,
        layout: &Layout,
        client: &Creds,
        rights: u32,
        owner: (u32, u32),
    ) -> [u8; GRANT_BYTES] {
        let grant = Grant {
            layout: layout.clone(),
            expires: now() + VALID,
            uid: client.uid,
            rights,
            owner: owner.0,
            group: owner.1,
        };
        self.signed(&grant, b"grant")
    }

    /// Check a grant that a client shows. EACCES where it is not its own, or not one of ours.
    pub fn check(&self, bytes: &[u8], client: &Creds) -> Result<Grant> {
        let bytes: &[u8; GRANT_BYTES] = bytes.try_into().map_err(|_| Errno(libc::EBADMSG))?;
        if !self.signs(bytes, b"grant") {
            return Err(Errno(libc::EACCES));
        }
        let grant = Grant::parse(bytes).map_err(|_| Errno(libc::EBADMSG))?;
        if grant.uid != client.uid || grant.expires < now() {
            return Err(Errno(libc::EACCES));
        }
        Ok(grant)
    }

    /// Open this server's object of a file. ENOENT where it is not there and may not be made.
    pub fn object(&self, grant: &Grant) -> Result<OwnedFd> {
        let (read, write) = (
            grant.rights & rights::READ != 0,
            grant.rights & rights::WRITE != 0,
        );
        if !read && !write {
            return Err(Errno(libc::EACCES));
        }
        let path = self.path(&grant.layout);
        creds::as_server(|| {
            let mut options = OpenOptions::new();
            let options = options.read(read).write(write);
            match options.open(&path) {
                Err(error)
                    if error.kind() == std::io::ErrorKind::NotFound && grant.rights & rights::CREATE != 0 =>
                {
                    let made = OpenOptions::new()
                        .write(true)
                        .create(true)
                        .truncate(false)
                        .mode(0o600)
                        .open(&path)?;
                    if creds::can_impersonate() {
                        // So that the store's quotas count it for whom the file belongs to.
                        // SAFETY: a plain call.
                        check(unsafe { libc::fchown(made.as_raw_fd(), grant.owner, grant.group) })?;
                    }
                    Ok(options.open(&path)?.into())
                }
                other => Ok(other?.into()),
            }
        })
    }

    /// Remove this server's object of a file, where it is still there.
    pub fn remove(&self, layout: &Layout) -> Result<()> {
        creds::as_server(|| absent_is_fine(fs::remove_file(self.path(layout))))
    }

    /// Remember that a file has lost its last name, until its objects are gone everywhere.
    pub fn bury(&self, layout: &Layout) -> Result<()> {
        let bytes = self.signed(&plain(layout.clone()), b"gone");
        creds::as_server(|| {
            let mut file = File::create(self.grave(layout))?;
            Ok(file.write_all(&bytes)?)
        })
    }

    /// The objects of a file are gone everywhere.
    pub fn forget(&self, layout: &Layout) -> Result<()> {
        creds::as_server(|| absent_is_fine(fs::remove_file(self.grave(layout))))
    }

    /// A file without names of which objects may be left: whoever removed it did not end its work.
    pub fn left_over(&self) -> Result<Option<Layout>> {
        creds::as_server(|| {
            for entry in fs::read_dir(&self.folder)?.flatten() {
                if !entry.file_name().to_string_lossy().ends_with(".gone") {
                    continue;
                }
                let old = entry
                    .metadata()
                    .and_then(|found| found.modified())
                    .is_ok_and(|when| when.elapsed().is_ok_and(|age| age > LEFT_OVER));
                let Some(bytes) = old.then(|| fs::read(entry.path()).ok()).flatten() else {
                    continue;
                };
                if let Ok(bytes) = <[u8; GRANT_BYTES]>::try_from(bytes) {
                    if self.signs(&bytes, b"gone") {
                        return Ok(Grant::parse(&bytes).ok().map(|grant| grant.layout));
                    }
                }
            }
            Ok(None)
        })
    }

    fn path(&self, layout: &Layout) -> PathBuf {
        self.folder
            .join(format!("{:016x}-{:016x}", layout.home, layout.file))
    }

    fn grave(&self, layout: &Layout) -> PathBuf {
        self.path(layout).with_extension("gone")
    }

    /// What is signed is told apart by `purpose`: a layout is of one file, by its inode, so that nobody
    /// makes it another's.
    fn signed(&self, grant: &Grant, purpose: &[u8]) -> [u8; GRANT_BYTES] {
        let mut bytes = [0; GRANT_BYTES];
        bytes[..SIGNED_BYTES].copy_from_slice(&grant.to_bytes());
        let signature = self.mac(&bytes, purpose).finalize().into_bytes();
        bytes[SIGNED_BYTES..].copy_from_slice(&signature);
        bytes
    }

    fn signs(&self, bytes: &[u8; GRANT_BYTES], purpose: &[u8]) -> bool {
        self.mac(bytes, purpose)
            .verify_slice(&bytes[SIGNED_BYTES..])
            .is_ok()
    }

    fn mac(&self, bytes: &[u8; GRANT_BYTES], purpose: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&keyed(&self.key, purpose)).expect("any length is a key");
        mac.update(&bytes[..SIGNED_BYTES]);
        mac
    }
}

/// A layout alone, as it is kept.
fn plain(layout: Layout) -> Grant {
    Grant {
        layout,
        expires: 0,
        uid: 0,
        rights: 0,
        owner: 0,
        group: 0,
    }
}

/// Whether a file is striped, by whoever may ask: for what stat says of its blocks.
pub fn is_striped(fd: RawFd) -> bool {
    // A length alone can be asked for by those who may read; others see a file that is all hole.
    matches!(attribute(fd), Ok(Some(_)) | Err(Errno(libc::EACCES)))
}

fn attribute(fd: RawFd) -> Result<Option<Vec<u8>>> {
    let path = proc_path(fd); // also for what was found without being opened
    let mut value = vec![0_u8; 2 * GRANT_BYTES];
    // SAFETY: C strings; the buffer has the length given.
    let length = check_size(unsafe {
        libc::getxattr(
            path.as_ptr(),
            ATTRIBUTE.as_ptr(),
            value.as_mut_ptr().cast(),
            value.len(),
        )
    });
    match length {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        Err(Errno(libc::ENODATA | libc::EOPNOTSUPP)) => Ok(None),
        Err(other) => Err(other),
    }
}

fn set_attribute(fd: RawFd, value: &[u8]) -> Result<()> {
    let path = proc_path(fd);
    // SAFETY: C strings; the buffer has the length given.
    check(unsafe {
        libc::setxattr(
            path.as_ptr(),
            ATTRIBUTE.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    })?;
    Ok(())
}

fn absent_is_fine(result: std::io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => Ok(other?),
    }
}
