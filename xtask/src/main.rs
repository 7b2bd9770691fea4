//! The repository's own chores: `tidy` checks the rules of the house, `docs` writes the generated pages, `bench` the
//! measured ones, `soak` kills what must survive, `with-postgres` lends a database to a command.

mod bench;
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
        Some("soak") => soak::run(),
        Some("with-postgres") => with_postgres::run(args),
        _ => {
            eprintln!("usage: cargo xtask tidy | docs | bench | soak | with-postgres -- COMMAND");
            ExitCode::from(2)
        }
    }
}
