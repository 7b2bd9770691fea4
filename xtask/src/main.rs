//! The repository's own commands: `tidy` checks the project's rules, `docs` writes the generated pages, `bench` the measured
//! ones, `count` counts production lines, `soak` runs the long crash tests, `with-postgres` starts a database for a command.

mod bench;
mod count;
mod docs;
mod policy_page;
mod soak;
mod tidy;
mod with_postgres;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("tidy") => tidy::run(),
        Some("docs") => docs::run(),
        Some("bench") => bench::run(args),
        Some("count") => count::run(),
        Some("soak") => soak::run(),
        Some("with-postgres") => with_postgres::run(args),
        _ => {
            eprintln!("usage: cargo xtask tidy | docs | bench | count | soak | with-postgres -- COMMAND");
            ExitCode::from(2)
        }
    }
}
