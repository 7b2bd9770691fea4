//! Files that change while they are read: a read is one version whole, or it is refused and says so.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;

use embody_workspace::{BodyOutcome, load};

use super::fixture::{TestWorkspace, body, notes};

const READS: usize = 40;
const BURST: usize = 12;
/// Many pages, so that a torn read shows; below the reader's limit.
const LENGTH: usize = 240_000;

fn version(number: usize) -> String {
    ["a", "b"][number % 2].repeat(LENGTH)
}

/// Reads the body again and again while `write` changes it in bursts, one burst for each read. Gives how many reads
/// were refused.
fn read_while(fixture: &TestWorkspace, write: impl Fn(&Path, usize) + Send) -> usize {
    let path = fixture.path("prompts/agent_system.md");
    fixture.file("prompts/agent_system.md", version(0));
    let (start, starts) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while starts.recv().is_ok() {
                write(&path, 0);
                begun.send(()).unwrap();
                (1..=BURST).for_each(|number| write(&path, number));
            }
        });
        let mut refused = 0;
        for _ in 0..READS {
            start.send(()).unwrap();
            begins.recv().unwrap();
            refused += usize::from(!is_whole(fixture));
        }
        drop(start);
        refused
    })
}

/// Whether the body was read; it must be one version from start to end, or be refused with a reason.
fn is_whole(fixture: &TestWorkspace) -> bool {
    let loaded = load(&fixture.request()).unwrap();
    let text = body(&loaded);
    if text == version(0) || text == version(1) {
        assert!(loaded.body.loaded && notes(&loaded).is_empty(), "{:?}", notes(&loaded));
        return true;
    }
    assert_eq!(text.len(), 0, "a mix of {} bytes", text.len());
    assert!(notes(&loaded)[0].contains("kept changing"), "{:?}", notes(&loaded));
    assert_eq!(loaded.body.bytes, BodyOutcome::default().bytes);
    false
}

#[test]
fn a_file_that_is_replaced_is_always_read_whole() {
    let fixture = TestWorkspace::new();
    let refused = read_while(&fixture, |path, number| {
        let aside = path.with_extension("aside");
        fs::write(&aside, version(number)).unwrap();
        fs::rename(&aside, path).unwrap();
    });
    assert_eq!(refused, 0, "the file that was opened stays what it was");
}

#[test]
fn a_file_that_is_rewritten_in_place_is_read_whole_or_not_at_all() {
    let fixture = TestWorkspace::new();
    // Each version is written by one call: what is torn is torn by the reader.
    read_while(&fixture, |path, number| {
        let mut file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all(version(number).as_bytes()).unwrap();
    });
    assert!(is_whole(&fixture), "once the writer has stopped, the file is read");
}

#[test]
fn a_new_version_is_seen_at_once() {
    let fixture = TestWorkspace::new();
    for number in 0..4 {
        fixture.file("SOUL.md", format!("version {number}"));
        let loaded = fixture.load();
        assert!(
            super::fixture::text(&loaded, embody_prompt::Layout::CHANNEL)
                .contains(&format!("version {number}"))
        );
    }
}
