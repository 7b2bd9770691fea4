//! `cargo xtask tidy`: the project's rules that the compiler does not check. Prints every breach, then fails.

mod edges;
mod links;
mod shape;
mod spec;
mod text;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A file that git tracks or would track.
pub(crate) struct Tracked {
    /// Its path from the root, with `/`.
    pub(crate) path: String,
    /// Its content; empty if it is not UTF-8.
    pub(crate) text: String,
}

impl Tracked {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs") || self.path.contains("/benches/")
    }
}

pub(crate) fn run() -> ExitCode {
    let files = match repository_files() {
        Ok(files) => files,
        Err(error) => {
            eprintln!("error: cannot list the repository's files\n  caused by: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut breaches = Vec::new();
    edges::check(&files, &mut breaches);
    links::check(&files, &mut breaches);
    links::check_paths(&files, &mut breaches);
    shape::check(&files, &mut breaches);
    spec::check(&files, &mut breaches);
    text::check(&files, &mut breaches);
    for breach in &breaches {
        eprintln!("tidy: {breach}");
    }
    if breaches.is_empty() {
        println!("tidy: {} files, no breach", files.len());
        return ExitCode::SUCCESS;
    }
    eprintln!("tidy: {} breaches", breaches.len());
    ExitCode::FAILURE
}

pub(crate) fn repository_files() -> std::io::Result<Vec<Tracked>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let list = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    if !list.status.success() {
        return Err(std::io::Error::other(String::from_utf8_lossy(&list.stderr).trim().to_owned()));
    }
    let names = String::from_utf8_lossy(&list.stdout);
    let read = |name: &str| {
        let path: PathBuf = root.join(name);
        let text = String::from_utf8(std::fs::read(path).ok()?).unwrap_or_default();
        Some(Tracked { path: name.to_owned(), text })
    };
    Ok(names.lines().filter_map(read).collect())
}
