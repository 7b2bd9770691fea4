//! The PostgreSQL server that tests use.

/// The URL in an environment variable that `./test` sets. Without it a test that `cargo nextest` runs in its own process
/// prints that it is left out and ends; in `./test`, which sets `EMBODY_TEST_ALL`, and under other runners it fails.
pub(crate) fn server_url(variable: &str) -> String {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    match std::env::var(variable) {
        Ok(url) => url,
        Err(_) => {
            let missing = format!(
                "{variable} is not set: run ./test, or cargo xtask with-postgres -- cargo nextest run"
            );
            let is_alone =
                std::env::var("NEXTEST_EXECUTION_MODE").is_ok_and(|mode| mode == "process-per-test");
            assert!(is_alone && !is_set("EMBODY_TEST_ALL"), "{missing}");
            println!("left out, because it needs PostgreSQL: {missing}");
            std::process::exit(0);
        }
    }
}
