//! Other processes on the same file: at the same time, on a full disk, in a folder that cannot be written.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use embody_store::{DatabaseUrl, Store};

use super::{actor, append, assert_intact, intent};

/// Tells the child which file to work on, and how many writes to begin.
const FILE: &str = "EMBODY_TEST_AUDIT_FILE";
const WRITES: &str = "EMBODY_TEST_AUDIT_WRITES";

/// The child: begins writes until one is refused, and says what became of each. Without a file, a test of its own.
#[tokio::test]
async fn begins_writes_until_one_is_refused() {
    let own = tempfile::tempdir().unwrap();
    let path = std::env::var_os(FILE).map_or(own.path().join("embody.db"), PathBuf::from);
    let writes: u32 = std::env::var(WRITES).map_or(10, |text| text.parse().unwrap());
    let store = match Store::open(DatabaseUrl::File(path)).await {
        Ok(store) => store,
        Err(error) => return println!("\nclosed {:?}: {error}", error.kind()),
    };
    println!();
    let mut refused = 0;
    for number in 0..writes {
        let id = format!("{}-{number}", std::process::id());
        match store.audit().begin(&actor("ann"), intent(&id)).await {
            Ok(begun) => println!("begun {}", begun.call_id()),
            Err(error) => {
                println!("refused {id} {:?}", error.kind());
                refused += 1;
            }
        }
        if refused == 3 {
            break;
        }
    }
    if std::env::var_os(FILE).is_none() {
        assert_intact(&store, 10).await;
    }
}

fn child(exe: &Path, file: &Path, writes: u32) -> Command {
    let mut command = Command::new(exe);
    with_child_arguments(&mut command, file, writes);
    command
}

fn with_child_arguments(command: &mut Command, file: &Path, writes: u32) {
    command
        .args(["--exact", "audit::process::begins_writes_until_one_is_refused", "--nocapture"])
        .env(FILE, file)
        .env(WRITES, writes.to_string())
        .stdout(Stdio::piped());
}

fn lines(output: &std::process::Output, word: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.strip_prefix(word)).map(|rest| rest.trim().to_owned()).collect()
}

fn exe() -> PathBuf {
    std::env::current_exe().unwrap()
}

#[tokio::test]
async fn processes_that_start_at_once_share_a_chain() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.db");
    let children: Vec<_> = (0..4).map(|_| child(&exe(), &file, 50).spawn().unwrap()).collect();
    let mut begun = BTreeSet::new();
    for child in children {
        begun.extend(lines(&child.wait_with_output().unwrap(), "begun "));
    }
    assert_eq!(begun.len(), 200);
    let store = Store::open(DatabaseUrl::File(file)).await.unwrap();
    assert_intact(&store, 200).await;
    let open = store.audit().open_writes(i64::MAX, 1000).await.unwrap();
    assert_eq!(open.iter().map(|record| record.text("call_id").unwrap()).collect::<BTreeSet<_>>(), begun);
}

// spec: N-14
#[tokio::test]
async fn a_full_disk_refuses_the_write_and_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.db");
    let store = Store::open(DatabaseUrl::File(file.clone())).await.unwrap();
    append(&store, 1).await;
    store.close().await;
    // Files may not grow beyond this; ignoring the signal turns it into the error of a full disk.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$@\"", "sh"]).arg(exe());
    with_child_arguments(&mut command, &file, 5000);
    let output = command.output().unwrap();
    let begun: BTreeSet<_> = lines(&output, "begun ").into_iter().collect();
    let refused = lines(&output, "refused ");
    assert!(!begun.is_empty(), "{output:?}");
    assert_eq!(refused.len(), 3, "{output:?}");
    assert!(refused.iter().all(|line| line.ends_with(" Full")), "{refused:?}");
    let store = Store::open(DatabaseUrl::File(file)).await.unwrap();
    assert_intact(&store, 1 + begun.len() as u64).await;
    let open = store.audit().open_writes(i64::MAX, 10_000).await.unwrap();
    assert_eq!(open.iter().map(|record| record.text("call_id").unwrap()).collect::<BTreeSet<_>>(), begun);
}

// spec: N-14
#[tokio::test]
async fn a_folder_that_cannot_be_written_refuses_the_write() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.db");
    let store = Store::open(DatabaseUrl::File(file.clone())).await.unwrap();
    append(&store, 1).await;
    store.close().await;
    // The one who runs the tests may be root, whom permissions do not stop: the child is nobody then.
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let copy = folder.path().join("child");
    fs::copy(exe(), &copy).unwrap();
    let nobody = root.then_some(65534);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        chown(&path, nobody, nobody).unwrap();
        let mode = if path == copy { 0o555 } else { 0o400 };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    chown(folder.path(), nobody, nobody).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).unwrap();
    let mut command = child(&copy, &file, 3);
    if let Some(nobody) = nobody {
        command.uid(nobody).gid(nobody);
    }
    let output = command.current_dir("/").output().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(lines(&output, "begun "), [""; 0], "{output:?}");
    let closed = lines(&output, "closed ");
    let refused = lines(&output, "refused ");
    assert!(closed.iter().chain(&refused).all(|line| line.contains("ReadOnly")), "{output:?}");
    assert_eq!(closed.len() + refused.len().min(1), 1, "{output:?}");
}
