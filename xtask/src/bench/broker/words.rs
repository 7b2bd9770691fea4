//! The words of the page that no number makes.

pub(super) const HEAD: &str = "# Benchmarks: the broker

Written by `cargo xtask bench broker`; the numbers are those of the machine it last ran on. Run it on yours. The same tool
call goes directly to a server that does as little as one can; through a *bare hop*, a program on the same runtime as ours that
exchanges the id of each message and does nothing else; through `embody mcp` with gates, audit and observation on, SQLite,
embedded mind; and through the proxies of others, at the versions that `tools/bench-peers` pins, each with its log turned
down. The server behind everybody is the same, over stdio. So is the host in front: raw JSON-RPC of the session
era, over stdio or over streamable HTTP with connections that stay open.

All processes share one core, so that a ratio does not depend on where the scheduler puts them. The rounds are interleaved.
The middle one is shown, and the middle one of the ratios to the direct call over stdio of the same round.

";

pub(super) const TRANSPORTS: &str = "
What is missing is not offered: the crate's and npm's `mcp-proxy` have no stdio in front, PyPI's has it only for a server
that is reached over HTTP. None of the others keeps a record, asks anybody, or tells a mind.

";

pub(super) const ALONE: &str = "
The proxies of others were left out of this run.

";

pub(super) const WRITES: &str = "
## Writes

A *read* is answered before its record is on the disk. A *write* waits for its audit record, which goes to the disk
in one commit with what is still to be written of the calls before it: one flush, of several pages.

";

pub(super) const UNCOUNTED: &str = "
The flushes were not counted: `strace` is not installed.
";

pub(super) const STARTS: &str = "
## Starting, and at rest

From the start of the process to its first answer (`initialize`), and to the list of the tools of the servers behind it. *Memory*
is what is resident a second later: of the process, and of what it started itself, the servers left out. Beside
us stands a *guard*, a process that ends the servers if we are killed. *No file's* are the pages that are no part of a program or
a library: those of a file are in memory once, however many processes count them, and can be dropped and read again.

";

pub(super) const GOALS: &str = "
## Goals

";

pub(super) const WHY: &str = "
What stands between us and these goals:

- *Many reads at once.* The server behind does next to nothing, and takes hundreds of thousands of calls a second when they
  come together. Each read through us leaves a record in a chain of hashes and a row for the mind, in SQLite, on the core
  that everybody shares: [where the time goes](decisions/0012-where-a-calls-time-goes.md). Of one user, 10,000 calls at most
  wait for the mind; what comes faster than it listens, for longer, is on record and not observed.
- *HTTP.* There are six calls of the kernel for a read, which is as few as there can be, and they are two fifths of its time. Then
  there is HTTP itself, and each request names its token, its session and its version, and each of them is checked; a token is
  looked up ten times a second at most.
- *Memory.* Most of it are pages of the program, which is large. What we allocate ourselves is among those that are
  no file's. The guard is the same program once more.
- *First answer.* The servers behind and the guard are started meanwhile, on the core that everybody shares. Without servers it
  comes after about 10 ms. It differs from run to run, since the middle of five starts is shown: 13.9, 17.1 and 20.2 ms in three runs
  on one machine.
- *Flushes.* A write waits for one. The others that were counted are of what is written down afterwards, and of moving the log
  into the database from time to time.
";

pub(super) const GROWTH: &str = "
## Growth

Each session over HTTP has its own connection to the server behind, so with 1,000 sessions there are 1,000 servers.
*Open* is what a new session takes until its first call is answered, `tools/list` and the start of the server included;
*list* is one `tools/list`, all pages.

";
