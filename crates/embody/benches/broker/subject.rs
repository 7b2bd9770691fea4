//! Who is measured: the server itself, a bare hop, `embody`, and the proxies of others, each over the transports that it has.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::host::{Address, Started};
use crate::process;

/// Somebody who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Direct,
    DirectHttp,
    Hop,
    Embody,
    EmbodyHttp,
    Peer(Peer),
}

/// A proxy of others, of this version, in the folder where they are installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    folder: PathBuf,
    which: Which,
    version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Crate,
    Python,
    Fastmcp,
    FastmcpHttp,
    Npm,
}

/// All of them; those of others if `EMBODY_BENCH_PEERS` says where they are.
pub(crate) fn all() -> Vec<Subject> {
    use Subject::{Direct, DirectHttp, Embody, EmbodyHttp, Hop};
    let mut all = vec![Direct, Hop, Embody, DirectHttp, EmbodyHttp];
    let Some(folder) = std::env::var_os("EMBODY_BENCH_PEERS").map(PathBuf::from) else { return all };
    let versions = std::fs::read_to_string(folder.join("versions")).unwrap();
    for (which, program) in [
        (Which::Crate, "crate-mcp-proxy"),
        (Which::Python, "python-mcp-proxy"),
        (Which::Fastmcp, "python-fastmcp"),
        (Which::FastmcpHttp, "python-fastmcp"),
        (Which::Npm, "npm-mcp-proxy"),
    ] {
        let version = versions.lines().find_map(|line| line.strip_prefix(program)).unwrap().trim().to_owned();
        all.push(Subject::Peer(Peer { folder: folder.clone(), which, version }));
    }
    all
}

impl fmt::Display for Subject {
    /// The name, and the transport in front, between tabs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = if self.is_http() { "HTTP" } else { "stdio" };
        match self {
            Self::Direct | Self::DirectHttp => write!(f, "direct\t{transport}"),
            Self::Hop => write!(f, "bare hop\t{transport}"),
            Self::Embody | Self::EmbodyHttp => write!(f, "embody\t{transport}"),
            Self::Peer(Peer { which, version, .. }) => {
                let name = match which {
                    Which::Crate => "crate mcp-proxy",
                    Which::Python => "PyPI mcp-proxy",
                    Which::Fastmcp | Which::FastmcpHttp => "PyPI fastmcp",
                    Which::Npm => "npm mcp-proxy",
                };
                write!(f, "{name} {version}\t{transport}")
            }
        }
    }
}

impl Subject {
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Embody | Self::EmbodyHttp)
    }

    fn is_http(&self) -> bool {
        match self {
            Self::DirectHttp | Self::EmbodyHttp => true,
            Self::Peer(peer) => peer.which != Which::Fastmcp,
            _ => false,
        }
    }

    /// How many calls one round makes, one after another and many at once: no more than there is time for.
    pub(crate) fn calls(&self) -> (usize, usize) {
        match self {
            // Several times what may wait for its record: whoever calls so often waits for the records too.
            Self::Embody | Self::EmbodyHttp | Self::Direct | Self::Hop | Self::DirectHttp => (2000, 20_000),
            Self::Peer(Peer { which: Which::Crate, .. }) => (2000, 10_000),
            Self::Peer(_) => (300, 1000),
        }
    }

    /// How many servers it can have behind it.
    pub(crate) fn most_servers(&self) -> usize {
        match self {
            Self::Direct | Self::DirectHttp => 0,
            Self::Hop | Self::Peer(Peer { which: Which::Npm, .. }) => 1,
            _ => usize::MAX,
        }
    }

    /// Starts it with so many servers behind it. The folder is its own, and empty.
    pub(crate) fn start(&self, folder: &Path, servers: usize) -> Started {
        let this = std::env::current_exe().unwrap();
        let port = process::port();
        let at = |path| Some(Address { port, path, token: None });
        match self {
            Self::Direct => Started::new(Command::new(this).arg("--echo"), None),
            Self::DirectHttp => {
                Started::new(Command::new(this).args(["--echo-http", &port.to_string()]), at("/mcp"))
            }
            Self::Hop => Started::new(Command::new(this).arg("--hop"), None),
            Self::Embody | Self::EmbodyHttp => {
                let bodies = vec![vec!["--echo".to_owned()]; servers];
                let workspace = Workspace::new(folder, &bodies);
                if self.is_http() {
                    let token = workspace.token("owner");
                    let address = Address { port, path: "/mcp", token: Some(token) };
                    Started::new(&mut workspace.over_http(port), Some(address))
                } else {
                    Started::new(&mut workspace.over_stdio(), None)
                }
            }
            Self::Peer(peer) => peer.start(&this, folder, servers, port),
        }
    }
}

impl Peer {
    fn start(&self, this: &Path, folder: &Path, servers: usize, port: u16) -> Started {
        let program = |name: &str| {
            let mut command = Command::new(self.folder.join("bin").join(name));
            command.env("HOME", folder).current_dir(folder);
            command
        };
        let at = |path| Some(Address { port, path, token: None });
        let names: Vec<String> = (1..=servers).map(|number| format!("s{number}")).collect();
        let server = this.display().to_string();
        match self.which {
            Which::Crate => {
                let mut config = format!(
                    "[proxy]\nname = \"bench\"\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\n\
                     [observability]\nlog_level = \"error\"\n"
                );
                for name in &names {
                    config += &format!(
                        "\n[[backends]]\nname = \"{name}\"\ntransport = \"stdio\"\ncommand = {server:?}\nargs = [\"--echo\"]\n"
                    );
                }
                std::fs::write(folder.join("proxy.toml"), config).unwrap();
                Started::new(program("crate-mcp-proxy").args(["--config", "proxy.toml"]), at("/"))
            }
            Which::Python => {
                let mut command = program("python-mcp-proxy");
                command.args(["--log-level", "ERROR", "--port", &port.to_string()]);
                // The first is served at its usual place, the others each at one of its own.
                for name in names.iter().skip(1) {
                    command.args(["--named-server", name, &format!("'{server}' --echo")]);
                }
                Started::new(command.args(["--", &server, "--echo"]), at("/mcp"))
            }
            Which::Fastmcp | Which::FastmcpHttp => {
                let servers: serde_json::Map<_, _> = names
                    .into_iter()
                    .map(|name| (name, json!({"command": server, "args": ["--echo"]})))
                    .collect();
                std::fs::write(folder.join("servers.json"), json!({"mcpServers": servers}).to_string())
                    .unwrap();
                let script = "import json, sys\nfrom fastmcp.server import create_proxy\n\
                     proxy = create_proxy(json.load(open('servers.json')))\n\
                     if sys.argv[1] == 'stdio':\n    proxy.run(transport='stdio', show_banner=False)\nelse:\n    \
                     proxy.run(transport='http', port=int(sys.argv[1]), log_level='error', show_banner=False)\n";
                let is_http = self.which == Which::FastmcpHttp;
                let place = if is_http { port.to_string() } else { "stdio".to_owned() };
                let mut command = program("python-fastmcp");
                command.env("FASTMCP_LOG_LEVEL", "ERROR").env("FASTMCP_CHECK_FOR_UPDATES", "off");
                Started::new(command.args(["-c", script, &place]), is_http.then(|| at("/mcp")).flatten())
            }
            Which::Npm => {
                let mut command = program("npm-mcp-proxy");
                command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--server", "stream"]);
                Started::new(command.args(["--", &server, "--echo"]), at("/mcp"))
            }
        }
    }
}

/// A workspace of `embody`, with a store that is there already.
pub(crate) struct Workspace<'a>(&'a Path);

impl<'a> Workspace<'a> {
    /// With a body for each list of arguments.
    pub(crate) fn new(folder: &'a Path, bodies: &[Vec<String>]) -> Self {
        let this = std::env::current_exe().unwrap().display().to_string();
        // Whatever there is, is listed: the growth of the whole list is measured too.
        let mut config = "[tools]\nmax_listed = 1000000\n\n".to_owned();
        for (number, arguments) in (1..).zip(bodies) {
            let command: Vec<&str> =
                std::iter::once(this.as_str()).chain(arguments.iter().map(String::as_str)).collect();
            config += &format!("[[body]]\nname = \"s{number}\"\ncommand = {command:?}\nusers = \"all\"\n\n");
        }
        config += "[[policy.rule]]\ntools = [\"note\"]\nclass = \"write\"\ngate = \"allow\"\n";
        std::fs::write(folder.join("embody.toml"), config).unwrap();
        let workspace = Self(folder);
        workspace.token("nobody");
        workspace
    }

    /// A token for a host of this user.
    pub(crate) fn token(&self, user: &str) -> String {
        let output = self.embody(&["token", "add", "--user", user, "--scope", "mcp"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn over_stdio(&self) -> Command {
        self.embody(&["mcp"])
    }

    /// With each flush of the disk as a line in a file; none where `strace` is not installed.
    pub(crate) fn traced(&self, into: &Path) -> Option<Command> {
        Command::new("strace").arg("-V").output().ok().filter(|output| output.status.success())?;
        let plain = self.over_stdio();
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o"]).arg(into);
        command.arg(plain.get_program()).args(plain.get_args());
        Some(command)
    }

    pub(crate) fn over_http(&self, port: u16) -> Command {
        self.embody(&["mcp", "--listen", &format!("127.0.0.1:{port}")])
    }

    fn embody(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_embody"));
        command.args(["--log", "error", "--workspace"]).arg(self.0).args(arguments);
        // The host of the benchmark writes at once after the contract.
        command.env("EMBODY_POLICY__CONTRACT_DELAY_MS", "0");
        command
    }
}
