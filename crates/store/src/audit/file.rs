//! Small private files beside the database: made whole or not at all, once, by whichever process is first.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes the file with this content, readable by its owner only and on the disk when this returns. One that is there
/// already stays as it is.
pub(super) fn make_once(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.{}", uuid::Uuid::now_v7().simple()));
    let made = write_whole(&draft, content).and_then(|()| match fs::hard_link(&draft, path) {
        // A link never replaces a file, unlike a rename: of two processes that start at once the first wins.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let removed = match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    made.and(removed)?;
    File::open(folder)?.sync_all()
}

fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}
